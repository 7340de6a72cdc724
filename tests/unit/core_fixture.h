/* core_fixture.h -- core with a launcher that is played here. */
#pragma once
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/core.h"
#include "core/internal.h"
#include "proc/channel.h"
#include "unit.h"
#include "writer_fixture.h"

struct fixture {
	char home[64];
	struct loop *loop;
	struct core *core;
	int launcher; /* our end */
	int starts, ends;
	int listeners[16], listener_count;
	pid_t writer;
	uint64_t release_after_ms;
	char running[ID_LEN + 1]; /* what LIST tells of */
	bool refuses_start, keeps_spare;
	int dies_early;			     /* so many starts: up, and gone at once */
	int killed_early;		     /* so many starts: gone before they are up */
	int webhook_calls, webhook_failures; /* so many of the calls fail */
	/* of the last callback */
	int calls;
	char id[ID_LEN + 1];
	bool has_failed;
	struct error err;
};

static void answer(struct fixture *f, const struct launch_packet *to, enum launch_type type,
	const char *const *strings, size_t count, const int *fds, int fd_count)
{
	struct launch_message head = { .type = type, .tag = to->head.tag };
	struct error err;
	auto_buf struct buf packet;
	buf_init(&packet, CHANNEL_SIZE_MAX);
	if (type == LAUNCH_STARTED || type == LAUNCH_RUNNING || type == LAUNCH_ENDED)
		memcpy(head.id, to->head.id, sizeof head.id);
	if (type == LAUNCH_RUNNING)
		memcpy(head.id, f->running, sizeof head.id);
	if (type == LAUNCH_FAILED)
		head.error_code = f->killed_early ? ERR_CANCELED : ERR_UNAVAILABLE;
	for (int i = 0; i < fd_count; i++)
		head.present |= 1u << i;
	assert_int_equal(launch_encode(&head, strings, count, &packet, &err), 0);
	assert_int_equal(
		channel_send(f->launcher, packet.data, packet.len, fds, fd_count, &err), 0);
}

/* An "init" that only listens. */
static void listen_at(struct fixture *f, const char *id)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof address.sun_path, "%s/run/sb/%s", f->home, id);
	unlink(address.sun_path);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_true(f->listener_count < 16);
	f->listeners[f->listener_count++] = listener;
}

