/* Daemons: one a home, found by its lock, started by whoever needs it first, stopped. The server of
 * these tests is the test itself, when it is called as carrel is: with `serve --background`. */
#include "cli/daemon/daemon.h"
#include "cli/daemon/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "unit.h"

static char directory[64];

/* ---- the server ---- */

/* Serves until it is killed; a byte goes to `ready` once it does. */
static _Noreturn void serve(int ready)
{
	struct arena arena;
	struct home home;
	struct listener listener = LISTENER_NONE;
	struct error err;
	const char *path;
	int lock;
	arena_init(&arena);
	if (home_find_path(&arena, &path, &err) || home_open(path, &arena, &home, &err) ||
		daemon_lock(&home, &lock, &err) || listen_open(&home, NULL, &listener, &err) ||
		daemon_announce(lock, &(struct daemon_said){ listener.path, "", "/" }, &err)) {
		dprintf(STDERR_FILENO, "carrel: %s\n", err.text);
		_exit(125);
	}
	if (write(ready, "r", 1) == 1)
		for (;;)
			pause();
	_exit(125);
}

/* As cli/daemon/serve.c does it. CARREL_TEST_FAILS: what it says instead. */
static int be_server(void)
{
	const char *failure = getenv("CARREL_TEST_FAILS");
	int ready[2];
	char byte;
	if (failure) {
		dprintf(STDERR_FILENO, "%s\n", failure);
		return 125;
	}
	if (pipe2(ready, O_CLOEXEC))
		return 125;
	if (fork() == 0) {
		int null = open("/dev/null", O_RDWR);
		close(ready[0]);
		setsid();
		dup2(null, STDERR_FILENO);
		serve(ready[1]);
	}
	close(ready[1]);
	return read(ready[0], &byte, 1) == 1 ? 0 : 125;
}

/* ---- the tests ---- */

