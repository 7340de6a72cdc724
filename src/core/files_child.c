/* files_child.c -- a child that does one piece of work, locked before it begins: it has the
 * descriptors that it was given, the directories among them that it may change, and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/files_internal.h"
#include "linux/landlock.h"
#include "linux/child.h"
#include "linux/pidfd.h"

#define CPU_SECONDS_MAX 600
#define TIME_MS_MAX 3600000ull
#define DATA_MAX ((rlim_t)192 << 20) /* on top of what it inherits: a window of zstd is 128 MB */
#define FDS_MAX 1024		     /* two a level of a tree */
#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

struct files_child {
	struct loop *loop;
	int pidfd, report;
	struct loop_timer *timer;
	const char *what;
	bool is_late;
	files_worked_fn *done;
	void *ctx;
};
/* What the child says before it ends; one write, and believed as far as it goes. */
struct report {
	uint64_t value;
	bool has_failed;
	struct error err;
};

/* -- in the child -- */

/* Files by descriptor, memory, time, its own end. Nothing that makes a process, a socket or another
 * program, or that touches another process. */
static const int allowed_calls[] = {
	SYS_read,
	SYS_write,
	SYS_pread64,
	SYS_pwrite64,
	SYS_readv,
	SYS_writev,
	SYS_close,
	SYS_lseek,
	SYS_fstat,
	SYS_newfstatat,
	SYS_statx,
	SYS_fcntl,
	SYS_openat,
	SYS_openat2,
	SYS_mkdirat,
	SYS_unlinkat,
	SYS_renameat2,
	SYS_linkat,
	SYS_symlinkat,
	SYS_readlinkat,
	SYS_getdents64,
	SYS_fchmod,
	SYS_fchmodat,
	SYS_utimensat,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_fadvise64,
	SYS_fsync,
	SYS_fdatasync,
	SYS_syncfs,
	SYS_mmap,
	SYS_munmap,
	SYS_mremap,
	SYS_mprotect,
	SYS_madvise,
	SYS_brk,
	SYS_futex,
	SYS_getrandom,
	SYS_clock_gettime,
	SYS_gettimeofday,
	SYS_sigaltstack,
	SYS_rt_sigprocmask,
	SYS_rt_sigaction,
	SYS_rt_sigreturn,
	SYS_restart_syscall,
	SYS_getpid,
	SYS_gettid,
	SYS_tgkill,
	SYS_sched_yield,
	SYS_exit,
	SYS_exit_group,
#ifdef SYS_renameat
	SYS_renameat,
#endif
};
#define CALL_COUNT (sizeof allowed_calls / sizeof *allowed_calls)

