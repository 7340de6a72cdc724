/* Limits of a warm sandbox, over a real carrel-init; what a control group would say stands in
 * files. */
/* security: limits */
#include "core/execs/watch_disk.h"
#include "execs_fixture.h"

/* A file in the place of descriptor `which`. */
static int stand_in(enum launch_fd which, const char *text)
{
	char path[96];
	str_format(path, sizeof path, "%s/fd-%d", world->dir, (int)which);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	world->w.sandbox.view.fds[which] = fd;
	return fd;
}

static void rewrite(int fd, const char *text)
{
	assert_int_equal(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

static void test_an_oom_kill_anywhere_is_the_end_of_the_sandbox(void **state)
{
	auto_seen struct seen seen, other;
	uint64_t one = 1;
	struct exec_spec spec = SPEC("sleep", "30");
	world->w.sandbox.view.fds[LAUNCH_FD_OOM] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int count = stand_in(LAUNCH_FD_OOM_COUNT, "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
	start_exec(&seen, &spec, EXEC_CAPTURED, NULL, true);
	start_exec(&other, &spec, EXEC_STREAMED, NULL, true);
	run_until(&seen.started);
	/* Told before anything was killed, as v1 does. */
	assert_int_equal(write(world->w.sandbox.view.fds[LAUNCH_FD_OOM], &one, 8), 8);
	run_for(30);
	assert_int_equal(world->ends, 0);
	rewrite(count, "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
	run_until(&seen.ended);
	run_until(&other.ended);
	assert_reason(&seen, REASON_MEMORY_LIMIT);
	assert_reason(&other, REASON_MEMORY_LIMIT);
}

static void test_an_oom_kill_is_the_reason_also_when_the_command_says_0(void **state)
{
	auto_seen struct seen seen;
	struct exec_spec spec = SPEC("true");
	stand_in(LAUNCH_FD_OOM_COUNT, "oom_kill 1\n");
	run_captured(&seen, &spec);
	assert_reason(&seen, REASON_MEMORY_LIMIT);
	assert_int_equal(world->ends, 1);
	assert_int_equal(world->end_reason, REASON_MEMORY_LIMIT);
}

static void test_cpu_time_counts_from_the_start_of_an_exec(void **state)
{
	auto_seen struct seen seen, fine, late;
	struct exec_spec spec = SPEC("sleep", "30");
	int cpu = stand_in(LAUNCH_FD_CPU, "7000000000\n"); /* of others, before */
	spec.cpu_time_ms = 200;
	start_exec(&seen, &spec, EXEC_CAPTURED, NULL, true);
	run_until(&seen.started);
	rewrite(cpu, "7150000000\n");
	run_for(120);
	assert_false(seen.ended);
	rewrite(cpu, "7200000000\n");
	run_until(&seen.ended);
	assert_reason(&seen, REASON_CPU_LIMIT);
	assert_int_equal(result_exit_code(&seen.record.result), 124);
	assert_true(seen.record.result.cpu_ms >= 200);
	assert_int_equal(world->ends, 0);
	/* v2, and nothing used. */
	rewrite(cpu, "usage_usec 100000\nuser_usec 1\n");
	spec = SPEC("true");
	spec.cpu_time_ms = 50;
	run_captured(&fine, &spec);
	assert_exited(&fine, 0);
	/* Over it, but ended before anybody looked. */
	spec = SPEC("cat");
	spec.cpu_time_ms = 1000;
	spec.open_stdin = true;
	struct core_exec *e = start_exec(&late, &spec, EXEC_CAPTURED, NULL, true);
	struct error err;
	size_t taken;
	run_until(&late.started);
	rewrite(cpu, "usage_usec 1100001\nuser_usec 1\n");
	assert_int_equal(exec_write_stdin(&request_system, e, STR(""), true, &taken, &err), 0);
	run_until(&late.ended);
	assert_reason(&late, REASON_CPU_LIMIT);
}

/* ---- without a control group ---- */

/* The sandbox's own /proc: links to what init started. */
static void fill_proc(const char *dir, pid_t pid)
{
	char path[128], target[64], text[4096];
	str_format(path, sizeof path, "%s/%d", dir, pid);
	str_format(target, sizeof target, "/proc/%d", pid);
	(void)!symlink(target, path);
	str_format(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
	if (fd_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return;
	struct str rest = str_from(text), piece;
	uint64_t child;
	while (str_next(&rest, ' ', &piece))
		if (str_to_u64(piece, &child))
			fill_proc(dir, (pid_t)child);
}

static void make_proc(char path[96])
{
	str_format(path, 96, "%s/proc", world->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	world->w.sandbox.view.fds[LAUNCH_FD_PROC] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	world->w.sandbox.view.limiter = LIMITER_WATCHDOG;
}

static bool can_list_children(void)
{
	return faccessat(AT_FDCWD, "/proc/thread-self/children", F_OK, 0) == 0;
}

static void test_memory_over_its_limit_ends_the_sandbox(void **state)
{
	auto_seen struct seen seen, small;
	char proc[96];
	if (!can_list_children())
		skip();
	make_proc(proc);
	world->w.model.limits.memory_bytes = 64 << 20;
	struct exec_spec spec = SPEC(SHELL("x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo y"));
	struct core_exec *e = start_exec(&small, &spec, EXEC_STREAMED, NULL, true);
	run_until(&small.started);
	while (!small.ended) {
		fill_proc(proc, world->init.pid);
		run_for(5);
	}
	assert_exited(&small, 0);
	spec = SPEC(SHELL("x=$(head -c 200000000 /dev/zero | tr '\\0' x); sleep 30"));
	e = start_exec(&seen, &spec, EXEC_STREAMED, NULL, true);
	run_until(&seen.started);
	assert_true(world->core.execs->sampled == 1);
	while (!seen.ended) {
		if (world->w.sandbox.state != SANDBOX_ENDING)
			fill_proc(proc, world->init.pid);
		run_for(5);
	}
	assert_non_null(e);
	assert_reason(&seen, REASON_MEMORY_LIMIT);
	assert_int_equal(world->core.execs->sampled, 0);
}

static void test_nothing_is_looked_at_when_nothing_runs(void **state)
{
	auto_seen struct seen seen;
	char proc[96];
	struct exec_spec spec = SPEC("sleep", "0.1");
	make_proc(proc);
	world->w.model.limits.memory_bytes = 64 << 20;
	run_captured(&seen, &spec);
	assert_exited(&seen, 0);
	UNTIL(!world->core.execs->sampled);
}

/* What the one command of init has used, in ms; whether it is stopped. */
static uint64_t read_command(bool *is_stopped)
{
	char path[64], text[4096], state = 0;
	unsigned long user, system_time;
	uint64_t pid;
	str_format(
		path, sizeof path, "/proc/%d/task/%d/children", world->init.pid, world->init.pid);
	assert_true(fd_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	assert_true(str_to_u64(str_trim(str_from(text)), &pid));
	str_format(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
	assert_true(fd_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	assert_int_equal(
		sscanf(strrchr(text, ')'), ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			&state, &user, &system_time),
		3);
	*is_stopped = state == 'T';
	return (user + system_time) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK);
}

/* Waits until it was stopped and goes on; what it had used then. */
static uint64_t await_stop(void)
{
	uint64_t end_ms = clock_monotonic_ms() + PATIENCE_MS, used_ms = 0;
	bool is_stopped = false, was_stopped = false;
	for (; is_stopped || !was_stopped; run_for(1)) {
		uint64_t now_ms = read_command(&is_stopped);
		if (is_stopped)
			used_ms = now_ms;
		was_stopped |= is_stopped;
		assert_true(clock_monotonic_ms() < end_ms);
	}
	return used_ms;
}

static void test_a_share_of_cpu_is_kept_by_stopping(void **state)
{
	auto_seen struct seen seen;
	char proc[96];
	if (!can_list_children())
		skip();
	world->namespaces = PID_1;
	struct init probe = start_warm_with(PID_1);
	if (!can_be_pid_1(&probe))
		skip();
	end_init(&probe);
	make_proc(proc);
	world->w.model.limits.memory_bytes = 1 << 30;
	world->w.model.limits.millicpus = 50;
	struct exec_spec spec = SPEC(SHELL("while :; do :; done"));
	struct error err;
	uint64_t began_ms = clock_monotonic_ms(), used_ms = 0;
	struct core_exec *e = start_exec(&seen, &spec, EXEC_CAPTURED, NULL, true);
	run_until(&seen.started);
	fill_proc(proc, world->init.pid);
	/* A stop may come late, so what was used until then is paid for when it has gone on after
	 * the next one: so much of the time since it began, and what is saved at the beginning. */
	for (int round = 0; round < 6; round++) {
		uint64_t used_next_ms = await_stop();
		assert_true(used_ms <= (clock_monotonic_ms() - began_ms) / 20 + 50);
		used_ms = used_next_ms;
	}
	assert_int_equal(exec_signal(&request_system, e, SIGKILL, &err), 0);
	run_until(&seen.ended);
	assert_reason(&seen, REASON_SIGNALED);
}

/* ---- disk ---- */

static void write_file(const char *name, size_t size)
{
	char path[160];
	char *data = test_calloc(1, size);
	str_format(path, sizeof path, "%s/workspaces/%s/upper/%s", world->dir, world->w.model.id,
		name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, data, size), (ssize_t)size);
	fsync(fd);
	close(fd);
	test_free(data);
}

static void test_a_counted_disk_over_its_limit_ends_the_sandbox(void **state)
{
	auto_seen struct seen seen, fine;
	struct exec_spec spec = SPEC("sleep", "0.6");
	world->w.model.limits.disk_bytes = 4 << 20;
	world->w.model.disk_mechanism = "counted";
	write_file("small", 1 << 20);
	run_captured(&fine, &spec);
	assert_exited(&fine, 0);
	UNTIL(world->w.model.disk_usage_bytes >= 1 << 20);
	spec = SPEC("sleep", "100");
	start_exec(&seen, &spec, EXEC_CAPTURED, NULL, true);
	run_until(&seen.started);
	/* Where others took as much room of the file system before, the first walk ends nothing. */
	UNTIL(!watch_disk_of(&world->w)->was_over);
	write_file("large", 5 << 20);
	run_until(&seen.ended);
	assert_reason(&seen, REASON_DISK_LIMIT);
	assert_int_equal(world->ends, 1);
	assert_int_equal(world->core.execs->measures, 0);
}

static void test_a_command_that_failed_at_the_limit_failed_for_it(void **state)
{
	auto_seen struct seen failed, other, quick;
	struct exec_spec spec = SPEC(SHELL("exit 1"));
	world->w.model.limits.disk_bytes = 1ull << 50;
	world->w.model.disk_mechanism = "counted";
	run_captured(&quick, &spec); /* it can't have written that much, however slow it was */
	assert_exited(&quick, 1);
	assert_int_equal(world->w.model.disk_usage_bytes, 0);
	core_end_sandbox(&world->w, REASON_CANCELED);
	/* Full, and not a byte over: nothing is ended for it. */
	write_file("large", 4 << 20);
	world->w.model.limits.disk_bytes = tree_measure(&world->w);
	assert_true(world->w.model.limits.disk_bytes < TREE_CLOSED);
	spec = SPEC(SHELL("sleep 0.02; exit 1"));
	run_captured(&failed, &spec);
	assert_reason(&failed, REASON_DISK_LIMIT);
	assert_int_equal(failed.record.result.exit_status, 1);
	spec = SPEC("true");
	run_captured(&other, &spec);
	assert_exited(&other, 0);
}

static void test_a_sandbox_that_goes_while_its_disk_is_measured_leaves_nobody_waiting(void **state)
{
	auto_seen struct seen seen;
	struct exec_spec spec = SPEC(SHELL("sleep 0.02; exit 1"));
	world->w.model.limits.disk_bytes = 1 << 20;
	world->w.model.disk_mechanism = "counted";
	struct core_exec *e = start_exec(&seen, &spec, EXEC_CAPTURED, NULL, false);
	while (!seen.ended && e->judgement != JUDGEMENT_AWAITED)
		run_for(1);
	if (!seen.ended)
		core_end_sandbox(&world->w, REASON_CANCELED);
	run_until(&seen.ended);
	run_for(20);
	assert_int_equal(seen.record.result.exit_status, 1);
	assert_int_equal(world->core.execs->measures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXEC_TEST(test_an_oom_kill_anywhere_is_the_end_of_the_sandbox),
		EXEC_TEST(test_an_oom_kill_is_the_reason_also_when_the_command_says_0),
		EXEC_TEST(test_cpu_time_counts_from_the_start_of_an_exec),
		EXEC_TEST(test_memory_over_its_limit_ends_the_sandbox),
		EXEC_TEST(test_nothing_is_looked_at_when_nothing_runs),
		EXEC_TEST(test_a_share_of_cpu_is_kept_by_stopping),
		EXEC_TEST(test_a_counted_disk_over_its_limit_ends_the_sandbox),
		EXEC_TEST(test_a_command_that_failed_at_the_limit_failed_for_it),
		EXEC_TEST(
			test_a_sandbox_that_goes_while_its_disk_is_measured_leaves_nobody_waiting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
