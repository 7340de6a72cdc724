/* carrel-init in a warm sandbox: many commands, masters that come and go, and its size. */
/* security: sandbox */
#include <netinet/in.h>
#include <sys/shm.h>
#include <time.h>
#include "base/clock.h"
#include "format/text/procfs.h"
#include "linux/netns.h"
#include "linux/pidfd.h"
#include "init_fixture.h"

static void test_started_carries_the_pidfd_of_the_command(void **state)
{
	auto_init struct init init = start_warm();
	struct error err;
	struct init_reply reply;
	auto_close int pidfd = -1;
	struct init_spawn what = { ARGV("sleep", "100"), path_env, "/", 0 };
	spawn_full(init.socket, 77, &what, (int[]){ 0, 1, 2 });
	assert_int_equal(receive(init.socket, &reply, &pidfd), INIT_CLIENT_REPLY);
	assert_int_equal(reply.type, INIT_STARTED);
	assert_int_equal(reply.id, 77);
	assert_true(pidfd >= 0);
	assert_int_equal(expect_stats(init.socket, NULL), 1);
	assert_int_equal(pidfd_signal(pidfd, SIGKILL, &err), 0);
	assert_int_equal(WTERMSIG(expect(init.socket, INIT_EXITED, 77).value), SIGKILL);
	assert_int_equal(expect_stats(init.socket, NULL), 0);
	what.flags = INIT_NO_PIDFD;
	what.argv = ARGV("true");
	spawn_full(init.socket, 78, &what, (int[]){ 0, 1, 2 });
	assert_int_equal(receive(init.socket, &reply, &pidfd), INIT_CLIENT_REPLY);
	assert_int_equal(reply.type, INIT_STARTED);
	assert_int_equal(pidfd, -1);
	expect_exit(init.socket, 78, 0);
}

static void test_a_warm_init_goes_on_after_exits_failures_and_refusals(void **state)
{
	auto_init struct init init = start_warm();
	for (uint64_t id = 1; id <= 300; id++) {
		spawn(init.socket, id, ARGV("true"), 0, 1);
		expect_exit(init.socket, id, 0);
		ack(init.socket, id);
		ack(init.socket, id);
		expect_refused(init.socket, id, ESRCH);
		if (id % 10)
			continue;
		spawn(init.socket, id, ARGV("/no/such"), 0, 1);
		expect_failed(init.socket, id, INIT_STAGE_EXEC, ENOENT);
		send_raw(init.socket, &good, 5, NULL, 0);
		expect_refused(init.socket, 0, EBADMSG);
	}
	assert_int_equal(expect_stats(init.socket, NULL), 0);
}

static void test_the_table_is_full_at_its_maximum_and_every_exit_arrives(void **state)
{
	auto_init struct init init = start_warm();
	int ends[2];
	bool seen[INIT_EXECS_MAX + 1] = { false };
	for (int round = 0; round < 2; round++) {
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		for (uint64_t id = 1; id <= INIT_EXECS_MAX; id++)
			spawn(init.socket, id, ARGV("cat"), ends[0], 1);
		spawn(init.socket, 1, ARGV("true"), 0, 1);
		expect_refused(init.socket, 1, EEXIST);
		spawn(init.socket, INIT_EXECS_MAX + 1, ARGV("true"), 0, 1);
		expect_refused(init.socket, INIT_EXECS_MAX + 1, EAGAIN);
		assert_int_equal(expect_stats(init.socket, NULL), INIT_EXECS_MAX);
		close(ends[0]);
		close(ends[1]);
		memset(seen, 0, sizeof seen);
		for (int i = 0; i < INIT_EXECS_MAX; i++) {
			struct init_reply reply;
			assert_int_equal(receive(init.socket, &reply, NULL), INIT_CLIENT_REPLY);
			assert_int_equal(reply.type, INIT_EXITED);
			assert_true(reply.id >= 1 && reply.id <= INIT_EXECS_MAX && !seen[reply.id]);
			seen[reply.id] = true;
			ack(init.socket, reply.id);
		}
	}
}

