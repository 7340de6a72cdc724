/* archive_parts.h -- the work behind archive.h, each done by a locked child (files_child.c).
 * Private to archive*.c. */
#pragma once
#include "core/archive.h"
#include "core/files_parts.h"

#define ARCHIVE_ENTRIES_MAX 1000000
#define ARCHIVE_RATIO_MAX 200
#define ARCHIVE_RATIO_FREE ((uint64_t)64 << 20) /* so much may come out of anything */
#define ARCHIVE_BUFFER ((size_t)128 << 10)

/* files_work of each; ctx is the struct. */

/* fds: the archive goes there; the directory, or the file. */
struct archive_packing {
	enum archive_format format;
	const char *name; /* of a file; NULL: a directory */
};
int archive_pack(void *ctx, const int *fds, uint64_t *value, struct error *err);

/* fds: the archive comes from there; an empty directory. *value: bytes on disk, about. */
struct archive_unpacking {
	uint64_t bytes_max;
	uint64_t entries_max;
};
int archive_unpack(void *ctx, const int *fds, uint64_t *value, struct error *err);

/* Moves what is in a directory into another one. fds: from; to; the directory that holds the first,
 * whose name there is ctx: it is removed afterwards. */
int archive_place(void *ctx, const int *fds, uint64_t *value, struct error *err);
