#include "format/text/toml_lite.h"

#include "format/text/utf8.h"

#define DEPTH_MAX 16

struct reader {
	const char *begin, *at, *end;
	struct arena *arena;
	toml_list entries;
	int line, instances;
	struct error *err;
};
struct table {
	const char *name;
	int instance;
};

static int toml_refuse(const struct reader *r, const char *reason)
{
	return fail(r->err, ERR_INVALID, "line %d: %s", r->line, reason);
}

static char toml_peek(const struct reader *r)
{
	return r->at < r->end ? *r->at : '\0';
}

static bool toml_take(struct reader *r, const char *text)
{
	size_t len = strlen(text);
	if ((size_t)(r->end - r->at) < len || memcmp(r->at, text, len) != 0)
		return false;
	r->at += len;
	return true;
}

static void skip_blanks(struct reader *r)
{
	while (toml_peek(r) == ' ' || toml_peek(r) == '\t')
		r->at++;
}

/* Blanks, ends of lines, comments. */
static void skip_space(struct reader *r)
{
	for (;; r->at++) {
		if (toml_peek(r) == '#') {
			while (r->at < r->end && *r->at != '\n')
				r->at++;
		}
		if (r->at == r->end || !strchr(" \t\r\n", *r->at) || !*r->at)
			return;
		r->line += *r->at == '\n';
	}
}

/* Takes the rest of an escape, after its backslash. */
static int take_escape(struct reader *r, char *out, size_t *len)
{
	static const char names[] = "btnfre\"\\", values[] = "\b\t\n\f\r\x1b\"\\";
	char kind = toml_peek(r);
	const char *known = kind ? strchr(names, kind) : NULL;
	int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
	uint32_t code = 0;
	if (known) {
		r->at++;
		out[(*len)++] = values[known - names];
		return 0;
	}
	if (digits == 0)
		return toml_refuse(r, "an invalid escape after a backslash");
	r->at++;
	while (digits-- > 0) {
		char c = toml_peek(r);
		if (!c || !strchr("0123456789abcdefABCDEF", c))
			return toml_refuse(r, "an escape with too few digits");
		code = code << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
		r->at++;
	}
	if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return toml_refuse(r, "an escape of an invalid character");
	*len += utf8_write(out + *len, code);
	return 0;
}

/* After a backslash at the end of a line: skips the line end and all blanks after it. */
static bool skip_line_end(struct reader *r)
{
	const char *at = r->at;
	while (at < r->end && (*at == ' ' || *at == '\t' || *at == '\r'))
		at++;
	if (at == r->end || *at != '\n')
		return false;
	for (r->at = at; r->at < r->end && *r->at && strchr(" \t\r\n", *r->at); r->at++)
		r->line += *r->at == '\n';
	return true;
}

/* An upper bound of the string's length: the distance to the next unescaped quote. */
static size_t measure(const struct reader *r, const char *quote)
{
	size_t len = strlen(quote), left = (size_t)(r->end - r->at);
	for (size_t i = 0; i + len <= left; i++) {
		if (quote[0] == '"' && r->at[i] == '\\')
			i++;
		else if (memcmp(r->at + i, quote, len) == 0)
			return i;
	}
	return left;
}

static int take_string(struct reader *r, const char **text)
{
	static const char *const quotes[] = { "\"\"\"", "'''", "\"", "'" };
	const char *quote = NULL;
	size_t len = 0;
	char *out;
	for (size_t i = 0; i < 4 && !quote; i++)
		quote = toml_take(r, quotes[i]) ? quotes[i] : NULL;
	if (!quote)
		return toml_refuse(r, "a string is expected here");
	bool is_long = quote[1], is_basic = quote[0] == '"';
	if (is_long && (toml_take(r, "\r\n") || toml_take(r, "\n")))
		r->line++;
	out = arena_alloc(r->arena, measure(r, quote) + 3);
	while (!toml_take(r, quote)) {
		if (r->at == r->end || (*r->at == '\n' && !is_long))
			return toml_refuse(r, "a string isn't closed");
		if (is_basic && toml_take(r, "\\")) {
			if (!(is_long && skip_line_end(r)) && take_escape(r, out, &len) < 0)
				return -1;
			continue;
		}
		r->line += *r->at == '\n';
		out[len++] = *r->at++;
	}
	/* """a"""": up to two quotes may belong to the text. */
	for (int i = 0; is_long && i < 2 && toml_peek(r) == quote[0]; i++)
		out[len++] = *r->at++;
	*text = out;
	return 0;
}

/* A key, its parts joined by dots. */
static int take_key(struct reader *r, const char **key)
{
	const char *joined = NULL;
	do {
		const char *part;
		skip_blanks(r);
		if (toml_peek(r) == '"' || toml_peek(r) == '\'') {
			if (take_string(r, &part) < 0)
				return -1;
		} else {
			const char *start = r->at;
			while (toml_peek(r) &&
				strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
				       "XYZ0123456789_-",
					toml_peek(r)))
				r->at++;
			if (r->at == start)
				return toml_refuse(r, "a key is expected here");
			part = arena_bytes(r->arena, start, (size_t)(r->at - start));
		}
		/* Bounds the cost of joining, which is quadratic in the number of parts. */
		if (joined && strlen(joined) > 1024)
			return toml_refuse(r, "a key is too long");
		joined = joined ? arena_printf(r->arena, "%s.%s", joined, part) : part;
		skip_blanks(r);
	} while (toml_take(r, "."));
	*key = joined;
	return 0;
}