static void test_exits_that_nobody_acknowledged_are_repeated(void **state)
{
	auto_init struct init init = start_warm();
	for (uint64_t id = 1; id <= 3; id++) {
		spawn(init.socket, id, ARGV("sh", "-c", "exit 4"), 0, 1);
		expect_exit(init.socket, id, 4);
	}
	ack(init.socket, 2);
	/* Still running when its master goes. */
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn(init.socket, 9, ARGV("sh", "-c", "read x; exit 5"), ends[0], 1);
	assert_int_equal(expect_stats(init.socket, NULL), 1);
	fd_close(&init.socket);
	close(ends[1]);
	close(ends[0]);
	init.socket = connect_to(&init);
	expect_exit(init.socket, 1, 4);
	bool saw_9 = false, saw_3 = false;
	for (int i = 0; i < 2; i++) {
		struct init_reply reply;
		assert_int_equal(receive(init.socket, &reply, NULL), INIT_CLIENT_REPLY);
		assert_int_equal(reply.type, INIT_EXITED);
		saw_3 |= reply.id == 3 && reply.value == 4 << 8;
		saw_9 |= reply.id == 9 && reply.value == 5 << 8;
	}
	assert_true(saw_3 && saw_9);
	for (uint64_t id = 1; id <= 9; id++)
		if (id == 1 || id == 3 || id == 9)
			ack(init.socket, id);
	assert_int_equal(expect_stats(init.socket, NULL), 0); /* they were read */
	fd_close(&init.socket);
	init.socket = connect_to(&init);
	assert_int_equal(expect_stats(init.socket, NULL), 0); /* and nothing before it */
}

static void test_a_newer_master_replaces_the_older(void **state)
{
	auto_init struct init init = start_warm();
	assert_int_equal(expect_stats(init.socket, NULL), 0);
	auto_close int newer = connect_to(&init);
	assert_int_equal(expect_stats(newer, NULL), 0);
	expect_eof(init.socket);
	spawn(newer, 1, ARGV("true"), 0, 1);
	expect_exit(newer, 1, 0);
}

static void spawn_attached(int socket, uint64_t id, const char *const *argv, int in, int out)
{
	struct init_spawn what = { argv, path_env, "/", QUIET | INIT_ATTACHED };
	spawn_full(socket, id, &what, (int[]){ in, out, 2 });
}

static void test_what_is_attached_ends_with_its_master_and_is_heard_of_once(void **state)
{
	auto_init struct init init = start_warm();
	struct error err;
	int ends[2];
	char text[16];
	spawn_attached(init.socket, 1, ARGV("true"), 0, 1);
	expect_exit(init.socket, 1, 0);
	ack(init.socket, 1);
	expect_refused(init.socket, 1, ESRCH);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn_attached(init.socket, 2, ARGV("sh", "-c", "sleep 100 & sleep 100"), 0, ends[1]);
	auto_close int out = ends[0];
	close(ends[1]);
	spawn(init.socket, 3, ARGV("sleep", "100"), 0, 1);
	assert_int_equal(expect_stats(init.socket, NULL), 2);
	fd_close(&init.socket);
	read_all(out, text, sizeof text); /* its whole group is gone */
	init.socket = connect_to(&init);
	assert_int_equal(expect_stats(init.socket, NULL), 1);
	assert_int_equal(init_client_signal(init.socket, 2, 0, &err), 0);
	expect_refused(init.socket, 2, ESRCH);
	assert_int_equal(init_client_signal(init.socket, 3, 0, &err), 0);
	assert_int_equal(init_client_signal(init.socket, 3, SIGKILL, &err), 0);
	assert_int_equal(WTERMSIG(expect(init.socket, INIT_EXITED, 3).value), SIGKILL);
}

