/* carrel create: what was asked for becomes one request. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
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
	const char *environment, *net, *isolation;
	struct env_options build;
	text_list env, labels;
	struct limits limits;
	uint64_t ttl_ms, idle_timeout_ms;
	bool context, ptrace;
};
#define FIELD(name) offsetof(struct create_options, name)
#define BUILD_FIELD(name) FIELD(build.name)
static const struct arg_option options_table[] = {
	{ 0, "env", ARG_TEXT, FIELD(environment), "NAME",
		"use this Python environment at /env: see `carrel env`", NULL, 0, 0 },
	ENV_SOURCE_ROWS(
		BUILD_FIELD, "requirements, pyproject.toml, pylock.toml", "'requests>=2.31'"),
	ENV_CHOICE_ROWS(BUILD_FIELD, "not supported by the daemon: use `carrel env build`"),
	{ 0, "python", ARG_TEXT, BUILD_FIELD(python), "V", "use this Python: a version (3.12)",
		NULL, 0, 0 },
	ENV_ALLOW_BUILD_ROW(BUILD_FIELD(allow_build)),
	{ 'e', "setenv", ARG_LIST, FIELD(env), "NAME[=VALUE]",
		"set a variable for every command; without =VALUE, pass on the one set here", NULL,
		0, 0 },
	{ 'l', "label", ARG_LIST, FIELD(labels), "KEY=VALUE",
		"a label; context_id=VALUE also names the workspace", NULL, 0, 0 },
	{ 0, "context", ARG_FLAG, FIELD(context), NULL,
		"create scripts/ data/ repos/ output/ and .context.json", NULL, 0, 0 },
	{ 0, "ttl", ARG_DURATION, FIELD(ttl_ms), "TIME",
		"remove it after this time (default never)", NULL, 1, 0 },
	{ 0, "idle-timeout", ARG_DURATION, FIELD(idle_timeout_ms), "TIME",
		"suspend it when unused for this time (default never)", NULL, 1, 0 },
	SANDBOX_ROWS(FIELD, NULL),
	PTRACE_ROW(FIELD),
	ISOLATION_ROW(FIELD),
	REMOTE_ROWS(FIELD),
};
#undef FIELD
#undef BUILD_FIELD

static const struct arg_spec spec = {
	.command = "create",
	.usage = "carrel create [NAME] [options]",
	.about = "Creates a workspace: a private directory at /workspace that stays, with its own\n"
		 "environment, limits and labels. Prints its name; without NAME, a generated one.",
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
	if (options->environment && env_options_are_given(&options->build))
		return fail(err, ERR_INVALID,
			"--env can't be combined with -r, --pip or --python: it names an "
			"environment that exists");
	return 0;
}

static void print_texts(struct json *j, const char *name, const requirement_list *list)
{
	if (list->count == 0)
		return;
	json_array(j, name);
	for (size_t i = 0; i < list->count; i++)
		json_text(j, NULL, list->items[i].text);
	json_end(j);
}

/* The files are the caller's: they are read here, and what they say is sent. */
static int print_inputs(struct json *j, const struct create_options *options, struct arena *arena,
	struct error *err)
{
	struct env_request request;
	struct env_inputs inputs;
	if (env_options_fill(&options->build, "run", arena, &request, err) ||
		inputs_read(&request, arena, &inputs, err))
		return -1;
	const char *what = inputs.uv_lock.len	      ? "uv.lock"
			   : inputs.secrets.count     ? "a ${VARIABLE} in an address"
			   : inputs.locals.count      ? "a wheel or project of this host"
			   : request.find_links.count ? "--find-links"
						      : NULL;
	if (what)
		return fail_hint(err, ERR_INVALID,
			"carrel env build NAME with these options, and carrel create --env NAME",
			"the daemon does not accept %s", what);
	if (request.requirement_files.count)
		json_str(j, "requirements", inputs.lines);
	else
		print_texts(j, "packages", &inputs.requirements);
	print_texts(j, "constraints", &inputs.constraints);
	if (request.torch_backend)
		json_text(j, "torch_backend", request.torch_backend);
	if (inputs.is_pre)
		json_bool(j, "pre", true);
	return 0;
}

static int print_python(struct json *j, const struct create_options *options, struct arena *arena,
	struct error *err)
{
	if (!env_options_are_given(&options->build))
		return 0;
	json_object(j, "python");
	if (options->build.python)
		json_text(j, "version", options->build.python);
	if (print_inputs(j, options, arena, err))
		return -1;
	if (options->build.allow_build)
		json_bool(j, "allow_build", true);
	json_end(j);
	return 0;
}

