#include <stdio.h>
#include <string.h>
#include "base/path.h"
#include "format/blob_name.h"
#include "format/inet_address.h"
#include "format/quantity.h"
#include "format/requirements.h"
#include "format/uri.h"
#include "format/yaml.h"
#include "model/address.h"
#include "model/approval.h"
#include "model/config.h"
#include "model/environment.h"
#include "model/network.h"
#include "model/decision.h"
#include "model/token.h"
#include "model/workspace.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define SECOND 1000ull
#define DAY (24 * 3600 * SECOND)
#define CENTURY (36525 * DAY)
#define SECTION "environments"
static const char *const sections[] = { SECTION, "system", "store", "blob", "archives",
	"workspaces", "audit", "access", "serve", "egress", "policy", "approvals", "tools" };

/* A value in the file, and where what it means goes. */
struct place {
	const struct key *key;
	const struct yaml_value *value;
	void *out; /* in struct config */
	struct arena *arena;
	struct error *err;
	const char *map_key; /* is_map: the key above the value */
};
typedef int read_function(const struct place *place, const char *text);

static read_function read_count, read_size, read_duration, read_bool, read_policy, read_date;
static read_function read_python, read_source, read_url, read_host, read_package, read_path,
	read_landlock, read_store, read_blob, read_region, read_archive_format, read_on_full,
	read_user, read_range, read_port, read_address, read_decision, read_listen, read_name,
	read_origin, read_subject, read_word, read_domain;

