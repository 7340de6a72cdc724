/* The probes on this host: whatever they answer, they answer twice the same, and leave nothing. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "linux/disk_quota.h"
#include "linux/landlock.h"
#include "linux/probe.h"
#include "unit.h"

static struct probe_ids own_ids(void)
{
	return (struct probe_ids){ geteuid() == 0 ? 1879048192u : geteuid(),
		geteuid() == 0 ? 1879048192u : getegid() };
}

static void no_child_is_left(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void probes_leave_no_child_and_no_descriptor(void **state)
{
	const struct probe_ids ids = own_ids();
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC), lowers;
	struct probe probe;

	close(before);
	probe_user_namespace(&ids, &probe);
	probe_namespace(&ids, CLONE_NEWNET, &probe);
	probe_fresh_proc(&ids, &probe);
	probe_mount_api(&ids, &probe);
	probe_tmpfs_xattr(&ids, &probe);
	probe_overlay(&ids, -1, &probe, &lowers);
	probe_clone3(&probe);
	probe_seccomp(&probe);
	no_child_is_left();
	int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(before, after);
	close(after);
}

static void a_refusal_names_its_step(void **state)
{
	const struct probe_ids ids = { 0, 0 };
	struct probe probe;

	if (geteuid() == 0)
		skip(); /* root may map anybody */
	probe_user_namespace(&ids, &probe);
	assert_int_not_equal(probe.error, 0);
	assert_string_not_equal(probe.step, "");
	no_child_is_left();
}

static void landlock_is_tried_where_there_is_one(void **state)
{
	struct probe probe;

	if (landlock_abi() == 0)
		skip();
	probe_landlock(landlock_abi(), &probe);
	assert_int_equal(probe.error, 0);
	/* The child was restricted, not we. */
	int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	close(root);
}

static void an_overlay_on_disk_works_or_says_where_it_stopped(void **state)
{
	const struct probe_ids ids = own_ids();
	char path[] = "/tmp/unit-probe-XXXXXX", why[QUOTA_WHY_LEN];
	struct probe probe;
	int lowers = -1;

	assert_non_null(mkdtemp(path));
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	if (geteuid() == 0)
		assert_int_equal(fchown(dir, ids.uid, ids.gid), 0);
	probe_overlay(&ids, dir, &probe, &lowers);
	assert_true(probe.error == 0 || probe.step[0] != '\0');
	if (quota_probe(dir, why) == QUOTA_COUNTED)
		assert_string_not_equal(why, "");
	(void)unlinkat(dir, "work/work", AT_REMOVEDIR);
	close(dir);
	auto_close int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(path_remove_tree(parent, path_basename(path), NULL), 0);
	no_child_is_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_leave_no_child_and_no_descriptor),
		cmocka_unit_test(a_refusal_names_its_step),
		cmocka_unit_test(landlock_is_tried_where_there_is_one),
		cmocka_unit_test(an_overlay_on_disk_works_or_says_where_it_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
