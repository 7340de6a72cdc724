#include "format/netrc.h"

#include <string.h>
#include <strings.h>

struct reader {
	struct str rest;
	struct arena *arena;
};

/* Takes the next word, without its quotes. NULL: there is none. */
static const char *next_word(struct reader *r)
{
	const char *at = r->rest.data, *end = at + r->rest.len;
	char *out;
	size_t len = 0;

	while (at < end && memchr(" \t\r\n", *at, 4))
		at++;
	if (at == end) {
		r->rest = (struct str){ end, 0 };
		return NULL;
	}
	out = arena_alloc(r->arena, (size_t)(end - at) + 1);
	bool is_quoted = *at == '"';
	for (at += is_quoted; at < end; at++) {
		if (is_quoted ? *at == '"' : !!memchr(" \t\r\n", *at, 4))
			break;
		if (*at == '\\' && at + 1 < end)
			at++;
		out[len++] = *at;
	}
	at += is_quoted && at < end;
	out[len] = '\0';
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
	bool is_ours = false;

	if (text.len > NETRC_MAX)
		return false;
	while ((word = next_word(&r))) {
		bool is_machine = strcmp(word, "machine") == 0,
		     is_default = !strcmp(word, "default");

		if (word[0] == '#') {
			skip_to(&r, "\n");
			continue;
		}
		if ((is_machine || is_default) && is_ours && secret)
			break;
		if (is_machine || is_default) {
			const char *name = is_machine ? next_word(&r) : host;

			is_ours = name && strcasecmp(name, host) == 0;
			user = secret = NULL;
		} else if (strcmp(word, "macdef") == 0) {
			skip_to(&r, "\n\n");
		} else {
			const char *value = next_word(&r);

			if (is_ours && strcmp(word, "login") == 0)
				user = value;
			else if (is_ours && strcmp(word, "password") == 0)
				secret = value;
		}
	}
	if (!is_ours || !secret)
		return false;
	*login = user ? user : "";
	*password = secret;
	return true;
}
