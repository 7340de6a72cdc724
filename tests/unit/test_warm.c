/* The mounts that sandboxes which stay are started from: the system's, and nothing else of the
 * host; and when they have to be made anew. */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/str.h"
#include "sandbox/native/base.h"
#include "sandbox/native/host.h"
#include "unit.h"

struct fixture {
	struct arena arena;
	struct host host;
	struct plan plan;
	struct base base;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct plan_options options = { .warm = true };
	struct error err;
	*state = f;
	arena_init(&f->arena);
	host_init(&f->host);
	f->base = (struct base)BASE_NONE;
	if (host_look(&f->host, NULL, NULL, &f->arena, &err) ||
		plan_build(&options, &f->host.facts, &f->arena, &f->plan, &err)) {
		print_error("%s\n", err.text);
		return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	base_done(&f->base);
	host_done(&f->host);
	arena_done(&f->arena);
	free(f);
	return 0;
}

static void make(struct fixture *f)
{
	struct error err;
	if (!f->host.facts.privileged)
		skip();
	if (base_make(&f->plan, &f->base, &err))
		fail_msg("%s", err.text);
}

/* Runs `look` in the base and returns what it answered. */
static int look_inside(const struct fixture *f, int (*look)(void))
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(setns(f->base.mounts, CLONE_NEWNS) ? 99 : look());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int count_strangers(void)
{
	static const char *const known[] = { "usr", "bin", "sbin", "lib", "lib32", "lib64",
		"libx32", "etc", "dev", "proc", "run", "var", "sys", "tmp", ".cache", "workspace",
		".", ".." };
	int strangers = 0;
	DIR *dir = opendir("/");
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		bool is_known = false;
		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			is_known |= !strcmp(entry->d_name, known[i]);
		strangers += !is_known;
	}
	return dir ? strangers : 98;
}

/* Not a file can be made, not a process of the host be seen. */
static int count_ways_out(void)
{
	return (access("/usr/bin/env", X_OK) != 0) + (access("/proc/1", F_OK) == 0) +
	       (access("/proc/self", F_OK) == 0) + (mkdir("/new", 0700) == 0) +
	       (open("/usr/new", O_CREAT | O_WRONLY, 0600) >= 0) +
	       (access("/etc/shadow", F_OK) == 0) + (open("/dev/null", O_RDWR) < 0);
}

static void a_base_holds_the_system_read_only_and_nothing_else(void **state)
{
	struct fixture *f = *state;
	make(f);
	assert_int_equal(look_inside(f, count_strangers), 0);
	assert_int_equal(look_inside(f, count_ways_out), 0);
}

static void mounts_of_a_base_never_appear_on_the_host(void **state)
{
	struct fixture *f = *state;
	static char before[1 << 20], after[1 << 20];
	if (!f->host.facts.privileged)
		skip();
	/* A host that nobody else mounts anything in, and that shares all of its mounts. */
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL), 0);
	assert_true(fd_read_file(AT_FDCWD, "/proc/self/mountinfo", before, sizeof before) > 0);
	make(f);
	assert_true(fd_read_file(AT_FDCWD, "/proc/self/mountinfo", after, sizeof after) > 0);
	assert_string_equal(before, after);
}

static void a_base_is_stale_when_a_path_leads_elsewhere(void **state)
{
	struct fixture *f = *state;
	char path[] = "/var/tmp/carrel-test-base-XXXXXX", new[64];
	if (!f->host.facts.privileged)
		skip();
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	str_format(new, sizeof new, "%s.new", path);
	/* As if /etc/localtime were this file. */
	vec_push(&f->arena, &f->plan.mounts,
		(struct plan_mount){ .kind = MOUNT_BIND,
			.source = path,
			.target = "/etc/localtime.test",
			.flags = MOUNT_RO | MOUNT_NODEV,
			.source_kind = PATH_FILE,
			.in_root = true,
			.make_target = true });
	make(f);
	assert_true(base_is_current(&f->base));
	fd = open(new, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	assert_int_equal(rename(new, path), 0);
	assert_false(base_is_current(&f->base));
	unlink(path);
	assert_false(base_is_current(&f->base));
}

static void a_root_is_shared_by_plans_that_need_no_other_point(void **state)
{
	struct fixture *f = *state;
	make(f);
	struct plan plan = f->plan;
	plan.limiter = LIMITER_CGROUP_V1;
	assert_true(base_has_root_for(&f->base, &plan));
	plan.limiter = LIMITER_WATCHDOG;
	assert_false(base_has_root_for(&f->base, &plan));
	plan.limiter = LIMITER_CGROUP_V1;
	vec_push(&f->arena, &plan.mounts,
		(struct plan_mount){
			.target = "/workspace/below", .in_root = false, .make_target = true });
	assert_true(base_has_root_for(&f->base, &plan));
	vec_push(&f->arena, &plan.mounts,
		(struct plan_mount){ .target = "/opt/new", .in_root = true, .make_target = true });
	assert_false(base_has_root_for(&f->base, &plan));
	base_done(&f->base);
	assert_false(base_has_root_for(&f->base, &f->plan));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_base_holds_the_system_read_only_and_nothing_else),
		TEST(mounts_of_a_base_never_appear_on_the_host),
		TEST(a_base_is_stale_when_a_path_leads_elsewhere),
		TEST(a_root_is_shared_by_plans_that_need_no_other_point),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