static int take_value(struct reader *r, struct table table, const char *key, int depth);

static size_t place(const struct reader *r)
{
	return (size_t)(r->at - r->begin);
}

static int take_pair(
	struct reader *r, struct table table, int depth, struct toml_statement *statement)
{
	if (take_key(r, &statement->key) < 0)
		return -1;
	if (!toml_take(r, "="))
		return toml_refuse(r, "'=' is expected after a key");
	skip_blanks(r);
	statement->start = place(r);
	return take_value(r, table, statement->key, depth);
}

static int take_inline_table(struct reader *r, struct table outer, const char *key, int depth)
{
	struct table table = { key, r->instances++ };
	struct toml_statement inner;
	if (outer.name[0])
		table.name = arena_printf(r->arena, "%.1024s.%.1024s", outer.name, key);
	for (skip_space(r); !toml_take(r, "}"); skip_space(r)) {
		if (take_pair(r, table, depth, &inner) < 0)
			return -1;
		skip_space(r);
		if (!toml_take(r, ",") && toml_peek(r) != '}')
			return toml_refuse(r, "an inline table isn't closed");
	}
	return 0;
}

static int take_array(struct reader *r, struct table table, const char *key, int depth)
{
	struct toml_entry empty = { table.name, table.instance, key, "[]", false, r->line, 0, 0 };
	skip_space(r);
	if (toml_peek(r) == ']')
		vec_push(r->arena, &r->entries, empty);
	for (; !toml_take(r, "]"); skip_space(r)) {
		if (take_value(r, table, key, depth) < 0)
			return -1;
		skip_space(r);
		if (!toml_take(r, ",") && toml_peek(r) != ']')
			return toml_refuse(r, "an array isn't closed");
	}
	return 0;
}

static int take_value(struct reader *r, struct table table, const char *key, int depth)
{
	struct toml_entry entry = { table.name, table.instance, key, NULL, false, r->line, place(r),
		0 };
	const char *start;
	if (depth == DEPTH_MAX)
		return toml_refuse(r, "values are nested too deeply");
	if (toml_take(r, "["))
		return take_array(r, table, key, depth + 1);
	if (toml_take(r, "{"))
		return take_inline_table(r, table, key, depth + 1);
	if (toml_peek(r) == '"' || toml_peek(r) == '\'') {
		if (take_string(r, &entry.text) < 0)
			return -1;
		entry.is_string = true;
	} else {
		start = r->at;
		while (r->at < r->end && !strchr(",]}#\r\n", *r->at))
			r->at++;
		struct str text = str_trim((struct str){ start, (size_t)(r->at - start) });
		if (text.len == 0)
			return toml_refuse(r, "a value is expected here");
		entry.text = arena_bytes(r->arena, text.data, text.len);
	}
	entry.end = place(r);
	vec_push(r->arena, &r->entries, entry);
	return 0;
}

/* [name] or [[name]]. */
static int take_header(struct reader *r, struct table *table, bool *is_list)
{
	bool is_array = *is_list = toml_take(r, "[[");
	if (!is_array)
		toml_take(r, "[");
	if (take_key(r, &table->name) < 0)
		return -1;
	table->instance = r->instances++;
	if (!toml_take(r, is_array ? "]]" : "]"))
		return toml_refuse(r, "a table's header isn't closed");
	return 0;
}

int toml_parse_statements(struct str text, struct arena *arena, toml_list *entries,
	toml_statements *statements, struct error *err)
{
	struct reader r = { text.data, text.data, text.data + text.len, arena, .line = 1,
		.err = err };
	struct table table = { "", 0 };
	if (text.len > TOML_MAX)
		return fail(err, ERR_LIMIT, "a file of %zu bytes; the limit is %zu", text.len,
			TOML_MAX);
	if (text.len > 0 && memchr(text.data, '\0', text.len))
		return fail(err, ERR_INVALID, "the file contains a NUL byte");
	r.instances = 1;
	toml_take(&r, "\xef\xbb\xbf");
	for (skip_space(&r); r.at < r.end; skip_space(&r)) {
		struct toml_statement one = { .start = place(&r), .first = r.entries.count };
		if ((toml_peek(&r) == '[' ? take_header(&r, &table, &one.is_list)
					  : take_pair(&r, table, 0, &one)) < 0)
			return -1;
		one.table = table.name;
		one.end = place(&r);
		one.behind = r.entries.count;
		vec_push(arena, statements, one);
		skip_blanks(&r);
		if (r.at < r.end && !strchr("#\r\n", *r.at))
			return toml_refuse(&r, "the end of the line is expected here");
	}
	*entries = r.entries;
	return 0;
}

int toml_parse(struct str text, struct arena *arena, toml_list *entries, struct error *err)
{
	toml_statements ignored = { 0 };
	return toml_parse_statements(text, arena, entries, &ignored, err);
}
