/* Credentials of indexes from where pip and uv look for them: netrc files and keyrings. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/path.h"
#include "envs/index.h"
#include "format/netrc.h"

struct login {
	struct arena *arena;
	struct str netrc;
	index_password_fn *ask;
	void *ctx;
};

/* The parts of "scheme://user:password@host:port/path". */
struct parts {
	struct str scheme; /* with "://" */
	struct str user;   /* without '@'; may be empty */
	struct str rest;   /* from the host on */
};

static bool split(const char *url, struct parts *parts)
{
	const char *start = strstr(url, "://");
	const char *at;
	size_t len;

	if (!start)
		return false;
	start += 3;
	len = strcspn(start, "/?#");
	at = len ? memrchr(start, '@', len) : NULL;
	parts->scheme = (struct str){ url, (size_t)(start - url) };
	parts->user = (struct str){ start, at ? (size_t)(at - start) : 0 };
	parts->rest = str_from(at ? at + 1 : start);
	return true;
}

static const char *host_of(const struct parts *parts, struct arena *arena)
{
	size_t len = strcspn(parts->rest.data, parts->rest.data[0] == '[' ? "]" : ":/?#");
	bool is_v6 = parts->rest.data[0] == '[';

	return arena_bytes(arena, parts->rest.data + is_v6, len - is_v6);
}

static void add_escaped(struct buf *out, const char *text)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (; *text; text++) {
		if (strchr(plain, *text))
			buf_char(out, *text);
		else
			buf_printf(out, "%%%02X", (unsigned char)*text);
	}
}

static bool wants_keyring(void)
{
	const char *uv = getenv("UV_KEYRING_PROVIDER"), *pip = getenv("PIP_KEYRING_PROVIDER");

	return (uv && strcmp(uv, "subprocess") == 0) || (pip && strcmp(pip, "subprocess") == 0);
}

/* 1: *user (escaped already when the URL has it) and *password. */
static bool find(const struct login *login, const char *url, const struct parts *parts,
	const char **user, const char **password, bool *is_escaped)
{
	const char *host = host_of(parts, login->arena);

	*is_escaped = parts->user.len > 0;
	if (memchr(parts->user.data, ':', parts->user.len))
		return false;
	if (parts->user.len == 0)
		return netrc_find(login->netrc, host, login->arena, user, password);
	*user = arena_bytes(login->arena, parts->user.data, parts->user.len);
	*password = NULL;
	/* keyring would take a name that begins with '-' for an option, such as --keyring-path. */
	if (login->ask && wants_keyring() && parts->user.data[0] != '-') {
		const char *bare = arena_printf(login->arena, "%.*s%s", (int)parts->scheme.len,
			parts->scheme.data, parts->rest.data);

		*password = login->ask(login->ctx, bare, *user, login->arena);
		if (!*password)
			*password = login->ask(login->ctx, host, *user, login->arena);
	}
	return *password != NULL;
}

static void log_in(
	const struct login *login, struct index_set *set, const char *url, text_list *secrets)
{
	const char *user, *password;
	struct parts parts;
	bool is_escaped;
	auto_buf struct buf full = { 0 };

	if (!url || !split(url, &parts) || !find(login, url, &parts, &user, &password, &is_escaped))
		return;
	buf_init(&full, 65536);
	buf_append(&full, parts.scheme.data, parts.scheme.len);
	if (is_escaped)
		buf_text(&full, user);
	else
		add_escaped(&full, user);
	buf_char(&full, ':');
	size_t start = full.len;
	add_escaped(&full, password);
	const char *escaped = arena_bytes(login->arena, full.data + start, full.len - start);
	buf_printf(&full, "@%s", parts.rest.data);
	if (strlen(password) >= INPUTS_SECRET_MIN) {
		vec_push(login->arena, secrets, password);
		vec_push(login->arena, secrets, escaped);
	}
	vec_push(login->arena, &set->logins,
		(struct index_login){ url, arena_bytes(login->arena, full.data, full.len) });
}

static int read_netrc(struct arena *arena, struct str *text, struct error *err)
{
	const char *named = getenv("NETRC"), *home = getenv("HOME");
	struct error ignored;

	*text = STR("");
	if (named && *named)
		return inputs_read_file(named, arena, text, err) < 0
			       ? error_context(err, "the variable NETRC")
			       : 0;
	/* One that isn't there, or that can't be read, says nothing, as for pip. */
	if (home && path_is_absolute(home) &&
		inputs_read_file(arena_printf(arena, "%s/.netrc", home), arena, text, &ignored) < 0)
		*text = STR("");
	return 0;
}

int index_log_in(struct index_set *set, index_password_fn *ask, void *ctx, struct arena *arena,
	text_list *secrets, struct error *err)
{
	struct login login = { .arena = arena, .ask = ask, .ctx = ctx };

	if (read_netrc(arena, &login.netrc, err) < 0)
		return -1;
	set->logins.count = 0;
	log_in(&login, set, set->index, secrets);
	for (size_t i = 0; i < set->extra.count; i++)
		log_in(&login, set, set->extra.items[i], secrets);
	return 0;
}

const char *index_full(const struct index_set *set, const char *url)
{
	for (size_t i = 0; i < set->logins.count; i++)
		if (strcmp(set->logins.items[i].url, url) == 0)
			return set->logins.items[i].full;
	return url;
}