/* One row a key: a list has its items read one by one. */
static const struct key {
	const char *name; /* "section.key" */
	size_t offset;
	read_function *read;
	bool is_list;
	bool is_map;	      /* its own keys are read one by one, into a pair_list */
	uint64_t least, most; /* of a number; 0 is also allowed where has_none */
	bool has_none;
} keys[] = {
#define AT(field) SECTION "." #field, offsetof(struct config, field)
#define AT_MS(field) SECTION "." #field, offsetof(struct config, field##_ms)
	{ AT(max_envs), read_count, .least = 1, .most = 1000000 },
	{ AT(max_bytes), read_size, .least = MIB, .most = INT64_MAX },
	{ AT_MS(ttl), read_duration, .least = SECOND, .most = CENTURY, .has_none = true },
	{ AT(eviction), read_policy },
	{ AT(min_free_bytes), read_size, .least = 0, .most = INT64_MAX },
	{ AT_MS(install_timeout), read_duration, .least = SECOND, .most = DAY },
	{ AT(max_install_bytes), read_size, .least = MIB, .most = INT64_MAX },
	{ AT(exclude_newer), read_date },
	{ AT(require_hashes), read_bool },
	{ AT(allow_build), read_bool },
	{ AT(allow_scripts), read_bool },
	{ AT(allow_urls), read_bool },
	{ AT(allow_options), read_bool },
	{ AT(allowed_packages), read_package, .is_list = true },
	{ AT(blocked_packages), read_package, .is_list = true },
	{ AT(index), read_url },
	{ AT(extra_indexes), read_url, .is_list = true },
	{ AT(trusted_hosts), read_host, .is_list = true },
	{ AT(file_hosts), read_host, .is_list = true },
	{ AT(python), read_python },
	{ AT(python_mirror), read_source },
	{ AT(python_downloads), read_source },
	{ "system.show", offsetof(struct config, show), read_path, .is_list = true },
	{ "system.landlock", offsetof(struct config, landlock_writes), read_landlock },
	{ "store.url", offsetof(struct config, store_url), read_store },
	{ "workspaces.use_snapshots", offsetof(struct config, use_snapshots), read_bool },
	{ "workspaces.auto_repair", offsetof(struct config, auto_repair), read_bool },
	{ "blob.url", offsetof(struct config, blob_url), read_blob },
	{ "blob.endpoint", offsetof(struct config, blob_endpoint), read_url },
	{ "blob.region", offsetof(struct config, blob_region), read_region },
	{ "blob.path_style", offsetof(struct config, blob_path_style), read_bool },
	{ "blob.timeout", offsetof(struct config, blob_timeout_ms), read_duration, .least = SECOND,
		.most = DAY },
	{ "blob.credentials", offsetof(struct config, blob_credentials), read_path },
	{ "audit.enabled", offsetof(struct config, audit_enabled), read_bool },
	{ "audit.on_full", offsetof(struct config, audit_drops), read_on_full },
	{ "audit.max_file_bytes", offsetof(struct config, audit_max_file_bytes), read_size,
		.least = 4096, .most = INT64_MAX },
	{ "audit.max_bytes", offsetof(struct config, audit_max_bytes), read_size, .least = 8192,
		.most = INT64_MAX },
	{ "egress.hosts", offsetof(struct config, egress.hosts), read_address, .is_map = true },
	{ "egress.allow_ranges", offsetof(struct config, egress.ranges), read_range,
		.is_list = true },
	{ "egress.ports", offsetof(struct config, egress.ports), read_port, .is_list = true },
	{ "egress.bandwidth", offsetof(struct config, egress.bandwidth), read_size, .least = 1024,
		.most = INT64_MAX, .has_none = true },
	{ "egress.connections", offsetof(struct config, egress.connections), read_count, .least = 1,
		.most = 4096 },
	{ "egress.idle_timeout", offsetof(struct config, egress.idle_ms), read_duration,
		.least = SECOND, .most = DAY },
	{ "access.uids", offsetof(struct config, access_uids), read_user, .is_map = true },
	{ "access.subjects", offsetof(struct config, serve.subjects), read_subject,
		.is_map = true },
	{ "serve.listen", offsetof(struct config, listen), read_listen, .is_list = true },
	{ "serve.insecure", offsetof(struct config, insecure), read_bool },
	{ "serve.hosts", offsetof(struct config, serve.hosts), read_name, .is_list = true },
	{ "serve.origins", offsetof(struct config, serve.origins), read_origin, .is_list = true },
	{ "serve.proxies", offsetof(struct config, serve.proxies), read_range, .is_list = true },
	{ "serve.tls_cert", offsetof(struct config, tls_cert), read_path },
	{ "serve.tls_key", offsetof(struct config, tls_key), read_path },
	{ "serve.tls_client_ca", offsetof(struct config, tls_client_ca), read_path },
	{ "serve.connections", offsetof(struct config, serve.connections), read_count, .least = 1,
		.most = 100000 },
	{ "serve.rate", offsetof(struct config, serve.rate), read_count, .least = 1,
		.most = 1000000, .has_none = true },
	{ "approvals.ttl", offsetof(struct config, approval_ttl_ms), read_duration, .least = SECOND,
		.most = 30 * DAY },
	{ "approvals.self", offsetof(struct config, approvals_self), read_bool },
	{ "approvals.webhook", offsetof(struct config, webhook), read_url },
	{ "approvals.webhook_secret_file", offsetof(struct config, webhook_secret_file),
		read_path },
	{ "archives.on_remove", offsetof(struct config, archive_on_remove), read_bool },
	{ "archives.on_expiry", offsetof(struct config, archive_on_expiry), read_bool },
	{ "archives.format", offsetof(struct config, archive_gzip), read_archive_format },
	{ "policy.settings", offsetof(struct config, policy_settings), read_path },
	{ "policy.sources", offsetof(struct config, policy_sources), read_path },
	{ "policy.default", offsetof(struct config, policy_default), read_decision },
	{ "tools.generator", offsetof(struct config, tools.generator), read_word, .is_list = true },
	{ "tools.generator_domains", offsetof(struct config, tools.domains), read_domain,
		.is_list = true },
	{ "tools.generator_timeout", offsetof(struct config, tools.timeout_ms), read_duration,
		.least = SECOND, .most = DAY },
#undef AT
#undef AT_MS
};
#define KEY_COUNT (sizeof keys / sizeof *keys)

const char *config_key(size_t index)
{
	return index < KEY_COUNT ? keys[index].name : NULL;
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
		.tools = { .timeout_ms = TOOL_GENERATOR_TIMEOUT_MS },
	};
	sha256_of("", 0, config->digest);
}

/* -- values: each reads text to place->out, or fails with what is wrong; the caller says where --
 */

/* The number is read; whether it is one that the key allows. */
static int set_number(const struct place *place, const char *text, const char *least,
	const char *most, uint64_t value)
{
	const struct key *key = place->key;

	if ((value < key->least || value > key->most) && !(key->has_none && value == 0))
		return fail(place->err, ERR_INVALID, "'%s' is not from %s to %s%s", text, least,
			most, key->has_none ? ", and not 0 (no limit)" : "");
	*(uint64_t *)place->out = value;
	return 0;
}

static int read_count(const struct place *place, const char *text)
{
	uint64_t value;

	if (place->value->is_quoted)
		return fail(place->err, ERR_INVALID, "'%s' in quotes is not a number", text);
	if (!str_to_u64(str_from(text), &value))
		return fail(place->err, ERR_INVALID, "'%s' is not a number", text);
	char least[24], most[24];
	str_format(least, sizeof least, "%llu", (unsigned long long)place->key->least);
	str_format(most, sizeof most, "%llu", (unsigned long long)place->key->most);
	return set_number(place, text, least, most, value);
}