static void test_a_program_of_the_masters_has_no_other_descriptor_and_ends_alone(void **state)
{
	auto_init struct init init = start_warm();
	auto_close int program = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	struct error err;
	char text[64];
	int ends[2];
	assert_true(program >= 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	struct init_spawn what = {
		ARGV("nowhere", "-c",
			"for fd in 3 4 5 6 7 8 9; do"
			" test -e /proc/self/fd/$fd && echo $fd; done; echo ran"),
		path_env, "/", QUIET | INIT_ATTACHED | INIT_PROGRAM_IN_FD, program
	};
	spawn_full(init.socket, 1, &what, (int[]){ 0, ends[1], 2 });
	close(ends[1]);
	read_all(ends[0], text, sizeof text);
	close(ends[0]);
	assert_string_equal(text, "ran\n");
	expect_exit(init.socket, 1, 0);
	spawn(init.socket, 2, ARGV("sleep", "100"), 0, 1);
	what.argv = ARGV("nowhere", "-c", "sleep 100");
	spawn_full(init.socket, 3, &what, (int[]){ 0, 1, 2 });
	fd_close(&init.socket);
	init.socket = connect_to(&init);
	assert_int_equal(expect_stats(init.socket, NULL), 1);
	assert_int_equal(init_client_signal(init.socket, 3, 0, &err), 0);
	expect_refused(init.socket, 3, ESRCH);
	assert_int_equal(init_client_signal(init.socket, 2, SIGKILL, &err), 0);
	assert_int_equal(WTERMSIG(expect(init.socket, INIT_EXITED, 2).value), SIGKILL);
}

static void test_one_that_may_not_grow_deletes_and_writes_no_file(void **state)
{
	auto_init struct init init = start_warm();
	char path[] = "/tmp/unit-growth.XXXXXX";
	auto_close int fd = mkstemp(path);
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC); /* ours may be files */
	assert_true(fd >= 0 && null >= 0);
	struct init_spawn what = { ARGV("sh", "-c", "echo x > \"$0\"", path), path_env, "/",
		QUIET | INIT_NO_GROWTH };
	spawn_full(init.socket, 1, &what, (int[]){ null, null, null });
	assert_int_equal(WTERMSIG(expect(init.socket, INIT_EXITED, 1).value), SIGXFSZ);
	what.argv = ARGV("sh", "-c", "echo x; rm \"$0\"", path);
	spawn_full(init.socket, 2, &what, (int[]){ null, null, null });
	expect_exit(init.socket, 2, 0);
	assert_int_equal(access(path, F_OK), -1);
	spawn(init.socket, 3, ARGV("sh", "-c", "echo x > \"$0\"; rm \"$0\"", path), 0, 1);
	expect_exit(init.socket, 3, 0); /* the next one may */
}

static void test_what_left_its_group_goes_too_when_nothing_else_runs(void **state)
{
	auto_init struct init init = start_warm_with(PID_1);
	if (!can_be_pid_1(&init))
		skip();
	int ends[2];
	char text[16];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn_attached(
		init.socket, 1, ARGV("sh", "-c", "setsid sleep 100 & sleep 100"), 0, ends[1]);
	auto_close int out = ends[0];
	close(ends[1]);
	assert_int_equal(expect_stats(init.socket, NULL), 1);
	fd_close(&init.socket);
	read_all(out, text, sizeof text);
}

static void test_a_warm_init_drops_a_master_that_does_not_read(void **state)
{
	auto_init struct init init = start_warm();
	flood_with_stats(init.socket);
	fd_close(&init.socket);
	init.socket = connect_to(&init);
	spawn(init.socket, 1, ARGV("true"), 0, 1);
	expect_exit(init.socket, 1, 0);
}

static void test_stats_count_shared_memory_nobody_is_attached_to(void **state)
{
	auto_init struct init init = start_warm();
	const size_t size = 8 << 20;
	uint64_t before = 0, during = 0;
	expect_stats(init.socket, &before);
	int id = shmget(IPC_PRIVATE, size, 0600 | IPC_CREAT);
	assert_true(id >= 0);
	char *memory = shmat(id, NULL, 0);
	assert_ptr_not_equal(memory, (char *)-1);
	memset(memory, 1, size);
	assert_int_equal(shmdt(memory), 0);
	expect_stats(init.socket, &during);
	assert_int_equal(shmctl(id, IPC_RMID, NULL), 0);
	assert_true(during >= before + size / 2);
}

static long read_kb(pid_t pid, const char *file, const char *key)
{
	char path[64], text[4096];
	uint64_t kb = 0;
	assert_true(str_format(path, sizeof path, "/proc/%d/%s", pid, file));
	ssize_t len = fd_read_file(AT_FDCWD, path, text, sizeof text);
	assert_true(len > 0);
	assert_true(procfs_find_kb((struct str){ text, (size_t)len }, key, &kb));
	return (long)kb;
}

static long pss_kb(pid_t pid)
{
	return read_kb(pid, "smaps_rollup", "Pss");
}

/* init answers first, and gives memory back when nothing waits for it any more. */
static void await_pss(pid_t pid, long most_kb)
{
	uint64_t until = clock_monotonic_ms() + 60000;
	while (pss_kb(pid) > most_kb && clock_monotonic_ms() < until)
		usleep(1000);
	assert_in_range(pss_kb(pid), 0, most_kb);
}

