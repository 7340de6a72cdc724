/* git_config.h -- configuration files of git: .git/config, .gitconfig, .gitmodules. Pure. Files
 * that they include aren't read: the caller sees `include.path`. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

struct git_entry {
	const char *section;	/* in lower case: "remote" */
	const char *subsection; /* "origin"; "" where there is none */
	const char *key;	/* in lower case: "url" */
	const char *value;	/* unquoted; "" of a key alone */
};
typedef VEC(struct git_entry) git_entries;
#define GIT_CONFIG_MAX ((size_t)1 << 20)
#define GIT_CONFIG_ENTRIES_MAX 20000
/* ERR_INVALID names the line; ERR_LIMIT: larger than one of the maxima. */
int git_config_parse(struct str text, struct arena *arena, git_entries *entries, struct error *err);
