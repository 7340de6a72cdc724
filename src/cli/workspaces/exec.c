/* carrel exec, shell: one command in a workspace, seen from here: its streams are this process's
 * own, signals are passed on, its end is ours.
 * 1. Pipes and /dev/null go to the daemon as descriptors and from there into the sandbox: output
 * never passes through here nor through the daemon. Terminals, files, sockets, what is captured and
 * what is capped is relayed here, as `carrel run` does (sandbox/native/streams.h).
 * 2. The exec's id is made here, so that a signal can be sent before anything was answered.
 * 3. The terminal is as it was when the command has ended, however it went. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "cli/daemon/daemon.h"
#include "cli/run/network.h"
#include "cli/workspaces/exec_call.h"
#include "linux/pty.h"
#include "model/nouns/exec.h"
#include "proc/loop.h"
#include "sandbox/native/streams.h"
#include "sandbox/plan/plan.h"

#define ANSWER_MAX 65536
static const char gone[] = "the daemon ended, and the command with it";

struct attached {
	struct remote *remote;
	struct exec_call *call;
	char id[ID_LEN + 1];
	struct streams streams;
	struct relay_events relay_events;
	struct loop *loop;
	struct client_response response;
	bool has_head;
	struct buf answer;
	struct client side; /* for signals */
	int cancels;
	uint64_t began_ms;
	bool is_over; /* output went past its cap */
	bool has_ended, has_failed;
	struct exec_ended *ended;
	struct error failure;
};

/* A descriptor of a host file can be opened again for writing through /proc/self/fd; a pipe or
 * /dev/null gives no more than it is. A terminal would: what the command leaves running in the
 * workspace would have it when we are gone, and read what is typed to others (core refuses it). */
