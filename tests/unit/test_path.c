/* Paths: nothing that an attacker put on the way leads out of a directory. */
/* security: files */
#include "path_fixture.h"

/* -- text -- */

static void normal_paths_are_told_from_others(void **state)
{
	static const char *const normal[] = { "/", "/a", "/a/b", "/...", "/a/..b", "/a/.b", "/ " };
	static const char *const others[] = { "", "a", "./a", "//", "/a/", "/a//b", "/.", "/..",
		"/a/.", "/a/..", "/a/../b", "/./a", "//a" };
	char longest[4097];

	for (size_t i = 0; i < sizeof normal / sizeof *normal; i++)
		assert_true(path_is_normal(normal[i]));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(path_is_normal(others[i]));
	memset(longest, 'a', sizeof longest);
	longest[0] = '/';
	longest[4096] = '\0';
	assert_false(path_is_normal(longest));
	longest[4095] = '\0';
	assert_true(path_is_normal(longest));
	assert_true(path_is_absolute("/a") && !path_is_absolute("a") && !path_is_absolute(""));
}

static void normalizing_is_done_by_text_and_stops_at_the_root(void **state)
{
	static const char *const cases[][3] = { { "/", "", "/" }, { "/", "a", "/a" },
		{ "/a/b", "", "/a/b" }, { "/a/b", "c/d", "/a/b/c/d" }, { "/a/b", "../c", "/a/c" },
		{ "/a/b", "../../..", "/" }, { "/a/b", "../../../x", "/x" }, { "/a", "/b", "/b" },
		{ "/a", "//b///c//", "/b/c" }, { "/a", "./././b/.", "/a/b" }, { "/a", "/", "/" },
		{ "/a", "/..", "/" }, { "/a", "...", "/a/..." }, { "/ab", "..", "/" },
		{ "/a", "b/../../c/", "/c" } };
	auto_arena struct arena a;

	arena_init(&a);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *normal = path_normalize(&a, cases[i][0], cases[i][1]);

		assert_string_equal(normal, cases[i][2]);
		assert_true(path_is_normal(normal));
	}
}

static void the_parent_is_what_precedes_the_last_slash(void **state)
{
	assert_true(str_is(path_parent("a/b/c"), "a/b"));
	assert_int_equal(path_parent("a").len, 0);
	assert_int_equal(path_parent("/a").len, 0);
}

static void beneath_counts_whole_components(void **state)
{
	assert_true(path_is_beneath("/a/b", "/a"));
	assert_true(path_is_beneath("/a", "/a"));
	assert_true(path_is_beneath("/a", "/"));
	assert_true(path_is_beneath("/", "/"));
	assert_false(path_is_beneath("/ab", "/a"));
	assert_false(path_is_beneath("/", "/a"));
	assert_false(path_is_beneath("/b/a", "/a"));
	assert_string_equal(path_basename("/a/b"), "b");
	assert_string_equal(path_basename("b"), "b");
	assert_string_equal(path_basename("/"), "");
}

/* -- opening -- */

static void assert_refused(
	int (*open_it)(int, const char *, int, mode_t), const char *path, int error)
{
	errno = 0;
	int fd = open_it(in, path, O_RDONLY, 0);
	if (fd >= 0 || errno != error)
		fail_msg("'%s': descriptor %d, errno %d", path, fd, errno);
}

static void what_lies_beneath_opens(void **state)
{
	static const char *const paths[] = { "d/f", "./d/./f", "d//f" };
	char content[8];

	put_dir(in, "d");
	put_file(in, "d/f", "inside");
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		auto_close int fd = path_open_nolinks(in, paths[i], O_RDONLY, 0);
		auto_close int fd2 = path_open_inside(in, paths[i], O_RDONLY);

		assert_true(fd >= 0);
		assert_int_equal(fd_read_full(fd, content, sizeof content), 6);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_true(fd2 >= 0);
		assert_true(fcntl(fd2, F_GETFD) & FD_CLOEXEC);
	}
}

static void assert_is_in(int fd)
{
	struct stat st, expected;

	assert_int_equal(fstat(in, &expected), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_dev == expected.st_dev && st.st_ino == expected.st_ino);
}

