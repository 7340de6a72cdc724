/* launch_fixture.h -- a launcher in a child, with a stand-in for core that passes packets between
 * it and the test: the test speaks as core. The stand-in is the test program itself, started by
 * role_start like the real one; it listens on the API's socket for the test. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "launch/launch.h"
#include "linux/home.h"
#include "proc/channel.h"
#include "sandbox/native/init_client.h"
#include "sandbox/plan/launch.h"
#include "sandbox/plan/plan.h"
#include "unit.h"

#define PATIENCE_MS 60000

/* ---- the stand-in ---- */

#define STAND_IN_DIE "die"	   /* a packet for the stand-in itself: it ends */
#define STAND_IN_GARBAGE "garbage" /* it says something else than a message */

static void stand_in_exit(int signo)
{
	_exit(0);
}

/* One packet from one side to the other; false: that side has gone. */
static bool pass_on(int from, int to)
{
	static char data[CHANNEL_SIZE_MAX];
	struct error err;
	size_t len = 0;
	int fds[CHANNEL_FDS_MAX], count = 0;
	int got =
		channel_receive(from, data, sizeof data, &len, fds, CHANNEL_FDS_MAX, &count, &err);
	if (got == CHANNEL_NOTHING)
		return true;
	if (got != CHANNEL_MESSAGE)
		return false;
	if (len == sizeof STAND_IN_DIE && !memcmp(data, STAND_IN_DIE, len))
		_exit(3);
	struct pollfd room = { .fd = to, .events = POLLOUT };
	bool sent;
	while (!(sent = !channel_send(to, data, len, fds, count, &err)) && err.code == ERR_LIMIT)
		poll(&room, 1, PATIENCE_MS);
	for (int i = 0; i < count; i++)
		close(fds[i]);
	return sent;
}

