/* carrel logs, attach: the streams of a background exec, from here.
 * 1. Output is read from the daemon's files, as `carrel logs -f` reads it: any number of clients
 * may be attached, and none of them slows the command down.
 * 2. Input is sent in pieces, one request each. The next piece is read when the command has taken
 * the last one; output and signals don't wait for that.
 * 3. The caller's terminal is raw only while an exec with a terminal is attached, and is put back
 * however that ends. */
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/daemon/daemon.h"
#include "linux/pty.h"
#include "model/nouns/exec.h"
#include "sandbox/native/terminal.h"

#define PIECE 4096 /* of input: fits into the socket, so that sending never waits */
#define DETACH_FIRST 0x10
#define DETACH_SECOND 0x11
#define DETACH_AFTER 3 /* this many SIGINT or SIGTERM that the command ignores */
#define LAST_PIECE_MS 1000
#define CHUNK 65536 /* of output */
#define LOOK_MS 200 /* a terminal that another process uses is looked at so often */

/* ---- the output of a background exec on its way here: one stream, by a connection of its own,
 * which is made again when the daemon restarts ---- */

struct tail {
	const char *name; /* "stdout" */
	int to;
	struct buf *capture; /* or NULL: to `to` */
	struct remote remote;
	struct client_response response;
	const char *exec;
	uint64_t offset; /* of the next byte */
	bool follows, is_open;
};
/* Sets the offset to the end of what there is now. ERR_NOT_FOUND as below. */
static int tail_skip(struct tail *tail, struct error *err)
{
	struct remote *remote = &tail->remote;
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response response;
	request.method = "HEAD";
	request.accept = "application/octet-stream";
	request.path = remote_exec_path(
		remote, tail->exec, arena_printf(remote->arena, "/output?stream=%s", tail->name));
	if (remote_begin(remote, &request, &response, err))
		return -1;
	tail->offset = response.next_offset;
	return 0;
}

/* Asks for what follows the offset; ctx is the tail. ERR_NOT_FOUND: there is no such exec, or its
 * output isn't kept. */
static int tail_begin(void *ctx, struct error *err)
{
	struct tail *tail = ctx;
	struct remote *remote = &tail->remote;
	const char *query = arena_printf(remote->arena, "/output?stream=%s&offset=%llu%s",
		tail->name, (unsigned long long)tail->offset, tail->follows ? "&follow=true" : "");
	if (remote_begin_get(remote, remote_exec_path(remote, tail->exec, query),
		    "application/octet-stream", NULL, &tail->response, err))
		return -1;
	tail->is_open = true;
	return 0;
}

/* The daemon went away in the middle: a background command goes on without it, and its output is
 * kept. */
static int reopen(struct tail *tail, struct error *err)
{
	if (!remote_reopen(&tail->remote, tail_begin, tail, err))
		return 0;
	if (err->code == ERR_UNAVAILABLE)
		error_hint(err, "carrel logs -f %s --stream %s --offset %llu continues there",
			tail->exec, tail->name, (unsigned long long)tail->offset);
	return error_context(err, "follow exec '%s'", tail->exec);
}

/* Where the last `lines` lines of a text begin; false: it has fewer, or as many. */
static bool find_lines(struct str text, uint64_t lines, size_t *at)
{
	for (size_t i = text.len; i-- > 0;)
		if (text.data[i] == '\n' && i + 1 < text.len && !--lines) {
			*at = i + 1;
			return true;
		}
	return false;
}

/* Reads what lies between tail->offset and `end`; *begin is where it does begin: older output may
 * have been dropped. */
static int tail_read(
	struct tail *tail, uint64_t end, struct buf *text, uint64_t *begin, struct error *err)
{
	struct remote *remote = &tail->remote;
	char data[CHUNK];
	ssize_t got;
	const char *query = arena_printf(
		remote->arena, "/output?stream=%s&offset=%" PRIu64, tail->name, tail->offset);
	if (remote_begin_get(remote, remote_exec_path(remote, tail->exec, query),
		    "application/octet-stream", NULL, &tail->response, err))
		return -1;
	uint64_t at = tail->response.next_offset - tail->response.length;
	*begin = at;
	while ((got = client_read(&remote->client, &tail->response, data, sizeof data, err)) > 0) {
		uint64_t len = (uint64_t)got, rest = end > at ? end - at : 0;
		/* What came after `end` is left out. */
		buf_append(text, data, rest < len ? rest : len);
		at += len;
	}
	return (int)got;
}

