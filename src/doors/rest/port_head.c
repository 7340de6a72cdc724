#include "doors/rest/port_head.h"

#include "doors/handshake.h"

/* Of one connection, or written anew. */
static bool is_of_connection(struct str name)
{
	static const char *const names[] = { "connection", "keep-alive", "te", "trailer",
		"transfer-encoding", "upgrade", "content-length", "expect", "host", NULL };
	return http1_is_one_of(name, names) ||
	       (name.len >= 6 && !strncasecmp(name.data, "proxy-", 6));
}

/* Of this daemon: authorization is for it, and it says itself for whom a request is forwarded. */
static bool is_of_daemon(struct str name)
{
	return http1_is(name, "authorization") || http1_is(name, "forwarded") ||
	       (name.len >= 12 && !strncasecmp(name.data, "x-forwarded-", 12));
}

/* Of a response: what a browser keeps for the whole origin, which is the daemon's and that of all
 * other ports; and what makes a browser ask its user for a password under the daemon's name
 * (Proxy-Authenticate is of a connection). A Refresh stays: it does no more than a link or a script
 * of the page. */
static bool is_of_origin(struct str name)
{
	static const char *const names[] = { "alt-svc", "clear-site-data", "nel", "public-key-pins",
		"report-to", "service-worker-allowed", "set-cookie2", "strict-transport-security",
		"www-authenticate", "authentication-info", "accept-ch", "critical-ch", "expect-ct",
		"set-login", NULL };
	return http1_is_one_of(name, names);
}

/* Whether a Connection header of the request names it. */
static bool is_named(const struct http_request *r, struct str name)
{
	for (size_t i = 0; i < r->headers.count; i++)
		if (str_is(r->headers.items[i].name, "connection") &&
			http1_lists(r->headers.items[i].value, name))
			return true;
	return false;
}

static void put(struct buf *out, struct str text)
{
	if (text.len)
		buf_append(out, text.data, text.len);
}

static void put_line(struct buf *out, struct str name, struct str value)
{
	put(out, name);
	buf_text(out, ": ");
	put(out, value);
	buf_text(out, "\r\n");
}

/* Without the token for this daemon, which a browser can send nowhere else. */
static void put_protocols(struct str list, struct buf *out)
{
	struct str word;
	bool is_first = true;
	while (str_next(&list, ',', &word)) {
		word = str_trim(word);
		if (!word.len || str_starts_with(word, HANDSHAKE_BEARER))
			continue;
		buf_text(out, is_first ? "Sec-WebSocket-Protocol: " : ", ");
		put(out, word);
		is_first = false;
	}
	if (!is_first)
		buf_text(out, "\r\n");
}

void port_head_request(const struct port_head *head, const struct http_request *r, struct buf *out)
{
	struct str host = r->peer.host.data ? r->peer.host : http_header(r, "host"),
		   length = http_header(r, "content-length");
	put(out, r->method);
	buf_text(out, " /");
	put(out, head->rest);
	if (r->query.len) {
		buf_char(out, '?');
		put(out, r->query);
	}
	buf_printf(out, " HTTP/1.1\r\nHost: localhost:%u\r\n", head->port);
	if (host.data)
		put_line(out, STR("X-Forwarded-Host"), host);
	put_line(out, STR("X-Forwarded-Proto"), r->peer.is_tls ? STR("https") : STR("http"));
	put_line(out, STR("X-Forwarded-Prefix"), head->prefix);
	if (head->protocol.data) {
		buf_text(out, "Connection: Upgrade\r\n");
		put_line(out, STR("Upgrade"), head->protocol);
	} else {
		buf_text(out, "Connection: close\r\n");
	}
	if (head->is_chunked)
		buf_text(out, "Transfer-Encoding: chunked\r\n");
	else if (length.data)
		put_line(out, STR("Content-Length"), length);
	for (size_t i = 0; i < r->headers.count; i++) {
		const struct http_header *header = &r->headers.items[i];
		if (is_of_connection(header->name) || is_of_daemon(header->name) ||
			is_named(r, header->name))
			continue;
		if (str_is(header->name, "sec-websocket-protocol"))
			put_protocols(header->value, out);
		else
			put_line(out, header->name, header->value);
	}
	buf_text(out, "\r\n");
}

/* A path of the server, or a URL of it by the name that it was called, as the client reaches it. */
static void put_location(const struct port_head *head, struct str value, struct buf *out)
{
	char own[40];
	buf_text(out, "Location: ");
	str_format(own, sizeof own, "http://localhost:%u", head->port);
	size_t len = strlen(own);
	if (str_starts_with(value, own) && (value.len == len || value.data[len] == '/'))
		value = (struct str){ value.data + len, value.len - len };
	else if (!str_starts_with(value, "/") || str_starts_with(value, "//"))
		len = 0;
	if (len)
		put(out, head->prefix);
	put(out, value);
	buf_text(out, "\r\n");
}

static bool is_attribute(struct str piece, const char *name)
{
	struct str key, value;
	str_cut(str_trim(piece), '=', &key, &value);
	return http1_is(str_trim(key), name);
}

/* A cookie is for this port alone, whatever path or domain the server writes. */
static void put_cookie(const struct port_head *head, struct str value, struct buf *out)
{
	struct str piece;
	bool is_first = true;
	buf_text(out, "Set-Cookie: ");
	while (str_next(&value, ';', &piece)) {
		if (!is_first && (is_attribute(piece, "path") || is_attribute(piece, "domain")))
			continue;
		buf_text(out, is_first ? "" : "; ");
		put(out, str_trim(piece));
		is_first = false;
	}
	buf_text(out, "; Path=");
	put(out, head->prefix);
	buf_text(out, "/\r\n");
}

void port_head_response(
	const struct port_head *head, const struct http_response *response, struct buf *out)
{
	struct str rest = response->text;
	struct http1_header header;
	while (http1_next_header(&rest, &header)) {
		/* The daemon says these itself. */
		if (is_of_connection(header.name) || http1_is(header.name, "date") ||
			http1_is(header.name, "x-request-id") || is_of_origin(header.name) ||
			http1_headers_list(response->text, "connection", header.name))
			continue;
		if (http1_is(header.name, "location"))
			put_location(head, header.value, out);
		else if (http1_is(header.name, "set-cookie"))
			put_cookie(head, header.value, out);
		else
			put_line(out, header.name, header.value);
	}
}
