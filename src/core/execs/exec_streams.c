/* exec_streams.c -- what goes in and out of an exec: pipes, its terminal, descriptors of others.
 *
 * Wake-ups are what a short exec costs. So a captured one isn't watched at first: its output stays
 * in the pipe until init reports its exit. One that runs longer is watched, since it could fill a
 * pipe, and rests after each look: thousands of small writes are few reads.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/execs/internal.h"
#include "linux/pty.h"

#define REST_MS 5
#define PIPE_MOST (1u << 20)	 /* that a pipe can be made to hold by its user */
#define TERMINAL_MOST (1u << 17) /* that can be under way in a terminal */
#define END_OF_FILE "\004"
#define FDS_OF_PIPES 4
#define DRAINED_A_TURN 4 /* reads of one stream, then the other clients have their turn */

/* ---- what is watched ---- */

static void on_stream(struct loop *loop, int fd, uint32_t events, void *ctx);
static void on_stdin(struct loop *loop, int fd, uint32_t events, void *ctx);

static bool is_ours(const struct core_exec *e)
{
	return !exec_is_handed(e->mode);
}

static void watch_fd(struct core_exec *e, int fd, uint32_t *now, uint32_t events, loop_fd_fn *fn)
{
	struct loop *loop = e->core->loop;
	struct error err;
	if (fd < 0 || *now == events)
		return;
	if (!events)
		loop_unwatch(loop, fd);
	else if (*now ? loop_change(loop, fd, events, &err)
		      : loop_watch(loop, fd, events, fn, e, &err)) {
		/* The kernel has no memory for a watch: the output is read at the end. */
		log_record(&e->core->log, LOG_LEVEL_WARN, "a stream can't be watched", "exec",
			e->record.id, "error", err.text, NULL);
		return;
	}
	*now = events;
}

static bool wants_to_write(const struct core_exec *e)
{
	return e->stdin_rest.len || e->writers;
}

/* Brings the watches in line with what is wanted. Nothing is read of one that isn't known to have
 * started: that comes first. */
static void update(struct core_exec *e)
{
	bool reads = e->stage == STAGE_RUNNING && !e->is_paused && !e->rest;
	bool writes = exec_is_sent(e) && wants_to_write(e);
	for (int i = 0; i < 2; i++) {
		bool is_terminal = e->streams[i].fd >= 0 && e->streams[i].fd == e->terminal;
		watch_fd(e, e->streams[i].fd, &e->streams[i].events,
			(reads ? EPOLLIN : 0) | (writes && is_terminal ? EPOLLOUT : 0), on_stream);
	}
	watch_fd(e, e->stdin_fd, &e->stdin_events, writes ? EPOLLOUT : 0, on_stdin);
}

static void on_rested(struct loop *loop, void *ctx)
{
	struct core_exec *e = ctx;
	e->rest = NULL;
	update(e);
}

static void rest(struct core_exec *e)
{
	if (!e->rest)
		e->rest = loop_after(e->core->loop, REST_MS, on_rested, e);
}

static void end_rest(struct core_exec *e)
{
	loop_cancel(e->core->loop, e->rest);
	e->rest = NULL;
}

/* ---- out of the command ---- */

static void write_spool(struct core_exec *e, const char *data, size_t len)
{
	ssize_t written = fd_write_full(e->spool, data, len);
	if (written < 0 || (size_t)written < len)
		e->record.output_bytes -= len - (written > 0 ? (size_t)written : 0);
	if (!spool_rotate(e))
		exec_kill(e, REASON_OUTPUT_LIMIT);
	spool_tell_followers(e);
}

static void deliver(struct core_exec *e, int stream, const char *data, size_t len)
{
	e->record.output_bytes += len;
	e->core->metrics.output_bytes += len;
	switch (e->mode) {
	case EXEC_CAPTURED:
		buf_append(&e->captured.streams[stream], data, len);
		json_measure_add(&e->captured.measures[stream], (struct str){ data, len });
		e->core->execs->captured_bytes += len;
		break;
	case EXEC_SPOOLED:
		write_spool(e, data, len);
		break;
	default:
		if (e->listener.ended)
			e->listener.output(
				e->listener.ctx, e, stream + 1, (struct str){ data, len });
		break;
	}
}

