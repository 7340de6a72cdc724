#include "cli/daemon/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "linux/child.h"
#include "linux/pidfd.h"

#define START_WAIT_MS 12000 /* longer than a start of the daemon takes */
#define SAID_MAX 8192
#define OPTIONS_MAX 2048
static const struct timespec look_again = { .tv_nsec = 10 * 1000000L };

int daemon_open_file(
	const struct home *home, const char *name, int flags, int *fd, struct error *err)
{
	auto_close int run = -1;
	if (home_open_directory(home, "run", &run, err))
		return -1;
	home_enter(home);
	int opened = openat(run, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	home_leave(home);
	if (opened < 0)
		return fail_errno(err, "open '%s/run/%s'", home->path, name);
	*fd = opened;
	return 0;
}

/* A POSIX lock: its holder can be queried, children don't inherit it, and the kernel releases it
 * with the process. */
static int open_lock(const struct home *home, int *fd, struct error *err)
{
	return daemon_open_file(home, "lock", O_RDWR | O_CREAT, fd, err);
}

/* Finds the process that holds the lock: *held is false when none does; *pid is 0 when it is in
 * another pid namespace. */
static int find_holder(int lock, bool *held, pid_t *pid, struct error *err)
{
	struct flock found = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	if (fcntl(lock, F_GETLK, &found))
		return fail_errno(err, "look for a daemon");
	*held = found.l_type != F_UNLCK;
	*pid = *held && found.l_pid > 0 ? found.l_pid : 0;
	return 0;
}

enum said {
	SAID_PID,
	SAID_SOCKET,
	SAID_OPTIONS,
	SAID_DIGEST,
	SAID_BASE
}; /* lines of the lock's file */

/* "" when it hasn't said so. */
static void read_said(int lock, enum said which, char *out, size_t size)
{
	char text[SAID_MAX];
	ssize_t len = pread(lock, text, sizeof text, 0);
	struct str rest = { text, len > 0 ? (size_t)len : 0 }, line = STR("");
	for (int i = 0; i <= (int)which; i++)
		if (!str_next(&rest, '\n', &line))
			line = STR("");
	str_format(out, size, "%.*s", (int)line.len, line.data);
}

/* Where it says that it listens. */
static void read_socket(int lock, char *out, size_t size)
{
	read_said(lock, SAID_SOCKET, out, size);
}

static int say_held(const struct home *home, int lock, pid_t pid, struct error *err)
{
	char socket[256], own[4200], who[48] = "another daemon";
	read_socket(lock, socket, sizeof socket);
	str_format(own, sizeof own, "%s/" DAEMON_SOCKET, home->path);
	if (pid)
		str_format(who, sizeof who, "another daemon (pid %d)", (int)pid);
	if (!socket[0])
		fail(err, ERR_CONFLICT, "%s is starting to serve '%s'", who, home->path);
	else
		fail(err, ERR_CONFLICT, "%s serves '%s' already, at '%s'", who, home->path, socket);
	if (socket[0] && strcmp(socket, own))
		return error_hint(
			err, "use --host unix:%s, or end it: carrel serve --stop", socket);
	return error_hint(err, "carrel serve --stop ends it");
}

int daemon_lock(const struct home *home, int *lock, struct error *err)
{
	struct flock wanted = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	auto_close int fd = -1;
	bool held = false;
	pid_t pid = 0;
	if (open_lock(home, &fd, err))
		return -1;
	if (fcntl(fd, F_SETLK, &wanted)) {
		if (errno != EAGAIN && errno != EACCES)
			return fail_errno(err, "lock '%s/run/lock'", home->path);
		if (find_holder(fd, &held, &pid, err))
			return -1;
		return say_held(home, fd, pid, err);
	}
	/* What the last one said isn't so any more. */
	if (ftruncate(fd, 0))
		return fail_errno(err, "write '%s/run/lock'", home->path);
	*lock = take_fd(&fd);
	return 0;
}

/* What `carrel serve` was given, but for the way it runs. */
static void list_options(char out[OPTIONS_MAX])
{
	char words[OPTIONS_MAX];
	bool is_behind = false;
	size_t used = 0;
	ssize_t len = fd_read_file(AT_FDCWD, "/proc/self/cmdline", words, sizeof words);
	struct str rest = { words, len > 0 ? (size_t)len : 0 }, word;
	out[0] = 0;
	while (str_next(&rest, '\0', &word)) {
		char shown[OPTIONS_MAX];
		bool is_option = is_behind && word.len && !str_is(word, "--background");
		is_behind |= str_is(word, "serve");
		if (!is_option)
			continue;
		str_printable(shown, sizeof shown, word);
		str_format(out + used, OPTIONS_MAX - used, " %s", shown);
		used = strlen(out);
	}
}

int daemon_announce(int lock, const struct daemon_said *said, struct error *err)
{
	char text[SAID_MAX], options[OPTIONS_MAX];
	list_options(options);
	if (!str_format(text, sizeof text, "%d\n%s\n%s\n%s\n%s\n", (int)getpid(), said->socket,
		    options, said->digest, said->base))
		return fail(err, ERR_LIMIT, "the path of the socket is too long");
	/* After a reload it may be shorter than what it replaces. */
	if (pwrite(lock, text, strlen(text), 0) != (ssize_t)strlen(text) ||
		ftruncate(lock, (off_t)strlen(text)))
		return fail_errno(err, "write 'run/lock'");
	return 0;
}

void daemon_retire(int lock)
{
	if (lock >= 0)
		(void)!ftruncate(lock, 0);
}

int daemon_find(const struct home *home, pid_t *pid, char *socket, size_t size, struct error *err)
{
	auto_close int lock = -1;
	bool held;
	if (open_lock(home, &lock, err) || find_holder(lock, &held, pid, err))
		return -1;
	socket[0] = 0;
	if (held)
		read_socket(lock, socket, size);
	return held;
}

/* The lock may name a process that is not its owner any more: a process that shares the table of
 * descriptors keeps the lock when the owner ends. Without this check, the owner of a home could
 * make root stop any process. */
static bool is_daemon(pid_t pid)
{
	char path[32], words[4096];
	struct str rest, program, verb;
	str_format(path, sizeof path, "/proc/%d/cmdline", (int)pid);
	ssize_t len = fd_read_file(AT_FDCWD, path, words, sizeof words);
	rest = (struct str){ words, len > 0 ? (size_t)len : 0 };
	return str_next(&rest, '\0', &program) && str_next(&rest, '\0', &verb) &&
	       str_is(verb, "serve");
}

int daemon_look(const char *path, struct arena *arena, pid_t *pid, struct daemon_said *said,
	text_list *words, struct error *err)
{
	const char *lock_path = arena_printf(arena, "%s/run/lock", path);
	auto_close int lock = open(lock_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const char **const lines[] = { [SAID_SOCKET] = &said->socket,
		[SAID_DIGEST] = &said->digest,
		[SAID_BASE] = &said->base };
	char proc[32], line[SAID_MAX];
	bool held;
	*pid = 0;
	if (lock < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : fail_errno(err, "open '%s'", lock_path);
	if (find_holder(lock, &held, pid, err))
		return -1;
	if (!*pid || !is_daemon(*pid)) {
		*pid = 0;
		return 0;
	}
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		if (lines[i]) {
			read_said(lock, (enum said)i, line, sizeof line);
			*lines[i] = arena_text(arena, line);
		}
	str_format(proc, sizeof proc, "/proc/%d/cmdline", (int)*pid);
	ssize_t len = fd_read_file(AT_FDCWD, proc, line, sizeof line);
	struct str rest = { line, len > 0 ? (size_t)len : 0 }, word;
	while (str_next(&rest, '\0', &word))
		if (word.len || rest.data)
			vec_push(arena, words, arena_bytes(arena, word.data, word.len));
	return 0;
}

/* The daemon's process, to be signaled; *pid 0: there is none. *process may be -1 then: it has just
 * ended. */
static int open_daemon(const struct home *home, pid_t *found, int *process, struct error *err)
{
	auto_close int lock = -1, opened = -1;
	bool held;
	pid_t pid, again;
	if (open_lock(home, &lock, err) || find_holder(lock, &held, &pid, err))
		return -1;
	*found = 0;
	if (!held)
		return 0;
	if (!pid)
		return fail_hint(err, ERR_UNAVAILABLE,
			"use carrel in the container or namespace where it was started",
			"the daemon of '%s' is in another pid namespace", home->path);
	if (pidfd_open_process(pid, &opened, err)) {
		*found = pid;
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	}
	/* Is that still the process that had the lock when we asked? */
	if (find_holder(lock, &held, &again, err))
		return -1;
	if (held && again == pid && !is_daemon(pid))
		return fail(err, ERR_DENIED,
			"process %d holds the lock of '%s' but is not a daemon, so it was not "
			"signaled",
			(int)pid, home->path);
	*found = pid;
	if (held && again == pid)
		*process = take_fd(&opened);
	return 0;
}

int daemon_stop(const struct home *home, uint64_t timeout_ms, pid_t *stopped, struct error *err)
{
	auto_close int process = -1;
	pid_t pid;
	if (open_daemon(home, &pid, &process, err))
		return -1;
	if (process < 0) {
		*stopped = pid;
		return 0;
	}
	if (pidfd_signal(process, SIGTERM, err))
		return error_context(err, "stop the daemon (pid %d)", (int)pid);
	struct pollfd ended = { .fd = process, .events = POLLIN };
	int ready;
	do
		ready = poll(&ended, 1, (int)timeout_ms);
	while (ready < 0 && errno == EINTR);
	if (ready != 1)
		return fail_hint(err, ERR_UNAVAILABLE,
			"see run/carrel.log in the home; kill -9 ends the daemon at once",
			"the daemon (pid %d) of '%s' still runs after %u s", (int)pid, home->path,
			(unsigned)(timeout_ms / 1000));
	*stopped = pid;
	return 0;
}

/* What the launcher wrote about its last reload (launch/reload.c), or "". */
static void read_reload(const struct home *home, char *text, size_t size)
{
	struct error none;
	auto_close int fd = -1;
	text[0] = 0;
	if (daemon_open_file(home, "reload", O_RDONLY, &fd, &none))
		return;
	ssize_t len = fd_read_full(fd, text, size - 1);
	text[len > 0 ? len : 0] = 0;
}

static int judge_reload(const char *text, pid_t pid, struct error *err)
{
	struct str rest = str_trim(str_from(text)), word;
	uint64_t who, count;
	bool is_whole = str_next(&rest, ' ', &word) && str_to_u64(word, &who) &&
			who == (uint64_t)pid && str_next(&rest, ' ', &word) &&
			str_to_u64(word, &count) && rest.len;
	if (!is_whole)
		return fail(err, ERR_FAILED, "the daemon (pid %d) wrote no result", (int)pid);
	if (str_is(rest, "ok"))
		return 0;
	return fail_hint(err, ERR_FAILED,
		"the daemon goes on as it was; see run/carrel.log in the home",
		"the daemon was not reloaded: %.*s", (int)rest.len - 7, rest.data + 7);
}

int daemon_reload(const struct home *home, uint64_t timeout_ms, pid_t *pid, struct error *err)
{
	char before[1024], text[1024];
	auto_close int process = -1;
	uint64_t end_ms = clock_monotonic_ms() + timeout_ms;
	read_reload(home, before, sizeof before);
	if (open_daemon(home, pid, &process, err))
		return -1;
	if (process < 0) {
		*pid = 0;
		return 0;
	}
	if (pidfd_signal(process, SIGHUP, err))
		return error_context(err, "reload the daemon (pid %d)", (int)*pid);
	while (clock_monotonic_ms() < end_ms) {
		struct pollfd ended = { .fd = process, .events = POLLIN };
		read_reload(home, text, sizeof text);
		if (strcmp(text, before) != 0)
			return judge_reload(text, *pid, err);
		if (poll(&ended, 1, 10) == 1)
			return fail_hint(err, ERR_FAILED, "see run/carrel.log in the home",
				"the daemon (pid %d) ended while it was reloaded", (int)*pid);
	}
	return fail_hint(err, ERR_UNAVAILABLE, "see run/carrel.log in the home",
		"the daemon (pid %d) was not reloaded within %u s", (int)*pid,
		(unsigned)(timeout_ms / 1000));
}

/* -- the daemon that a command finds, or starts -- */

/* Waits for another command that may be starting the daemon. */
static int lock_start(const struct home *home, int *fd, struct error *err)
{
	auto_close int lock = -1;
	uint64_t end_ms = clock_monotonic_ms() + START_WAIT_MS;
	if (daemon_open_file(home, "start", O_RDWR | O_CREAT, &lock, err))
		return -1;
	while (flock(lock, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return fail_errno(err, "lock '%s/run/start'", home->path);
		if (clock_monotonic_ms() >= end_ms)
			return fail(err, ERR_UNAVAILABLE,
				"another command has been starting a daemon for too long");
		nanosleep(&look_again, NULL);
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
	unsetenv("CARREL_TOKEN"); /* the caller's: the daemon outlives the caller */
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

/* The options of the last daemon, if it was killed: one that ends in order takes them back. The
 * daemon that a command starts has none, and a port that is closed since looks like a fault of the
 * network to those who used it. */
static void find_lost(const struct home *home, char out[OPTIONS_MAX])
{
	struct error ignored;
	auto_close int lock = -1;
	out[0] = 0;
	if (!open_lock(home, &lock, &ignored))
		read_said(lock, SAID_OPTIONS, out, OPTIONS_MAX);
}

static void say_lost(const char *options)
{
	char shown[OPTIONS_MAX];
	str_printable(shown, sizeof shown, str_from(options));
	if (!options[0])
		return;
	cli_say("the daemon was killed, and another one was started without its options: carrel "
		"serve%s",
		shown);
	fprintf(stderr,
		"hint: carrel serve --stop, then start it so again; serve in config.yaml holds for "
		"every daemon\n");
}

/* Uses a daemon that another process starts meanwhile; waits for the end of a daemon that stops. */
static int start(const struct home *home, struct client *client, struct error *err)
{
	uint64_t end_ms = clock_monotonic_ms() + START_WAIT_MS;
	char lost[OPTIONS_MAX];
	auto_close int lock = -1;
	if (lock_start(home, &lock, err))
		return -1;
	find_lost(home, lost);
	while (clock_monotonic_ms() < end_ms) {
		if (!client_connect(client, NULL, err))
			return 0;
		if (err->code != ERR_UNAVAILABLE)
			return -1;
		if (is_held(home)) {
			nanosleep(&look_again, NULL);
			continue;
		}
		if (!start_server(err)) {
			client->is_started_here = !client_connect(client, NULL, err);
			say_lost(lost);
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
	auto_arena struct arena arena = { 0 };
	struct home home = { .dir = -1 };
	const char *path;
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
