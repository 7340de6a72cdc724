#include "linux/namespace.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

/* The number in the file `path`, or `otherwise` when there is no such file. */
static uint64_t proc_number(int proc, const char *path, uint64_t otherwise)
{
	char text[64];
	ssize_t len = fd_read_file(proc, path, text, sizeof text);
	uint64_t value;
	if (len < 0 || !str_to_u64(str_trim((struct str){ text, (size_t)len }), &value))
		return otherwise;
	return value;
}

/* A sysctl that is off explains the refusal whenever it is read with its refusing value. */
struct refusal {
	const char *sysctl;
	uint64_t refusing, otherwise;
	const char *text, *hint;
};
static const struct refusal refusals[] = {
	{ "sys/user/max_user_namespaces", 0, 1,
		"user namespaces are switched off (user.max_user_namespaces is 0)",
		"as root: sysctl -w user.max_user_namespaces=15000" },
	{ "sys/kernel/unprivileged_userns_clone", 0, 1,
		"user namespaces are for root only here (kernel.unprivileged_userns_clone is 0)",
		"as root: sysctl -w kernel.unprivileged_userns_clone=1" },
	{ "sys/kernel/apparmor_restrict_unprivileged_userns", 1, 0,
		"AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns "
		"is 1)",
		"as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or load an "
		"AppArmor profile "
		"with the rule 'userns,' for carrel" },
};

/* A seccomp filter is on this process: a container's or a hardened unit's. */
static bool is_filtered(int proc)
{
	char text[8192];
	ssize_t len = fd_read_file(proc, "self/status", text, sizeof text);
	struct str rest = { text, len < 0 ? 0 : (size_t)len }, line;
	while (str_next(&rest, '\n', &line))
		if (str_starts_with(line, "Seccomp:"))
			return line.data[line.len - 1] == '2';
	return false;
}

/* A process in a chroot sees no mount at "/"; the kernel gives it no user namespace. */
static bool is_in_chroot(int proc)
{
	char text[65536];
	ssize_t len = fd_read_file(proc, "self/mountinfo", text, sizeof text);
	struct str rest = { text, len < 0 ? 0 : (size_t)len }, line, field;
	if (len <= 0)
		return false;
	while (str_next(&rest, '\n', &line))
		for (int i = 0; i < 5 && str_next(&line, ' ', &field); i++)
			if (i == 4 && str_is(field, "/"))
				return false;
	return true;
}

int namespace_explain(int sys_errno, int proc, struct error *err)
{
	if (sys_errno == EAGAIN || sys_errno == ENOMEM) {
		errno = sys_errno;
		return fail_errno(err, "start a process in new namespaces");
	}
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct refusal *r = &refusals[i];
		if (proc_number(proc, r->sysctl, r->otherwise) == r->refusing)
			return fail_hint(err, ERR_UNAVAILABLE, r->hint, "%s", r->text);
	}
	if (sys_errno == ENOSPC || sys_errno == EUSERS)
		return fail_hint(err, ERR_UNAVAILABLE,
			"see /proc/sys/user/max_*_namespaces; namespaces nest at most 32 deep",
			"the host's limit of namespaces is reached");
	if ((sys_errno == EPERM || sys_errno == ENOSYS) && is_filtered(proc))
		return fail_hint(err, ERR_UNAVAILABLE,
			"in a container: --security-opt seccomp=unconfined (Docker, Podman) or "
			"seccompProfile Unconfined (Kubernetes); in a systemd unit: "
			"RestrictNamespaces=no",
			"a seccomp filter around this process refuses new namespaces");
	if (sys_errno == EPERM && is_in_chroot(proc))
		return fail_hint(err, ERR_UNAVAILABLE, "run carrel outside of the chroot",
			"the kernel gives no user namespace to a process in a chroot");
	if (sys_errno == EINVAL || sys_errno == ENOSYS)
		return fail_hint(err, ERR_UNAVAILABLE,
			"Linux 6.1 or later with CONFIG_USER_NS and all namespaces is needed",
			"this kernel lacks a kind of namespace");
	errno = sys_errno;
	return fail_errno_code(err, ERR_UNAVAILABLE, "make new namespaces");
}

static int explain(int sys_errno, struct error *err)
{
	auto_close int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	namespace_explain(sys_errno, proc, err);
	if (err)
		err->sys_errno = sys_errno;
	return -1;
}