static int print_request(
	const struct create_options *options, const char *name, struct buf *out, struct error *err)
{
	auto_arena struct arena arena;
	struct json j;
	arena_init(&arena);
	json_init(&j, out, false);
	json_object(&j, NULL);
	if (name)
		json_text(&j, "name", name);
	if (options->environment)
		json_text(&j, "environment", options->environment);
	if (print_python(&j, options, &arena, err) || remote_print_env(&j, &options->env, err) ||
		remote_print_labels(&j, &options->labels, &(text_list){ 0 }, err))
		return -1;
	record_print_given(&j, "limits", &limits_record, &options->limits);
	if (options->ttl_ms)
		json_u64(&j, "ttl_ms", options->ttl_ms);
	if (options->idle_timeout_ms)
		json_u64(&j, "idle_timeout_ms", options->idle_timeout_ms);
	if (options->context)
		json_bool(&j, "context", true);
	if (options->ptrace)
		json_bool(&j, "ptrace", true);
	json_end(&j);
	return 0;
}

/* Blocks the signals that end a command, to be read from *fd. */
static int catch_signals(int *fd, struct error *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	*fd = signalfd(-1, &set, SFD_CLOEXEC);
	return *fd < 0 ? fail_errno(err, "make a signal descriptor") : 0;
}

/* false: a signal came before the answer. */
static bool await_answer(struct remote *remote, int signals)
{
	struct pollfd fds[] = { { signals, POLLIN, 0 }, { remote->client.socket, POLLIN, 0 } };
	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	return !fds[0].revents;
}

static int read_response(struct remote *remote, struct client_response *response, struct error *err)
{
	auto_buf struct buf body;
	ssize_t got;
	buf_init(&body, FILE_MAX);
	if (client_receive(&remote->client, &remote->arena, response, err))
		return -1;
	do {
		char *room = buf_reserve(&body, 4096);
		if (!room)
			return fail(err, ERR_LIMIT, "the daemon's response is too long");
		got = client_read(&remote->client, response, room, 4096, err);
		if (got > 0)
			buf_grew(&body, (size_t)got);
	} while (got > 0);
	response->body = (struct str){ arena_bytes(&remote->arena, body.data, body.len), body.len };
	return got < 0 ? -1 : 0;
}

/* The daemon cancels what it can't answer any more. An answer that has come is still there to be
 * read: then the workspace is removed. */
static int cancel(struct remote *remote, const struct client_request *request, bool was_lost,
	struct error *err)
{
	struct client_response response = { 0 };
	struct remote_answer answer;
	struct error ignored, why;
	if (was_lost)
		return fail_hint(err, ERR_CANCELED,
			"carrel ls shows whether the workspace was created",
			"interrupted while the daemon restarted");
	shutdown(remote->client.socket, SHUT_RDWR);
	if (read_response(remote, &response, &ignored) || response.status != 201 ||
		remote_read_answer(remote, request, &response, &answer, &ignored))
		return fail(err, ERR_CANCELED, "interrupted: no workspace was created");
	const char *id = json_member_text(answer.value, "id");
	const char *name = json_member_text(answer.value, "name");
	remote->client.is_used = true; /* it is shut down */
	if (!id || remote_call(remote, "DELETE", remote_workspace_path(remote, id, ""), NULL, NULL,
			   &why))
		return fail_hint(err, ERR_CANCELED, "carrel rm removes it",
			"interrupted, but workspace '%s' was created: %s", name ? name : "",
			id ? why.text : "the daemon did not return its id");
	return fail(err, ERR_CANCELED, "interrupted: workspace '%s' was removed again", name);
}

/* Made once, however often the daemon has to be asked, and canceled with us. */
static int post(struct remote *remote, const struct buf *body, struct remote_answer *answer,
	struct error *err)
{
	const struct client_request request =
		remote_post_once(remote, "/v1/workspaces", body, "Carrel-Cancel: disconnect\r\n");
	struct client_response response = { 0 };
	auto_close int signals = -1;
	uint64_t end_ms = 0;
	if (catch_signals(&signals, err))
		return -1;
	for (;;) {
		int failed = client_send(&remote->client, &request, err);
		if (!failed && !await_answer(remote, signals))
			return cancel(remote, &request, end_ms != 0, err);
		if (!failed && !read_response(remote, &response, err))
			break;
		if (!remote_reconnect(remote, &request, &end_ms))
			return -1;
	}
	if (response.status >= 400)
		return client_problem(response.status, response.body, &remote->arena, err);
	return remote_read_answer(remote, &request, &response, answer, err);
}

/* What has to be built takes its time, and is silent. */
static int create(struct remote *remote, const struct create_options *options,
	const struct buf *body, struct remote_answer *answer, struct error *err)
{
	struct progress progress;
	bool is_seen = progress_kind_for(STDERR_FILENO) == PROGRESS_BAR &&
		       env_options_are_given(&options->build);
	progress_init(&progress, is_seen ? PROGRESS_BAR : PROGRESS_NONE, STDERR_FILENO);
	progress_show(&progress, "building_env", 0, 0, 0);
	int failed = post(remote, body, answer, err);
	progress_finish(&progress);
	return failed;
}

int cli_create(int argc, char **argv)
{
	struct create_options options = { 0 };
	auto_remote struct remote remote = REMOTE_NONE;
	auto_buf struct buf body, out;
	text_list operands = { 0 };
	struct remote_answer answer = { 0 };
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
