/* probe_ptrace.c -- what a tracer can't do where ptrace is allowed. See probe.h. Where it isn't,
 * there is nothing to try: the calls are probed by probe_calls.c. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include "probe.h"

#ifdef __x86_64__
#define SUSPEND_SECCOMP (1l << 21)

static bool is_allowed(void)
{
	return !answers(syscall(SYS_ptrace, 12345, -1, 0, 0), EPERM);
}

/* A child that waits for its tracer, and then asks for its parent again and again. Its filter of
 * its own, if wanted, hands that call to the tracer. */
static pid_t start_tracee(bool with_filter)
{
	pid_t child = fork();
	if (child != 0)
		return child;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { LENGTH(code), code };
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	if (with_filter)
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	raise(SIGSTOP);
	for (;;)
		syscall(SYS_getppid);
}

static void end_tracee(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Goes on to the next stop of the tracee, which must be one. */
static bool next_stop(pid_t child, int request)
{
	int status;
	return ptrace(request, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child &&
	       WIFSTOPPED(status);
}

/* The tracee stands before a call: what does it answer when it becomes `number`? */
static long answer_of(pid_t child, long number)
{
	struct user_regs_struct regs;
	if (ptrace(PTRACE_GETREGS, child, NULL, &regs))
		return 1;
	regs.orig_rax = (unsigned long)number;
	regs.rdi = CLONE_NEWUSER;
	regs.rsi = regs.rdx = 06755;
	if (ptrace(PTRACE_SETREGS, child, NULL, &regs) || !next_stop(child, PTRACE_SYSCALL) ||
		ptrace(PTRACE_GETREGS, child, NULL, &regs))
		return 1;
	return (long)regs.rax;
}

static const struct {
	long number, answer;
} changes[] = { { SYS_mount, -EPERM }, { SYS_unshare, -EPERM }, { SYS_clone, -EPERM },
	{ SYS_fchmod, -EPERM }, { SYS_bpf, -EPERM }, { 435, -ENOSYS }, { 437, -ENOSYS },
	{ 0x40000000 | SYS_getpid, -ENOSYS } };

static outcome a_call_that_a_tracer_changes_is_judged_as_changed(void)
{
	outcome out = NULL;
	if (!is_allowed())
		return NULL;
	pid_t child = start_tracee(false);
	waitpid(child, NULL, 0);
	for (size_t i = 0; i < LENGTH(changes) && !out; i++) {
		long got =
			next_stop(child, PTRACE_SYSCALL) ? answer_of(child, changes[i].number) : 1;
		if (got != changes[i].answer)
			out = not_so("call %ld answered %ld", changes[i].number, got);
	}
	end_tracee(child);
	return out;
}

static outcome a_call_that_a_filter_hands_to_the_tracer_is_judged_again(void)
{
	outcome out = NULL;
	if (!is_allowed())
		return NULL;
	pid_t child = start_tracee(true);
	waitpid(child, NULL, 0);
	if (ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESECCOMP))
		out = not_so("PTRACE_O_TRACESECCOMP: %s", strerror(errno));
	for (size_t i = 0; i < LENGTH(changes) && !out; i++) {
		long got = next_stop(child, PTRACE_CONT) ? answer_of(child, changes[i].number) : 1;
		if (got != changes[i].answer)
			out = not_so("call %ld answered %ld", changes[i].number, got);
	}
	end_tracee(child);
	return out;
}

static outcome no_filter_can_be_suspended_or_read(void)
{
	outcome out = NULL;
	if (!is_allowed())
		return NULL;
	pid_t child = start_tracee(false);
	waitpid(child, NULL, 0);
	for (int high = 0; high < 2 && !out; high++) {
		long extra = high ? (long)HIGH : 0;
		if (!answers(syscall(SYS_ptrace, PTRACE_SETOPTIONS | extra, child, 0,
				     SUSPEND_SECCOMP | extra),
			    EPERM))
			out = not_so("PTRACE_O_SUSPEND_SECCOMP: %s", strerror(errno));
		else if (!answers(syscall(SYS_ptrace, PTRACE_SEIZE | extra, getppid(), 0,
					  SUSPEND_SECCOMP | extra),
				 EPERM))
			out = not_so("PTRACE_SEIZE: %s", strerror(errno));
		else if (syscall(SYS_ptrace, PTRACE_SECCOMP_GET_FILTER, child, 0, 0) >= 0)
			out = not_so("PTRACE_SECCOMP_GET_FILTER works");
	}
	end_tracee(child);
	return out;
}
#endif

static outcome init_cannot_be_traced_or_read(void)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)0x400000, 1 };
	static const long attaches[] = { PTRACE_ATTACH, PTRACE_SEIZE };
	for (size_t i = 0; i < 2 * LENGTH(attaches); i++)
		if (!answers(syscall(SYS_ptrace, attaches[i / 2], 1 | (long)(i % 2 ? HIGH : 0), 0,
				     0),
			    EPERM))
			return not_so("attach: %s", strerror(errno));
	if (!answers(process_vm_readv(1, &here, 1, &there, 1, 0), EPERM) ||
		!answers(process_vm_writev(1, &here, 1, &there, 1, 0), EPERM))
		return not_so("process_vm_readv: %s", strerror(errno));
	if (!answers(syscall(SYS_kcmp, getpid(), 1, 0, 0, 0), EPERM))
		return not_so("kcmp: %s", strerror(errno));
	int init = (int)syscall(SYS_pidfd_open, 1, 0);
	if (init < 0 || !answers(syscall(438, init, 0, 0), EPERM))
		return not_so("pidfd_getfd: %s", strerror(errno));
	if (open("/proc/1/mem", O_RDWR | O_CLOEXEC) >= 0 || open("/proc/1/maps", O_RDONLY) >= 0)
		return not_so("the memory of PID 1 can be opened");
	return NULL;
}

/* clang-format off */
static const struct probe probes[] = {
#ifdef __x86_64__
	DOES(a_call_that_a_tracer_changes_is_judged_as_changed),
	DOES(a_call_that_a_filter_hands_to_the_tracer_is_judged_again),
	DOES(no_filter_can_be_suspended_or_read),
#endif
	DOES(init_cannot_be_traced_or_read),
};
/* clang-format on */
const struct probe_list ptrace_probes = LIST(probes);