static int set_up(void **state)
{
	char path[96];
	str_copy(directory, sizeof directory, "/var/tmp/test-daemon.XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	str_format(path, sizeof path, "%s/home", directory);
	setenv("CARREL_HOME", path, 1);
	unsetenv("CARREL_TEST_FAILS");
	return 0;
}

static void open_home(struct arena *arena, struct home *home)
{
	struct error err;
	const char *path;
	arena_init(arena);
	assert_int_equal(home_find_path(arena, &path, &err), 0);
	assert_int_equal(home_open(path, arena, home, &err), 0);
}

static pid_t stop(void)
{
	struct arena arena;
	struct home home;
	struct error err = { 0 };
	pid_t pid = -1;
	open_home(&arena, &home);
	if (daemon_stop(&home, 60000, &pid, &err))
		fail_msg("%s", err.text);
	home_done(&home);
	arena_done(&arena);
	return pid;
}

static int tear_down(void **state)
{
	struct error err;
	auto_close int above = open("/var/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	stop();
	return path_remove_tree(above, path_basename(directory), &err);
}

static void a_lock_names_who_holds_it(void **state)
{
	struct arena arena;
	struct home home;
	struct error err;
	char text[64], socket[256];
	int lock = -1, to_us[2];
	pid_t found;
	open_home(&arena, &home);
	assert_int_equal(pipe(to_us), 0);
	pid_t child = fork();
	if (child == 0) {
		if (!daemon_lock(&home, &lock, &err) && write(to_us[1], "l", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(to_us[0], text, 1), 1);
	assert_int_equal(daemon_lock(&home, &lock, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	str_format(text, sizeof text, "pid %d", (int)child);
	assert_non_null(strstr(err.text, text));
	assert_int_equal(daemon_find(&home, &found, socket, sizeof socket, &err), 1);
	assert_int_equal(found, child);
	assert_string_equal(socket, "");
	/* However it went, the lock is free then. */
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(daemon_find(&home, &found, socket, sizeof socket, &err), 0);
	assert_int_equal(daemon_lock(&home, &lock, &err), 0);
	assert_int_equal(
		daemon_announce(lock, &(struct daemon_said){ "/some/where", "", "/" }, &err), 0);
	close(lock);
	close(to_us[0]);
	close(to_us[1]);
	home_done(&home);
	arena_done(&arena);
}

static void a_home_without_a_daemon_has_nothing_to_stop(void **state)
{
	assert_int_equal(stop(), 0);
}

static void nobody_is_started_who_isnt_wanted(void **state)
{
	struct client client;
	struct error err;
	char elsewhere[128];
	assert_int_equal(daemon_connect(&client, NULL, false, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_true(err.hint[0]);
	str_format(elsewhere, sizeof elsewhere, "unix:%s/other", directory);
	assert_int_equal(daemon_connect(&client, elsewhere, true, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(stop(), 0);
}

static void the_first_to_need_one_starts_it(void **state)
{
	struct client client;
	struct error err = { 0 };
	if (daemon_connect(&client, NULL, true, &err))
		fail_msg("%s", err.text);
	assert_true(client.is_started_here);
	client_done(&client);
	assert_int_equal(daemon_connect(&client, NULL, true, &err), 0);
	assert_false(client.is_started_here);
	client_done(&client);
	/* What a crash leaves is no obstacle. */
	pid_t first = stop();
	assert_true(first > 0);
	assert_int_equal(daemon_connect(&client, NULL, true, &err), 0);
	assert_true(client.is_started_here);
	client_done(&client);
	assert_true(stop() != first);
}

static void ten_at_once_start_one(void **state)
{
	int started = 0, failed = 0, status;
	for (int i = 0; i < 10; i++)
		if (fork() == 0) {
			struct client client;
			struct error err;
			if (daemon_connect(&client, NULL, true, &err)) {
				dprintf(STDERR_FILENO, "%s\n", err.text);
				_exit(2);
			}
			_exit(client.is_started_here);
		}
	for (int i = 0; i < 10; i++) {
		assert_true(wait(&status) > 0);
		started += WIFEXITED(status) && WEXITSTATUS(status) == 1;
		failed += !WIFEXITED(status) || WEXITSTATUS(status) > 1;
	}
	assert_int_equal(failed, 0);
	assert_int_equal(started, 1);
}

static void one_that_doesnt_come_up_says_why(void **state)
{
	struct client client;
	struct error err;
	setenv("CARREL_TEST_FAILS", "noise\ncarrel: no room for it\nhint: make some", 1);
	assert_int_equal(daemon_connect(&client, NULL, true, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "no room for it"));
	assert_string_equal(err.hint, "make some");
	setenv("CARREL_TEST_FAILS", "", 1);
	assert_int_equal(daemon_connect(&client, NULL, true, &err), -1);
	assert_true(err.text[0]);
}

/* Somebody's own `carrel serve` that is about to listen is waited for. */
static void one_that_is_coming_up_is_waited_for(void **state)
{
	struct arena arena;
	struct home home;
	struct error err = { 0 };
	struct client client;
	int to_us[2], from_us[2];
	char byte;
	open_home(&arena, &home);
	assert_int_equal(pipe(to_us), 0);
	assert_int_equal(pipe(from_us), 0);
	pid_t server = fork();
	if (server == 0) {
		struct listener listener = LISTENER_NONE;
		int lock;
		close(from_us[1]);
		if (daemon_lock(&home, &lock, &err) || write(to_us[1], "l", 1) != 1)
			_exit(1);
		/* The end of file says that the other one is on its way; it has to wait then. */
		(void)!read(from_us[0], &byte, 1);
		poll(NULL, 0, 50);
		if (listen_open(&home, NULL, &listener, &err) ||
			daemon_announce(
				lock, &(struct daemon_said){ listener.path, "", "/" }, &err))
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(to_us[0], &byte, 1), 1);
	close(from_us[1]);
	if (daemon_connect(&client, NULL, true, &err))
		fail_msg("%s", err.text);
	assert_false(client.is_started_here);
	client_done(&client);
	kill(server, SIGKILL);
	assert_int_equal(waitpid(server, NULL, 0), server);
	close(to_us[0]);
	close(to_us[1]);
	close(from_us[0]);
	home_done(&home);
	arena_done(&arena);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "serve"))
		return be_server();
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_lock_names_who_holds_it),
		TEST(a_home_without_a_daemon_has_nothing_to_stop),
		TEST(nobody_is_started_who_isnt_wanted),
		TEST(the_first_to_need_one_starts_it),
		TEST(ten_at_once_start_one),
		TEST(one_that_doesnt_come_up_says_why),
		TEST(one_that_is_coming_up_is_waited_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
