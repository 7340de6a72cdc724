#include "api/door.h"

#include <string.h>
#include "base/buf.h"
#include "format/forwarded.h"
#include "format/uri.h"

const char door_preflight_headers[] =
	"Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE\r\n"
	"Access-Control-Allow-Headers: Accept, Authorization, Content-Type, Idempotency-Key, "
	"If-None-Match, Last-Event-ID, Range, X-Request-Id\r\n"
	"Access-Control-Max-Age: 600\r\n";

int door_init(struct front_door *door, const char *settings, struct error *err)
{
	*door = (struct front_door){ 0 };
	arena_init(&door->arena);
	if (serve_settings_parse(settings, &door->arena, &door->settings, err))
		return -1;
	for (size_t i = 0; i < door->settings.proxies.count; i++) {
		struct address_range range;
		if (address_range_parse(str_from(door->settings.proxies.items[i]), &range, err))
			return -1;
		vec_push(&door->arena, &door->proxies, range);
	}
	return 0;
}

void door_done(struct front_door *door)
{
	arena_done(&door->arena);
}

/* ---- Host ---- */

static bool is_same_name(struct str name, const char *known)
{
	/* "name." is the same name to a resolver. */
	if (name.len > 1 && name.data[name.len - 1] == '.')
		name.len--;
	return name.len == strlen(known) && !strncasecmp(name.data, known, name.len);
}

static bool is_same_address(struct str name, const char *known)
{
	union inet_address address;
	char text[INET6_ADDRSTRLEN];

	if (!inet_address_parse_host(name, &address))
		return false;
	inet_address_print_host(&address, text);
	return !strcmp(text, known);
}

bool door_knows_host(const struct front_door *door, struct str host, const char *local)
{
	const text_list *hosts = &door->settings.hosts;
	struct str name;
	uint16_t port;

	if (!uri_parse_host(host, &name, &port))
		return false;
	if (is_same_name(name, "localhost") || is_same_address(name, local))
		return true;
	for (size_t i = 0; i < hosts->count; i++)
		if (is_same_name(name, hosts->items[i]) || is_same_address(name, hosts->items[i]))
			return true;
	return false;
}

/* ---- Origin ---- */

bool door_allows_origin(const struct front_door *door, struct str origin)
{
	const text_list *origins = &door->settings.origins;

	for (size_t i = 0; i < origins->count; i++)
		if (str_is(origin, origins->items[i]))
			return true;
	return false;
}

/* ---- the client ---- */

bool door_knows_subject(const struct front_door *door, const char *subject, enum token_scope *scope)
{
	const pair_list *subjects = &door->settings.subjects;

	for (size_t i = 0; i < subjects->count; i++)
		for (size_t k = 0; k < TOKEN_SCOPE_COUNT; k++)
			if (!strcmp(subjects->items[i].key, subject) &&
				!strcmp(subjects->items[i].value, token_scope_names[k])) {
				*scope = (enum token_scope)k;
				return true;
			}
	return false;
}

bool door_is_proxy(const struct front_door *door, const char *address)
{
	union inet_address parsed;

	return door->proxies.count && inet_address_parse_host(str_from(address), &parsed) &&
	       address_is_within(&parsed.any, door->proxies.items, door->proxies.count);
}

const char *door_client(
	const struct front_door *door, const char *address, struct str list, struct arena *arena)
{
	char text[INET6_ADDRSTRLEN];
	union inet_address next;

	while (list.data && door_is_proxy(door, address) && forwarded_last(list, &next, &list)) {
		inet_address_print_host(&next, text);
		address = arena_text(arena, text);
	}
	return address;
}

/* ---- all of it ---- */

/* The one header of that name; -1: it is there twice. data NULL: it is missing. */
static int find_one(
	const struct http_request *r, const char *name, struct str *value, struct error *err)
{
	size_t count = 0;

	for (size_t i = 0; i < r->headers.count; i++)
		count += str_is(r->headers.items[i].name, name);
	*value = http_header(r, name);
	return count > 1 ? fail(err, ERR_INVALID, "the header '%s' is given twice", name) : 0;
}

static int check_host(const struct front_door *door, struct http_request *r, struct error *err)
{
	struct str host = http_header(r, "host");
	char shown[128];

	if (host.data && door_knows_host(door, host, r->peer.local))
		return 0;
	str_printable(shown, sizeof shown, host.data ? host : STR(""));
	return fail_hint(err, ERR_DENIED,
		"serve.hosts of config.yaml lists the names of this daemon",
		"this daemon is not known as '%s' (header Host)", shown);
}

static int check_origin(
	const struct front_door *door, struct http_request *r, struct str origin, struct error *err)
{
	char shown[128];

	if (!door_allows_origin(door, origin)) {
		str_printable(shown, sizeof shown, origin);
		return fail_hint(err, ERR_DENIED,
			"serve.origins of config.yaml lists the pages that may ask",
			"pages of '%s' may not ask this daemon", shown);
	}
	r->common_headers = arena_printf(&r->arena,
		"Access-Control-Allow-Origin: %.*s\r\nVary: Origin\r\n"
		"Access-Control-Expose-Headers: Location, Retry-After, X-Request-Id\r\n",
		(int)origin.len, origin.data);
	return 0;
}

/* A forwarded port's query is another server's. */
bool door_has_token_in_url(const struct http_request *r)
{
	struct str rest = r->query, name, value;

	if (str_starts_with(r->path, "/v1/workspaces/") &&
		memmem(r->path.data, r->path.len, "/ports/", 7))
		return false;
	while (uri_next_parameter(&rest, &name, &value))
		if (str_is(name, "token") || str_is(name, "access_token"))
			return true;
	return false;
}

int door_check(const struct front_door *door, struct http_request *r, struct error *err)
{
	struct str origin, forwarded;

	/* It would be in the logs of proxies and in the history of browsers. */
	if (door_has_token_in_url(r))
		return fail_hint(err, ERR_INVALID, "send it as `Authorization: Bearer TOKEN`",
			"a token in a URL is refused: URLs are logged");
	if (r->peer.kind == HTTP_PEER_UNIX)
		return 0;
	if (find_one(r, "x-forwarded-for", &forwarded, err) || find_one(r, "origin", &origin, err))
		return -1;
	r->peer.address = door_client(door, r->peer.address, forwarded, &r->arena);
	if (check_host(door, r, err) || (origin.data && check_origin(door, r, origin, err)))
		return -1;
	return origin.data && str_is(r->method, "OPTIONS") &&
	       http_header(r, "access-control-request-method").data;
}
