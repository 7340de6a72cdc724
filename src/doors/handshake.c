#include "doors/handshake.h"

#include "format/http/http1.h"
#include "format/http/websocket.h"

#define VERSION "13"

/* Whether a header, which may be given several times, lists the word. */
static bool lists(const struct http_request *r, const char *name, const char *word)
{
	for (size_t i = 0; i < r->headers.count; i++)
		if (str_is(r->headers.items[i].name, name) &&
			http1_lists(r->headers.items[i].value, str_from(word)))
			return true;
	return false;
}

static size_t count_of(const struct http_request *r, const char *name)
{
	size_t count = 0;
	for (size_t i = 0; i < r->headers.count; i++)
		count += str_is(r->headers.items[i].name, name);
	return count;
}

struct str handshake_bearer(struct http_request *r, size_t *count)
{
	struct str found = { 0 };
	for (size_t i = 0; i < r->headers.count; i++) {
		struct str rest = r->headers.items[i].value, piece;
		if (!str_is(r->headers.items[i].name, "sec-websocket-protocol"))
			continue;
		while (str_next(&rest, ',', &piece)) {
			struct str word = str_trim(piece);
			if (!str_starts_with(word, HANDSHAKE_BEARER))
				continue;
			found = str_from(arena_printf(&r->arena, "Bearer %.*s",
				(int)(word.len - strlen(HANDSHAKE_BEARER)),
				word.data + strlen(HANDSHAKE_BEARER)));
			(*count)++;
		}
	}
	return found;
}

int handshake_check(struct call *c, const char *protocol, const char **headers, struct error *err)
{
	struct str key = http_header(c->r, "sec-websocket-key");
	char accept[WEBSOCKET_ACCEPT_LEN + 1];
	if (!str_is(c->r->method, "GET") || !lists(c->r, "upgrade", "websocket") ||
		!lists(c->r, "connection", "upgrade") ||
		!str_is(http_header(c->r, "sec-websocket-version"), VERSION)) {
		c->problem = 426;
		c->problem_headers = "Upgrade: websocket\r\nSec-WebSocket-Version: " VERSION "\r\n";
		return fail_hint(err, ERR_INVALID,
			"connect with a WebSocket client; docs/websocket.md has the messages",
			"this route needs a WebSocket handshake of version " VERSION);
	}
	if (count_of(c->r, "sec-websocket-key") != 1 || !websocket_key_is_valid(key))
		return fail(err, ERR_INVALID, "Sec-WebSocket-Key is not 16 bytes in base64");
	if (!lists(c->r, "sec-websocket-protocol", protocol))
		return fail(err, ERR_INVALID,
			"Sec-WebSocket-Protocol must offer the subprotocol '%s'", protocol);
	websocket_accept(key, accept);
	*headers = arena_printf(&c->r->arena,
		"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n", accept, protocol);
	return 0;
}
