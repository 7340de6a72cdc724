/* Operations on archives of workspaces. */
#include "model/nouns/archive.h"
#include "model/nouns/workspace.h"
#include "model/operations/takes.h"
#include "model/records/rows.h"

static int check_sha256(const char *text, struct error *err)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64
		       ? 0
		       : fail(err, ERR_INVALID, "not 64 hexadecimal digits");
}

static const struct field upload_query_rows[] = {
	ROW_OF(upload_query, TEXT, sha256, "of the body: nothing else is stored",
		.pattern = "^[0-9a-f]{64}$", .check = check_sha256),
};
const struct record upload_query_record = { "", NULL, RECORD_ROWS(upload_query_rows), FIELD_IN };

static const struct operation operations[] = {
	{ "GET", "/v1/archives", "listArchives", "archive ls", VERB_ARCHIVE_LIST,
		.summary = "List archived workspaces",
		.more = "Archives of the blob store, newest first.", PAGES,
		LISTED("Archives", archive_record, "Newest first.") },
	{ "DELETE", "/v1/archives/{id}", "removeArchive", "archive rm", VERB_ARCHIVE_REMOVE,
		.summary = "Remove an archive",
		.more = "The archive is deleted from the blob store.", REMOVED },
	{ "PUT", "/v1/archives/{id}", "uploadArchive", NULL, VERB_ARCHIVE_UPLOAD,
		.summary = "Store an archive under a new name, to restore it",
		.more = "The body is a tar.zst or tar.gz that `carrel rm --archive` wrote. 409 if "
			"the name is taken.",
		.flags = ROUTE_STREAMED, UPLOADS, .takes_type = TYPE_BYTES, STORED, MAKES },
	{ "POST", "/v1/archives/{id}/restore", "restoreArchive", "restore", VERB_ARCHIVE_RESTORE,
		.summary = "Make a workspace of an archive",
		.more = "The new workspace has a new id, and the name that it had unless another "
			"is given.",
		.flags = ROUTE_OPTIONAL | ROUTE_LOCATION,
		TAKES(restore_wanted_record, struct restore_wanted),
		ANSWER(201, TYPE_JSON, &workspace_record, "The workspace."), MAKES },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "Archive", "{'name':'demo-20260102-100000','workspace':'demo','format':'tar.zst',"
		     "'created_at':'2026-01-02T10:00:00.000Z','size_bytes':18231}" },
	{ "RestoreWanted", "{'name':'demo-again'}" },
	{ 0 },
};

const struct operation_table archive_operations = { "archives", operations, examples };