/* Sets the offset to the last `lines` lines of what there is now. */
static int tail_seek(struct tail *tail, uint64_t lines, struct error *err)
{
	struct error said;
	if (tail_skip(tail, err)) {
		/* The answer to a HEAD doesn't say what is wrong. */
		if (tail_begin(tail, &said))
			*err = said;
		return -1;
	}
	uint64_t end = tail->offset;
	for (uint64_t window = CHUNK;; window *= 4) {
		uint64_t wanted = end > window ? end - window : 0, begin;
		auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
		size_t at = 0;
		tail->offset = wanted;
		if (tail_read(tail, end, &text, &begin, err))
			return -1;
		if (text.overflow)
			return fail(err, ERR_LIMIT, "--tail: these lines are too long");
		bool is_found = find_lines((struct str){ text.data, text.len }, lines, &at);
		tail->offset = begin + at;
		if (is_found || begin != wanted || !wanted)
			return 0;
	}
}

/* Takes one piece; waits for it unless tail_has_input. At the end is_open is false. */
static int tail_pump(struct tail *tail, struct error *err)
{
	char data[CHUNK];
	ssize_t got = client_read(&tail->remote.client, &tail->response, data, sizeof data, err);
	if (got < 0)
		return tail->follows ? reopen(tail, err) : -1;
	tail->offset += (uint64_t)got;
	if (got == 0)
		tail->is_open = false;
	else if (tail->capture)
		buf_append(tail->capture, data, (size_t)got);
	else if (fd_write_full(tail->to, data, (size_t)got) != got)
		return fail_errno(err, "write standard %s", tail->to == 1 ? "output" : "error");
	return 0;
}

/* Whether tail_pump needn't wait for the socket. */
static bool tail_has_input(const struct tail *tail)
{
	return tail->is_open && (tail->response.at_end || client_has_input(&tail->remote.client));
}

/* ---- logs: what it has said, and says ---- */

static const struct arg_option logs_table[] = {
	{ 'f', "follow", ARG_FLAG, AT(follow), NULL,
		"follow the output until the command has ended" },
	{ 0, "stream", ARG_CHOICE, AT(stream), "stdout|stderr",
		"print only this stream, on stdout (default: both, to stdout and stderr)",
		"stdout|stderr" },
	{ 0, "offset", ARG_COUNT, AT(offset), "N", "with --stream: begin at this byte" },
	{ 'n', "tail", ARG_COUNT, AT(tail_lines), "N", "begin with the last N lines of each stream",
		NULL, 1 },
	{ ARG_FROM(remote_rows) },
};

/* Whichever has something. */
static int follow_tails(struct tail tails[2], struct error *err)
{
	while (tails[0].is_open || tails[1].is_open) {
		struct pollfd ready[2];
		bool has_input = false;
		for (int i = 0; i < 2; i++) {
			ready[i] = (struct pollfd){
				tails[i].is_open ? tails[i].remote.client.socket : -1, POLLIN, 0
			};
			has_input |= tail_has_input(&tails[i]);
		}
		if (poll(ready, 2, has_input ? 0 : -1) < 0 && errno != EINTR)
			return fail_errno(err, "wait for output");
		for (int i = 0; i < 2; i++)
			if (tails[i].is_open && (ready[i].revents || tail_has_input(&tails[i])) &&
				tail_pump(&tails[i], err))
				return -1;
	}
	return 0;
}

static void print_logs(const struct buf *out, const struct buf *errors, struct json *j)
{
	struct exec_output output = exec_output_whole((struct str){ out->data, out->len },
		(struct str){ errors->data, errors->len }, false);
	json_object(j, NULL);
	exec_print_output(j, &output);
	json_end(j);
}

