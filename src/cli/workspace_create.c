/* carrel create: what was asked for becomes one request. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/env_options.h"
#include "cli/progress.h"
#include "cli/remote.h"
#include "cli/sandbox_rows.h"
#include "model/workspace.h"

#define FILE_MAX ((size_t)1 << 20)

struct create_options {
	struct remote_options remote;
	const char *environment, *requirements, *python, *net, *isolation;
	arg_list packages, env, labels;
	struct limits limits;
	uint64_t ttl_ms, idle_timeout_ms;
	bool context, allow_build;
};
#define FIELD(name) offsetof(struct create_options, name)
static const struct arg_option options_table[] = {
	{ 0, "env", ARG_TEXT, FIELD(environment), "NAME",
		"with this Python environment at /env: see `carrel env`", NULL, 0, 0 },
	{ 'r', "requirements", ARG_ONCE, FIELD(requirements), "FILE",
		"with an environment of this requirements file", "one file can have them all", 0,
		0 },
	{ 0, "pip", ARG_LIST, FIELD(packages), "PKG", "with an environment of this package", NULL,
		0, 0 },
	{ 0, "python", ARG_TEXT, FIELD(python), "V", "with this Python: a version (3.12)", NULL, 0,
		0 },
	ENV_ALLOW_BUILD_ROW(FIELD(allow_build)),
	{ 'e', "setenv", ARG_LIST, FIELD(env), "NAME[=VALUE]",
		"set a variable for every command; without =VALUE, as it is set here", NULL, 0, 0 },
	{ 'l', "label", ARG_LIST, FIELD(labels), "KEY=VALUE",
		"a label; the workspace is found by that of context_id as by its name", NULL, 0,
		0 },
	{ 0, "context", ARG_FLAG, FIELD(context), NULL,
		"with scripts/ data/ repos/ output/ and .context.json", NULL, 0, 0 },
	{ 0, "ttl", ARG_DURATION, FIELD(ttl_ms), "TIME",
		"remove it after this time (default never)", NULL, 1, 0 },
	{ 0, "idle-timeout", ARG_DURATION, FIELD(idle_timeout_ms), "TIME",
		"suspend it when unused for this time (default never)", NULL, 1, 0 },
	SANDBOX_ROWS(FIELD, "cpu time of one command (default no limit)",
		"wall time of one command",
		"size of /workspace, /.cache and what is installed (default 1G)",
		"bytes of output of one command"),
	ISOLATION_ROW(FIELD),
	REMOTE_ROWS(FIELD),
};
#undef FIELD

static const struct arg_spec spec = {
	.command = "create",
	.usage = "carrel create [NAME] [options]",
	.about =
		"Makes a workspace: a private tree at /workspace that stays, with an environment,\n"
		"limits and labels of its own. Prints its name; without NAME one is made up.",
	.options = options_table,
	.option_count = sizeof options_table / sizeof *options_table,
	.later = "template|npm|dir|volume|v|allow-domain|settings|s|sources|plan|from",
	.examples = "  carrel create demo --pip requests\n"
		    "  carrel create agent-7 -r requirements.txt --memory 1G --ttl 7d\n"
		    "  carrel create --label team=search --label context_id=chat/42 --context\n",
};

static int check_choices(const struct create_options *options, struct error *err)
{
	if (sandbox_rows_check(options->net, options->isolation, err))
		return -1;
	if (options->environment && (options->requirements || options->python ||
					    options->packages.count || options->allow_build))
		return fail(err, ERR_INVALID,
			"--env names an environment that is there; -r, --pip and --python make "
			"one");
	return 0;
}

static int print_requirements(struct json *j, const char *path, struct error *err)
{
	auto_buf struct buf text;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t got;
	buf_init(&text, FILE_MAX);
	if (fd < 0)
		return fail_errno(err, "open requirements '%s'", path);
	do {
		char *room = buf_reserve(&text, 65536);
		got = room ? read(fd, room, 65536) : (errno = EFBIG, -1);
		if (got > 0)
			buf_grew(&text, (size_t)got);
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0)
		return fail_errno(err, "read requirements '%s'", path);
	if (str_utf8_prefix(text.data, text.len) != text.len || memchr(text.data, 0, text.len))
		return fail(err, ERR_INVALID, "requirements '%s' are no text", path);
	json_str(j, "requirements", (struct str){ text.data, text.len });
	return 0;
}

static int print_python(struct json *j, const struct create_options *options, struct error *err)
{
	if (!options->python && !options->requirements && !options->packages.count &&
		!options->allow_build)
		return 0;
	json_object(j, "python");
	if (options->python)
		json_text(j, "version", options->python);
	if (options->requirements && print_requirements(j, options->requirements, err))
		return -1;
	if (options->packages.count) {
		json_array(j, "packages");
		for (size_t i = 0; i < options->packages.count; i++)
			json_text(j, NULL, options->packages.items[i]);
		json_end(j);
	}
	if (options->allow_build)
		json_bool(j, "allow_build", true);
	json_end(j);
	return 0;
}

/* What wasn't given is left out. */
static void print_limits(struct json *j, const struct limits *limits)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = { { "memory", limits->memory_bytes }, { "disk", limits->disk_bytes },
		{ "tmp", limits->tmp_bytes }, { "pids", limits->pids }, { "fds", limits->fds },
		{ "cpu_time_ms", limits->cpu_time_ms }, { "timeout_ms", limits->timeout_ms },
		{ "output", limits->output_bytes } };
	json_object(j, "limits");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].value)
			json_u64(j, rows[i].name, rows[i].value);
	if (limits->millicpus)
		json_real(j, "cpus", (double)limits->millicpus / 1000);
	json_end(j);
}

