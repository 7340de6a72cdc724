/* What holders of a policy send to the role. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/fd.h"
#include "egress/internal.h"
#include "linux/fd_message.h"

#define REPLY_SECONDS 10
#define ENDED "the egress process has ended"

int egress_pair(int ends[2], struct error *err)
{
	struct timeval patience = { .tv_sec = REPLY_SECONDS };

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return fail_errno(err, "make a pair of sockets");
	if (setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
		setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0)
		return 0;
	fail_errno(err, "prepare a pair of sockets");
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	return -1;
}

/* The role may write anything: its texts are made printable lines. */
static void clean(char *text, size_t size)
{
	char copy[512];

	text[size - 1] = '\0';
	str_copy(copy, sizeof copy, text);
	str_printable(text, size, str_from(copy));
}

static int read_reply(int *channel, struct egress_reply *reply, struct error *err)
{
	ssize_t got;

	do
		got = recv(*channel, reply, sizeof *reply, 0);
	while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof *reply) {
		bool is_late = got < 0 && errno == EAGAIN;
		/* A late reply would be taken for that of the next message. */
		fd_close(channel);
		return fail(err, ERR_UNAVAILABLE,
			is_late ? "the egress process does not answer" : ENDED);
	}
	clean(reply->text, sizeof reply->text);
	clean(reply->status.last_refused, sizeof reply->status.last_refused);
	clean(reply->status.last_failure, sizeof reply->status.last_failure);
	if (reply->code == ERR_NONE)
		return 0;
	bool is_known = reply->code > ERR_NONE && reply->code < ERR_CODE_COUNT;
	return fail(err, is_known ? (enum error_code)reply->code : ERR_FAILED, "%s", reply->text);
}

static int send_with(int channel, const void *data, size_t len, int fd, struct error *err)
{
	struct iovec part = { (void *)(uintptr_t)data, len };

	if (channel < 0)
		return fail(err, ERR_UNAVAILABLE, ENDED);
	if (fd_message_send(channel, &part, 1, &fd, fd >= 0, 0) >= 0)
		return 0;
	return errno == EPIPE || errno == ECONNRESET
		       ? fail(err, ERR_UNAVAILABLE, ENDED)
		       : fail_errno(err, "send a message to the egress process");
}

/* One process at a time, until it has its reply: a lock of the process (lockf), not of the
 * descriptor, which processes that were forked since share. */
static int exchange(struct egress *egress, const struct egress_message *message, int fd,
	struct egress_reply *reply, struct error *err)
{
	struct egress_reply ignored;

	if (egress->channel < 0)
		return fail(err, ERR_UNAVAILABLE, ENDED);
	while (lockf(egress->lock, F_LOCK, 1) < 0)
		if (errno != EINTR)
			return fail_errno(err, "lock the channel of the egress process");
	int failed = send_with(egress->channel, message, sizeof *message, fd, err) ||
		     read_reply(&egress->channel, reply ? reply : &ignored, err);
	(void)!lockf(egress->lock, F_ULOCK, 1);
	return failed ? -1 : 0;
}

int egress_open(
	int service, const struct egress_policy *policy, struct egress *egress, struct error *err)
{
	struct egress_reply reply;
	int ends[2];

	*egress = EGRESS_NONE;
	if (egress_pair(ends, err) < 0)
		return -1;
	egress->channel = ends[0];
	auto_close int theirs = ends[1];
	egress->lock = memfd_create("egress", MFD_CLOEXEC);
	if (egress->lock < 0)
		return fail_errno(err, "make the lock of an egress channel");
	if (send_with(service, policy, sizeof *policy, theirs, err) < 0)
		return -1;
	fd_close(&theirs); /* or the end of the role would not be seen */
	return read_reply(&egress->channel, &reply, err);
}

int egress_serve(struct egress *egress, int listener, struct error *err)
{
	struct egress_message message = { .type = EGRESS_SERVE };

	if (listener < 0)
		return fail(err, ERR_INVALID, "no listening socket");
	return exchange(egress, &message, listener, NULL, err);
}

int egress_allow(struct egress *egress, const struct forward_host *host, struct error *err)
{
	struct egress_message message = {
		.type = EGRESS_ALLOW, .port = host->port, .is_named = host->is_named
	};

	if (host_check(host, err) < 0)
		return -1;
	str_copy(message.host, sizeof message.host, host->host);
	return exchange(egress, &message, -1, NULL, err);
}

int egress_settle(struct egress *egress, struct error *err)
{
	return exchange(egress, &(struct egress_message){ .type = EGRESS_SETTLE }, -1, NULL, err);
}

int egress_look(struct egress *egress, struct egress_status *status, struct error *err)
{
	struct egress_reply reply;

	if (exchange(egress, &(struct egress_message){ .type = EGRESS_LOOK }, -1, &reply, err) < 0)
		return -1;
	*status = reply.status;
	return 0;
}

void egress_close(struct egress *egress)
{
	struct error ignored; /* a role that has ended holds nothing */

	if (egress->channel >= 0)
		exchange(
			egress, &(struct egress_message){ .type = EGRESS_END }, -1, NULL, &ignored);
	fd_close(&egress->channel);
	fd_close(&egress->lock);
}