static void inside_no_path_is_the_directory_itself(void **state)
{
	auto_close int fd = path_open_inside(in, "", O_PATH | O_DIRECTORY);

	assert_true(fd >= 0);
	assert_is_in(fd);
	assert_refused(path_open_nolinks, "", ENOENT);
}

static void inside_ends_at_a_mount_point(void **state)
{
	auto_close int slash = open_dir(AT_FDCWD, "/");
	auto_close int proc = path_open_nolinks(slash, "proc/self", O_PATH | O_NOFOLLOW, 0);

	assert_true(proc >= 0);
	assert_int_equal(path_open_inside(slash, "proc/self", O_PATH | O_NOFOLLOW), -1);
	assert_int_equal(errno, EXDEV);
}

static int open_inside(int dir, const char *path, int flags, mode_t mode)
{
	return path_open_inside(dir, path, flags);
}

static void paths_that_lead_out_are_refused(void **state)
{
	static const char *const paths[] = { "/", "/etc/passwd", "..", "../out/secret", "d/..",
		"d/../d", "d/../../out/secret" };
	static const char *const links[] = { "root", "root/etc/passwd", "up", "d/up", "parent",
		"parent/out/secret", "winding/secret", "chain", "absolute-but-inside", "loop" };
	char absolute[128];

	put_dir(in, "d");
	put_link("/", in, "root");
	put_link("../out/secret", in, "up");
	put_link("../../out/secret", in, "d/up");
	put_link("..", in, "parent");
	put_link("d/../../out", in, "winding");
	put_link("up", in, "chain");
	put_link("loop", in, "loop");
	str_format(absolute, sizeof absolute, "%s/in/d", root);
	put_link(absolute, in, "absolute-but-inside");
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		assert_refused(path_open_nolinks, paths[i], EXDEV);
		assert_refused(open_inside, paths[i], EXDEV);
	}
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		assert_refused(path_open_nolinks, links[i], ELOOP);
		assert_refused(open_inside, links[i], ELOOP);
	}
	assert_refused(path_open_nolinks, "absent", ENOENT);
	assert_refused(open_inside, "absent", ENOENT);
}

static void magic_links_are_refused(void **state)
{
	int self = open_dir(AT_FDCWD, "/proc/self/fd");
	char name[16];

	str_format(name, sizeof name, "%d", out);
	/* The kernel follows it for anybody else. */
	auto_close int followed = openat(self, name, O_PATH | O_CLOEXEC);
	assert_true(followed >= 0);
	assert_int_equal(path_open_inside(self, name, O_PATH), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(path_open_nolinks(self, name, O_PATH, 0), -1);
	assert_int_equal(errno, ELOOP);
	close(self);
}

static void without_links_no_link_is_followed(void **state)
{
	put_dir(in, "d");
	put_file(in, "d/f", "x");
	put_link("d/f", in, "link");
	put_link("d", in, "dirlink");
	put_link("../out/secret", in, "up");
	assert_refused(path_open_nolinks, "link", ELOOP);
	assert_refused(path_open_nolinks, "dirlink/f", ELOOP);
	assert_refused(path_open_nolinks, "up", ELOOP);
	assert_refused(path_open_nolinks, "d/../d/f", EXDEV);
	assert_refused(path_open_nolinks, "/etc/passwd", EXDEV);
	/* The link itself can be held. */
	auto_close int fd = path_open_nolinks(in, "link", O_PATH | O_NOFOLLOW, 0);
	struct stat st;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

static void files_are_created_beneath_only(void **state)
{
	struct stat st;
	mode_t old = umask(0);

	put_link("../out/made", in, "dangling");
	put_link("made", in, "inner");
	auto_close int fd = path_open_nolinks(in, "new", O_WRONLY | O_CREAT | O_EXCL, 0640);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	/* A mode without O_CREAT is no error. */
	auto_close int again = path_open_nolinks(in, "new", O_RDONLY, 0640);
	assert_true(again >= 0);
	assert_int_equal(path_open_nolinks(in, "dangling", O_WRONLY | O_CREAT, 0644), -1);
	assert_int_equal(errno, ELOOP);
	assert_false(is_there(out, "made"));
	assert_int_equal(path_open_nolinks(in, "inner", O_WRONLY | O_CREAT, 0644), -1);
	assert_int_equal(errno, ELOOP);
	assert_false(is_there(in, "made"));
	umask(old);
}

static void a_directory_swapped_for_a_link_meanwhile_does_not_lead_out(void **state)
{
	int opened = 0, refused = 0;
	struct stat secret, st;

	put_dir(in, "d");
	put_file(in, "d/secret", "ours");
	put_link("../out", in, "link");
	assert_int_equal(fstatat(out, "secret", &secret, 0), 0);
	pid_t child = start_swapping(in, "d", "link");
	for (int i = 0; (opened < 100 || refused < 100) && i < 1000000; i++) {
		auto_close int fd = path_open_inside(in, "d/secret", O_RDONLY);
		auto_close int fd2 = path_open_nolinks(in, "d/secret", O_RDONLY, 0);

		if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_ino == secret.st_ino))
			fail_msg("followed out in round %d", i);
		if (fd2 >= 0 && (fstat(fd2, &st) < 0 || st.st_ino == secret.st_ino))
			fail_msg("followed out in round %d", i);
		opened += fd >= 0;
		refused += fd < 0;
	}
	stop(child);
	/* Both names were met, so the race was on. */
	assert_true(opened >= 100 && refused >= 100);
}

