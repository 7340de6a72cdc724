/* archive.h -- an archived workspace, as it is listed. Pure. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "format/http/blob_words.h"
#include "model/nouns/workspace.h"
#include "model/records/record.h"

#define ARCHIVE_PREFIX "archives/"
#define ARCHIVE_SUM ".sha256" /* behind the key: the object with its hash */

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

/* Reads carrel.json of an archive, which may be a stranger's: the workspace as it was, without what
 * belongs to the daemon that had it, and rules of reviewers; its warnings name what it hasn't any
 * more. ERR_INVALID names the field. */
int archive_workspace_read(const struct json_value *record, struct arena *arena,
	struct workspace *out, struct error *err);

/* Whether what a stranger's archive or snapshot says of environments is what a client may send, as
 * the rows of model/nouns/workspace.c have it. */
int archive_check_environments(const struct workspace *w, struct error *err);

/* The same for its policy. */
int archive_check_policy(const struct workspace_policy *policy, struct error *err);

/* An exported environment of the blob store, as it is listed: EXPORT_PREFIX NAME EXPORT_SUFFIX. */
#define PACKAGE_PREFIX "packages/" /* of agent packages, likewise */
#define PACKAGE_SUFFIX ".apkg"
#define EXPORT_PREFIX "environments/"
#define EXPORT_SUFFIX ".tar"
struct export_row {
	const char *name;
	int64_t created_ms; /* Unix time */
	uint64_t size_bytes;
};
extern const struct record export_record;

struct restore_wanted {
	const char *name; /* NULL: as it was called */
};
extern const struct record restore_wanted_record;

enum archive_wish { ARCHIVE_AS_CONFIGURED, ARCHIVE_NEVER, ARCHIVE_ALWAYS };
