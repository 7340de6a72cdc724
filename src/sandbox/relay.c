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
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"

#define PUMP_ROUNDS 16 /* then the other descriptors of the loop have their turn */

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

/* false: it must wait, or is over. */
static bool fill(struct relay *relay)
{
	/* A stream of the caller's may block, and its flags are shared: ask first. */
	struct pollfd ready = { .fd = relay->from, .events = POLLIN };
	if (relay->from_is_foreign && poll(&ready, 1, 0) == 0)
		return false;
	size_t room = relay->is_draining && relay->left < RELAY_CHUNK ? relay->left : RELAY_CHUNK;
	ssize_t got = room ? read(relay->from, relay->data, room) : 0;
	if (got < 0 && errno == EINTR)
		return true;
	if (got < 0 && errno == EAGAIN && !relay->is_draining)
		return false;
	if (got <= 0) { /* EIO: the terminal's last user has gone */
		if (got < 0 && errno != EIO && errno != EAGAIN) {
			struct error err;
			fail_errno(&err, "read %s", relay->name);
			relay->events->failed(relay->events->ctx, &err);
		}
		end_of_input(relay);
		return false;
	}
	relay->start = 0;
	relay->len = (size_t)got;
	if (relay->is_draining)
		relay->left -= relay->len;
	if (!relay->budget)
		return true;
	bool over = relay->len > *relay->budget;
	if (over)
		relay->len = *relay->budget;
	*relay->budget -= relay->len;
	if (over) {
		relay->is_over = true;
		relay->events->over(relay->events->ctx);
	}
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
	watch(relay, relay->from, EPOLLIN, &relay->from_watched, relay->len == 0);
	watch(relay, relay->to, EPOLLOUT, &relay->to_watched,
		relay->len > 0 || !relay->from_watched);
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

int relay_start(struct relay *relay, struct error *err)
{
	relay->data = malloc(RELAY_CHUNK);
	if (!relay->data)
		abort();
	relay->active = true;
	relay->start = relay->len = 0;
	relay->from_watched = relay->to_watched = relay->is_over = relay->is_draining = false;
	pump(relay);
	return 0;
}