static int read_size(const struct place *place, const char *text)
{
	char least[16], most[16];
	uint64_t value;

	if (quantity_parse_size(text, &value, place->err) < 0)
		return -1;
	quantity_format_size(least, place->key->least);
	quantity_format_size(most, place->key->most);
	return set_number(place, text, least, most, value);
}

static int read_duration(const struct place *place, const char *text)
{
	char least[24], most[24];
	uint64_t value;

	if (quantity_parse_duration(text, &value, place->err) < 0)
		return -1;
	str_format(least, sizeof least, "%llus", (unsigned long long)(place->key->least / SECOND));
	str_format(most, sizeof most, "%llud", (unsigned long long)(place->key->most / DAY));
	return set_number(place, text, least, most, value);
}

static int read_bool(const struct place *place, const char *text)
{
	bool is_true = strcmp(text, "true") == 0;

	if (place->value->is_quoted || (!is_true && strcmp(text, "false") != 0))
		return fail(place->err, ERR_INVALID, "'%s' is not true or false%s", text,
			place->value->is_quoted ? " (without quotes)" : "");
	*(bool *)place->out = is_true;
	return 0;
}

static int read_policy(const struct place *place, const char *text)
{
	for (enum eviction_policy i = 0; i < EVICT_POLICY_COUNT; i++) {
		if (strcmp(text, eviction_policy_names[i]) == 0) {
			*(enum eviction_policy *)place->out = i;
			return 0;
		}
	}
	return fail(place->err, ERR_INVALID, "'%s' is not lru, lfu or fifo", text);
}

static int set_text(const struct place *place, const char *text)
{
	if (place->key->is_list)
		vec_push(place->arena, (text_list *)place->out, text);
	else
		*(const char **)place->out = text;
	return 0;
}

/* "2026-01-01" or "2026-01-01T00:00:00Z", made whole for the one reader of times. */
static int read_date(const struct place *place, const char *text)
{
	char whole[64];
	size_t len = strlen(text);
	int64_t unix_ms;

	if (len == strlen("2026-01-01"))
		str_format(whole, sizeof whole, "%sT00:00:00.000Z", text);
	else if (len == strlen("2026-01-01T00:00:00Z") && text[len - 1] == 'Z')
		str_format(whole, sizeof whole, "%.*s.000Z", (int)len - 1, text);
	else
		whole[0] = '\0';
	if (!env_time_parse(whole, &unix_ms))
		return fail(place->err, ERR_INVALID,
			"'%s' is not a date; try 2026-01-01 or 2026-01-01T00:00:00Z", text);
	return set_text(place, text);
}

static int read_python(const struct place *place, const char *text)
{
	/* A path, or what an interpreter is called by; never anything like an option. */
	if (text[0] != '/' && !env_name_is_valid(text))
		return fail(place->err, ERR_INVALID,
			"'%s' is not a Python; try \"3.12\" or /usr/bin/python3", text);
	return set_text(place, text);
}

static int read_host(const struct place *place, const char *text)
{
	struct str name;
	uint16_t port;

	if (!uri_parse_host(str_from(text), &name, &port))
		return fail(place->err, ERR_INVALID, "'%s' is not a host or host:port", text);
	return set_text(place, text);
}

static int read_url(const struct place *place, const char *text)
{
	struct uri parts;
	struct str name;
	uint16_t port;

	/* Not repeated in full: it may hold a password. */
	if (!uri_split(text, &parts) || text[strcspn(text, " \n\t\"\\<>")] != '\0' ||
		!(str_is(parts.scheme, "https://") || str_is(parts.scheme, "http://")) ||
		!uri_parse_host(parts.host, &name, &port))
		return fail(place->err, ERR_INVALID, "not an http:// or https:// URL");
	return set_text(place, text);
}

static int read_source(const struct place *place, const char *text)
{
	if (strncmp(text, "file:///", 8) != 0)
		return read_url(place, text);
	return set_text(place, text);
}

static int read_package(const struct place *place, const char *text)
{
	struct str name = str_from(text);

	if (!requirement_name_is_valid(name))
		return fail(place->err, ERR_INVALID, "'%s' is not a package name", text);
	return set_text(place, requirement_normalize_name(place->arena, name));
}

static int read_path(const struct place *place, const char *text)
{
	if (!path_is_normal(text) || strpbrk(text, "\n\t"))
		return fail(place->err, ERR_INVALID, "'%s' is not an absolute, plain path", text);
	return set_text(place, text);
}

