/* home.c: where the home is, who owns it, and that root works in it with its owner's rights only.
 */
/* security: files */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/path.h"
#include "linux/home.h"
#include "unit.h"

static char area[64];

static int make_area(void **state)
{
	memcpy(area, "/tmp/carrel-test-home-XXXXXX", 29);
	return mkdtemp(area) && !chmod(area, 0755) ? 0 : -1;
}

static int remove_area(void **state)
{
	struct error err;
	int tmp = open("/tmp", O_PATH | O_DIRECTORY);
	int failed = path_remove_tree(tmp, path_basename(area), &err);
	close(tmp);
	return failed;
}

static void the_path_comes_from_the_environment(void **state)
{
	auto_arena struct arena arena;
	struct error err;
	const char *path;
	arena_init(&arena);
	setenv("CARREL_HOME", "/a/b/../c", 1);
	assert_int_equal(home_find_path(&arena, &path, &err), 0);
	assert_string_equal(path, "/a/c");
	setenv("CARREL_HOME", "here", 1);
	assert_int_equal(home_find_path(&arena, &path, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.text, "'here'"));
	unsetenv("CARREL_HOME");
	setenv("XDG_DATA_HOME", "/data", 1);
	setenv("HOME", "/home/me", 1);
	assert_int_equal(home_find_path(&arena, &path, &err), 0);
	assert_string_equal(path, geteuid() ? "/data/carrel" : "/var/lib/carrel");
	setenv("XDG_DATA_HOME", "relative", 1);
	assert_int_equal(home_find_path(&arena, &path, &err), 0);
	assert_string_equal(path, geteuid() ? "/home/me/.local/share/carrel" : "/var/lib/carrel");
}

static void it_is_made_with_what_is_above_it(void **state)
{
	auto_arena struct arena arena;
	struct error err;
	struct home home;
	struct stat st;
	arena_init(&arena);
	const char *path = arena_printf(&arena, "%s/x/y/carrel", area);
	assert_int_equal(home_open(path, &arena, &home, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_uid, home.uid);
	assert_int_equal(home.is_foreign, geteuid() == 0);
	int fd = -1;
	assert_int_equal(home_open_directory(&home, "layers", &fd, &err), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_uid, home.uid);
	close(fd);
	home_done(&home);
}

/* Whoever can write in the home can put a link there: root must not follow it with root's rights.
 */
static void root_has_only_the_owners_rights_there(void **state)
{
	auto_arena struct arena arena;
	struct error err;
	struct home home;
	arena_init(&arena);
	if (geteuid())
		skip();
	const char *path = arena_printf(&arena, "%s/home", area);
	const char *secret = arena_printf(&arena, "%s/secret", area);
	close(open(secret, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(home_open(path, &arena, &home, &err), 0);
	home_enter(&home);
	assert_int_equal(open(secret, O_WRONLY | O_CLOEXEC), -1);
	int fd = openat(home.dir, "made", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	{
		auto_leave const struct home *inner = home_entered(&home);
		assert_int_equal(open(secret, O_WRONLY | O_CLOEXEC), -1);
	}
	assert_int_equal(open(secret, O_WRONLY | O_CLOEXEC), -1); /* the outer one still holds */
	home_leave(&home);
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_uid, home.uid);
	close(fd);
	fd = open(secret, O_WRONLY | O_CLOEXEC); /* and all of root's come back */
	assert_true(fd >= 0);
	close(fd);
	home_leave_group(); /* what is made elsewhere is root's then, as to the group too */
	const char *mine = arena_printf(&arena, "%s/mine", area);
	fd = open(mine, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_gid, getegid());
	close(fd);
	home_done(&home);
}

static void a_home_of_somebody_else_is_refused(void **state)
{
	auto_arena struct arena arena;
	struct error err;
	struct home home;
	arena_init(&arena);
	const char *path = "/usr";
	if (!geteuid()) {
		path = arena_printf(&arena, "%s/theirs", area);
		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(chown(path, 12345, 12345), 0);
	}
	assert_int_equal(home_open(path, &arena, &home, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
}

static void a_home_that_everybody_may_write_to_is_refused(void **state)
{
	auto_arena struct arena arena;
	struct error err;
	struct home home;
	arena_init(&arena);
	const char *path = arena_printf(&arena, "%s/open", area);
	assert_int_equal(home_open(path, &arena, &home, &err), 0);
	home_done(&home);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(home_open(path, &arena, &home, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
}

/* A service's configuration is often there before its first start. */
static void a_home_may_begin_with_its_configuration(void **state)
{
	auto_arena struct arena arena;
	struct error err;
	struct home home;
	struct stat st;
	arena_init(&arena);
	const char *path = arena_printf(&arena, "%s/made", area);
	const char *config = arena_printf(&arena, "%s/made/config.yaml", area);
	assert_int_equal(mkdir(path, 0755), 0);
	close(open(config, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(home_open(path, &arena, &home, &err), 0);
	assert_int_equal(stat(config, &st), 0);
	/* Root's stays root's, and the owner can read it. */
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(st.st_gid, home.gid);
	assert_int_equal(st.st_mode & 07777, geteuid() ? 0600 : 0640);
	home_done(&home);
	if (geteuid())
		return;
	const char *other = arena_printf(&arena, "%s/other", area);
	assert_int_equal(mkdir(other, 0755), 0);
	close(open(arena_printf(&arena, "%s/other/mine", area), O_CREAT | O_WRONLY, 0600));
	assert_int_equal(home_open(other, &arena, &home, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_path_comes_from_the_environment),
		cmocka_unit_test_setup_teardown(
			it_is_made_with_what_is_above_it, make_area, remove_area),
		cmocka_unit_test_setup_teardown(
			root_has_only_the_owners_rights_there, make_area, remove_area),
		cmocka_unit_test_setup_teardown(
			a_home_of_somebody_else_is_refused, make_area, remove_area),
		cmocka_unit_test_setup_teardown(
			a_home_that_everybody_may_write_to_is_refused, make_area, remove_area),
		cmocka_unit_test_setup_teardown(
			a_home_may_begin_with_its_configuration, make_area, remove_area),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
