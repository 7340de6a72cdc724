#include <signal.h>
#include <string.h>
#include "api/schema.h"
#include "model/exec.h"
#include "model/workspace.h"

#define SIZE_MOST (INT64_MAX / 4) /* as model/workspace.c */
#define TIME_MOST (36525ull * 24 * 3600 * 1000)
#define ENV_MOST 1024
#define ARGV_MOST (1 << 20) /* as INIT_STRINGS_MAX; the kernel takes less */

/* ---- checks that rows can't say ---- */

static int check_mode(const char *text, struct error *err)
{
	return strcmp(text, "none") ? fail_hint(err, ERR_INVALID, "leave it out, or say \"none\"",
					      "'%s' is not available in this version", text)
				    : 0;
}

static int check_user(const char *text, struct error *err)
{
	return strcmp(text, "agent") && strcmp(text, "1000")
		       ? fail_hint(err, ERR_INVALID, "leave it out",
				 "'%s' is not the sandbox's user, 'agent' (1000)", text)
		       : 0;
}

static int check_variable(const char *key, const char *value, struct error *err)
{
	return !key[0] || strchr(key, '=')
		       ? fail(err, ERR_INVALID, "'%s' is not the name of a variable", key)
		       : 0;
}

static int check_cwd(const char *text, struct error *err)
{
	return text[0] != '/' ? fail(err, ERR_INVALID, "'%s' is not an absolute path", text) : 0;
}

static int check_argv(const void *value, struct error *err)
{
	const struct exec_body *body = value;

	if (body->argv.count && !body->argv.items[0][0])
		return fail(err, ERR_INVALID, "argv[0]: may not be empty");
	if (body->input.data && body->open_stdin)
		return fail(err, ERR_INVALID, "'stdin' and 'open_stdin' are both given");
	return 0;
}

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

#define LIMIT(member) offsetof(struct limits, member)
static const struct field limits_rows[] = {
	{ "memory", FIELD_SIZE, LIMIT(memory_bytes),
		"memory of all processes and tmpfs together; 2G when not given",
		.least = LIMIT_MEMORY_LEAST, .most = SIZE_MOST },
	{ "cpus", FIELD_CPUS, LIMIT(millicpus), "CPUs' worth of time at once" },
	{ "cpu_time", FIELD_DURATION, LIMIT(cpu_time_ms), "cpu time of one exec", .least = 1,
		.most = TIME_MOST },
	{ "timeout", FIELD_DURATION, LIMIT(timeout_ms),
		"wall time of one exec that says none itself", .least = 1, .most = TIME_MOST },
	{ "pids", FIELD_INTEGER, LIMIT(pids), "processes and threads; 1024 when not given",
		.least = 1, .most = 4194304 },
	{ "fds", FIELD_INTEGER, LIMIT(fds), "open files of a process; 1024 when not given",
		.least = 16, .most = 1048576 },
	{ "disk", FIELD_SIZE, LIMIT(disk_bytes),
		"size of /workspace, /.cache and changes of /env; 1G when not given",
		.least = 65536, .most = SIZE_MOST },
	{ "tmp", FIELD_SIZE, LIMIT(tmp_bytes),
		"size of /tmp and /dev/shm together; half of memory when not given", .least = 65536,
		.most = SIZE_MOST },
	{ "output", FIELD_SIZE, LIMIT(output_bytes), "bytes of output of one exec", .least = 1,
		.most = SIZE_MOST },
	{ "mechanism", FIELD_SHOWN, .help = "of a workspace that is shown; says nothing here" },
};
static const struct fields limits_fields = { "LimitsWanted",
	"Limits count for the whole sandbox. Sizes are bytes or text such as \"512M\", durations "
	"text such as \"30s\". The limits that a workspace is shown with can be sent as they are.",
	FIELDS(limits_rows) };

#define PYTHON(member) offsetof(struct python_body, member)
static const struct field python_rows[] = {
	{ "version", FIELD_TEXT, PYTHON(version), "such as 3.12", .least = 1, .most = 4096 },
	{ "requirements", FIELD_TEXT, PYTHON(requirements), "the text of a requirements file",
		.most = 1 << 20 },
	{ "packages", FIELD_TEXTS, PYTHON(packages), "such as requests==2.32.3", .most = 500 },
	{ "constraints", FIELD_TEXTS, PYTHON(constraints),
		"lines of a constraints file, such as urllib3<2", .most = 500 },
	{ "torch_backend", FIELD_TEXT, PYTHON(torch_backend),
		"PyTorch for cpu, cu126, ... or auto, as uv names them", .least = 1, .most = 32 },
	{ "pre", FIELD_BOOLEAN, PYTHON(pre), "take pre-releases, too" },
	{ "allow_build", FIELD_BOOLEAN, PYTHON(allow_build),
		"build packages that have no wheel, in a sandbox without network" },
};
static const struct fields python_fields = { "Python",
	"What a Python environment is made of; it is built when it isn't there.",
	FIELDS(python_rows) };