static int read_landlock(const struct place *place, const char *text)
{
	bool is_writes = strcmp(text, "writes") == 0;
	if (!is_writes && strcmp(text, "all") != 0)
		return fail(place->err, ERR_INVALID, "'%s' is not all or writes", text);
	*(bool *)place->out = is_writes;
	return 0;
}

/* Which schemes there are is known to the store. */
static int read_store(const struct place *place, const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	size_t len = strspn(text, letters);
	if (!len || text[len] != ':' || strpbrk(text, " \n\t"))
		return fail(place->err, ERR_INVALID, "not a URL; try sqlite:carrel.db");
	return set_text(place, text);
}

static int read_blob(const struct place *place, const char *text)
{
	struct blob_url url;
	if (blob_url_parse(text, place->arena, &url, place->err))
		return -1;
	return set_text(place, text);
}

static int read_archive_format(const struct place *place, const char *text)
{
	bool is_gzip = strcmp(text, "tar.gz") == 0;
	if (!is_gzip && strcmp(text, "tar.zst") != 0)
		return fail(place->err, ERR_INVALID, "'%s' is not tar.zst or tar.gz", text);
	*(bool *)place->out = is_gzip;
	return 0;
}

static int read_on_full(const struct place *place, const char *text)
{
	bool is_drop = strcmp(text, "drop") == 0;
	if (!is_drop && strcmp(text, "refuse") != 0)
		return fail(place->err, ERR_INVALID, "'%s' is not refuse or drop", text);
	*(bool *)place->out = is_drop;
	return 0;
}

static int read_decision(const struct place *place, const char *text)
{
	enum policy_decision decision;

	if (!policy_decision_from_name(text, &decision))
		return fail(place->err, ERR_INVALID, "'%s' is not ask, deny or allow", text);
	return set_text(place, text);
}

/* Of a command. */
static int read_word(const struct place *place, const char *text)
{
	const text_list *words = place->out;
	if (!text[0] && !words->count)
		return fail(place->err, ERR_INVALID, "the name of the program is empty");
	return set_text(place, text);
}

static int read_domain(const struct place *place, const char *text)
{
	if (workspace_check_allow(text, place->err))
		return -1;
	return set_text(place, text);
}

/* It becomes part of a host's name. */
static int read_region(const struct place *place, const char *text)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t len = strlen(text);
	if (!len || len > 63 || strspn(text, allowed) != len)
		return fail(place->err, ERR_INVALID, "'%s' is not a region; try us-east-1", text);
	return set_text(place, text);
}

/* A name of a local user, or a uid, and what it may do. */
static int read_range(const struct place *place, const char *text)
{
	struct address_range range;
	if (address_range_parse(str_from(text), &range, place->err))
		return -1;
	return set_text(place, text);
}

static int read_port(const struct place *place, const char *text)
{
	const text_list *ports = place->out;
	uint16_t port;
	if (place->value->is_quoted || !network_settings_port(text, &port))
		return fail(place->err, ERR_INVALID, "'%s' is not a port", text);
	if (ports->count == NETWORK_SETTINGS_PORTS_MAX)
		return fail(
			place->err, ERR_INVALID, "more than %d ports", NETWORK_SETTINGS_PORTS_MAX);
	return set_text(place, text);
}

/* Of the host that is the key. */
static int read_address(const struct place *place, const char *text)
{
	char host[NETWORK_HOST_SIZE], address[NETWORK_HOST_SIZE];
	if (network_normalize(str_from(place->map_key), host, place->err))
		return -1;
	if (network_host_is_address(host) ||
		network_normalize(str_from(text), address, place->err) ||
		!network_host_is_address(address))
		return fail(place->err, ERR_INVALID, "'%s: %s' is not a name and its address",
			place->map_key, text);
	vec_push(place->arena, (pair_list *)place->out,
		(struct text_pair){
			arena_text(place->arena, host), arena_text(place->arena, address) });
	return 0;
}

static int read_user(const struct place *place, const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.-";
	const char *user = place->value->key;
	size_t len = strlen(user);
	bool is_known = strcmp(text, "none") == 0;
	if (!len || len > 32 || strspn(user, letters) != len || user[0] == '-')
		return fail(place->err, ERR_INVALID, "'%s' is not a user or uid", user);
	for (size_t i = 0; i < TOKEN_SCOPE_COUNT; i++)
		is_known |= strcmp(text, token_scope_names[i]) == 0;
	if (!is_known)
		return fail(
			place->err, ERR_INVALID, "'%s' is not admin, user, reviewer or none", text);
	vec_push(place->arena, (pair_list *)place->out, (struct text_pair){ user, text });
	return 0;
}