static int load_filter(struct error *err)
{
	struct sock_filter code[5 + CALL_COUNT + 2];
	size_t n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < CALL_COUNT; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			(unsigned)allowed_calls[i], (unsigned char)(CALL_COUNT - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { (unsigned short)n, code };
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return fail_errno_code(err, ERR_UNAVAILABLE, "load the filter");
	return 0;
}

static int close_paths(const struct files_job *job, struct error *err)
{
	auto_close int ruleset = -1;
	int abi = landlock_abi();

	if (landlock_create(abi, &ruleset, err) < 0)
		return -1;
	for (int i = 0; i < job->keep_count; i++)
		if (job->writable >> i & 1 &&
			landlock_allow(ruleset, abi, job->keep[i], "a directory",
				LANDLOCK_READ | LANDLOCK_WRITE, err) < 0)
			return -1;
	return landlock_enforce(ruleset, err);
}

static int set_limits(struct error *err)
{
	signal(SIGXFSZ, SIG_IGN); /* EFBIG instead */
	if (child_limit_data(DATA_MAX, err) < 0 || child_limit(RLIMIT_CORE, 0, err) < 0 ||
		child_limit(RLIMIT_NOFILE, FDS_MAX, err) < 0)
		return -1;
	return child_limit(RLIMIT_CPU, CPU_SECONDS_MAX, err);
}

/* All but stderr, the report and what is kept: these become 3, 4 … */
static int close_others(struct files_job *job, int *report, struct error *err)
{
	int *fds[1 + FILES_KEEP_MAX] = { report };
	int count = 1;

	for (int i = 0; i < job->keep_count; i++)
		fds[count++] = &job->keep[i];
	/* Out of the way of the places they go to first. */
	for (int i = 0; i < count; i++) {
		*fds[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, 3 + count);
		if (*fds[i] < 0)
			return fail_errno(err, "keep a descriptor");
	}
	for (int i = 0; i < count; i++) {
		*fds[i] = dup3(*fds[i], 3 + i, O_CLOEXEC);
		if (*fds[i] < 0)
			return fail_errno(err, "keep a descriptor");
	}
	close(0);
	close(1);
	if (close_range((unsigned)(3 + count), ~0u, 0) < 0)
		return fail_errno(err, "close descriptors");
	return 0;
}

static int lock_child(struct files_job *job, int *report, struct error *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail_errno(err, "set the parent-death signal of a child");
	child_reset_signals();
	umask(0);
	if (close_others(job, report, err) < 0 || set_limits(err) < 0 ||
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || close_paths(job, err) < 0)
		return -1;
	return load_filter(err);
}

_Noreturn static void run_child(const struct files_job *asked, int report)
{
	struct files_job job = *asked;
	struct report said = { 0 };

	if (lock_child(&job, &report, &said.err) < 0 ||
		job.work(job.work_ctx, job.keep, &said.value, &said.err) < 0)
		said.has_failed = true;
	/* Nobody there to read it: then nobody waits for it. */
	_exit(fd_write_full(report, &said, sizeof said) == sizeof said && !said.has_failed ? 0 : 1);
}

/* -- in core -- */

static void free_child(struct files_child *child)
{
	loop_cancel(child->loop, child->timer);
	loop_unwatch(child->loop, child->pidfd);
	fd_close(&child->pidfd);
	fd_close(&child->report);
	free(child);
}

/* Its report, or what its end says. */
static int judge_end(struct files_child *child, int status, uint64_t *value, struct error *err)
{
	struct report said;
	ssize_t len = fd_read_full(child->report, &said, sizeof said);

	if (child->is_late)
		return fail(err, ERR_LIMIT, "%s: took longer than %llu minutes", child->what,
			TIME_MS_MAX / 60000);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return fail(err, ERR_LIMIT, "%s: used more than %d minutes of cpu time",
			child->what, CPU_SECONDS_MAX / 60);
	if (WIFSIGNALED(status))
		return fail(err, ERR_FAILED, "%s: the process was ended by signal %d", child->what,
			WTERMSIG(status));
	if (len != sizeof said)
		return fail(err, ERR_FAILED, "%s: the process ended without a result", child->what);
	if (!said.has_failed) {
		*value = said.value;
		return 0;
	}
	/* From a process that parses what strangers send. */
	*err = said.err;
	return error_adopt(err);
}

static void on_end(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct files_child *child = ctx;
	struct error err = { 0 };
	uint64_t value = 0;
	int status = 0;

	if (pidfd_reap(child->pidfd, false, &status, NULL, &err) == 0)
		return;
	bool ok = judge_end(child, status, &value, &err) == 0;
	files_worked_fn *done = child->done;
	void *done_ctx = child->ctx;
	free_child(child);
	if (done)
		done(done_ctx, value, ok ? NULL : &err);
}

static void on_late(struct loop *loop, void *ctx)
{
	struct files_child *child = ctx;

	child->timer = NULL;
	child->is_late = true;
	pidfd_signal(child->pidfd, SIGKILL, NULL);
}

int files_child_start(struct loop *loop, const struct files_job *job, struct files_child **child,
	struct error *err)
{
	struct child process;

	if (child_fork(&process, CHILD_PIPE | CHILD_PIDFD, SIGKILL, err) < 0)
		return error_context(err, "%s", job->what);
	if (process.pid == 0)
		run_child(job, process.pipe);
	struct files_child *made = xzalloc(sizeof *made);
	*made = (struct files_child){ .loop = loop,
		.pidfd = process.pidfd,
		.report = process.pipe,
		.what = job->what,
		.done = job->done,
		.ctx = job->ctx };
	made->timer = loop_after(loop, TIME_MS_MAX, on_late, made);
	if (loop_watch(loop, made->pidfd, EPOLLIN, on_end, made, err) < 0) {
		files_child_kill(made);
		return -1;
	}
	if (child)
		*child = made;
	return 0;
}

void files_child_kill(struct files_child *child)
{
	int status;

	if (!child)
		return;
	pidfd_signal(child->pidfd, SIGKILL, NULL);
	pidfd_reap(child->pidfd, true, &status, NULL, NULL);
	free_child(child);
}
