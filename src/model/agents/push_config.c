#include "model/agents/push_config.h"

#include "format/http/uri.h"
#include "model/network/network.h"
#include "model/records/rows.h"

#define SCHEME_MAX 64

#define AT(member) offsetof(struct push_config, member)
#define KEPT_NULLABLE (FIELD_KEPT | FIELD_NULLABLE)
static const struct field rows[] = {
	ROW(ID, id, NULL, FIELD_COLUMN),
	ROW(ID, task, NULL, FIELD_COLUMN),
	{ "created_at", FIELD_TIME, AT(created_ms), NULL, FIELD_COLUMN, .kept = "created_ms" },
	ROW(TEXT, config, NULL, FIELD_KEPT),
	ROW(TEXT, owner, NULL, FIELD_KEPT),
	ROW(TEXT, url, NULL, FIELD_KEPT),
	ROW(TEXT, token, NULL, KEPT_NULLABLE),
	ROW(TEXT, scheme, NULL, KEPT_NULLABLE),
	ROW(TEXT, credentials, NULL, KEPT_NULLABLE),
	ROW(BOOLEAN, is_old, NULL, FIELD_KEPT),
	ROW(BOOLEAN, is_done, NULL, FIELD_KEPT),
	ROW(INTEGER, told_ms, NULL, FIELD_KEPT | FIELD_LATER),
};
#undef AT
const struct record push_config_record = { "PushConfig", NULL, RECORD_ROWS(rows) };

/* ---- reading ---- */

/* Printable ASCII: what stands in a header, or in a URL (without blanks). */
static int check_text(const char *text, const char *name, size_t most, bool has_blanks,
	const char *but, struct error *err)
{
	size_t len = strlen(text);
	if (len > most)
		return fail(err, ERR_INVALID, "'%s' has more than %zu bytes", name, most);
	for (const char *c = text; *c; c++)
		if (*c < (has_blanks ? ' ' : '!') || *c > '~' || strchr(but, *c))
			return fail(
				err, ERR_INVALID, "'%s' has a character that is not allowed", name);
	return 0;
}

/* *text: NULL where it is missing, null or empty. */
static int read_text(const struct json_value *value, const char *name, size_t most, bool has_blanks,
	const char *but, const char **text, struct error *err)
{
	const struct json_value *member = json_member(value, name);
	*text = NULL;
	if (!member || member->kind == JSON_NULL)
		return 0;
	const char *given = json_member_text(value, name);
	if (!given)
		return fail(err, ERR_INVALID, "'%s' must be a text", name);
	if (!given[0])
		return 0;
	*text = given;
	return check_text(given, name, most, has_blanks, but, err);
}

/* 0.3 has a list of them: the credentials are of the first. */
static int read_scheme(
	const struct json_value *value, bool is_old, const char **scheme, struct error *err)
{
	static const char delimiters[] = "\"(),/:;<=>?@[\\]{}";
	const struct json_value *list = json_member(value, "schemes");
	if (!is_old)
		return read_text(value, "scheme", SCHEME_MAX, false, delimiters, scheme, err);
	if (!list || list->kind != JSON_ARRAY || !list->first)
		return 0;
	struct str first = list->first->string;
	if (list->first->kind != JSON_STRING || strlen(first.data) != first.len)
		return fail(err, ERR_INVALID, "'schemes' must be a list of texts");
	*scheme = first.data;
	return check_text(first.data, "schemes", SCHEME_MAX, false, delimiters, err);
}

static int read_authentication(
	const struct json_value *value, bool is_old, struct push_config *out, struct error *err)
{
	const struct json_value *given = json_member(value, "authentication");
	if (!given || given->kind == JSON_NULL)
		return 0;
	if (given->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "'authentication' must be an object");
	if (read_scheme(given, is_old, &out->scheme, err) ||
		read_text(given, "credentials", PUSH_CONFIG_SECRET_MAX, true, "", &out->credentials,
			err))
		return error_context(err, "authentication");
	if (!out->scheme && (out->credentials || !is_old))
		return fail(err, ERR_INVALID, "'authentication' must have a %s",
			is_old ? "list 'schemes'" : "text 'scheme'");
	return 0;
}