static int read_listen(const struct place *place, const char *text)
{
	union inet_address address;
	bool is_path = !strncmp(text, "unix:/", 6) && path_is_normal(text + 5);
	if (!is_path && !inet_address_parse(str_from(text), &address))
		return fail(
			place->err, ERR_INVALID, "'%s' is not unix:/PATH or ADDRESS:PORT", text);
	return set_text(place, text);
}

/* Of a host, without a port: a client may reach it through another one. */
static int read_name(const struct place *place, const char *text)
{
	struct str name;
	uint16_t port;
	if (!uri_parse_host(str_from(text), &name, &port) || port)
		return fail(place->err, ERR_INVALID, "'%s' is not the name of a host", text);
	return set_text(place, text);
}

static int read_origin(const struct place *place, const char *text)
{
	if (!serve_origin_is_valid(text))
		return fail(place->err, ERR_INVALID,
			"'%s' is not an origin; try https://app.example", text);
	return set_text(place, text);
}

static int read_subject(const struct place *place, const char *text)
{
	const char *subject = place->value->key;
	bool is_known = false;
	size_t len = strlen(subject);
	if (!len || len > SERVE_SUBJECT_MAX || strpbrk(subject, "\n\t"))
		return fail(place->err, ERR_INVALID,
			"a subject has 1 to %d characters, as CN=ci,O=Lab", SERVE_SUBJECT_MAX);
	for (size_t i = 0; i < TOKEN_SCOPE_COUNT; i++)
		is_known |= strcmp(text, token_scope_names[i]) == 0;
	if (!is_known)
		return fail(place->err, ERR_INVALID, "'%s' is not admin, user or reviewer", text);
	vec_push(place->arena, (pair_list *)place->out, (struct text_pair){ subject, text });
	return 0;
}

/* -- keys -- */

static const char *key_own_name(const struct key *key)
{
	return strchr(key->name, '.') + 1;
}

static bool is_in_section(const struct key *key, const char *section)
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

static int read_items(const struct place *place, int *line)
{
	for (const struct yaml_value *item = place->value->first; item; item = item->next) {
		struct place one = *place;

		one.value = item;
		*line = item->line;
		if (item->kind == YAML_NULL)
			return fail(place->err, ERR_INVALID, "an item is null");
		if (place->key->read(&one, item->text) < 0)
			return -1;
	}
	return 0;
}

static int read_map(const struct place *place, int *line)
{
	if (place->value->kind != YAML_MAP)
		return fail(place->err, ERR_INVALID, "keys are expected below it");
	*(pair_list *)place->out = (pair_list){ 0 };
	for (const struct yaml_value *item = place->value->first; item; item = item->next) {
		struct place one = *place;

		one.value = item;
		one.map_key = item->key;
		*line = item->line;
		if (item->kind == YAML_LIST && place->key->read == read_address) {
			if (read_items(&one, line) < 0)
				return -1;
			continue;
		}
		if (item->kind != YAML_SCALAR)
			return fail(place->err, ERR_INVALID, "%s: a value is expected", item->key);
		if (place->key->read(&one, item->text) < 0)
			return -1;
	}
	return 0;
}

/* *line is moved to the item that is wrong. */
static int read_value(const struct place *place, int *line)
{
	const struct key *key = place->key;
	const struct yaml_value *v = place->value;

	if (key->is_map)
		return read_map(place, line);
	if (v->kind == YAML_MAP)
		return fail(place->err, ERR_INVALID, "has keys below it, but a %s is expected",
			key->is_list ? "list" : "value");
	if (!key->is_list) {
		if (v->kind == YAML_LIST)
			return fail(place->err, ERR_INVALID, "is a list, but a value is expected");
		return key->read(place, v->text);
	}
	if (v->kind != YAML_LIST)
		return fail(
			place->err, ERR_INVALID, "'%s' is not a list; try [%s]", v->text, v->text);
	/* What the file says is instead of the default. */
	*(text_list *)place->out = (text_list){ 0 };
	return read_items(place, line);
}

static const struct key *find_key(const char *section, const char *name)
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
		const struct key *key = find_key(section->key, v->key);

		str_format(path, sizeof path, "%s.%s", section->key, v->key);
		if (!key)
			return fail_unknown(err, v, path);
		if (v->kind == YAML_NULL)
			continue;
		struct place place = { key, v, (char *)config + key->offset, arena, err, NULL };
		int line = v->line;
		if (read_value(&place, &line) < 0)
			return error_context(err, "line %d: %s", line, path);
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
