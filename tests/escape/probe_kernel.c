/* probe_kernel.c -- terminals, ioctls, foreign and unknown calls, filters of one's own. See
 * probe.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "probe.h"

static outcome nothing_can_be_typed_into_a_terminal(void)
{
	static const unsigned long requests[] = { TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS,
		TIOCEXCL };
	int master = posix_openpt(O_RDWR | O_CLOEXEC);
	char name[64], code[4] = "\x02x";
	setsid();
	if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
		ptsname_r(master, name, sizeof(name)) != 0)
		return not_so("no pseudo-terminal: %s", strerror(errno));
	int slave = open(name, O_RDWR);
	if (slave < 0 || (ioctl(slave, TIOCSCTTY, 0) != 0 && errno != EPERM))
		return not_so("no controlling terminal: %s", strerror(errno));
	for (size_t i = 0; i < 2 * LENGTH(requests); i++) {
		long result = syscall(SYS_ioctl, slave, requests[i / 2] | (i % 2 ? HIGH : 0), code);
		if (!answers(result, EPERM))
			return not_so("ioctl %#lx%s: %ld, %s", requests[i / 2],
				i % 2 ? " high" : "", result, strerror(errno));
	}
	return NULL;
}

static outcome own_terminal_takes_no_input(void)
{
	/* With -t standard input is the terminal; without one there is nothing to try. */
	for (int fd = 0; fd < 3; fd++)
		if (isatty(fd) && !answers(syscall(SYS_ioctl, fd, TIOCSTI | HIGH, "x"), EPERM))
			return not_so("TIOCSTI on %d: %s", fd, strerror(errno));
	return NULL;
}

static outcome other_ioctls_do_not_exist(void)
{
	static const unsigned long requests[] = { 0x40086602 /* FS_IOC_SETFLAGS */,
		0x401c5820 /* FSSETXATTR */, 0x5000940e /* btrfs: subvolume */,
		0x50009401 /* snapshot */, 0x50009417 /* snapshot v2 */, 0xc0045877 /* FIFREEZE */,
		0x4b4e /* KDSKBMODE */, 0x5606 /* VT_ACTIVATE */, 0xb701 /* NS_GET_USERNS */,
		0xb702 /* NS_GET_PARENT */, 0x800c6613 /* fscrypt */, 0x40806685 /* fs-verity */,
		0x4c00 /* loop */, 0xf501 /* f2fs */, 0xc018aa3f /* userfaultfd */,
		0xc0502100 /* seccomp */ };
	int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < 2 * LENGTH(requests); i++)
		if (!answers(syscall(SYS_ioctl, fd, requests[i / 2] | (i % 2 ? HIGH : 0), NULL),
			    ENOTTY))
			return not_so("ioctl %#lx: %s", requests[i / 2], strerror(errno));
	return NULL;
}

#ifdef __x86_64__
static outcome i386_calls_end_the_process(void)
{
	pid_t child = fork();
	if (child == 0) {
		long result = 20; /* getpid */
		__asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	/* SIGSEGV where the kernel has no i386 calls at all. */
	if (!WIFSIGNALED(status) || (WTERMSIG(status) != SIGSYS && WTERMSIG(status) != SIGSEGV))
		return not_so("wait status %#x", status);
	return NULL;
}

static outcome x32_calls_do_not_exist(void)
{
	static const int numbers[] = { SYS_getpid, SYS_open, SYS_chmod, SYS_mount, SYS_clone, 512,
		519, 520, 534, 545 };
	for (size_t i = 0; i < LENGTH(numbers); i++)
		if (!answers(syscall(0x40000000 | numbers[i], 0, 06755, 06755), ENOSYS))
			return not_so("call %d: %s", numbers[i], strerror(errno));
	return NULL;
}
#endif

static outcome unknown_calls_do_not_exist(void)
{
	for (long number = 463; number < 600; number++)
		if (!answers(syscall(number, 0, 0, 0, 0, 0, 0), ENOSYS))
			return not_so("call %ld: %s", number, strerror(errno));
	return NULL;
}

static outcome seccomp_gives_no_listener(void)
{
	static uint64_t allow = 0x7fff000000000006; /* return allow */
	struct {
		unsigned short len;
		void *code;
	} program = { 1, &allow };
	for (int high = 0; high < 2; high++)
		if (!answers(syscall(SYS_seccomp, 1, 8 | (high ? HIGH : 0), &program), EPERM))
			return not_so("SECCOMP_FILTER_FLAG_NEW_LISTENER: %s", strerror(errno));
	return syscall(SYS_seccomp, 1, 0, &program) == 0
		       ? NULL
		       : not_so("own filter: %s", strerror(errno));
}

/* clang-format off */
static const struct probe probes[] = {
	DOES(nothing_can_be_typed_into_a_terminal),
	DOES(own_terminal_takes_no_input),
	DOES(other_ioctls_do_not_exist),
#ifdef __x86_64__
	DOES(i386_calls_end_the_process),
	DOES(x32_calls_do_not_exist),
#endif
	DOES(unknown_calls_do_not_exist),
	DOES(seccomp_gives_no_listener),
};
/* clang-format on */
const struct probe_list kernel_probes = LIST(probes);
