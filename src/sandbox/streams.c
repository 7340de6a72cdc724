#include "sandbox/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>
#include "base/fd.h"
#include "linux/pty.h"

#define PIPE_BYTES (1 << 20) /* fewer wake-ups for much output */
#define PIPEFS_MAGIC 0x50495045
#define TERMINAL 3 /* the relay of the terminal's output */
#define MEND_MS                                                                                    \
	100 /* stty compares what it has set (`stty sane` clears EXTPROC) with what is set */

static const char *const names[4] = { "standard input", "standard output", "standard error",
	"the terminal" };

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
		/* An anonymous pipe may be another carrel's too, and its mode matters to nobody
		 * else. */
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
 * sandbox's user, but only the way it is meant: whoever could write into a stdin would speak to the
 * programs that read it next. */
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

static void on_changed_modes(void *ctx)
{
	struct streams *streams = ctx;
	struct termios inside;
	if (!streams->mend && !tcgetattr(streams->terminal, &inside) && !(inside.c_lflag & EXTPROC))
		streams->mend = loop_after(streams->loop, MEND_MS, on_mend, streams);
	follow_modes(streams);
}

static bool may_read(void *ctx)
{
	struct streams *streams = ctx;
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
static int start_relay(struct streams *streams, unsigned index, struct loop *loop, int from, int to,
	const struct relay_events *events, struct error *err)
{
	struct relay *relay = &streams->relays[index];
	bool captured = index < 3 && streams->kind.each[index] == STREAM_CAPTURED;
	relay->loop = loop;
	relay->events = events;
	relay->name = names[index];
	relay->from = from;
	relay->to = to;
	relay->reader = index == 0 ? streams->slave : -1;
	relay->from_is_foreign = index == 0;
	relay->from_is_terminal = index == TERMINAL;
	relay->from_is_packets = index == TERMINAL && streams->kind.mirrors;
	relay->terminal = (struct relay_terminal){ .changed = on_changed_modes, .ctx = streams };
	if (index == 0 && streams->outer.fd >= 0)
		relay->terminal.may_read = may_read;
	/* Half an answer is none; of what was said for people the beginning is enough. */
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
	if (streams->terminal >= 0) {
		follow_modes(streams);
		if (start_relay(
			    streams, TERMINAL, loop, duplicate(streams->terminal), -1, events, err))
			return -1;
	}
	if (streams->terminal >= 0 && streams->kind.each[0] == STREAM_TTY &&
		start_relay(streams, 0, loop, duplicate(STDIN_FILENO), duplicate(streams->terminal),
			events, err))
		return -1;
	for (unsigned i = 0; i < 3; i++) {
		int ours = take_fd(&streams->ours[i]);
		if (ours < 0)
			continue;
		int from = i == 0 ? duplicate(STDIN_FILENO) : ours;
		if (start_relay(streams, i, loop, from, i == 0 ? ours : -1, events, err))
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
