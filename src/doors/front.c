#include "doors/front.h"

#include "base/buf.h"
#include "format/http/forwarded.h"
#include "format/http/http1.h"
#include "format/http/uri.h"

const char front_preflight_headers[] =
	"Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE\r\n"
	"Access-Control-Allow-Headers: Accept, Authorization, Content-Type, Idempotency-Key, "
	"If-None-Match, Last-Event-ID, Range, X-Request-Id\r\n"
	"Access-Control-Max-Age: 600\r\n";

int front_init(struct front *front, const struct serve_settings *settings, struct error *err)
{
	*front = (struct front){ 0 };
	arena_init(&front->arena);
	if (settings)
		front->settings = *settings;
	for (size_t i = 0; i < front->settings.proxies.count; i++) {
		struct address_range range;
		if (address_range_parse(str_from(front->settings.proxies.items[i]), &range, err))
			return -1;
		vec_push(&front->arena, &front->proxies, range);
	}
	return 0;
}

void front_done(struct front *front)
{
	arena_done(&front->arena);
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

bool front_knows_host(const struct front *front, struct str host, const char *local)
{
	const text_list *hosts = &front->settings.hosts;
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

bool front_allows_origin(const struct front *front, struct str origin)
{
	const text_list *origins = &front->settings.origins;
	for (size_t i = 0; i < origins->count; i++)
		if (str_is(origin, origins->items[i]))
			return true;
	return false;
}

/* ---- the client ---- */

bool front_knows_subject(const struct front *front, const char *subject, enum token_scope *scope)
{
	const pair_list *subjects = &front->settings.subjects;
	for (size_t i = 0; i < subjects->count; i++)
		for (size_t k = 0; k < TOKEN_SCOPE_COUNT; k++)
			if (!strcmp(subjects->items[i].key, subject) &&
				!strcmp(subjects->items[i].value, token_scope_names[k])) {
				*scope = (enum token_scope)k;
				return true;
			}
	return false;
}

bool front_is_proxy(const struct front *front, const char *address)
{
	union inet_address parsed;
	return front->proxies.count && inet_address_parse_host(str_from(address), &parsed) &&
	       address_is_within(&parsed.any, front->proxies.items, front->proxies.count);
}

const char *front_client(
	const struct front *front, const char *address, struct str list, struct arena *arena)
{
	char text[INET6_ADDRSTRLEN];
	union inet_address next;
	while (list.data && front_is_proxy(front, address) && forwarded_last(list, &next, &list)) {
		inet_address_print_host(&next, text);
		address = arena_text(arena, text);
	}
	return address;
}

/* ---- all of it ---- */

/* The values of all headers of that name, as one list; data NULL: there is none. */
static struct str join(struct http_request *r, const char *name)
{
	struct str joined = { 0 };
	size_t size = 0, len = 0;
	for (size_t i = 0; i < r->headers.count; i++)
		if (str_is(r->headers.items[i].name, name))
			size += r->headers.items[i].value.len + 1;
	char *text = size ? arena_alloc(&r->arena, size) : NULL;
	for (size_t i = 0; i < r->headers.count; i++) {
		struct str value = r->headers.items[i].value;
		if (!str_is(r->headers.items[i].name, name))
			continue;
		if (len)
			text[len++] = ',';
		if (value.len)
			memcpy(text + len, value.data, value.len);
		len += value.len;
		joined = (struct str){ text, len };
	}
	return joined;
}

/* What a proxy says of the connection of its client. */
static void believe_proxy(const struct front *front, struct http_request *r)
{
	struct str scheme = http_header(r, "x-forwarded-proto");
	struct str host = http_header(r, "x-forwarded-host"), name;
	uint16_t port;
	if (!front_is_proxy(front, r->peer.address))
		return;
	if (scheme.data)
		r->peer.is_tls = str_is(scheme, "https");
	if (host.data && uri_parse_host(host, &name, &port))
		r->peer.host = host;
}

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

static int check_host(const struct front *front, struct http_request *r, struct error *err)
{
	struct str host = http_header(r, "host");
	char shown[128];
	if (host.data && front_knows_host(front, host, r->peer.local))
		return 0;
	str_printable(shown, sizeof shown, host.data ? host : STR(""));
	return fail_hint(err, ERR_DENIED,
		"serve.hosts of config.yaml lists the names of this daemon",
		"this daemon is not known as '%s' (header Host)", shown);
}

static int check_origin(
	const struct front *front, struct http_request *r, struct str origin, struct error *err)
{
	char shown[128];
	if (!front_allows_origin(front, origin)) {
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

/* /v1/workspaces/{id}/ports/{port}...: its query is another server's. */
static bool is_of_port(struct str path)
{
	static const char base[] = "/v1/workspaces/";
	struct str id, rest;
	if (!str_starts_with(path, base))
		return false;
	path = (struct str){ path.data + sizeof base - 1, path.len - (sizeof base - 1) };
	return str_cut(path, '/', &id, &rest) && str_starts_with(rest, "ports/");
}

bool front_has_token_in_url(struct http_request *r)
{
	static const char *const names[] = { "token", "access_token", NULL };
	struct str rest = r->query, name, value;
	if (is_of_port(r->path))
		return false;
	while (uri_next_parameter(&rest, &name, &value)) {
		if (uri_decode(&r->arena, name, true, &name) && http1_is_one_of(name, names))
			return true;
	}
	return false;
}

bool front_is_of_page(const struct http_request *r)
{
	struct str site = http_header(r, "sec-fetch-site");
	if (http_header(r, "origin").data)
		return false;
	return site.data ? !str_is(site, "none") : http_header(r, "referer").data != NULL;
}

int front_check(const struct front *front, struct http_request *r, struct error *err)
{
	struct str origin;
	/* It would be in the logs of proxies and in the history of browsers. */
	if (front_has_token_in_url(r))
		return fail_hint(err, ERR_INVALID, "send it as `Authorization: Bearer TOKEN`",
			"a token in a URL is refused: URLs are logged");
	if (r->peer.kind == HTTP_PEER_UNIX)
		return 0;
	if (find_one(r, "origin", &origin, err))
		return -1;
	believe_proxy(front, r);
	r->peer.address =
		front_client(front, r->peer.address, join(r, "x-forwarded-for"), &r->arena);
	if (check_host(front, r, err) || (origin.data && check_origin(front, r, origin, err)))
		return -1;
	return origin.data && str_is(r->method, "OPTIONS") &&
	       http_header(r, "access-control-request-method").data;
}