static int check_url(const char *url, struct error *err)
{
	struct uri parts;
	struct str name;
	uint16_t port;
	char host[NETWORK_HOST_SIZE];
	struct error why;
	if (!uri_split(url, &parts) ||
		(!str_is(parts.scheme, "https://") && !str_is(parts.scheme, "http://")))
		return fail(err, ERR_INVALID, "'url' must be a URL of https or http");
	if (parts.host.data != url + parts.scheme.len)
		return fail(err, ERR_INVALID,
			"'url' may have no user name: 'authentication' says who pushes");
	if (!uri_parse_host(parts.host, &name, &port) || network_normalize(name, host, &why))
		return fail(err, ERR_INVALID, "'url' has no valid host");
	return 0;
}

int push_config_read(
	const struct json_value *value, bool is_old, struct push_config *out, struct error *err)
{
	struct push_config read = { .is_old = is_old };
	if (!value || value->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "a push notification config must be an object");
	if (read_text(value, "id", PUSH_CONFIG_ID_MAX, true, "/", &read.config, err) ||
		read_text(
			value, "url", PUSH_CONFIG_URL_MAX, false, "#\"<>\\^`{|}", &read.url, err) ||
		read_text(value, "token", PUSH_CONFIG_SECRET_MAX, true, "", &read.token, err) ||
		read_authentication(value, is_old, &read, err))
		return -1;
	if (!read.url)
		return fail(err, ERR_INVALID, "'url' is missing");
	if (check_url(read.url, err))
		return -1;
	*out = read;
	return 0;
}

/* ---- showing ---- */

static void print_members(struct json *j, const struct push_config *config, bool is_old)
{
	json_text(j, "id", config->config);
	json_text(j, "url", config->url);
	if (config->token)
		json_text(j, "token", config->token);
	if (!config->scheme)
		return;
	json_object(j, "authentication");
	if (is_old) {
		json_array(j, "schemes");
		json_text(j, NULL, config->scheme);
		json_end(j);
	} else {
		json_text(j, "scheme", config->scheme);
	}
	json_end(j);
}

void push_config_print(
	struct json *j, const char *key, const struct push_config *config, bool is_old)
{
	json_object(j, key);
	json_text(j, "taskId", config->task);
	if (is_old)
		json_object(j, "pushNotificationConfig");
	print_members(j, config, is_old);
	if (is_old)
		json_end(j);
	json_end(j);
}

const char *push_config_host(const struct push_config *config, struct arena *arena)
{
	struct uri parts; /* valid: push_config_read has checked it */
	struct str name;
	uint16_t port;
	uri_split(config->url, &parts);
	uri_parse_host(parts.host, &name, &port);
	return arena_bytes(arena, name.data, name.len);
}

int push_config_check(const struct push_config *config, const text_list *hosts, bool *is_port_named,
	struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct network_list open, *list;
	char host[NETWORK_HOST_SIZE];
	uint16_t port;
	if (network_target_parse(str_from(config->url), host, &port, err) ||
		network_list_init(&open, &arena, NETWORK_OPEN, NULL, err) ||
		network_list_bind(&open, true, &list, err))
		return -1;
	for (size_t i = 0; i < hosts->count; i++)
		if (network_list_add(list, NETWORK_ALLOW, hosts->items[i], err))
			return -1;
	struct network_verdict verdict = network_decide(list, host, port);
	if (!verdict.is_allowed)
		return fail(err, ERR_INVALID,
			"'url' has the host '%s' and port %u, which this agent does not push to",
			host, port);
	*is_port_named = verdict.has_named_port;
	return 0;
}