static const struct field network_rows[] = {
	{ "mode", FIELD_TEXT, offsetof(struct network_body, mode), "none: only loopback",
		FIELD_REQUIRED, .pattern = "^none$", .check = check_mode },
};
static const struct fields network_fields = { "NetworkWanted", NULL, FIELDS(network_rows) };

#define CREATE(member) offsetof(struct create_body, member)
static const struct field create_rows[] = {
	{ "name", FIELD_TEXT, CREATE(name), "one is made up when not given",
		.pattern = "^[a-z0-9][a-z0-9-]{0,63}$", .check = workspace_check_name },
	{ "python", FIELD_SHORT, CREATE(python), "a version, or what the environment is made of",
		.object = &python_fields },
	{ "environment", FIELD_TEXT, CREATE(environment), "the name of one that is built",
		.least = 1, .most = 160 },
	{ "env", FIELD_PAIRS, CREATE(env), "variables of every exec", .most = ENV_MOST,
		.pattern = "^[^=\\x00]+$", .check_pair = check_variable },
	{ "labels", FIELD_PAIRS, CREATE(labels),
		"the label context_id names the workspace as its name does",
		.most = WORKSPACE_LABELS_MAX, .pattern = "^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$",
		.check_pair = workspace_check_label },
	{ "limits", FIELD_OBJECT, CREATE(limits), .object = &limits_fields },
	{ "ttl", FIELD_DURATION, CREATE(ttl_ms), "it is removed after so long", .least = 1,
		.most = TIME_MOST },
	{ "idle_timeout", FIELD_DURATION, CREATE(idle_timeout_ms),
		"it is suspended when nothing was done for so long", .least = 1,
		.most = TIME_MOST },
	{ "context", FIELD_BOOLEAN, CREATE(is_context),
		"with scripts/ data/ repos/ output/, .venv and .context.json" },
	{ "ptrace", FIELD_BOOLEAN, CREATE(ptrace),
		"its processes may trace each other: gdb, strace, LeakSanitizer" },
	{ "network", FIELD_OBJECT, CREATE(network), .object = &network_fields },
	{ "template", FIELD_ABSENT, .help = "not available in this version" },
	{ "from", FIELD_ABSENT, .help = "not available in this version" },
	{ "node", FIELD_ABSENT, .help = "not available in this version" },
	{ "settings", FIELD_ABSENT, .help = "not available in this version" },
	{ "sources", FIELD_ABSENT, .help = "not available in this version" },
};
const struct fields create_fields = { "WorkspaceWanted", NULL, FIELDS(create_rows) };

#define PATCH(member) offsetof(struct patch_body, member)
static const struct field patch_rows[] = {
	{ "labels", FIELD_PAIRS, PATCH(labels), "to be set; null removes one", FIELD_NULLABLE,
		.most = 2 * WORKSPACE_LABELS_MAX, .has = FIELD_HAS(struct patch_body, has_labels),
		.pattern = "^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$",
		.check_pair = workspace_check_label },
	{ "limits", FIELD_OBJECT, PATCH(limits), "while nothing runs in it; null: as it is",
		.object = &limits_fields, .has = FIELD_HAS(struct patch_body, has_limits) },
	{ "ttl", FIELD_DURATION, PATCH(ttl_ms), "from now; null: none", .least = 1,
		.most = TIME_MOST, .has = FIELD_HAS(struct patch_body, has_ttl) },
	{ "idle_timeout", FIELD_DURATION, PATCH(idle_timeout_ms), "null: none", .least = 1,
		.most = TIME_MOST, .has = FIELD_HAS(struct patch_body, has_idle_timeout) },
};
const struct fields patch_fields = { "WorkspaceChange", "What isn't given stays as it is.",
	FIELDS(patch_rows) };

static const struct field exec_limits_rows[] = {
	{ "cpu_time", FIELD_DURATION, LIMIT(cpu_time_ms), "cpu time of all its processes",
		.least = 1, .most = TIME_MOST },
	{ "output", FIELD_SIZE, LIMIT(output_bytes), "bytes of output; 64M when it is captured",
		.least = 1, .most = SIZE_MOST },
};
static const struct fields exec_limits_fields = { "ExecLimits", NULL, FIELDS(exec_limits_rows) };

