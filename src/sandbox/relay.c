#include "sandbox/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"
#include "sandbox/terminal.h"

#define PUMP_ROUNDS 16	  /* then the other descriptors of the loop have their turn */
#define MAY_READ_MS 200	  /* how often a terminal that may not be read is looked at */
#define END_OF_FILE_MS 20 /* and one whose reader has something to read before its end of file */

void relay_open_output(struct relay *relay, int fd)
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

static void on_event(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	pump(ctx);
}

/* Watches fd while `wanted`. A regular file can't be watched and is always ready: that is no error.
 */
static void watch(struct relay *relay, int fd, uint32_t events, bool *watched, bool wanted)
{
	struct error err;
	if (wanted == *watched || fd < 0)
		return;
	if (!wanted) {
		loop_unwatch(relay->loop, fd);
		*watched = false;
	} else if (!loop_watch(relay->loop, fd, events, on_event, relay, &err))
		*watched = true;
}

void relay_stop(struct relay *relay)
{
	if (!relay->active)
		return;
	relay->active = false;
	loop_cancel(relay->loop, relay->retry);
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
	relay->events->finished(relay->events->ctx);
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
			/* The reader has enough: the writer inside is told so by its own EPIPE. */
			int why = errno;
			bool is_gone = why == EPIPE || why == ECONNRESET ||
				       (why == EIO && isatty(relay->to));
			if (!is_gone) {
				errno = why;
				fail_errno(&err, "write %s", relay->name);
				relay->events->failed(relay->events->ctx, &err);
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
	/* A terminal has no end of file of its own. Should it be full, there is nobody to read it
	 * either. */
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
		relay->retry = loop_after(relay->loop, ms, on_retry, relay);
}

void relay_continue(struct relay *relay)
{
	if (!relay->active || !relay->is_held)
		return;
	loop_cancel(relay->loop, relay->retry);
	on_retry(relay->loop, relay);
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
		relay->terminal.changed(relay->terminal.ctx);
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
		relay->events->over(relay->events->ctx);
	}
}

/* Whether the caller's stream has something to read. It may block, and its flags are shared. */
static bool is_ready(struct relay *relay, bool *is_hung_up)
{
	struct pollfd ready = { .fd = relay->from, .events = POLLIN };
	if (!relay->from_is_foreign)
		return true;
	if (relay->terminal.may_read && !relay->terminal.may_read(relay->terminal.ctx)) {
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
	bool is_terminal = relay->terminal.may_read && !is_hung_up;
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
		relay->events->failed(relay->events->ctx, &err);
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

void relay_drain(struct relay *relay)
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

void relay_start(struct relay *relay)
{
	relay->data = malloc(RELAY_CHUNK);
	if (!relay->data)
		abort();
	relay->active = true;
	pump(relay);
}