static void start(struct fixture *f, const struct launch_packet *packet)
{
	static const char *const why[] = { "no", "" };
	f->starts++;
	if (f->refuses_start || f->killed_early) {
		answer(f, packet, LAUNCH_FAILED, why, 2, NULL, 0);
		f->killed_early -= f->killed_early > 0;
		return;
	}
	if (f->dies_early)
		f->dies_early--;
	else
		listen_at(f, packet->head.id);
	int fds[3] = { open("/proc", O_PATH | O_CLOEXEC), open("/", O_PATH | O_CLOEXEC),
		open("/", O_PATH | O_CLOEXEC) };
	answer(f, packet, LAUNCH_STARTED, NULL, 0, fds, 3);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static void list(struct fixture *f, const struct launch_packet *packet)
{
	if (f->running[0]) {
		int fds[3] = { open("/proc", O_PATH | O_CLOEXEC), open("/", O_PATH | O_CLOEXEC),
			open("/", O_PATH | O_CLOEXEC) };
		answer(f, packet, LAUNCH_RUNNING, NULL, 0, fds, 3);
		for (int i = 0; i < 3; i++)
			close(fds[i]);
	}
	answer(f, packet, LAUNCH_DONE, NULL, 0, NULL, 0);
}

static void make_directory(struct fixture *f, const char *id)
{
	char path[128];
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, id);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void start_other_writer(struct fixture *f, const struct launch_packet *packet)
{
	waitpid(f->writer, NULL, 0);
	int writer = start_writer(f->home, &f->writer);
	answer(f, packet, LAUNCH_WRITER_STARTED, NULL, 0, &writer, 1);
	close(writer);
}

static void answer_webhook(struct fixture *f, int fd)
{
	bool has_failed = f->webhook_calls++ < f->webhook_failures;
	assert_true(dprintf(fd, "{\"status\":%d}", has_failed ? 500 : 204) > 0);
}

static void on_request(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct fixture *f = ctx;
	static char data[CHANNEL_SIZE_MAX];
	struct launch_packet packet;
	struct error err;
	int fds[CHANNEL_FDS_MAX], count;
	size_t len;
	while (channel_receive(fd, data, sizeof data, &len, fds, CHANNEL_FDS_MAX, &count, &err) ==
		CHANNEL_MESSAGE) {
		assert_int_equal(launch_decode(data, len, true, count, &packet, &err), 0);
		if (packet.head.type == LAUNCH_WEBHOOK)
			answer_webhook(f, fds[1]);
		for (int i = 0; i < count; i++)
			close(fds[i]);
		if (packet.head.type == LAUNCH_START)
			start(f, &packet);
		else if (packet.head.type == LAUNCH_END) {
			f->ends++;
			answer(f, &packet, LAUNCH_ENDED, NULL, 0, NULL, 0);
		} else if (packet.head.type == LAUNCH_LIST)
			list(f, &packet);
		else if (packet.head.type == LAUNCH_WRITER)
			start_other_writer(f, &packet);
		else {
			if (packet.head.type == LAUNCH_QUOTA)
				make_directory(f, packet.head.id);
			answer(f, &packet, LAUNCH_DONE, NULL, 0, NULL, 0);
		}
	}
}

static void on_tick(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

/* Runs the loop until `condition` holds, at most a minute. */
#define UNTIL(f, condition)                                                                        \
	do {                                                                                       \
		uint64_t end_ms_ = clock_monotonic_ms() + 60000;                                   \
		struct error err_;                                                                 \
		while (!(condition)) {                                                             \
			assert_true(clock_monotonic_ms() < end_ms_);                               \
			loop_after((f)->loop, 2, on_tick, NULL);                                   \
			assert_int_equal(loop_run((f)->loop, &err_), 0);                           \
		}                                                                                  \
	} while (0)

static void open_core(struct fixture *f)
{
	int ends[2];
	struct core_options options = { .home = f->home,
		.release_after_ms = f->release_after_ms ? f->release_after_ms : 60000,
		.keeps_spare = f->keeps_spare,
		.log = { .fd = STDERR_FILENO, .least = LOG_LEVEL_ERROR + 1 } };
	struct error err;
	assert_int_equal(loop_new(&f->loop, &err), 0);
	assert_int_equal(channel_pair(ends, &err), 0);
	f->launcher = ends[0];
	options.launcher = ends[1];
	options.writer = start_writer(f->home, &f->writer);
	options.store_url = STORE_URL;
	assert_int_equal(loop_watch(f->loop, f->launcher, EPOLLIN, on_request, f, &err), 0);
	if (core_open(&options, f->loop, &f->core, &err))
		fail_msg("%s", err.text);
	UNTIL(f, f->core->is_ready);
}

/* As a crash would: nothing is told to anybody. */
static void close_core(struct fixture *f)
{
	int theirs = f->core->launcher.socket;
	core_free(f->core);
	waitpid(f->writer, NULL, 0);
	close(theirs);
	loop_free(f->loop);
	close(f->launcher);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	snprintf(f->home, sizeof f->home, "/var/tmp/unit-core.XXXXXX");
	assert_non_null(mkdtemp(f->home));
	/* Root's home belongs to somebody else: core is that somebody. */
	if (geteuid() == 0 && (chown(f->home, 64199, 64199) || setegid(64199) || seteuid(64199)))
		return -1;
	open_core(f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	struct error err;
	auto_close int tmp = open("/var/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	close_core(f);
	while (f->listener_count)
		fd_close(&f->listeners[--f->listener_count]);
	if (seteuid(getuid()) || setegid(getgid()))
		return -1;
	assert_int_equal(path_remove_tree(tmp, path_basename(f->home), &err), 0);
	free(f);
	return 0;
}

static void on_done(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct fixture *f = ctx;
	f->calls++;
	f->has_failed = err != NULL;
	if (err)
		f->err = *err;
	if (w)
		memcpy(f->id, w->model.id, sizeof f->id);
}

static void create(struct fixture *f, const char *name, struct workspace wanted)
{
	wanted.name = name;
	f->calls = 0;
	core_create(&request_system, f->core, &wanted, on_done, f);
	assert_int_equal(f->calls, 0); /* never from inside the call */
	UNTIL(f, f->calls);
}

static struct core_workspace *find(struct fixture *f, const char *name)
{
	struct core_workspace *w = NULL;
	struct error err;
	return core_find(&request_system, f->core, name, &w, &err) ? NULL : w;
}

static bool exists(struct fixture *f, const char *path)
{
	char full[256];
	struct stat st;
	snprintf(full, sizeof full, "%s/%s", f->home, path);
	return !lstat(full, &st);
}

static bool tree_exists(struct fixture *f, const char *id, const char *path)
{
	char full[160];
	snprintf(full, sizeof full, "workspaces/%s%s", id, path);
	return exists(f, full);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
