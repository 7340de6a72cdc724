#include "format/packages/pep508.h"
#include <ctype.h>
#include "format/packages/requirements.h"

/* Keeps the recursion far from the end of the stack. */
#define MARKER_DEPTH_MAX 32
#define VERSION_MAX 255

struct cursor {
	const char *at, *end;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static char pep508_peek(const struct cursor *c)
{
	return c->at < c->end ? *c->at : '\0';
}

static void skip_blanks(struct cursor *c)
{
	while (pep508_peek(c) == ' ' || pep508_peek(c) == '\t')
		c->at++;
}

static bool take_char(struct cursor *c, char wanted)
{
	if (c->at == c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

static struct str since(const char *start, const struct cursor *c)
{
	return (struct str){ start, (size_t)(c->at - start) };
}

#define DIGITS "0123456789"

/* Passes over [-_.]? one of the words ([-_.]? digits)?, when it is there. */
static const char *skip_suffix(const char *at, const char *const *words)
{
	const char *after = at + strspn(at, "-_.");
	for (; after - at <= 1 && *words; words++) {
		size_t len = strlen(*words);
		if (strncasecmp(after, *words, len) != 0)
			continue;
		after += len;
		/* "1.0a.dev1": the separator belongs to a number, or to what follows. */
		const char *number = after + (*after && strchr("-_.", *after));
		size_t digits = strspn(number, DIGITS);
		return digits > 0 ? number + digits : after;
	}
	return at;
}

struct version {
	int segments;
	bool is_wildcard, has_local;
};

/* A version by PEP 440. */
static bool parse_version(struct str text, struct version *version)
{
	static const char *const pre[] = { "alpha", "beta", "preview", "pre", "rc", "a", "b", "c",
		NULL };
	static const char *const post[] = { "post", "rev", "r", NULL };
	static const char *const dev[] = { "dev", NULL };
	char copy[VERSION_MAX + 1];
	const char *at = copy;
	size_t len;
	*version = (struct version){ .segments = 1 };
	if (!str_format(copy, sizeof copy, "%.*s", (int)text.len, text.data))
		return false;
	at += *at == 'v' || *at == 'V';
	at += len = strspn(at, DIGITS);
	if (len > 0 && *at == '!')
		at += 1 + (len = strspn(at + 1, DIGITS));
	if (len == 0)
		return false;
	for (; *at == '.' && (len = strspn(at + 1, DIGITS)); at += 1 + len)
		version->segments++;
	version->is_wildcard = strcmp(at, ".*") == 0;
	if (version->is_wildcard)
		return true;
	at = skip_suffix(at, pre);
	len = *at == '-' ? strspn(at + 1, DIGITS) : 0;
	at = len > 0 ? at + 1 + len : skip_suffix(at, post);
	at = skip_suffix(at, dev);
	version->has_local = *at == '+';
	while (*at && strchr(version->has_local ? "+-_." : "", *at)) {
		len = 1;
		while (isalnum((unsigned char)at[len]))
			len++;
		if (len == 1)
			return false;
		at += len;
		if (*at == '+')
			return false;
	}
	return *at == '\0';
}

static const char *take_operator(struct cursor *c)
{
	/* Longest first. */
	static const char *const operators[] = { "===", "==", "~=", "!=", "<=", ">=", "<", ">" };
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
		size_t len = strlen(operators[i]);
		if ((size_t)(c->end - c->at) >= len && memcmp(c->at, operators[i], len) == 0) {
			c->at += len;
			return operators[i];
		}
	}
	return NULL;
}

static bool take_specifier(struct cursor *c, bool *is_pin, const char **reason)
{
	const char *comparison = take_operator(c), *start;
	*reason = "a version specifier like >=1.2 is expected here";
	if (!comparison)
		return false;
	skip_blanks(c);
	start = c->at;
	while (c->at < c->end && !strchr(" \t;),", *c->at))
		c->at++;
	struct str version = since(start, c);
	bool is_equality = strcmp(comparison, "==") == 0 || strcmp(comparison, "!=") == 0;
	struct version parsed = { 0 };
	/* pip and uv differ about whether a comma is part of the version. */
	*reason = "=== needs a version, and no comma after it";
	*is_pin = true;
	if (strcmp(comparison, "===") == 0)
		return version.len > 0 && pep508_peek(c) != ',';
	*reason = "that is not a version by PEP 440";
	if (!parse_version(version, &parsed))
		return false;
	*is_pin = strcmp(comparison, "==") == 0 && !parsed.is_wildcard;
	*reason = "a version with .* or a local version (+...) needs == or !=";
	if ((parsed.is_wildcard || parsed.has_local) && !is_equality)
		return false;
	*reason = "~= needs at least two numbers: ~=1.2";
	return strcmp(comparison, "~=") != 0 || parsed.segments >= 2;
}

static bool take_specifiers(struct cursor *c, bool *is_pinned, const char **reason)
{
	bool has_parentheses = take_char(c, '('), is_pin = false;
	int count = 0;
	skip_blanks(c);
	while (pep508_peek(c) && strchr("=<>!~", pep508_peek(c))) {
		if (!take_specifier(c, &is_pin, reason))
			return false;
		count++;
		skip_blanks(c);
		if (!take_char(c, ','))
			break;
		skip_blanks(c);
	}
	if (has_parentheses && !take_char(c, ')')) {
		*reason = "a closing parenthesis is missing after the specifiers";
		return false;
	}
	*is_pinned = count == 1 && is_pin;
	return true;
}

static bool take_name(struct cursor *c, struct str *name)
{
	const char *start = c->at;
	while (is_word(pep508_peek(c)) || pep508_peek(c) == '-' || pep508_peek(c) == '.')
		c->at++;
	*name = since(start, c);
	return requirement_name_is_valid(*name);
}

/* What stands between '[' and ']': names with commas between them, or nothing. */
static bool take_extras(struct cursor *c, struct str *extras)
{
	const char *start = c->at;
	struct str name;
	skip_blanks(c);
	while (pep508_peek(c) != ']') {
		if (!take_name(c, &name))
			return false;
		skip_blanks(c);
		if (!take_char(c, ','))
			break;
		skip_blanks(c);
		if (pep508_peek(c) == ']')
			return false;
	}
	*extras = since(start, c);
	return take_char(c, ']');
}

static bool take_marker_value(struct cursor *c)
{
	static const char *const variables[] = { "python_version", "python_full_version", "os_name",
		"os.name", "sys_platform", "sys.platform", "platform_release", "platform_system",
		"platform_version", "platform.version", "platform_machine", "platform.machine",
		"platform_python_implementation", "platform.python_implementation",
		"python_implementation", "implementation_name", "implementation_version", "extra",
		"extras", "dependency_groups" };
	const char *start = c->at;
	char quote = pep508_peek(c);
	if (quote == '"' || quote == '\'') {
		const char *close = memchr(start + 1, quote, (size_t)(c->end - start - 1));
		if (close)
			c->at = close + 1;
		return close;
	}
	while (is_word(pep508_peek(c)) || pep508_peek(c) == '.')
		c->at++;
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		if (str_is(since(start, c), variables[i]))
			return true;
	}
	return false;
}

static bool take_word(struct cursor *c, const char *word)
{
	size_t len = strlen(word);
	size_t left = (size_t)(c->end - c->at);
	if (left < len || memcmp(c->at, word, len) != 0 || (left > len && is_word(c->at[len])))
		return false;
	c->at += len;
	return true;
}

static bool take_marker_operator(struct cursor *c)
{
	if (take_operator(c) || take_word(c, "in"))
		return true;
	if (!take_word(c, "not") || (pep508_peek(c) != ' ' && pep508_peek(c) != '\t'))
		return false;
	skip_blanks(c);
	return take_word(c, "in");
}

static bool take_marker(struct cursor *c, int depth, const char **reason)
{
	do {
		skip_blanks(c);
		if (take_char(c, '(')) {
			*reason = "its marker is nested too deeply";
			if (depth == MARKER_DEPTH_MAX || !take_marker(c, depth + 1, reason))
				return false;
			*reason = "a closing parenthesis is missing in its marker";
			if (!take_char(c, ')'))
				return false;
		} else {
			*reason = "its marker isn't made of comparisons like python_version < "
				  "\"3.12\"";
			if (!take_marker_value(c))
				return false;
			skip_blanks(c);
			if (!take_marker_operator(c))
				return false;
			skip_blanks(c);
			if (!take_marker_value(c))
				return false;
		}
		skip_blanks(c);
	} while (take_word(c, "and") || take_word(c, "or"));
	return true;
}

bool pep508_marker_is_valid(struct str text, const char **reason)
{
	struct cursor c = { text.data, text.data + text.len };
	if (!take_marker(&c, 0, reason))
		return false;
	*reason = "something follows its marker";
	return c.at == c.end;
}

static bool take_url(struct cursor *c, struct str *url, const char **reason)
{
	const char *start;
	skip_blanks(c);
	start = c->at;
	while (c->at < c->end && *c->at != ' ' && *c->at != '\t')
		c->at++;
	*url = since(start, c);
	*reason = "a URL is missing after '@'";
	return url->len > 0;
}

bool pep508_parse(struct str text, struct pep508 *out, const char **reason)
{
	struct pep508 parsed = { 0 };
	struct cursor c;
	const char *start;
	text = str_trim(text);
	c = (struct cursor){ text.data, text.data + text.len };
	*reason =
		"a name is letters, digits, '-', '_' and '.', and begins and ends with a letter or "
		"digit";
	if (!take_name(&c, &parsed.name))
		return false;
	skip_blanks(&c);
	*reason = "the extras in [ ] aren't names with commas between them";
	if (take_char(&c, '[') && !take_extras(&c, &parsed.extras))
		return false;
	skip_blanks(&c);
	start = c.at;
	if (take_char(&c, '@')) {
		if (!take_url(&c, &parsed.url, reason))
			return false;
	} else {
		if (!take_specifiers(&c, &parsed.is_pinned, reason))
			return false;
		parsed.specifier = str_trim(since(start, &c));
	}
	skip_blanks(&c);
	if (take_char(&c, ';')) {
		parsed.marker = str_trim((struct str){ c.at, (size_t)(c.end - c.at) });
		if (!pep508_marker_is_valid(parsed.marker, reason))
			return false;
	} else if (c.at < c.end) {
		*reason = c.at == start
				  ? "a specifier like >=1.2 or the end of the line is "
				    "expected after the name"
				  : "something follows that is neither a specifier nor a marker";
		return false;
	}
	*out = parsed;
	return true;
}
