/* Landlock: rules are enforced in children, as the caller and as a plain user. */
/* security: sandbox */
#include "linux/landlock.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/fd.h"
#include "base/path.h"

#define PLAIN_UID 54321

/* readable/f, writable/f, other/f in a directory that anybody may write. */
static char directory[] = "/tmp/unit-test-XXXXXX";
static int parent_socket;
static struct sockaddr_un parent_address = { AF_UNIX, { 0 } };
static socklen_t parent_address_len;

static int set_up(void **state)
{
	static const char *const names[] = { "readable", "writable", "other" };
	umask(0);
	if (!mkdtemp(directory) || chmod(directory, 0777) != 0 || chdir(directory) != 0)
		return -1;
	for (size_t i = 0; i < 3; i++) {
		if (mkdir(names[i], 0777) != 0 || chdir(names[i]) != 0)
			return -1;
		auto_close int fd = open("f", O_WRONLY | O_CREAT | O_CLOEXEC, 0777);
		if (fd < 0 || chdir("..") != 0)
			return -1;
	}
	/* An abstract socket outside the domain. */
	parent_socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int len = snprintf(parent_address.sun_path + 1, 64, "carrel-test-%d", getpid());
	parent_address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
	return bind(parent_socket, (struct sockaddr *)&parent_address, parent_address_len) ||
	       listen(parent_socket, 1);
}

static int tear_down(void **state)
{
	struct error err;
	close(parent_socket);
	return chdir("/tmp") || path_remove_tree(AT_FDCWD, strrchr(directory, '/') + 1, &err);
}

static int allow(int ruleset, int abi, const char *path, unsigned access)
{
	struct error err;
	auto_close int fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -1 : landlock_allow(ruleset, abi, fd, path, access, &err);
}

static int enter(int abi)
{
	struct error err;
	auto_close int ruleset = -1;
	if (landlock_create(abi, &ruleset, &err) != 0 ||
		allow(ruleset, abi, "readable", LANDLOCK_READ) != 0 ||
		allow(ruleset, abi, "writable", LANDLOCK_READ | LANDLOCK_WRITE) != 0 ||
		allow(ruleset, abi, "/dev/null", LANDLOCK_READ | LANDLOCK_DEVICE) != 0 ||
		allow(ruleset, abi, "/usr", LANDLOCK_READ | LANDLOCK_EXECUTE) != 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return landlock_enforce(ruleset, &err);
}

static bool opens(const char *path, int flags)
{
	auto_close int fd = open(path, flags | O_CLOEXEC, 0666);
	return fd >= 0;
}

/* Every claim that doesn't hold is printed; returns how many. */
static int failed_claims;
static void claim(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "doesn't hold: %s\n", what);
	failed_claims++;
}
#define CLAIM(expression) claim((expression), #expression)

static void claims_about_files(int abi)
{
	CLAIM(opens("readable/f", O_RDONLY));
	CLAIM(!opens("readable/f", O_WRONLY));
	CLAIM(!opens("readable/new", O_WRONLY | O_CREAT));
	CLAIM(opens("readable", O_RDONLY | O_DIRECTORY));
	CLAIM(!opens("other/f", O_RDONLY));
	CLAIM(!opens("other", O_RDONLY | O_DIRECTORY));
	CLAIM(!opens("/etc/passwd", O_RDONLY));
	CLAIM(opens("writable/f", O_RDWR));
	CLAIM(opens("writable/new", O_WRONLY | O_CREAT | O_TRUNC));
	CLAIM(rename("writable/new", "writable/newer") == 0);
	CLAIM(mkdir("writable/d", 0777) == 0);
	CLAIM(abi < 2 || rename("writable/newer", "writable/d/newer") == 0);
	CLAIM(abi < 2 || unlink("writable/d/newer") == 0);
	CLAIM(rmdir("writable/d") == 0);
	CLAIM(symlink("f", "writable/s") == 0 && unlink("writable/s") == 0);
	CLAIM(mkfifo("writable/p", 0666) == 0 && unlink("writable/p") == 0);
	CLAIM(unlink("readable/f") != 0);
	CLAIM(rename("writable/f", "readable/g") != 0);
	CLAIM(link("writable/f", "other/g") != 0);
	/* Not 0:0: before 6.2, Landlock let whiteouts be made. */
	CLAIM(mknod("writable/c", S_IFCHR | 0666, makedev(1, 3)) != 0);
	CLAIM(abi < 3 || truncate("readable/f", 0) != 0);
	CLAIM(abi < 3 || truncate("writable/f", 0) == 0);
	CLAIM(opens("/dev/null", O_RDWR));
	CLAIM(!opens("/dev/zero", O_RDONLY));
}

