/* Capabilities: after the drop nothing is left, in every set, and nothing brings one back. */
/* security: sandbox */
#include "linux/capability.h"
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define CAP_CHOWN 0
#define CAP_SETPCAP 8
#define CAP_SYS_ADMIN 21
#define PLAIN_UID 54321

/* Runs `claims` in a child; it returns 0, or the number of the claim that doesn't hold. */
static void expect_in_child(int (*claims)(void))
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(claims());
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* All five sets of /proc/self/status are zero. */
static bool sets_are_empty(void)
{
	char line[256];
	int empty = 0;
	FILE *status = fopen("/proc/self/status", "re");
	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, "Cap", 3) == 0)
			empty += strcmp(strchr(line, ':'), ":\t0000000000000000\n") == 0;
	if (status)
		fclose(status);
	return empty == 5;
}

static int drop_and_look(void)
{
	struct error err;
	if (!capability_is_effective(CAP_SYS_ADMIN))
		return 1;
	if (capability_drop_all(&err) != 0)
		return 2;
	if (!sets_are_empty())
		return 3;
	if (capability_is_effective(CAP_SYS_ADMIN) || capability_is_effective(CAP_CHOWN))
		return 4;
	/* An exec by uid 0 would fill the sets again, were the securebits not locked. */
	if (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != 0xef)
		return 5;
	if (prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) == 0)
		return 6;
	/* Again: nothing to do is no failure. */
	return capability_drop_all(&err) == 0 ? 0 : 7;
}

static int drop_in_user_namespace(void)
{
	if (geteuid() == 0 &&
		(setgroups(0, NULL) != 0 || setresgid(PLAIN_UID, PLAIN_UID, PLAIN_UID) != 0 ||
			setresuid(PLAIN_UID, PLAIN_UID, PLAIN_UID) != 0))
		return 20;
	if (unshare(CLONE_NEWUSER) != 0)
		return 0; /* not on this host; carrel doctor says why */
	return drop_and_look();
}

static int drop_without_privilege(void)
{
	struct error err;
	if (geteuid() == 0 && setresuid(PLAIN_UID, PLAIN_UID, PLAIN_UID) != 0)
		return 20;
	if (prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 1)
		return 0; /* there was nothing to drop in the first place */
	return capability_drop_all(&err) != 0 && err.code == ERR_DENIED &&
			       strstr(err.text, "bounding")
		       ? 0
		       : 1;
}

static void test_root_keeps_nothing(void **state)
{
	if (geteuid() != 0)
		skip();
	expect_in_child(drop_and_look);
}

static void test_a_plain_user_in_a_user_namespace_keeps_nothing(void **state)
{
	expect_in_child(drop_in_user_namespace);
}

static void test_a_bounding_set_that_cannot_be_emptied_is_an_error(void **state)
{
	expect_in_child(drop_without_privilege);
}

static void test_unknown_capabilities_are_not_effective(void **state)
{
	assert_false(capability_is_effective(-1));
	assert_false(capability_is_effective(63));
	assert_false(capability_is_effective(64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_root_keeps_nothing),
		cmocka_unit_test(test_a_plain_user_in_a_user_namespace_keeps_nothing),
		cmocka_unit_test(test_a_bounding_set_that_cannot_be_emptied_is_an_error),
		cmocka_unit_test(test_unknown_capabilities_are_not_effective),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
