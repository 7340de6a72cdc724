#include "cli/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"
#include "linux/pidfd.h"

#define RUN "run"
#define LOCK "lock"

/* The lock is one of POSIX: the kernel says whose it is, children don't inherit it, and it goes
 * with its process. */
static int open_lock(const struct home *home, int *fd, struct error *err)
{
	auto_close int run = -1;
	if (home_open_directory(home, RUN, &run, err))
		return -1;
	home_enter(home);
	int opened =
		openat(run, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	home_leave(home);
	if (opened < 0)
		return fail_errno(err, "open '%s/run/lock'", home->path);
	*fd = opened;
	return 0;
}

/* Whose it is: *held is false when it is nobody's; pid 0 when that process isn't of our pid
 * namespace. */
static int find_holder(int lock, bool *held, pid_t *pid, struct error *err)
{
	struct flock found = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	if (fcntl(lock, F_GETLK, &found))
		return fail_errno(err, "look for a daemon");
	*held = found.l_type != F_UNLCK;
	*pid = *held && found.l_pid > 0 ? found.l_pid : 0;
	return 0;
}

/* Where it says that it listens, "" when it hasn't said yet. */
static void read_socket(int lock, char *out, size_t size)
{
	char text[4400];
	struct str pid, socket, rest;
	ssize_t len = pread(lock, text, sizeof text, 0);
	out[0] = 0;
	if (len <= 0)
		return;
	str_cut((struct str){ text, (size_t)len }, '\n', &pid, &rest);
	str_cut(rest, '\n', &socket, &rest);
	str_format(out, size, "%.*s", (int)socket.len, socket.data);
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

int daemon_announce(int lock, const char *socket_path, struct error *err)
{
	char text[4400];
	if (!str_format(text, sizeof text, "%d\n%s\n", (int)getpid(), socket_path))
		return fail(err, ERR_LIMIT, "the path of the socket is too long");
	if (pwrite(lock, text, strlen(text), 0) != (ssize_t)strlen(text))
		return fail_errno(err, "write 'run/lock'");
	return 0;
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

/* The lock's owner by number may be somebody else by now: who shares a table of descriptors with
 * him keeps the lock when he ends. A home's owner could have root end anything so. */
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

int daemon_stop(const struct home *home, uint64_t timeout_ms, pid_t *stopped, struct error *err)
{
	auto_close int lock = -1, process = -1;
	bool held;
	pid_t pid, again;
	if (open_lock(home, &lock, err) || find_holder(lock, &held, &pid, err))
		return -1;
	if (!held) {
		*stopped = 0;
		return 0;
	}
	if (!pid)
		return fail_hint(err, ERR_UNAVAILABLE,
			"stop it in the container or namespace where it was started",
			"the daemon of '%s' is in another pid namespace", home->path);
	if (pidfd_open_process(pid, &process, err)) {
		if (err->code != ERR_NOT_FOUND)
			return -1;
		*stopped = pid;
		return 0;
	}
	/* Is that still the process that had the lock when we asked? */
	if (find_holder(lock, &held, &again, err))
		return -1;
	if (held && again == pid && !is_daemon(pid))
		return fail(err, ERR_DENIED,
			"process %d holds the lock of '%s' but is not a daemon, so it was not "
			"stopped",
			(int)pid, home->path);
	if (held && again == pid && pidfd_signal(process, SIGTERM, err))
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
