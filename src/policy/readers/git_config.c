#include "policy/readers/git_config.h"

#include "base/buf.h"

struct reader {
	const char *at, *end;
	struct arena *arena;
	git_entries entries;
	const char *section, *subsection;
	int line;
	struct error *err;
};

static int refuse(const struct reader *r, const char *why)
{
	return fail(r->err, ERR_INVALID, "line %d: %s", r->line, why);
}

static int peek(const struct reader *r)
{
	return r->at < r->end ? (unsigned char)*r->at : -1;
}

static int next(struct reader *r)
{
	int c = peek(r);
	if (c >= 0)
		r->at++;
	if (c == '\r' && peek(r) == '\n') /* git takes it for the end of a line, too */
		c = (unsigned char)*r->at++;
	if (c == '\n')
		r->line++;
	return c;
}

static bool is_name(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-';
}

static const char *lower(struct reader *r, const char *text, size_t len)
{
	char *copy = arena_bytes(r->arena, text, len);
	for (char *c = copy; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return copy;
}

static void skip_line(struct reader *r)
{
	while (peek(r) >= 0 && next(r) != '\n')
		;
}

/* [section], [section "Sub"], [section.sub] */
static int read_header(struct reader *r)
{
	auto_buf struct buf sub = buf_empty(4096);
	const char *begin = r->at;
	while (is_name(peek(r)))
		next(r);
	if (r->at == begin)
		return refuse(r, "a section without a name");
	r->section = lower(r, begin, (size_t)(r->at - begin));
	r->subsection = "";
	if (peek(r) == '.') {
		begin = r->at + 1;
		while (peek(r) >= 0 && (is_name(peek(r)) || peek(r) == '.'))
			next(r);
		r->subsection = lower(r, begin, (size_t)(r->at - begin));
	}
	while (peek(r) == ' ' || peek(r) == '\t')
		next(r);
	if (peek(r) == '"') {
		next(r);
		for (int c; (c = next(r)) != '"';) {
			if (c == '\\')
				c = next(r);
			if (c < 0 || c == '\n')
				return refuse(r, "a section isn't closed");
			buf_char(&sub, (char)c);
		}
		if (sub.overflow)
			return refuse(r, "a name that is too long");
		r->subsection = arena_bytes(r->arena, sub.data ? sub.data : "", sub.len);
	}
	return next(r) == ']' ? 0 : refuse(r, "a section isn't closed");
}

static int read_value(struct reader *r, const char **value)
{
	auto_buf struct buf out = buf_empty(65536);
	bool is_quoted = false;
	size_t blanks = 0; /* at the end, which are dropped */
	while (peek(r) == ' ' || peek(r) == '\t')
		next(r);
	for (int c; (c = next(r)) >= 0 && c != '\n';) {
		if (!is_quoted && (c == '#' || c == ';')) {
			skip_line(r);
			break;
		}
		if (c == '"') {
			is_quoted = !is_quoted;
			blanks = 0;
			continue;
		}
		bool is_escaped = c == '\\';
		if (is_escaped) {
			static const char from[] = "nbt\"\\", to[] = "\n\b\t\"\\";
			c = next(r);
			if (c == '\n')
				continue;
			const char *at = c > 0 ? strchr(from, c) : NULL;
			if (!at)
				return refuse(r, "an unknown escape");
			c = to[at - from];
		}
		if (!c)
			return refuse(r, "a NUL");
		buf_char(&out, (char)c);
		blanks = !is_quoted && !is_escaped && (c == ' ' || c == '\t') ? blanks + 1 : 0;
	}
	if (is_quoted || out.overflow)
		return refuse(r, is_quoted ? "a quote isn't closed" : "a value that is too long");
	*value = arena_bytes(r->arena, out.data ? out.data : "", out.len - blanks);
	return 0;
}

static int read_pair(struct reader *r)
{
	const char *begin = r->at;
	struct git_entry entry = { r->section, r->subsection, NULL, "" };
	while (is_name(peek(r)))
		next(r);
	if (r->at == begin || !r->section)
		return refuse(r, "not a section, a key or a comment");
	entry.key = lower(r, begin, (size_t)(r->at - begin));
	while (peek(r) == ' ' || peek(r) == '\t')
		next(r);
	if (peek(r) == '=') {
		next(r);
		if (read_value(r, &entry.value) < 0)
			return -1;
	} else if (peek(r) == '#' || peek(r) == ';') {
		skip_line(r);
	} else if (peek(r) >= 0 && next(r) != '\n') {
		return refuse(r, "'=' expected");
	}
	if (r->entries.count == GIT_CONFIG_ENTRIES_MAX)
		return fail(r->err, ERR_LIMIT, "more than %d keys", GIT_CONFIG_ENTRIES_MAX);
	vec_push(r->arena, &r->entries, entry);
	return 0;
}

int git_config_parse(struct str text, struct arena *arena, git_entries *entries, struct error *err)
{
	struct reader r = {
		.at = text.data, .end = text.data + text.len, .arena = arena, .line = 1, .err = err
	};
	if (text.len > GIT_CONFIG_MAX)
		return fail(err, ERR_LIMIT, "more than %zu bytes", GIT_CONFIG_MAX);
	if (str_starts_with(text, "\xef\xbb\xbf"))
		r.at += 3;
	for (int c; (c = peek(&r)) >= 0;) {
		if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
			next(&r);
		} else if (c == '#' || c == ';') {
			skip_line(&r);
		} else if (c == '[') {
			next(&r);
			if (read_header(&r) < 0)
				return -1;
		} else if (read_pair(&r) < 0) {
			return -1;
		}
	}
	*entries = r.entries;
	return 0;
}
