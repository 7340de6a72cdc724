/* init_fixture.h -- the real carrel-init, started as an ordinary child (or as PID 1 where the host
 * allows it), and spoken to through init_client and, where it should be refused, in raw packets. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include "base/fd.h"
#include "base/str.h"
#include "linux/fd_message.h"
#include "sandbox/init/image.h"
#include "sandbox/native/init_client.h"
#include "unit.h"

#define PATIENCE_MS 60000

struct init {
	pid_t pid;
	int socket;   /* to it: connected */
	int listener; /* warm: what it inherited, so that we can find its name */
	bool reaped;
};

/* ---- starting and ending it ---- */

static inline void run_init(int socket, void (*before)(void))
{
	int image = memfd_create("image", MFD_CLOEXEC);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves none behind */
	if (image < 0 || fd_write_full(image, init_image, init_image_len) < 0)
		_exit(90);
	image = fcntl(image, F_DUPFD_CLOEXEC, 100);
	socket = fcntl(socket, F_DUPFD, 100);
	if (before)
		before();
	char *argv[] = { (char *)(uintptr_t) "carrel-init", NULL }, *env[] = { NULL };
	if (dup2(socket, INIT_SOCKET_FD) < 0)
		_exit(91);
	syscall(SYS_execveat, image, "", argv, env, AT_EMPTY_PATH);
	_exit(92);
}

static inline pid_t fork_init(int socket, unsigned long namespaces, void (*before)(void))
{
	long pid = syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		run_init(socket, before);
	return (pid_t)pid;
}

static inline struct init start_cold_with(unsigned long namespaces, void (*before)(void))
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	struct init init = { .socket = ends[0], .listener = -1 };
	init.pid = fork_init(ends[1], namespaces, before);
	close(ends[1]);
	return init;
}

static inline struct init start_cold(void)
{
	struct init init = start_cold_with(0, NULL);
	assert_true(init.pid > 0);
	return init;
}

