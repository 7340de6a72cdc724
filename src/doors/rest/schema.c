#include <string.h>
#include "doors/rest/schema.h"
#include "core/workspaces/shared.h"
#include "model/agents/agent.h"
#include "model/nouns/approval.h"
#include "model/nouns/exec.h"
#include "model/nouns/metrics.h"
#include "model/network/port.h"
#include "model/nouns/signals.h"
#include "model/nouns/archive.h"
#include "model/nouns/snapshot.h"
#include "model/agents/deployment.h"
#include "model/nouns/token.h"
#include "model/agents/case.h"
#include "model/agents/tool.h"
#include "model/nouns/workspace.h"

/* ---- checks that rows can't say ---- */

static int check_octal(const char *text, struct error *err)
{
	size_t len = strlen(text);

	return len < 3 || len > 4 || strspn(text, "01234567") != len || (len == 4 && text[0] != '0')
		       ? fail(err, ERR_INVALID, "'%s' is not a mode; try 0644 or 0755", text)
		       : 0;
}

static int check_label_filter(const char *text, struct error *err)
{
	return !text[0] || text[0] == '='
		       ? fail(err, ERR_INVALID, "'%s' is neither KEY nor KEY=VALUE", text)
		       : 0;
}

/* ---- bodies ---- */

static const struct field_choice told_reasons[] = { { "output_limit", REASON_OUTPUT_LIMIT },
	{ 0 } };
static const struct field signal_rows[] = {
	{ "signal", FIELD_NUMBERED, offsetof(struct signal_body, signal), "its name or number",
		FIELD_REQUIRED, .least = 1, .most = 64, .choices = signal_choices },
	{ "reason", FIELD_CHOICE, offsetof(struct signal_body, reason),
		"why the exec ends; only with KILL, from a client that passed the streams and "
		"counts their output",
		.choices = told_reasons },
};
const struct record signal_fields = { "Signal", NULL, RECORD_ROWS(signal_rows), FIELD_IN };

static const struct field resize_rows[] = {
	{ "rows", FIELD_INTEGER, offsetof(struct resize_body, rows), NULL, FIELD_REQUIRED,
		.least = 1, .most = 65535 },
	{ "columns", FIELD_INTEGER, offsetof(struct resize_body, columns), NULL, FIELD_REQUIRED,
		.least = 1, .most = 65535 },
};
const struct record resize_fields = { "Size", "Of a terminal.", RECORD_ROWS(resize_rows),
	FIELD_IN };

static const struct field suspend_rows[] = {
	{ "force", FIELD_BOOLEAN, offsetof(struct suspend_body, force),
		"end the commands that run in it" },
};
const struct record suspend_fields = { "Suspend", NULL, RECORD_ROWS(suspend_rows), FIELD_IN };

static const char *const template_forms[] = { "yaml", "template", NULL };
static const struct field template_body_rows[] = {
	{ "yaml", FIELD_TEXT, offsetof(struct template_body, yaml), "the text of the template",
		FIELD_STRICT, .least = 1, .most = 256 << 10 },
	{ "template", FIELD_OBJECT, offsetof(struct template_body, model), "or its values",
		FIELD_STRICT, .object = &template_record },
	{ "check", FIELD_BOOLEAN, offsetof(struct template_body, check),
		"only check it: nothing is added" },
};
const struct record template_fields = { "TemplateAdded", NULL, RECORD_ROWS(template_body_rows),
	FIELD_IN, .one_of = template_forms };

static const struct field agent_body_rows[] = {
	{ "yaml", FIELD_TEXT, offsetof(struct agent_body, yaml), "the text of the agent",
		FIELD_REQUIRED, .least = 1, .most = AGENT_YAML_MAX },
	{ "check", FIELD_BOOLEAN, offsetof(struct agent_body, check),
		"only check it: nothing is added" },
};
const struct record agent_fields = { "AgentAdded", NULL, RECORD_ROWS(agent_body_rows), FIELD_IN };

