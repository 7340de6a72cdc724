/* Control groups: found by text, held by the kernel, never left behind. */
/* security: limits */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "linux/cgroup.h"
#include "format/text/procfs.h"
#include "linux/cgroup_internal.h"
#include "linux/namespace.h"

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)
#define PLAIN_UID 54321

static int remove_directory(const char *path)
{
	auto_close int parent = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return path_remove_tree(parent, path_basename(path), NULL);
}

/* Texts */

static struct cgroup_places places_of(const char *own, const char *mounts)
{
	struct cgroup_places places = { 0 };
	struct str rest = str_from(own), line;

	while (str_next(&rest, '\n', &line))
		cgroup_add_own(&places, line);
	rest = str_from(mounts);
	while (str_next(&rest, '\n', &line))
		cgroup_add_mount(&places, line);
	return places;
}

static void v1_controllers_are_found_each_for_itself(void **state)
{
	struct cgroup_places p = places_of(
		"9:name=systemd:/\n4:memory:/a/b\n2:cpuacct:/\n1:cpu:/c\n",
		"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
		"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 master:2 - cgroup cgroup "
		"rw,cpu\n"
		"33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n");

	assert_string_equal(p.memory.own, "/sys/fs/cgroup/memory/a/b");
	assert_string_equal(p.memory.top, "/sys/fs/cgroup/memory");
	assert_true(p.memory.is_inside && !p.memory.is_top);
	assert_string_equal(p.cpu.own, "/sys/fs/cgroup/cpu/c");
	assert_string_equal(p.cpuacct.own, "/sys/fs/cgroup/cpuacct");
	assert_true(p.cpuacct.is_top);
	assert_false(p.unified.is_known);
	assert_true(cgroup_has_all(&p));
}

static void one_mount_can_have_two_controllers(void **state)
{
	struct cgroup_places p = places_of("4:memory:/\n3:cpu,cpuacct:/x\n",
		"32 31 0:29 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");

	assert_string_equal(p.cpu.own, "/cg/cpu,cpuacct/x");
	assert_string_equal(p.cpuacct.own, p.cpu.own);
	assert_true(p.memory.is_known && !p.memory.is_mounted);
	assert_false(cgroup_has_all(&p));
}