#define EXEC(member) offsetof(struct exec_body, member)
static const struct field exec_rows[] = {
	{ "argv", FIELD_TEXTS, EXEC(argv), "the program and its arguments", FIELD_STRICT,
		.least = 1, .most = ARGV_MOST },
	{ "command", FIELD_TEXT, EXEC(command), "for /bin/sh -c", FIELD_STRICT, .least = 1 },
	{ "cwd", FIELD_TEXT, EXEC(cwd), "/workspace when not given", .most = 4095,
		.pattern = "^/[^\\x00]*$", .check = check_cwd },
	{ "env", FIELD_PAIRS, EXEC(env), "variables, on top of the workspace's", .most = ENV_MOST,
		.pattern = "^[^=\\x00]+$", .check_pair = check_variable },
	{ "stdin", FIELD_BYTES, EXEC(input), "all of it: text, or {\"base64\": …}" },
	{ "open_stdin", FIELD_BOOLEAN, EXEC(open_stdin),
		"stdin is fed by POST /v1/execs/{id}/stdin" },
	{ "timeout", FIELD_DURATION, EXEC(timeout_ms),
		"wall time; 300 s when not given, none for background", .least = 1,
		.most = TIME_MOST },
	{ "limits", FIELD_OBJECT, EXEC(limits), .object = &exec_limits_fields },
	{ "tty", FIELD_BOOLEAN, EXEC(tty), "with a terminal of its own" },
	{ "rows", FIELD_INTEGER, EXEC(rows), "of the terminal; 24 when not given", .least = 1,
		.most = 65535 },
	{ "columns", FIELD_INTEGER, EXEC(columns), "of the terminal; 80 when not given", .least = 1,
		.most = 65535 },
	{ "background", FIELD_BOOLEAN, EXEC(background),
		"answered when it runs; it goes on without the client" },
	{ "user", FIELD_TEXT, EXEC(user), "the sandbox's own: agent, or 1000",
		.pattern = "^(agent|1000)$", .check = check_user },
};
static const char *const exec_one_of[] = { "argv", "command", NULL };
const struct fields exec_fields = { "ExecWanted", NULL, FIELDS(exec_rows), check_argv,
	exec_one_of };