static const struct field apply_rows[] = {
	{ "to", FIELD_TEXT, offsetof(struct apply_body, to),
		"the workspace that gets the changes: id, name or context_id", FIELD_REQUIRED,
		.least = 1 },
	{ "paths", FIELD_TEXTS, offsetof(struct apply_body, paths),
		"only these and what is below them; all changes when not given", .most = 1000 },
	{ "snapshot", FIELD_TEXT, offsetof(struct apply_body, snapshot),
		"id, tag or version of a snapshot of the source: what changed since that one; the "
		"last one when not given",
		.least = 1, .most = SNAPSHOT_TAG_MAX },
	{ "dry_run", FIELD_BOOLEAN, offsetof(struct apply_body, dry_run),
		"only say what would be done" },
};
const struct record apply_fields = { "ApplyWanted", NULL, RECORD_ROWS(apply_rows), FIELD_IN };

static const struct field_choice package_kinds[] = { { "python", PACKAGES_PYTHON },
	{ "node", PACKAGES_NODE }, { 0 } };
static const struct field packages_body_rows[] = {
	{ "packages", FIELD_TEXTS, offsetof(struct packages_body, packages),
		"such as pandas>=2, of Node axios@1; names alone, to uninstall them",
		FIELD_REQUIRED, .least = 1, .most = 500 },
	{ "kind", FIELD_CHOICE, offsetof(struct packages_body, kind), "python when not given",
		.choices = package_kinds },
	{ "persist", FIELD_BOOLEAN, offsetof(struct packages_body, persist),
		"whether pyproject.toml, of Node package.json, in /workspace is changed too; "
		"true when not given",
		.has = FIELD_HAS(struct packages_body, has_persist) },
};
const struct record packages_fields = { "PackagesWanted", NULL, RECORD_ROWS(packages_body_rows),
	FIELD_IN };

static const struct field tree_body_rows[] = {
	{ "name", FIELD_TEXT, offsetof(struct tree_body, name), NULL, FIELD_REQUIRED, .least = 1,
		.most = 64, .pattern = "^[a-z0-9][a-z0-9._-]{0,63}$" },
};
const struct record tree_fields = { "TreeWanted", NULL, RECORD_ROWS(tree_body_rows), FIELD_IN };

/* ---- queries ---- */

#define PAGE_ROWS(type)                                                                            \
	{ "limit", FIELD_INTEGER, offsetof(type, limit), "items at most; 100 when not given",      \
		.least = 1, .most = LIMIT_MOST },                                                  \
	{                                                                                          \
		"cursor", FIELD_TEXT, offsetof(type, cursor), "next_cursor of the page before",    \
			.least = 1                                                                 \
	}
static const struct field list_query_rows[] = {
	{ "label", FIELD_TEXTS, offsetof(struct list_query, labels),
		"KEY=VALUE or KEY: only workspaces with this label; all labels if given several "
		"times",
		.most = WORKSPACE_LABELS_MAX, .pattern = "^[^=\\x00][^\\x00]*$",
		.check = check_label_filter },
	{ "state", FIELD_CHOICE, offsetof(struct list_query, state), .names = workspace_state_names,
		.has = FIELD_HAS(struct list_query, has_state) },
	PAGE_ROWS(struct list_query),
};
const struct record list_query_fields = { "", NULL, RECORD_ROWS(list_query_rows), FIELD_IN };
const struct record page_query_fields = { "", NULL, list_query_rows + 2, 2, FIELD_IN };

static int check_sha256(const char *text, struct error *err)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64
		       ? 0
		       : fail(err, ERR_INVALID, "not 64 hexadecimal digits");
}

static const struct field upload_query_rows[] = {
	{ "sha256", FIELD_TEXT, offsetof(struct upload_query, sha256),
		"of the body: nothing else is stored", .pattern = "^[0-9a-f]{64}$",
		.check = check_sha256 },
};
const struct record upload_query_fields = { "", NULL, RECORD_ROWS(upload_query_rows), FIELD_IN };

static int check_surface(const char *text, struct error *err)
{
	for (int i = 0; i < SURFACE_COUNT; i++)
		if (!strcmp(text, surface_names[i]))
			return 0;
	return fail(err, ERR_INVALID, "'%.32s' is not a surface: rest, a2a or ui", text);
}
static const struct field logs_query_rows[] = {
	{ "surface", FIELD_TEXT, offsetof(struct logs_query, surface),
		"rest, a2a or ui; all when "
		"not given",
		.pattern = "^(rest|a2a|ui)$", .check = check_surface },
};
const struct record logs_query_fields = { "", NULL, RECORD_ROWS(logs_query_rows), FIELD_IN };

