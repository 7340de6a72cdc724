/* known.h -- what programs of the host said about themselves, kept so that they need not be run
 * again: "key value" lines in <home>/<room>/.known/<identity>. The identity is a hash of the
 * program's path, inode, size and mtime: another program has another one. A file that is missing or
 * damaged only means that it is asked again. */
#pragma once
#include <sys/stat.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "format/text/answer.h"
#include "linux/home.h"

#define KNOWN_IDENTITY_LEN 64

/* `path` is real, `stat` is its own. */
void known_identity(const char *path, const struct stat *stat, char out[KNOWN_IDENTITY_LEN + 1]);
/* The identity of anything else that has a text, e.g. an address. */
void known_identity_of_text(const char *text, char out[KNOWN_IDENTITY_LEN + 1]);
/* false: not known. *age_s (may be NULL): seconds since it was written. */
bool known_read(const struct home *home, const char *room, const char *identity,
	struct arena *arena, struct answer *answer, int64_t *age_s);
int known_write(const struct home *home, const char *room, const char *identity, struct str text,
	struct error *err);
/* Whether a file is a program itself and not a script that leads to one (a shim). */
bool known_is_elf(const char *path);
/* SHA-256, in hex, of what is left to read of a file. 0, or -1 with errno. */
int known_hash_file(int fd, char out[2 * SHA256_LEN + 1]);