void streams_say(struct core_exec *e, struct str text)
{
	if (e->mode == EXEC_SPOOLED && !e->record.tty)
		spool_append(e, 1, text);
	else
		deliver(e, !e->record.tty, text.data, text.len);
}

/* How many bytes more may be kept of a captured exec, for all of them together. */
static uint64_t captured_room(const struct core_exec *e)
{
	const struct core *core = e->core;
	uint64_t used = e->record.output_bytes, sure = 0, shared = 0;
	if (used < EXEC_CAPTURED_SURE)
		sure = EXEC_CAPTURED_SURE - used;
	if (core->execs->captured_bytes < core->execs->captured_max)
		shared = core->execs->captured_max - core->execs->captured_bytes;
	return sure > shared ? sure : shared;
}

static void note_full(struct core_exec *e)
{
	struct core *core = e->core;
	if (e->record.error)
		return;
	e->record.error = arena_printf(&e->arena,
		"the output of all captured commands together reached its limit of %llu bytes",
		(unsigned long long)core->execs->captured_max);
	log_record(&core->log, LOG_LEVEL_WARN, e->record.error, "exec", e->record.id, "workspace",
		e->workspace->model.id, "request_id", e->request_id, NULL);
}

/* What is past the cap is read and dropped, so that nothing waits for its reader while it is
 * killed. */
static void consume(struct core_exec *e, int stream, const char *data, size_t len)
{
	uint64_t cap = e->record.output_cap_bytes;
	/* What is kept in files is rotated instead. */
	uint64_t room = cap && e->mode != EXEC_SPOOLED ? cap - e->record.output_bytes : UINT64_MAX;
	if (e->mode == EXEC_CAPTURED && captured_room(e) < room) {
		room = captured_room(e);
		if (room < len)
			note_full(e);
	}
	size_t fits = room < len ? (size_t)room : len;
	if (fits)
		deliver(e, stream, data, fits);
	if (fits == len)
		return;
	e->record.output_dropped += len - fits;
	e->record.result.truncated = true;
	exec_kill(e, REASON_OUTPUT_LIMIT);
}

/* Reads once. 0: there is nothing. */
static size_t take(struct core_exec *e, int stream, size_t most)
{
	char *scratch = e->core->execs->scratch;
	ssize_t got = read(e->streams[stream].fd, scratch, most);
	if (got <= 0)
		return 0;
	consume(e, stream, scratch, (size_t)got);
	return (size_t)got;
}

static void write_rest(struct core_exec *e);

static void on_stream(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct core_exec *e = ctx;
	int stream = e->streams[0].fd == fd ? 0 : 1;
	if (events & EPOLLOUT)
		write_rest(e);
	if (!(events & ~(uint32_t)EPOLLOUT) || e->is_paused || !exec_is_sent(e))
		return;
	size_t got = take(e, stream, EXEC_READ_SIZE);
	if (!got && (events & (EPOLLHUP | EPOLLERR))) {
		/* Core holds the other end open, so the hang-up isn't real: stop watching. */
		watch_fd(e, fd, &e->streams[stream].events, 0, on_stream);
		return;
	}
	if (e->mode == EXEC_CAPTURED && got < EXEC_READ_SIZE / 2) {
		rest(e);
		update(e);
	}
}

void streams_started(struct core_exec *e)
{
	update(e);
}

void streams_mark_end(struct core_exec *e)
{
	end_rest(e);
	for (int i = 0; i < 2; i++)
		e->streams[i].cap = e->record.tty ? TERMINAL_MOST : PIPE_MOST;
	update(e);
}

/* What lay there at the exit, not what others write for ever: a pipe that gave less than was asked
 * for was empty then. */