static const struct field removal_query_rows[] = {
	{ "archive", FIELD_BOOLEAN, offsetof(struct removal_query, archive),
		"archive it first; when not given: as archives.on_remove of config.yaml says",
		.has = FIELD_HAS(struct removal_query, has_archive) },
};
const struct record removal_query_fields = { "", NULL, RECORD_ROWS(removal_query_rows), FIELD_IN };

static const struct field workspace_query_rows[] = {
	{ "measure", FIELD_BOOLEAN, offsetof(struct workspace_query, measure),
		"measure disk_usage_bytes first" },
};
const struct record workspace_query_fields = { "", NULL, RECORD_ROWS(workspace_query_rows),
	FIELD_IN };

static const struct field exec_query_rows[] = {
	{ "wait", FIELD_BOOLEAN, offsetof(struct exec_query, wait),
		"respond when the exec has ended" },
};
const struct record exec_query_fields = { "", NULL, RECORD_ROWS(exec_query_rows), FIELD_IN };

static const struct field health_query_rows[] = {
	{ "deep", FIELD_BOOLEAN, offsetof(struct health_query, deep),
		"compare every file of the layers with its hash" },
};
const struct record health_query_fields = { "", NULL, RECORD_ROWS(health_query_rows), FIELD_IN };

static const struct field_choice streams[] = { { "stdout", 1 }, { "stderr", 2 }, { 0 } };
static const struct field output_query_rows[] = {
	{ "offset", FIELD_INTEGER, offsetof(struct output_query, offset),
		"the first byte to return" },
	{ "stream", FIELD_CHOICE, offsetof(struct output_query, stream),
		"stdout when not given; both as events", .choices = streams },
	{ "follow", FIELD_BOOLEAN, offsetof(struct output_query, follow),
		"follow until the exec has ended" },
};
const struct record output_query_fields = { "", NULL, RECORD_ROWS(output_query_rows), FIELD_IN };

static const struct field attach_query_rows[] = {
	{ "offset", FIELD_INTEGER, offsetof(struct attach_query, offset),
		"the first byte of stdout, or of a terminal, to send" },
	{ "stderr_offset", FIELD_INTEGER, offsetof(struct attach_query, stderr_offset),
		"the first byte of stderr to send" },
};
const struct record attach_query_fields = { "", NULL, RECORD_ROWS(attach_query_rows), FIELD_IN };

static const struct field stdin_query_rows[] = {
	{ "eof", FIELD_BOOLEAN, offsetof(struct stdin_query, eof),
		"close stdin after this (a terminal gets ^D)" },
};
const struct record stdin_query_fields = { "", NULL, RECORD_ROWS(stdin_query_rows), FIELD_IN };

#define FILE_AT(member) offsetof(struct file_query, member)
static const struct field file_get_query_rows[] = {
	{ "list", FIELD_BOOLEAN, FILE_AT(list), "list the directory" },
	{ "stat", FIELD_BOOLEAN, FILE_AT(stat), "file information, without following links" },
	PAGE_ROWS(struct file_query),
};
const struct record file_get_query_fields = { "", NULL, RECORD_ROWS(file_get_query_rows),
	FIELD_IN };

static const struct field file_put_query_rows[] = {
	{ "mkdir", FIELD_BOOLEAN, FILE_AT(mkdir), "create a directory and its parents" },
	{ "move", FIELD_TEXT, FILE_AT(move), "move the file to this path in the workspace",
		.least = 1, .most = 4095 },
	{ "mode", FIELD_TEXT, FILE_AT(mode), "permissions of the file, octal",
		.pattern = "^0?[0-7]{3}$", .check = check_octal },
};
const struct record file_put_query_fields = { "", NULL, RECORD_ROWS(file_put_query_rows),
	FIELD_IN };

