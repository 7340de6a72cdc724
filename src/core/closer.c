/* closer.c -- a process that closes for core what takes long to close. The last descriptor of an
 * overlay unmounts it, and that writes all of the file system below it to the disk: milliseconds on
 * an idle host, seconds on a busy one, and core would serve nobody meanwhile. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/internal.h"
#include "linux/fd_message.h"

#define LATER_MS                                                                                   \
	400 /* longer than it takes to remove the files of a workspace, or to freeze them */
#define LATER_MAX 64

struct late {
	int fds[LATER_MAX];
	int count;
};

static void close_late(struct late *late)
{
	while (late->count)
		close(late->fds[--late->count]);
}

/* false: core has closed its end, or is gone. */
static bool take_some(int socket, struct late *late)
{
	struct fd_message message;
	bool is_late;
	if (fd_message_receive(socket, &is_late, sizeof is_late, 0, &message) <= 0)
		return false;
	for (int i = 0; i < message.fd_count; i++) {
		if (late->count == LATER_MAX)
			close_late(late);
		if (is_late)
			late->fds[late->count++] = message.fds[i];
		else
			close(message.fds[i]);
	}
	return true;
}

static _Noreturn void serve(int socket)
{
	struct late late = { .count = 0 };
	struct pollfd wait = { .fd = socket, .events = POLLIN };
	if (fd_close_others(&socket, 1))
		_exit(125);
	child_reset_signals();
	for (;;)
		if (poll(&wait, 1, late.count ? LATER_MS : -1) == 0)
			close_late(&late);
		else if (wait.revents && !take_some(socket, &late))
			_exit(0);
}

int closer_open(struct core *core, struct error *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return fail_errno(err, "make a socket pair");
	auto_close int ours = ends[0], theirs = ends[1];
	if (child_fork(&core->closer_child, 0, SIGKILL, err))
		return -1;
	if (core->closer_child.pid == 0)
		serve(theirs);
	core->closer = take_fd(&ours);
	return 0;
}

/* Waits for what it still closes: a home that is an image can be unmounted then. */
void closer_done(struct core *core)
{
	fd_close(&core->closer);
	child_wait(&core->closer_child);
}

void closer_close(struct core *core, int *fds, size_t count, bool is_late)
{
	const struct iovec part = { &is_late, sizeof is_late };
	/* When it is gone or has too much to do, the last one to close is core. */
	if (count && core->closer >= 0)
		(void)!fd_message_send(core->closer, &part, 1, fds, count, MSG_DONTWAIT);
	for (size_t i = 0; i < count; i++)
		fd_close(&fds[i]);
}