int namespace_clone(uint64_t flags, int cgroup_fd, int *pidfd, pid_t *pid, struct error *err)
{
	int child_fd = -1;
	struct clone_args args = {
		.flags = flags | CLONE_PIDFD,
		.pidfd = (uintptr_t)&child_fd,
		.exit_signal = SIGCHLD,
	};
	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	long child = syscall(SYS_clone3, &args, sizeof args);
	if (child < 0) {
		int sys_errno = errno;
		/* These come from the group alone: EACCES no right to put a process there, EBUSY it
		 * has children with controllers, EOPNOTSUPP it is threaded, ENODEV it was removed.
		 */
		if (cgroup_fd >= 0 && (sys_errno == EACCES || sys_errno == EBUSY ||
					      sys_errno == EOPNOTSUPP || sys_errno == ENODEV))
			return fail_errno_code(
				err, ERR_UNAVAILABLE, "start a process in its control group");
		return explain(sys_errno, err);
	}
	if (child > 0)
		*pidfd = child_fd;
	*pid = (pid_t)child;
	return 0;
}

int namespace_fork(int *pidfd, pid_t *pid, struct error *err)
{
	int child_fd = -1;
	long child = syscall(SYS_clone, (long)(CLONE_PIDFD | SIGCHLD), NULL, &child_fd, NULL, NULL);
	if (child < 0)
		return fail_errno(err, "start a process");
	if (child > 0)
		*pidfd = child_fd;
	*pid = (pid_t)child;
	return 0;
}

int namespace_write_maps(
	pid_t pid, const struct namespace_ids *ids, bool deny_setgroups, struct error *err)
{
	char path[32] = "/proc/self", text[64];
	if (pid)
		str_format(path, sizeof path, "/proc/%d", (int)pid);
	auto_close int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "open '%s'", path);
	if (deny_setgroups && fd_write_file(dir, "setgroups", "deny") < 0)
		return fail_errno(err, "write '%s/setgroups'", path);
	str_format(text, sizeof text, "%u %u 1", (unsigned)ids->inside_uid,
		(unsigned)ids->outside_uid);
	if (fd_write_file(dir, "uid_map", text) < 0) {
		int sys_errno = errno;
		/* Ubuntu 24.04 grants the namespace and takes the capabilities in it away: seen
		 * here first. */
		explain(sys_errno, err);
		return error_context(err, "write '%s' to '%s/uid_map'", text, path);
	}
	str_format(text, sizeof text, "%u %u 1", (unsigned)ids->inside_gid,
		(unsigned)ids->outside_gid);
	if (fd_write_file(dir, "gid_map", text) < 0)
		return fail_errno(err, "write '%s' to '%s/gid_map'", text, path);
	return 0;
}

static int sleep_for_ever(void *parent)
{
	/* Not even kill -9 of the parent leaves this process behind. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == (pid_t)(intptr_t)parent)
		for (;;)
			syscall(SYS_pause);
	_exit(1);
}

/* CLONE_VM: nothing is copied for a process that only sleeps; so all signals are blocked in it, or
 * a handler of the parent's would run there. No exit signal: the caller's SIGCHLD handling doesn't
 * see it. */
static pid_t start_sleeper(char *stack_end)
{
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid_t pid = clone(
		sleep_for_ever, stack_end, CLONE_NEWUSER | CLONE_VM, (void *)(intptr_t)getpid());
	int sys_errno = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = sys_errno;
	return pid;
}

int namespace_make_idmap(uid_t owner_uid, gid_t owner_gid, uid_t outside_uid, gid_t outside_gid,
	int *userns_fd, struct error *err)
{
	/* A user namespace has to be a process's to be opened. */
	_Alignas(16) char stack[4096];
	pid_t pid = start_sleeper(stack + sizeof stack);
	if (pid < 0)
		return explain(errno, err);
	const struct namespace_ids ids = { owner_uid, outside_uid, owner_gid, outside_gid };
	int fd = -1, result = namespace_write_maps(pid, &ids, false, err);
	if (result == 0) {
		char path[48];
		str_format(path, sizeof path, "/proc/%d/ns/user", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			result = fail_errno(err, "open '%s'", path);
	}
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	if (result == 0)
		*userns_fd = fd;
	return result;
}

int namespace_enter_own(struct error *err)
{
	const struct namespace_ids ids = { geteuid(), geteuid(), getegid(), getegid() };
	if (unshare(CLONE_NEWUSER))
		return explain(errno, err);
	return namespace_write_maps(0, &ids, true, err);
}