static const struct field file_delete_query_rows[] = {
	{ "recursive", FIELD_BOOLEAN, FILE_AT(recursive), "remove a directory and its content" },
};
const struct record file_delete_query_fields = { "", NULL, RECORD_ROWS(file_delete_query_rows),
	FIELD_IN };

static const struct field_choice formats[] = { { "tar", 0 }, { "tar.zst", 1 }, { 0 } };
static const struct field archive_query_rows[] = {
	{ "path", FIELD_TEXT, offsetof(struct archive_query, path),
		"from /workspace on, or absolute; /workspace when not given", .most = 4095 },
	{ "format", FIELD_CHOICE, offsetof(struct archive_query, format), "tar when not given",
		.choices = formats },
};
const struct record archive_get_query_fields = { "", NULL, RECORD_ROWS(archive_query_rows),
	FIELD_IN };
const struct record archive_put_query_fields = { "", NULL, archive_query_rows, 1, FIELD_IN };

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
	{ "patch", FIELD_BOOLEAN, offsetof(struct diff_query, patch),
		"answer with a patch, as git apply reads it" },
	{ "all", FIELD_BOOLEAN, offsetof(struct diff_query, all),
		"also what changed in /env and node_modules" },
	PATH_ROWS,
};
const struct record diff_query_fields = { "", NULL, RECORD_ROWS(diff_query_rows), FIELD_IN };
static const struct field changes_query_rows[] = { PATH_ROWS };
const struct record changes_query_fields = { "", NULL, RECORD_ROWS(changes_query_rows), FIELD_IN };

static const struct field events_query_rows[] = {
	{ "workspace", FIELD_TEXT, offsetof(struct events_query, workspace),
		"only events of this workspace: id, name or context_id", .least = 1 },
	{ "after", FIELD_INTEGER, offsetof(struct events_query, after),
		"begin after the event of this id, as far back as events are kept; 0: with the "
		"oldest that is kept. Only new ones when not given",
		.has = FIELD_HAS(struct events_query, has_after) },
};
const struct record events_query_fields = { "", NULL, RECORD_ROWS(events_query_rows), FIELD_IN };
const struct record workspace_events_query_fields = { "", NULL, events_query_rows + 1, 1,
	FIELD_IN };

static const struct field audit_query_rows[] = {
	{ "since", FIELD_TEXT, offsetof(struct audit_query, since),
		"only lines from this time on: RFC 3339, or a duration before now (1h)",
		.least = 1 },
	{ "until", FIELD_TEXT, offsetof(struct audit_query, until), "and up to this one",
		.least = 1 },
	{ "workspace", FIELD_TEXT, offsetof(struct audit_query, workspace),
		"only lines about this workspace, which may be gone: id or name", .least = 1,
		.most = 100 },
	{ "type", FIELD_TEXT, offsetof(struct audit_query, type),
		"only lines of this type (exec.start), or of all that begin with it (exec)",
		.least = 1, .most = 60 },
	{ "follow", FIELD_BOOLEAN, offsetof(struct audit_query, follow),
		"go on with lines as they are written" },
};
const struct record audit_query_fields = { "", NULL, RECORD_ROWS(audit_query_rows), FIELD_IN };

static const struct field approvals_query_rows[] = {
	{ "state", FIELD_CHOICE, offsetof(struct approvals_query, state), "only those in it",
		.names = approval_state_names,
		.has = FIELD_HAS(struct approvals_query, has_state) },
	{ "workspace", FIELD_TEXT, offsetof(struct approvals_query, workspace),
		"only of this workspace: id, name or context_id", .least = 1 },
	PAGE_ROWS(struct approvals_query),
};
const struct record approvals_query_fields = { "", NULL, RECORD_ROWS(approvals_query_rows),
	FIELD_IN };

/* ---- answers ---- */

#define TEXT(name, ...)                                                                            \
	{                                                                                          \
		name, FIELD_TEXT, 0, __VA_ARGS__                                                   \
	}
#define COUNT(name, ...)                                                                           \
	{                                                                                          \
		name, FIELD_INTEGER, 0, __VA_ARGS__                                                \
	}

#define LIST(noun, one)                                                                            \
	static const struct field noun##_rows[] = {                                                \
		{ "items", FIELD_OBJECTS, .object = &one },                                        \
		TEXT("next_cursor", "null: no more pages", FIELD_NULLABLE),                        \
	}
