/* What answers look like, for /openapi.json; the objects are printed by model/ and core/. */
#include "api/schema.h"
#include "model/exec.h"
#include "model/workspace.h"

#define TEXT(name, ...)                                                                            \
	{                                                                                          \
		name, FIELD_TEXT, 0, __VA_ARGS__                                                   \
	}
#define COUNT(name, ...)                                                                           \
	{                                                                                          \
		name, FIELD_INTEGER, 0, __VA_ARGS__                                                \
	}

static const struct field_choice states[] = { { "creating", 0 }, { "ready", 1 }, { "running", 2 },
	{ "suspended", 3 }, { "failed", 4 }, { "deleting", 5 }, { 0 } };
static const struct field_choice exec_states[] = { { "starting", 0 }, { "running", 1 },
	{ "ended", 2 }, { 0 } };
static const struct field_choice reasons[] = { { "exited", 0 }, { "signaled", 1 }, { "timeout", 2 },
	{ "cpu_limit", 3 }, { "memory_limit", 4 }, { "output_limit", 5 }, { "disk_limit", 6 },
	{ "canceled", 7 }, { "denied", 8 }, { 0 } };
static const struct field_choice encodings[] = { { "utf-8", 0 }, { "base64", 1 }, { 0 } };

static const struct field limits_rows[] = {
	COUNT("memory_bytes", NULL, FIELD_NULLABLE),
	COUNT("disk_bytes", NULL, FIELD_NULLABLE),
	COUNT("tmp_bytes", NULL, FIELD_NULLABLE),
	COUNT("pids", NULL, FIELD_NULLABLE),
	COUNT("fds", NULL, FIELD_NULLABLE),
	{ "cpus", FIELD_NUMBER, 0, NULL, FIELD_NULLABLE },
	COUNT("cpu_time_ms", NULL, FIELD_NULLABLE),
	COUNT("timeout_ms", NULL, FIELD_NULLABLE),
	COUNT("output_bytes", NULL, FIELD_NULLABLE),
	TEXT("mechanism", "by what they are kept: cgroup-v1, cgroup-v2, watchdog; null: not warm",
		FIELD_NULLABLE),
};
static const struct fields limits_schema = { "Limits", "As in force; null: none.",
	FIELDS(limits_rows) };

static const struct field network_rows[] = {
	TEXT("mode", NULL),
	{ "allow", FIELD_TEXTS },
};
static const struct fields network_schema = { "Network", NULL, FIELDS(network_rows) };

static const struct field workspace_rows[] = {
	TEXT("id", NULL),
	TEXT("name", NULL),
	{ "state", FIELD_CHOICE, .choices = states,
		.help = "ready: usable, and nothing runs in it; running: an exec does, in the "
			"background too, or something that a past exec has left" },
	TEXT("template", NULL, FIELD_NULLABLE),
	{ "created_at", FIELD_TIME },
	{ "last_used_at", FIELD_TIME, 0, NULL, FIELD_NULLABLE },
	{ "expires_at", FIELD_TIME, 0, NULL, FIELD_NULLABLE },
	{ "labels", FIELD_PAIRS },
	TEXT("environment", NULL, FIELD_NULLABLE),
	{ "limits", FIELD_OBJECT, .object = &limits_schema },
	{ "network", FIELD_OBJECT, .object = &network_schema },
	COUNT("disk_usage_bytes", NULL),
	TEXT("disk_limit_mechanism", NULL, FIELD_NULLABLE),
	TEXT("isolation", NULL),
	{ "layers_active", FIELD_TEXTS },
	{ "warm", FIELD_BOOLEAN, .help = "a sandbox is held: the next exec starts at once" },
	{ "ptrace", FIELD_BOOLEAN },
	TEXT("snapshot", NULL, FIELD_NULLABLE),
	TEXT("error", NULL, FIELD_NULLABLE),
};
const struct fields workspace_schema = { "Workspace", NULL, FIELDS(workspace_rows) };

#define LIST(noun, one)                                                                            \
	static const struct field noun##_rows[] = {                                                \
		{ "items", FIELD_OBJECTS, .object = &one },                                        \
		TEXT("next_cursor", "null: that is all", FIELD_NULLABLE),                          \
	}
LIST(workspaces, workspace_schema);
const struct fields workspaces_schema = { "Workspaces", NULL, FIELDS(workspaces_rows) };

static const struct field exec_rows[] = {
	TEXT("id", NULL),
	TEXT("workspace", "its id"),
	{ "state", FIELD_CHOICE, .choices = exec_states },
	{ "argv", FIELD_TEXTS },
	TEXT("cwd", NULL, FIELD_NULLABLE),
	{ "background", FIELD_BOOLEAN },
	{ "tty", FIELD_BOOLEAN },
	{ "started_at", FIELD_TIME, 0, NULL, FIELD_NULLABLE },
	{ "ended_at", FIELD_TIME, 0, NULL, FIELD_NULLABLE },
	COUNT("exit_code", NULL, FIELD_NULLABLE),
	COUNT("signal", NULL, FIELD_NULLABLE),
	{ "reason", FIELD_CHOICE, 0, NULL, FIELD_NULLABLE, .choices = reasons },
	COUNT("output_bytes", NULL),
	COUNT("duration_ms", NULL, FIELD_NULLABLE),
	COUNT("cpu_ms", NULL, FIELD_NULLABLE),
	COUNT("max_rss_bytes", NULL, FIELD_NULLABLE),
	TEXT("error", NULL, FIELD_NULLABLE),
};
const struct fields exec_schema = { "Exec", NULL, FIELDS(exec_rows) };
LIST(execs, exec_schema);
const struct fields execs_schema = { "Execs", NULL, FIELDS(execs_rows) };