static void test_an_idle_init_is_small(void **state)
{
	assert_true(init_image_len <= 16 << 10);
	if (geteuid() != 0)
		skip(); /* it isn't dumpable: only root may read its maps */
	auto_init struct init init = start_warm();
	assert_int_equal(expect_stats(init.socket, NULL), 0);
	/* A page of its own, and two of text, which all inits of a host share. */
	await_pss(init.pid, 12);
	/* Its stack is one of its own: tables for the kernel's would be as large as all of it. */
	assert_int_equal(read_kb(init.pid, "status", "VmStk"), 0);
	/* And again after it was busy: 200 at once, one with a large body. */
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	for (uint64_t id = 1; id <= 200; id++)
		spawn(init.socket, id, ARGV("cat"), ends[0], 1);
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < 200; i++) {
		struct init_reply reply;
		assert_int_equal(receive(init.socket, &reply, NULL), INIT_CLIENT_REPLY);
		ack(init.socket, reply.id);
	}
	const char **argv = test_calloc(7001, sizeof *argv);
	argv[0] = "true";
	for (int i = 1; i < 7000; i++)
		argv[i] = "argument";
	spawn(init.socket, 1, argv, 0, 1);
	test_free(argv);
	expect_exit(init.socket, 1, 0);
	ack(init.socket, 1);
	expect_stats(init.socket, NULL);
	await_pss(init.pid, 12);
}

/* The first, or 0. */
static pid_t child_of(pid_t parent)
{
	char path[64], text[64] = "";
	str_format(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
	return fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? (pid_t)strtol(text, NULL, 10)
								   : 0;
}

/* Waits for init to have made the process of the next command, and returns its pid. */
static pid_t await_ahead(const struct init *init)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	pid_t child;
	for (int i = 0; i < PATIENCE_MS; i++) {
		if ((child = child_of(init->pid)))
			return child;
		nanosleep(&pause, NULL);
	}
	fail_msg("no process was made ahead");
	return 0;
}

