/* Values of config.yaml: each kind is read from the file, and shown as the file could have it. */
#include "base/log.h"
#include "base/path.h"
#include "format/http/blob_name.h"
#include "format/http/uri.h"
#include "format/network/inet_address.h"
#include "format/packages/requirements.h"
#include "format/text/quantity.h"
#include "model/network/address.h"
#include "model/network/network.h"
#include "model/nouns/environment.h"
#include "model/nouns/token.h"
#include "model/nouns/workspace.h"
#include "model/settings/config_internal.h"

/* ---- amounts ---- */

struct unit {
	const char *name;
	uint64_t value;
};
/* From the largest, ended by one of value 1. */
static const struct unit sizes[] = { { "T", 1ull << 40 }, { "G", 1ull << 30 }, { "M", 1ull << 20 },
	{ "K", 1ull << 10 }, { "", 1 } };
static const struct unit times[] = { { "d", 24 * 3600000 }, { "h", 3600000 }, { "m", 60000 },
	{ "s", 1000 }, { "ms", 1 } };

/* Exactly, so that it is read again as it is: "1536M", "90s". */
static void print_amount(char *out, size_t size, const struct unit *units, uint64_t amount)
{
	while (amount && amount % units->value)
		units++;
	if (amount)
		str_format(out, size, "%llu%s", (unsigned long long)(amount / units->value),
			units->name);
	else
		str_copy(out, size, "0");
}

/* ---- reading ---- */

/* The number is read; whether it is one that the key allows. */
static int set_number(const struct config_place *place, const char *text, const char *least,
	const char *most, uint64_t value)
{
	const struct config_key *key = place->key;
	if ((value < key->least || value > key->most) && !(key->has_none && value == 0))
		return fail(place->err, ERR_INVALID, "'%s' is not from %s to %s%s", text, least,
			most, key->has_none ? ", and not 0 (no limit)" : "");
	*(uint64_t *)place->out = value;
	return 0;
}

static int read_count(const struct config_place *place, const char *text)
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

static int read_size(const struct config_place *place, const char *text)
{
	char least[16], most[16];
	uint64_t value;
	if (quantity_parse_size(text, &value, place->err) < 0)
		return -1;
	quantity_format_size(least, place->key->least);
	quantity_format_size(most, place->key->most);
	return set_number(place, text, least, most, value);
}

static int read_duration(const struct config_place *place, const char *text)
{
	char least[24], most[24];
	uint64_t value;
	if (quantity_parse_duration(text, &value, place->err) < 0)
		return -1;
	print_amount(least, sizeof least, times, place->key->least);
	print_amount(most, sizeof most, times, place->key->most);
	return set_number(place, text, least, most, value);
}

static int read_bool(const struct config_place *place, const char *text)
{
	bool is_true = strcmp(text, "true") == 0;
	if (place->value->is_quoted || (!is_true && strcmp(text, "false") != 0))
		return fail(place->err, ERR_INVALID, "'%s' is not true or false%s", text,
			place->value->is_quoted ? " (without quotes)" : "");
	*(bool *)place->out = is_true;
	return 0;
}

static int set_text(const struct config_place *place, const char *text)
{
	if (place->key->is_list)
		vec_push(place->arena, (text_list *)place->out, text);
	else
		*(const char **)place->out = text;
	return 0;
}

/* "2026-01-01" or "2026-01-01T00:00:00Z", made whole for the one reader of times. */
static int read_date(const struct config_place *place, const char *text)
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

static int read_python(const struct config_place *place, const char *text)
{
	/* A path, or what an interpreter is called by; never anything like an option. */
	if (text[0] != '/' && !env_name_is_valid(text))
		return fail(place->err, ERR_INVALID,
			"'%s' is not a Python; try \"3.12\" or /usr/bin/python3", text);
	return set_text(place, text);
}