static bool drain_stream(struct core_exec *e, int i)
{
	struct exec_stream *stream = &e->streams[i];
	int reads = 0;
	while (stream->fd >= 0 && stream->cap && !e->is_paused && reads++ < DRAINED_A_TURN) {
		size_t got = take(e, i, EXEC_READ_SIZE);
		if (got < (e->record.tty ? 1 : EXEC_READ_SIZE))
			stream->cap = 0;
		else
			stream->cap -= got < stream->cap ? got : stream->cap;
	}
	return stream->fd < 0 || !stream->cap;
}

static void on_later(struct loop *loop, void *ctx)
{
	struct core_exec *e = ctx;
	e->later = NULL;
	if (e->stage == STAGE_ENDING)
		exec_go_on_ending(e);
}

static void go_on_later(struct core_exec *e)
{
	if (!e->later)
		e->later = loop_after(e->core->loop, 0, on_later, e);
}

bool streams_drain(struct core_exec *e)
{
	if (!is_ours(e) || e->is_draining)
		return !e->is_draining;
	e->is_draining = true;
	bool is_empty = drain_stream(e, 0);
	is_empty &= drain_stream(e, 1);
	e->is_draining = false;
	if (!is_empty && !e->is_paused)
		go_on_later(e);
	return is_empty;
}

void exec_pause(struct core_exec *e, bool paused)
{
	if (e->mode != EXEC_STREAMED || e->is_paused == paused)
		return;
	e->is_paused = paused;
	update(e);
	if (!paused && e->stage == STAGE_ENDING && !e->is_draining)
		go_on_later(e);
}

/* ---- into the command ---- */

static int stdin_of(const struct core_exec *e)
{
	return e->record.tty && is_ours(e) ? e->terminal : e->stdin_fd;
}

/* A terminal's end of file is a character, which counts at the beginning of a line. */
static void end_stdin(struct core_exec *e)
{
	if (e->record.tty && e->terminal >= 0)
		(void)!write(e->terminal, END_OF_FILE, 1);
	watch_fd(e, e->stdin_fd, &e->stdin_events, 0, on_stdin);
	fd_close(&e->stdin_fd);
	e->stdin_state = STDIN_CLOSED;
}

static void call_writers(struct core_exec *e)
{
	struct exec_writer *writers = e->writers;
	e->writers = NULL;
	while (writers) {
		struct exec_writer *writer = writers;
		writers = writer->next;
		writer->drained(writer->ctx);
	}
}

/* The text that was given at the start, then those that wait. */
static void write_rest(struct core_exec *e)
{
	while (e->stdin_rest.len) {
		ssize_t written = write(stdin_of(e), e->stdin_rest.data, e->stdin_rest.len);
		if (written < 0 && errno == EAGAIN)
			return;
		if (written < 0) { /* the reader is gone */
			e->stdin_rest.len = 0;
			break;
		}
		e->stdin_rest.data += written;
		e->stdin_rest.len -= (size_t)written;
	}
	if (e->stdin_state == STDIN_CLOSING)
		end_stdin(e);
	call_writers(e);
	update(e);
}

static void on_stdin(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	write_rest(ctx);
}

int exec_write_stdin(const struct request *request, struct core_exec *e, struct str data, bool end,
	size_t *taken, struct error *err)
{
	ssize_t written = 0;
	if (access_check(e->core, request, VERB_EXEC_STDIN, e->workspace, err))
		return -1;
	if (exec_has_exited(e))
		return fail(err, ERR_CONFLICT, "exec '%s' has ended", e->record.id);
	bool is_waiting =
		e->stage <= STAGE_WAITING && (e->spec->open_stdin || (e->spec->tty && is_ours(e)));
	if (!is_waiting && (stdin_of(e) < 0 || e->stdin_state != STDIN_OPEN))
		return fail(err, ERR_CONFLICT, "the stdin of exec '%s' isn't open", e->record.id);
	*taken = 0;
	if (is_waiting || e->stdin_rest.len)
		return 0;
	if (data.len)
		written = write(stdin_of(e), data.data, data.len);
	if (written < 0 && errno == EAGAIN)
		written = 0;
	else if (written < 0 && (errno == EPIPE || errno == EIO))
		return fail(err, ERR_CONFLICT, "the command of exec '%s' has closed its stdin",
			e->record.id);
	else if (written < 0)
		return fail_errno(err, "write to the stdin of exec '%s'", e->record.id);
	*taken = (size_t)written;
	if (end && *taken == data.len)
		end_stdin(e);
	return 0;
}