static void await_sleep(pid_t pid)
{
	char path[64], text[512];
	struct timespec pause = { .tv_nsec = 1000000 };
	str_format(path, sizeof path, "/proc/%d/stat", (int)pid);
	for (int i = 0; i < PATIENCE_MS; i++) {
		ssize_t len = fd_read_file(AT_FDCWD, path, text, sizeof text - 1);
		assert_true(len > 0);
		text[len] = 0;
		if (strncmp(strrchr(text, ')'), ") S", 3) == 0)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("process %d does not sleep", (int)pid);
}

static void test_the_next_command_is_the_process_that_was_made_ahead(void **state)
{
	auto_init struct init init = start_warm();
	spawn(init.socket, 1, ARGV("true"), 0, 1);
	expect_exit(init.socket, 1, 0);
	pid_t ahead = await_ahead(&init);
	int ends[2];
	char pid[16] = { 0 }, expected[16];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn(init.socket, 2, ARGV("sh", "-c", "echo $$; exit 3"), 0, ends[1]);
	expect_exit(init.socket, 2, 3);
	assert_true(read(ends[0], pid, sizeof pid - 1) > 0);
	str_format(expected, sizeof expected, "%d\n", (int)ahead);
	assert_string_equal(pid, expected);
	close(ends[0]);
	close(ends[1]);
}

static long switches_of(pid_t pid)
{
	char path[64], text[4096], *at;
	assert_true(str_format(path, sizeof path, "/proc/%d/status", (int)pid));
	ssize_t len = fd_read_file(AT_FDCWD, path, text, sizeof text - 1);
	assert_true(len > 0);
	text[len] = 0;
	at = strstr(text, "\nvoluntary_ctxt_switches:");
	assert_non_null(at);
	return strtol(at + strlen("\nvoluntary_ctxt_switches:"), NULL, 10);
}

/* It would take the CPU from the command, which has just begun. */
static void test_init_sleeps_while_the_one_ahead_begins_and_hears_the_next_packet(void **state)
{
	auto_init struct init init = start_warm();
	struct error err;
	int ends[2];
	char byte;
	spawn(init.socket, 1, ARGV("true"), 0, 1);
	expect_exit(init.socket, 1, 0);
	await_ahead(&init);
	for (uint64_t id = 2; id < 12; id += 2) {
		pid_t ahead = await_ahead(&init);
		await_sleep(ahead);
		await_sleep(init.pid);
		long before = switches_of(init.pid);
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		spawn(init.socket, id, ARGV("sh", "-c", "echo; exec sleep 100"), 0, ends[1]);
		assert_int_equal(read(ends[0], &byte, 1), 1);
		close(ends[0]);
		close(ends[1]);
		assert_int_equal(switches_of(init.pid), before);
		/* Others run beside it, and it is known. */
		spawn(init.socket, id + 1, ARGV("true"), 0, 1);
		expect_exit(init.socket, id + 1, 0);
		assert_int_equal(init_client_signal(init.socket, id, SIGKILL, &err), 0);
		assert_int_equal(WTERMSIG(expect(init.socket, INIT_EXITED, id).value), SIGKILL);
	}
}

/* A command whose start is told can't be the one ahead, and is followed by others like it. */
static void test_none_is_made_ahead_after_a_command_whose_start_was_told(void **state)
{
	auto_init struct init init = start_warm();
	const struct init_spawn told = { ARGV("true"), path_env, "/", INIT_NO_PIDFD };
	for (uint64_t id = 1; id < 8; id += 2) {
		spawn_full(init.socket, id, &told, (int[]){ 0, 1, 2 });
		expect(init.socket, INIT_STARTED, id);
		expect_exit(init.socket, id, 0);
		/* It sleeps after it has decided. */
		await_sleep(init.pid);
		assert_int_equal(child_of(init.pid), 0);
		spawn(init.socket, id + 1, ARGV("true"), 0, 1);
		expect_exit(init.socket, id + 1, 0);
		await_ahead(&init);
	}
}

/* Whoever is told that nobody is there takes what it sees for the one ahead. */
static void test_an_exit_says_whether_anybody_is_left(void **state)
{
	auto_init struct init init = start_warm();
	struct error err;
	spawn(init.socket, 1, ARGV("true"), 0, 1);
	assert_int_equal(expect(init.socket, INIT_EXITED, 1).stage, 1);
	await_ahead(&init);
	spawn(init.socket, 2, ARGV("sleep", "100"), 0, 1);
	spawn(init.socket, 3, ARGV("true"), 0, 1);
	assert_int_equal(expect(init.socket, INIT_EXITED, 3).stage, 0);
	int other = connect_to(&init);
	assert_int_equal(expect(other, INIT_EXITED, 1).stage, 0);
	assert_int_equal(expect(other, INIT_EXITED, 3).stage, 0);
	fd_close(&init.socket);
	init.socket = other;
	assert_int_equal(init_client_signal(init.socket, 2, SIGKILL, &err), 0);
	assert_int_equal(expect(init.socket, INIT_EXITED, 2).stage, 1);
	await_ahead(&init);
}

static void test_one_ahead_fails_refuses_and_leaves_the_rest_to_init(void **state)
{
	auto_init struct init init = start_warm();
	struct error err;
	struct init_spawn what = { ARGV("true"), path_env, "/no/such", INIT_NO_STARTED };
	spawn(init.socket, 1, ARGV("true"), 0, 1);
	expect_exit(init.socket, 1, 0);
	await_ahead(&init);
	spawn(init.socket, 2, ARGV("/no/such"), 0, 1);
	expect_failed(init.socket, 2, INIT_STAGE_EXEC, ENOENT);
	await_ahead(&init);
	spawn_full(init.socket, 3, &what, (int[]){ 0, 1, 2 });
	expect_failed(init.socket, 3, INIT_STAGE_CWD, ENOENT);
	await_ahead(&init);
	spawn(init.socket, 1, ARGV("true"), 0, 1); /* nobody acknowledged it */
	expect_refused(init.socket, 1, EEXIST);
	await_ahead(&init);
	assert_int_equal(expect_stats(init.socket, NULL), 0);
	spawn(init.socket, 5, ARGV("true"), 0, 1);
	expect_exit(init.socket, 5, 0);
	await_ahead(&init);
	ack(init.socket, 1);
	ack(init.socket, 1);
	expect_refused(init.socket, 1, ESRCH);
	spawn(init.socket, 6, ARGV("true"), 0, 1);
	expect_exit(init.socket, 6, 0);
	await_ahead(&init);
	send_raw(init.socket, &good, 5, NULL, 0);
	expect_refused(init.socket, 0, EBADMSG);
	spawn(init.socket, 7, ARGV("true"), 0, 1);
	expect_exit(init.socket, 7, 0);
	await_ahead(&init);
	what = (struct init_spawn){ ARGV("sleep", "100"), path_env, "/", 0 };
	spawn_full(init.socket, 4, &what, (int[]){ 0, 1, 2 });
	expect(init.socket, INIT_STARTED, 4);
	/* It would outlive init here, and who reads our output would wait for it. */
	assert_int_equal(init_client_signal(init.socket, 4, SIGKILL, &err), 0);
	expect(init.socket, INIT_EXITED, 4);
}

static void test_one_ahead_that_is_killed_or_loses_its_master_is_made_again(void **state)
{
	auto_init struct init init = start_warm();
	uint64_t id = 1;
	for (int round = 0; round < 5; round++) {
		spawn(init.socket, id, ARGV("true"), 0, 1);
		expect_exit(init.socket, id++, 0);
		kill(await_ahead(&init), SIGKILL);
		spawn(init.socket, id, ARGV("true"), 0, 1);
		expect_exit(init.socket, id++, 0);
		await_ahead(&init);
		int other = connect_to(&init); /* takes the older one's place */
		if (round % 2)
			fd_close(&init.socket);
		for (uint64_t told = 0; told < 2; told++) /* nobody acknowledged them */
			expect_exit(other, id - 2 + told, 0);
		spawn(other, id, ARGV("true"), 0, 1);
		expect_exit(other, id, 0);
		for (uint64_t told = 0; told < 3; told++)
			ack(other, id - told);
		id++;
		fd_close(&init.socket);
		init.socket = other;
	}
}

static void test_a_pid_1_reaps_orphans_and_signals_everybody(void **state)
{
	auto_init struct init init = start_warm_with(PID_1);
	if (!can_be_pid_1(&init))
		skip();
	struct error err;
	int ends[2];
	char text[4096], path[64];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn(init.socket, 1,
		ARGV("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (setsid true &); done; exit 2"), 0,
		ends[1]);
	spawn(init.socket, 2, ARGV("sh", "-c", "setsid sleep 100 & sleep 100"), 0, ends[1]);
	close(ends[1]);
	expect_exit(init.socket, 1, 2);
	assert_int_equal(init_client_signal(init.socket, 0, SIGKILL, &err), 0);
	assert_int_equal(WTERMSIG(expect(init.socket, INIT_EXITED, 2).value), SIGKILL);
	read_all(ends[0], text, sizeof text);
	close(ends[0]);
	/* The sandbox lives on; no zombie stays in it. */
	assert_true(str_format(path, sizeof path, "/proc/%d/task/%d/children", init.pid, init.pid));
	for (int i = 0; i < PATIENCE_MS; i += 5) {
		if (fd_read_file(AT_FDCWD, path, text, sizeof text) == 0)
			break;
		poll(NULL, 0, 5);
	}
	assert_string_equal(text, "");
	assert_int_equal(expect_stats(init.socket, NULL), 0);
	spawn(init.socket, 3, ARGV("true"), 0, 1);
	expect_exit(init.socket, 3, 0);
}

/* A spawn that looks for its command in thousands of places before it execs. */
static void spawn_slowly(int socket, uint64_t id)
{
	static char path[100000] = "PATH=";
	for (size_t len = 5; len + 4 < sizeof path; len += 3)
		memcpy(path + len, "/x:", 3);
	struct init_spawn what = { ARGV("no-such-command"), ARGV(path), "/", QUIET };
	spawn_full(socket, id, &what, (int[]){ 0, 1, 2 });
}

static bool has_answered(int socket)
{
	struct pollfd ready = { .fd = socket, .events = POLLIN };
	return poll(&ready, 1, 0) == 1;
}

/* Stops the next child of init, until that has answered; `once`: one time. */
static void stop_next_child(const struct init *init, bool once)
{
	pid_t child;
	while (!(child = child_of(init->pid)) && !has_answered(init->socket))
		;
	while (child && kill(child, SIGSTOP) == 0 && !once && !has_answered(init->socket))
		;
}

static void test_a_child_that_is_stopped_before_its_exec_holds_nothing_up(void **state)
{
	auto_init struct init init = start_warm();
	for (uint64_t id = 1; id <= 4; id++) {
		spawn_slowly(init.socket, id);
		stop_next_child(&init, true);
		expect_failed(init.socket, id, INIT_STAGE_EXEC, ENOENT);
		assert_int_equal(expect_stats(init.socket, NULL), 0);
	}
}

static void test_a_child_that_is_stopped_again_and_again_before_its_exec_is_killed(void **state)
{
	auto_init struct init init = start_warm();
	spawn_slowly(init.socket, 1);
	pid_t stopper = fork();
	if (stopper == 0) {
		stop_next_child(&init, false);
		_exit(0);
	}
	struct init_reply reply = { 0 };
	assert_int_equal(receive(init.socket, &reply, NULL), INIT_CLIENT_REPLY);
	/* The stopper may have come too late, on a busy machine. */
	if (reply.type == INIT_EXITED)
		assert_int_equal(WTERMSIG(reply.value), SIGKILL);
	else
		assert_int_equal(reply.type, INIT_FAILED);
	assert_int_equal(expect_stats(init.socket, NULL), 0);
	kill(stopper, SIGKILL);
	waitpid(stopper, NULL, 0);
}

static void test_a_stopped_command_can_be_asked_to_end(void **state)
{
	auto_init struct init init = start_warm();
	static const int asks[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
	struct error err;
	for (uint64_t id = 1; id <= 4; id++) {
		int ends[2];
		char byte;
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		spawn(init.socket, id, ARGV("sh", "-c", "echo; kill -STOP $$; sleep 1000"), 0,
			ends[1]);
		close(ends[1]);
		assert_int_equal(read(ends[0], &byte, 1), 1);
		assert_int_equal(init_client_signal(init.socket, id, asks[id - 1], &err), 0);
		struct init_reply reply = expect(init.socket, INIT_EXITED, id);
		assert_int_equal(WTERMSIG(reply.value), asks[id - 1]);
		close(ends[0]);
	}
}

/* A port of the loopback address, listening or not. 0: the host has no IPv6. */
static uint16_t open_port(bool is_ipv6, bool listens, int *fd)
{
	struct sockaddr_in6 ipv6 = { .sin6_family = AF_INET6, .sin6_addr.s6_addr[15] = 1 };
	struct sockaddr_in ipv4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
	socklen_t len = is_ipv6 ? sizeof ipv6 : sizeof ipv4;
	struct sockaddr *any = is_ipv6 ? (struct sockaddr *)&ipv6 : (struct sockaddr *)&ipv4;
	*fd = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0 || bind(*fd, any, len) < 0)
		return 0;
	assert_int_equal(getsockname(*fd, any, &len), 0);
	if (listens)
		assert_int_equal(listen(*fd, 1), 0);
	return ntohs(is_ipv6 ? ipv6.sin6_port : ipv4.sin_port);
}

static void test_init_connects_to_a_port_and_hands_the_socket_out(void **state)
{
	auto_init struct init init = start_warm();
	struct error err;
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		auto_close int server = -1, came = -1;
		uint16_t port = open_port(is_ipv6, true, &server);
		struct init_reply reply;
		char byte = 0;
		if (!port)
			continue;
		assert_int_equal(init_client_connect(init.socket, 5, port, is_ipv6, &err), 0);
		assert_int_equal(receive(init.socket, &reply, &came), INIT_CLIENT_REPLY);
		assert_int_equal(reply.type, INIT_CONNECTED);
		assert_int_equal(reply.id, 5);
		assert_true(fcntl(came, F_GETFL) & O_NONBLOCK);
		auto_close int accepted = accept4(server, NULL, NULL, SOCK_CLOEXEC);
		assert_int_equal(write(accepted, "x", 1), 1);
		struct pollfd ready = { .fd = came, .events = POLLIN };
		assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
		assert_int_equal(read(came, &byte, 1), 1);
		/* init has kept nothing of it. */
		fd_close(&came);
		assert_int_equal(read(accepted, &byte, 1), 0);
	}
}

