#include "format/packages/requirements.h"
#include <ctype.h>
#include "base/buf.h"
#include "format/packages/pep508.h"

/* Four megabytes of one-letter lines would otherwise become gigabytes. */
#define COUNT_MAX 20000
#define EXPANDED_MAX 65536 /* of one line with variables */

struct parser {
	struct arena *arena;
	requirement_list *list;
	requirement_variable_fn *find; /* NULL: variables are refused */
	struct error *err;
	/* The logical line that is being read: */
	int line;
	struct str text;
	struct str shown; /* without the values of variables */
};

bool requirement_name_is_valid(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool is_end = i == 0 || i + 1 == name.len;
		if (!isalnum((unsigned char)c) && (is_end || (c != '-' && c != '_' && c != '.')))
			return false;
	}
	return name.len > 0;
}

const char *requirement_normalize_name(struct arena *arena, struct str name)
{
	char *out = arena_alloc(arena, name.len + 1);
	size_t len = 0;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		if (c == '_' || c == '.')
			c = '-';
		if (c == '-' && len > 0 && out[len - 1] == '-')
			continue;
		out[len++] = (char)tolower((unsigned char)c);
	}
	out[len] = '\0';
	return out;
}

static int requirements_refuse(const struct parser *p, const char *reason)
{
	char shown[96];
	str_printable(shown, sizeof shown, p->shown);
	return fail(p->err, ERR_INVALID, "line %d: '%s' is not %s: %s", p->line, shown,
		p->text.data[0] == '-' ? "an option of requirement files" : "a requirement",
		reason);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Whether c opens or closes a quotation. */
static bool is_quote(char c, char *quote)
{
	if (*quote ? c != *quote : c != '"' && c != '\'')
		return false;
	*quote = *quote ? '\0' : c;
	return true;
}

/* Takes the next word off *rest: blanks end it, unless they are in quotes, which go. */
static bool next_word(struct arena *arena, struct str *rest, struct str *word, bool *is_closed)
{
	char *out, quote = '\0';
	size_t end = 0, len = 0;
	*rest = str_trim(*rest);
	if (rest->len == 0)
		return false;
	for (; end < rest->len && (quote || !is_blank(rest->data[end])); end++)
		is_quote(rest->data[end], &quote);
	*is_closed = !quote;
	quote = '\0';
	out = arena_alloc(arena, end + 1);
	for (size_t at = 0; at < end; at++)
		if (!is_quote(rest->data[at], &quote))
			out[len++] = rest->data[at];
	*word = (struct str){ out, len };
	*rest = (struct str){ rest->data + end, rest->len - end };
	return true;
}

static int add_hash(struct parser *p, struct requirement *req, struct str value)
{
	static const struct {
		const char *name;
		size_t digits;
	} kinds[] = { { "sha256", 64 }, { "sha384", 96 }, { "sha512", 128 } };
	struct str name, digest;
	size_t i;
	char *text;
	str_cut(value, ':', &name, &digest);
	for (i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (name.len == 6 && strncasecmp(name.data, kinds[i].name, 6) == 0)
			break;
	}
	if (i == sizeof kinds / sizeof *kinds)
		return requirements_refuse(
			p, "a hash is --hash=sha256:<digest> (or sha384, sha512)");
	text = arena_bytes(p->arena, value.data, value.len);
	for (char *c = text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (digest.len != kinds[i].digits ||
		strspn(text + 7, "0123456789abcdef") != kinds[i].digits)
		return requirements_refuse(p, "the digest of its hash isn't complete");
	vec_push(p->arena, &req->hashes, text);
	return 0;
}

/* What follows a requirement: --hash=… or --hash …, any number of them. */
static int parse_hashes(struct parser *p, struct str rest, struct requirement *req)
{
	struct str word, value;
	bool is_closed;
	while (next_word(p->arena, &rest, &word, &is_closed)) {
		if (!is_closed)
			return requirements_refuse(p, "a quote isn't closed");
		if (str_is(word, "--hash")) {
			if (!next_word(p->arena, &rest, &value, &is_closed) || !is_closed)
				return requirements_refuse(p, "--hash needs a value");
		} else if (str_starts_with(word, "--hash=")) {
			value = (struct str){ word.data + 7, word.len - 7 };
		} else {
			return requirements_refuse(p, "only --hash may follow a requirement");
		}
		if (add_hash(p, req, value) < 0)
			return -1;
	}
	return 0;
}

static bool has_scheme(struct str text)
{
	const char *end = memmem(text.data, text.len, "://", 3);
	for (const char *c = text.data; end && c < end; c++)
		if (!isalnum((unsigned char)*c) && !strchr("+.-", *c))
			return false;
	return end && isalpha((unsigned char)text.data[0]);
}

static bool is_file_url(struct str text)
{
	return text.len >= 5 && strncasecmp(text.data, "file:", 5) == 0;
}

static bool is_archive(struct str text)
{
	static const char *const endings[] = { ".whl", ".zip", ".tar.gz", ".tgz", ".tar",
		".tar.bz2", ".tbz", ".tar.xz", ".txz", ".tar.lz", ".tlz", ".tar.lzma", ".tar.zst",
		".tar.Z" };
	const char *bracket = memchr(text.data, '[', text.len);
	if (bracket)
		text = str_trim((struct str){ text.data, (size_t)(bracket - text.data) });
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		size_t len = strlen(endings[i]);
		if (text.len > len && strncasecmp(text.data + text.len - len, endings[i], len) == 0)
			return true;
	}
	return false;
}

/* A path as pip and uv take it for one: without a look at the disk, so that the answer is the same
 * everywhere. */
static bool is_path(struct str text)
{
	struct str head, tail;
	str_cut(text, ';', &head, &tail);
	head = str_trim(head);
	return head.len > 0 && (head.data[0] == '.' || head.data[0] == '~' || is_file_url(head) ||
				       memchr(head.data, '/', head.len) || is_archive(head));
}

/* A URL or path is followed by nothing, or by "; marker" after a blank. */
static int check_tail(const struct parser *p, struct str body)
{
	const char *reason;
	size_t at = 0;
	struct str rest;
	while (at < body.len && !is_blank(body.data[at]))
		at++;
	rest = str_trim((struct str){ body.data + at, body.len - at });
	if (rest.len == 0)
		return 0;
	if (rest.data[0] != ';')
		return requirements_refuse(
			p, "a URL or path has no blanks; only '; marker' may follow it");
	rest = str_trim((struct str){ rest.data + 1, rest.len - 1 });
	if (!pep508_marker_is_valid(rest, &reason))
		return requirements_refuse(p, reason);
	return 0;
}

static int parse_body(struct parser *p, struct str body, struct requirement *req)
{
	struct pep508 parsed;
	const char *reason;
	req->specifier = "";
	if (has_scheme(body) || is_file_url(body)) {
		req->kind = is_file_url(body) ? REQUIREMENT_PATH : REQUIREMENT_URL;
		return check_tail(p, body);
	}
	bool is_requirement = pep508_parse(body, &parsed, &reason);
	/* "name @ url" has slashes, too; "x.zip" would be a name. */
	if ((!is_requirement || parsed.url.len == 0) && is_path(body)) {
		req->kind = REQUIREMENT_PATH;
		return check_tail(p, body);
	}
	if (!is_requirement)
		return requirements_refuse(p, reason);
	req->name = requirement_normalize_name(p->arena, parsed.name);
	req->is_pinned = parsed.is_pinned;
	if (parsed.marker.len > 0)
		req->marker = arena_bytes(p->arena, parsed.marker.data, parsed.marker.len);
	if (parsed.url.len == 0) {
		req->kind = REQUIREMENT_PACKAGE;
		req->specifier = arena_bytes(p->arena, parsed.specifier.data, parsed.specifier.len);
	} else {
		req->kind = has_scheme(parsed.url) && !is_file_url(parsed.url) ? REQUIREMENT_URL
									       : REQUIREMENT_PATH;
	}
	return 0;
}

/* Where the first word that begins with '-' begins: options follow a requirement there. In quotes
 * it counts, too, as in pip: what two readers could take in two ways is then refused, because the
 * marker isn't closed. */
static size_t find_options(struct str text)
{
	for (size_t at = 1; at < text.len; at++) {
		if (text.data[at] == '-' && is_blank(text.data[at - 1]))
			return at;
	}
	return text.len;
}

struct option {
	const char *name;
	char letter; /* or 0 */
	bool has_value;
	enum requirement_kind kind;
};
static const struct option options[] = {
	{ "--requirement", 'r', true, REQUIREMENT_OPTION },
	{ "--constraint", 'c', true, REQUIREMENT_OPTION },
	{ "--editable", 'e', true, REQUIREMENT_EDITABLE },
	{ "--index-url", 'i', true, REQUIREMENT_OPTION },
	{ "--pypi-url", 0, true, REQUIREMENT_OPTION },
	{ "--extra-index-url", 0, true, REQUIREMENT_OPTION },
	{ "--no-index", 0, false, REQUIREMENT_OPTION },
	{ "--find-links", 'f', true, REQUIREMENT_OPTION },
	{ "--no-binary", 0, true, REQUIREMENT_OPTION },
	{ "--only-binary", 0, true, REQUIREMENT_OPTION },
	{ "--prefer-binary", 0, false, REQUIREMENT_OPTION },
	{ "--require-hashes", 0, false, REQUIREMENT_OPTION },
	{ "--pre", 0, false, REQUIREMENT_OPTION },
	{ "--trusted-host", 0, true, REQUIREMENT_OPTION },
	{ "--use-feature", 0, true, REQUIREMENT_OPTION },
};

/* Takes the option off *rest; what is left is its value. */
static const struct option *take_option(struct str *rest, bool *is_joined)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		const struct option *option = &options[i];
		bool is_long = str_starts_with(*rest, option->name);
		bool is_short = !is_long && rest->len >= 2 && option->letter &&
				rest->data[0] == '-' && rest->data[1] == option->letter;
		size_t len = is_long ? strlen(option->name) : 2;
		char next = rest->len > len ? rest->data[len] : ' ';
		if ((!is_long && !is_short) || (is_long && next != '=' && !is_blank(next)))
			continue;
		*is_joined = !is_blank(next);
		if (is_long && next == '=')
			len++;
		*rest = str_trim((struct str){ rest->data + len, rest->len - len });
		return option;
	}
	return NULL;
}