static inline int connect_to(const struct init *init)
{
	struct sockaddr_un address;
	socklen_t len = sizeof address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(getsockname(init->listener, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
	return fd;
}

static inline struct init start_warm_before(unsigned long namespaces, void (*before)(void))
{
	struct init init = { .socket = -1 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	init.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* No name given: the kernel chooses a free abstract one. */
	assert_int_equal(bind(init.listener, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(init.listener, 8), 0);
	init.pid = fork_init(init.listener, namespaces, before);
	if (init.pid > 0)
		init.socket = connect_to(&init);
	return init;
}

static inline struct init start_warm_with(unsigned long namespaces)
{
	return start_warm_before(namespaces, NULL);
}

static inline struct init start_warm(void)
{
	struct init init = start_warm_with(0);
	assert_true(init.pid > 0);
	return init;
}

static inline void end_init(struct init *init)
{
	fd_close(&init->socket);
	fd_close(&init->listener);
	if (init->pid > 0 && !init->reaped) {
		kill(init->pid, SIGKILL);
		waitpid(init->pid, NULL, 0);
	}
}
#define auto_init __attribute__((cleanup(end_init)))

static inline void assert_init_exits(struct init *init, int code)
{
	int status = -1;
	assert_int_equal(waitpid(init->pid, &status, 0), init->pid);
	init->reaped = true;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
}

/* ---- talking to it ---- */

static inline int receive(int socket, struct init_reply *reply, int *pidfd)
{
	struct error err = { 0 };
	struct pollfd ready = { .fd = socket, .events = POLLIN };
	int fd = -1;
	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	int got = init_client_receive(socket, reply, &fd, &err);
	if (got < 0)
		print_error("%s\n", err.text);
	if (pidfd)
		*pidfd = fd;
	else
		fd_close(&fd);
	return got;
}

static inline struct init_reply expect(int socket, uint32_t type, uint64_t id)
{
	struct init_reply reply = { 0 };
	assert_int_equal(receive(socket, &reply, NULL), INIT_CLIENT_REPLY);
	if (reply.type != type)
		print_error("type %u value %d stage %d\n", reply.type, reply.value, reply.stage);
	assert_int_equal(reply.type, type);
	assert_int_equal(reply.id, id);
	return reply;
}

static inline void expect_eof(int socket)
{
	struct init_reply reply;
	assert_int_equal(receive(socket, &reply, NULL), INIT_CLIENT_EOF);
}

static inline void expect_failed(int socket, uint64_t id, int stage, int value)
{
	struct init_reply reply = expect(socket, INIT_FAILED, id);
	assert_int_equal(reply.stage, stage);
	assert_int_equal(reply.value, value);
}

static inline void expect_refused(int socket, uint64_t id, int value)
{
	assert_int_equal(expect(socket, INIT_REFUSED, id).value, value);
}

static inline void expect_exit(int socket, uint64_t id, int code)
{
	struct init_reply reply = expect(socket, INIT_EXITED, id);
	assert_true(WIFEXITED(reply.value));
	assert_int_equal(WEXITSTATUS(reply.value), code);
}

static const char *const path_env[] = { "PATH=/usr/bin:/bin", "A=b", NULL };
#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define QUIET (INIT_NO_PIDFD | INIT_NO_STARTED)

static inline void spawn_full(
	int socket, uint64_t id, const struct init_spawn *spawn, const int fds[3])
{
	struct error err = { 0 };
	struct pollfd ready = { .fd = socket, .events = POLLOUT };
	int sent;
	while ((sent = init_client_spawn(socket, id, spawn, fds, &err)) < 0 &&
		err.sys_errno == EAGAIN)
		assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	if (sent < 0)
		print_error("%s\n", err.text);
	assert_int_equal(sent, 0);
}

static inline void spawn(int socket, uint64_t id, const char *const *argv, int in, int out)
{
	struct init_spawn what = { argv, path_env, "/", QUIET };
	spawn_full(socket, id, &what, (int[]){ in, out, 2 });
}

/* Reads to the end, which comes when the last process that holds the other side is gone. */
static inline void read_all(int fd, char *text, size_t size)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	size_t len = 0;
	for (;;) {
		assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
		ssize_t got = read(fd, text + len, size - 1 - len);
		assert_true(got >= 0);
		if (got == 0)
			break;
		len += (size_t)got;
	}
	text[len] = 0;
}

/* Runs one command in a cold sandbox and returns what it wrote; its exit must be `code`. */
static inline void run_and_read(
	const struct init_spawn *what, void (*before)(void), int code, char *text, size_t size)
{
	auto_init struct init init = start_cold_with(0, before);
	int ends[2];
	assert_true(init.pid > 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn_full(init.socket, 1, what, (int[]){ 0, ends[1], 2 });
	close(ends[1]);
	read_all(ends[0], text, size);
	close(ends[0]);
	expect_exit(init.socket, 1, code);
	expect_eof(init.socket);
	assert_init_exits(&init, 0);
}

static inline void ack(int socket, uint64_t id)
{
	struct error err;
	assert_int_equal(init_client_ack(socket, id, &err), 0);
}

static inline int expect_stats(int socket, uint64_t *shm_bytes)
{
	struct error err;
	assert_int_equal(init_client_stats(socket, &err), 0);
	struct init_reply reply = expect(socket, INIT_STATS_ARE, 0);
	if (shm_bytes)
		*shm_bytes = reply.shm_bytes;
	return reply.value;
}

static inline void flood_with_stats(int socket)
{
	struct error err;
	struct pollfd ready = { .fd = socket, .events = POLLOUT };
	for (int i = 0; i < 1000000; i++) {
		if (init_client_stats(socket, &err) == 0)
			continue;
		if (err.sys_errno != EAGAIN)
			return;
		assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	}
	assert_true(!"init waits for a master that doesn't read");
}

struct raw {
	struct init_request request;
	char body[INIT_INLINE_MAX + 4096];
};

static inline void send_raw(
	int socket, const struct raw *raw, size_t len, const int *fds, int fd_count)
{
	struct iovec part = { (void *)(uintptr_t)raw, len };
	assert_int_equal(fd_message_send(socket, &part, 1, fds, fd_count, 0), (ssize_t)len);
}

static const struct raw good = {
	.request = { .magic = INIT_MAGIC,
		.type = INIT_SPAWN,
		.id = 1,
		.argc = 1,
		.body_len = 12,
		.flags = QUIET },
	.body = "/bin/true\0/",
};
#define GOOD_LEN (sizeof good.request + 12)

static inline bool can_be_pid_1(const struct init *init)
{
	if (init->pid < 0)
		assert_true(
			errno == EPERM || errno == ENOSPC || errno == EINVAL || errno == ENOSYS);
	return init->pid > 0;
}
#define PID_1 (CLONE_NEWUSER | CLONE_NEWPID)
