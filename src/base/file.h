/* file.h -- files and directories read, written or hashed as a whole. Each returns 0, or -1 with
 * errno. */
#pragma once
#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/vec.h"

#define FILE_NAMES_MAX (1 << 20)

/* All of a regular file from where it stands, with a NUL after it. EFBIG: more than max bytes;
 * EINVAL: not a regular file. */
int file_read(int fd, size_t max, struct arena *arena, struct str *text);
/* Opens `path` (O_NOFOLLOW) and reads it so. */
int file_read_at(int dir, const char *path, size_t max, struct arena *arena, struct str *text);
/* Writes the file `name` in dir under a temporary name and renames it, so that readers see the old
 * or the new content. is_synced: the content is on disk before the rename. */
int file_replace(int dir, const char *name, mode_t mode, struct str text, bool is_synced);
/* Creates a file (O_EXCL). */
int file_create(int dir, const char *path, mode_t mode, struct str text);
/* The names in the directory `path` (O_NOFOLLOW) but "." and "..", sorted. E2BIG: more than
 * FILE_NAMES_MAX. */
int file_names(int dir, const char *path, struct arena *arena, text_list *names);
/* A file without a name that holds `text`, to be read from its beginning; or -1. */
int file_in_memory(const char *label, struct str text);
/* SHA-256 of all from where the file stands; *size (may be NULL): how many bytes that were. */
int file_hash(int fd, unsigned char sha256[SHA256_LEN], uint64_t *size);
