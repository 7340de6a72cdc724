/* URLs of registries and remotes, compared by their parts and never as text. */
#include "policy/sources_internal.h"

#include "base/path.h"

static char *lower_part(struct arena *arena, const char *text, size_t len)
{
	char *copy = arena_bytes(arena, text, len);
	for (char *c = copy; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return copy;
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || *text == 0x7f || *text == '\\' ||
			(unsigned char)*text >= 0x80)
			return false;
	return true;
}

/* Escapes of letters, digits, "-._~" are what they stand for; others stay. A "/" or NUL that is
 * escaped is refused: readers differ. */
static const char *decode_path(struct arena *arena, const char *text)
{
	char *out = arena_text(arena, text), *to = out;
	for (const char *at = text; *at; at++) {
		int high = *at == '%' ? str_hex_digit(at[1]) : -1;
		int low = high >= 0 ? str_hex_digit(at[2]) : -1;
		if (*at == '%' && low < 0)
			return NULL;
		if (low < 0) {
			*to++ = *at;
			continue;
		}
		char c = (char)(high << 4 | low);
		if (c == '/' || c == '\0' || c == '\\')
			return NULL;
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			strchr("-._~", c)) {
			*to++ = c;
		} else {
			*to++ = *at;
			*to++ = at[1];
			*to++ = at[2];
		}
		at += 2;
	}
	*to = '\0';
	return out;
}

/* user@host:port */
static bool parse_authority(struct arena *arena, const char *text, size_t len, struct url *url)
{
	const char *end = text + len, *host = text, *colon = NULL;
	for (const char *at = text; at < end; at++)
		if (*at == '@') {
			host = at + 1; /* the last one counts for all readers */
			url->has_user = true;
		}
	if (host < end && *host == '[') {
		const char *close = memchr(host, ']', (size_t)(end - host));
		if (!close || (close + 1 < end && close[1] != ':'))
			return false;
		colon = close + 1 < end ? close + 1 : NULL;
	} else {
		colon = memchr(host, ':', (size_t)(end - host));
	}
	if (colon) {
		uint64_t port;
		if (!str_to_u64((struct str){ colon + 1, (size_t)(end - colon - 1) }, &port) ||
			port == 0 || port > 65535)
			return false;
		url->port = (unsigned)port;
	}
	size_t host_len = (size_t)((colon ? colon : end) - host);
	if (host_len > 1 && host[host_len - 1] == '.')
		host_len--;
	url->host = lower_part(arena, host, host_len);
	return host_len > 0 && !strpbrk(url->host, "%/?#,;");
}

bool url_parse(struct arena *arena, const char *text, struct url *url)
{
	static const struct {
		const char *scheme;
		unsigned port;
	} ports[] = { { "https", 443 }, { "http", 80 }, { "ssh", 22 }, { "git", 9418 } };
	const char *colon = strstr(text, "://");
	*url = (struct url){ 0 };
	if (!colon || colon == text || !is_plain(text))
		return false;
	url->scheme = lower_part(arena, text, (size_t)(colon - text));
	if (url->scheme[strspn(url->scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.*")])
		return false;
	const char *host = colon + 3, *path = host + strcspn(host, "/?#");
	if (!parse_authority(arena, host, (size_t)(path - host), url))
		return false;
	for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
		if (strcmp(url->scheme, ports[i].scheme) == 0 && url->port == ports[i].port)
			url->port = 0;
	const char *decoded = decode_path(arena, arena_bytes(arena, path, strcspn(path, "?#")));
	if (!decoded)
		return false;
	bool has_slash = decoded[0] && decoded[strlen(decoded) - 1] == '/';
	url->path = path_normalize(arena, "/", decoded[0] ? decoded : "/");
	if (has_slash && url->path[1])
		url->path = arena_printf(arena, "%s/", url->path);
	return true;
}

bool url_parse_remote(struct arena *arena, const char *text, struct url *url, bool *is_odd)
{
	const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
	*is_odd = false;
	if (strstr(text, "::") || text[0] == '-') {
		*is_odd = true; /* a helper: ext::sh -c … */
		return false;
	}
	if (strstr(text, "://")) {
		if (strncmp(text, "file://", 7) == 0)
			return false;
		*is_odd = !url_parse(arena, text, url);
		return !*is_odd;
	}
	if (!colon || (slash && slash < colon))
		return false;
	/* user@host:path */
	*is_odd = !url_parse(arena,
		arena_printf(arena, "ssh://%.*s/%s", (int)(colon - text), text, colon + 1), url);
	return !*is_odd;
}
