/* The parent's side of the forwarder. */
#include "egress/forward.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/fd.h"
#include "egress/parts.h"
#include "linux/fd_message.h"

#define REPLY_SECONDS 10
#define END_MS 1000 /* to end by itself */

static struct shared *shared_of(const struct forward *forward)
{
	/* The counts are the first member of what is shared. */
	return (struct shared *)(uintptr_t)forward->counts;
}

static _Noreturn void run_child(
	const struct forward_options *options, pid_t parent, int control, struct shared *shared)
{
	struct error err;

	if (confine_self(options, parent, &control, &err) < 0 ||
		serve_run(options, control, shared, &err) < 0) {
		serve_reply(control, &err);
		_exit(1);
	}
	_exit(0);
}

static int read_reply(struct forward *forward, struct error *err)
{
	struct control_reply reply;
	ssize_t got;

	do
		got = recv(forward->control, &reply, sizeof reply, 0);
	while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof reply) {
		bool is_late = got < 0 && errno == EAGAIN;
		/* A late reply would be taken for that of the next message. */
		fd_close(&forward->control);
		return fail(err, ERR_FAILED, "the forwarder %s",
			is_late ? "doesn't answer" : "has ended");
	}
	if (reply.code == ERR_NONE)
		return 0;
	reply.text[sizeof reply.text - 1] = '\0';
	bool is_known = reply.code > ERR_NONE && reply.code < ERR_CODE_COUNT;
	return fail(err, is_known ? (enum error_code)reply.code : ERR_FAILED, "%s", reply.text);
}

static int send_message(
	struct forward *forward, const struct control_message *message, int fd, struct error *err)
{
	struct iovec part = { (void *)(uintptr_t)message, sizeof *message };

	if (forward->control < 0)
		return fail(err, ERR_FAILED, "the forwarder has ended");
	if (fd_message_send(forward->control, &part, 1, &fd, fd >= 0, 0) < 0)
		return errno == EPIPE || errno == ECONNRESET
			       ? fail(err, ERR_FAILED, "the forwarder has ended")
			       : fail_errno(err, "send to the forwarder");
	return read_reply(forward, err);
}

/* One process at a time, until it has its reply: a lock of the process (lockf), not of the
 * descriptor, which processes that were forked since share. */
static int exchange(
	struct forward *forward, const struct control_message *message, int fd, struct error *err)
{
	while (lockf(forward->lock, F_LOCK, 1) < 0)
		if (errno != EINTR)
			return fail_errno(err, "lock the forwarder");
	int failed = send_message(forward, message, fd, err);
	(void)!lockf(forward->lock, F_ULOCK, 1);
	return failed;
}

static int start_process(
	const struct forward_options *options, struct forward *forward, struct error *err)
{
	struct timeval patience = { .tv_sec = REPLY_SECONDS };
	pid_t parent = getpid();
	auto_close int theirs = -1;
	int ends[2];

	void *page = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return fail_errno(err, "map the counts");
	forward->counts = &((struct shared *)page)->counts;
	forward->lock = memfd_create("forward", MFD_CLOEXEC);
	if (forward->lock < 0)
		return fail_errno(err, "make the forwarder's lock");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return fail_errno(err, "make a pair of sockets");
	forward->control = ends[0];
	theirs = ends[1];
	if (setsockopt(forward->control, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0)
		return fail_errno(err, "prepare a pair of sockets");
	if (child_fork(&forward->child, CHILD_PIDFD, SIGKILL, err) < 0)
		return -1;
	if (forward->child.pid == 0)
		run_child(options, parent, theirs, page);
	fd_close(&theirs);
	return read_reply(forward, err);
}

int forward_start(const struct forward_options *options, struct forward *forward, struct error *err)
{
	*forward = (struct forward)FORWARD_NONE;
	if (start_process(options, forward, err) == 0)
		return 0;
	forward_stop(forward);
	return error_context(err, "start the forwarder");
}

int forward_serve(struct forward *forward, uint32_t policy, int listener, struct error *err)
{
	struct control_message message = { .type = CONTROL_SERVE, .policy = policy };

	if (listener < 0)
		return fail(err, ERR_INVALID, "no listening socket");
	return exchange(forward, &message, listener, err);
}

int forward_allow(struct forward *forward, uint32_t policy, const struct forward_host *host,
	struct error *err)
{
	struct control_message message = { .type = CONTROL_ALLOW,
		.policy = policy,
		.port = host->port,
		.is_named = host->is_named };

	if (host_check(host, err) < 0)
		return -1;
	str_copy(message.host, sizeof message.host, host->host);
	return exchange(forward, &message, -1, err);
}

int forward_settle(struct forward *forward, uint32_t policy, struct error *err)
{
	struct control_message message = { .type = CONTROL_SETTLE, .policy = policy };

	return exchange(forward, &message, -1, err);
}

int forward_end(struct forward *forward, uint32_t policy, struct error *err)
{
	struct control_message message = { .type = CONTROL_END, .policy = policy };

	return exchange(forward, &message, -1, err);
}

void forward_stop(struct forward *forward)
{
	struct pollfd end = { .fd = forward->child.pidfd, .events = POLLIN };

	/* The end of the control socket is its order to end, whoever else holds it. */
	if (forward->control >= 0)
		shutdown(forward->control, SHUT_RDWR);
	fd_close(&forward->control);
	fd_close(&forward->lock);
	if (forward->child.pid > 0 && poll(&end, 1, END_MS) != 1)
		kill(forward->child.pid, SIGKILL);
	child_wait(&forward->child);
	if (forward->counts)
		munmap(shared_of(forward), sizeof(struct shared));
	*forward = (struct forward)FORWARD_NONE;
}

/* What the other side does with the memory is its own affair: a few attempts, and whatever was read
 * is made one printable line. */
static void read_text(
	const struct shared *shared, const volatile char *text, size_t size, char *out)
{
	char copy[FORWARD_FAILURE_SIZE] = "";

	for (int attempt = 0; attempt < 64; attempt++) {
		uint32_t before = __atomic_load_n(&shared->sequence, __ATOMIC_SEQ_CST);
		for (size_t i = 0; i < size; i++)
			copy[i] = text[i];
		uint32_t after = __atomic_load_n(&shared->sequence, __ATOMIC_SEQ_CST);
		if (before == after && !(before & 1))
			break;
	}
	copy[size - 1] = '\0';
	str_printable(out, size, str_from(copy));
}

void forward_last_refused(const struct forward *forward, char out[320])
{
	const struct shared *shared = shared_of(forward);

	out[0] = '\0';
	if (shared)
		read_text(shared, shared->last_refused, sizeof shared->last_refused, out);
}

void forward_last_failure(const struct forward *forward, char out[FORWARD_FAILURE_SIZE])
{
	const struct shared *shared = shared_of(forward);

	out[0] = '\0';
	if (shared)
		read_text(shared, shared->last_failure, sizeof shared->last_failure, out);
}
