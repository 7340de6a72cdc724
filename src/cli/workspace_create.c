/* carrel create: what was asked for becomes one request. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"
#include "cli/env.h"
#include "build/progress.h"
#include "model/workspace.h"

#define BODY_MAX ((size_t)8 << 20)

/* Files of this host can't be sent to the daemon. */
static const struct arg_help source_helps[] = {
	{ "requirements", "with the packages of this file: requirements, pyproject.toml, "
			  "pylock.toml; repeatable" },
	{ "pip", "with this package, e.g. 'requests>=2.31'; repeatable" },
	{ 0 },
};
static const struct arg_help choice_helps[] = {
	{ "find-links", "not supported by the daemon: use `carrel env build`" },
	{ "python", "use this Python: a version (3.12)" },
	{ 0 },
};
static const struct arg_option table[] = {
	{ 0, "env", ARG_TEXT, AT(environment), "NAME",
		"use this Python environment at /env: see `carrel env`" },
	{ ARG_FROM(env_source_rows), .helps = source_helps },
	{ ARG_FROM(env_choice_rows), .helps = choice_helps },
	{ 'e', "setenv", ARG_LIST, AT(variables), "NAME[=VALUE]",
		"set a variable for every command; without =VALUE, pass on the one set here" },
	{ 'l', "label", ARG_LIST, AT(labels), "KEY=VALUE",
		"a label; context_id=VALUE also names the workspace" },
	{ 0, "context", ARG_FLAG, AT(context), NULL,
		"create scripts/ data/ repos/ output/ and .context.json" },
	{ 0, "ttl", ARG_DURATION, AT(ttl_ms), "TIME", "remove it after this time (default never)",
		NULL, 1 },
	{ 0, "idle-timeout", ARG_DURATION, AT(idle_timeout_ms), "TIME",
		"suspend it when unused for this time (default never)", NULL, 1 },
	{ .kind = ARG_RECORD, .offset = AT(limits), .record = &limits_record },
	{ ARG_FROM(sandbox_rows) },
	{ ARG_FROM(remote_rows) },
};

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
static int print_inputs(
	struct json *j, const struct options *options, struct arena *arena, struct error *err)
{
	struct env_request request;
	struct env_wanted inputs;
	if (env_options_fill(options, "run", arena, &request, err) ||
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

static int print_python(
	struct json *j, const struct options *options, struct arena *arena, struct error *err)
{
	if (!env_options_are_given(options, arena))
		return 0;
	json_object(j, "python");
	if (options->env.python)
		json_text(j, "version", options->env.python);
	if (print_inputs(j, options, arena, err))
		return -1;
	if (options->env.allow_build)
		json_bool(j, "allow_build", true);
	json_end(j);
	return 0;
}

static int print_request(struct command *command, struct buf *out, struct error *err)
{
	const struct options *options = &command->options;
	struct arena *arena = &command->arena;
	struct json j = json_to(out, false);
	json_object(&j, NULL);
	if (command->operands.count)
		json_text(&j, "name", command->operands.items[0]);
	if (options->environment)
		json_text(&j, "environment", options->environment);
	if (print_python(&j, options, arena, err) ||
		remote_print_env(&j, &options->variables, arena, err) ||
		remote_print_labels(&j, &options->labels, &options->removed_labels, arena, err))
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
	if (client_receive(&remote->client, remote->arena, &response, &ignored) ||
		client_read_all(&remote->client, &response, remote->arena, &ignored) ||
		response.status != 201 ||
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
		if (!failed && !client_receive(&remote->client, remote->arena, &response, err) &&
			!client_read_all(&remote->client, &response, remote->arena, err))
			break;
		if (!remote_reconnect(remote, &request, &end_ms))
			return -1;
	}
	if (response.status >= 400)
		return client_problem(response.status, response.body, remote->arena, err);
	return remote_read_answer(remote, &request, &response, answer, err);
}

static int run(struct command *command, struct error *err)
{
	struct remote_answer answer = { 0 };
	struct progress progress;
	auto_buf struct buf body = buf_empty(BODY_MAX);
	if ((command->operands.count && workspace_check_name(command->operands.items[0], err)) ||
		cli_check_environment(&command->options, &command->arena, err) ||
		print_request(command, &body, err) || remote_open(&command->remote, err))
		return -1;
	/* What has to be built takes its time. */
	progress_init(&progress,
		env_options_are_given(&command->options, &command->arena) && !command->json
			? progress_kind_for(STDERR_FILENO)
			: PROGRESS_NONE,
		STDERR_FILENO);
	progress_show(&progress, "building_env", 0, 0, 0);
	int failed = post(&command->remote, &body, &answer, err);
	progress_finish(&progress);
	if (failed)
		return -1;
	const char *name = json_member_text(answer.value, "name");
	if (command->json)
		remote_print_answer(&answer, &command->out);
	else
		buf_printf(&command->out, "%s\n", name ? name : "");
	return 0;
}

const struct arg_spec cli_create = {
	.command = "create",
	.summary = "create a workspace: files that stay, an environment, limits",
	.usage = "carrel create [NAME] [options]",
	.about = "Creates a workspace: a private directory at /workspace that stays, with its own\n"
		 "environment, limits and labels. Prints its name; without NAME, a generated one.",
	ARG_TABLE(table),
	.later = "template|npm|dir|volume|v|allow-domain|settings|s|sources|plan|from",
	.examples = "  carrel create demo --pip requests\n"
		    "  carrel create agent-7 -r requirements.txt --memory 1G --ttl 7d\n"
		    "  carrel create --label team=search --label context_id=chat/42 --context\n",
	.most = 1,
	.run = run,
};
