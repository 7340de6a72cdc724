#include "model/archive.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include "format/blob_name.h"

static const struct field archive_rows[] = {
	{ "name", FIELD_TEXT, offsetof(struct archive_row, name), .column = 1, .head = "ARCHIVE" },
	{ "workspace", FIELD_TEXT, offsetof(struct archive_row, workspace), "the name that it had",
		.column = 2, .head = "WORKSPACE" },
	{ "format", FIELD_TEXT, offsetof(struct archive_row, format), "tar.zst or tar.gz" },
	{ "created_at", FIELD_TIME, offsetof(struct archive_row, created_ms), .column = 4,
		.head = "CREATED" },
	{ "size", FIELD_SIZE, offsetof(struct archive_row, size_bytes), .column = 3,
		.head = "SIZE" },
};
const struct record archive_record = { "Archive", "An archived workspace.",
	RECORD_ROWS(archive_rows), FIELD_OUT };

static const struct {
	enum blob_pack pack;
	const char *name;
} formats[] = { { BLOB_PACK_ZSTD, "tar.zst" }, { BLOB_PACK_GZIP, "tar.gz" } };
#define FORMATS (sizeof formats / sizeof *formats)
#define TIME_FORM "%Y%m%dT%H%M%S"
#define TIME_LEN 20 /* 20261116T095152.123Z */

const char *archive_name_make(
	const char *workspace, int64_t now_ms, enum blob_pack pack, struct arena *arena)
{
	time_t when = (time_t)(now_ms / 1000);
	struct tm tm;
	char text[32] = "";
	if (gmtime_r(&when, &tm))
		strftime(text, sizeof text, TIME_FORM, &tm);
	return arena_printf(arena, "%s-%s.%03dZ.%s", workspace, text, (int)(now_ms % 1000),
		formats[pack == BLOB_PACK_GZIP].name);
}

int archive_name_read(
	const char *name, struct arena *arena, struct archive_row *row, struct error *err)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < FORMATS; i++) {
		size_t suffix = strlen(formats[i].name) + 1;
		struct tm tm = { 0 };
		unsigned ms;
		if (len <= suffix + TIME_LEN + 1 || name[len - suffix] != '.' ||
			strcmp(name + len - suffix + 1, formats[i].name) != 0)
			continue;
		const char *when = name + len - suffix - TIME_LEN, *rest;
		if (when[-1] != '-' || !(rest = strptime(when, TIME_FORM, &tm)) ||
			sscanf(rest, ".%3uZ", &ms) != 1)
			continue;
		const char *key = arena_printf(arena, ARCHIVE_PREFIX "%s", name);
		if (!blob_key_is_valid(key) || strchr(name, '/'))
			break;
		*row = (struct archive_row){ .name = key + sizeof ARCHIVE_PREFIX - 1,
			.workspace = arena_bytes(arena, name, (size_t)(when - 1 - name)),
			.format = formats[i].name,
			.created_ms = (int64_t)timegm(&tm) * 1000 + ms };
		return 0;
	}
	return fail_hint(
		err, ERR_INVALID, "carrel archive ls", "'%s' is not the name of an archive", name);
}
