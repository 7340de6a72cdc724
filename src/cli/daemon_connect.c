/* The daemon that a command finds, or starts. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/daemon.h"
#include "linux/child.h"

#define START_LOCK "start"
#define START_WAIT_MS 12000 /* longer than one that starts may take */
#define LOOK_EVERY_MS 10

/* Another command may be about to start one: then it is there afterwards. */
static int lock_start(const struct home *home, int *fd, struct error *err)
{
	auto_close int run = -1, lock = -1;
	uint64_t end_ms = clock_monotonic_ms() + START_WAIT_MS;
	const struct timespec pause = { .tv_nsec = LOOK_EVERY_MS * 1000000L };
	if (home_open_directory(home, "run", &run, err))
		return -1;
	home_enter(home);
	lock = openat(
		run, START_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	home_leave(home);
	if (lock < 0)
		return fail_errno(err, "open '%s/run/start'", home->path);
	while (flock(lock, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return fail_errno(err, "lock '%s/run/start'", home->path);
		if (clock_monotonic_ms() >= end_ms)
			return fail(err, ERR_UNAVAILABLE,
				"another command has been starting a daemon for too long");
		nanosleep(&pause, NULL);
	}
	*fd = take_fd(&lock);
	return 0;
}

/* What it said on stderr as an error: "carrel: text", "hint: …". */
static int understand(char *said, struct error *err)
{
	struct str rest = str_from(said), line, text = STR(""), hint = STR("");
	while (str_next(&rest, '\n', &line)) {
		if (str_starts_with(line, "carrel: "))
			text = (struct str){ line.data + 8, line.len - 8 };
		else if (str_starts_with(line, "hint: "))
			hint = (struct str){ line.data + 6, line.len - 6 };
	}
	if (!text.len)
		text = STR("it gave no reason");
	fail(err, ERR_UNAVAILABLE, "start a daemon: %.*s", (int)text.len, text.data);
	return hint.len ? error_hint(err, "%.*s", (int)hint.len, hint.data) : -1;
}

static _Noreturn void become_server(int out)
{
	char serve[] = "serve", background[] = "--background", name[] = "carrel";
	char *argv[] = { name, serve, background, NULL };
	if (child_leave_streams(STDERR_FILENO) || dup2(out, STDERR_FILENO) < 0 ||
		close_range(3, ~0u, CLOSE_RANGE_CLOEXEC))
		_exit(125);
	execv("/proc/self/exe", argv);
	dprintf(STDERR_FILENO, "carrel: execute /proc/self/exe: %s\n", strerror(errno));
	_exit(125);
}

/* `carrel serve --background` returns when the daemon serves, or has failed. */
static int start_server(struct error *err)
{
	char said[2048];
	struct child child;
	if (child_fork(&child, CHILD_PIPE, 0, err))
		return error_context(err, "start a daemon");
	if (child.pid == 0)
		become_server(child.pipe);
	ssize_t len = fd_read_full(child.pipe, said, sizeof said - 1);
	said[len > 0 ? len : 0] = 0;
	int status = child_wait(&child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : understand(said, err);
}

/* Whether one serves the home at its own socket, or is about to, or about to end. */
static bool is_held(const struct home *home)
{
	char socket[4200], own[4200];
	pid_t pid;
	struct error err;
	str_format(own, sizeof own, "%s/" DAEMON_SOCKET, home->path);
	return daemon_find(home, &pid, socket, sizeof socket, &err) == 1 &&
	       (!socket[0] || !strcmp(socket, own));
}

/* Somebody else's daemon that is coming up is as good as ours; one that is ending makes room. */
static int start(const struct home *home, struct client *client, struct error *err)
{
	const struct timespec pause = { .tv_nsec = LOOK_EVERY_MS * 1000000L };
	uint64_t end_ms = clock_monotonic_ms() + START_WAIT_MS;
	auto_close int lock = -1;
	if (lock_start(home, &lock, err))
		return -1;
	while (clock_monotonic_ms() < end_ms) {
		if (!client_connect(client, NULL, err))
			return 0;
		if (err->code != ERR_UNAVAILABLE)
			return -1;
		if (is_held(home)) {
			nanosleep(&pause, NULL);
			continue;
		}
		if (!start_server(err)) {
			client->is_started_here = !client_connect(client, NULL, err);
			return client->is_started_here ? 0 : -1;
		}
		if (!is_held(home))
			return -1;
	}
	return fail_hint(err, ERR_UNAVAILABLE,
		"carrel serve --stop ends it; run/carrel.log in the home is its log",
		"the daemon of '%s' runs but does not listen", home->path);
}

static int open_and_start(struct client *client, struct error *err)
{
	auto_arena struct arena arena;
	struct home home = { .dir = -1 };
	const char *path;
	arena_init(&arena);
	if (home_find_path(&arena, &path, err) || home_open(path, &arena, &home, err))
		return -1;
	int result = start(&home, client, err);
	home_done(&home);
	return result;
}

int daemon_connect(struct client *client, const char *host, bool may_start, struct error *err)
{
	if (!client_connect(client, host, err))
		return 0;
	if (err->code != ERR_UNAVAILABLE)
		return -1;
	if (!host && may_start)
		return open_and_start(client, err);
	return err->hint[0] ? -1 : error_hint(err, "carrel serve starts a daemon");
}