static inline int stand_in_main(void)
{
	signal(SIGTERM, stand_in_exit);
	(void)!write(LAUNCH_ROLE_READY, "r", 1);
	close(LAUNCH_ROLE_READY);
	for (;;) {
		int test = accept4(LAUNCH_ROLE_LISTENER, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct pollfd both[] = { { .fd = LAUNCH_ROLE_CHANNEL, .events = POLLIN },
			{ .fd = test, .events = POLLIN } };
		while (test >= 0 && poll(both, 2, -1) > 0) {
			if (both[0].revents && !pass_on(LAUNCH_ROLE_CHANNEL, test))
				_exit(4);
			if (both[1].revents && !pass_on(test, LAUNCH_ROLE_CHANNEL))
				break;
		}
		close(test);
	}
}
#define STAND_IN_MAIN(argc, argv)                                                                  \
	do {                                                                                       \
		if (!strcmp((argv)[0], "carreld"))                                                 \
			return stand_in_main();                                                    \
		if (!strcmp((argv)[0], "carrel-writer") || !strcmp((argv)[0], "carrel-audit"))     \
			return read(LAUNCH_ROLE_LISTENER, &(char){ 0 }, 1) != 0;                   \
	} while (0)

/* ---- the launcher ---- */

static const char *launcher_self; /* what builds are started of; NULL: nothing of use */

struct fixture {
	struct arena arena;
	char area[64];
	struct home home;
	pid_t launcher;
	int listener, core /* as whom the test speaks */;
	uint64_t tag;
	struct launch_packet packet; /* the last answer */
	char data[CHANNEL_SIZE_MAX];
	int fds[LAUNCH_FD_MAX];
};

static void close_answer(struct fixture *f)
{
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		fd_close(&f->fds[i]);
}

/* The test's stand-in accepts one at a time: whoever connects waits for the one before to go. */
static void connect_to_core(struct fixture *f)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	fd_close(&f->core);
	f->core = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	str_format(address.sun_path, sizeof address.sun_path, "%s/api", f->area);
	assert_int_equal(connect(f->core, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(fd_set_nonblocking(f->core), 0);
}

static void start_launcher(struct fixture *f)
{
	char own[4096], byte;
	int ready[2];
	ssize_t len = readlink("/proc/self/exe", own, sizeof own - 1);
	assert_true(len > 0);
	own[len] = 0;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t parent = getpid();
	/* The launcher must not hold it: a stand-in that was ended before it took it leaves it to
	 * the next one, which would wait for its end. */
	fd_close(&f->core);
	f->launcher = fork();
	assert_true(f->launcher >= 0);
	if (f->launcher == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(ready[0]);
		const struct launch_options options = { .home = &f->home,
			.listener = { .fd = f->listener, .path = "", .dir = -1 },
			.lock = -1,
			.notify = -1,
			.carreld = own,
			.self = launcher_self ? launcher_self : own,
			.ready = ready[1],
			.log = { .fd = STDERR_FILENO,
				.least = getenv("LAUNCH_DEBUG") ? LOG_LEVEL_DEBUG
								: LOG_LEVEL_ERROR } };
		_exit(launch_serve(&options));
	}
	close(ready[1]);
	struct pollfd wait = { .fd = ready[0], .events = POLLIN };
	assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	connect_to_core(f);
}

static inline int end_launcher(struct fixture *f, int signo)
{
	int status = -1;
	kill(f->launcher, signo);
	assert_int_equal(waitpid(f->launcher, &status, 0), f->launcher);
	f->launcher = 0;
	return status;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct error err;
	*state = f;
	arena_init(&f->arena);
	f->core = -1;
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		f->fds[i] = -1;
	/* Orphans of a launcher come to us, and can be counted. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	str_copy(f->area, sizeof f->area, "/var/tmp/carrel-test-launch-XXXXXX");
	if (!mkdtemp(f->area) || chmod(f->area, 0755))
		return -1;
	if (home_open(arena_printf(&f->arena, "%s/home", f->area), &f->arena, &f->home, &err)) {
		print_error("%s\n", err.text);
		return -1;
	}
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	str_format(address.sun_path, sizeof address.sun_path, "%s/api", f->area);
	f->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(f->listener, (struct sockaddr *)&address, sizeof address) ||
		listen(f->listener, 8))
		return -1;
	start_launcher(f);
	return 0;
}

static unsigned count_children(void)
{
	siginfo_t info = { 0 };
	unsigned count = 0;
	uint64_t until = clock_monotonic_ms() + PATIENCE_MS;
	/* Orphans that the kernel is just ending. */
	while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG) && clock_monotonic_ms() < until) {
		if (!info.si_pid)
			usleep(2000);
		info.si_pid = 0;
		count = 1;
	}
	return errno == ECHILD ? 0 : count;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct error err;
	fd_close(&f->core);
	close_answer(f);
	if (f->launcher > 0) {
		int status = end_launcher(f, SIGTERM);
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			print_error("the launcher ended with %x\n", (unsigned)status);
			return -1;
		}
	}
	if (count_children()) {
		print_error("a process is left\n");
		return -1;
	}
	fd_close(&f->listener);
	home_done(&f->home);
	auto_close int tmp = open("/var/tmp", O_PATH | O_DIRECTORY);
	int failed = path_remove_tree(tmp, path_basename(f->area), &err);
	arena_done(&f->arena);
	free(f);
	return failed;
}

/* ---- what core says and hears ---- */

static inline uint64_t say_full(struct fixture *f, struct launch_message *head,
	const char *const *strings, size_t count, const int *fds, int fd_count)
{
	struct error err = { 0 };
	auto_buf struct buf data;
	struct pollfd room = { .fd = f->core, .events = POLLOUT };
	buf_init(&data, CHANNEL_SIZE_MAX);
	head->tag = ++f->tag;
	assert_int_equal(launch_encode(head, strings, count, &data, &err), 0);
	while (channel_send(f->core, data.data, data.len, fds, fd_count, &err)) {
		assert_int_equal(err.code, ERR_LIMIT);
		assert_int_equal(poll(&room, 1, PATIENCE_MS), 1);
	}
	return f->tag;
}

static inline uint64_t say(struct fixture *f, uint32_t type, const char *id)
{
	struct launch_message head = { .type = type };
	if (id)
		str_copy(head.id, sizeof head.id, id);
	return say_full(f, &head, NULL, 0, NULL, 0);
}

/* The next answer, in f->packet and f->fds. */
static inline struct launch_message *receive(struct fixture *f)
{
	struct error err = { 0 };
	struct pollfd ready = { .fd = f->core, .events = POLLIN };
	int came[CHANNEL_FDS_MAX], count = 0, taken = 0;
	size_t len = 0;
	close_answer(f);
	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	assert_int_equal(channel_receive(f->core, f->data, sizeof f->data, &len, came,
				 CHANNEL_FDS_MAX, &count, &err),
		CHANNEL_MESSAGE);
	if (launch_decode(f->data, len, false, count, &f->packet, &err))
		fail_msg("%s", err.text);
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		if (f->packet.head.present & 1u << i)
			f->fds[i] = came[taken++];
	return &f->packet.head;
}