static void claims_about_execution(void)
{
	pid_t child = fork();
	if (child == 0) {
		execl("/usr/bin/true", "true", NULL);
		_exit(126);
	}
	int status = -1;
	CLAIM(waitpid(child, &status, 0) == child && status == 0);
	execl("writable/f", "f", NULL);
	CLAIM(errno == EACCES);
}

static void claims_about_scopes(void)
{
	auto_close int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CLAIM(connect(s, (struct sockaddr *)&parent_address, parent_address_len) != 0 &&
		errno == EPERM);
	CLAIM(kill(getppid(), 0) != 0 && errno == EPERM);
	CLAIM(kill(getpid(), 0) == 0);
}

static void expect_enforced(int abi, bool plain)
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (plain && (setgroups(0, NULL) != 0 ||
				     setresgid(PLAIN_UID, PLAIN_UID, PLAIN_UID) != 0 ||
				     setresuid(PLAIN_UID, PLAIN_UID, PLAIN_UID) != 0))
			_exit(99);
		if (enter(abi) != 0)
			_exit(98);
		claims_about_files(abi);
		claims_about_execution();
		if (abi >= 6)
			claims_about_scopes();
		_exit(failed_claims);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_rules_hold_for_the_caller(void **state)
{
	if (landlock_abi() == 0)
		skip();
	expect_enforced(landlock_abi(), false);
}

static void test_rules_hold_for_a_plain_user(void **state)
{
	if (landlock_abi() == 0 || geteuid() != 0)
		skip();
	expect_enforced(landlock_abi(), true);
}

static void test_rules_of_every_older_abi_are_accepted(void **state)
{
	/* A newer kernel takes what an older one knew; root, since files made by others can't be
	 * renamed in /tmp. */
	for (int abi = 1; abi < landlock_abi(); abi++)
		expect_enforced(abi, false);
}

/* Without the rights of readers: number of claims that don't hold. */
static int claims_of_writes(int abi)
{
	struct error err;
	auto_close int ruleset = -1;
	unsigned only = LANDLOCK_ONLY_WRITES;
	if (landlock_create_writes(abi, &ruleset, &err) != 0 ||
		allow(ruleset, abi, "readable", LANDLOCK_READ | only) != 0 ||
		allow(ruleset, abi, "writable", LANDLOCK_READ | LANDLOCK_WRITE | only) != 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || landlock_enforce(ruleset, &err) != 0)
		return 100;
	CLAIM(opens("other/f", O_RDONLY));
	CLAIM(opens("other", O_RDONLY | O_DIRECTORY));
	CLAIM(opens("/etc/passwd", O_RDONLY));
	CLAIM(!opens("other/f", O_WRONLY));
	CLAIM(!opens("other/f", O_RDWR));
	CLAIM(!opens("other/new", O_WRONLY | O_CREAT));
	CLAIM(!opens("readable/f", O_WRONLY));
	CLAIM(unlink("readable/f") == -1 && mkdir("other/d", 0777) == -1);
	CLAIM(opens("writable/f", O_RDWR | O_TRUNC));
	CLAIM(opens("writable/w", O_WRONLY | O_CREAT) && unlink("writable/w") == 0);
	return failed_claims;
}

static void test_rules_for_writes_leave_reading_alone(void **state)
{
	for (int abi = 1; abi <= landlock_abi(); abi++) {
		int status;
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0)
			_exit(claims_of_writes(abi));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

static void test_without_landlock_there_is_a_named_error(void **state)
{
	struct error err;
	int ruleset = 7;
	assert_int_equal(landlock_create(0, &ruleset, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "Landlock"));
	assert_int_equal(ruleset, 7);
}

static void test_a_bad_descriptor_is_named(void **state)
{
	struct error err;
	assert_int_equal(landlock_allow(-1, 1, -1, "/some/where", LANDLOCK_READ, &err), -1);
	assert_non_null(strstr(err.text, "/some/where"));
	assert_int_equal(landlock_enforce(-1, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules_hold_for_the_caller),
		cmocka_unit_test(test_rules_hold_for_a_plain_user),
		cmocka_unit_test(test_rules_of_every_older_abi_are_accepted),
		cmocka_unit_test(test_rules_for_writes_leave_reading_alone),
		cmocka_unit_test(test_without_landlock_there_is_a_named_error),
		cmocka_unit_test(test_a_bad_descriptor_is_named),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