static const struct field result_rows[] = {
	TEXT("id", "of the exec"),
	COUNT("exit_code", NULL),
	COUNT("signal", NULL, FIELD_NULLABLE),
	{ "reason", FIELD_CHOICE, .choices = reasons },
	TEXT("stdout", NULL),
	TEXT("stderr", NULL),
	{ "encoding", FIELD_CHOICE, .choices = encodings,
		.help = "of stdout and stderr: base64 when one isn't UTF-8, or when JSON would "
			"make "
			"more than 64 KiB, and more than twice their bytes, of them" },
	{ "truncated", FIELD_BOOLEAN },
	COUNT("duration_ms", NULL),
	COUNT("cpu_ms", NULL),
	COUNT("max_rss_bytes", NULL),
	TEXT("limits", "by what they were kept", FIELD_NULLABLE),
};
const struct fields result_schema = { "Result", NULL, FIELDS(result_rows) };

static const struct field_choice types[] = { { "file", 0 }, { "directory", 1 }, { "link", 2 },
	{ "fifo", 3 }, { "socket", 4 }, { "device", 5 }, { 0 } };
static const struct field file_rows[] = {
	TEXT("name", "what isn't UTF-8 in it is shown as U+FFFD"),
	TEXT("name_base64", "the name's bytes, when they aren't UTF-8", FIELD_OPTIONAL),
	{ "type", FIELD_CHOICE, .choices = types },
	COUNT("size", NULL),
	TEXT("mode", "octal"),
	{ "modified_at", FIELD_TIME },
	TEXT("link", "where a link leads", FIELD_NULLABLE),
};
const struct fields file_schema = { "FileInfo", NULL, FIELDS(file_rows) };
LIST(files, file_schema);
const struct fields files_schema = { "Files", NULL, FIELDS(files_rows) };

static const struct field environment_rows[] = {
	TEXT("name", NULL),
	TEXT("package_id", NULL, FIELD_NULLABLE),
	TEXT("state", "ready, or corrupt"),
	{ "created_at", FIELD_TIME, 0, NULL, FIELD_NULLABLE },
	{ "last_used_at", FIELD_TIME, 0, NULL, FIELD_NULLABLE },
	COUNT("use_count", NULL),
	COUNT("size_bytes", NULL),
	TEXT("python_version", NULL, FIELD_NULLABLE),
	{ "installed_packages", FIELD_PAIRS, .help = "name: version" },
	{ "in_use", FIELD_BOOLEAN },
	TEXT("problem", NULL, FIELD_NULLABLE),
};
const struct fields environment_schema = { "Environment", NULL, FIELDS(environment_rows) };
LIST(environments, environment_schema);
const struct fields environments_schema = { "Environments", NULL, FIELDS(environments_rows) };

static const struct field problem_rows[] = {
	TEXT("type", NULL),
	TEXT("title", NULL),
	COUNT("status", NULL),
	TEXT("code",
		"stable: not_found, conflict, invalid, denied, limit, disk_full, unavailable, …"),
	TEXT("detail", "for people"),
	TEXT("hint", "what to do about it", FIELD_NULLABLE),
	TEXT("request_id", NULL),
	COUNT("exit_code", "of a command that can't be started: 126 or 127", FIELD_OPTIONAL),
};
const struct fields problem_schema = { "Problem", "RFC 9457.", FIELDS(problem_rows) };

static const struct field health_rows[] = { TEXT("status", NULL) };
const struct fields health_schema = { "Health", NULL, FIELDS(health_rows) };

static const struct field event_rows[] = {
	COUNT("id", NULL),
	TEXT("type", "workspace.created, workspace.ready, workspace.warm and workspace.cold (a "
		     "sandbox is held, or no more), workspace.suspended, workspace.failed, "
		     "workspace.deleted, exec.started, exec.ended, …"),
	{ "time", FIELD_TIME },
	TEXT("workspace", "its id"),
	TEXT("name", NULL, FIELD_NULLABLE),
	TEXT("exec", "its id, of exec.started and exec.ended", FIELD_OPTIONAL),
	TEXT("reason", "why it has ended, of exec.ended and workspace.deleted", FIELD_OPTIONAL),
	COUNT("exit_code", "of exec.ended", FIELD_OPTIONAL),
};
const struct fields event_schema = { "Event", "The data of a server-sent event.",
	FIELDS(event_rows) };

const struct fields any_schema = { "Document", "An OpenAPI document.", NULL, 0 };

const struct fields *const schemas_out[] = { &workspace_schema, &workspaces_schema, &limits_schema,
	&network_schema, &exec_schema, &execs_schema, &result_schema, &file_schema, &files_schema,
	&environment_schema, &environments_schema, &problem_schema, &health_schema, &event_schema,
	&any_schema, NULL };
