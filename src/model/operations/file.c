/* Operations on files of workspaces: one by one, as archives, as changes. */
#include "model/nouns/snapshot.h"
#include "model/operations/takes.h"
#include "model/records/rows.h"

static int check_octal(const char *text, struct error *err)
{
	size_t len = strlen(text);
	return len < 3 || len > 4 || strspn(text, "01234567") != len || (len == 4 && text[0] != '0')
		       ? fail(err, ERR_INVALID, "'%s' is not a mode; try 0644 or 0755", text)
		       : 0;
}

static const struct field file_get_query_rows[] = {
	ROW_OF(file_query, BOOLEAN, list, "list the directory"),
	ROW_OF(file_query, BOOLEAN, stat, "file information, without following links"),
	PAGE_ROWS,
};
static const struct field file_put_query_rows[] = {
	ROW_OF(file_query, BOOLEAN, mkdir, "create a directory and its parents"),
	ROW_OF(file_query, TEXT, move, "move the file to this path in the workspace", .least = 1,
		.most = 4095),
	ROW_OF(file_query, TEXT, mode, "permissions of the file, octal", .pattern = "^0?[0-7]{3}$",
		.check = check_octal),
};
static const struct field file_delete_query_rows[] = {
	ROW_OF(file_query, BOOLEAN, recursive, "remove a directory and its content"),
};
static const struct field_choice formats[] = { { "tar", 0 }, { "tar.zst", 1 }, { 0 } };

#define TREE_PATH_ROW                                                                              \
	{                                                                                          \
		"path", FIELD_TEXT, offsetof(struct tree_query, path),                             \
			"from /workspace on, or absolute; /workspace when not given", .most = 4095 \
	}
static const struct field tree_get_rows[] = {
	TREE_PATH_ROW,
	ROW_OF(tree_query, CHOICE, format, "tar when not given", .choices = formats),
};
static const struct field tree_put_rows[] = { TREE_PATH_ROW };
#define PATH_ROWS                                                                                  \
	{ "path", FIELD_TEXTS, offsetof(struct diff_query, paths),                                 \
		"only this path and what is below it; may be given several times", .most = 1000 }, \
	{                                                                                          \
		"snapshot", FIELD_TEXT, offsetof(struct diff_query, snapshot),                     \
			"id, tag or version of a snapshot of the workspace: what changed since "   \
			"that one",                                                                \
			.least = 1, .most = SNAPSHOT_TAG_MAX                                       \
	}
static const struct field diff_query_rows[] = {
	ROW_OF(diff_query, BOOLEAN, patch, "answer with a patch, as git apply reads it"),
	ROW_OF(diff_query, BOOLEAN, all, "also what changed in /env and node_modules"),
	PATH_ROWS,
};
static const struct field changes_query_rows[] = { PATH_ROWS };
static const struct field apply_rows[] = {
	ROW_OF(apply_body, TEXT, to, "the workspace that gets the changes: id, name or context_id",
		FIELD_REQUIRED, .least = 1),
	ROW_OF(apply_body, TEXTS, paths,
		"only these and what is below them; all changes when not given", .most = 1000),
	ROW_OF(apply_body, TEXT, snapshot,
		"id, tag or version of a snapshot of the source: what changed since that one; the "
		"last one when not given",
		.least = 1, .most = SNAPSHOT_TAG_MAX),
	ROW_OF(apply_body, BOOLEAN, dry_run, "only say what would be done"),
};
static const struct record apply_record = { "ApplyWanted", NULL, RECORD_ROWS(apply_rows),
	FIELD_IN };

static const struct field_choice types[] = { { "file", 0 }, { "directory", 1 }, { "link", 2 },
	{ "fifo", 3 }, { "socket", 4 }, { "device", 5 }, { 0 } };

static const struct field file_rows[] = {
	TEXT("name", "bytes that aren't UTF-8 are shown as U+FFFD"),
	TEXT("name_base64", "the name's bytes, when they aren't UTF-8", FIELD_OPTIONAL),
	{ "type", FIELD_CHOICE, .choices = types },
	COUNT("size", NULL),
	TEXT("mode", "octal"),
	{ "modified_at", FIELD_TIME },
	TEXT("link", "the target of a link", FIELD_NULLABLE),
};
static const struct record file_record = { "FileInfo", NULL, RECORD_ROWS(file_rows), FIELD_OUT };