static void a_hybrid_host_has_memory_on_v1(void **state)
{
	struct cgroup_places p = places_of("4:memory:/\n0::/\n",
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");

	assert_true(p.memory.is_inside);
	assert_true(p.unified.is_inside);
}

static void a_container_sees_its_part_of_the_tree(void **state)
{
	struct cgroup_places p = places_of("4:memory:/docker/1f\n",
		"35 31 0:32 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
	assert_string_equal(p.memory.own, "/sys/fs/cgroup/memory");
	assert_true(p.memory.is_top);

	p = places_of("4:memory:/docker/1f/sub\n",
		"35 31 0:32 /docker/1f /m ro - cgroup cgroup rw,memory\n");
	assert_string_equal(p.memory.own, "/m/sub");

	/* Somebody else's part is mounted: /docker/1 is no parent of /docker/1f. */
	p = places_of(
		"4:memory:/docker/1f\n", "35 31 0:32 /docker/1 /m rw - cgroup cgroup rw,memory\n");
	assert_true(p.memory.is_mounted && !p.memory.is_inside);
}

static void a_path_outside_of_the_namespace_cannot_be_reached(void **state)
{
	struct cgroup_places p =
		places_of("0::/../../x\n", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	assert_true(p.unified.is_mounted && !p.unified.is_inside);

	p = places_of("0::/\n", "30 1 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	assert_true(p.unified.is_mounted && !p.unified.is_inside);

	p = places_of("0::/\n", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	assert_string_equal(p.unified.own, "/sys/fs/cgroup");
	assert_true(p.unified.is_top);
}

static void broken_lines_are_passed_over(void **state)
{
	struct cgroup_places p = places_of("\n:\nmemory\n0:x\n4:memory:/a\n",
		"\n1\n1 2 3 4 5\n1 2 3 4 5 6 7\n1 2 3 / /m rw - \n1 2 3 / /m rw - cgroup\n"
		"1 2 3 / /has\\040blank rw - cgroup cgroup rw,memory\n");

	assert_true(p.memory.is_known && !p.memory.is_mounted);
}

static void a_path_that_is_too_long_is_not_used(void **state)
{
	char own[CGROUP_PATH_MAX + 32] = "0::/";

	memset(own + 4, 'a', CGROUP_PATH_MAX - 4);
	struct cgroup_places p =
		places_of(own, "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	assert_false(p.unified.is_inside);
	memset(own + 4, 'a', CGROUP_PATH_MAX);
	p = places_of(own, "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	assert_false(p.unified.is_known);
}

static void names_and_numbers_are_parsed_whole(void **state)
{
	struct procfs_stat stat;
	uint64_t value = 0;
	struct cgroup_maker maker;

	assert_true(cgroup_parse_name(STR("carrel-12-3456-78-0"), &maker));
	assert_int_equal(maker.pid, 12);
	assert_int_equal(maker.ticks, 3456);
	assert_int_equal(maker.pidns, 78);
	assert_false(cgroup_parse_name(STR("carrel-12-3456-78"), &maker));
	assert_false(cgroup_parse_name(STR("carrel-12-3456-78-"), &maker));
	assert_false(cgroup_parse_name(STR("carrel-12-3456-78-0x"), &maker));
	assert_false(cgroup_parse_name(STR("carrel.main"), &maker));
	assert_false(cgroup_parse_name(STR("other-1-2-3-4"), &maker));

	assert_true(procfs_parse_stat(
		STR("7 (a) R 9 (b) S 1 7 7 0 -1 4 5 0 0 0 1 2 0 0 20 0 1 0 8899 1 2\n"), &stat));
	assert_int_equal(stat.start_ticks, 8899);
	assert_false(procfs_parse_stat(STR("7 (a) S 1 7\n"), &stat));
	assert_false(procfs_parse_stat(STR(""), &stat));

	assert_true(procfs_find_number(STR("oom 1\noom_kill 42\n"), "oom_kill", &value));
	assert_int_equal(value, 42);
	assert_false(procfs_find_number(STR("oom_kill_x 42\n"), "oom_kill", &value));
	assert_true(procfs_find_number(STR("77\n"), NULL, &value));
	assert_false(procfs_find_number(STR("max\n"), NULL, &value));
}

static void limits_are_given_as_the_kernel_keeps_them(void **state)
{
	uint64_t quota, period, page = (uint64_t)sysconf(_SC_PAGESIZE);

	assert_int_equal(cgroup_round_memory(10 * page + 1), 10 * page);
	assert_int_equal(cgroup_round_memory(UINT64_MAX), (uint64_t)1 << 62);
	cgroup_cpu_quota(1500, &quota, &period);
	assert_int_equal(quota, 150000);
	assert_int_equal(period, 100000);
	cgroup_cpu_quota(1, &quota, &period);
	assert_int_equal(quota, 1000);
	assert_int_equal(period, 1000000);
}

static void a_value_that_does_not_read_back_is_an_error(void **state)
{
	char path[] = "/tmp/unit-test-XXXXXX";
	struct error err = { 0 };

	assert_non_null(mkdtemp(path));
	int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(symlinkat("/dev/null", dir, "memory.max"), 0);
	assert_int_equal(cgroup_set(dir, "memory.max", "4096", &err), -1);
	assert_int_equal(err.code, ERR_FAILED);
	assert_non_null(strstr(err.text, "'memory.max' reads '' after '4096'"));

	assert_int_equal(cgroup_set(dir, "cpu.max", "1 2", &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(cgroup_try_set(dir, "cpu.max", "1 2", &err), 1);

	assert_int_equal(symlinkat("/dev/full", dir, "pids.max"), 0);
	assert_int_equal(cgroup_set(dir, "pids.max", "5", &err), -1);
	assert_int_equal(err.sys_errno, ENOSPC);
	close(dir);
	assert_int_equal(remove_directory(path), 0);
}

/* Real groups */

static void find_host(struct cgroup_host *host)
{
	cgroup_probe(host);
	if (host->version == CGROUP_NONE) {
		print_message("skipped: no control group to use: %s\n", host->why);
		skip();
	}
}

static void create(
	const struct cgroup_host *host, const struct cgroup_want *want, struct cgroup *group)
{
	struct error err = { 0 };

	if (cgroup_create(host, want, group, &err) < 0)
		fail_msg("%s", err.text);
}

static void remove_and_close(struct cgroup *group)
{
	struct error err = { 0 };

	if (cgroup_remove(group, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(cgroup_remove(group, &err), 0);
	cgroup_done(group);
}

static bool is_there(const char *parent, const char *name)
{
	char path[CGROUP_PATH_MAX + 80];

	str_format(path, sizeof path, "%s/%s", parent, name);
	return access(path, F_OK) == 0;
}

/* Runs body in a child inside the group; the child's wait status. */
static pid_t start_inside(const struct cgroup *group, void (*body)(void))
{
	struct error err = { 0 };
	int pidfd = -1;
	pid_t pid = -1;

	if (namespace_clone(0, group->clone_into, &pidfd, &pid, &err) < 0)
		fail_msg("%s", err.text);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (cgroup_enter(group) < 0)
			_exit(99);
		body();
		_exit(0);
	}
	close(pidfd);
	return pid;
}

static int wait_for(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void touch_64_mib(void)
{
	volatile char *memory =
		mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (uint64_t at = 0; at < 64 * MIB; at += 4096)
		memory[at] = 1;
}

static void the_memory_limit_kills_and_tells(void **state)
{
	struct cgroup_want want = { .memory_bytes = 32 * MIB + 1 };
	struct cgroup_host host;
	struct cgroup group;
	struct error err = { 0 };
	uint64_t kills = 99;
	struct pollfd news = { 0 };

	find_host(&host);
	create(&host, &want, &group);
	if (cgroup_watch_oom(&group, &news.fd, &news.events, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(cgroup_oom_kills(&group, news.fd, &kills, &err), 0);
	assert_int_equal(kills, 0);
	assert_int_equal(poll(&news, 1, 0), 0);

	int status = wait_for(start_inside(&group, touch_64_mib));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(poll(&news, 1, 60000), 1);
	assert_true(news.revents & news.events);
	assert_int_equal(cgroup_oom_kills(&group, news.fd, &kills, &err), 0);
	assert_true(kills >= 1); /* v2 counts what a group kill takes along, too */
	assert_int_equal(cgroup_oom_kills(&group, -1, &kills, &err), 0);
	assert_true(kills >= 1); /* v2 counts what a group kill takes along, too */
	close(news.fd);
	remove_and_close(&group);
}

/* As a launcher uses one: made beforehand, given its limits when it is needed, let go of and found
 * again. */
static void a_group_is_changed_found_and_removed_by_its_number(void **state)
{
	struct cgroup_want each = { .memory_bytes = 256 * MIB, .count_cpu = true, .number = 7 };
	struct cgroup_want want = each;
	struct cgroup_host host;
	struct cgroup group, found;
	struct error err = { 0 };
	uint64_t us = 0;
	int oom = -1, cpu = -1;
	char text[1024];

	find_host(&host);
	if (!host.cpuacct[0])
		skip();
	create(&host, &each, &group);
	want.memory_bytes = 32 * MIB;
	want.millicpus = host.cpu[0] ? 500 : 0;
	assert_int_equal(cgroup_change(&host, &want, &group, &err), 0);
	int status = wait_for(start_inside(&group, touch_64_mib));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	cgroup_done(&group);

	assert_int_equal(cgroup_find(&host, &want, &found, &err), 0);
	assert_int_equal(cgroup_cpu_us(&found, &us, &err), 0);
	assert_true(us > 0);
	assert_int_equal(cgroup_open_counters(&found, &oom, &cpu, &err), 0);
	ssize_t len = pread(oom, text, sizeof text - 1, 0);
	assert_true(len > 0);
	text[len] = '\0';
	assert_non_null(strstr(text, "oom_kill "));
	assert_null(strstr(text, "oom_kill 0\n"));
	assert_true(pread(cpu, text, sizeof text, 0) > 0);
	close(oom);
	close(cpu);
	cgroup_done(&found);

	assert_int_equal(cgroup_try_remove(&host, 7, &err), 0);
	assert_int_equal(cgroup_try_remove(&host, 7, &err), 0);
	assert_int_equal(cgroup_find(&host, &want, &found, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static uint64_t clock_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void spin_for_half_a_second(void)
{
	for (uint64_t end = clock_us(CLOCK_MONOTONIC) + 500000; clock_us(CLOCK_MONOTONIC) < end;)
		;
}

static void the_cpu_quota_throttles(void **state)
{
	struct cgroup_want want = { .memory_bytes = 64 * MIB, .millicpus = 10, .count_cpu = true };
	struct cgroup_host host;
	struct cgroup group;
	struct error err = { 0 };
	char text[1024] = "";
	uint64_t us = 0, throttled = 0;

	find_host(&host);
	if (!host.cpu[0] || !host.cpuacct[0])
		skip();
	create(&host, &want, &group);
	uint64_t began = clock_us(CLOCK_MONOTONIC);
	/* On a busy machine it may not even get the millisecond a period that it may have: again,
	 * until it does. */
	for (int tries = 60; throttled == 0 && tries > 0; tries--) {
		wait_for(start_inside(&group, spin_for_half_a_second));
		assert_true(fd_read_file(group.dirs[group.cpu], "cpu.stat", text, sizeof text) > 0);
		assert_true(procfs_find_number(str_from(text), "nr_throttled", &throttled));
	}
	assert_true(throttled > 0);
	/* 10 millicpus are a hundredth of the time; and what the kernel's ticks add. */
	assert_int_equal(cgroup_cpu_us(&group, &us, &err), 0);
	assert_in_range(us, 1000, (clock_us(CLOCK_MONOTONIC) - began) / 100 + 150000);
	remove_and_close(&group);
}

static void burn_100_ms(void)
{
	while (clock_us(CLOCK_PROCESS_CPUTIME_ID) < 100000)
		;
}

static void burn_in_a_forgotten_child(void)
{
	signal(SIGCHLD, SIG_IGN);
	pid_t pid = fork();
	if (pid == 0) {
		burn_100_ms();
		_exit(0);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void cpu_time_is_summed_over_all_processes(void **state)
{
	struct cgroup_want want = { .memory_bytes = 64 * MIB, .count_cpu = true };
	struct cgroup_host host;
	struct cgroup group;
	struct error err = { 0 };
	uint64_t us = 0;

	find_host(&host);
	create(&host, &want, &group);
	wait_for(start_inside(&group, burn_in_a_forgotten_child));
	assert_int_equal(cgroup_cpu_us(&group, &us, &err), 0);
	assert_in_range(us, 80000, 1000000);
	remove_and_close(&group);
}

static void fork_ten(void)
{
	pid_t children[10];
	int made = 0;

	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();
		if (pid == 0)
			for (;;)
				pause();
		if (pid > 0)
			children[made++] = pid;
	}
	for (int i = 0; i < made; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	_exit(made);
}

static void the_pids_limit_holds_on_v2(void **state)
{
	struct cgroup_want want = { .memory_bytes = 64 * MIB, .pids = 4 };
	struct cgroup_host host;
	struct cgroup group;

	find_host(&host);
	if (!host.pids) {
		print_message("skipped: no pids controller of v2\n");
		skip();
	}
	create(&host, &want, &group);
	int status = wait_for(start_inside(&group, fork_ten));
	assert_int_equal(WEXITSTATUS(status), 3);
	remove_and_close(&group);
}

static void wait_to_be_killed(void)
{
	for (;;)
		pause();
}

static void a_busy_group_is_not_removed(void **state)
{
	struct cgroup_want want = { .memory_bytes = 64 * MIB };
	struct cgroup_host host;
	struct cgroup group;
	struct error err = { 0 };

	find_host(&host);
	create(&host, &want, &group);
	pid_t pid = start_inside(&group, wait_to_be_killed);
	/* v1: the child enters by itself. */
	char text[64] = "";
	while (!text[0])
		assert_true(fd_read_file(group.dirs[0], "cgroup.procs", text, sizeof text) >= 0);
	assert_int_equal(cgroup_remove(&group, &err), -1);
	assert_int_equal(err.sys_errno, EBUSY);
	assert_true(is_there(group.parents[0], group.name));
	kill(pid, SIGKILL);
	wait_for(pid);
	remove_and_close(&group);
}

static void a_failure_leaves_nothing(void **state)
{
	struct cgroup_want want = { .memory_bytes = 64 * MIB, .millicpus = 500, .number = 7 };
	struct cgroup_host host;
	struct cgroup group;
	struct error err = { 0 };

	find_host(&host);
	host.cpu[0] = '\0';
	assert_int_equal(cgroup_create(&host, &want, &group, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(group.dir_count, 0);

	/* Somebody else's group of that name stays as it is. */
	cgroup_probe(&host);
	want = (struct cgroup_want){ .memory_bytes = 64 * MIB, .number = 7 };
	create(&host, &want, &group);
	struct cgroup twin;
	assert_int_equal(cgroup_create(&host, &want, &twin, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_true(is_there(group.parents[0], group.name));
	remove_and_close(&group);
	assert_false(is_there(host.memory, group.name));
}

static void no_descriptor_is_left_open(void **state)
{
	struct cgroup_want want = { .memory_bytes = 64 * MIB, .millicpus = 500, .count_cpu = true };
	struct cgroup_host host;
	struct cgroup group;

	find_host(&host);
	if (!host.cpu[0])
		want.millicpus = 0;
	int before = dup(0);
	close(before);
	create(&host, &want, &group);
	remove_and_close(&group);
	int after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

/* A child that makes a group, says its name, and waits for a byte before it ends without removing
 * it. */
static pid_t start_maker(const struct cgroup_host *host, char name[64], int *gate)
{
	int said[2], end[2];

	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct cgroup_want want = { .memory_bytes = 64 * MIB, .count_cpu = true };
		struct cgroup group;
		char c;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(end[1]);
		if (cgroup_create(host, &want, &group, NULL) < 0)
			_exit(1);
		if (write(said[1], group.name, sizeof group.name) < 0)
			_exit(2);
		_exit(read(end[0], &c, 1) < 0);
	}
	close(said[1]);
	close(end[0]);
	assert_int_equal(fd_read_full(said[0], name, 64), 64);
	close(said[0]);
	*gate = end[1];
	return pid;
}

/* Others may sweep at the same time, or leave something: what counts is what becomes of ours. */
static void the_sweep_removes_what_dead_makers_left(void **state)
{
	struct cgroup_host host;
	char name[64], other[CGROUP_PATH_MAX + 64];
	int gate;

	find_host(&host);
	pid_t pid = start_maker(&host, name, &gate);
	assert_true(is_there(host.memory, name));
	cgroup_sweep(&host);
	assert_true(is_there(host.memory, name));
	close(gate);
	assert_int_equal(wait_for(pid), 0);
	cgroup_sweep(&host);
	assert_false(is_there(host.memory, name));
	assert_false(is_there(host.cpuacct, name));

	/* A pid that lives, but began at another time; and one of another pid namespace, of which
	 * nobody here can say anything. */
	struct stat pidns;
	assert_int_equal(stat("/proc/self/ns/pid", &pidns), 0);
	for (int is_other = 0; is_other < 2; is_other++) {
		str_format(name, sizeof name, "carrel-%d-1-%llu-0", (int)getpid(),
			(unsigned long long)pidns.st_ino + (unsigned)is_other);
		str_format(other, sizeof other, "%s/%s", host.memory, name);
		assert_int_equal(mkdir(other, 0755), 0);
		cgroup_sweep(&host);
		assert_int_equal(is_there(host.memory, name), is_other);
	}
	assert_int_equal(rmdir(other), 0);
	str_format(other, sizeof other, "%s/carrel-test-other-%d", host.memory, (int)getpid());
	assert_int_equal(mkdir(other, 0755), 0);
	cgroup_sweep(&host);
	assert_int_equal(rmdir(other), 0);
}

static void the_sweep_takes_nobody_for_dead_whom_it_cant_look_at(void **state)
{
	struct cgroup_host host;
	struct rlimit before, few;
	char name[64];
	int gate;

	find_host(&host);
	pid_t pid = start_maker(&host, name, &gate);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	int next = dup(0);
	close(next);
	/* Enough for the directory alone. */
	few = (struct rlimit){ (rlim_t)next + 1, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	cgroup_sweep(&host);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(is_there(host.memory, name));
	close(gate);
	assert_int_equal(wait_for(pid), 0);
	cgroup_sweep(&host);
	assert_false(is_there(host.memory, name));
}

static void a_user_without_a_group_of_his_own_is_told_why(void **state)
{
	if (geteuid() != 0) {
		print_message("skipped: needs root to become a user without a group\n");
		skip();
	}
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct cgroup_host host;
		struct cgroup_want want = { .memory_bytes = MIB };
		struct cgroup group;
		struct error err = { 0 };

		if (setresgid(PLAIN_UID, PLAIN_UID, PLAIN_UID) < 0 ||
			setresuid(PLAIN_UID, PLAIN_UID, PLAIN_UID) < 0)
			_exit(1);
		cgroup_probe(&host);
		if (host.version != CGROUP_NONE || !host.why[0])
			_exit(2);
		if (cgroup_create(&host, &want, &group, &err) == 0 || err.code != ERR_UNAVAILABLE)
			_exit(3);
		_exit(cgroup_sweep(&host) == 0 ? 0 : 4);
	}
	assert_int_equal(wait_for(pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v1_controllers_are_found_each_for_itself),
		cmocka_unit_test(one_mount_can_have_two_controllers),
		cmocka_unit_test(a_hybrid_host_has_memory_on_v1),
		cmocka_unit_test(a_container_sees_its_part_of_the_tree),
		cmocka_unit_test(a_path_outside_of_the_namespace_cannot_be_reached),
		cmocka_unit_test(broken_lines_are_passed_over),
		cmocka_unit_test(a_path_that_is_too_long_is_not_used),
		cmocka_unit_test(names_and_numbers_are_parsed_whole),
		cmocka_unit_test(limits_are_given_as_the_kernel_keeps_them),
		cmocka_unit_test(a_value_that_does_not_read_back_is_an_error),
		cmocka_unit_test(the_memory_limit_kills_and_tells),
		cmocka_unit_test(a_group_is_changed_found_and_removed_by_its_number),
		cmocka_unit_test(the_cpu_quota_throttles),
		cmocka_unit_test(cpu_time_is_summed_over_all_processes),
		cmocka_unit_test(the_pids_limit_holds_on_v2),
		cmocka_unit_test(a_busy_group_is_not_removed),
		cmocka_unit_test(a_failure_leaves_nothing),
		cmocka_unit_test(no_descriptor_is_left_open),
		cmocka_unit_test(the_sweep_removes_what_dead_makers_left),
		cmocka_unit_test(the_sweep_takes_nobody_for_dead_whom_it_cant_look_at),
		cmocka_unit_test(a_user_without_a_group_of_his_own_is_told_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
