#include "model/serve_settings.h"

#include <string.h>
#include "base/buf.h"
#include "base/str.h"
#include "format/uri.h"

bool serve_origin_is_valid(const char *text)
{
	struct uri parts;
	struct str name;
	uint16_t port;

	for (const char *c = text; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			return false;
	return uri_split(text, &parts) && !parts.user.len &&
	       (str_is(parts.scheme, "https://") || str_is(parts.scheme, "http://")) &&
	       parts.scheme.len + parts.host.len == strlen(text) &&
	       uri_parse_host(parts.host, &name, &port);
}

static void print_list(struct buf *out, const char *name, const text_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		buf_printf(out, "%s %s\n", name, list->items[i]);
}

const char *serve_settings_print(const struct serve_settings *s, struct arena *arena)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);

	print_list(&out, "host", &s->hosts);
	print_list(&out, "origin", &s->origins);
	print_list(&out, "proxy", &s->proxies);
	for (size_t i = 0; i < s->subjects.count; i++)
		buf_printf(&out, "subject %s %s\n", s->subjects.items[i].value,
			s->subjects.items[i].key);
	buf_printf(&out, "connections %llu\nrate %llu\n", (unsigned long long)s->connections,
		(unsigned long long)s->rate);
	return arena_bytes(arena, out.data, out.len);
}

static bool take_line(struct serve_settings *s, struct str line, struct arena *arena)
{
	const struct {
		const char *name;
		text_list *list;
		uint64_t *number;
	} rows[] = { { "host", &s->hosts, NULL }, { "origin", &s->origins, NULL },
		{ "proxy", &s->proxies, NULL }, { "connections", NULL, &s->connections },
		{ "rate", NULL, &s->rate } };
	struct str name, value, scope, subject;

	if (!str_cut(line, ' ', &name, &value))
		return false;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!str_is(name, rows[i].name))
			continue;
		if (rows[i].number)
			return str_to_u64(value, rows[i].number);
		vec_push(arena, rows[i].list, arena_bytes(arena, value.data, value.len));
		return true;
	}
	if (!str_is(name, "subject") || !str_cut(value, ' ', &scope, &subject))
		return false;
	vec_push(arena, &s->subjects,
		(struct text_pair){ arena_bytes(arena, subject.data, subject.len),
			arena_bytes(arena, scope.data, scope.len) });
	return true;
}

int serve_settings_parse(
	const char *text, struct arena *arena, struct serve_settings *settings, struct error *err)
{
	struct serve_settings found = { 0 };
	struct str rest = str_from(text), line;

	while (str_next(&rest, '\n', &line))
		if (line.len && !take_line(&found, line, arena))
			return fail(err, ERR_INVALID, "invalid setting '%.*s'", (int)line.len,
				line.data);
	*settings = found;
	return 0;
}
