/* schema.h -- the rows: what each body and query may hold, and what answers look like. */
#pragma once
#include "format/fields.h"
#include "model/limits.h"

/* ---- what comes in ---- */
struct python_body {
	const char *version, *requirements, *torch_backend;
	text_list packages;
	text_list constraints;
	bool allow_build, pre;
};
struct network_body {
	const char *mode;
};
struct create_body {
	const char *name, *environment;
	struct python_body python;
	pair_list env, labels;
	struct limits limits;
	uint64_t ttl_ms, idle_timeout_ms;
	bool is_context, ptrace;
	struct network_body network;
};
struct patch_body {
	pair_list labels;
	struct limits limits;
	bool has_labels, has_limits, has_ttl, has_idle_timeout;
	uint64_t ttl_ms, idle_timeout_ms;
};
struct exec_body {
	text_list argv;
	const char *command, *cwd, *user;
	pair_list env;
	struct str input; /* data NULL: none */
	bool tty, background, open_stdin;
	uint64_t timeout_ms, rows, columns;
	struct limits limits; /* cpu_time and output */
};
struct signal_body {
	int signal;
	int reason; /* enum reason, 0: none was given */
};
struct resize_body {
	uint64_t rows, columns;
};
extern const struct fields create_fields, patch_fields, exec_fields, signal_fields, resize_fields;

struct list_query {
	text_list labels;
	int state; /* 1 + enum workspace_state, 0: any */
	uint64_t limit;
	const char *cursor;
};
struct workspace_query {
	bool measure;
};
struct output_query {
	uint64_t offset;
	int stream; /* 1 or 2; 0: not said */
	bool follow;
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
struct events_query {
	const char *workspace;
};
extern const struct fields list_query_fields, page_query_fields, workspace_query_fields,
	output_query_fields, stdin_query_fields, file_get_query_fields, file_put_query_fields,
	file_delete_query_fields, archive_get_query_fields, archive_put_query_fields,
	events_query_fields;
#define LIMIT_DEFAULT 100
#define LIMIT_MOST 1000

/* ---- what goes out ---- */
extern const struct fields workspace_schema, workspaces_schema, exec_schema, execs_schema,
	result_schema, file_schema, files_schema, environment_schema, environments_schema,
	problem_schema, health_schema, event_schema, any_schema;
/* All that are referred to, for the components: NULL-terminated. */
extern const struct fields *const schemas_in[];
extern const struct fields *const schemas_out[];
