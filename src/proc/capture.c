#include "proc/capture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

const char *capture_find(const char *name, struct arena *arena)
{
	const char *path = getenv("PATH");
	struct str rest = str_from(path ? path : "/usr/local/bin:/usr/bin:/bin"), dir;
	struct stat info;
	while (str_next(&rest, ':', &dir)) {
		const char *candidate =
			arena_printf(arena, "%.*s/%s", (int)dir.len, dir.data, name);
		if (dir.len > 0 && dir.data[0] == '/' && access(candidate, X_OK) == 0 &&
			stat(candidate, &info) == 0 && S_ISREG(info.st_mode))
			return candidate;
	}
	return NULL;
}

static void child_main(const char *path, char *const argv[], int fd, int to)
{
	setpgid(0, 0);
	if (!child_leave_streams(fd) && dup2(to, fd) >= 0)
		execv(path, argv);
	_exit(127);
}

void capture_start(struct capture *capture, const char *path, char *const argv[], int fd)
{
	struct error err;
	*capture = (struct capture){ .child = CHILD_NONE, .exit_code = -1 };
	if (child_fork(&capture->child, CHILD_PIPE | CHILD_PIPE_ASYNC | CHILD_PIDFD, SIGKILL,
		    &err) == 0 &&
		capture->child.pid == 0)
		child_main(path, argv, fd, capture->child.pipe);
}

/* Reads the available output; closes the pipe at end of file, so that it isn't polled any more. */
static void drain(struct capture *capture)
{
	char dropped[4096] = "";
	while (capture->child.pipe >= 0) {
		size_t room = sizeof capture->text - 1 - capture->len;
		ssize_t got =
			read(capture->child.pipe, room > 0 ? capture->text + capture->len : dropped,
				room > 0 ? room : sizeof dropped);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0)
			fd_close(&capture->child.pipe);
		else if (room > 0)
			capture->len += (size_t)got;
	}
}

void capture_finish(struct capture *capture, uint64_t deadline_ms)
{
	bool ended = false;
	while (capture->child.pid > 0 && !ended) {
		uint64_t now = clock_monotonic_ms();
		struct pollfd fds[] = { { capture->child.pidfd, POLLIN, 0 },
			{ capture->child.pipe, POLLIN, 0 } };
		if (now >= deadline_ms)
			break;
		if (poll(fds, 2, (int)(deadline_ms - now)) < 0 && errno != EINTR)
			break;
		ended = fds[0].revents != 0;
		drain(capture);
	}
	if (capture->child.pid > 0 && !ended)
		kill(-capture->child.pid, SIGKILL);
	int status = ended ? child_wait(&capture->child) : child_kill(&capture->child);
	if (ended)
		capture->exit_code =
			WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	capture->text[capture->len] = '\0';
}