void exec_await_stdin(struct core_exec *e, struct exec_writer *writer)
{
	writer->next = e->writers;
	e->writers = writer;
	update(e);
}

void exec_unawait_stdin(struct core_exec *e, struct exec_writer *writer)
{
	struct exec_writer **at = &e->writers;
	while (*at && *at != writer)
		at = &(*at)->next;
	if (*at)
		*at = writer->next;
	update(e);
}

/* ---- opened ---- */

/* The command's end must be an ordinary, blocking one: O_NONBLOCK would be its own too. */
static int make_pipe(int *read_end, int *write_end, int *ours, struct error *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return fail_errno(err, "make a pipe");
	*read_end = ends[0];
	*write_end = ends[1];
	fcntl(*ours, F_SETFL, O_NONBLOCK);
	return 0;
}

static int open_outputs(struct core_exec *e, struct error *err)
{
	struct execs *execs = e->core->execs;
	for (int i = 0; i < 2; i++) {
		struct exec_stream *stream = &e->streams[i];
		int *ready = execs->outputs[i];
		if (ready[0] >= 0) {
			stream->fd = take_fd(&ready[0]);
			stream->inside = take_fd(&ready[1]);
		} else if (make_pipe(&stream->fd, &stream->inside, &stream->fd, err))
			return -1;
		e->fds[1 + i] = stream->inside;
	}
	return 0;
}

void streams_make_ahead(struct execs *execs)
{
	struct error err;
	for (int i = 0; i < 2; i++) {
		int *ready = execs->outputs[i];
		/* Without a descriptor to spare, the next exec makes its own. */
		if (ready[0] < 0 && make_pipe(&ready[0], &ready[1], &ready[0], &err))
			return;
	}
}

void streams_close_ahead(struct execs *execs)
{
	for (int i = 0; i < 2; i++)
		for (int end = 0; end < 2; end++)
			fd_close(&execs->outputs[i][end]);
}

static int open_stdin(struct core_exec *e, const struct exec_spec *spec, struct error *err)
{
	bool has_text = spec->has_stdin_text && spec->stdin_text.len;
	if (!has_text && !spec->open_stdin) {
		e->fds[0] = e->core->execs->null;
		return e->fds[0] < 0 ? fail(err, ERR_FAILED, "open '/dev/null'") : 0;
	}
	if (make_pipe(&e->fds[0], &e->stdin_fd, &e->stdin_fd, err))
		return -1;
	e->is_ours[0] = true;
	return 0;
}

static int open_terminal(struct core_exec *e, const struct exec_spec *spec, struct error *err)
{
	struct pty_size size = { spec->rows ? spec->rows : 24, spec->columns ? spec->columns : 80 };
	if (view_open_terminal(
		    &e->workspace->sandbox.view, size, &e->terminal, &e->streams[0].inside, err))
		return -1;
	for (int i = 0; i < 3; i++)
		e->fds[i] = e->streams[0].inside;
	if (!is_ours(e))
		return 0;
	e->streams[0].fd = e->terminal;
	fcntl(e->terminal, F_SETFL, O_RDWR | O_NONBLOCK);
	return 0;
}

