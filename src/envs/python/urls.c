/* Wheels by their address, where the operator allows it: "name @
 * https://host/name-1.0-py3-none-any.whl". In a lock they are name==version like all others; only
 * uv is told the address. */

#include "base/path.h"
#include "envs/python/internal.h"
#include "format/http/uri.h"

/* Up to the first of `ends`, or all. */
static struct str until(struct str text, const char *ends)
{
	size_t len = 0;
	while (len < text.len && !strchr(ends, text.data[len]))
		len++;
	return (struct str){ text.data, len };
}

const char *wheel_url(const struct requirement *r, struct arena *arena)
{
	const char *at = r->kind == REQUIREMENT_URL && r->name ? strchr(r->text, '@') : NULL;
	struct str url, path;
	if (!at)
		return NULL;
	url = until(str_trim(str_from(at + 1)), " \t;");
	path = until(url, "?#");
	if (!str_starts_with(url, "https://") && !str_starts_with(url, "http://"))
		return NULL;
	if (path.len < 4 || memcmp(path.data + path.len - 4, ".whl", 4) != 0)
		return NULL;
	return arena_bytes(arena, url.data, url.len);
}

const char *wheel_url_version(const char *url, struct arena *arena)
{
	struct str path = until(str_from(url), "?#"), name, version, rest;
	const char *file = path_basename(arena_bytes(arena, path.data, path.len));
	if (!str_cut(str_from(file), '-', &name, &rest) || !str_cut(rest, '-', &version, &rest))
		return NULL;
	auto_buf struct buf text = buf_empty(256);
	for (size_t i = 0; i < version.len; i++) {
		bool is_plus = version.len - i >= 3 && memcmp(version.data + i, "%2B", 3) == 0;
		buf_char(&text, is_plus ? '+' : version.data[i]);
		i += is_plus ? 2 : 0;
	}
	if (text.len == 0 || text.overflow ||
		strspn(text.data,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!+_") !=
			text.len)
		return NULL;
	return arena_bytes(arena, text.data, text.len);
}

const char *wheel_url_host(const char *url, struct arena *arena)
{
	struct uri parts;
	struct str name;
	uint16_t port;
	if (!uri_split(url, &parts) || !uri_parse_host(parts.host, &name, &port))
		return "";
	if (port)
		return arena_bytes(arena, parts.host.data, parts.host.len);
	return arena_printf(arena, "%.*s:%d", (int)parts.host.len, parts.host.data,
		str_is(parts.scheme, "http://") ? 80 : 443);
}

const char *wheel_url_of_package(
	const requirement_list *requirements, const char *name, struct arena *arena)
{
	for (size_t i = 0; i < requirements->count; i++) {
		const struct requirement *r = &requirements->items[i];
		if (r->kind == REQUIREMENT_URL && r->name && strcmp(r->name, name) == 0)
			return wheel_url(r, arena);
	}
	return NULL;
}

void wheel_urls_to_versions(
	const requirement_list *requirements, struct str text, struct arena *arena, struct buf *out)
{
	struct str line;
	while (str_next(&text, '\n', &line)) {
		struct str name = until(line, " "), rest;
		const char *plain = arena_bytes(arena, name.data, name.len);
		const char *url = wheel_url_of_package(requirements, plain, arena);
		const char *version = url ? wheel_url_version(url, arena) : NULL;
		rest = (struct str){ line.data + name.len, line.len - name.len };
		if (version && str_starts_with(rest, " @ ")) {
			struct str address =
				until((struct str){ rest.data + 3, rest.len - 3 }, " ");
			buf_printf(out, "%s==%s", plain, version);
			buf_append(out, address.data + address.len, rest.len - 3 - address.len);
		} else {
			buf_append(out, line.data, line.len);
		}
		buf_char(out, '\n');
	}
}