static const struct record *const file_answers[] = { PAGE_OF("Files", file_record), &file_record,
	NULL };

static const struct record file_answer_record = { "FileAnswer",
	"With list: the entries of the directory; with stat: the file itself.", NULL, 0, FIELD_OUT,
	.variants = file_answers };

static const struct field_choice letters[] = { { "A", 0 }, { "M", 1 }, { "D", 2 }, { "T", 3 },
	{ 0 } };

static const struct field change_rows[] = {
	TEXT("path", "from /workspace on; begins with /env/ for files of the environment; bytes "
		     "that aren't UTF-8 are shown as U+FFFD"),
	{ "change", FIELD_CHOICE, 0, "A: added, M: modified, D: deleted, T: another type of file",
		.choices = letters },
	{ "type", FIELD_CHOICE, .choices = types },
	COUNT("size_before", "of a file; else null", FIELD_NULLABLE),
	COUNT("size_after", "of a file; else null", FIELD_NULLABLE),
	TEXT("mode_before", "octal, where the mode differs", FIELD_OPTIONAL),
	TEXT("mode_after", "octal, where the mode differs", FIELD_OPTIONAL),
};
static const struct record change_record = { "Change", NULL, RECORD_ROWS(change_rows), FIELD_OUT };

static const struct field applied_change_rows[] = {
	TEXT("path", "from /workspace on; bytes that aren't UTF-8 are shown as U+FFFD"),
	TEXT("path_base64", "the path's bytes, when they aren't UTF-8", FIELD_OPTIONAL),
	{ "change", FIELD_CHOICE, 0, "A: added, M: modified, D: deleted, T: another type of file",
		.choices = letters },
	{ "type", FIELD_CHOICE, .choices = types },
	{ "result", FIELD_CHOICE,
		.help = "pending: nothing was applied; same: the target has it already; conflict: "
			"the target has neither what the source had before nor what it has now; "
			"refused: not a file, a directory or a link",
		.names = NAMES("applied", "pending", "same", "conflict", "refused") },
	TEXT("reason", "of conflict and refused; else null", FIELD_NULLABLE),
};
const struct record applied_change_record = { "AppliedChange", NULL,
	RECORD_ROWS(applied_change_rows), FIELD_OUT };

static const struct field applied_rows[] = {
	COUNT("applied", "how many changes were applied"),
	COUNT("conflicts", "how many can't be"),
	{ "changes", FIELD_OBJECTS, .help = "in order of paths", .object = &applied_change_record },
};
static const struct record applied_record = { "Applied", NULL, RECORD_ROWS(applied_rows),
	FIELD_OUT };