static int parse_option(struct parser *p, struct requirement *req)
{
	struct str rest = p->text, word;
	bool is_joined, is_closed;
	const struct option *option = take_option(&rest, &is_joined);
	if (!option)
		return requirements_refuse(p, "unknown option");
	req->kind = option->kind;
	req->option = option->name;
	req->specifier = "";
	if (!option->has_value)
		return rest.len == 0 && !is_joined
			       ? 0
			       : requirements_refuse(p,
					 "it takes no value, and each option needs its own line");
	if (!next_word(p->arena, &rest, &word, &is_closed) || word.len == 0)
		return requirements_refuse(p, "its value is missing");
	if (!is_closed)
		return requirements_refuse(p, "a quote isn't closed");
	req->value = arena_bytes(p->arena, word.data, word.len);
	/* A second option on the line would not be judged. */
	rest = str_trim(rest);
	if (rest.len > 0 && (option->kind != REQUIREMENT_EDITABLE || rest.data[0] == '-' ||
				    find_options(rest) < rest.len))
		return requirements_refuse(p, "each option needs its own line");
	return 0;
}

static bool has_variable(struct str text)
{
	return memmem(text.data, text.len, "${", 2);
}

static int check_bytes(struct str line, int number, struct error *err);

/* The variable that begins at text, or a name of length 0: pip leaves other forms as they are. */
static struct str variable_at(struct str text)
{
	size_t len = 0;
	if (!str_starts_with(text, "${"))
		return (struct str){ text.data, 0 };
	while (len + 2 < text.len &&
		strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", text.data[len + 2]))
		len++;
	if (len + 2 >= text.len || text.data[len + 2] != '}')
		len = 0;
	return (struct str){ text.data + 2, len };
}

static int expand(struct parser *p)
{
	struct str rest = p->text;
	struct error ignored;
	if (!has_variable(p->text))
		return 0;
	if (!p->find)
		return requirements_refuse(p, "variables such as ${NAME} are not expanded");
	auto_buf struct buf out = buf_empty(EXPANDED_MAX);
	while (rest.len > 0) {
		struct str name = variable_at(rest);
		size_t used = name.len > 0 ? name.len + 3 : 1;
		if (name.len > 0) {
			const char *value = p->find(arena_bytes(p->arena, name.data, name.len));
			if (!value)
				return fail_hint(p->err, ERR_INVALID, "export the variable",
					"line %d: the variable %.*s is not set", p->line,
					(int)name.len, name.data);
			if (check_bytes(str_from(value), p->line, &ignored) < 0)
				return fail(p->err, ERR_INVALID,
					"line %d: the value of the variable %.*s is not text",
					p->line, (int)name.len, name.data);
			buf_text(&out, value);
		} else {
			buf_char(&out, rest.data[0]);
		}
		rest = (struct str){ rest.data + used, rest.len - used };
	}
	if (out.overflow)
		return fail(p->err, ERR_LIMIT, "line %d: longer than %d bytes with its variables",
			p->line, EXPANDED_MAX);
	p->text = str_trim((struct str){ arena_bytes(p->arena, out.data, out.len), out.len });
	if (p->text.len == 0)
		return requirements_refuse(p, "the line is empty");
	/* uv would fill these in, from another environment. */
	if (has_variable(p->text))
		return requirements_refuse(p, "it still contains ${NAME} after expansion");
	return 0;
}

static int parse_logical(struct parser *p)
{
	struct requirement req = { .line = p->line };
	struct str text;
	if (p->list->count == COUNT_MAX)
		return fail(p->err, ERR_LIMIT, "line %d: more than %d requirements", p->line,
			COUNT_MAX);
	p->shown = p->text;
	if (expand(p) < 0)
		return -1;
	text = p->text;
	req.text = arena_bytes(p->arena, text.data, text.len);
	if (text.data[text.len - 1] == '\\')
		return requirements_refuse(p, "the last line ends with a backslash");
	if (text.data[0] == '-') {
		if (parse_option(p, &req) < 0)
			return -1;
	} else {
		size_t at = find_options(text);
		if (parse_body(p, str_trim((struct str){ text.data, at }), &req) < 0 ||
			parse_hashes(p, (struct str){ text.data + at, text.len - at }, &req) < 0)
			return -1;
	}
	req.has_variables = has_variable(p->shown);
	req.shown = req.kind == REQUIREMENT_PACKAGE
			    ? req.text
			    : arena_bytes(p->arena, p->shown.data, p->shown.len);
	vec_push(p->arena, p->list, req);
	return 0;
}

/* Refuses bytes that some readers take for the end of a line: they could hide an option. */
static int check_bytes(struct str line, int number, struct error *err)
{
	size_t valid = str_utf8_prefix(line.data, line.len);
	if (valid < line.len)
		return fail(err, ERR_INVALID, "line %d: byte %zu is not UTF-8", number, valid + 1);
	for (size_t i = 0; i < line.len; i++) {
		const unsigned char *c = (const unsigned char *)line.data + i;
		bool is_c1 = *c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f;
		bool is_separator = *c == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9);
		bool is_mark = *c == 0xef && c[1] == 0xbb && c[2] == 0xbf;
		if ((*c < 0x20 && *c != '\t') || *c == 0x7f || is_c1 || is_separator || is_mark)
			return fail(err, ERR_INVALID, "line %d: byte %zu is a control character",
				number, i + 1);
	}
	return 0;
}

