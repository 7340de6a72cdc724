#include "sandbox/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>
#include "base/fd.h"
#include "linux/pty.h"

#define PIPE_BYTES (1 << 20) /* fewer wake-ups for much output */
#define PIPEFS_MAGIC 0x50495045

static const char *const names[3] = { "standard input", "standard output", "standard error" };

/* A terminal or pipe that is handed in has modes and flags that others share, and the command may
 * change them. */
struct stream_state {
	int flags;
	mode_t mode;
	bool is_terminal;
	struct termios modes;
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
		before[i].is_terminal = isatty(i) && !tcgetattr(i, &before[i].modes);
	}
}

static bool modes_are_equal(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && !memcmp(a->c_cc, b->c_cc, sizeof a->c_cc);
}

/* From the background, setting a terminal's modes would stop us. */
static void set_modes(int fd, const struct termios *modes)
{
	void (*handler)(int) = signal(SIGTTOU, SIG_IGN);
	pty_restore(fd, modes);
	signal(SIGTTOU, handler);
}

static void put_back(const struct stream_state before[3])
{
	for (int i = 0; i < 3; i++) {
		struct termios modes;
		struct stat st;
		if (before[i].mode && !fstat(i, &st) && st.st_mode != before[i].mode)
			fchmod(i, before[i].mode & 07777);
		if (before[i].flags >= 0 && fcntl(i, F_GETFL) != before[i].flags)
			fcntl(i, F_SETFL, before[i].flags);
		if (before[i].is_terminal && !tcgetattr(i, &modes) &&
			!modes_are_equal(&modes, &before[i].modes))
			set_modes(i, &before[i].modes);
	}
}

/* /dev/stdout is opened by name sometimes. Root's anonymous pipe may then be opened by the
 * sandbox's user, but only the way it is meant: whoever could write into a stdin would speak to the
 * programs that read it next. */
static void open_to_sandbox(const struct plan *plan, int fd, bool is_input)
{
	if (plan->privileged && is_anonymous_pipe(fd))
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
	open_to_sandbox(streams->plan, inside, index == 0);
	streams->inside[index] = inside;
	streams->owns_inside[index] = true;
	streams->ours[index] = ours;
	return 0;
}

int streams_prepare(
	struct streams *streams, const struct plan *plan, struct sandbox_io *io, struct error *err)
{
	*streams = (struct streams){
		.plan = plan, .io = io, .terminal = -1, .budget = plan->limits.output_bytes
	};
	streams->before = calloc(3, sizeof *streams->before);
	if (!streams->before)
		abort();
	remember(streams->before);
	for (int i = 0; i < 3; i++)
		streams->ours[i] = streams->inside[i] = -1;
	for (unsigned i = 0; i < 3; i++) {
		switch (plan->streams[i]) {
		case STREAM_HANDED:
			streams->inside[i] = (int)i;
			open_to_sandbox(plan, (int)i, i == 0);
			break;
		case STREAM_RELAYED:
			if (i == 2 && plan->merged) {
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

int streams_use_terminal(struct streams *streams, int master, int slave, struct error *err)
{
	streams->terminal = master;
	for (int i = 0; i < 3; i++)
		if (streams->plan->streams[i] == STREAM_TTY)
			streams->inside[i] = slave;
	streams->owns_inside[1] = true;
	fd_set_nonblocking(master);
	streams_resize(streams);
	struct termios modes;
	if (streams->plan->streams[0] == STREAM_TTY && isatty(STDIN_FILENO))
		return pty_make_raw(STDIN_FILENO, &modes, err);
	/* What comes from the inner terminal has its carriage returns already. */
	if (streams->before[1].is_terminal) {
		modes = streams->before[1].modes;
		modes.c_oflag &= ~(tcflag_t)OPOST;
		set_modes(STDOUT_FILENO, &modes);
	}
	return 0;
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
	bool captured = streams->plan->streams[index] == STREAM_CAPTURED;
	relay->loop = loop;
	relay->events = events;
	relay->name = names[index];
	relay->from = from;
	relay->to = to;
	relay->from_is_foreign = index == 0;
	/* Half an answer is none; of what was said for people the beginning is enough. */
	relay->may_lose = index == 2;
	relay->to_is_terminal = index == 0 && streams->plan->tty;
	relay->budget = index > 0 && streams->plan->limits.output_bytes ? &streams->budget : NULL;
	if (captured)
		relay->capture = index == 1 ? streams->io->out : streams->io->err;
	else if (index > 0)
		relay_open_output(relay, (int)index);
	if (relay->from < 0 || (relay->to < 0 && !captured))
		return fail_errno(err, "relay %s", names[index]);
	return relay_start(relay, err);
}

int streams_start(struct streams *streams, struct loop *loop, const struct relay_events *events,
	struct error *err)
{
	if (streams->plan->tty) {
		/* A terminal's two directions; there is no second output. */
		if (start_relay(streams, 1, loop, duplicate(streams->terminal), -1, events, err))
			return -1;
		if (streams->plan->streams[0] != STREAM_TTY)
			return 0;
		return start_relay(streams, 0, loop, duplicate(STDIN_FILENO),
			duplicate(streams->terminal), events, err);
	}
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

void streams_drain(struct streams *streams)
{
	relay_stop(&streams->relays[0]);
	relay_drain(&streams->relays[1]);
	relay_drain(&streams->relays[2]);
}

bool streams_have_output(const struct streams *streams)
{
	return streams->relays[1].active || streams->relays[2].active;
}

void streams_done(struct streams *streams)
{
	for (int i = 0; i < 3; i++) {
		relay_stop(&streams->relays[i]);
		fd_close(&streams->ours[i]);
	}
	streams_close_inside(streams);
	fd_close(&streams->terminal);
	put_back(streams->before);
	free(streams->before);
	streams->before = NULL;
}
