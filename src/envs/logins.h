/* logins.h -- the logins for registries that are configured on this host, and layers that hold one.
 * Only what this host knows is searched for: packages bring examples of logins. No text of these is
 * ever printed. */
#pragma once
#include "envs/build.h"

#define LOGIN_ALONE_MIN 12 /* bytes; a shorter one can be a word of any package */

/* `login` by itself when it is long; else, unless that is empty, with the text that stands before
 * and behind it wherever it is used as one. */
void login_add(struct arena *arena, text_list *texts, const char *before, const char *login,
	const char *after);
/* Of npm's configuration, of pip's and uv's and of config.yaml, of netrc and the keyring. */
int logins_find(
	const struct builder *builder, struct arena *arena, text_list *texts, struct error *err);
/* Adds the files of a layer that hold one, and those that builders once wrote logins to. `package`:
 * of the findings. */
int logins_search(const struct env_store *store, const char *layer, const char *package,
	const text_list *texts, struct arena *arena, env_findings *findings, struct error *err);