static int check_logs(const struct options *options, bool json, struct error *err)
{
	if (options->follow && json)
		return fail(err, ERR_INVALID,
			"-f and -o json can't be combined: a JSON value can't be printed before "
			"the output ends");
	if (options->offset && !options->stream)
		return fail(err, ERR_INVALID, "--offset needs --stream stdout or --stream stderr");
	if (options->offset && options->tail_lines)
		return fail(err, ERR_INVALID, "--offset and --tail can't be combined");
	return 0;
}

static int begin_tails(struct tail tails[2], const char *stream, uint64_t lines, struct error *err)
{
	for (int i = 0; i < 2; i++) {
		if (stream && strcmp(stream, tails[i].name))
			continue;
		if (stream)
			tails[i].to = STDOUT_FILENO;
		if ((lines && tail_seek(&tails[i], lines, err)) || tail_begin(&tails[i], err))
			return err->code == ERR_NOT_FOUND
				       ? error_hint(err, "only background commands (exec -d) have "
							 "logs, until their workspace is removed; "
							 "carrel ps -a lists them")
				       : -1;
	}
	return 0;
}

/* Output that was cut by the end of the daemon looks like that of a command that ended itself. */
static void say_lost(struct command *command)
{
	struct error ignored;
	struct remote_answer answer;
	const char *path = remote_exec_path(&command->remote, command->operands.items[0], "");
	const char *reason;
	if (remote_call(&command->remote, "GET", path, NULL, &answer, &ignored))
		return;
	reason = json_member_text(answer.value, "reason");
	if (reason && !strcmp(reason, reason_names[REASON_DAEMON_LOST]))
		cli_explain(&(struct result){ .reason = REASON_DAEMON_LOST }, NULL);
}

static int run_logs(struct command *command, struct error *err)
{
	const struct options *options = &command->options;
	static const char *const names[2] = { "stdout", "stderr" };
	struct buf captured[2];
	struct tail tails[2];
	if (check_logs(options, command->json, err))
		return -1;
	for (int i = 0; i < 2; i++) {
		buf_init(&captured[i], BUF_MAX_DEFAULT);
		tails[i] = (struct tail){ .name = names[i],
			.to = i + 1,
			.capture = command->json ? &captured[i] : NULL,
			.remote = command->remote,
			.exec = command->operands.items[0],
			.offset = options->offset,
			.follows = options->follow };
	}
	int failed = begin_tails(tails, options->stream, options->tail_lines, err) ||
		     follow_tails(tails, err);
	if (!failed && command->json)
		print_logs(&captured[0], &captured[1], &command->value);
	else if (!failed)
		say_lost(command);
	for (int i = 0; i < 2; i++) {
		remote_close(&tails[i].remote);
		buf_done(&captured[i]);
	}
	return failed ? -1 : 0;
}

const struct arg_spec cli_logs = {
	.command = "logs",
	.summary = "print the output of a background command",
	.group = GROUP_EXECS,
	.usage = "EXEC [options]",
	.about = "Prints the output of a background command, running or ended. `carrel ps -a` "
		 "shows how it ended.",
	ARG_TABLE(logs_table),
	.examples = "  carrel logs -f $(carrel exec demo -d -- make test)\n",
	.run = run_logs,
};

/* ---- attach ---- */

enum leaving { STAYS, LEAVES_BY_KEYS, LEAVES_BY_SIGNAL };

struct attachment {
	struct command *command;
	const char *exec;
	bool tty;
	struct tail tails[2];
	struct client input; /* for stdin; socket -1: it isn't open */
	bool is_sending;     /* a piece is on its way */
	bool is_first_key;   /* the first key of the detach sequence was typed */
	bool is_at_end;	     /* of stdin here */
	struct terminal outer;
	int signals; /* signalfd */
	int interrupts;
	enum leaving leaving;
};

