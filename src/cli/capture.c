#include "cli/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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

static void child_main(pid_t parent, const char *path, char *const argv[], int fd, int to)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before that */
		_exit(127);
	setpgid(0, 0);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i <= 2; i++)
		if (dup2(i == fd ? to : null, i) < 0)
			_exit(127);
	execv(path, argv);
	_exit(127);
}

void capture_start(struct capture *capture, const char *path, char *const argv[], int fd)
{
	int ends[2];

	*capture = (struct capture){ .pid = -1, .from = -1, .pidfd = -1, .exit_code = -1 };
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		/* Only our end is non-blocking: the program must not see EAGAIN. */
		fcntl(ends[1], F_SETFL, 0);
		child_main(parent, path, argv, fd, ends[1]);
	}
	close(ends[1]);
	capture->from = ends[0];
	capture->pid = pid;
	if (pid > 0)
		capture->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Takes what is there; the pipe is closed at its end, so that it isn't polled any more. */
static void drain(struct capture *capture)
{
	char dropped[4096] = "";

	while (capture->from >= 0) {
		size_t room = sizeof capture->text - 1 - capture->len;
		ssize_t got = read(capture->from, room > 0 ? capture->text + capture->len : dropped,
			room > 0 ? room : sizeof dropped);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0)
			fd_close(&capture->from);
		else if (room > 0)
			capture->len += (size_t)got;
	}
}

void capture_finish(struct capture *capture, uint64_t deadline_ms)
{
	bool ended = false;
	int status;

	while (capture->pid > 0 && !ended) {
		uint64_t now = clock_monotonic_ms();
		struct pollfd fds[] = { { capture->pidfd, POLLIN, 0 },
			{ capture->from, POLLIN, 0 } };

		if (now >= deadline_ms)
			break;
		if (poll(fds, 2, (int)(deadline_ms - now)) < 0 && errno != EINTR)
			break;
		ended = fds[0].revents != 0;
		drain(capture);
	}
	if (capture->pid > 0) {
		if (!ended) {
			kill(-capture->pid, SIGKILL);
			kill(capture->pid, SIGKILL);
		}
		while (waitpid(capture->pid, &status, 0) < 0 && errno == EINTR)
			;
		if (ended)
			capture->exit_code =
				WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	capture->text[capture->len] = '\0';
	capture->pid = -1;
	fd_close(&capture->from);
	fd_close(&capture->pidfd);
}
