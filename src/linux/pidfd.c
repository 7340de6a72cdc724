#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "linux/pidfd.h"

#define PIDFD_ID_TYPE 3 /* P_PIDFD, which older libc headers lack */

int pidfd_open_process(pid_t pid, int *fd, struct error *err)
{
	long made = syscall(SYS_pidfd_open, pid, 0);
	if (made < 0)
		return fail_errno_code(err, errno == ESRCH ? ERR_NOT_FOUND : ERR_FAILED,
			"open process %d", (int)pid);
	*fd = (int)made;
	return 0;
}

bool pidfd_is_valid(int fd)
{
	return syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0 ||
	       (errno != EBADF && errno != EINVAL && errno != ENOSYS);
}

int pidfd_signal(int fd, int signo, struct error *err)
{
	if (syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0) < 0 && errno != ESRCH)
		return fail_errno(err, "send signal %d to a process", signo);
	return 0;
}

static uint64_t to_us(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

static int to_wait_status(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return (info->si_status & 0xff) << 8;
	return info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

int pidfd_reap(int fd, bool wait, int *status, struct pidfd_usage *usage, struct error *err)
{
	/* The system call, unlike libc's waitid, gives the usage of just this child. */
	siginfo_t info = { 0 };
	struct rusage used;
	long result;
	do {
		result = syscall(SYS_waitid, PIDFD_ID_TYPE, fd, &info,
			WEXITED | __WALL | (wait ? 0 : WNOHANG), &used);
	} while (result < 0 && errno == EINTR);
	/* A descriptor that doesn't block answers EAGAIN where WNOHANG would answer 0. */
	if (result < 0 && errno == EAGAIN && !wait)
		return 0;
	if (result < 0)
		return fail_errno(err, "wait for a process");
	if (info.si_pid == 0)
		return 0;
	*status = to_wait_status(&info);
	if (usage)
		*usage = (struct pidfd_usage){ to_us(&used.ru_utime), to_us(&used.ru_stime),
			(uint64_t)used.ru_maxrss };
	return 1;
}