static bool is_null(int fd)
{
	struct stat st;
	return !fstat(fd, &st) && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

/* ---- input ---- */

static void close_input(struct attachment *a)
{
	if (a->input.socket >= 0)
		client_done(&a->input);
	a->input.socket = -1;
	a->is_sending = false;
}

static int send_piece(struct attachment *a, const char *data, size_t len, struct error *err)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	request.method = "POST";
	request.path = remote_exec_path(
		&a->command->remote, a->exec, a->is_at_end ? "/stdin?eof=true" : "/stdin");
	request.content_type = "application/octet-stream";
	request.body = (struct str){ data, len };
	a->is_sending = true;
	return client_send(&a->input, &request, err);
}

/* ERR_CONFLICT: the command doesn't take input any more. */
static int finish_piece(struct attachment *a, struct error *err)
{
	struct client_response response;
	struct arena *arena = a->command->remote.arena;
	a->is_sending = false;
	if (client_receive(&a->input, arena, &response, err) ||
		client_read_all(&a->input, &response, arena, err))
		return -1;
	return response.status < 300 ? 0
				     : client_problem(response.status, response.body, arena, err);
}

/* An empty piece checks whether the command's stdin is open. If it isn't, only output is shown. */
static int open_input(struct attachment *a, struct error *err)
{
	if (a->command->options.no_stdin || is_null(STDIN_FILENO))
		return 0;
	if (daemon_connect(&a->input, a->command->remote.host, false, err)) {
		a->input.socket = -1;
		return -1;
	}
	if (!send_piece(a, "", 0, err) && !finish_piece(a, err))
		return 0;
	close_input(a);
	return err->code == ERR_CONFLICT ? 0 : -1;
}

/* Takes the keys that detach out of what was typed. Returns the new length; data has room for one
 * byte more. */
static size_t take_keys(struct attachment *a, char *data, size_t len)
{
	char typed[PIECE];
	size_t kept = 0;
	memcpy(typed, data, len);
	for (size_t i = 0; i < len; i++) {
		if (a->is_first_key && typed[i] == DETACH_SECOND) {
			a->leaving = LEAVES_BY_KEYS;
			return kept;
		}
		if (a->is_first_key)
			data[kept++] = DETACH_FIRST;
		a->is_first_key = typed[i] == DETACH_FIRST;
		if (!a->is_first_key)
			data[kept++] = typed[i];
	}
	return kept;
}

static int read_input(struct attachment *a, struct error *err)
{
	char data[PIECE + 1];
	ssize_t got = read(STDIN_FILENO, data, PIECE);
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	/* EIO: the terminal is gone, or this process is in its background. */
	if (got < 0 && errno != EIO)
		return fail_errno(err, "read standard input");
	a->is_at_end = got <= 0;
	size_t len = got > 0 ? (size_t)got : 0;
	if (a->outer.fd >= 0)
		len = take_keys(a, data, len);
	if (!len && !a->is_at_end)
		return 0;
	return send_piece(a, data, len, err);
}

/* The daemon restarted, or the command has closed its stdin: output goes on. */
static void stop_input(struct attachment *a)
{
	close_input(a);
	terminal_restore(&a->outer);
	a->outer.fd = -1;
}

/* ---- signals ---- */

static void resize(struct attachment *a)
{
	struct remote *remote = &a->command->remote;
	struct pty_size size;
	struct error ignored;
	auto_buf struct buf body = buf_empty(128);
	if (!a->tty || pty_get_size(STDIN_FILENO, &size, &ignored) || !size.rows || !size.columns)
		return;
	buf_printf(&body, "{\"rows\":%u,\"columns\":%u}", size.rows, size.columns);
	remote_call(remote, "POST", remote_exec_path(remote, a->exec, "/resize"), &body, NULL,
		&ignored);
}

static void pass_on(struct attachment *a, int signo)
{
	struct remote *remote = &a->command->remote;
	struct error ignored;
	auto_buf struct buf body = buf_empty(64);
	buf_printf(&body, "{\"signal\":%d}", signo);
	/* One that has ended, or a daemon that restarts: the streams tell. */
	remote_call(remote, "POST", remote_exec_path(remote, a->exec, "/signal"), &body, NULL,
		&ignored);
}

