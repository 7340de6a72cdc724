/* Paths: nothing that an attacker put on the way leads out of a directory. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "unit.h"

#define PLAIN_UID 54321

/* Each test has a directory with `in` (where we work) and `out` (which must stay as it is, with a
 * file `secret`). */
static char root[64];
static int top, in, out;

static void put_file(int dir, const char *name, const char *content)
{
	auto_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, content, strlen(content)), (ssize_t)strlen(content));
}

static int open_dir(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void put_dir(int dir, const char *name)
{
	assert_int_equal(mkdirat(dir, name, 0755), 0);
}

static void put_link(const char *target, int dir, const char *name)
{
	assert_int_equal(symlinkat(target, dir, name), 0);
}

static bool is_there(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int set_up(void **state)
{
	str_copy(root, sizeof root, "/tmp/test_path.XXXXXX");
	assert_non_null(mkdtemp(root));
	assert_int_equal(chmod(root, 0755), 0);
	top = open_dir(AT_FDCWD, root);
	put_dir(top, "in");
	put_dir(top, "out");
	in = open_dir(top, "in");
	out = open_dir(top, "out");
	put_file(out, "secret", "secret");
	return 0;
}

static int tear_down(void **state)
{
	struct error err = { 0 };
	char content[16];

	assert_int_equal(fd_read_file(out, "secret", content, sizeof content), 6);
	close(in);
	close(out);
	close(top);
	if (path_remove_tree(AT_FDCWD, "test_path.none", &err) < 0)
		return -1;
	int tmp = open_dir(AT_FDCWD, "/tmp");
	int failed = path_remove_tree(tmp, path_basename(root), &err);
	close(tmp);
	return failed;
}

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

/* Two names change places again and again until the test has seen enough. */
static pid_t start_swapping(int dir, const char *a, const char *b)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		while (getppid() != 1)
			syscall(SYS_renameat2, dir, a, dir, b, RENAME_EXCHANGE);
		_exit(0);
	}
	return child;
}

static void stop(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
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
		cmocka_unit_test(normal_paths_are_told_from_others),
		cmocka_unit_test(normalizing_is_done_by_text_and_stops_at_the_root),
		cmocka_unit_test(beneath_counts_whole_components),
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
