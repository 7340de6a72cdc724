#include "base/map.h"
#include "format/text/yaml.h"

struct reader {
	struct str rest; /* after the current line */
	struct arena *arena;
	struct error *err;
	/* The current non-empty line; `at` is its unread rest. */
	bool has_line;
	int line;
	size_t indent;
	const char *at, *end;
	/* The keys that lead here, for errors. */
	const char *path[YAML_DEPTH_MAX + 1];
	size_t depth;
	size_t value_count;
};

static int read_map(struct reader *r, struct yaml_value *map);

__attribute__((format(printf, 4, 5))) static int fail_on(
	struct reader *r, int line, enum error_code code, const char *fmt, ...)
{
	char path[160] = "", what[320];
	size_t len = 0;
	va_list args;
	for (size_t i = 0; i < r->depth && len < sizeof path; i++)
		len += (size_t)snprintf(
			path + len, sizeof path - len, "%s%s", i ? "." : "", r->path[i]);
	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	return fail(r->err, code, "line %d: %s%s%s", line, path, path[0] ? ": " : "", what);
}
#define fail_here(r, ...) fail_on(r, (r)->line, ERR_INVALID, __VA_ARGS__)

static int fail_unsupported(struct reader *r, const char *what)
{
	return fail_here(r, "%s: not supported in this file", what);
}

static int fail_tab(struct reader *r)
{
	return fail_here(r, "a tab: use spaces");
}

/* -- bytes and lines -- */

/* What no part of the text may hold. */
static int check_bytes(struct reader *r, struct str text)
{
	if (str_starts_with(text, "\xef\xbb\xbf"))
		return fail_on(r, 1, ERR_INVALID, "a byte order mark: not supported in this file");
	for (int line = 1; text.len > 0;) {
		size_t len = str_utf8_char(text.data, text.len);
		unsigned char c = (unsigned char)text.data[0];
		bool ends_line = c == '\n' || (c == '\r' && text.len > 1 && text.data[1] == '\n');
		if (len == 0)
			return fail_on(r, line, ERR_INVALID, "bytes that are not UTF-8");
		/* The C1 ones are \xc2\x80 to \xc2\x9f. */
		if ((c < 0x20 && c != '\t' && !ends_line) || c == 0x7f ||
			(c == 0xc2 && (unsigned char)text.data[1] < 0xa0))
			return fail_on(r, line, ERR_INVALID, "a control character");
		line += c == '\n';
		text.data += len;
		text.len -= len;
	}
	return 0;
}

static void skip_spaces(struct reader *r)
{
	while (r->at < r->end && *r->at == ' ')
		r->at++;
}

/* Goes to the next line that has more than blanks and a comment; has_line is false at the end. */
static int next_line(struct reader *r)
{
	struct str line;
	r->has_line = false;
	while (str_next(&r->rest, '\n', &line)) {
		r->line++;
		if (line.len > 0 && line.data[line.len - 1] == '\r')
			line.len--;
		r->at = line.data;
		r->end = line.data + line.len;
		skip_spaces(r);
		struct str content = str_trim((struct str){ r->at, (size_t)(r->end - r->at) });
		if (content.len == 0 || content.data[0] == '#')
			continue;
		r->has_line = true;
		r->indent = (size_t)(r->at - line.data);
		return *r->at == '\t' ? fail_tab(r) : 0;
	}
	return 0;
}

static bool is_blank_or_end(const struct reader *r, const char *p)
{
	return p >= r->end || *p == ' ' || *p == '\t';
}

/* Nothing but a comment may follow on this line. */
static int expect_end(struct reader *r)
{
	const char *before = r->at;
	skip_spaces(r);
	if (r->at == r->end || (*r->at == '#' && r->at > before))
		return 0;
	if (*r->at == '\t')
		return fail_tab(r);
	return fail_here(r, "something follows the value");
}

static bool is_marker(const struct reader *r, const char *marker)
{
	return r->indent == 0 && r->end - r->at >= 3 && memcmp(r->at, marker, 3) == 0 &&
	       is_blank_or_end(r, r->at + 3);
}

static bool is_item(const struct reader *r)
{
	return *r->at == '-' && is_blank_or_end(r, r->at + 1);
}

/* -- scalars -- */

static int read_single_quoted(struct reader *r, char *out)
{
	for (r->at++; r->at < r->end; r->at++) {
		if (*r->at == '\t')
			return fail_tab(r);
		if (*r->at == '\'') {
			r->at++;
			if (r->at == r->end || *r->at != '\'')
				return 0;
		}
		*out++ = *r->at;
	}
	return fail_here(r, "text in quotes must end on the same line");
}

static int read_double_quoted(struct reader *r, char *out)
{
	static const char names[] = "\"\\/nt", meanings[] = "\"\\/\n\t";
	for (r->at++; r->at < r->end; r->at++) {
		if (*r->at == '\t')
			return fail_tab(r);
		if (*r->at == '"') {
			r->at++;
			return 0;
		}
		if (*r->at != '\\') {
			*out++ = *r->at;
			continue;
		}
		const char *found = ++r->at < r->end ? strchr(names, *r->at) : NULL;
		if (!found)
			return fail_unsupported(r, "an escape other than \\\" \\\\ \\/ \\n \\t");
		*out++ = meanings[found - names];
	}
	return fail_here(r, "text in quotes must end on the same line");
}