LIST(workspaces, workspace_record);
const struct record workspaces_schema = { "Workspaces", NULL, RECORD_ROWS(workspaces_rows),
	FIELD_OUT };

LIST(archives, archive_record);
const struct record archives_schema = { "Archives", NULL, RECORD_ROWS(archives_rows), FIELD_OUT };

LIST(packages_stored, export_record);
const struct record packages_stored_schema = { "AgentPackages", NULL,
	RECORD_ROWS(packages_stored_rows), FIELD_OUT };
LIST(deployments, deployment_record);
const struct record deployments_schema = { "Deployments", NULL, RECORD_ROWS(deployments_rows),
	FIELD_OUT };

LIST(exports, export_record);
const struct record exports_schema = { "Exports", NULL, RECORD_ROWS(exports_rows), FIELD_OUT };

static const struct field layer_verdict_rows[] = {
	TEXT("name", NULL),
	TEXT("content_id", "null where there is a problem", FIELD_NULLABLE),
	TEXT("problem", "missing, changed, or why it can't be read; null: none", FIELD_NULLABLE),
};
static const struct record layer_verdict_schema = { "LayerVerdict", NULL,
	RECORD_ROWS(layer_verdict_rows), FIELD_OUT };
static const struct field snapshot_verdict_rows[] = {
	TEXT("snapshot", "its id"),
	{ "ok", FIELD_BOOLEAN, .help = "no layer has a problem" },
	{ "layers", FIELD_OBJECTS, .help = "topmost first", .object = &layer_verdict_schema },
};
const struct record snapshot_verdict_schema = { "SnapshotVerdict", NULL,
	RECORD_ROWS(snapshot_verdict_rows), FIELD_OUT };
LIST(snapshots, snapshot_record);
const struct record snapshots_schema = { "Snapshots", NULL, RECORD_ROWS(snapshots_rows),
	FIELD_OUT };

LIST(approvals, approval_record);
const struct record approvals_schema = { "Approvals", NULL, RECORD_ROWS(approvals_rows),
	FIELD_OUT };

LIST(agents, agent_record);
const struct record agents_schema = { "Agents", NULL, RECORD_ROWS(agents_rows), FIELD_OUT };

LIST(tokens, token_record);
const struct record tokens_schema = { "Tokens", NULL, RECORD_ROWS(tokens_rows), FIELD_OUT };

LIST(cases, case_record);
const struct record cases_schema = { "Cases", NULL, RECORD_ROWS(cases_rows), FIELD_OUT };

LIST(cells, cell_record);
const struct record cells_schema = { "Cells", NULL, RECORD_ROWS(cells_rows), FIELD_OUT };
LIST(tools, tool_record);
const struct record tools_schema = { "Tools", NULL, RECORD_ROWS(tools_rows), FIELD_OUT };
static const struct field tool_query_rows[] = {
	{ "version", FIELD_INTEGER, offsetof(struct tool_query, version),
		"when not given: the active version, else the newest", .least = 1,
		.most = UINT32_MAX },
};
const struct record tool_query_fields = { "", NULL, RECORD_ROWS(tool_query_rows), FIELD_IN };

LIST(metrics, metrics_record);
const struct record metrics_schema = { "Metrics", NULL, RECORD_ROWS(metrics_rows), FIELD_OUT };

LIST(ports, port_record);
const struct record ports_schema = { "Ports", NULL, RECORD_ROWS(ports_rows), FIELD_OUT };

LIST(trees, shared_tree_record);
const struct record trees_schema = { "Trees", NULL, RECORD_ROWS(trees_rows), FIELD_OUT };