int streams_check_handed(const int handed[3], struct error *err)
{
	static const char *const names[] = { "stdin", "stdout", "stderr" };
	for (int i = 0; i < 3; i++) {
		struct stat st;
		if (fstat(handed[i], &st))
			return fail_errno(err, "get the type of the passed %s", names[i]);
		bool is_null = S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
		if (S_ISFIFO(st.st_mode) || is_null)
			continue;
		/* A terminal would stay in the hands of what the command leaves behind. */
		return fail_hint(err, ERR_DENIED,
			isatty(handed[i])
				? "request a terminal (tty), or copy the stream through a pipe"
				: "use a pipe: the command could reopen a file for writing",
			"%s can't be passed to the sandbox: it is neither a pipe nor /dev/null",
			names[i]);
	}
	return 0;
}

int streams_keep(struct core_exec *e, const int handed[3], struct error *err)
{
	for (int i = 0; i < 3; i++) {
		int fd = fcntl(handed[i], F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return fail_errno(err, "duplicate a passed descriptor");
		e->fds[i] = fd;
		e->is_ours[i] = true;
	}
	return 0;
}

static int open_all(
	struct core_exec *e, const struct exec_spec *spec, const int handed[3], struct error *err)
{
	if (e->mode == EXEC_HANDED) {
		for (int i = 0; i < 3 && handed; i++)
			e->fds[i] = handed[i];
		return 0;
	}
	if (e->mode == EXEC_SPOOLED && spool_open(e, err))
		return -1;
	if (e->record.tty)
		return open_terminal(e, spec, err);
	if (open_stdin(e, spec, err))
		return -1;
	return e->mode == EXEC_SPOOLED ? 0 : open_outputs(e, err);
}

int streams_open(
	struct core_exec *e, const struct exec_spec *spec, const int handed[3], struct error *err)
{
	if (open_all(e, spec, handed, err)) {
		streams_close(e);
		if (err->sys_errno == EMFILE || err->sys_errno == ENFILE)
			error_hint(
				err, "too many commands run at once: wait until some have ended");
		return -1;
	}
	if (is_ours(e))
		share_add(&e->share, (size_t)FDS_OF_PIPES + (e->stdin_fd >= 0));
	if (spec->has_stdin_text && (spec->stdin_text.len || e->record.tty)) {
		e->stdin_rest = spec->stdin_text;
		e->stdin_state = spec->open_stdin ? STDIN_OPEN : STDIN_CLOSING;
	}
	return 0;
}

static void close_given(struct core_exec *e)
{
	for (int i = 0; i < 3; i++) {
		if (e->is_ours[i])
			fd_close(&e->fds[i]);
		e->is_ours[i] = false;
		e->fds[i] = -1;
	}
}

/* init has the command's ends. stdin's text must be copied if it doesn't fit at once: it is the
 * caller's. */
void streams_sent(struct core_exec *e)
{
	if (e->mode == EXEC_SPOOLED)
		spool_watch(e); /* before the last writer can have gone */
	close_given(e);
	if (!is_ours(e)) {
		fd_close(&e->streams[0].inside);
		return;
	}
	if (e->stdin_rest.len || e->stdin_state == STDIN_CLOSING) {
		write_rest(e);
		if (e->stdin_rest.len)
			e->stdin_rest.data =
				arena_bytes(&e->arena, e->stdin_rest.data, e->stdin_rest.len);
	}
	if (e->mode == EXEC_CAPTURED)
		rest(e);
	update(e);
}

void streams_close(struct core_exec *e)
{
	end_rest(e);
	close_given(e);
	watch_fd(e, e->stdin_fd, &e->stdin_events, 0, on_stdin);
	fd_close(&e->stdin_fd);
	for (int i = 0; i < 2; i++) {
		struct exec_stream *stream = &e->streams[i];
		watch_fd(e, stream->fd, &stream->events, 0, on_stream);
		if (stream->fd == e->terminal)
			stream->fd = -1;
		fd_close(&stream->fd);
		fd_close(&stream->inside);
	}
	fd_close(&e->terminal);
	fd_close(&e->spool);
	share_clear(&e->share);
	call_writers(e);
}
