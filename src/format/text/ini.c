#include "format/text/ini.h"

struct reader {
	struct arena *arena;
	ini_list entries;
	const char *section; /* NULL before the first */
	char *value; /* of the last entry, room for all the text; NULL: nothing to continue */
	size_t value_len, indent;
};

static const char *normalize_key(struct arena *arena, struct str key)
{
	char *out = arena_bytes(arena, key.data, key.len);
	for (char *c = out; *c; c++)
		*c = *c == '_' ? '-' : *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
	return out;
}

static size_t count_indent(struct str line)
{
	size_t count = 0;
	while (count < line.len && (line.data[count] == ' ' || line.data[count] == '\t'))
		count++;
	return count;
}

/* Lines of one value lie one after the other in the text, so that a copy of the text has room. */
static void add_line(struct reader *r, struct str line)
{
	struct ini_entry *entry = &r->entries.items[r->entries.count - 1];
	if (r->value_len > 0)
		r->value[r->value_len++] = '\n';
	memcpy(r->value + r->value_len, line.data, line.len);
	r->value_len += line.len;
	r->value[r->value_len] = '\0';
	entry->value = r->value;
}

/* The value of the last entry is complete: the next one begins behind it. */
static void end_value(struct reader *r)
{
	if (r->value)
		r->value += r->value_len + 1;
	r->value_len = 0;
}

static int read_section(struct reader *r, struct str line, int number, struct error *err)
{
	const char *close = memchr(line.data, ']', line.len);
	if (!close || close == line.data + 1)
		return fail(
			err, ERR_INVALID, "line %d: '[' without a section's name and ']'", number);
	r->section = arena_bytes(r->arena, line.data + 1, (size_t)(close - line.data - 1));
	return 0;
}

static int read_entry(struct reader *r, struct str line, int number, struct error *err)
{
	size_t at = 0;
	struct str key;
	while (at < line.len && line.data[at] != '=' && line.data[at] != ':')
		at++;
	key = str_trim((struct str){ line.data, at });
	if (!r->section)
		return fail(err, ERR_INVALID, "line %d: a section such as [global] must come first",
			number);
	if (at == line.len || key.len == 0)
		return fail(err, ERR_INVALID, "line %d: neither a section nor key = value", number);
	vec_push(r->arena, &r->entries,
		(struct ini_entry){ r->section, normalize_key(r->arena, key), "", number });
	add_line(r, str_trim((struct str){ line.data + at + 1, line.len - at - 1 }));
	return 0;
}

int ini_parse(struct str text, struct arena *arena, ini_list *entries, struct error *err)
{
	struct reader r = { .arena = arena };
	bool has_value = false;
	struct str line;
	int number = 0;
	if (text.len > INI_MAX)
		return fail(
			err, ERR_LIMIT, "a file of %zu bytes; the limit is %zu", text.len, INI_MAX);
	if (text.len > 0 && memchr(text.data, '\0', text.len))
		return fail(err, ERR_INVALID, "the file contains a NUL byte");
	if (str_starts_with(text, "\xef\xbb\xbf"))
		text = (struct str){ text.data + 3, text.len - 3 };
	r.value = arena_alloc(arena, 2 * text.len + 2);
	while (str_next(&text, '\n', &line)) {
		struct str trimmed = str_trim(line);
		size_t indent = count_indent(line);
		number++;
		if (trimmed.len == 0 || trimmed.data[0] == '#' || trimmed.data[0] == ';')
			continue;
		if (has_value && indent > r.indent) {
			add_line(&r, trimmed);
			continue;
		}
		end_value(&r);
		r.indent = indent;
		has_value = trimmed.data[0] != '[';
		if ((has_value ? read_entry : read_section)(&r, trimmed, number, err) < 0)
			return -1;
	}
	*entries = r.entries;
	return 0;
}

const char *ini_find(const ini_list *entries, const char *section, const char *key)
{
	for (size_t i = entries->count; i-- > 0;) {
		if (strcmp(entries->items[i].section, section) == 0 &&
			strcmp(entries->items[i].key, key) == 0)
			return entries->items[i].value;
	}
	return NULL;
}