LIST(execs, exec_fields);
const struct record execs_schema = { "Execs", NULL, RECORD_ROWS(execs_rows), FIELD_OUT };

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
const struct record file_schema = { "FileInfo", NULL, RECORD_ROWS(file_rows), FIELD_OUT };
LIST(files, file_schema);
const struct record files_schema = { "Files", NULL, RECORD_ROWS(files_rows), FIELD_OUT };
static const struct record *const file_answers[] = { &files_schema, &file_schema, NULL };
const struct record file_answer_schema = { "FileAnswer",
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
static const struct record change_schema = { "Change", NULL, RECORD_ROWS(change_rows), FIELD_OUT };
LIST(changes, change_schema);
const struct record changes_schema = { "Changes", NULL, RECORD_ROWS(changes_rows), FIELD_OUT };

static const struct field_choice applied_results[] = { { "applied", 0 }, { "pending", 1 },
	{ "same", 2 }, { "conflict", 3 }, { "refused", 4 }, { 0 } };
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
		.choices = applied_results },
	TEXT("reason", "of conflict and refused; else null", FIELD_NULLABLE),
};
static const struct record applied_change_schema = { "AppliedChange", NULL,
	RECORD_ROWS(applied_change_rows), FIELD_OUT };
static const struct field applied_rows[] = {
	COUNT("applied", "how many changes were applied"),
	COUNT("conflicts", "how many can't be"),
	{ "changes", FIELD_OBJECTS, .help = "in order of paths", .object = &applied_change_schema },
};
const struct record applied_schema = { "Applied", NULL, RECORD_ROWS(applied_rows), FIELD_OUT };

static const struct field_choice environment_states[] = { { "ready", 0 }, { "corrupt", 1 }, { 0 } };
static const struct field environment_rows[] = {
	TEXT("name", NULL),
	TEXT("package_id", NULL, FIELD_NULLABLE),
	{ "state", FIELD_CHOICE, .choices = environment_states },
	{ "created_at", FIELD_TIME, 0, NULL, FIELD_NULLABLE },
	{ "last_used_at", FIELD_TIME, 0, NULL, FIELD_NULLABLE },
	COUNT("use_count", NULL),
	COUNT("size_bytes", NULL),
	{ "kind", FIELD_CHOICE, .choices = package_kinds },
	TEXT("python_version", NULL, FIELD_NULLABLE),
	TEXT("node_version", NULL, FIELD_NULLABLE),
	{ "installed_packages", FIELD_PAIRS, .help = "name: version" },
	{ "in_use", FIELD_BOOLEAN },
	TEXT("problem", NULL, FIELD_NULLABLE),
};
const struct record environment_schema = { "Environment", NULL, RECORD_ROWS(environment_rows),
	FIELD_OUT };
LIST(environments, environment_schema);
const struct record environments_schema = { "Environments", NULL, RECORD_ROWS(environments_rows),
	FIELD_OUT };

LIST(templates, template_record);
const struct record templates_schema = { "Templates", NULL, RECORD_ROWS(templates_rows),
	FIELD_OUT };

static const struct field version_rows[] = { TEXT("name", NULL), TEXT("version", NULL) };
static const struct record version_schema = { "PackageVersion", NULL, RECORD_ROWS(version_rows),
	FIELD_OUT };
static const struct field packages_changed_rows[] = {
	TEXT("environment", "the new environment of the workspace"),
	{ "installed", FIELD_OBJECTS, .help = "new packages, and new versions",
		.object = &version_schema },
	{ "removed", FIELD_OBJECTS, .help = "packages and versions that are gone",
		.object = &version_schema },
	{ "live", FIELD_BOOLEAN,
		.help = "something runs in the workspace: the files were copied into its sandbox" },
	{ "persisted", FIELD_BOOLEAN, .help = "pyproject.toml or package.json was changed" },
};
const struct record packages_changed_schema = { "PackagesChanged", NULL,
	RECORD_ROWS(packages_changed_rows), FIELD_OUT };
static const struct field_choice package_sources[] = { { "environment", 0 }, { "workspace", 1 },
	{ 0 } };
static const struct field package_rows[] = {
	TEXT("name", "of Python: normalised"),
	TEXT("version", NULL),
	{ "kind", FIELD_CHOICE, .choices = package_kinds },
	{ "requested", FIELD_BOOLEAN, .help = "asked for by name, not only a dependency" },
	{ "source", FIELD_CHOICE, 0, "workspace: a command in it installed the package",
		.choices = package_sources },
};
static const struct record package_schema = { "Package", NULL, RECORD_ROWS(package_rows),
	FIELD_OUT };
