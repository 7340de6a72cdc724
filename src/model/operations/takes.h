/* takes.h -- what the queries and bodies of operations are read into, where no noun has that
 * struct. */
#pragma once
#include "model/nouns/environment.h"
#include "model/nouns/template.h"
#include "model/operations/operation.h"

/* ---- workspaces ---- */
struct workspaces_query {
	struct page_query page;
	text_list labels;
	int state; /* enum workspace_state, when has_state */
	bool has_state;
};
struct workspace_query {
	bool measure;
};
struct removal_query {
	bool archive, has_archive;
};
struct health_query {
	bool deep;
};
struct suspend_body {
	bool force;
};

/* ---- execs ---- */
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
struct signal_body {
	int signal;
	int reason; /* enum reason, 0: none was given */
};
struct resize_body {
	uint64_t rows, columns;
};

/* ---- files ---- */
struct file_query {
	struct page_query page;
	bool list, stat, mkdir, recursive;
	const char *move, *mode;
};
struct tree_query {
	const char *path;
	int format; /* enum archive_format */
};
struct diff_query {
	bool patch, all;
	text_list paths;
	const char *snapshot;
};
struct apply_body {
	const char *to, *snapshot;
	text_list paths;
	bool dry_run;
};
struct tree_body {
	const char *name;
};

/* ---- packages, templates, agents ---- */
extern const struct field_choice packages_kinds[];
struct packages_body {
	text_list packages;
	int kind; /* enum env_kind_id */
	bool persist, has_persist;
};
struct upload_query {
	const char *sha256;
};
extern const struct record upload_query_record;
#define UPLOADS .query = &upload_query_record, .query_size = sizeof(struct upload_query)
struct template_body {
	const char *yaml; /* or NULL: model */
	struct template model;
	bool check;
};
struct agent_body {
	const char *yaml;
	bool check;
};
struct tool_query {
	uint64_t version; /* 0: the one that stands for its name */
};
struct logs_query {
	const char *surface;
};

/* ---- approvals, events ---- */
struct approvals_query {
	struct page_query page;
	int state; /* enum approval_state, when has_state */
	bool has_state;
	const char *workspace;
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