static int read_host(const struct config_place *place, const char *text)
{
	struct str name;
	uint16_t port;
	if (!uri_parse_host(str_from(text), &name, &port))
		return fail(place->err, ERR_INVALID, "'%s' is not a host or host:port", text);
	return set_text(place, text);
}

static int read_url(const struct config_place *place, const char *text)
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

static int read_source(const struct config_place *place, const char *text)
{
	if (strncmp(text, "file:///", 8) != 0)
		return read_url(place, text);
	return set_text(place, text);
}

static int read_package(const struct config_place *place, const char *text)
{
	struct str name = str_from(text);
	if (!requirement_name_is_valid(name))
		return fail(place->err, ERR_INVALID, "'%s' is not a package name", text);
	return set_text(place, requirement_normalize_name(place->arena, name));
}

static int read_path(const struct config_place *place, const char *text)
{
	if (!path_is_normal(text) || strpbrk(text, "\n\t"))
		return fail(place->err, ERR_INVALID, "'%s' is not an absolute, plain path", text);
	return set_text(place, text);
}

/* Which schemes there are is known to the store. */
static int read_store(const struct config_place *place, const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	size_t len = strspn(text, letters);
	if (!len || text[len] != ':' || strpbrk(text, " \n\t"))
		return fail(place->err, ERR_INVALID, "not a URL; try sqlite:carrel.db");
	return set_text(place, text);
}

static int read_blob(const struct config_place *place, const char *text)
{
	struct blob_url url;
	if (blob_url_parse(text, place->arena, &url, place->err))
		return -1;
	return set_text(place, text);
}

/* Of a command. */
static int read_word(const struct config_place *place, const char *text)
{
	const text_list *words = place->out;
	if (!text[0] && !words->count)
		return fail(place->err, ERR_INVALID, "the name of the program is empty");
	return set_text(place, text);
}

static int read_domain(const struct config_place *place, const char *text)
{
	if (workspace_check_allow(text, place->err))
		return -1;
	return set_text(place, text);
}

/* It becomes part of a host's name. */
static int read_region(const struct config_place *place, const char *text)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t len = strlen(text);
	if (!len || len > 63 || strspn(text, allowed) != len)
		return fail(place->err, ERR_INVALID, "'%s' is not a region; try us-east-1", text);
	return set_text(place, text);
}

/* A name of a local user, or a uid, and what it may do. */
static int read_range(const struct config_place *place, const char *text)
{
	struct address_range range;
	if (address_range_parse(str_from(text), &range, place->err))
		return -1;
	return set_text(place, text);
}

static int read_port(const struct config_place *place, const char *text)
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
static int read_address(const struct config_place *place, const char *text)
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

static int read_user(const struct config_place *place, const char *text)
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

static int read_listen(const struct config_place *place, const char *text)
{
	union inet_address address;
	bool is_path = !strncmp(text, "unix:/", 6) && path_is_normal(text + 5);
	if (!is_path && !inet_address_parse(str_from(text), &address))
		return fail(
			place->err, ERR_INVALID, "'%s' is not unix:/PATH or ADDRESS:PORT", text);
	return set_text(place, text);
}

/* Of a host, without a port: a client may reach it through another one. */
static int read_name(const struct config_place *place, const char *text)
{
	struct str name;
	uint16_t port;
	if (!uri_parse_host(str_from(text), &name, &port) || port)
		return fail(place->err, ERR_INVALID, "'%s' is not the name of a host", text);
	return set_text(place, text);
}

static int read_origin(const struct config_place *place, const char *text)
{
	if (!serve_origin_is_valid(text))
		return fail(place->err, ERR_INVALID,
			"'%s' is not an origin; try https://app.example", text);
	return set_text(place, text);
}

static int read_subject(const struct config_place *place, const char *text)
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

