/* archive.h -- an archived workspace, as it is listed. Pure. */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "format/blob_words.h"
#include "model/record.h"

#define ARCHIVE_PREFIX "archives/"

struct archive_row {
	const char *name; /* "NAME-20261116T095152.123Z.tar.zst": its key without ARCHIVE_PREFIX */
	const char *workspace; /* that it was */
	const char *format;    /* "tar.zst", "tar.gz" */
	int64_t created_ms;    /* Unix time */
	uint64_t size_bytes;
};
extern const struct record archive_record;

/* The name that an archive of `workspace` gets now. */
const char *archive_name_make(
	const char *workspace, int64_t now_ms, enum blob_pack pack, struct arena *arena);
/* Fills in all but the size. ERR_INVALID: not such a name. */
int archive_name_read(
	const char *name, struct arena *arena, struct archive_row *row, struct error *err);

enum archive_wish { ARCHIVE_AS_CONFIGURED, ARCHIVE_NEVER, ARCHIVE_ALWAYS };