static bool can_be_handed(int fd)
{
	struct stat st;
	if (fstat(fd, &st))
		return false;
	if (S_ISFIFO(st.st_mode))
		return true;
	return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

bool exec_lead_to_one_place(int a, int b)
{
	struct stat x, y;
	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static struct streams_kind choose_streams(const struct exec_call *call)
{
	struct streams_kind kind = { .is_privileged = geteuid() == 0,
		.output_bytes = call->output_bytes };
	enum plan_stream *streams = kind.each;
	for (int i = 0; i < 3; i++) {
		if (call->tty)
			streams[i] = STREAM_TTY;
		else if (i > 0 && call->io.out)
			streams[i] = STREAM_CAPTURED;
		else if (i > 0 && call->output_bytes)
			streams[i] = STREAM_RELAYED;
		else
			streams[i] = can_be_handed(i) ? STREAM_HANDED : STREAM_RELAYED;
	}
	kind.is_merged = streams[1] == STREAM_RELAYED && streams[2] == STREAM_RELAYED &&
			 exec_lead_to_one_place(1, 2);
	return kind;
}

int exec_replace_stdin(struct error *err)
{
	auto_close int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return empty < 0 || dup2(empty, STDIN_FILENO) < 0 ? fail_errno(err, "open '/dev/null'") : 0;
}

static void stop_when_delivered(struct attached *a)
{
	if (!streams_have_output(&a->streams))
		loop_stop(a->loop);
}

static void on_drained_long_enough(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

/* Nothing more comes from inside. */
static void finish(struct attached *a)
{
	a->has_ended = true;
	loop_unwatch(a->loop, a->remote->client.socket);
	streams_drain(&a->streams);
	/* An end is an end, also for a reader that doesn't read. */
	if (a->ended->result.reason != REASON_EXITED)
		loop_after(a->loop, EXEC_DRAIN_MS, on_drained_long_enough, a);
	stop_when_delivered(a);
}

static void on_failure(struct attached *a, const struct error *err)
{
	if (!a->has_failed)
		a->failure = *err;
	a->has_failed = true;
	loop_stop(a->loop);
}

/* A daemon whose client is gone ends the command. */
static void cancel(struct attached *a)
{
	a->ended->result = (struct result){ .reason = REASON_CANCELED,
		.signal = SIGKILL,
		.duration_ms = clock_monotonic_ms() - a->began_ms };
	finish(a);
	remote_close(a->remote);
}

/* The result object, without output. */
static int read_result(struct attached *a, struct str text, struct error *err)
{
	struct json_value *value;
	struct result *result = &a->ended->result;
	if (json_read(text, a->remote->arena, &value, err) ||
		remote_read_result(value, result, err))
		return fail(err, ERR_CORRUPT, "the daemon's response is not a result");
	a->ended->limiter = json_member_text(value, "limits");
	/* It was killed from here, and this is why. */
	if (a->is_over)
		result->reason = REASON_OUTPUT_LIMIT;
	result->truncated = a->is_over;
	return 0;
}

/* One that ended at once may have none to send any more. */
static int begin_terminal(struct attached *a, struct error *err)
{
	struct client *client = &a->remote->client;
	if (client->fd_count < 1)
		return 0;
	if (streams_use_terminal(&a->streams, take_fd(&client->fds[0]), -1, err))
		return -1;
	return streams_start(&a->streams, a->loop, &a->relay_events, err);
}

void exec_say_waiting(const char *approval)
{
	cli_say("waiting for approval %s: carrel approval show %s", approval, approval);
}

/* The interim answer names the approval. */
static void say_waiting(const struct attached *a)
{
	const char *id = a->response.location ? strrchr(a->response.location, '/') : NULL;
	if (id && id_is_valid(id + 1) && !a->call->is_quiet)
		exec_say_waiting(id + 1);
}

static int receive_head(struct attached *a, struct error *err)
{
	struct client *client = &a->remote->client;
	do {
		if (client_receive_next(client, a->remote->arena, &a->response, err))
			return -1;
		if (client_is_interim(&a->response))
			say_waiting(a);
	} while (client_is_interim(&a->response) && client_has_input(client));
	a->has_head = !client_is_interim(&a->response);
	if (!a->has_head)
		return 0;
	return a->call->tty && a->response.status == 200 ? begin_terminal(a, err) : 0;
}

/* The end of the answer. With a terminal it is a stream of events, and the last one counts. */
static int conclude(struct attached *a, struct error *err)
{
	struct str text = { a->answer.data, a->answer.len };
	if (a->response.status >= 300)
		return client_problem(a->response.status, text, a->remote->arena, err);
	if (a->response.status == 202) {
		a->ended->waiting =
			(struct str){ arena_bytes(a->remote->arena, text.data, text.len),
				text.len };
		finish(a);
		return 0;
	}
	if (a->call->tty) {
		struct sse sse;
		int got;
		sse_init(&sse);
		sse_add(&sse, text);
		while ((got = sse_next(&sse, err)) == 1)
			if (!strcmp(sse.event, "exit"))
				break;
		if (got == 1)
			text = (struct str){ arena_bytes(
						     a->remote->arena, sse.data.data, sse.data.len),
				sse.data.len };
		sse_done(&sse);
		if (got != 1)
			return got < 0 ? -1 : fail(err, ERR_UNAVAILABLE, "%s", gone);
	}
	if (read_result(a, text, err))
		return -1;
	finish(a);
	return 0;
}

/* Takes what has come. Only the first read may wait, and there is something for it. */
static int receive_body(struct attached *a, struct error *err)
{
	struct client *client = &a->remote->client;
	bool is_readable = a->has_head;
	if (!a->has_head && receive_head(a, err))
		return -1;
	if (!a->has_head)
		return 0;
	while (is_readable || client_has_input(client) || a->response.at_end) {
		char *room = buf_reserve(&a->answer, 4096);
		if (!room)
			return fail(err, ERR_CORRUPT, "the daemon's response is too long");
		ssize_t got = client_read(client, &a->response, room, 4096, err);
		if (got <= 0)
			return got < 0 ? -1 : conclude(a, err);
		buf_grew(&a->answer, (size_t)got);
		is_readable = false;
	}
	return 0;
}

static void on_answer(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct attached *a = ctx;
	struct error err;
	if (a->has_ended || !receive_body(a, &err))
		return;
	/* The response broke off: the command has run, so that "try again" would be wrong advice. A
	 * problem that the daemon sent can have either code too. */
	bool is_problem = a->has_head && a->response.status >= 400;
	if (!is_problem && err.code == (a->has_head ? ERR_CORRUPT : ERR_UNAVAILABLE))
		fail(&err, ERR_UNAVAILABLE, "%s", gone);
	on_failure(a, &err);
}

/* reason: the limit enforced here that ends the exec, or NULL. */
static int send_signal(struct attached *a, int signo, const char *reason, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response response;
	char body[64], path[64];
	/* Without a daemon the command has already ended. */
	if (a->side.socket < 0 && daemon_connect(&a->side, a->remote->host, false, err)) {
		a->side.socket = -1;
		return -1;
	}
	str_format(path, sizeof path, "/v1/execs/%s/signal", a->id);
	if (reason)
		str_format(body, sizeof body, "{\"signal\":%d,\"reason\":\"%s\"}", signo, reason);
	else
		str_format(body, sizeof body, "{\"signal\":%d}", signo);
	request.method = "POST";
	request.path = path;
	request.body = str_from(body);
	return client_call(&a->side, &request, &arena, &response, err);
}

/* The sandbox is a session of its own: the terminal's stop reaches only us, and we pass it on as
 * one that holds. */
static void stop_and_continue(struct attached *a)
{
	struct error err;
	streams_suspend(&a->streams);
	send_signal(a, SIGSTOP, NULL, &err);
	raise(SIGSTOP);
	send_signal(a, SIGCONT, NULL, &err);
	streams_continue(&a->streams);
}

static void on_signal(struct loop *loop, const struct signalfd_siginfo *info, void *ctx)
{
	struct attached *a = ctx;
	struct error err;
	int signo = (int)info->ssi_signo;
	bool is_end = signo == SIGINT || signo == SIGTERM;
	if (a->has_ended) {
		/* Only output is left, and its reader has stopped reading. */
		if (is_end || signo == SIGHUP)
			loop_stop(loop);
		return;
	}
	if (signo == SIGCONT) /* perhaps after a SIGSTOP */
		streams_continue(&a->streams);
	if (signo == SIGWINCH)
		streams_resize(&a->streams);
	else if (signo == SIGTSTP)
		stop_and_continue(a);
	else if (is_end && ++a->cancels >= EXEC_CANCEL_AFTER)
		cancel(a);
	else if (send_signal(a, signo, NULL, &err) && err.code != ERR_CONFLICT &&
		 (is_end || signo == SIGHUP || signo == SIGQUIT))
		cancel(a); /* the command hasn't begun, or has ended and its answer follows */
}

static void on_relay_finished(void *ctx)
{
	struct attached *a = ctx;
	if (a->has_ended)
		stop_when_delivered(a);
}

static void on_relay_over(void *ctx)
{
	struct attached *a = ctx;
	struct error err;
	a->is_over = true;
	if (!a->has_ended && send_signal(a, SIGKILL, "output_limit", &err) &&
		err.code != ERR_CONFLICT) {
		cancel(a);
		a->ended->result.reason = REASON_OUTPUT_LIMIT;
		a->ended->result.truncated = true;
	}
}

static void on_relay_failed(void *ctx, const struct error *err)
{
	on_failure(ctx, err);
}

static int send_request(struct attached *a, struct error *err)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	char headers[128];
	str_format(headers, sizeof headers, "Carrel-Streams: %s\r\nCarrel-Exec-Id: %s\r\n",
		a->call->tty ? "pty" : "handed", a->id);
	request.method = "POST";
	request.path = a->call->path;
	request.headers = headers;
	request.body = (struct str){ a->call->body->data, a->call->body->len };
	if (!a->call->tty) {
		request.fds = a->streams.inside;
		request.fd_count = 3;
	}
	int failed = client_send(&a->remote->client, &request, err);
	streams_close_inside(&a->streams);
	return failed;
}

static int begin(struct attached *a, struct error *err)
{
	sigset_t set;
	supervise_signals(&set);
	if (loop_new(&a->loop, err) || loop_signals(a->loop, &set, on_signal, a, err) ||
		send_request(a, err) ||
		loop_watch(a->loop, a->remote->client.socket, EPOLLIN, on_answer, a, err))
		return -1;
	return a->call->tty ? 0 : streams_start(&a->streams, a->loop, &a->relay_events, err);
}

/* Until the command has ended and its output is delivered. A third SIGINT or SIGTERM, or one before
 * it has begun, ends it: `canceled`. ERR_COMMAND_NOT_FOUND, ERR_NOT_EXECUTABLE: the command. */
static int attach(
	struct remote *remote, struct exec_call *call, struct exec_ended *ended, struct error *err)
{
	struct attached a = { .remote = remote,
		.call = call,
		.side = { .socket = -1 },
		.began_ms = clock_monotonic_ms(),
		.ended = ended };
	*ended = (struct exec_ended){ 0 };
	a.relay_events =
		(struct relay_events){ on_relay_finished, on_relay_over, on_relay_failed, &a };
	id_make(a.id);
	memcpy(ended->id, a.id, sizeof ended->id);
	buf_init(&a.answer, ANSWER_MAX);
	const struct streams_kind kind = choose_streams(call);
	if (call->tty && !call->interactive && exec_replace_stdin(err))
		return -1;
	/* Writes to a closed pipe fail with EPIPE instead. */
	signal(SIGPIPE, SIG_IGN);
	int failed = streams_prepare(&a.streams, &kind, &call->io, err) || begin(&a, err) ||
		     loop_run(a.loop, err);
	streams_done(&a.streams);
	if (a.loop)
		loop_free(a.loop);
	if (a.side.socket >= 0)
		client_done(&a.side);
	buf_done(&a.answer);
	if (!failed && a.has_failed) {
		*err = a.failure;
		failed = true;
	}
	return failed ? -1 : 0;
}

/* -- what is asked for -- */

static int print_argv(struct json *j, char *const *argv, struct error *err)
{
	json_array(j, "argv");
	for (; *argv; argv++) {
		size_t len = strlen(*argv);
		/* JSON has no other text. */
		if (str_utf8_prefix(*argv, len) != len)
			return fail_hint(err, ERR_INVALID,
				"write it to a file, or produce it in a shell: sh -c \"... "
				"$(printf ...)\"",
				"the argument '%s' is not UTF-8", *argv);
		json_text(j, NULL, *argv);
	}
	json_end(j);
	return 0;
}

static void print_terminal(struct json *j)
{
	struct pty_size size = { 24, 80 };
	struct error err;
	for (int i = 0; i < 3; i++)
		if (!pty_get_size(i, &size, &err))
			break;
	json_bool(j, "tty", true);
	/* A terminal may have no size: the daemon then uses its default. */
	if (!size.rows || !size.columns)
		return;
	json_u64(j, "rows", size.rows);
	json_u64(j, "columns", size.columns);
}

static int print_request(const struct options *options, char *const *argv, struct arena *arena,
	struct buf *out, struct error *err)
{
	const char *term = getenv("TERM");
	text_list env = { 0 };
	struct json j = json_to(out, false);
	json_object(&j, NULL);
	if (print_argv(&j, argv, err))
		return -1;
	if (options->cwd)
		json_text(&j, "cwd", options->cwd);
	if (options->tty && term && term[0])
		vec_push(arena, &env, arena_printf(arena, "TERM=%s", term));
	for (size_t i = 0; i < options->variables.count; i++)
		vec_push(arena, &env, options->variables.items[i]);
	if (remote_print_env(&j, &env, NULL, arena, err))
		return -1;
	if (options->user)
		json_text(&j, "user", options->user);
	if (options->tty)
		print_terminal(&j);
	if (options->background)
		json_bool(&j, "background", true);
	/* `carrel attach` feeds it; a terminal takes input in any case. */
	if (options->background && options->interactive && !options->tty)
		json_bool(&j, "open_stdin", true);
	if (options->limits.timeout_ms)
		json_u64(&j, "timeout_ms", options->limits.timeout_ms);
	if (options->no_wait)
		json_text(&j, "approval", exec_approval_names[EXEC_APPROVAL_RETURN]);
	json_object(&j, "limits");
	if (options->limits.cpu_time_ms)
		json_u64(&j, "cpu_time_ms", options->limits.cpu_time_ms);
	if (options->limits.output_bytes)
		json_u64(&j, "output", options->limits.output_bytes);
	json_end(&j);
	json_end(&j);
	return 0;
}

static int check_options(const struct options *options, bool json, struct error *err)
{
	if (options->tty && json && !options->background)
		return fail(err, ERR_INVALID,
			"-t and -o json can't be combined: a terminal does not separate stdout and "
			"stderr");
	return 0;
}

/* What --no-wait comes to: the command waits in the background, and this ends with 126. */
static int print_waiting(struct command *command, struct str text, struct error *err)
{
	struct json_value *value;
	if (json_read(text, &command->arena, &value, err))
		return error_context(err, "the daemon's response");
	const char *exec = json_member_text(value, "exec");
	const char *approval = json_member_text(json_member(value, "approval"), "id");
	if (!exec || !approval)
		return fail(err, ERR_CORRUPT, "the daemon's response names no approval");
	if (command->json) {
		buf_append(&command->out, text.data, str_trim(text).len);
		buf_char(&command->out, '\n');
	} else {
		buf_printf(&command->out, "%s\n", approval);
		cli_say("exec %s waits for approval %s: carrel approval show %s\n"
			"hint: carrel logs -f %s shows its output when it is approved",
			exec, approval, approval, exec);
	}
	return error_exit_code(ERR_APPROVAL_REQUIRED);
}

static int run_background(
	struct command *command, const char *path, const struct buf *body, struct error *err)
{
	struct remote_answer answer;
	uint64_t code;
	if (remote_call_once(&command->remote, path, body, "", &answer, err))
		return -1;
	if (answer.status == 202)
		return print_waiting(command, answer.text, err);
	const char *id = json_member_text(answer.value, "id");
	const char *state = json_member_text(answer.value, "state");
	if (!command->json && state && !strcmp(state, exec_state_names[EXEC_WAITING]))
		cli_say("the command waits until a reviewer approves it: carrel approval ls "
			"--state pending");
	if (command->json)
		remote_print_answer(&answer, &command->out);
	else if (!id)
		return fail(err, ERR_CORRUPT, "the daemon's response names no exec");
	else
		buf_printf(&command->out, "%s\n", id);
	/* A command that doesn't exist has ended already. */
	const char *why = json_member_text(answer.value, "error");
	if (!why || !json_member_u64(answer.value, "exit_code", &code))
		return 0;
	if (!command->json)
		cli_say("%s", why);
	return (int)code;
}

static bool read_limits(struct command *command, const char *name, struct limits *limits)
{
	struct remote *remote = &command->remote;
	struct remote_answer answer;
	struct error err;
	if (remote->client.socket < 0 ||
		remote_call(remote, "GET", remote_workspace_path(remote, name, ""), NULL, &answer,
			&err))
		return false;
	const struct json_value *from = json_member(answer.value, "limits");
	for (size_t i = 0; i < limit_count; i++)
		json_member_u64(from, field_name(&limit_rows[i], FIELD_OUT).text,
			limit_at(limits, &limit_rows[i]));
	return true;
}

/* Who denied a command that waited, and the note. */
static void explain_denial(struct command *command, const char *id)
{
	struct remote *remote = &command->remote;
	struct remote_answer answer;
	struct error err;
	const char *why = NULL;
	if (remote->client.socket >= 0 &&
		!remote_call(remote, "GET", remote_exec_path(remote, id, ""), NULL, &answer, &err))
		why = json_member_text(answer.value, "error");
	cli_say("the command was not run: %s\n"
		"hint: carrel policy explain -s FILE -- CMD shows which rule decides each part",
		why ? why : "denied");
}

/* The workspace knows its limits; they are read only when one of them was hit. */
static void explain(struct command *command, const char *name, const struct exec_ended *ended)
{
	const struct result *result = &ended->result;
	const struct limits *given = &command->options.limits;
	struct limits limits = { 0 };
	if (result->reason == REASON_EXITED || result->reason == REASON_SIGNALED)
		return;
	if (result->reason == REASON_DENIED) {
		explain_denial(command, ended->id);
		return;
	}
	read_limits(command, name, &limits);
	for (size_t i = 0; i < limit_count; i++)
		if (limit_get(given, &limit_rows[i]))
			*limit_at(&limits, &limit_rows[i]) = limit_get(given, &limit_rows[i]);
	cli_explain(result, &limits);
}

/* A client of the network that failed may have lacked it: the workspace is asked only then. */
static void hint_at_network(struct command *command, const char *name, char *const *argv,
	const struct exec_ended *ended)
{
	const struct result *result = &ended->result;
	struct remote *remote = &command->remote;
	struct remote_answer answer;
	struct error err;
	if (!result_exit_code(result) || result->reason != REASON_EXITED ||
		!network_is_wanted(argv) || remote->client.socket < 0 ||
		remote_call(remote, "GET", remote_workspace_path(remote, name, ""), NULL, &answer,
			&err))
		return;
	const char *mode = json_member_text(json_member(answer.value, "network"), "mode");
	if (mode && !strcmp(mode, network_mode_name(NETWORK_NONE)))
		cli_say("hint: workspace '%s' has no network: carrel update %s --allow-domain "
			"registries lets it reach package indexes",
			name, name);
	/* A connection that a limit has ended. */
	else if (!remote_call(remote, "GET", remote_exec_path(remote, ended->id, ""), NULL, &answer,
			 &err) &&
		 json_member_text(answer.value, "error"))
		cli_say("hint: %s", json_member_text(answer.value, "error"));
}

static int run_attached(struct command *command, const char *name, const char *path,
	char *const *argv, const struct buf *body, struct error *err)
{
	const struct options *options = &command->options;
	struct exec_ended ended;
	auto_buf struct buf out = buf_empty((size_t)-1 / 2);
	auto_buf struct buf errors = buf_empty((size_t)-1 / 2);
	struct exec_call call = { .path = path,
		.body = body,
		.tty = options->tty,
		.interactive = options->interactive || !options->tty,
		.io = { command->json ? &out : NULL, command->json ? &errors : NULL },
		.output_bytes = options->limits.output_bytes,
		.is_quiet = command->json };
	if (command->json && !call.output_bytes)
		call.output_bytes = LIMIT_OUTPUT_CAPTURED_DEFAULT;
	if ((command->remote.is_far ? exec_over_socket : attach)(
		    &command->remote, &call, &ended, err))
		return -1;
	if (ended.waiting.len)
		return print_waiting(command, ended.waiting, err);
	if (command->json)
		cli_print_result(&ended.result, &out, &errors, ended.limiter, &command->value);
	else {
		explain(command, name, &ended);
		hint_at_network(command, name, argv, &ended);
	}
	return result_exit_code(&ended.result);
}

/* A limit of output is kept here, where it is read: the workspace's has to be known. */
static bool learn_output_limit(struct command *command, const char *name)
{
	struct limits limits = { 0 };
	uint64_t *output_bytes = &command->options.limits.output_bytes;
	if (!*output_bytes && read_limits(command, name, &limits))
		*output_bytes = limits.output_bytes;
	return *output_bytes;
}

/* A daemon on another machine keeps the limit itself; what is captured here has one in any case. */
static bool learn_captured_limit(struct command *command, const char *name)
{
	const struct options *options = &command->options;
	if (command->json && !options->background && !learn_output_limit(command, name))
		command->options.limits.output_bytes = LIMIT_OUTPUT_CAPTURED_DEFAULT;
	return false;
}

static int run_once(struct command *command, const char *name, char *const *argv, struct error *err)
{
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	const char *path = remote_workspace_path(&command->remote, name, "/exec");
	if (print_request(&command->options, argv, &command->arena, &body, err))
		return -1;
	return command->options.background ? run_background(command, path, &body, err)
					   : run_attached(command, name, path, argv, &body, err);
}

static int carry_out(struct command *command, char *const *argv, struct error *err)
{
	const struct options *options = &command->options;
	const char *name = command->operands.items[0];
	if (remote_open(&command->remote, err))
		return -1;
	/* Few workspaces limit output, and one that does says so (ERR_CONFLICT). Only what is read
	 * here before there is an answer can't be read again. */
	bool is_asked = !options->background && !options->limits.output_bytes &&
			(options->tty || can_be_handed(STDIN_FILENO));
	if (command->remote.is_far)
		is_asked = learn_captured_limit(command, name);
	else if (!options->background && !is_asked)
		learn_output_limit(command, name);
	int code = run_once(command, name, argv, err);
	if (code < 0 && is_asked && err->code == ERR_CONFLICT && learn_output_limit(command, name))
		code = run_once(command, name, argv, err);
	if (code < 0 && !err->hint[0])
		cli_hint_at_command(argv,
			"this workspace has python3; `carrel create --python 3` creates one that "
			"has python",
			"/env/bin (with an environment), ", err);
	return code;
}

static int run_exec(struct command *command, struct error *err)
{
	if (!command->argv[0])
		return fail_hint(err, ERR_INVALID, args_usage(command->spec).text,
			"no command was given to run in '%s'", command->operands.items[0]);
	if (check_options(&command->options, command->json, err))
		return -1;
	return carry_out(command, command->argv, err);
}

static int run_shell(struct command *command, struct error *err)
{
	/* A shell that isn't interactive is left by an `exec` that fails: look first. */
	static char sh[] = "/bin/sh", flag[] = "-c",
		    line[] = "command -v bash >/dev/null && exec bash -l; exec sh -l";
	char *const argv[] = { sh, flag, line, NULL };
	const char *name = command->operands.items[0];
	command->options.tty = command->options.interactive = true;
	if (!isatty(STDIN_FILENO)) {
		fail(err, ERR_INVALID, "shell needs a terminal, but stdin is not one");
		return error_hint(err, "carrel exec %s -- sh -c '...', or carrel exec -i %s -- sh",
			name, name);
	}
	return carry_out(command, argv, err);
}

static const struct arg_option exec_table[] = {
	{ ARG_FROM(command_rows) },
	{ ARG_FROM(terminal_rows) },
	{ 'd', "background", ARG_FLAG, AT(background), NULL,
		"run in the background: print the id of the exec; with -i and -t for `carrel "
		"attach`" },
	{ 0, "no-wait", ARG_FLAG, AT(no_wait), NULL,
		"if the policy asks for an approval, print its id and exit 126: the command waits "
		"in the background" },
	{ 0, "timeout", ARG_DURATION, AT(limits.timeout_ms), "TIME",
		"wall time (default the workspace's, else 300s; no limit with -d or a terminal)",
		NULL, 1 },
	{ 0, "cpu-time", ARG_DURATION, AT(limits.cpu_time_ms), "TIME",
		"cpu time (default the workspace's, else no limit)", NULL, 1 },
	{ 0, "output", ARG_SIZE, AT(limits.output_bytes), "SIZE",
		"bytes of output (default the workspace's, else no limit; 64M with -o json and -d)",
		NULL, 1 },
	{ 0, "user", ARG_TEXT, AT(user), "NAME",
		"the user inside: only agent or 1000, the user of the sandbox" },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_option shell_table[] = {
	{ ARG_FROM(command_rows) },
	{ .kind = ARG_ROWS, .rows = remote_rows, .row_count = 2 }, /* no -o */
};

const struct arg_spec cli_exec = {
	.command = "exec",
	.summary = "run one command in a workspace",
	.group = GROUP_EVERYDAY,
	.usage = "NAME [options] [--] CMD [ARG...]",
	.about = "Runs a command in a workspace. The command uses the streams of this process. The "
		 "exit code is the command's; 124: a time limit, 137: another limit, 130: "
		 "canceled, 125: carrel itself failed, 126: not executable, 127: not found.",
	ARG_TABLE(exec_table),
	.examples = "  carrel exec demo -- python -c 'import requests'\n"
		    "  carrel exec demo --timeout 60s -- sh -c 'make && make test'\n"
		    "  carrel exec -it demo bash\n"
		    "  carrel exec demo -d -- ./server\n",
	.takes_command = true,
	.run = run_exec,
};
const struct arg_spec cli_shell = {
	.command = "shell",
	.summary = "open a shell in a workspace",
	.group = GROUP_EVERYDAY,
	.usage = "NAME [options]",
	.about = "Opens a shell in a workspace on this terminal: bash if the workspace has it, "
		 "else sh.",
	ARG_TABLE(shell_table),
	.run = run_shell,
};