static void take_signal(struct attachment *a)
{
	struct signalfd_siginfo info;
	if (read(a->signals, &info, sizeof info) != sizeof info)
		return;
	int signo = (int)info.ssi_signo;
	if (signo == SIGWINCH) {
		resize(a);
	} else if (signo == SIGCONT) {
		terminal_continue(&a->outer);
		resize(a);
	} else if (signo == SIGHUP || (signo != SIGQUIT && ++a->interrupts >= DETACH_AFTER)) {
		a->leaving = LEAVES_BY_SIGNAL;
	} else {
		pass_on(a, signo);
	}
}

static int catch_signals(struct attachment *a, struct error *err)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGWINCH, SIGCONT };
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaddset(&set, signals[i]);
	/* A write to a closed pipe must not leave the terminal raw. */
	signal(SIGPIPE, SIG_IGN);
	a->signals = sigprocmask(SIG_BLOCK, &set, NULL)
			     ? -1
			     : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return a->signals < 0 ? fail_errno(err, "catch signals") : 0;
}

/* ---- both ---- */

static bool reads_input(struct attachment *a)
{
	return a->input.socket >= 0 && !a->is_sending && !a->is_at_end &&
	       (a->outer.fd < 0 || terminal_may_read(&a->outer));
}

/* What poll found; ready[0] and [1] are the tails. */
static int take_turn(struct attachment *a, const struct pollfd ready[5], struct error *err)
{
	struct error input_err;
	for (int i = 0; i < 2; i++)
		if (a->tails[i].is_open && (ready[i].revents || tail_has_input(&a->tails[i])) &&
			tail_pump(&a->tails[i], err))
			return -1;
	if (ready[2].revents)
		take_signal(a);
	if (ready[3].revents && finish_piece(a, &input_err))
		stop_input(a);
	else if (ready[4].revents && read_input(a, &input_err)) {
		if (input_err.code != ERR_UNAVAILABLE) {
			*err = input_err;
			return -1;
		}
		stop_input(a);
	}
	return 0;
}

static int pump_all(struct attachment *a, struct error *err)
{
	while (!a->leaving && (a->tails[0].is_open || a->tails[1].is_open)) {
		bool has_input = tail_has_input(&a->tails[0]) || tail_has_input(&a->tails[1]);
		bool reads = reads_input(a);
		struct pollfd ready[5] = { { -1, POLLIN, 0 }, { -1, POLLIN, 0 },
			{ a->signals, POLLIN, 0 },
			{ a->is_sending ? a->input.socket : -1, POLLIN, 0 },
			{ reads ? STDIN_FILENO : -1, POLLIN, 0 } };
		for (int i = 0; i < 2; i++)
			if (a->tails[i].is_open)
				ready[i].fd = a->tails[i].remote.client.socket;
		bool waits_for_terminal = a->outer.fd >= 0 && !reads && !a->is_sending;
		if (poll(ready, 5,
			    has_input		 ? 0
			    : waits_for_terminal ? LOOK_MS
						 : -1) < 0 &&
			errno != EINTR)
			return fail_errno(err, "wait for output");
		if (take_turn(a, ready, err))
			return -1;
	}
	return 0;
}

static int begin(struct attachment *a, bool has_ended, struct error *err)
{
	const struct options *options = &a->command->options;
	for (int i = 0; i < (a->tty ? 1 : 2); i++)
		if ((!options->all && tail_skip(&a->tails[i], err)) ||
			tail_begin(&a->tails[i], err))
			return -1;
	if (has_ended)
		return 0;
	if (open_input(a, err) || catch_signals(a, err))
		return -1;
	if (a->tty && a->input.socket >= 0 && isatty(STDIN_FILENO)) {
		a->outer = (struct terminal){ .fd = STDIN_FILENO, .may_set = true };
		terminal_make_raw(&a->outer);
	}
	resize(a);
	return 0;
}