#define SIGNAL(name)                                                                               \
	{ #name, SIG##name },                                                                      \
	{                                                                                          \
		"SIG" #name, SIG##name                                                             \
	}
static const struct field_choice signals[] = {
	SIGNAL(HUP),
	SIGNAL(INT),
	SIGNAL(QUIT),
	SIGNAL(ILL),
	SIGNAL(TRAP),
	SIGNAL(ABRT),
	SIGNAL(BUS),
	SIGNAL(FPE),
	SIGNAL(KILL),
	SIGNAL(USR1),
	SIGNAL(SEGV),
	SIGNAL(USR2),
	SIGNAL(PIPE),
	SIGNAL(ALRM),
	SIGNAL(TERM),
	SIGNAL(CHLD),
	SIGNAL(CONT),
	SIGNAL(STOP),
	SIGNAL(TSTP),
	SIGNAL(TTIN),
	SIGNAL(TTOU),
	SIGNAL(URG),
	SIGNAL(XCPU),
	SIGNAL(XFSZ),
	SIGNAL(VTALRM),
	SIGNAL(PROF),
	SIGNAL(WINCH),
	SIGNAL(IO),
	SIGNAL(PWR),
	SIGNAL(SYS),
	{ 0 },
};
static const struct field_choice told_reasons[] = { { "output_limit", REASON_OUTPUT_LIMIT },
	{ 0 } };
static const struct field signal_rows[] = {
	{ "signal", FIELD_NUMBERED, offsetof(struct signal_body, signal), "its name or number",
		FIELD_REQUIRED, .least = 1, .most = 64, .choices = signals },
	{ "reason", FIELD_CHOICE, offsetof(struct signal_body, reason),
		"with KILL, by who handed in its streams and counts what comes out: why it ends",
		.choices = told_reasons },
};
const struct fields signal_fields = { "Signal", NULL, FIELDS(signal_rows) };

static const struct field resize_rows[] = {
	{ "rows", FIELD_INTEGER, offsetof(struct resize_body, rows), NULL, FIELD_REQUIRED,
		.least = 1, .most = 65535 },
	{ "columns", FIELD_INTEGER, offsetof(struct resize_body, columns), NULL, FIELD_REQUIRED,
		.least = 1, .most = 65535 },
};
const struct fields resize_fields = { "Size", "Of a terminal.", FIELDS(resize_rows) };

/* ---- queries ---- */

#define PAGE_ROWS(type)                                                                            \
	{ "limit", FIELD_INTEGER, offsetof(type, limit), "items at most; 100 when not given",      \
		.least = 1, .most = LIMIT_MOST },                                                  \
	{                                                                                          \
		"cursor", FIELD_TEXT, offsetof(type, cursor), "next_cursor of the page before",    \
			.least = 1                                                                 \
	}
static const struct field_choice states[] = {
	{ "creating", 1 + WORKSPACE_CREATING },
	{ "ready", 1 + WORKSPACE_READY },
	{ "running", 1 + WORKSPACE_RUNNING },
	{ "suspended", 1 + WORKSPACE_SUSPENDED },
	{ "failed", 1 + WORKSPACE_FAILED },
	{ "deleting", 1 + WORKSPACE_DELETING },
	{ 0 },
};
static const struct field list_query_rows[] = {
	{ "label", FIELD_TEXTS, offsetof(struct list_query, labels),
		"KEY=VALUE, or KEY: it has that label; all of them when given several times",
		.most = WORKSPACE_LABELS_MAX, .pattern = "^[^=\\x00][^\\x00]*$",
		.check = check_label_filter },
	{ "state", FIELD_CHOICE, offsetof(struct list_query, state), .choices = states },
	PAGE_ROWS(struct list_query),
};
const struct fields list_query_fields = { "", NULL, FIELDS(list_query_rows) };
const struct fields page_query_fields = { "", NULL, list_query_rows + 2, 2 };

static const struct field workspace_query_rows[] = {
	{ "measure", FIELD_BOOLEAN, offsetof(struct workspace_query, measure),
		"disk_usage_bytes is brought up to date first" },
};
const struct fields workspace_query_fields = { "", NULL, FIELDS(workspace_query_rows) };

static const struct field_choice streams[] = { { "stdout", 1 }, { "stderr", 2 }, { 0 } };
static const struct field output_query_rows[] = {
	{ "offset", FIELD_INTEGER, offsetof(struct output_query, offset),
		"the first byte that is wanted" },
	{ "stream", FIELD_CHOICE, offsetof(struct output_query, stream),
		"stdout when not given; both as events", .choices = streams },
	{ "follow", FIELD_BOOLEAN, offsetof(struct output_query, follow),
		"goes on until the exec has ended" },
};
const struct fields output_query_fields = { "", NULL, FIELDS(output_query_rows) };

static const struct field stdin_query_rows[] = {
	{ "eof", FIELD_BOOLEAN, offsetof(struct stdin_query, eof),
		"nothing comes after this: stdin is closed (a terminal gets ^D)" },
};
const struct fields stdin_query_fields = { "", NULL, FIELDS(stdin_query_rows) };

#define FILE_AT(member) offsetof(struct file_query, member)
static const struct field file_get_query_rows[] = {
	{ "list", FIELD_BOOLEAN, FILE_AT(list), "what is in the directory" },
	{ "stat", FIELD_BOOLEAN, FILE_AT(stat), "what it is, links not followed" },
	PAGE_ROWS(struct file_query),
};
const struct fields file_get_query_fields = { "", NULL, FIELDS(file_get_query_rows) };

static const struct field file_put_query_rows[] = {
	{ "mkdir", FIELD_BOOLEAN, FILE_AT(mkdir), "make a directory, with those above it" },
	{ "move", FIELD_TEXT, FILE_AT(move), "move it there, within the workspace", .least = 1,
		.most = 4095 },
	{ "mode", FIELD_TEXT, FILE_AT(mode), "permissions of the file, octal",
		.pattern = "^0?[0-7]{3}$", .check = check_octal },
};
const struct fields file_put_query_fields = { "", NULL, FIELDS(file_put_query_rows) };

static const struct field file_delete_query_rows[] = {
	{ "recursive", FIELD_BOOLEAN, FILE_AT(recursive), "a directory with all below it" },
};
const struct fields file_delete_query_fields = { "", NULL, FIELDS(file_delete_query_rows) };

static const struct field_choice formats[] = { { "tar", 0 }, { "tar.zst", 1 }, { 0 } };
static const struct field archive_query_rows[] = {
	{ "path", FIELD_TEXT, offsetof(struct archive_query, path), "the whole when not given",
		.most = 4095 },
	{ "format", FIELD_CHOICE, offsetof(struct archive_query, format), "tar when not given",
		.choices = formats },
};
const struct fields archive_get_query_fields = { "", NULL, FIELDS(archive_query_rows) };
const struct fields archive_put_query_fields = { "", NULL, archive_query_rows, 1 };

static const struct field events_query_rows[] = {
	{ "workspace", FIELD_TEXT, offsetof(struct events_query, workspace),
		"only of this one: id, name or context_id", .least = 1 },
};
const struct fields events_query_fields = { "", NULL, FIELDS(events_query_rows) };

const struct fields *const schemas_in[] = { &create_fields, &python_fields, &limits_fields,
	&network_fields, &patch_fields, &exec_fields, &exec_limits_fields, &signal_fields,
	&resize_fields, NULL };
