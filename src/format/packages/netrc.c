#include "format/packages/netrc.h"

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

struct entry {
	const char *machine; /* NULL: "default", or a name that is missing */
	const char *login, *password;
	bool is_default;
};

/* *begins is the word that begins it; or NULL: the text goes on. Afterwards that of the next. */
static bool next_entry(struct reader *r, const char **begins, struct entry *entry)
{
	const char *word = *begins ? *begins : next_word(r);
	bool is_begun = false;
	*entry = (struct entry){ 0 };
	for (; word; word = next_word(r)) {
		bool is_machine = !strcmp(word, "machine"), is_default = !strcmp(word, "default");
		if (is_begun && (is_machine || is_default))
			break;
		if (is_machine || is_default) {
			is_begun = true;
			entry->is_default = is_default;
			entry->machine = is_machine ? next_word(r) : NULL;
		} else if (word[0] == '#') {
			skip_to(r, "\n");
		} else if (strcmp(word, "macdef") == 0) {
			skip_to(r, "\n\n");
		} else {
			const char *value = next_word(r);
			if (strcmp(word, "login") == 0)
				entry->login = value;
			else if (strcmp(word, "password") == 0)
				entry->password = value;
		}
		/* What stands before the first is nobody's. */
		if (!is_begun)
			*entry = (struct entry){ 0 };
	}
	*begins = word;
	return is_begun;
}

bool netrc_find(struct str text, const char *host, struct arena *arena, const char **login,
	const char **password)
{
	struct reader r = { text, arena };
	const char *begins = NULL;
	struct entry entry;
	if (text.len > NETRC_MAX)
		return false;
	while (next_entry(&r, &begins, &entry)) {
		bool is_match =
			entry.is_default || (entry.machine && strcasecmp(entry.machine, host) == 0);
		if (!is_match || !entry.password)
			continue;
		*login = entry.login ? entry.login : "";
		*password = entry.password;
		return true;
	}
	return false;
}

void netrc_list(struct str text, struct arena *arena, netrc_logins *logins)
{
	struct reader r = { text, arena };
	const char *begins = NULL;
	struct entry entry;
	while (text.len <= NETRC_MAX && next_entry(&r, &begins, &entry))
		if (entry.password)
			vec_push(arena, logins,
				(struct netrc_login){
					entry.login ? entry.login : "", entry.password });
}
