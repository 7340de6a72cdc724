#include "format/netrc.h"

#include <string.h>
#include <strings.h>

struct reader {
	struct str rest;
	struct arena *arena;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Where the word that begins at `at` ends: at a blank, or at its closing quote. */
static const char *word_end(const char *at, const char *end, bool is_quoted)
{
	for (; at < end && (is_quoted ? *at != '"' : !is_blank(*at)); at++)
		at += *at == '\\' && at + 1 < end;
	return at;
}

/* Takes the next word, without its quotes. NULL: there is none. */
static const char *next_word(struct reader *r)
{
	const char *at = r->rest.data, *end = at + r->rest.len;
	size_t len = 0;

	while (at < end && is_blank(*at))
		at++;
	if (at == end) {
		r->rest = (struct str){ end, 0 };
		return NULL;
	}
	bool is_quoted = *at == '"';
	at += is_quoted;
	const char *stop = word_end(at, end, is_quoted);
	char *out = arena_alloc(r->arena, (size_t)(stop - at) + 1);
	for (; at < stop; at++) {
		at += *at == '\\' && at + 1 < stop;
		out[len++] = *at;
	}
	out[len] = '\0';
	at += is_quoted && at < end;
	r->rest = (struct str){ at, (size_t)(end - at) };
	return out;
}

static void skip_to(struct reader *r, const char *mark)
{
	size_t len = strlen(mark);
	const char *found = r->rest.len ? memmem(r->rest.data, r->rest.len, mark, len) : NULL;
	const char *end = r->rest.data + r->rest.len;

	r->rest.data = found ? found + len : end;
	r->rest.len = (size_t)(end - r->rest.data);
}

bool netrc_find(struct str text, const char *host, struct arena *arena, const char **login,
	const char **password)
{
	struct reader r = { text, arena };
	const char *word, *user = NULL, *secret = NULL;
	bool is_match = false;

	if (text.len > NETRC_MAX)
		return false;
	while ((word = next_word(&r))) {
		bool is_machine = strcmp(word, "machine") == 0,
		     is_default = !strcmp(word, "default");

		if (word[0] == '#') {
			skip_to(&r, "\n");
			continue;
		}
		if ((is_machine || is_default) && is_match && secret)
			break;
		if (is_machine || is_default) {
			const char *name = is_machine ? next_word(&r) : host;

			is_match = name && strcasecmp(name, host) == 0;
			user = secret = NULL;
		} else if (strcmp(word, "macdef") == 0) {
			skip_to(&r, "\n\n");
		} else {
			const char *value = next_word(&r);

			if (is_match && strcmp(word, "login") == 0)
				user = value;
			else if (is_match && strcmp(word, "password") == 0)
				secret = value;
		}
	}
	if (!is_match || !secret)
		return false;
	*login = user ? user : "";
	*password = secret;
	return true;
}