static inline struct launch_message *hear_answer(struct fixture *f, uint64_t tag, uint32_t type)
{
	struct launch_message *head = receive(f);
	if (head->type == LAUNCH_FAILED && type != LAUNCH_FAILED)
		print_error("%s (%s)\n", f->packet.strings[0], f->packet.strings[1]);
	assert_int_equal(head->type, type);
	assert_int_equal(head->tag, tag);
	return head;
}

/* ---- workspaces ---- */

static inline void make_directory(struct fixture *f, const char *path)
{
	struct error err;
	auto_close int fd = -1;
	home_enter(&f->home);
	int failed = path_make_directories(f->home.dir, path, 0755, &fd, &err);
	home_leave(&f->home);
	if (failed)
		fail_msg("%s", err.text);
}

static inline void fill_workspace(struct fixture *f, const char *id)
{
	make_directory(f, arena_printf(&f->arena, "workspaces/%s/upper", id));
	make_directory(f, arena_printf(&f->arena, "workspaces/%s/work", id));
	make_directory(f, arena_printf(&f->arena, "workspaces/%s/cache", id));
	make_directory(f, arena_printf(&f->arena, "workspaces/%s/env/upper", id));
	make_directory(f, arena_printf(&f->arena, "workspaces/%s/env/work", id));
}

static inline const char *make_workspace(struct fixture *f)
{
	char *id = arena_alloc(&f->arena, ID_LEN + 1);
	id_make(id);
	fill_workspace(f, id);
	return id;
}

static inline uint64_t ask_start(struct fixture *f, const char *id, const struct limits *limits)
{
	struct launch_message head = { .type = LAUNCH_START };
	str_copy(head.id, sizeof head.id, id);
	if (limits)
		head.limits = *limits;
	return say_full(f, &head, NULL, 0, NULL, 0);
}

static inline void start_sandbox(struct fixture *f, const char *id)
{
	uint64_t tag = ask_start(f, id, NULL);
	assert_string_equal(hear_answer(f, tag, LAUNCH_STARTED)->id, id);
}

static inline void end_sandbox(struct fixture *f, const char *id)
{
	struct launch_message *ended = hear_answer(f, say(f, LAUNCH_END, id), LAUNCH_ENDED);
	assert_string_equal(ended->id, id);
	assert_true(WIFSIGNALED(ended->value));
}

/* ---- its init ---- */

static inline int connect_to_init(struct fixture *f, const char *id)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	str_format(address.sun_path, sizeof address.sun_path, "%s/home/run/sb/%s", f->area, id);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static inline int hear_init(int init, struct init_reply *reply)
{
	struct error err = { 0 };
	struct pollfd ready = { .fd = init, .events = POLLIN };
	int pidfd = -1;
	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	int got = init_client_receive(init, reply, &pidfd, &err);
	if (got < 0)
		fail_msg("%s", err.text);
	fd_close(&pidfd);
	return got;
}

/* Runs a shell script and returns its exit code; what it writes is in `text`. */
static inline int sh(int init, const char *script, char *text, size_t size)
{
	static uint64_t next_id = 1;
	static const char *const env[] = { "PATH=/usr/bin:/bin:/env/bin", NULL };
	const char *argv[] = { "sh", "-c", script, NULL };
	struct init_spawn what = { argv, env, PLAN_WORKSPACE, INIT_NO_PIDFD | INIT_NO_STARTED };
	struct init_reply reply;
	struct error err = { 0 };
	int ends[2];
	size_t len = 0;
	ssize_t got;
	auto_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	uint64_t id = next_id++;
	assert_int_equal(
		init_client_spawn(init, id, &what, (int[]){ null, ends[1], ends[1] }, &err), 0);
	close(ends[1]);
	while (len < size - 1 && (got = read(ends[0], text + len, size - 1 - len)) > 0)
		len += (size_t)got;
	text[len] = 0;
	close(ends[0]);
	assert_int_equal(hear_init(init, &reply), INIT_CLIENT_REPLY);
	assert_int_equal(reply.type, INIT_EXITED);
	assert_int_equal(reply.id, id);
	assert_int_equal(init_client_ack(init, id, &err), 0);
	return WIFEXITED(reply.value) ? WEXITSTATUS(reply.value) : -1;
}
