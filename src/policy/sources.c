#include "policy/sources.h"

#include "format/http/uri.h"
#include "format/packages/requirements.h"
#include "model/network/network.h"
#include "policy/reader.h"
#include "policy/sources_internal.h"

static int read_bool(struct reader *r, const struct json_value *v, const char *path, void *out)
{
	if (reader_expect(r, v, JSON_BOOL, path) < 0)
		return -1;
	*(bool *)out = v->boolean;
	return 0;
}

static int read_text(struct reader *r, const struct json_value *v, const char *path, void *out)
{
	if (reader_expect(r, v, JSON_STRING, path) < 0)
		return -1;
	if (!v->string.len || memchr(v->string.data, '\0', v->string.len))
		return reader_fail(r, v, "%s: an empty text", path);
	*(const char **)out = v->string.data;
	return 0;
}

/* A positive number of some unit; 0 would forbid everything, or be taken for "no limit". */
static int read_amount(struct reader *r, const struct json_value *v, const char *path,
	uint64_t unit, uint64_t *out)
{
	if (v->kind != JSON_NUMBER || !v->is_integer || v->integer < 1 ||
		(uint64_t)v->integer > ((uint64_t)1 << 62) / unit)
		return reader_fail(r, v, "%s: a whole number from 1 on expected", path);
	*out = (uint64_t)v->integer * unit;
	return 0;
}

static int read_mebibytes(struct reader *r, const struct json_value *v, const char *path, void *out)
{
	return read_amount(r, v, path, (uint64_t)1 << 20, out);
}

static int read_seconds(struct reader *r, const struct json_value *v, const char *path, void *out)
{
	return read_amount(r, v, path, 1000, out);
}

#define OF_SOURCES(member) offsetof(struct sources, member)
#define OF_MANAGER(member) offsetof(struct sources_manager, member)
#define OF_REGISTRY(member) offsetof(struct sources_registry, member)

char *sources_lower(struct arena *arena, const char *text)
{
	char *copy = arena_text(arena, text);
	for (char *c = copy; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return copy;
}

static int read_list(
	struct reader *r, const struct json_value *v, const char *path, text_list *list)
{
	if (reader_texts(r, v, path, list) < 0)
		return -1;
	return list->count > SOURCES_LIST_MAX
		       ? reader_fail(r, v, "%s: more than %d entries", path, SOURCES_LIST_MAX)
		       : 0;
}

/* -- package managers -- */

static int read_registry_url(
	struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	struct sources_registry *registry = ctx;
	struct url url;
	if (read_text(r, v, path, &registry->url) < 0)
		return -1;
	if (!url_parse(r->arena, registry->url, &url) || url.has_user ||
		(strcmp(url.scheme, "https") != 0 && strcmp(url.scheme, "http") != 0))
		return reader_fail(r, v, "%s: an http or https URL expected", path);
	return 0;
}

static int read_registries(
	struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	static const struct reader_member rows[] = { { "name", read_text, OF_REGISTRY(name) },
		{ "url", read_registry_url }, { "trusted", read_bool, OF_REGISTRY(is_trusted) },
		{ NULL } };
	struct sources_manager *manager = ctx;
	size_t i = 0;
	if (reader_expect(r, v, JSON_ARRAY, path) < 0)
		return -1;
	manager->has_registries = true;
	for (const struct json_value *item = v->first; item; item = item->next, i++) {
		if (i == SOURCES_LIST_MAX)
			return reader_fail(
				r, v, "%s: more than %d entries", path, SOURCES_LIST_MAX);
		struct sources_registry registry = { 0 };
		const char *where = arena_printf(r->arena, "%s[%zu]", path, i);
		if (item->kind == JSON_STRING) { /* the URL alone */
			if (read_registry_url(r, item, where, &registry) < 0)
				return -1;
		} else if (reader_members(r, item, where, rows, &registry) < 0) {
			return -1;
		}
		if (!registry.url)
			return reader_fail(r, item, "%s: no 'url'", where);
		vec_push(r->arena, &manager->registries, registry);
	}
	return 0;
}

static int read_blocked(struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	struct sources_manager *manager = ctx;
	bool is_python = manager_is_python(manager->name);
	text_list names = { 0 };
	if (read_list(r, v, path, &names) < 0)
		return -1;
	if (!manager->blocked.arena)
		map_init(&manager->blocked, r->arena);
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		if (is_python && !requirement_name_is_valid(str_from(name)))
			return reader_fail(r, v, "%s: '%s' is not a name of a package", path, name);
		if (strpbrk(name, " \t@=<>*") &&
			!(name[0] == '@' && !strpbrk(name + 1, " \t@=<>*")))
			return reader_fail(
				r, v, "%s: '%s': a name without a version expected", path, name);
		name = is_python ? requirement_normalize_name(r->arena, str_from(name))
				 : sources_lower(r->arena, name);
		map_set(&manager->blocked, str_from(name), arena_text(r->arena, name));
	}
	return 0;
}

static int read_managers(struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	static const struct reader_member rows[] = {
		{ "enabled", read_bool, OF_MANAGER(is_enabled) }, { "registries", read_registries },
		{ "max_install_size_mb", read_mebibytes, OF_MANAGER(max_install_bytes) },
		{ "blocked_packages", read_blocked }, { NULL }
	};
	struct sources *sources = ctx;
	if (reader_expect(r, v, JSON_OBJECT, path) < 0)
		return -1;
	sources->has_managers = true;
	for (const struct json_value *m = v->first; m; m = m->next) {
		struct sources_manager manager = { .name = m->key.data, .is_enabled = true };
		char key[64];
		if (reader_is_comment(m))
			continue;
		str_printable(key, sizeof key, m->key);
		if (memchr(m->key.data, '\0', m->key.len) || !manager_is_known(m->key.data))
			return reader_fail(r, m, "%s.%s: unknown package manager", path, key);
		if (reader_members(
			    r, m, arena_printf(r->arena, "%s.%s", path, key), rows, &manager) < 0)
			return -1;
		vec_push(r->arena, &sources->managers, manager);
	}
	return 0;
}