static void test_a_port_that_nothing_listens_on_is_seen_by_the_master(void **state)
{
	auto_init struct init init = start_warm();
	auto_close int taken = -1, came = -1;
	struct error err;
	struct init_reply reply;
	int reason = 0;
	socklen_t len = sizeof reason;
	uint16_t port = open_port(false, false, &taken);
	assert_int_equal(init_client_connect(init.socket, 6, port, false, &err), 0);
	assert_int_equal(receive(init.socket, &reply, &came), INIT_CLIENT_REPLY);
	struct pollfd ready = { .fd = came, .events = POLLOUT };
	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	assert_int_equal(getsockopt(came, SOL_SOCKET, SO_ERROR, &reason, &len), 0);
	assert_int_equal(reason, ECONNREFUSED);
}

static void open_listeners(void)
{
	struct error err;
	int fds[3] = { -1, -1, -1 };
	if (netns_listen(0, &fds[0], &err) || netns_bind(0, &fds[1], &err) ||
		netns_listen(0, &fds[2], &err))
		_exit(93);
	for (int i = 0; i < 3; i++)
		fds[i] = fcntl(fds[i], F_DUPFD, 50);
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], INIT_LISTENER_FD + i) < 0)
			_exit(94);
	close_range(INIT_LISTENER_FD + 3, 99, 0);
}

