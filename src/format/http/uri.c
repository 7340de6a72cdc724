#include "format/http/uri.h"

bool uri_decode(struct arena *arena, struct str text, bool is_query, struct str *out)
{
	char *decoded = arena_alloc(arena, text.len + 1);
	size_t len = 0;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		if (c == '%') {
			int high = i + 2 < text.len ? str_hex_digit(text.data[i + 1]) : -1;
			int low = i + 2 < text.len ? str_hex_digit(text.data[i + 2]) : -1;
			if (high < 0 || low < 0)
				return false;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && is_query) {
			c = ' ';
		}
		if (c == '\0')
			return false;
		decoded[len++] = c;
	}
	decoded[len] = '\0';
	*out = (struct str){ decoded, len };
	return true;
}

static bool is_alphanumeric(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

char *uri_encode(struct arena *arena, struct str text, bool keep_slashes)
{
	static const char digits[] = "0123456789ABCDEF";
	char *encoded = arena_array(arena, text.len + 1, 3);
	size_t len = 0;
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		if (is_alphanumeric((char)c) || (c && strchr("._~-", c)) ||
			(c == '/' && keep_slashes)) {
			encoded[len++] = (char)c;
			continue;
		}
		encoded[len++] = '%';
		encoded[len++] = digits[c >> 4];
		encoded[len++] = digits[c & 15];
	}
	encoded[len] = '\0';
	return encoded;
}

bool uri_next_parameter(struct str *rest, struct str *name, struct str *value)
{
	struct str piece;
	while (str_next(rest, '&', &piece)) {
		if (piece.len == 0)
			continue;
		if (!str_cut(piece, '=', name, value))
			*value = STR("");
		return true;
	}
	return false;
}

static bool is_port(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
	return text.len <= 5;
}

static bool is_bracketed(struct str text)
{
	const char *end = memchr(text.data, ']', text.len);
	size_t len = end ? (size_t)(end - text.data) : 0;
	for (size_t i = 1; i < len; i++)
		if (str_hex_digit(text.data[i]) < 0 && text.data[i] != ':' && text.data[i] != '.')
			return false;
	if (len < 3)
		return false;
	struct str rest = { end + 1, text.len - len - 1 };
	return rest.len == 0 ||
	       (rest.data[0] == ':' && is_port((struct str){ rest.data + 1, rest.len - 1 }));
}

bool uri_is_authority(struct str text)
{
	struct str host, port;
	if (text.len > 0 && text.data[0] == '[')
		return is_bracketed(text);
	str_cut(text, ':', &host, &port);
	for (size_t i = 0; i < host.len; i++)
		if (!is_alphanumeric(host.data[i]) &&
			(!host.data[i] || !strchr("-._~%!$&'()*+;=", host.data[i])))
			return false;
	return is_port(port);
}

bool uri_parse_host(struct str text, struct str *name, uint16_t *port)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	bool is_v6 = text.len > 0 && text.data[0] == '[';
	size_t at = is_v6, first = at;
	uint64_t number = 0;
	while (at < text.len && text.data[at] &&
		strchr(is_v6 ? "0123456789abcdefABCDEF:." : letters, text.data[at]))
		at++;
	*name = (struct str){ text.data + first, at - first };
	if (name->len == 0 || name->data[0] == '-' || name->len > 253 ||
		(is_v6 && (name->len < 2 || at == text.len || text.data[at++] != ']')))
		return false;
	if (at < text.len &&
		(text.data[at] != ':' ||
			!str_to_u64(
				(struct str){ text.data + at + 1, text.len - at - 1 }, &number) ||
			number == 0 || number > UINT16_MAX))
		return false;
	*port = (uint16_t)number;
	return true;
}

bool uri_split(const char *url, struct uri *parts)
{
	const char *start = strstr(url, "://"), *at;
	if (!start)
		return false;
	start += strlen("://");
	parts->scheme = (struct str){ url, (size_t)(start - url) };
	parts->host = (struct str){ start, strcspn(start, "/?#") };
	at = parts->host.len > 0 ? memrchr(start, '@', parts->host.len) : NULL;
	parts->user = (struct str){ start, at ? (size_t)(at - start) : 0 };
	if (at)
		parts->host = (struct str){ at + 1, parts->host.len - parts->user.len - 1 };
	return true;
}

bool uri_parse_base(const char *url, struct uri_base *base)
{
	struct uri parts;
	struct uri_base read;
	if (!uri_split(url, &parts) || parts.host.data != url + parts.scheme.len)
		return false;
	read.is_tls = str_is(parts.scheme, "https://");
	if (!read.is_tls && !str_is(parts.scheme, "http://"))
		return false;
	const char *rest = parts.host.data + parts.host.len;
	if (rest[0] && strcmp(rest, "/") != 0)
		return false;
	read.authority = parts.host;
	if (!uri_is_authority(parts.host) || !uri_parse_host(parts.host, &read.name, &read.port))
		return false;
	if (!read.port)
		read.port = read.is_tls ? 443 : 80;
	*base = read;
	return true;
}