/* How it ended. */
static int conclude(struct attachment *a, struct error *err)
{
	struct command *command = a->command;
	struct remote_answer answer;
	struct result result;
	const struct limits unknown = { 0 };
	if (remote_call(&command->remote, "GET",
		    remote_exec_path(&command->remote, a->exec, "?wait=true"), NULL, &answer,
		    err) ||
		remote_read_result(answer.value, &result, err))
		return -1;
	if (command->json)
		cli_print_result(
			&result, a->tails[0].capture, a->tails[1].capture, NULL, &command->value);
	else if (result.reason == REASON_CANCELED)
		cli_explain(&result, &unknown);
	else if (result.reason != REASON_EXITED && result.reason != REASON_SIGNALED)
		cli_say("the command was ended: %s", reason_names[result.reason]);
	return result_exit_code(&result);
}

/* What was typed before the keys that detach still goes in, if the command takes it. */
static int leave(struct attachment *a)
{
	struct pollfd ready = { a->input.socket, POLLIN, 0 };
	struct error ignored;
	if (a->is_sending && poll(&ready, 1, LAST_PIECE_MS) > 0)
		finish_piece(a, &ignored);
	if (!a->command->json)
		cli_say("detached; carrel attach %s attaches again", a->exec);
	return a->leaving == LEAVES_BY_KEYS ? 0 : error_exit_code(ERR_CANCELED);
}

static int find(struct attachment *a, bool *has_ended, struct error *err)
{
	struct remote *remote = &a->command->remote;
	struct remote_answer answer;
	if (remote_call(remote, "GET", remote_exec_path(remote, a->exec, ""), NULL, &answer, err))
		return -1;
	const char *state = json_member_text(answer.value, "state");
	if (!json_member_true(answer.value, "background"))
		return fail_hint(err, ERR_CONFLICT,
			"only commands started with carrel exec -d can be attached to",
			"exec '%s' runs in the foreground of another client", a->exec);
	a->tty = json_member_true(answer.value, "tty");
	*has_ended = state && !strcmp(state, "ended");
	return 0;
}

static int run_attach(struct command *command, struct error *err)
{
	static const char *const names[2] = { "stdout", "stderr" };
	struct attachment a = { .command = command,
		.exec = command->operands.items[0],
		.input = { .socket = -1 },
		.outer = { .fd = -1 },
		.signals = -1 };
	struct buf captured[2];
	bool has_ended;
	if (find(&a, &has_ended, err))
		return -1;
	for (int i = 0; i < 2; i++) {
		buf_init(&captured[i], BUF_MAX_DEFAULT);
		a.tails[i] = (struct tail){ .name = names[i],
			.to = i + 1,
			.capture = command->json ? &captured[i] : NULL,
			.remote = { .arena = &command->arena,
				.client = { .socket = -1 },
				.host = command->remote.host,
				.is_chosen = true,
				.is_far = command->remote.is_far,
				.by = command->remote.by },
			.exec = a.exec,
			.follows = true };
	}
	int code = begin(&a, has_ended, err) || pump_all(&a, err) ? -1 : 0;
	terminal_restore(&a.outer);
	if (!code)
		code = a.leaving ? leave(&a) : conclude(&a, err);
	close_input(&a);
	fd_close(&a.signals);
	for (int i = 0; i < 2; i++) {
		remote_close(&a.tails[i].remote);
		buf_done(&captured[i]);
	}
	return code;
}

static const struct arg_option table[] = {
	{ 'a', "all", ARG_FLAG, AT(all), NULL, "begin with the output so far" },
	{ 0, "no-stdin", ARG_FLAG, AT(no_stdin), NULL, "pass no input on" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_attach = {
	.command = "attach",
	.summary = "use the streams of a background command",
	.group = GROUP_EXECS,
	.usage = "EXEC [options]",
	.about = "Shows the output of a background command from now on, and passes input and "
		 "signals to it: input if it was started with -i or -t. Ends with its exit code. "
		 "Ctrl-P Ctrl-Q detaches from a command that has a terminal; the third Ctrl-C from "
		 "one that has none.",
	ARG_TABLE(table),
	.examples = "  carrel attach $(carrel exec demo -d -i -t -- bash)\n"
		    "  echo reload | carrel attach $(carrel exec demo -d -i -- ./server)\n",
	.run = run_attach,
};