static struct init_fds expect_listeners(int socket)
{
	struct pollfd ready = { .fd = socket, .events = POLLIN };
	struct init_fds fds = { .count = 0 };
	struct init_reply reply;
	struct error err;
	int pidfd;
	assert_int_equal(init_client_listeners(socket, &err), 0);
	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	assert_int_equal(
		init_client_receive_fds(socket, &reply, &pidfd, &fds, &err), INIT_CLIENT_REPLY);
	assert_int_equal(reply.type, INIT_LISTENERS_ARE);
	assert_int_equal(reply.value, fds.count);
	assert_int_equal(pidfd, -1);
	return fds;
}

static void test_init_hands_its_listeners_out_to_every_master(void **state)
{
	auto_init struct init init = start_warm_before(0, open_listeners);
	for (int round = 0; round < 2; round++) {
		struct init_fds fds = expect_listeners(init.socket);
		assert_int_equal(fds.count, 3);
		for (int i = 0; i < 3; i++) {
			int type = 0;
			socklen_t len = sizeof type;
			getsockopt(fds.items[i], SOL_SOCKET, SO_TYPE, &type, &len);
			assert_int_equal(type, i == 1 ? SOCK_DGRAM : SOCK_STREAM);
			close(fds.items[i]);
		}
		/* A command has none of them. */
		spawn(init.socket, 1, ARGV("sh", "-c", "test ! -e /proc/self/fd/4"), 0, 1);
		expect_exit(init.socket, 1, 0);
		ack(init.socket, 1);
		close(init.socket);
		init.socket = connect_to(&init);
	}
}