LIST(packages, package_schema);
const struct record packages_schema = { "Packages", NULL, RECORD_ROWS(packages_rows), FIELD_OUT };

const struct field_choice problem_codes[] = { { "invalid", ERR_INVALID },
	{ "not_found", ERR_NOT_FOUND }, { "conflict", ERR_CONFLICT }, { "denied", ERR_DENIED },
	{ "limit", ERR_LIMIT }, { "disk_full", ERR_DISK_FULL }, { "unavailable", ERR_UNAVAILABLE },
	{ "corrupt", ERR_CORRUPT }, { "failed", ERR_FAILED },
	{ "command_not_found", ERR_COMMAND_NOT_FOUND }, { "not_executable", ERR_NOT_EXECUTABLE },
	{ "canceled", ERR_CANCELED }, { "unauthenticated", ERR_UNAUTHENTICATED },
	{ "approval_required", ERR_APPROVAL_REQUIRED }, { 0 } };
static const struct field problem_rows[] = {
	TEXT("type", "about:blank: the code says more"),
	TEXT("title", "of the status"),
	COUNT("status", "as in the head of the response"),
	{ "code", FIELD_CHOICE, 0, "what went wrong; stable", .choices = problem_codes },
	TEXT("detail", "what failed, on which object, and why: for people"),
	TEXT("hint", "how to correct it: often a route", FIELD_NULLABLE),
	TEXT("request_id", "as in the logs of the daemon"),
	COUNT("exit_code", "of a command that wasn't started: 126", FIELD_OPTIONAL),
	{ "trail", FIELD_OBJECTS, 0, "of denied and approval_required: how the policy judged it",
		FIELD_OPTIONAL, .object = &policy_step_record },
	{ "changes", FIELD_OBJECTS, 0, "of changes that are conflicts", FIELD_OPTIONAL,
		.object = &applied_change_schema },
};
const struct record problem_schema = { "Problem", "RFC 9457.", RECORD_ROWS(problem_rows),
	FIELD_OUT };

static const struct field_choice approval_codes[] = { { "approval_required", 0 }, { 0 } };
static const struct field approval_required_rows[] = {
	TEXT("type", "about:blank"),
	TEXT("title", "of the status"),
	COUNT("status", "202"),
	{ "code", FIELD_CHOICE, 0, NULL, .choices = approval_codes },
	TEXT("detail", "for people"),
	TEXT("hint", "the route of the approval", FIELD_NULLABLE),
	TEXT("request_id", "as in the logs of the daemon"),
	COUNT("exit_code", "126"),
	TEXT("exec", "id of the exec that waits"),
	{ "approval", FIELD_OBJECT, .object = &approval_record },
};
const struct record approval_required_schema = { "ApprovalRequired", NULL,
	RECORD_ROWS(approval_required_rows), FIELD_OUT };

static const struct field health_rows[] = { TEXT("status", NULL) };
const struct record health_schema = { "Health", NULL, RECORD_ROWS(health_rows), FIELD_OUT };

static const struct field_choice sides[] = { { "outside", 0 }, { "inside", 1 }, { 0 } };
static const struct field check_rows[] = {
	TEXT("name", "seccomp, capabilities, network_namespace, …"),
	{ "ok", FIELD_BOOLEAN },
	{ "seen_from", FIELD_CHOICE, 0,
		"outside: by the daemon, from the kernel; inside: by a process there",
		.choices = sides },
	TEXT("detail", "what was seen"),
};
static const struct record check_schema = { "IsolationCheck", NULL, RECORD_ROWS(check_rows),
	FIELD_OUT };
static const struct field verdict_rows[] = {
	TEXT("workspace", "its id"),
	TEXT("name", NULL),
	{ "ok", FIELD_BOOLEAN, .help = "all checks are" },
	{ "inside_trusted", FIELD_BOOLEAN,
		.help = "no command ran there that could have faked what was seen from inside" },
	{ "layers", FIELD_OBJECTS, .object = &check_schema },
};
const struct record verdict_schema = { "IsolationVerdict", NULL, RECORD_ROWS(verdict_rows),
	FIELD_OUT };

const struct record any_schema = { "Document", "An OpenAPI document.", NULL, 0, FIELD_OUT };
