#include "format/text/yaml.h"
#include "model/nouns/approval.h"
#include "model/settings/config_internal.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define SECOND 1000ull
#define DAY (24 * 3600 * SECOND)
#define CENTURY (36525 * DAY)
#define SECTION "environments"
static const char *const sections[] = { SECTION, "system", "store", "blob", "archives",
	"workspaces", "audit", "access", "serve", "egress", "policy", "approvals", "tools" };

/* One row a key: a list has its items read one by one. */
static const struct config_key keys[] = {
#define AT(field) SECTION "." #field, offsetof(struct config, field)
#define AT_MS(field) SECTION "." #field, offsetof(struct config, field##_ms)
#define KEY(name, field) name, offsetof(struct config, field)
	{ AT(max_envs), &config_count, .least = 1, .most = 1000000 },
	{ AT(max_bytes), &config_size, .least = MIB, .most = INT64_MAX },
	{ AT_MS(ttl), &config_duration, .least = SECOND, .most = CENTURY, .has_none = true },
	{ AT(eviction), &config_policy },
	{ AT(min_free_bytes), &config_size, .least = 0, .most = INT64_MAX },
	{ AT_MS(install_timeout), &config_duration, .least = SECOND, .most = DAY },
	{ AT(max_install_bytes), &config_size, .least = MIB, .most = INT64_MAX },
	{ AT(exclude_newer), &config_date },
	{ AT(require_hashes), &config_bool },
	{ AT(allow_build), &config_bool },
	{ AT(allow_scripts), &config_bool },
	{ AT(allow_urls), &config_bool },
	{ AT(allow_options), &config_bool },
	{ AT(allowed_packages), &config_package, .is_list = true },
	{ AT(blocked_packages), &config_package, .is_list = true },
	{ AT(index), &config_url },
	{ AT(extra_indexes), &config_url, .is_list = true },
	{ AT(trusted_hosts), &config_host, .is_list = true },
	{ AT(file_hosts), &config_host, .is_list = true },
	{ AT(python), &config_python },
	{ AT(python_mirror), &config_source },
	{ AT(python_downloads), &config_source },
	{ KEY("system.show", show), &config_path, .is_list = true },
	{ KEY("system.landlock", landlock_writes), &config_landlock },
	{ KEY("store.url", store_url), &config_store },
	{ KEY("workspaces.use_snapshots", use_snapshots), &config_bool },
	{ KEY("workspaces.auto_repair", auto_repair), &config_bool },
	{ KEY("blob.url", blob_url), &config_blob },
	{ KEY("blob.endpoint", blob_endpoint), &config_url },
	{ KEY("blob.region", blob_region), &config_region },
	{ KEY("blob.path_style", blob_path_style), &config_bool },
	{ KEY("blob.timeout", blob_timeout_ms), &config_duration, .least = SECOND, .most = DAY },
	{ KEY("blob.credentials", blob_credentials), &config_path },
	{ KEY("audit.enabled", audit_enabled), &config_bool },
	{ KEY("audit.on_full", audit_drops), &config_on_full },
	{ KEY("audit.max_file_bytes", audit_max_file_bytes), &config_size, .least = 4096,
		.most = INT64_MAX },
	{ KEY("audit.max_bytes", audit_max_bytes), &config_size, .least = 8192, .most = INT64_MAX },
	{ KEY("egress.hosts", egress.hosts), &config_address, .is_map = true },
	{ KEY("egress.allow_ranges", egress.ranges), &config_range, .is_list = true },
	{ KEY("egress.ports", egress.ports), &config_port, .is_list = true },
	{ KEY("egress.bandwidth", egress.bandwidth), &config_size, .least = 1024, .most = INT64_MAX,
		.has_none = true },
	{ KEY("egress.connections", egress.connections), &config_count, .least = 1, .most = 4096 },
	{ KEY("egress.idle_timeout", egress.idle_ms), &config_duration, .least = SECOND,
		.most = DAY },
	{ KEY("access.uids", access_uids), &config_user, .is_map = true },
	{ KEY("access.subjects", serve.subjects), &config_subject, .is_map = true },
	{ KEY("serve.listen", listen), &config_listen, .is_list = true },
	{ KEY("serve.insecure", insecure), &config_bool },
	{ KEY("serve.hosts", serve.hosts), &config_name, .is_list = true },
	{ KEY("serve.origins", serve.origins), &config_origin, .is_list = true },
	{ KEY("serve.proxies", serve.proxies), &config_range, .is_list = true },
	{ KEY("serve.tls_cert", tls_cert), &config_path },
	{ KEY("serve.tls_key", tls_key), &config_path },
	{ KEY("serve.tls_client_ca", tls_client_ca), &config_path },
	{ KEY("serve.connections", serve.connections), &config_count, .least = 1, .most = 100000 },
	{ KEY("serve.rate", serve.rate), &config_count, .least = 1, .most = 1000000,
		.has_none = true },
	{ KEY("serve.idle_sandbox", idle_sandbox_ms), &config_duration, .least = 100, .most = DAY },
	{ KEY("serve.captured_output", captured_bytes), &config_size, .least = MIB,
		.most = INT64_MAX },
	{ KEY("serve.log", log_format), &config_log },
	{ KEY("serve.log_level", log_level), &config_log_level },
	{ KEY("approvals.ttl", approval_ttl_ms), &config_duration, .least = SECOND,
		.most = 30 * DAY },
	{ KEY("approvals.self", approvals_self), &config_bool },
	{ KEY("approvals.webhook", webhook), &config_url },
	{ KEY("approvals.webhook_secret_file", webhook_secret_file), &config_path },
	{ KEY("archives.on_remove", archive_on_remove), &config_bool },
	{ KEY("archives.on_expiry", archive_on_expiry), &config_bool },
	{ KEY("archives.format", archive_gzip), &config_archive_format },
	{ KEY("policy.settings", policy_settings), &config_path },
	{ KEY("policy.sources", policy_sources), &config_path },
	{ KEY("policy.default", policy_default), &config_decision },
	{ KEY("tools.generator", tools.generator), &config_word, .is_list = true },
	{ KEY("tools.generator_domains", tools.domains), &config_domain, .is_list = true },
	{ KEY("tools.generator_timeout", tools.timeout_ms), &config_duration, .least = SECOND,
		.most = DAY },
#undef AT
#undef AT_MS
#undef KEY
};
#define KEY_COUNT (sizeof keys / sizeof *keys)