static int read_quoted(struct reader *r, const char **text)
{
	/* Unquoted it is only shorter. */
	char *out = arena_alloc(r->arena, (size_t)(r->end - r->at) + 1);
	if ((*r->at == '"' ? read_double_quoted : read_single_quoted)(r, out) < 0)
		return -1;
	*text = out;
	return 0;
}

/* What a plain scalar or key may not begin with. */
static int check_first(struct reader *r)
{
	static const struct {
		char first;
		const char *what;
	} unsupported[] = {
		{ '&', "an anchor (&)" },
		{ '*', "an alias (*)" },
		{ '!', "a tag (!)" },
		{ '|', "text of several lines (|)" },
		{ '>', "text of several lines (>)" },
		{ '{', "a map in braces ({})" },
		{ '[', "a list in brackets here" },
	};
	for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++) {
		if (*r->at == unsupported[i].first)
			return fail_unsupported(r, unsupported[i].what);
	}
	if (*r->at == '?' && is_blank_or_end(r, r->at + 1))
		return fail_unsupported(r, "a key that begins with '?'");
	if (is_item(r))
		return fail_here(r, "a list must begin on its own line");
	if (strchr(",]}%@`#", *r->at) || (*r->at == ':' && is_blank_or_end(r, r->at + 1)))
		return fail_here(r, "text that begins with '%c' must be in quotes", *r->at);
	return 0;
}

static bool is_null(const char *text)
{
	static const char *const names[] = { "", "~", "null", "Null", "NULL" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(text, names[i]) == 0)
			return true;
	}
	return false;
}

/* Up to a comment or the line's end; in brackets up to ',' or ']' as well. */
static int read_plain(struct reader *r, bool in_brackets, struct yaml_value *v)
{
	const char *first = r->at, *last = r->at;
	if (check_first(r) < 0)
		return -1;
	for (; r->at < r->end; r->at++) {
		if (*r->at == '\t')
			return fail_tab(r);
		if (*r->at == '#' && r->at > first && r->at[-1] == ' ')
			break;
		if (in_brackets && (*r->at == ',' || *r->at == ']'))
			break;
		if (in_brackets && strchr("[{}", *r->at))
			return fail_here(r, "text that contains '%c' must be in quotes", *r->at);
		if (*r->at == ':' && (is_blank_or_end(r, r->at + 1) ||
					     (in_brackets && strchr(",[]{}", r->at[1]))))
			return fail_here(r, "a map is not allowed here; text that contains ': ' "
					    "must be in quotes");
		if (*r->at != ' ')
			last = r->at + 1;
	}
	r->at = last; /* what follows tells a comment by the space before it */
	v->text = arena_bytes(r->arena, first, (size_t)(last - first));
	v->kind = is_null(v->text) ? YAML_NULL : YAML_SCALAR;
	return 0;
}

static int read_scalar(struct reader *r, bool in_brackets, struct yaml_value *v)
{
	if (*r->at != '"' && *r->at != '\'')
		return read_plain(r, in_brackets, v);
	v->kind = YAML_SCALAR;
	v->is_quoted = true;
	return read_quoted(r, &v->text);
}

/* -- lists and maps -- */

/* NULL: an error. */
static struct yaml_value *new_value(struct reader *r)
{
	struct yaml_value *v;
	if (++r->value_count > YAML_VALUES_MAX) {
		fail_on(r, r->line, ERR_LIMIT, "more than 65536 values");
		return NULL;
	}
	v = arena_alloc(r->arena, sizeof *v);
	v->line = r->line;
	v->text = "";
	return v;
}

/* "[a, b]" after its bracket. */
static int read_brackets(struct reader *r, struct yaml_value *list)
{
	struct yaml_value **link = &list->first;
	list->kind = YAML_LIST;
	for (;;) {
		skip_spaces(r);
		if (r->at < r->end && *r->at == ']') {
			r->at++;
			return 0;
		}
		if (r->at == r->end || *r->at == '#')
			return fail_here(r, "a list in brackets must end on the same line");
		if (!(*link = new_value(r)) || read_scalar(r, true, *link) < 0)
			return -1;
		list->count++;
		link = &(*link)->next;
		skip_spaces(r);
		if (r->at < r->end && *r->at == ',')
			r->at++;
		else if (r->at < r->end && *r->at != ']' && *r->at != '#')
			return fail_here(r, "',' or ']' expected");
	}
}

/* What is indented under a value that was whole already. */
static int check_no_more(struct reader *r, size_t indent)
{
	if (r->has_line && r->indent > indent)
		return fail_here(r, "indented more than the line it follows; a value of several "
				    "lines: not supported in this file");
	return 0;
}