static const struct operation operations[] = {
	{ "GET", WORKSPACE "/files/{path}", "readFile", NULL, VERB_FILE_READ,
		.summary = "Read a file, list a directory, or show file information",
		.more = "Paths mean what they mean to a command in the workspace. A directory is "
			"409 without `list` or `stat`.",
		.flags = ROUTE_RANGE | ROUTE_WORKSPACE,
		QUERY(file_get_query_rows, struct file_query),
		.answers = { { 200, TYPE_BYTES, NULL, "The file." },
			{ 200, TYPE_JSON, &file_answer_record,
				"With list: Files; with stat: FileInfo." },
			{ 206, TYPE_BYTES, NULL, "The requested range." } },
		.errors = { 409, 416, 429 } },
	{ "PUT", WORKSPACE "/files/{path}", "writeFile", NULL, VERB_FILE_WRITE,
		.summary = "Write a file (atomically), make a directory, or move",
		.more = "Parent directories are made. Other readers see the old file or the new "
			"one, never a part. With `mkdir` and `move` there is no body.",
		.flags = ROUTE_STREAMED | ROUTE_NEW | ROUTE_WORKSPACE,
		QUERY(file_put_query_rows, struct file_query), .takes_type = TYPE_BYTES,
		.answers = { { 200, TYPE_JSON, &file_record,
				     "It was replaced or moved, or already existed." },
			{ 201, TYPE_JSON, &file_record, "It was created." } },
		.errors = { 409, 412, 507 } },
	{ "DELETE", WORKSPACE "/files/{path}", "removeFile", NULL, VERB_FILE_REMOVE,
		.summary = "Remove a file or a directory",
		.more = "A directory that isn't empty needs `recursive`.", .flags = ROUTE_WORKSPACE,
		QUERY(file_delete_query_rows, struct file_query), REMOVED, CHANGES },
	{ "GET", WORKSPACE "/archive", "packTree", "cp", VERB_FILE_READ,
		.summary = "Pack files as one archive",
		.more = "Owners are left out; links stay links.", .flags = ROUTE_WORKSPACE,
		QUERY(tree_get_rows, struct tree_query),
		.answers = { { 200, TYPE_TAR, NULL, "The archive." },
			{ 200, "application/zstd", NULL, "With format=tar.zst." } },
		.errors = { 409, 429 } },
	{ "PUT", WORKSPACE "/archive", "unpackTree", NULL, VERB_FILE_WRITE,
		.summary = "Unpack a tar, tar.gz, tar.zst or zip archive into a workspace",
		.more = "Entries that would leave the directory, devices and set-user-id bits are "
			"refused. Nothing is undone if the archive turns out to be damaged.",
		.flags = ROUTE_STREAMED | ROUTE_WORKSPACE, QUERY(tree_put_rows, struct tree_query),
		.takes_type = TYPE_BYTES, DONE, MAKES },
	{ "GET", WORKSPACE "/diff", "diffWorkspace", "diff", VERB_WORKSPACE_DIFF,
		.summary =
			"List what changed since the last snapshot, or another one, or all files",
		.more = "As a list, or with `patch` as text for git apply.",
		.flags = ROUTE_WORKSPACE, QUERY(diff_query_rows, struct diff_query),
		.answers = { { 200, TYPE_JSON, PAGE_OF("Changes", change_record),
				     "In order of paths." },
			{ 200, "text/x-patch", NULL, "With patch." } },
		.errors = { 409, 429 } },
	{ "GET", WORKSPACE "/changes", "packChanges", NULL, VERB_WORKSPACE_DIFF,
		.summary =
			"Pack what changed since the last snapshot, or another one, or all files",
		.more = "For `carrel apply` to a directory of another machine.",
		.flags = ROUTE_WORKSPACE, QUERY(changes_query_rows, struct diff_query),
		ANSWER(200, TYPE_TAR, NULL,
			"Members: tree/PATH for what is new or changed, then `changes`, with a "
			"line for each change: its letter, what was there before (- or type and "
			"mode), a hash of that content, what is there now, and the path, "
			"percent-encoded."),
		MAKES },
	{ "POST", WORKSPACE "/apply", "applyChanges", "apply", VERB_WORKSPACE_APPLY,
		.summary = "Apply changes of a workspace to another one: all of them, or none",
		.more = "A conflict is 409 with the list of changes; nothing is applied then.",
		.flags = ROUTE_WORKSPACE, TAKES(apply_record, struct apply_body),
		SHOWN(applied_record, "What was done, or with dry_run would be."), MAKES },
	{ 0 },
};

#define FILE_INFO_EXAMPLE                                                                          \
	"{'name':'train.py','type':'file','size':1841,'mode':'0644',"                              \
	"'modified_at':'2026-01-02T10:00:00.000Z','link':null}"
static const struct operation_example examples[] = {
	{ "FileInfo", FILE_INFO_EXAMPLE },
	{ "FileAnswer", "{'items':[" FILE_INFO_EXAMPLE "],'next_cursor':null}" },
	{ "Change", "{'path':'data/out.csv','change':'A','type':'file','size_before':null,"
		    "'size_after':4096}" },
	{ "ApplyWanted", "{'to':'main','paths':['src'],'dry_run':true}" },
	{ "Applied", "{'applied':1,'conflicts':0,'changes':[{'path':'src/a.py','change':'M',"
		     "'type':'file','result':'applied','reason':null}]}" },
	{ 0 },
};

const struct operation_table file_operations = { "files", operations, examples };
