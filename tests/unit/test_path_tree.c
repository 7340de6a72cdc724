/* Trees: removed and measured, whatever lies in them. */
/* security: files */
#include "path_fixture.h"

/* -- removing -- */

static void a_tree_is_removed_and_what_its_links_point_to_stays(void **state)
{
	struct error err;

	put_dir(in, "t");
	put_dir(in, "t/d");
	put_file(in, "t/d/f", "x");
	put_file(in, "t/f", "x");
	put_link("../../out", in, "t/d/link");
	put_link("../out/secret", in, "t/filelink");
	assert_int_equal(mkfifoat(in, "t/fifo", 0644), 0);
	put_file(in, "beside", "x");
	put_link("../out", in, "dirlink");
	assert_int_equal(path_remove_tree(in, "t", &err), 0);
	assert_false(is_there(in, "t"));
	assert_true(is_there(in, "beside"));
	/* A link is removed, not what it names. */
	assert_int_equal(path_remove_tree(in, "dirlink", &err), 0);
	assert_false(is_there(in, "dirlink"));
	assert_true(is_there(out, "secret"));
	assert_int_equal(path_remove_tree(in, "beside", &err), 0);
	assert_int_equal(path_remove_tree(in, "absent", &err), 0);
}

static void only_a_name_in_the_directory_can_be_removed(void **state)
{
	static const char *const wrong[] = { "", ".", "..", "../out", "d/e", "/tmp", "d/" };
	struct error err;

	put_dir(in, "d");
	put_dir(in, "d/e");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(path_remove_tree(in, wrong[i], &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
	assert_true(is_there(in, "d/e"));
}

/* A chain of `levels` directories named d below `in`, with a file in every 100th. */
static void put_chain(int levels)
{
	int at = dup(in);

	for (int i = 1; i <= levels; i++) {
		put_dir(at, "d");
		if (i % 100 == 0)
			put_file(at, "f", "x");
		int next = open_dir(at, "d");
		close(at);
		at = next;
	}
	close(at);
}

static void no_tree_is_too_deep_to_be_removed(void **state)
{
	static const int levels[] = { PATH_DEPTH_MAX, PATH_DEPTH_MAX + 1, 600 };
	struct rlimit old, few = { PATH_DEPTH_MAX + 32, 0 };
	struct error err;

	/* Not by holding more directories open either. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		put_chain(levels[i]);
		if (path_remove_tree(in, "d", &err) < 0)
			fail_msg("%d levels: %s", levels[i], err.text);
		assert_false(is_there(in, "d"));
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

static void many_files_are_removed(void **state)
{
	struct error err;
	char name[32];

	put_dir(in, "d");
	int dir = open_dir(in, "d");
	for (int i = 0; i < 1000; i++) {
		str_format(name, sizeof name, "a-rather-long-name-%d", i);
		put_file(dir, name, "");
	}
	close(dir);
	assert_int_equal(path_remove_tree(in, "d", &err), 0);
	assert_false(is_there(in, "d"));
}

/* Runs `body` in a child without root's powers; its exit status is the test's. */
static void as_plain_user(int (*body)(void))
{
	int status;

	assert_int_equal(fchown(in, PLAIN_UID, PLAIN_UID) < 0 && geteuid() == 0, 0);
	pid_t child = fork();
	if (child == 0) {
		if (geteuid() == 0 &&
			(setgroups(0, NULL) < 0 || setresgid(PLAIN_UID, PLAIN_UID, PLAIN_UID) < 0 ||
				setresuid(PLAIN_UID, PLAIN_UID, PLAIN_UID) < 0))
			_exit(100);
		_exit(body());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int remove_closed_directories(void)
{
	static const mode_t modes[] = { 0, 0100, 0200, 0300, 0400, 0500, 0600 };
	struct error err;
	char name[32];

	if (mkdirat(in, "t", 0755) < 0)
		return 1;
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		str_format(name, sizeof name, "t/%zu", i);
		if (mkdirat(in, name, 0755) < 0)
			return 2;
		str_format(name, sizeof name, "t/%zu/sub", i);
		if (mkdirat(in, name, modes[i]) < 0)
			return 3;
		str_format(name, sizeof name, "t/%zu", i);
		if (fchmodat(in, name, modes[i], 0) < 0)
			return 4;
	}
	if (fchmodat(in, "t", 0555, 0) < 0)
		return 5;
	return path_remove_tree(in, "t", &err) == 0 && !is_there(in, "t") ? 0 : 6;
}

static void directories_closed_by_their_owner_are_removed_by_him(void **state)
{
	as_plain_user(remove_closed_directories);
}

static int fail_to_remove_what_is_not_ours(void)
{
	struct error err = { 0 };

	if (path_remove_tree(top, "out", &err) == 0)
		return 1;
	return err.code == ERR_DENIED && strstr(err.text, "Permission denied") ? 0 : 2;
}

static void what_belongs_to_others_is_an_error_and_stays(void **state)
{
	if (geteuid() != 0)
		skip();
	as_plain_user(fail_to_remove_what_is_not_ours);
}

/* Runs `body` in a child with a mount namespace of its own; skips where that can't be. */
static void with_mounts(int (*body)(void))
{
	enum { UNAVAILABLE = 101 };
	char path[128];
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (unshare(CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) < 0 ||
			mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(UNAVAILABLE);
		/* The descriptor we have is of the namespace before, where nothing will be mounted.
		 */
		close(in);
		str_format(path, sizeof path, "%s/in", root);
		in = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		_exit(body());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == UNAVAILABLE)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Mounts `out` (of the same file system) at in/<name>, as MS_BIND would be used against us. */
static int bind_out(const char *name)
{
	char from[128], to[128];

	str_format(from, sizeof from, "%s/out", root);
	str_format(to, sizeof to, "%s/in/%s", root, name);
	return mount(from, to, NULL, MS_BIND, NULL);
}

static int remove_with_a_mount_inside(void)
{
	struct error err;

	if (bind_out("t/mnt") < 0)
		return 1;
	if (path_remove_tree(in, "t", &err) == 0)
		return 2;
	if (err.code != ERR_CONFLICT)
		return 3;
	return is_there(out, "secret") ? 0 : 4;
}

static void a_mount_inside_is_an_error_and_its_content_stays(void **state)
{
	put_dir(in, "t");
	put_dir(in, "t/mnt");
	with_mounts(remove_with_a_mount_inside);
	assert_true(is_there(out, "secret"));
}

static void removal_ends_while_somebody_writes(void **state)
{
	struct error err = { 0 };

	put_dir(in, "t");
	put_dir(in, "t/d");
	int dir = open_dir(in, "t/d");
	pid_t child = fork();
	if (child == 0) {
		for (unsigned i = 0; getppid() != 1; i++) {
			char name[32];

			str_format(name, sizeof name, "%u", i % 5000);
			close(openat(dir, name, O_WRONLY | O_CREAT, 0644));
		}
		_exit(0);
	}
	int failed = path_remove_tree(in, "t", &err);
	stop(child);
	close(dir);
	/* Won or lost, but never half a success. */
	if (failed)
		assert_int_equal(err.code, ERR_CONFLICT);
	else
		assert_false(is_there(in, "t"));
	assert_int_equal(path_remove_tree(in, "t", &err), 0);
	assert_false(is_there(in, "t"));
}

static void removal_of_a_directory_swapped_for_a_link_stays_inside(void **state)
{
	struct error err;

	put_link("../out", in, "link");
	pid_t child = 0;
	for (int i = 0; i < 100; i++) {
		put_dir(in, "d");
		put_dir(in, "d/t");
		put_file(in, "d/t/secret", "x");
		if (!is_there(in, "d/t/link"))
			put_link("../../../out", in, "d/t/link");
		put_dir(in, "d/t/victim");
		put_file(in, "d/t/victim/secret", "x");
		int dir = open_dir(in, "d/t");
		child = start_swapping(dir, "victim", "link");
		close(dir);
		(void)path_remove_tree(in, "d", &err);
		stop(child);
		assert_int_equal(path_remove_tree(in, "d", &err), 0);
		assert_true(is_there(out, "secret"));
	}
}

/* -- measuring -- */

static void assert_measured(uint64_t bytes, uint64_t inodes)
{
	struct error err = { 0 };
	uint64_t got_bytes = 0, got_inodes = 0;

	if (path_measure_tree(in, &got_bytes, &got_inodes, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(got_inodes, inodes);
	assert_int_equal(got_bytes, bytes);
}

static uint64_t disk_bytes(int dir, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void a_tree_measures_what_its_files_take(void **state)
{
	char data[10000];

	memset(data, 'x', sizeof data - 1);
	data[sizeof data - 1] = '\0';
	assert_measured(disk_bytes(top, "in"), 1);
	put_dir(in, "d");
	put_file(in, "d/f", data);
	put_file(in, "empty", "");
	/* Big, but nearly nothing on disk. */
	put_file(in, "sparse", "x");
	int fd = openat(in, "sparse", O_WRONLY);
	assert_int_equal(ftruncate(fd, 1 << 30), 0);
	close(fd);
	put_link("../out/secret", in, "link");
	put_link("../out", in, "d/dirlink");
	uint64_t bytes = disk_bytes(top, "in") + disk_bytes(in, "d") + disk_bytes(in, "d/f") +
			 disk_bytes(in, "empty") + disk_bytes(in, "sparse") +
			 disk_bytes(in, "link") + disk_bytes(in, "d/dirlink");
	assert_true(disk_bytes(in, "d/f") >= 8192);
	assert_measured(bytes, 7);
	/* A counted limit charges a block for what has none. */
	uint64_t charged = 0;
	struct error err;
	assert_int_equal(path_charge_tree(in, &charged, &err), 0);
	assert_true(charged >= bytes && charged >= 7 * PATH_INODE_CHARGE);
	/* More names for one file are no more file. */
	assert_int_equal(linkat(in, "d/f", in, "second", 0), 0);
	assert_int_equal(linkat(in, "d/f", in, "d/third", 0), 0);
	assert_measured(bytes, 7);
}

static void a_tree_that_is_too_deep_to_measure_is_an_error(void **state)
{
	uint64_t bytes = 77, inodes = 77;
	struct error err;

	put_chain(PATH_DEPTH_MAX);
	assert_int_equal(path_measure_tree(in, &bytes, &inodes, &err), 0);
	assert_int_equal(inodes, 1 + PATH_DEPTH_MAX + PATH_DEPTH_MAX / 100);
	assert_int_equal(path_remove_tree(in, "d", &err), 0);
	put_chain(PATH_DEPTH_MAX + 1);
	bytes = inodes = 77;
	assert_int_equal(path_measure_tree(in, &bytes, &inodes, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(bytes, 77);
	assert_int_equal(inodes, 77);
}

static int measure_with_mounts(void)
{
	uint64_t before, after, inodes, inodes_after;
	struct error err;
	char from[128], to[128];

	if (path_measure_tree(in, &before, &inodes, &err) < 0 || bind_out("mnt") < 0)
		return 1;
	str_format(from, sizeof from, "%s/out/secret", root);
	str_format(to, sizeof to, "%s/in/file", root);
	if (mount(from, to, NULL, MS_BIND, NULL) < 0)
		return 2;
	if (path_measure_tree(in, &after, &inodes_after, &err) < 0)
		return 3;
	/* The two mount points themselves are hidden now. */
	return inodes_after == inodes - 2 && after <= before ? 0 : 4;
}

static void what_is_mounted_inside_is_not_counted(void **state)
{
	put_dir(in, "mnt");
	put_file(in, "file", "");
	with_mounts(measure_with_mounts);
}

static int measure_what_cannot_be_read(void)
{
	uint64_t bytes, inodes;
	struct error err = { 0 };

	if (mkdirat(in, "closed", 0) < 0)
		return 1;
	if (path_measure_tree(in, &bytes, &inodes, &err) == 0)
		return 2;
	return err.code == ERR_DENIED ? 0 : 3;
}

static void a_directory_that_cannot_be_read_is_not_taken_for_empty(void **state)
{
	as_plain_user(measure_what_cannot_be_read);
}

static void measuring_goes_on_while_things_vanish(void **state)
{
	struct error err = { 0 };
	uint64_t bytes, inodes;

	pid_t child = fork();
	if (child == 0) {
		while (getppid() != 1) {
			mkdirat(in, "d", 0755);
			mkdirat(in, "d/e", 0755);
			close(openat(in, "d/e/f", O_WRONLY | O_CREAT, 0644));
			unlinkat(in, "d/e/f", 0);
			unlinkat(in, "d/e", AT_REMOVEDIR);
			unlinkat(in, "d", AT_REMOVEDIR);
			(void)!symlinkat("../out", in, "d");
			unlinkat(in, "d", 0);
		}
		_exit(0);
	}
	int most = 0, failed = 0;
	for (int i = 0; i < 200000 && (i < 2000 || most < 2) && !failed; i++) {
		failed = path_measure_tree(in, &bytes, &inodes, &err);
		if (!failed && (int)inodes > most)
			most = (int)inodes;
	}
	stop(child);
	if (failed)
		fail_msg("%s", err.text);
	assert_in_range(most, 2, 4);
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_tree_is_removed_and_what_its_links_point_to_stays),
		test(only_a_name_in_the_directory_can_be_removed),
		test(no_tree_is_too_deep_to_be_removed),
		test(many_files_are_removed),
		test(directories_closed_by_their_owner_are_removed_by_him),
		test(what_belongs_to_others_is_an_error_and_stays),
		test(a_mount_inside_is_an_error_and_its_content_stays),
		test(removal_ends_while_somebody_writes),
		test(removal_of_a_directory_swapped_for_a_link_stays_inside),
		test(a_tree_measures_what_its_files_take),
		test(a_tree_that_is_too_deep_to_measure_is_an_error),
		test(what_is_mounted_inside_is_not_counted),
		test(a_directory_that_cannot_be_read_is_not_taken_for_empty),
		test(measuring_goes_on_while_things_vanish),
	};

	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