/* -- making directories -- */

static void directories_are_made_down_to_the_last(void **state)
{
	struct error err;
	struct stat st, same;
	mode_t old = umask(0);
	int fd;

	assert_int_equal(path_make_directories(in, "a/b//./c", 0750, &fd, &err), 0);
	assert_int_equal(fstatat(in, "a/b/c", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(fstat(fd, &same), 0);
	assert_int_equal(st.st_ino, same.st_ino);
	assert_true(fcntl(fd, F_GETFL) & O_PATH);
	close(fd);
	/* Again is no error; the mode of what is there stays. */
	assert_int_equal(path_make_directories(in, "a/b/c/d", 0700, &fd, &err), 0);
	close(fd);
	assert_int_equal(fstatat(in, "a/b/c", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(path_make_directories(in, "", 0700, &fd, &err), 0);
	assert_int_equal(fstat(fd, &same), 0);
	assert_int_equal(fstat(in, &st), 0);
	assert_int_equal(st.st_ino, same.st_ino);
	close(fd);
	umask(old);
}

static void directories_are_not_made_through_links_or_outside(void **state)
{
	struct error err;
	char name[300];
	int fd = 77;

	put_link("../out", in, "link");
	put_file(in, "file", "x");
	assert_int_equal(path_make_directories(in, "link/made", 0755, &fd, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.text, "'link'"));
	assert_int_equal(path_make_directories(in, "file/made", 0755, &fd, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(path_make_directories(in, "../out/made", 0755, &fd, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(path_make_directories(in, "/tmp/made", 0755, &fd, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = '\0';
	assert_int_equal(path_make_directories(in, name, 0755, &fd, &err), -1);
	assert_int_equal(err.sys_errno, ENAMETOOLONG);
	assert_false(is_there(out, "made"));
	assert_int_equal(fd, 77);
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(normal_paths_are_told_from_others),
		cmocka_unit_test(normalizing_is_done_by_text_and_stops_at_the_root),
		cmocka_unit_test(beneath_counts_whole_components),
		cmocka_unit_test(the_parent_is_what_precedes_the_last_slash),
		test(what_lies_beneath_opens),
		test(inside_no_path_is_the_directory_itself),
		test(inside_ends_at_a_mount_point),
		test(paths_that_lead_out_are_refused),
		test(magic_links_are_refused),
		test(without_links_no_link_is_followed),
		test(files_are_created_beneath_only),
		test(a_directory_swapped_for_a_link_meanwhile_does_not_lead_out),
		test(directories_are_made_down_to_the_last),
		test(directories_are_not_made_through_links_or_outside),
	};

	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