static int print_request(
	const struct create_options *options, const char *name, struct buf *out, struct error *err)
{
	struct json j;
	json_init(&j, out, false);
	json_object(&j, NULL);
	if (name)
		json_text(&j, "name", name);
	if (options->environment)
		json_text(&j, "environment", options->environment);
	if (print_python(&j, options, err) || remote_print_env(&j, &options->env, err) ||
		remote_print_labels(&j, &options->labels, err))
		return -1;
	print_limits(&j, &options->limits);
	if (options->ttl_ms)
		json_u64(&j, "ttl_ms", options->ttl_ms);
	if (options->idle_timeout_ms)
		json_u64(&j, "idle_timeout_ms", options->idle_timeout_ms);
	if (options->context)
		json_bool(&j, "context", true);
	json_end(&j);
	return 0;
}

/* What has to be built takes its time, and is silent. */
static int create(struct remote *remote, const struct create_options *options,
	const struct buf *body, struct remote_answer *answer, struct error *err)
{
	struct progress progress;
	bool is_seen = progress_kind_for(STDERR_FILENO) == PROGRESS_BAR &&
		       (options->python || options->requirements || options->packages.count);
	progress_init(&progress, is_seen ? PROGRESS_BAR : PROGRESS_NONE, STDERR_FILENO);
	progress_show(&progress, "building_env", 0, 0, 0);
	int failed = remote_call(remote, "POST", "/v1/workspaces", body, answer, err);
	progress_finish(&progress);
	return failed;
}

int cli_create(int argc, char **argv)
{
	struct create_options options = { 0 };
	auto_remote struct remote remote = REMOTE_NONE;
	auto_buf struct buf body, out;
	arg_list operands = { 0 };
	struct remote_answer answer;
	struct error err;
	int code;
	buf_init(&body, FILE_MAX * 8);
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!remote_parse(
		    &remote, &spec, argc, argv, &options, &options.remote, 0, 1, &operands, &code))
		return code;
	const char *name = operands.count ? operands.items[0] : NULL;
	if ((name && workspace_check_name(name, &err)) || check_choices(&options, &err) ||
		print_request(&options, name, &body, &err) ||
		remote_open(&remote, &options.remote, &err) ||
		create(&remote, &options, &body, &answer, &err))
		return cli_fail(&err, remote.json);
	if (remote.json)
		return remote_print_answer(&answer);
	const char *made = json_member_text(answer.value, "name");
	buf_printf(&out, "%s\n", made ? made : "");
	return remote_print(&out);
}
