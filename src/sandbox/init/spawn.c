#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <linux/futex.h>
#include "sandbox/init/protocol.h"
#include "sandbox/init/spawn.h"
#include "sandbox/init/sys.h"

#define PROGRAM_FD 3 /* while it is executed */

static const char *find_path(const char **env)
{
	for (; *env; env++) {
		const char *e = *env;
		if (e[0] == 'P' && e[1] == 'A' && e[2] == 'T' && e[3] == 'H' && e[4] == '=')
			return e + 5;
	}
	return "/usr/local/bin:/usr/bin:/bin";
}

/* Puts "<element>/<name>" into path and returns where the next element starts, NULL after the last.
 * An element that doesn't fit becomes "", which can't be executed (ENOENT), so that the search goes
 * on. */
static const char *join_element(const char *element, const char *name, char *path)
{
	size_t len = 0;
	while (*element && *element != ':') {
		if (len < SPAWN_PATH_SIZE)
			path[len++] = *element;
		element++;
	}
	if (len && len < SPAWN_PATH_SIZE)
		path[len++] = '/';
	do {
		if (len == SPAWN_PATH_SIZE) {
			path[0] = 0;
			break;
		}
		path[len++] = *name;
	} while (*name++);
	return *element ? element + 1 : NULL;
}

/* As execvp: a missing file is skipped, EACCES is remembered, any other error is returned. Unlike
 * execvp, a file that the kernel can't execute isn't passed to a shell. */
static int execute(const struct spawn *s)
{
	const char *name = s->argv[0];
	bool has_slash = false, denied = false;
	if (s->flags & INIT_PROGRAM_IN_FD)
		return (int)-SYS6(execveat, PROGRAM_FD, "", s->argv, s->env, AT_EMPTY_PATH, 0);
	for (const char *c = name; *c; c++)
		has_slash |= *c == '/';
	if (has_slash)
		return (int)-SYS(execve, name, s->argv, s->env);
	for (const char *element = *name ? find_path(s->env) : NULL; element;) {
		element = join_element(element, name, s->path);
		int error = (int)-SYS(execve, s->path, s->argv, s->env);
		if (error == EACCES)
			denied = true;
		else if (error != ENOENT && error != ENOTDIR)
			return error;
	}
	return denied ? EACCES : ENOENT;
}

/* A cwd reached through a descriptor or a mount from outside shows as "(unreachable)/..." here:
 * only a directory that this root leads to is taken. */
static int enter_cwd(const struct spawn *s)
{
	long result = SYS(chdir, s->cwd, 0, 0);
	if (result == 0)
		result = SYS(getcwd, s->path, SPAWN_PATH_SIZE, 0);
	if (result < 0)
		return (int)-result;
	return s->path[0] == '/' ? 0 : ENOENT;
}

/* The first of the three streams that is a terminal becomes the controlling one. */
static int take_terminal(void)
{
	long result = -ENOTTY;
	for (int i = 0; i < 3 && result < 0; i++)
		result = SYS(ioctl, i, TIOCSCTTY, 0);
	return result < 0 ? (int)-result : 0;
}

static int prepare_and_execute(struct spawn *s)
{
	int error;
	uint64_t no_signals = 0;
	s->stage = INIT_STAGE_FORK;
	SYS(setsid, 0, 0, 0);
	for (int i = 0; i < 3; i++) {
		long result = SYS(dup3, s->fds[i], i, 0);
		if (result < 0)
			return (int)-result;
	}
	/* Close-on-exec, as it was received. */
	if (s->flags & INIT_PROGRAM_IN_FD && s->program != PROGRAM_FD)
		SYS(dup3, s->program, PROGRAM_FD, O_CLOEXEC);
	SYS(close_range, s->flags & INIT_PROGRAM_IN_FD ? PROGRAM_FD + 1 : 3, ~0u, 0);
	if (s->flags & INIT_TTY) {
		s->stage = INIT_STAGE_TTY;
		error = take_terminal();
		if (error)
			return error;
	}
	const struct rlimit fds = { s->fds_most, s->fds_most };
	if (SYS6(prlimit64, 0, RLIMIT_NOFILE, &fds, 0, 0, 0) < 0)
		return EPERM;
	if (s->flags & INIT_NO_GROWTH) {
		const struct rlimit none = { 0, 0 };
		SYS6(prlimit64, 0, RLIMIT_FSIZE, &none, 0, 0, 0);
	}
	s->stage = INIT_STAGE_CWD;
	error = enter_cwd(s);
	if (error)
		return error;
	s->stage = INIT_STAGE_EXEC;
	SYS6(rt_sigprocmask, SIG_SETMASK, &no_signals, 0, sizeof no_signals, 0, 0);
	return execute(s);
}

_Noreturn void spawn_become(struct spawn *s)
{
	s->error = prepare_and_execute(s);
	sys_exit(127);
}

#define LOOK_NS 50000000 /* a child that hasn't left our memory by then may be stopped */
#define CONTINUE_MOST 8

/* Sleeps until the child has left this process's memory, as vfork does. vfork itself would sleep
 * for ever when the child is stopped. */
static void wait_until_out(struct spawn *s)
{
	const struct timespec patience = { .tv_nsec = LOOK_NS };
	int continued = 0;
	while (__atomic_load_n(&s->is_inside, __ATOMIC_ACQUIRE)) {
		siginfo_t info = { 0 };
		if (SYS6(futex, &s->is_inside, FUTEX_WAIT, 1, &patience, 0, 0) != -ETIMEDOUT)
			continue;
		SYS6(waitid, P_PID, s->pid, &info, WSTOPPED | WNOHANG | __WALL, 0, 0);
		if (info.si_pid)
			SYS(kill, s->pid, continued++ < CONTINUE_MOST ? SIGCONT : SIGKILL, 0);
	}
}

static void child_main(void *arg)
{
	spawn_become(arg);
}

int spawn_start(struct spawn *s)
{
	unsigned long flags = CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD;
	if (!(s->flags & INIT_NO_PIDFD))
		flags |= CLONE_PIDFD;
	s->pidfd = -1;
	s->error = 0;
	s->is_inside = 1;
	long pid = sys_clone(flags, s->stack_top, &s->pidfd, &s->is_inside, child_main, s);
	if (pid < 0) {
		s->stage = INIT_STAGE_FORK;
		s->error = (int)-pid;
		return -1;
	}
	s->pid = (int)pid;
	wait_until_out(s);
	if (!s->error)
		return 0;
	if (s->pidfd >= 0)
		SYS(close, s->pidfd, 0, 0);
	SYS6(wait4, pid, 0, __WALL, 0, 0, 0);
	return -1;
}
