/* archive_internal.h -- zstd, in locked children (files_child.c). Private to archive*.c. */
#pragma once
#include "core/archive.h"
#include "core/files_internal.h"

#define ARCHIVE_RATIO_MAX 200
#define ARCHIVE_RATIO_FREE ((uint64_t)64 << 20) /* so much may come out of anything */
#define ARCHIVE_BUFFER ((size_t)128 << 10)

/* files_work of each. fds: it reads from the first and writes to the second. Decompressing, what
 * isn't zstd passes as it is. */
files_work archive_compress, archive_decompress;
