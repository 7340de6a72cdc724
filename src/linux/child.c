#include "linux/child.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "linux/pidfd.h"

int child_fork(struct child *child, unsigned flags, int death_signal, struct error *err)
{
	auto_close int from = -1, to = -1;
	pid_t parent = getpid();
	int ends[2];
	*child = CHILD_NONE;
	if (flags & CHILD_PIPE) {
		if (pipe2(ends, O_CLOEXEC))
			return fail_errno(err, "make a pipe");
		from = ends[0];
		to = ends[1];
		if (flags & CHILD_PIPE_ASYNC && fd_set_nonblocking(from))
			return fail_errno(err, "prepare a pipe");
	}
	child->pid = fork();
	if (child->pid < 0)
		return fail_errno(err, "start a process");
	if (child->pid == 0) {
		if (death_signal && (prctl(PR_SET_PDEATHSIG, death_signal) || getppid() != parent))
			_exit(127);
		child->pipe = take_fd(&to);
		return 0;
	}
	child->pipe = take_fd(&from);
	if (flags & CHILD_PIDFD && pidfd_open_process(child->pid, &child->pidfd, err)) {
		child_kill(child);
		return -1;
	}
	return 0;
}

int child_wait(struct child *child)
{
	int status = -1;
	pid_t ended;
	if (child->pid <= 0)
		return -1;
	do
		ended = waitpid(child->pid, &status, 0);
	while (ended < 0 && errno == EINTR);
	fd_close(&child->pipe);
	fd_close(&child->pidfd);
	*child = CHILD_NONE;
	return ended < 0 ? -1 : status;
}

int child_kill(struct child *child)
{
	if (child->pid > 0)
		kill(child->pid, SIGKILL);
	return child_wait(child);
}

int child_leave_streams(int kept)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 3; i++)
		if (i != kept && dup2(null, i) < 0)
			return -1;
	return 0;
}

void child_reset_signals(void)
{
	sigset_t none;
	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int child_limit(int resource, uint64_t most, struct error *err)
{
	struct rlimit now;
	if (getrlimit(resource, &now) < 0)
		return fail_errno(err, "read resource limit %d", resource);
	rlim_t limit = now.rlim_max < most ? now.rlim_max : (rlim_t)most;
	if (setrlimit(resource, &(struct rlimit){ limit, limit }) < 0)
		return fail_errno(err, "set resource limit %d", resource);
	return 0;
}

int child_limit_data(uint64_t bytes, struct error *err)
{
	char text[256];
	unsigned long pages = 0;
	if (fd_read_file(AT_FDCWD, "/proc/self/statm", text, sizeof text) < 0 ||
		sscanf(text, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
		return fail_errno(err, "read '/proc/self/statm'");
	if (IS_SANITIZED)
		return 0;
	return child_limit(RLIMIT_DATA, pages * (uint64_t)sysconf(_SC_PAGESIZE) + bytes, err);
}
