/* Disk quota: a tree is kept to its bytes by the kernel, where the file system has the means:
 * CARREL_QUOTA_DIR names a directory on one (tools/test-vm has ext4 and btrfs), else /tmp is tried.
 */
/* security: limits */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "linux/disk_quota.h"
#include "unit.h"

#define PLAIN_UID 54321
#define LIMIT ((uint64_t)4 << 20)

static char area[128];
static int top;
static enum quota_mechanism mechanism;
static char why[QUOTA_WHY_LEN];
static struct error err;

static int open_dir(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int set_up(void **state)
{
	const char *place = getenv("CARREL_QUOTA_DIR");

	str_format(area, sizeof area, "%s/test_disk_quota.XXXXXX", place ? place : "/tmp");
	assert_non_null(mkdtemp(area));
	assert_int_equal(chmod(area, 0755), 0);
	top = open_dir(AT_FDCWD, area);
	assert_int_equal(mkdirat(top, "probe", 0755), 0);
	int probe = open_dir(top, "probe");
	mechanism = quota_probe(probe, why);
	close(probe);
	/* Where it was asked for, it is there. */
	if (place)
		assert_int_not_equal(mechanism, QUOTA_COUNTED);
	return 0;
}

static int tear_down(void **state)
{
	char *slash = strrchr(area, '/');

	*slash = '\0';
	int parent = open_dir(AT_FDCWD, area);
	int failed = path_remove_tree(parent, slash + 1, &err);
	close(parent);
	close(top);
	return failed;
}

static void skip_if_counted(void)
{
	if (mechanism != QUOTA_COUNTED)
		return;
	print_message("skipped: %s\n", why);
	skip();
}

static int make_tree(const char *name, uint64_t bytes, uint64_t inodes)
{
	assert_int_equal(quota_make_directory(top, name, 0777, mechanism), 0);
	int dir = open_dir(top, name);
	assert_int_equal(quota_limit(dir, mechanism, bytes, inodes, &err), 0);
	assert_int_equal(mkdirat(dir, "upper", 0777), 0);
	assert_int_equal(fchmodat(dir, "upper", 0777, 0), 0);
	assert_int_equal(symlinkat("/env", dir, "upper/.venv"), 0);
	return dir;
}

/* How many bytes a plain user can write there: root has no quota. */
static uint64_t fill(int dir, const char *name)
{
	static char data[65536];
	uint64_t total = 0;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	memset(data, 'x', sizeof data);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setuid(PLAIN_UID))
			_exit(1);
		int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		ssize_t got;
		while (fd >= 0 && total < 4 * LIMIT && (got = write(fd, data, sizeof data)) > 0)
			total += (uint64_t)got;
		/* btrfs finds out late. */
		if (fd >= 0 && fsync(fd))
			total = total < LIMIT ? total : LIMIT;
		_exit(write(ends[1], &total, sizeof total) != sizeof total);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &total, sizeof total), sizeof total);
	close(ends[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return total;
}

static void a_tree_is_kept_to_its_bytes(void **state)
{
	skip_if_counted();
	int one = make_tree("one", LIMIT, 0), two = make_tree("two", 2 * LIMIT, 0);
	uint64_t first = fill(one, "upper/f"), second = fill(two, "upper/f");
	assert_true(first > LIMIT / 2 && first <= LIMIT);
	/* The other's bytes are its own. */
	assert_true(second > LIMIT && second <= 2 * LIMIT);
	/* More is allowed later. */
	assert_int_equal(quota_limit(one, mechanism, 3 * LIMIT, 0, &err), 0);
	assert_true(fill(one, "upper/g") >= LIMIT);
	close(one);
	close(two);
}

static void files_on_their_way_in_can_be_moved_into_the_tree(void **state)
{
	struct stat st;

	skip_if_counted();
	int dir = make_tree("tree", LIMIT, 0);
	assert_int_equal(mkdirat(dir, ".in", 0777), 0);
	int fd = openat(dir, ".in/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(renameat(dir, ".in/f", dir, "upper/f"), 0);
	assert_int_equal(fstatat(dir, "upper/f", &st, 0), 0);
	close(dir);
}

static void a_full_tree_shows_in_statfs(void **state)
{
	struct statfs info;

	skip_if_counted();
	if (mechanism != QUOTA_PROJECT)
		skip();
	int dir = make_tree("tree", LIMIT, 100);
	int upper = open_dir(dir, "upper");
	assert_int_equal(fstatfs(upper, &info), 0);
	assert_int_equal((uint64_t)info.f_blocks * (uint64_t)info.f_bsize, LIMIT);
	assert_int_equal(info.f_files, 100);
	fill(dir, "upper/f");
	assert_int_equal(fstatfs(upper, &info), 0);
	assert_true((uint64_t)info.f_bavail * (uint64_t)info.f_bsize < 65536);
	close(upper);
	close(dir);
}

static void what_is_counted_needs_nothing(void **state)
{
	assert_int_equal(quota_make_directory(top, "tree", 0700, QUOTA_COUNTED), 0);
	int dir = open_dir(top, "tree");
	assert_int_equal(quota_limit(dir, QUOTA_COUNTED, LIMIT, 0, &err), 0);
	close(dir);
	assert_int_equal(path_remove_tree(top, "tree", &err), 0);
}

int main(void)
{
#define with_area(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		with_area(a_tree_is_kept_to_its_bytes),
		with_area(files_on_their_way_in_can_be_moved_into_the_tree),
		with_area(a_full_tree_shows_in_statfs),
		with_area(what_is_counted_needs_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
