#include "envs/registries.h"

#include "base/path.h"
#include "envs/node/npm_registry.h"
#include "envs/python/hosts.h"
#include "envs/python/uv.h"
#include "format/http/uri.h"

static void add_host(struct arena *arena, text_list *hosts, struct str name, uint16_t port)
{
	bool is_v6 = memchr(name.data, ':', name.len);
	const char *text = arena_printf(
		arena, is_v6 ? "[%.*s]:%u" : "%.*s:%u", (int)name.len, name.data, port);
	if (!text_list_has(hosts, text))
		vec_push(arena, hosts, text);
}

/* The URL without credentials, whose host is added; NULL: it has none. */
static const char *take_url(struct arena *arena, struct registries_found *found, const char *url)
{
	struct uri parts;
	struct str name;
	uint16_t port;
	if (!uri_split(url, &parts) || !uri_parse_host(parts.host, &name, &port))
		return NULL;
	if (!port)
		port = str_is(parts.scheme, "http://") ? 80 : 443;
	add_host(arena, &found->indexes, name, port);
	return arena_printf(arena, "%.*s%s", (int)parts.scheme.len, url, parts.host.data);
}

static void add_variable(
	struct arena *arena, struct registries_found *found, const char *name, const char *value)
{
	vec_push(arena, &found->variables, arena_printf(arena, "%s=%s", name, value));
}

/* What sandboxes see of the host's certificates. */
static void add_certificates(struct arena *arena, struct registries_found *found, const char *path)
{
	static const char *const seen[] = { "/etc/ssl", "/etc/pki", "/usr", NULL };
	static const char *const names[] = { "SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE",
		"NODE_EXTRA_CA_CERTS", "npm_config_cafile", "GIT_SSL_CAINFO", NULL };
	bool is_seen = false;
	for (const char *const *at = seen; path && *at && !is_seen; at++)
		is_seen = path_is_beneath(path, *at);
	for (const char *const *at = names; is_seen && *at; at++)
		add_variable(arena, found, *at, path);
}

static int choose_python(const struct builder *builder, struct arena *arena,
	struct interpreter *python, struct error *err)
{
	const struct env_store *store = builder->store;
	bool is_default;
	if (interpreter_choose(
		    store->home, NULL, store->config.python, arena, python, &is_default, err) == 0)
		return 0;
	if (err->code != ERR_UNAVAILABLE || !builder->runner)
		return -1;
	return interpreter_look(store->home, builder->runner, python, arena, err);
}

/* The hosts of its files: of an index that can't be reached now they stay unknown. */
static int find_files(const struct builder *builder, const struct index_set *indexes,
	const struct interpreter *python, struct arena *arena, file_hosts *hosts, struct error *err)
{
	const struct home *home = builder->store->home;
	const struct build_network *network = builder->network;
	struct index_set known = *indexes;
	text_list secrets = { 0 };
	struct error ignored;
	if (index_file_hosts(home, NULL, indexes, python, NULL, arena, hosts, err) == 0)
		return 0;
	if (!builder->runner)
		return -1;
	if (index_log_in(&known, network->password, network->ctx, arena, &secrets, &ignored) == 0 &&
		network->open(network->ctx, &known, &ignored) == 0) {
		index_file_hosts(
			home, builder->runner, &known, python, NULL, arena, hosts, &ignored);
		network->close(network->ctx);
	}
	return 0;
}

static int find_python(const struct builder *builder, struct arena *arena,
	struct registries_found *found, struct error *err)
{
	const struct env_store *store = builder->store;
	const struct index_asked nothing = { 0 };
	struct interpreter python = { 0 };
	struct index_set indexes;
	file_hosts files = { 0 };
	if (index_find(&nothing, &store->config, arena, &indexes, err) < 0 ||
		choose_python(builder, arena, &python, err) < 0)
		return -1;
	if (!indexes.index && !builder->runner)
		indexes.index = uv_known_index(store->home, &python, arena);
	if (!indexes.index && !builder->runner)
		return fail(err, ERR_NOT_FOUND, "the default index isn't known");
	if (!indexes.index && uv_default_index(store->home, builder->runner, &python, arena,
				      &indexes.index, err) < 0)
		return -1;
	const char *index = take_url(arena, found, indexes.index);
	if (index) {
		add_variable(arena, found, "PIP_INDEX_URL", index);
		add_variable(arena, found, "UV_DEFAULT_INDEX", index);
	}
	const char *extra = "";
	for (size_t i = 0; i < indexes.extra.count; i++) {
		const char *url = take_url(arena, found, indexes.extra.items[i]);
		extra = url ? arena_printf(arena, "%s%s%s", extra, extra[0] ? " " : "", url)
			    : extra;
	}
	if (extra[0]) {
		add_variable(arena, found, "PIP_EXTRA_INDEX_URL", extra);
		add_variable(arena, found, "UV_INDEX", extra);
	}
	add_certificates(arena, found, indexes.certificates);
	if (find_files(builder, &indexes, &python, arena, &files, err) < 0)
		return -1;
	for (size_t i = 0; i < files.count; i++)
		add_host(arena, &found->hosts, str_from(files.items[i].host), files.items[i].port);
	return 0;
}

static int find_node(const struct builder *builder, struct arena *arena,
	struct registries_found *found, struct error *err)
{
	struct npm_registry registry;
	text_list secrets = { 0 };
	if (npm_registry_find(NULL, arena, &registry, &secrets, err) < 0)
		return -1;
	if (!registry.url &&
		npm_registry_ask(builder->store->home, builder->runner, arena, &registry, err) < 0)
		return -1;
	const char *url = take_url(arena, found, registry.url);
	if (url) {
		add_variable(arena, found, "npm_config_registry", url);
		add_variable(arena, found, "BUN_CONFIG_REGISTRY", url);
	}
	return 0;
}

int registries_find(const struct builder *builder, struct arena *arena,
	struct registries_found *found, struct error *err)
{
	struct registries_found all = { 0 };
	struct error other = { 0 };
	int has_no_python = find_python(builder, arena, &all, err);
	int has_no_node = find_node(builder, arena, &all, &other);
	if (!builder->runner && has_no_python)
		return -1;
	/* A host without npm has no registry to allow. */
	if (!builder->runner && has_no_node && other.code == ERR_NOT_FOUND) {
		*err = other;
		return -1;
	}
	if (!all.indexes.count)
		return fail_hint(err, ERR_UNAVAILABLE,
			"name the hosts themselves: --allow-domain HOST",
			"no package index is configured on this host");
	*found = all;
	return 0;
}
