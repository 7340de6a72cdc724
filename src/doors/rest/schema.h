/* schema.h -- the rows: what each body and query may hold, and what answers look like. */
#pragma once
#include "model/nouns/exec.h"
#include "model/nouns/template.h"
#include "model/nouns/workspace.h"

/* ---- what comes in ---- */
struct signal_body {
	int signal;
	int reason; /* enum reason, 0: none was given */
};
struct resize_body {
	uint64_t rows, columns;
};
struct suspend_body {
	bool force;
};
struct template_body {
	const char *yaml; /* or NULL: model */
	struct template model;
	bool check;
};
struct agent_body {
	const char *yaml;
	bool check;
};
extern const struct record agent_fields, agents_schema;
struct packages_body {
	text_list packages;
	enum packages_kind { PACKAGES_PYTHON, PACKAGES_NODE } kind;
	bool persist, has_persist;
};
struct apply_body {
	const char *to, *snapshot;
	text_list paths;
	bool dry_run;
};
extern const struct record apply_fields;
extern const struct record signal_fields, resize_fields, suspend_fields, template_fields;
extern const struct record packages_fields;

struct list_query {
	text_list labels;
	int state; /* enum workspace_state, when has_state */
	bool has_state;
	uint64_t limit;
	const char *cursor;
};
struct health_query {
	bool deep;
};
struct workspace_query {
	bool measure;
};
struct tree_body {
	const char *name;
};
extern const struct record tree_fields;
struct upload_query {
	const char *sha256;
};
extern const struct record upload_query_fields;
struct logs_query {
	const char *surface;
};
extern const struct record logs_query_fields, packages_stored_schema, deployments_schema;
struct removal_query {
	bool archive, has_archive;
};
struct exec_query {
	bool wait;
};
struct output_query {
	uint64_t offset;
	int stream; /* 1 or 2; 0: not said */
	bool follow;
};
struct attach_query {
	uint64_t offset, stderr_offset;
};
struct stdin_query {
	bool eof;
};
struct file_query {
	bool list, stat, mkdir, recursive;
	const char *move, *mode, *cursor;
	uint64_t limit;
};
struct archive_query {
	const char *path;
	int format; /* enum archive_format */
};
struct diff_query {
	bool patch, all;
	text_list paths;
	const char *snapshot;
};
struct approvals_query {
	int state; /* enum approval_state, when has_state */
	bool has_state;
	const char *workspace, *cursor;
	uint64_t limit;
};
extern const struct record approvals_query_fields, approvals_schema, approval_required_schema,
	tokens_schema, cases_schema, cells_schema, tools_schema, tool_query_fields;
struct tool_query {
	uint64_t version; /* 0: the one that stands for its name */
};
struct events_query {
	const char *workspace;
	uint64_t after; /* when has_after */
	bool has_after;
};
struct audit_query {
	const char *since, *until, *workspace, *type;
	bool follow;
};
extern const struct record removal_query_fields, archives_schema, exports_schema;
extern const struct record list_query_fields, page_query_fields, workspace_query_fields,
	exec_query_fields, health_query_fields, output_query_fields, attach_query_fields,
	stdin_query_fields, file_get_query_fields, file_put_query_fields, file_delete_query_fields,
	archive_get_query_fields, archive_put_query_fields, diff_query_fields, changes_query_fields,
	events_query_fields, workspace_events_query_fields, audit_query_fields;
#define LIMIT_DEFAULT 100
#define LIMIT_MOST 1000

/* ---- what goes out ---- */
extern const struct record applied_schema;
extern const struct record metrics_schema, changes_schema, trees_schema, ports_schema,
	snapshots_schema, snapshot_verdict_schema;
extern const struct record workspaces_schema, execs_schema, file_schema, files_schema,
	environment_schema, environments_schema, templates_schema, problem_schema, health_schema,
	verdict_schema, any_schema, file_answer_schema;
extern const struct field_choice problem_codes[]; /* every error_code_name */
/* event_schemas.c: what the data of server-sent events looks like */
extern const struct record event_schema, exec_event_schema, output_event_schema, audit_line_schema;
extern const struct record packages_changed_schema, packages_schema;