const char *config_key(size_t index)
{
	return index < KEY_COUNT ? keys[index].name : NULL;
}

struct config_from config_from(const struct config *config, size_t index)
{
	return config->from ? config->from[index] : (struct config_from){ 0 };
}

void config_override(
	struct config *config, const char *name, const char *option, struct arena *arena)
{
	if (!config->from)
		config->from = arena_array(arena, KEY_COUNT, sizeof *config->from);
	for (size_t i = 0; i < KEY_COUNT; i++)
		if (!strcmp(keys[i].name, name))
			config->from[i] = (struct config_from){ .option = option };
}

static void print_list(struct json *j, const text_list *list)
{
	json_texts(j, "value", list);
}

/* A key that has several values is there once, with a list of them, as in the file. */
static void print_map(struct json *j, const pair_list *pairs)
{
	json_object(j, "value");
	for (size_t i = 0; i < pairs->count; i++) {
		const char *key = pairs->items[i].key;
		size_t count = 0, before = 0;
		for (size_t k = 0; k < pairs->count; k++) {
			bool is_same = !strcmp(pairs->items[k].key, key);
			count += is_same;
			before += is_same && k < i;
		}
		if (before)
			continue;
		if (count == 1) {
			json_text(j, key, pairs->items[i].value);
			continue;
		}
		json_array(j, key);
		for (size_t k = i; k < pairs->count; k++)
			if (!strcmp(pairs->items[k].key, key))
				json_text(j, NULL, pairs->items[k].value);
		json_end(j);
	}
	json_end(j);
}

void config_print_value(struct json *j, const struct config *config, size_t index)
{
	const struct config_key *key = &keys[index];
	const void *at = (const char *)config + key->offset;
	if (key->is_map)
		print_map(j, at);
	else if (key->is_list)
		print_list(j, at);
	else
		key->kind->print(j, key->kind, at);
}

void config_defaults(struct config *config)
{
	/* The first seed's list. Never written: a list that grows moves to an arena. */
	static const char *blocked[] = { "os-sys", "setup-tools-rust" };
	*config = (struct config){
		.max_envs = 50,
		.max_bytes = 10 * GIB,
		.ttl_ms = 0,
		.eviction = EVICT_LRU,
		.min_free_bytes = 500 * MIB,
		.install_timeout_ms = 300 * SECOND,
		.max_install_bytes = 12 * GIB,
		.blocked_packages = { blocked, 2, 2 },
		.store_url = "sqlite:carrel.db",
		.use_snapshots = true,
		.auto_repair = true,
		.blob_url = "dir",
		.blob_timeout_ms = 60 * SECOND,
		.audit_enabled = true,
		.audit_max_file_bytes = 64 * MIB,
		.audit_max_bytes = GIB,
		.approval_ttl_ms = APPROVAL_TTL_DEFAULT_MS,
		.serve = { .connections = SERVE_CONNECTIONS_DEFAULT },
		.idle_sandbox_ms = 300 * SECOND,
		.captured_bytes = 128 * MIB,
		.log_format = "text",
		.log_level = "info",
		.tools = { .timeout_ms = TOOL_GENERATOR_TIMEOUT_MS },
	};
	sha256_of("", 0, config->digest);
}

/* -- keys -- */

static const char *key_own_name(const struct config_key *key)
{
	return strchr(key->name, '.') + 1;
}

static bool is_in_section(const struct config_key *key, const char *section)
{
	size_t len = strlen(section);
	return !strncmp(key->name, section, len) && key->name[len] == '.';
}

/* `path` as it stands in the file; the hint is the key whose own name is nearest, if any is near.
 */