static int find_word(const struct config_place *place, const char *text, int *index)
{
	const char *const *words = place->key->kind->words;
	auto_buf struct buf list = buf_empty(256);
	for (*index = 0; words[*index]; ++*index)
		if (!strcmp(words[*index], text))
			return 0;
	for (size_t i = 0; words[i]; i++)
		buf_printf(&list, "%s%s", !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
	return fail(place->err, ERR_INVALID, "'%s' is not %s", text, list.data);
}

static int read_one_of(const struct config_place *place, const char *text)
{
	int index;
	return find_word(place, text, &index) ? -1 : set_text(place, text);
}

/* The second of two words is true. */
static int read_second(const struct config_place *place, const char *text)
{
	int index;
	if (find_word(place, text, &index))
		return -1;
	*(bool *)place->out = index;
	return 0;
}

static int read_number(const struct config_place *place, const char *text)
{
	int index;
	if (find_word(place, text, &index))
		return -1;
	*(int *)place->out = index;
	return 0;
}

/* ---- showing ---- */

static void show_count(struct json *j, const struct config_kind *kind, const void *at)
{
	json_u64(j, "value", *(const uint64_t *)at);
}

static void show_size(struct json *j, const struct config_kind *kind, const void *at)
{
	char text[32];
	print_amount(text, sizeof text, sizes, *(const uint64_t *)at);
	json_text(j, "value", text);
}

static void show_duration(struct json *j, const struct config_kind *kind, const void *at)
{
	char text[32];
	print_amount(text, sizeof text, times, *(const uint64_t *)at);
	json_text(j, "value", text);
}

static void show_bool(struct json *j, const struct config_kind *kind, const void *at)
{
	json_bool(j, "value", *(const bool *)at);
}

static void show_text(struct json *j, const struct config_kind *kind, const void *at)
{
	json_text(j, "value", *(const char *const *)at);
}

/* Without the name and the password that it may hold. */
static void show_url(struct json *j, const struct config_kind *kind, const void *at)
{
	const char *text = *(const char *const *)at;
	auto_buf struct buf shown = buf_empty(BUF_MAX_DEFAULT);
	struct uri parts;
	if (text && uri_split(text, &parts) && parts.user.len) {
		const char *rest = parts.user.data + parts.user.len;
		buf_printf(&shown, "%.*s***%s", (int)(parts.user.data - text), text, rest);
		text = shown.data;
	}
	json_text(j, "value", text);
}

static void show_second(struct json *j, const struct config_kind *kind, const void *at)
{
	json_text(j, "value", kind->words[*(const bool *)at]);
}

static void show_number(struct json *j, const struct config_kind *kind, const void *at)
{
	json_text(j, "value", kind->words[*(const int *)at]);
}

/* ---- both ---- */

#define KIND(name, show) const struct config_kind config_##name = { read_##name, show }
KIND(count, show_count);
KIND(size, show_size);
KIND(duration, show_duration);
KIND(bool, show_bool);
KIND(date, show_text);
KIND(python, show_text);
KIND(source, show_url);
KIND(url, show_url);
KIND(host, NULL);
KIND(package, NULL);
KIND(path, show_text);
KIND(store, show_url);
KIND(blob, show_text);
KIND(region, show_text);
KIND(user, NULL);
KIND(range, NULL);
KIND(port, NULL);
KIND(address, NULL);
KIND(listen, NULL);
KIND(name, NULL);
KIND(origin, NULL);
KIND(subject, NULL);
KIND(word, NULL);
KIND(domain, NULL);

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
/* As enum eviction_policy. */
const struct config_kind config_policy = { read_number, show_number, WORDS("lru", "lfu", "fifo") };
const struct config_kind config_landlock = { read_second, show_second, WORDS("all", "writes") };
const struct config_kind config_archive_format = { read_second, show_second,
	WORDS("tar.zst", "tar.gz") };
const struct config_kind config_on_full = { read_second, show_second, WORDS("refuse", "drop") };
const struct config_kind config_decision = { read_one_of, show_text,
	WORDS("ask", "deny", "allow") };
const struct config_kind config_log = { read_one_of, show_text, WORDS("text", "json") };
const struct config_kind config_log_level = { read_one_of, show_text, log_level_names };