/* -- web_access -- */

static int read_domains(struct reader *r, const struct json_value *v, const char *path, void *out)
{
	text_list names = { 0 }, *list = out;
	if (read_list(r, v, path, &names) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		struct str host;
		uint16_t port = 0;
		bool is_domain = strncmp(name, "*.", 2) == 0;
		if (strcmp(name, "*") != 0 &&
			(!uri_parse_host(str_from(name + (is_domain ? 2 : 0)), &host, &port) ||
				!host.len || port))
			return reader_fail(
				r, v, "%s: '%s': host, '*.host' or '*' expected", path, name);
		struct error why;
		if (network_check_entry(NETWORK_DENY, name, &why) < 0)
			return reader_fail(r, v, "%s: %s", path, why.text);
		vec_push(r->arena, list, sources_lower(r->arena, name));
	}
	return 0;
}

static const struct reader_member web_rows[] = { { "enabled", read_bool,
							 OF_SOURCES(web_is_enabled) },
	{ "allowed_domains", read_domains, OF_SOURCES(allowed_domains) },
	{ "blocked_domains", read_domains, OF_SOURCES(blocked_domains) }, { NULL } };

/* Enabled, unless its members say otherwise. */
static int begin_web(struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	struct sources *sources = ctx;
	sources->has_web = sources->web_is_enabled = true;
	return 0;
}

/* -- git -- */

static int read_remotes(struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	struct sources *sources = ctx;
	text_list given = { 0 };
	sources->has_remotes = true;
	if (read_list(r, v, path, &given) < 0)
		return -1;
	for (size_t i = 0; i < given.count; i++) {
		const char *pattern = given.items[i];
		struct url url;
		/* A star before the path would match parts of names: evil-github.com. */
		if (strcmp(pattern, "*") != 0 &&
			(!url_parse(r->arena, pattern, &url) || strchr(url.scheme, '*') ||
				strchr(url.host[0] == '*' && url.host[1] == '.' ? url.host + 2
										: url.host,
					'*')))
			return reader_fail(r, v,
				"%s: '%s': scheme://host/path expected, with '*' "
				"in the path only",
				path, pattern);
		vec_push(r->arena, &sources->allowed_remotes, pattern);
	}
	return 0;
}

static const struct reader_member git_rows[] = {
	{ "enabled", read_bool, OF_SOURCES(git_is_enabled) }, { "allowed_remotes", read_remotes },
	{ "max_clone_size_mb", read_mebibytes, OF_SOURCES(max_clone_bytes) }, { NULL }
};

static int begin_git(struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	struct sources *sources = ctx;
	sources->has_git = sources->git_is_enabled = true;
	return 0;
}

/* -- runtime -- */

static int read_languages(struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	struct sources *sources = ctx;
	sources->has_languages = true;
	if (read_list(r, v, path, &sources->languages) < 0)
		return -1;
	for (size_t i = 0; i < sources->languages.count; i++)
		if (!language_is_known(sources->languages.items[i]))
			return reader_fail(r, v, "%s: unknown language '%s'", path,
				sources->languages.items[i]);
	return 0;
}

static int read_interpreters(
	struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	struct sources *sources = ctx;
	if (reader_expect(r, v, JSON_OBJECT, path) < 0)
		return -1;
	for (const struct json_value *m = v->first; m; m = m->next) {
		char key[64];
		if (reader_is_comment(m))
			continue;
		str_printable(key, sizeof key, m->key);
		if (memchr(m->key.data, '\0', m->key.len) || !language_is_known(m->key.data))
			return reader_fail(r, m, "%s: unknown language '%s'", path, key);
		if (m->kind != JSON_STRING || m->string.data[0] != '/' ||
			memchr(m->string.data, '\0', m->string.len))
			return reader_fail(r, m, "%s.%s: an absolute path expected", path, key);
		vec_push(r->arena, &sources->interpreters,
			(struct text_pair){ m->key.data, m->string.data });
	}
	return 0;
}

static const struct reader_member runtime_rows[] = { { "languages", read_languages },
	{ "interpreters", read_interpreters },
	{ "max_execution_time_seconds", read_seconds, OF_SOURCES(max_execution_ms) },
	{ "max_memory_mb", read_mebibytes, OF_SOURCES(max_memory_bytes) }, { NULL } };

int sources_parse(const char *name, struct str text, struct arena *arena, struct sources *sources,
	struct error *err)
{
	static const struct reader_member rows[] = { { "agent_type", read_text,
							     OF_SOURCES(agent_type) },
		{ "package_managers", read_managers },
		{ "web_access", begin_web, .rows = web_rows },
		{ "git", begin_git, .rows = git_rows }, { "runtime", .rows = runtime_rows },
		{ NULL } };
	struct reader r = { .name = name, .text = text, .arena = arena, .err = err };
	struct sources made = { 0 };
	struct json_value *object;
	if (reader_open(&r, SOURCES_MAX, &object) < 0 ||
		reader_members(&r, object, "", rows, &made) < 0)
		return -1;
	*sources = made;
	return 0;
}