static int fail_unknown(struct error *err, const struct yaml_value *v, const char *path)
{
	const char *nearest = NULL;
	size_t least = SIZE_MAX;
	for (size_t i = 0; i < KEY_COUNT; i++) {
		if (str_is_nearer(v->key, key_own_name(&keys[i]), &least))
			nearest = keys[i].name;
	}
	for (size_t i = 0; !strcmp(path, v->key) && i < sizeof sections / sizeof *sections; i++)
		if (str_is_nearer(v->key, sections[i], &least))
			nearest = sections[i];
	fail(err, ERR_INVALID, "line %d: %s: unknown key", v->line, path);
	return nearest ? error_hint(err, "did you mean %s?", nearest)
		       : error_hint(err, "carrel-config(5) lists the keys");
}

static int read_items(const struct config_place *place, int *line)
{
	for (const struct yaml_value *item = place->value->first; item; item = item->next) {
		struct config_place one = *place;
		one.value = item;
		*line = item->line;
		if (item->kind == YAML_NULL)
			return fail(place->err, ERR_INVALID, "an item is null");
		if (place->key->kind->read(&one, item->text) < 0)
			return -1;
	}
	return 0;
}

static int read_map(const struct config_place *place, int *line)
{
	if (place->value->kind != YAML_MAP)
		return fail(place->err, ERR_INVALID, "keys are expected below it");
	*(pair_list *)place->out = (pair_list){ 0 };
	for (const struct yaml_value *item = place->value->first; item; item = item->next) {
		struct config_place one = *place;
		one.value = item;
		one.map_key = item->key;
		*line = item->line;
		if (item->kind == YAML_LIST && place->key->kind == &config_address) {
			if (read_items(&one, line) < 0)
				return -1;
			continue;
		}
		if (item->kind != YAML_SCALAR)
			return fail(place->err, ERR_INVALID, "%s: a value is expected", item->key);
		if (place->key->kind->read(&one, item->text) < 0)
			return -1;
	}
	return 0;
}

/* *line is moved to the item that is wrong. */
static int read_value(const struct config_place *place, int *line)
{
	const struct config_key *key = place->key;
	const struct yaml_value *v = place->value;
	if (key->is_map)
		return read_map(place, line);
	if (v->kind == YAML_MAP)
		return fail(place->err, ERR_INVALID, "has keys below it, but a %s is expected",
			key->is_list ? "list" : "value");
	if (!key->is_list) {
		if (v->kind == YAML_LIST)
			return fail(place->err, ERR_INVALID, "is a list, but a value is expected");
		return key->kind->read(place, v->text);
	}
	if (v->kind != YAML_LIST)
		return fail(
			place->err, ERR_INVALID, "'%s' is not a list; try [%s]", v->text, v->text);
	/* What the file says is instead of the default. */
	*(text_list *)place->out = (text_list){ 0 };
	return read_items(place, line);
}

static const struct config_key *find_key(const char *section, const char *name)
{
	for (size_t i = 0; i < KEY_COUNT; i++)
		if (is_in_section(&keys[i], section) && !strcmp(key_own_name(&keys[i]), name))
			return &keys[i];
	return NULL;
}

static bool is_section(const char *name)
{
	for (size_t i = 0; i < KEY_COUNT; i++)
		if (is_in_section(&keys[i], name))
			return true;
	return false;
}

static int read_section(const struct yaml_value *section, struct arena *arena,
	struct config *config, struct error *err)
{
	for (const struct yaml_value *v = section->first; v; v = v->next) {
		char path[2 * YAML_KEY_MAX + 2];
		const struct config_key *key = find_key(section->key, v->key);
		str_format(path, sizeof path, "%s.%s", section->key, v->key);
		if (!key)
			return fail_unknown(err, v, path);
		if (v->kind == YAML_NULL)
			continue;
		struct config_place place = { key, v, (char *)config + key->offset, arena, err,
			NULL };
		int line = v->line;
		if (read_value(&place, &line) < 0)
			return error_context(err, "line %d: %s", line, path);
		config->from[key - keys].line = v->line;
	}
	return 0;
}

int config_parse(struct str text, struct arena *arena, struct config *config, struct error *err)
{
	struct yaml_value *root;
	struct config result;
	if (yaml_read(text, arena, &root, err) < 0)
		return -1;
	config_defaults(&result);
	result.from = arena_array(arena, KEY_COUNT, sizeof *result.from);
	if (root->kind == YAML_LIST)
		return fail(err, ERR_INVALID, "line %d: a list, where '" SECTION ":' is expected",
			root->line);
	for (const struct yaml_value *v = root->first; v; v = v->next) {
		if (!is_section(v->key))
			return fail_unknown(err, v, v->key);
		if (v->kind != YAML_MAP && v->kind != YAML_NULL)
			return fail(err, ERR_INVALID, "line %d: %s: keys are expected below it",
				v->line, v->key);
		if (read_section(v, arena, &result, err) < 0)
			return -1;
	}
	sha256_of(text.data, text.len, result.digest);
	if (result.webhook && !result.webhook_secret_file)
		return fail_hint(err, ERR_INVALID,
			"approvals.webhook_secret_file: /PATH, a file of 16 bytes or more",
			"approvals.webhook: its calls are signed, and no key is given");
	*config = result;
	return 0;
}
