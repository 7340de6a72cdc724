#include "audit/redact.h"

#include <ctype.h>
#include "model/nouns/workspace.h"

#define HIDDEN "***"
#define NAME_MAX_LEN 128
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Tokens that show what they are by their beginning. */
static const struct {
	const char *head;
	size_t least; /* letters behind it */
} tokens[] = {
	{ "crl_", 8 },
	{ "ghp_", 16 },
	{ "gho_", 16 },
	{ "ghs_", 16 },
	{ "ghu_", 16 },
	{ "github_pat_", 16 },
	{ "glpat-", 12 },
	{ "npm_", 20 },
	{ "pypi-", 20 },
	{ "xoxb-", 12 },
	{ "xoxp-", 12 },
	{ "sk-", 20 },
	{ "AKIA", 16 },
	{ "ASIA", 16 },
};
static const char *const schemes[] = { "bearer ", "basic " };

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static bool starts(struct str rest, const char *head)
{
	size_t len = strlen(head);
	return rest.len >= len && !strncasecmp(rest.data, head, len);
}

/* Of a JSON string: up to its closing quote. */
static size_t until_string_ends(struct str rest)
{
	size_t i = 0;
	while (i < rest.len && rest.data[i] != '"')
		i += rest.data[i] == '\\' ? 2 : 1;
	return i < rest.len ? i : rest.len;
}

/* A word of a shell, a query or a header, within a JSON string; with its quotes. */
static size_t until_word_ends(struct str rest)
{
	static const char *const quotes[] = { "'", "\\\"" }; /* JSON escapes the second */
	size_t i = 0;
	for (size_t k = 0; k < COUNT(quotes); k++) {
		size_t len = strlen(quotes[k]);
		if (!starts(rest, quotes[k]))
			continue;
		size_t most = until_string_ends(rest);
		const char *end = memmem(rest.data + len, most - len, quotes[k], len);
		return end ? (size_t)(end - rest.data) + len : most;
	}
	while (i < rest.len && !strchr(" \t\"'\\&;|<>()", rest.data[i]))
		i++;
	return i;
}

static size_t until_line_ends(struct str rest)
{
	size_t i = 0;
	while (i < rest.len && rest.data[i] != '"' && rest.data[i] != '\\')
		i++;
	return i;
}

static bool is_secret(const char *name, size_t len)
{
	char text[NAME_MAX_LEN + 1];
	if (!len || len > NAME_MAX_LEN)
		return false;
	memcpy(text, name, len);
	text[len] = 0;
	return workspace_variable_is_secret(text, "");
}

/* What stands between a secret's name and its value. *value: how many bytes of `rest`, behind
 * the result, are to be hidden. 0: no value follows. */
static size_t separator(struct str rest, bool is_option, size_t *value)
{
	size_t at = 0;
	if (starts(rest, "=")) {
		at = 1;
	} else if (is_option && starts(rest, "\",\"")) {
		struct str next = { rest.data + 3, rest.len - 3 };
		*value = until_string_ends(next);
		return 3;
	} else if (is_option && starts(rest, " ")) {
		at = 1;
	} else {
		at = starts(rest, "\\\"") ? 2 : 0;
		while (at < rest.len && rest.data[at] == ' ')
			at++;
		if (at >= rest.len || rest.data[at] != ':')
			return 0;
		at++;
		size_t blanks = at;
		while (at < rest.len && rest.data[at] == ' ')
			at++;
		struct str next = { rest.data + at, rest.len - at };
		if (at == blanks && !starts(next, "\\\""))
			return 0;
		/* A header ends with its line. */
		*value = starts(next, "\\\"") ? until_word_ends(next) : until_line_ends(next);
		return at;
	}
	*value = until_word_ends((struct str){ rest.data + at, rest.len - at });
	return at;
}

/* The login of "://login@host", or 0. */
static size_t login_len(struct str rest)
{
	for (size_t i = 0; i < rest.len && !strchr("/?# \"\\", rest.data[i]); i++)
		if (rest.data[i] == '@')
			return i;
	return 0;
}

/* A private key: from its head to its end, or to the end of the string. */
static size_t private_key_len(struct str rest, size_t *head)
{
	static const char begin[] = "-----BEGIN ", end[] = "-----END ";
	if (!starts(rest, begin))
		return 0;
	size_t most = until_string_ends(rest);
	const char *name = memmem(rest.data, most, "PRIVATE KEY-----", 16);
	if (!name || (size_t)(name - rest.data) > 64)
		return 0;
	*head = (size_t)(name - rest.data) + 16;
	const char *stop = memmem(rest.data + *head, most - *head, end, sizeof end - 1);
	return stop ? (size_t)(stop - rest.data) - *head : most - *head;
}

static size_t token_len(struct str rest, size_t *head)
{
	for (size_t i = 0; i < COUNT(tokens); i++) {
		size_t len = strlen(tokens[i].head), end;
		if (rest.len < len || memcmp(rest.data, tokens[i].head, len))
			continue;
		for (end = len; end < rest.len && is_word(rest.data[end]);)
			end++;
		*head = len;
		return end - len >= tokens[i].least ? end - len : 0;
	}
	return 0;
}

static size_t scheme_len(struct str rest, size_t *head)
{
	for (size_t i = 0; i < COUNT(schemes); i++)
		if (starts(rest, schemes[i])) {
			*head = strlen(schemes[i]);
			size_t len = until_word_ends(
				(struct str){ rest.data + *head, rest.len - *head });
			return len >= 6 ? len : 0;
		}
	return 0;
}

/* At the beginning of a word: the bytes that are shown (*head) and those behind them that are
 * hidden (the result); 0: nothing is to be hidden here. */
static size_t hidden_at(struct str rest, size_t *head)
{
	size_t len, value = 0;
	if ((len = token_len(rest, head)) || (len = scheme_len(rest, head)) ||
		(len = private_key_len(rest, head)))
		return len;
	for (len = 0; len < rest.len && is_word(rest.data[len]);)
		len++;
	if (!is_secret(rest.data, len))
		return 0;
	size_t between = separator(
		(struct str){ rest.data + len, rest.len - len }, rest.data[0] == '-', &value);
	*head = len + between;
	return between ? value : 0;
}

void redact_json(struct str json, struct buf *out)
{
	size_t i = 0, from = 0;
	while (i < json.len) {
		struct str rest = { json.data + i, json.len - i };
		bool begins = is_word(json.data[i]) && (!i || !is_word(json.data[i - 1]));
		/* A letter behind an escape is not the beginning of a word by itself: "\nTOKEN=".
		 */
		size_t head = 0, len = 0;
		if (rest.data[0] == '\\' && rest.len > 1) {
			i += 2;
			if (rest.data[1] == 'u')
				i += 4;
			rest = i < json.len ? (struct str){ json.data + i, json.len - i }
					    : (struct str){ json.data, 0 };
			if (!rest.len || !is_word(rest.data[0]))
				continue;
			begins = true;
		}
		if (begins)
			len = hidden_at(rest, &head);
		else if (starts(rest, "://")) {
			head = 3;
			len = login_len((struct str){ rest.data + 3, rest.len - 3 });
		}
		if (!len) {
			i++;
			continue;
		}
		buf_append(out, json.data + from, i + head - from);
		buf_text(out, HIDDEN);
		i += head + len;
		from = i;
	}
	buf_append(out, json.data + from, json.len - from);
}