static void test_an_init_without_listeners_says_so(void **state)
{
	auto_init struct init init = start_warm();
	assert_int_equal(expect_listeners(init.socket).count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init_hands_its_listeners_out_to_every_master),
		cmocka_unit_test(test_an_init_without_listeners_says_so),
		cmocka_unit_test(test_started_carries_the_pidfd_of_the_command),
		cmocka_unit_test(test_a_warm_init_goes_on_after_exits_failures_and_refusals),
		cmocka_unit_test(test_the_table_is_full_at_its_maximum_and_every_exit_arrives),
		cmocka_unit_test(test_exits_that_nobody_acknowledged_are_repeated),
		cmocka_unit_test(test_a_newer_master_replaces_the_older),
		cmocka_unit_test(test_what_is_attached_ends_with_its_master_and_is_heard_of_once),
		cmocka_unit_test(
			test_a_program_of_the_masters_has_no_other_descriptor_and_ends_alone),
		cmocka_unit_test(test_one_that_may_not_grow_deletes_and_writes_no_file),
		cmocka_unit_test(test_what_left_its_group_goes_too_when_nothing_else_runs),
		cmocka_unit_test(test_a_warm_init_drops_a_master_that_does_not_read),
		cmocka_unit_test(test_stats_count_shared_memory_nobody_is_attached_to),
		cmocka_unit_test(test_an_idle_init_is_small),
		cmocka_unit_test(test_the_next_command_is_the_process_that_was_made_ahead),
		cmocka_unit_test(
			test_init_sleeps_while_the_one_ahead_begins_and_hears_the_next_packet),
		cmocka_unit_test(test_none_is_made_ahead_after_a_command_whose_start_was_told),
		cmocka_unit_test(test_an_exit_says_whether_anybody_is_left),
		cmocka_unit_test(test_one_ahead_fails_refuses_and_leaves_the_rest_to_init),
		cmocka_unit_test(test_one_ahead_that_is_killed_or_loses_its_master_is_made_again),
		cmocka_unit_test(test_a_pid_1_reaps_orphans_and_signals_everybody),
		cmocka_unit_test(test_a_child_that_is_stopped_before_its_exec_holds_nothing_up),
		cmocka_unit_test(
			test_a_child_that_is_stopped_again_and_again_before_its_exec_is_killed),
		cmocka_unit_test(test_a_stopped_command_can_be_asked_to_end),
		cmocka_unit_test(test_init_connects_to_a_port_and_hands_the_socket_out),
		cmocka_unit_test(test_a_port_that_nothing_listens_on_is_seen_by_the_master),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
