#include "sandbox/native/streams.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"
#include "linux/pty.h"

#define PUMP_ROUNDS 16	     /* then the other descriptors of the loop have their turn */
#define MAY_READ_MS 200	     /* how often a terminal that may not be read is looked at */
#define END_OF_FILE_MS 20    /* and one whose reader has something to read before its end of file */
#define PIPE_BYTES (1 << 20) /* fewer wake-ups for much output */
#define PIPEFS_MAGIC 0x50495045
#define TERMINAL 3 /* the relay of the terminal's output */
#define MEND_MS                                                                                    \
	100 /* stty compares what it has set (`stty sane` clears EXTPROC) with what is set */

static const char *const names[4] = { "standard input", "standard output", "standard error",
	"the terminal" };

/* ---- relays ---- */

/* Sets relay->to to a descriptor for the caller's stream `fd` that doesn't share its file status
 * flags with other processes; to -1, with errno, if that fails. */
static void relay_open_output(struct relay *relay, int fd)
{
	char path[32];
	struct stat st = { 0 };
	int own = -1;
	str_format(path, sizeof path, "/proc/self/fd/%d", fd);
	relay->to_is_socket = !fstat(fd, &st) && S_ISSOCK(st.st_mode);
	/* A regular file must not be opened again: it would start at offset 0. A socket can't be,
	 * and is written without waiting anyway. Nor can what belongs to another user. */
	bool is_plain = relay->to_is_socket || S_ISREG(st.st_mode);
	if (!is_plain)
		own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	relay->to_blocks = !is_plain && own < 0;
	relay->to = own >= 0 ? own : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static void pump(struct relay *relay);
static void on_changed_modes(struct streams *streams);
static bool may_read(struct streams *streams);

static void on_event(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	pump(ctx);
}

/* Watches fd while `wanted`. A regular file can't be watched but is always ready, which isn't an
 * error. */
static void watch(struct relay *relay, int fd, uint32_t events, bool *watched, bool wanted)
{
	struct error err;
	if (wanted == *watched || fd < 0)
		return;
	if (!wanted) {
		loop_unwatch(relay->streams->loop, fd);
		*watched = false;
	} else if (!loop_watch(relay->streams->loop, fd, events, on_event, relay, &err))
		*watched = true;
}

/* Ends it, closing what it holds; idempotent. */
static void relay_stop(struct relay *relay)
{
	if (!relay->active)
		return;
	relay->active = false;
	loop_cancel(relay->streams->loop, relay->retry);
	relay->retry = NULL;
	watch(relay, relay->from, 0, &relay->from_watched, false);
	watch(relay, relay->to, 0, &relay->to_watched, false);
	fd_close(&relay->from);
	fd_close(&relay->to);
	free(relay->data);
	relay->data = NULL;
}

static void finish(struct relay *relay)
{
	if (!relay->active)
		return;
	relay_stop(relay);
	relay->streams->events->finished(relay->streams->events->ctx);
}

static ssize_t write_some(struct relay *relay)
{
	const char *data = relay->data + relay->start;
	if (relay->capture)
		return buf_append(relay->capture, data, relay->len) || relay->may_lose
			       ? (ssize_t)relay->len
			       : (errno = ENOMEM, -1);
	if (relay->to_is_socket)
		return send(relay->to, data, relay->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (!relay->to_blocks)
		return write(relay->to, data, relay->len);
	/* A pipe that is ready takes that much. */
	struct pollfd ready = { .fd = relay->to, .events = POLLOUT };
	if (poll(&ready, 1, 0) == 0)
		return errno = EAGAIN, -1;
	return write(relay->to, data, relay->len < PIPE_BUF ? relay->len : PIPE_BUF);
}

/* false: it must wait, or is over. */
static bool flush(struct relay *relay)
{
	while (relay->len) {
		ssize_t wrote = write_some(relay);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0 && errno == EAGAIN)
			return false;
		if (wrote < 0) {
			struct error err;
			/* The reader has closed: the writer inside gets EPIPE too. */
			int why = errno;
			bool is_gone = why == EPIPE || why == ECONNRESET ||
				       (why == EIO && isatty(relay->to));
			if (!is_gone) {
				errno = why;
				fail_errno(&err, "write %s", relay->name);
				relay->streams->events->failed(relay->streams->events->ctx, &err);
			}
			finish(relay);
			return false;
		}
		relay->start += (size_t)wrote;
		relay->len -= (size_t)wrote;
		relay->moved += (size_t)wrote;
	}
	return true;
}

static void end_of_input(struct relay *relay)
{
	/* A terminal has no end of file by itself: send the EOF character. If the terminal is full,
	 * it has no reader anyway. */
	if (relay->to_is_terminal)
		(void)!write(relay->to, "\004", 1);
	finish(relay);
}

static void on_retry(struct loop *loop, void *ctx)
{
	struct relay *relay = ctx;
	relay->retry = NULL;
	relay->is_held = false;
	pump(relay);
}

/* Reads nothing for a while. */
static void hold(struct relay *relay, uint64_t ms)
{
	relay->is_held = true;
	if (!relay->retry)
		relay->retry = loop_after(relay->streams->loop, ms, on_retry, relay);
}

/* Looks again at once whether it may read. */
static void relay_continue(struct relay *relay)
{
	if (!relay->active || !relay->is_held)
		return;
	loop_cancel(relay->streams->loop, relay->retry);
	on_retry(relay->streams->loop, relay);
}

/* A terminal with EXTPROC takes its EOF character for an end of file only when that is all there is
 * to read; so it is sent when everything before it was read, and nothing follows until it was read.
 * Written bytes reach the reader's queue a little later: it must be found empty twice. false: wait.
 */
static bool pass_end_of_file(struct relay *relay)
{
	struct termios modes;
	int waiting = 0;
	relay->empty_looks =
		!ioctl(relay->reader, FIONREAD, &waiting) && !waiting ? relay->empty_looks + 1 : 0;
	if (relay->empty_looks >= 2) {
		relay->empty_looks = 0;
		if (relay->eof == RELAY_EOF_SENT || tcgetattr(relay->to, &modes)) {
			relay->eof = RELAY_EOF_NONE;
			return true;
		}
		(void)!write(relay->to, &modes.c_cc[VEOF], 1);
		relay->eof = RELAY_EOF_SENT;
	}
	hold(relay, END_OF_FILE_MS);
	return false;
}

static ssize_t read_some(struct relay *relay, char *data, size_t room)
{
	char control = TIOCPKT_DATA;
	struct iovec parts[2] = { { &control, 1 }, { data, room } };
	if (!room)
		return 0;
	if (!relay->from_is_packets)
		return read(relay->from, data, room);
	ssize_t got = readv(relay->from, parts, 2);
	if (got <= 0)
		return got;
	if (control & TIOCPKT_IOCTL)
		on_changed_modes(relay->streams);
	return got > 1 ? got - 1 : (errno = EINTR, -1);
}

/* The command's terminal has put a carriage return before each newline, and so will the caller's:
 * takes the first one away. One at the end waits for what follows. */
static size_t unmap_newlines(struct relay *relay, size_t len)
{
	char *data = relay->data;
	size_t kept = 0;
	relay->has_return = len && data[len - 1] == '\r';
	len -= relay->has_return;
	for (size_t i = 0; i < len; i++)
		if (data[i] != '\r' || i + 1 == len || data[i + 1] != '\n')
			data[kept++] = data[i];
	return kept;
}

/* Cuts what was read last at the end of the budget. */
static void charge(struct relay *relay)
{
	if (!relay->budget)
		return;
	bool over = relay->len > *relay->budget;
	if (over)
		relay->len = *relay->budget;
	*relay->budget -= relay->len;
	if (over) {
		relay->is_over = true;
		relay->streams->events->over(relay->streams->events->ctx);
	}
}

/* Whether the caller's stream has something to read. It may block, and its flags are shared. */
static bool is_ready(struct relay *relay, bool *is_hung_up)
{
	struct pollfd ready = { .fd = relay->from, .events = POLLIN };
	if (!relay->from_is_foreign)
		return true;
	if (relay->from_is_outer && !may_read(relay->streams)) {
		hold(relay, MAY_READ_MS);
		return false;
	}
	int count = poll(&ready, 1, 0);
	*is_hung_up = ready.revents & (POLLHUP | POLLERR);
	return count != 0;
}

/* Nothing was read, and errno says why. false: it must wait, or is over. */
static bool on_nothing_read(struct relay *relay, ssize_t got, bool is_hung_up)
{
	if (got < 0 && errno == EINTR)
		return true;
	if (got < 0 && errno == EAGAIN && !relay->is_draining)
		return false;
	bool is_terminal = relay->from_is_outer && !is_hung_up;
	if (got == 0 && is_terminal && relay->reader >= 0) {
		relay->eof = RELAY_EOF_DUE;
		return true;
	}
	if (got < 0 && errno == EIO && is_terminal) { /* in the background since is_ready */
		hold(relay, MAY_READ_MS);
		return false;
	}
	if (got < 0 && errno != EIO &&
		errno != EAGAIN) { /* EIO: the terminal's last user is gone */
		struct error err;
		fail_errno(&err, "read %s", relay->name);
		relay->streams->events->failed(relay->streams->events->ctx, &err);
	}
	end_of_input(relay);
	return false;
}

/* false: it must wait, or is over. */
static bool fill(struct relay *relay)
{
	bool is_hung_up = false;
	if (relay->eof != RELAY_EOF_NONE && !pass_end_of_file(relay))
		return false;
	if (!is_ready(relay, &is_hung_up))
		return false;
	size_t room = relay->is_draining && relay->left < RELAY_CHUNK ? relay->left : RELAY_CHUNK;
	size_t held = relay->has_return;
	ssize_t got = read_some(relay, relay->data + held, room < held ? 0 : room - held);
	relay->start = 0;
	relay->data[0] = held ? '\r' : relay->data[0];
	relay->has_return = false;
	if (got <= 0 && held) { /* it stands alone; the next round finds the same end */
		relay->len = held;
		return true;
	}
	if (got <= 0)
		return on_nothing_read(relay, got, is_hung_up);
	if (relay->is_draining)
		relay->left -= (size_t)got;
	relay->len = (size_t)got + held;
	if (relay->from_is_terminal && relay->to >= 0 && terminal_maps_newlines(relay->to))
		relay->len = unmap_newlines(relay, relay->len);
	charge(relay);
	return true;
}

/* One round: what is held goes out, more comes in. false: it must wait, or is over. */
static bool pump_once(struct relay *relay)
{
	if (!flush(relay))
		return false;
	if (!relay->is_over)
		return fill(relay);
	finish(relay);
	return false;
}

/* Moves what can be moved now. */
static void pump(struct relay *relay)
{
	bool going = relay->active;
	for (int round = 0; going && round < PUMP_ROUNDS; round++)
		going = pump_once(relay);
	/* What was read last goes out now: a regular file or a buffer never says that it is ready.
	 */
	if (going)
		flush(relay);
	if (!relay->active)
		return;
	watch(relay, relay->from, EPOLLIN, &relay->from_watched,
		relay->len == 0 && !relay->is_held);
	watch(relay, relay->to, EPOLLOUT, &relay->to_watched,
		relay->len > 0 || (!relay->from_watched && !relay->is_held));
}

/* The writers of `from` have exited: relays what is in it now, then ends, even if another process
 * has the write end open. */
static void relay_drain(struct relay *relay)
{
	int waiting = 0;
	if (!relay->active)
		return;
	relay->is_draining = true;
	/* A terminal doesn't say how much it holds; it is never more than this. */
	relay->left = RELAY_CHUNK;
	if (!isatty(relay->from) && !ioctl(relay->from, FIONREAD, &waiting) && waiting >= 0)
		relay->left = (size_t)waiting;
	pump(relay);
}

/* Takes over from and to (or capture) and begins. Once: what isn't set is 0. */
static void relay_start(struct relay *relay)
{
	relay->data = malloc(RELAY_CHUNK);
	if (!relay->data)
		abort();
	relay->active = true;
	pump(relay);
}

/* ---- streams ---- */

/* A pipe that is handed in has a mode and flags that others share, and the command may change
 * them. */
struct stream_state {
	int flags;
	mode_t mode;
};

static bool is_anonymous_pipe(int fd)
{
	struct statfs fs;
	return !fstatfs(fd, &fs) && fs.f_type == PIPEFS_MAGIC;
}

static void remember(struct stream_state before[3])
{
	for (int i = 0; i < 3; i++) {
		struct stat st;
		before[i].flags = fcntl(i, F_GETFL);
		/* Don't restore the mode of an anonymous pipe: another carrel may share it, and no
		 * other program depends on its mode. */
		before[i].mode = is_anonymous_pipe(i) || fstat(i, &st) ? 0 : st.st_mode;
	}
}

static void put_back(const struct stream_state before[3])
{
	for (int i = 0; i < 3; i++) {
		struct stat st;
		if (before[i].mode && !fstat(i, &st) && st.st_mode != before[i].mode)
			fchmod(i, before[i].mode & 07777);
		if (before[i].flags >= 0 && fcntl(i, F_GETFL) != before[i].flags)
			fcntl(i, F_SETFL, before[i].flags);
	}
}

/* /dev/stdout is opened by name sometimes. Root's anonymous pipe may then be opened by the
 * sandbox's user, but only in its direction: a process that could write into the stdin pipe could
 * inject input into programs that read it later. */
static void open_to_sandbox(const struct streams *streams, int fd, bool is_input)
{
	if (streams->kind.is_privileged && is_anonymous_pipe(fd))
		fchmod(fd, is_input ? 0604 : 0602);
}

static int make_pipe(struct streams *streams, unsigned index, struct error *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return fail_errno(err, "make a pipe for %s", names[index]);
	int inside = index == 0 ? ends[0] : ends[1], ours = index == 0 ? ends[1] : ends[0];
	fcntl(ours, F_SETPIPE_SZ, PIPE_BYTES);
	fd_set_nonblocking(ours);
	open_to_sandbox(streams, inside, index == 0);
	streams->inside[index] = inside;
	streams->owns_inside[index] = true;
	streams->ours[index] = ours;
	return 0;
}

/* The caller's terminal, if stdin is read from it. Its modes follow the terminal inside when that
 * was asked for, or when carrel's output goes there, too. Else other programs of the same pipeline
 * may use it (`carrel run -- cmd | less`), and it is left alone. */
static void find_outer(struct streams *streams)
{
	const struct streams_kind *kind = &streams->kind;
	bool is_tty = kind->each[0] == STREAM_TTY;
	streams->outer = (struct terminal){ .fd = -1 };
	if ((!is_tty && kind->each[0] != STREAM_RELAYED) || !isatty(STDIN_FILENO))
		return;
	streams->outer.fd = STDIN_FILENO;
	streams->outer.may_set = is_tty && (!kind->mirrors || kind->each[1] == STREAM_TTY);
	signal(SIGTTIN, SIG_IGN); /* reading in the background is then an error, and no stop */
}

int streams_prepare(struct streams *streams, const struct streams_kind *kind, struct sandbox_io *io,
	struct error *err)
{
	*streams = (struct streams){
		.kind = *kind, .io = io, .terminal = -1, .slave = -1, .budget = kind->output_bytes
	};
	streams->before = calloc(3, sizeof *streams->before);
	if (!streams->before)
		abort();
	remember(streams->before);
	find_outer(streams);
	for (int i = 0; i < 3; i++)
		streams->ours[i] = streams->inside[i] = -1;
	for (unsigned i = 0; i < 3; i++) {
		switch (kind->each[i]) {
		case STREAM_HANDED:
			streams->inside[i] = (int)i;
			open_to_sandbox(streams, (int)i, i == 0);
			break;
		case STREAM_RELAYED:
			if (i == 2 && kind->is_merged) {
				streams->inside[2] = streams->inside[1];
				break;
			}
			/* fall through */
		case STREAM_CAPTURED:
			if (make_pipe(streams, i, err))
				return -1;
			break;
		case STREAM_EMPTY:
			streams->inside[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
			streams->owns_inside[i] = true;
			if (streams->inside[i] < 0)
				return fail_errno(err, "open '/dev/null'");
			break;
		case STREAM_TTY:
			break;
		}
	}
	return 0;
}

/* The stream that stands for the terminal outside. */
static int find_shown(const struct streams *streams)
{
	static const int order[3] = { STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO };
	for (int i = 0; i < 3; i++)
		if (streams->kind.each[order[i]] == STREAM_TTY)
			return order[i];
	return STDOUT_FILENO;
}

/* With EXTPROC the terminal inside takes bytes as they come, and packet mode tells of changes of
 * its modes: the caller's terminal has them, too, and does the work. */
static int mirror(struct streams *streams, int slave, struct error *err)
{
	struct termios modes, outer;
	int on = 1;
	streams->slave = fcntl(slave, F_DUPFD_CLOEXEC, 3);
	if (streams->slave < 0 || tcgetattr(slave, &modes))
		return fail_errno(err, "get the modes of the terminal");
	/* In the background they are those of a shell that edits a line. */
	if (!tcgetattr(find_shown(streams), &outer) && outer.c_lflag & ICANON) {
		modes.c_iflag = outer.c_iflag;
		modes.c_oflag = outer.c_oflag;
		modes.c_lflag = outer.c_lflag;
		memcpy(modes.c_cc, outer.c_cc, sizeof modes.c_cc);
	}
	modes.c_lflag |= EXTPROC;
	if (tcsetattr(slave, TCSANOW, &modes) || tcgetattr(slave, &streams->initial))
		return fail_errno(err, "set the modes of the terminal");
	if (ioctl(streams->terminal, TIOCPKT, &on))
		return fail_errno(err, "set the terminal to packet mode");
	return 0;
}

int streams_use_terminal(struct streams *streams, int master, int slave, struct error *err)
{
	bool is_owned = false;
	streams->terminal = master;
	for (int i = 0; i < 3; i++) {
		if (streams->kind.each[i] != STREAM_TTY)
			continue;
		streams->inside[i] = slave;
		streams->owns_inside[i] = !is_owned;
		is_owned = true;
	}
	fd_set_nonblocking(master);
	streams_resize(streams);
	return streams->kind.mirrors ? mirror(streams, slave, err) : 0;
}

/* Gives the caller's terminal the modes that it needs for the one inside. */
static void follow_modes(struct streams *streams)
{
	struct termios inside;
	if (streams->terminal < 0 || streams->outer.fd < 0)
		return;
	if (!streams->kind.mirrors)
		terminal_make_raw(&streams->outer);
	else if (!tcgetattr(streams->terminal, &inside))
		terminal_follow(&streams->outer, &inside, &streams->initial);
}

static void on_mend(struct loop *loop, void *ctx)
{
	struct streams *streams = ctx;
	struct termios inside;
	streams->mend = NULL;
	if (tcgetattr(streams->terminal, &inside) || inside.c_lflag & EXTPROC)
		return;
	inside.c_lflag |= EXTPROC;
	tcsetattr(streams->terminal, TCSANOW, &inside);
	follow_modes(streams);
}

/* The command has changed its terminal's modes. */
static void on_changed_modes(struct streams *streams)
{
	struct termios inside;
	if (!streams->mend && !tcgetattr(streams->terminal, &inside) && !(inside.c_lflag & EXTPROC))
		streams->mend = loop_after(streams->loop, MEND_MS, on_mend, streams);
	follow_modes(streams);
}

/* Whether the caller's terminal may be read now. */
static bool may_read(struct streams *streams)
{
	follow_modes(streams);
	return terminal_may_read(&streams->outer);
}

void streams_close_inside(struct streams *streams)
{
	for (int i = 0; i < 3; i++)
		if (streams->owns_inside[i]) {
			fd_close(&streams->inside[i]);
			streams->owns_inside[i] = false;
		}
}

static int duplicate(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* `to` is for input; output goes where the caller's stream of that number goes, or is kept. */
static int start_relay(struct streams *streams, unsigned index, int from, int to, struct error *err)
{
	struct relay *relay = &streams->relays[index];
	bool captured = index < 3 && streams->kind.each[index] == STREAM_CAPTURED;
	relay->streams = streams;
	relay->name = names[index];
	relay->from = from;
	relay->to = to;
	relay->reader = index == 0 ? streams->slave : -1;
	relay->from_is_foreign = index == 0;
	relay->from_is_terminal = index == TERMINAL;
	relay->from_is_packets = index == TERMINAL && streams->kind.mirrors;
	relay->from_is_outer = index == 0 && streams->outer.fd >= 0;
	/* A truncated stdout is useless to the caller; of stderr the beginning is enough. */
	relay->may_lose = index == 2;
	relay->to_is_terminal = index == 0 && streams->kind.each[0] == STREAM_TTY;
	relay->budget = index > 0 && streams->kind.output_bytes ? &streams->budget : NULL;
	if (captured)
		relay->capture = index == 1 ? streams->io->out : streams->io->err;
	else if (index > 0)
		relay_open_output(relay, index == TERMINAL ? find_shown(streams) : (int)index);
	if (relay->from < 0 || (relay->to < 0 && !captured))
		return fail_errno(err, "relay %s", names[index]);
	relay_start(relay);
	return 0;
}

int streams_start(struct streams *streams, struct loop *loop, const struct relay_events *events,
	struct error *err)
{
	streams->loop = loop;
	streams->events = events;
	if (streams->terminal >= 0) {
		follow_modes(streams);
		if (start_relay(streams, TERMINAL, duplicate(streams->terminal), -1, err))
			return -1;
	}
	if (streams->terminal >= 0 && streams->kind.each[0] == STREAM_TTY &&
		start_relay(streams, 0, duplicate(STDIN_FILENO), duplicate(streams->terminal), err))
		return -1;
	for (unsigned i = 0; i < 3; i++) {
		int ours = take_fd(&streams->ours[i]);
		if (ours < 0)
			continue;
		int from = i == 0 ? duplicate(STDIN_FILENO) : ours;
		if (start_relay(streams, i, from, i == 0 ? ours : -1, err))
			return -1;
	}
	return 0;
}

void streams_resize(struct streams *streams)
{
	struct error err;
	struct pty_size size = { 24, 80 };
	if (streams->terminal < 0)
		return;
	for (int i = 0; i < 3; i++)
		if (!pty_get_size(i, &size, &err))
			break;
	pty_set_size(streams->terminal, size, &err);
}

bool streams_signal(const struct streams *streams, int signo)
{
	return streams->kind.mirrors && streams->terminal >= 0 &&
	       !ioctl(streams->terminal, TIOCSIG, signo);
}

bool streams_have_jobs(const struct streams *streams)
{
	pid_t group, session;
	return streams->kind.mirrors && streams->terminal >= 0 &&
	       !ioctl(streams->terminal, TIOCGPGRP, &group) &&
	       !ioctl(streams->terminal, TIOCGSID, &session) && group != session;
}

uint64_t streams_shown(const struct streams *streams)
{
	return streams->relays[TERMINAL].moved;
}

void streams_suspend(struct streams *streams)
{
	terminal_restore(&streams->outer);
}

void streams_continue(struct streams *streams)
{
	terminal_continue(&streams->outer);
	follow_modes(streams);
	streams_resize(streams);
	relay_continue(&streams->relays[0]);
}

static void cancel_mend(struct streams *streams)
{
	if (streams->mend)
		loop_cancel(streams->loop, streams->mend);
	streams->mend = NULL;
}

void streams_drain(struct streams *streams)
{
	cancel_mend(streams);
	relay_stop(&streams->relays[0]);
	for (int i = 1; i <= TERMINAL; i++)
		relay_drain(&streams->relays[i]);
}

bool streams_have_output(const struct streams *streams)
{
	return streams->relays[1].active || streams->relays[2].active ||
	       streams->relays[TERMINAL].active;
}

void streams_stop(struct streams *streams)
{
	cancel_mend(streams);
	for (int i = 0; i <= TERMINAL; i++)
		relay_stop(&streams->relays[i]);
}

void streams_done(struct streams *streams)
{
	streams_stop(streams);
	for (int i = 0; i < 3; i++)
		fd_close(&streams->ours[i]);
	streams_close_inside(streams);
	terminal_restore(&streams->outer);
	if (streams->outer.fd >= 0)
		signal(SIGTTIN, SIG_DFL);
	fd_close(&streams->slave);
	fd_close(&streams->terminal);
	put_back(streams->before);
	free(streams->before);
	streams->before = NULL;
}
