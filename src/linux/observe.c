#include "linux/observe.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef __x86_64__
#define OWN_ARCH AUDIT_ARCH_X86_64
#else
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

/* Which argument of a call is its path. */
static const struct {
	int nr, argument;
} observed[] = {
#ifdef SYS_open
	{ SYS_open, 0 },
	{ SYS_stat, 0 },
	{ SYS_lstat, 0 },
	{ SYS_access, 0 },
	{ SYS_readlink, 0 },
#endif
	{ SYS_openat, 1 },
	{ SYS_newfstatat, 1 },
	{ SYS_statx, 1 },
	{ SYS_faccessat, 1 },
	{ SYS_faccessat2, 1 },
	{ SYS_readlinkat, 1 },
	{ SYS_execve, 0 },
	{ SYS_execveat, 1 },
};
#define COUNT (sizeof observed / sizeof *observed)

int observe_load(int *listener, struct error *err)
{
	struct sock_filter code[2 * COUNT + 5] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	size_t at = 4;
	for (size_t i = 0; i < COUNT; i++) {
		code[at++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)observed[i].nr, 0, 1);
		code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { (unsigned short)at, code };
	long fd = syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (fd < 0)
		return fail_errno_code(err, ERR_UNAVAILABLE, "load the filter that observes calls");
	*listener = (int)fd;
	return 0;
}

/* The text at `address` of process `pid`, page by page: what follows it may not be mapped. */
static bool read_text(pid_t pid, uint64_t address, char *text, size_t size)
{
	size_t len = 0;
	while (len < size) {
		size_t part = 4096 - (address + len) % 4096;
		part = part < size - len ? part : size - len;
		struct iovec ours = { text + len, part },
			     theirs = { (void *)(uintptr_t)(address + len), part };
		ssize_t got = process_vm_readv(pid, &ours, 1, &theirs, 1, 0);
		if (got <= 0)
			return false;
		if (memchr(text + len, '\0', (size_t)got))
			return true;
		len += (size_t)got;
	}
	return false;
}

int observe_take(int listener, char *path, size_t size)
{
	struct seccomp_notif call = { 0 };
	path[0] = '\0';
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
		return -1;
	for (size_t i = 0; i < COUNT; i++)
		if (observed[i].nr == call.data.nr &&
			(!read_text((pid_t)call.pid, call.data.args[observed[i].argument], path,
				 size) ||
				path[0] != '/'))
			path[0] = '\0';
	struct seccomp_notif_resp response = { .id = call.id,
		.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) && errno != ENOENT ? -1 : 0;
}