/* A '#' at the beginning or after a blank, and all that follows. */
static struct str drop_comment(struct str line)
{
	for (size_t i = 0; i < line.len; i++) {
		if (line.data[i] == '#' && (i == 0 || is_blank(line.data[i - 1])))
			return (struct str){ line.data, i };
	}
	return line;
}

static bool is_comment(struct str line)
{
	line = str_trim(line);
	return line.len > 0 && line.data[0] == '#';
}

/* Takes the next logical line off *rest: lines joined by backslashes, a comment line ends it. The
 * memory is joined's. */
static int next_logical(struct parser *p, struct str *rest, int *number, char *joined)
{
	struct str line;
	size_t len = 0;
	p->line = *number + 1;
	while (str_next(rest, '\n', &line)) {
		bool goes_on;
		++*number;
		if (line.len > 0 && line.data[line.len - 1] == '\r')
			line.len--;
		if (check_bytes(line, *number, p->err) < 0)
			return -1;
		goes_on = line.len > 0 && line.data[line.len - 1] == '\\' && !is_comment(line);
		/* pip joins the next line to the comment, uv reads it for itself. */
		if (goes_on && drop_comment(line).len < line.len)
			return fail(p->err, ERR_INVALID, "line %d: a comment ends with a backslash",
				*number);
		if (is_comment(line))
			joined[len++] = ' '; /* so that it stays a comment when it is appended */
		memcpy(joined + len, line.data, line.len - goes_on);
		len += line.len - goes_on;
		if (!goes_on)
			break;
	}
	p->text = str_trim(drop_comment((struct str){ joined, len }));
	return 0;
}

int requirements_parse(
	struct str text, struct arena *arena, requirement_list *list, struct error *err)
{
	return requirements_parse_with(text, NULL, arena, list, err);
}

int requirements_parse_with(struct str text, requirement_variable_fn *find, struct arena *arena,
	requirement_list *list, struct error *err)
{
	requirement_list parsed = { 0 };
	struct parser p = { .arena = arena, .list = &parsed, .find = find, .err = err };
	int number = 0;
	char *joined;
	if (text.len > REQUIREMENTS_MAX)
		return fail(err, ERR_LIMIT, "requirements of %zu bytes; the limit is %zu", text.len,
			REQUIREMENTS_MAX);
	if (str_starts_with(text, "\xef\xbb\xbf"))
		text = (struct str){ text.data + 3, text.len - 3 };
	/* Each comment line may need one byte more than it has, and has at least one. */
	joined = arena_alloc(arena, 2 * text.len + 1);
	while (text.len > 0) {
		if (next_logical(&p, &text, &number, joined) < 0 ||
			(p.text.len > 0 && parse_logical(&p) < 0))
			return -1;
	}
	*list = parsed;
	return 0;
}