/* Lines "- x" of the current indentation. */
static int read_items(struct reader *r, struct yaml_value *list)
{
	struct yaml_value **link = &list->first;
	size_t indent = r->indent;
	list->kind = YAML_LIST;
	while (r->has_line && r->indent == indent && is_item(r)) {
		r->at++;
		skip_spaces(r);
		if (r->at < r->end && *r->at == '\t')
			return fail_tab(r);
		if (r->at == r->end || *r->at == '#')
			return fail_here(r, "an item without a value");
		if (is_item(r))
			return fail_unsupported(r, "a list in a list");
		if (!(*link = new_value(r)) || read_scalar(r, false, *link) < 0 ||
			expect_end(r) < 0 || next_line(r) < 0)
			return -1;
		list->count++;
		link = &(*link)->next;
		if (check_no_more(r, indent) < 0)
			return -1;
	}
	return 0;
}

/* Takes the key and its colon off the line. */
static int read_key(struct reader *r, const char **key)
{
	if (*r->at == '"' || *r->at == '\'') {
		if (read_quoted(r, key) < 0)
			return -1;
	} else {
		const char *first = r->at, *last = r->at;
		if (check_first(r) < 0)
			return -1;
		for (; r->at < r->end; r->at++) {
			if (*r->at == '\t')
				return fail_tab(r);
			if ((*r->at == ':' && is_blank_or_end(r, r->at + 1)) ||
				(*r->at == '#' && r->at[-1] == ' '))
				break;
			if (*r->at != ' ')
				last = r->at + 1;
		}
		*key = arena_bytes(r->arena, first, (size_t)(last - first));
		if (strcmp(*key, "<<") == 0)
			return fail_unsupported(r, "a merge key (<<)");
	}
	skip_spaces(r);
	if (r->at == r->end || *r->at != ':' || !is_blank_or_end(r, r->at + 1))
		return fail_here(r, "'key: value' expected");
	if (strlen(*key) > YAML_KEY_MAX)
		return fail_on(r, r->line, ERR_LIMIT, "a key of more than 128 bytes");
	r->at++;
	skip_spaces(r);
	return 0;
}

/* What follows "key:": on the same line, or indented below. */
static int read_member(struct reader *r, size_t indent, struct yaml_value *v)
{
	if (r->at < r->end && *r->at == '\t')
		return fail_tab(r);
	if (r->at < r->end && *r->at != '#') {
		if (*r->at == '[') {
			r->at++;
			if (read_brackets(r, v) < 0)
				return -1;
		} else if (read_scalar(r, false, v) < 0) {
			return -1;
		}
		if (expect_end(r) < 0 || next_line(r) < 0)
			return -1;
		return check_no_more(r, indent);
	}
	if (next_line(r) < 0)
		return -1;
	/* A list may stand right below its key. */
	if (r->has_line && is_item(r) && r->indent >= indent)
		return read_items(r, v);
	if (r->has_line && r->indent > indent)
		return read_map(r, v);
	return 0; /* null */
}

static int read_map(struct reader *r, struct yaml_value *map)
{
	struct yaml_value **link = &map->first, *member = NULL;
	size_t indent = r->indent;
	struct map known;
	map->kind = YAML_MAP;
	map_init(&known, r->arena);
	while (r->has_line && r->indent == indent) {
		if (is_marker(r, "---") || is_marker(r, "..."))
			return fail_unsupported(r, "more than one document");
		if (is_item(r))
			return fail_here(r, "'key: value' expected, found an item of a list");
		if (!(member = new_value(r)) || read_key(r, &member->key) < 0)
			return -1;
		struct yaml_value *other = map_set(&known, str_from(member->key), member);
		if (r->depth == YAML_DEPTH_MAX)
			return fail_on(r, r->line, ERR_LIMIT, "maps nested deeper than 8");
		r->path[r->depth++] = member->key;
		if (other)
			return fail_here(r, "already given in line %d", other->line);
		if (read_member(r, indent, member) < 0)
			return -1;
		r->depth--;
		*link = member;
		link = &member->next;
		map->count++;
	}
	if (r->has_line && r->indent > indent)
		return fail_here(r, "indented more than the line it follows");
	return 0;
}

int yaml_read(struct str text, struct arena *arena, struct yaml_value **root, struct error *err)
{
	struct reader r = { .rest = text, .arena = arena, .err = err };
	struct yaml_value *v = NULL;
	if (text.len > YAML_MAX)
		return fail(err, ERR_LIMIT, "more than 1 MiB of YAML");
	if (check_bytes(&r, text) < 0 || next_line(&r) < 0 || !(v = new_value(&r)))
		return -1;
	if (r.has_line && *r.at == '%' && r.indent == 0)
		return fail_unsupported(&r, "a directive (%)");
	if (r.has_line && is_marker(&r, "---")) {
		r.at += 3;
		if (expect_end(&r) < 0 || next_line(&r) < 0)
			return -1;
	}
	if (r.has_line) {
		if (r.indent > 0)
			return fail_here(&r, "the first line must not be indented");
		if ((is_item(&r) ? read_items : read_map)(&r, v) < 0)
			return -1;
	}
	if (r.has_line)
		return is_marker(&r, "---") || is_marker(&r, "...")
			       ? fail_unsupported(&r, "more than one document")
			       : fail_here(&r, "indented less than the lines it follows");
	*root = v;
	return 0;
}
