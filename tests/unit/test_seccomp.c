/* The filters, evaluated by a small interpreter for every call number and many arguments, against a
 * second statement of the rules that shares nothing with linux/seccomp_rules.h; and once for real.
 * x86-64: aarch64 has other numbers. */
/* security: sandbox */
#include "linux/seccomp.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define RET_ERRNO(e) (SECCOMP_RET_ERRNO | (e))

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word;
	assert_true(offset % 4 == 0 && offset < sizeof(*data));
	memcpy(&word, (const char *)data + offset, sizeof(word));
	return word;
}

/* Runs one program. *constant becomes false when it looked at an argument. */
static uint32_t interpret(
	const struct sock_fprog *program, const struct seccomp_data *data, bool *constant)
{
	uint32_t a = 0;
	for (unsigned pc = 0;; pc++) {
		assert_true(pc < program->len);
		struct sock_filter i = program->filter[pc];
		switch (i.code) {
		case BPF_LD | BPF_W | BPF_ABS:
			a = load(data, i.k);
			*constant &= i.k < offsetof(struct seccomp_data, args);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i.k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i.k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i.k ? i.jt : i.jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i.k ? i.jt : i.jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += a & i.k ? i.jt : i.jf;
			break;
		case BPF_RET | BPF_K:
			return i.k;
		default:
			fail_msg("instruction %#x isn't one the kernel can evaluate at load",
				i.code);
		}
	}
}

#define OPTION_SETS 8
#define DEFAULTS SECCOMP_WITH_MEMFD

static uint32_t judge(unsigned options, const struct seccomp_data *data, bool *constant)
{
	*constant = true;
	return interpret(seccomp_program(options), data, constant);
}

#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
/* Written down by number, from the system call table of x86-64. */
static bool is_allowed(unsigned number)
{
	static const struct {
		unsigned from, to;
	} ranges[] = {
		{ 0, 100 },   /* read .. times, without what is below */
		{ 102, 102 }, /* getuid */
		{ 104, 132 }, /* getgid .. utime */
		{ 133, 133 }, /* mknod */
		{ 135, 135 }, /* personality */
		{ 137, 138 }, /* statfs, fstatfs */
		{ 140, 152 }, /* getpriority .. munlockall */
		{ 157, 158 }, /* prctl, arch_prctl */
		{ 160, 160 }, /* setrlimit */
		{ 162, 162 }, /* sync */
		{ 186, 204 }, /* gettid .. sched_getaffinity */
		{ 213, 213 }, /* epoll_create */
		{ 217, 226 }, /* getdents64 .. timer_delete */
		{ 228, 235 }, /* clock_gettime .. utimes */
		{ 240, 245 }, /* mq_open .. mq_getsetattr */
		{ 247, 247 }, /* waitid */
		{ 251, 255 }, /* ioprio_set .. inotify_rm_watch */
		{ 257, 271 }, /* openat .. ppoll */
		{ 273, 277 }, /* set_robust_list .. sync_file_range */
		{ 280, 297 }, /* utimensat .. rt_tgsigqueueinfo */
		{ 299, 299 }, /* recvmmsg */
		{ 302, 302 }, /* prlimit64 */
		{ 306, 307 }, /* syncfs, sendmmsg */
		{ 309, 309 }, /* getcpu */
		{ 314, 319 }, /* sched_setattr .. memfd_create */
		{ 322, 322 }, /* execveat */
		{ 324, 332 }, /* membarrier .. statx */
		{ 334, 334 }, /* rseq */
		{ 424, 424 }, /* pidfd_send_signal */
		{ 434, 434 }, /* pidfd_open */
		{ 436, 436 }, /* close_range */
		{ 439, 439 }, /* faccessat2 */
		{ 441, 441 }, /* epoll_pwait2 */
		{ 444, 446 }, /* landlock_* */
		{ 449, 449 }, /* futex_waitv */
		{ 452, 456 }, /* fchmodat2, map_shadow_stack, futex_wake, _wait, _requeue */
		{ 462, 462 }, /* mseal */
	};
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (number >= ranges[i].from && number <= ranges[i].to)
			return true;
	return false;
}

static bool is_refused(unsigned number)
{
	static const unsigned refused[] = { 103, 154, 155, 159, 161, 163, 164, 165, 166, 167, 168,
		169, 170, 171, 172, 173, 175, 176, 179, 227, 246, 272, 298, 300, 304, 305, 308, 313,
		321 };
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (number == refused[i])
			return true;
	return false;
}

/* ptrace, process_vm_readv, process_vm_writev, kcmp, pidfd_getfd */
static bool is_for_debuggers(unsigned number)
{
	return number == 101 || (number >= 310 && number <= 312) || number == 438;
}

static uint32_t expected_for_debuggers(unsigned number, const uint32_t *w)
{
	bool is_init = number == 438   ? false
		       : number == 101 ? w[0] != 0 && w[1] == 1
		       : number == 312 ? w[0] == 1 || w[1] == 1
				       : w[0] == 1;
	bool suspends = number == 101 && (w[0] == 0x4200 || w[0] == 0x4206) && w[3] & 1 << 21;
	return is_init || suspends ? RET_ERRNO(EPERM) : SECCOMP_RET_ALLOW;
}

static bool ioctl_is_harmless(uint32_t request)
{
	switch (request) {
	case 0x40049409: /* FICLONE */
	case 0x4020940d: /* FICLONERANGE */
	case 0xc0189436: /* FIDEDUPERANGE */
	case 0x80086601: /* FS_IOC_GETFLAGS */
	case 0x80087601: /* FS_IOC_GETVERSION */
	case 0x801c581f: /* FS_IOC_FSGETXATTR */
	case 0xc020660b: /* FS_IOC_FIEMAP */
	case 2:		 /* FIGETBSZ */
		return true;
	}
	return (request >> 8 & 0xff) == 'T' || (request >> 8 & 0xff) == 0x89;
}

static uint32_t expected_socket(uint32_t family, uint32_t type, uint32_t protocol)
{
	if (family == AF_UNIX)
		return SECCOMP_RET_ALLOW;
	if (family == AF_NETLINK)
		return protocol == 0 ? SECCOMP_RET_ALLOW : RET_ERRNO(EPROTONOSUPPORT);
	if (family != AF_INET && family != AF_INET6)
		return RET_ERRNO(EAFNOSUPPORT);
	type &= 15;
	if (type != SOCK_STREAM && type != SOCK_DGRAM && type != SOCK_RAW)
		return RET_ERRNO(ESOCKTNOSUPPORT);
	bool known =
		protocol == 0 || protocol == 1 || protocol == 6 || protocol == 17 || protocol == 58;
	return known ? SECCOMP_RET_ALLOW : RET_ERRNO(EPROTONOSUPPORT);
}

/* w: the arguments as the kernel sees them, cut to 32 bits. */
static uint32_t expected_by_argument(
	unsigned options, unsigned number, const uint32_t *w, const __u64 *args)
{
	const unsigned modes = options & SECCOMP_WITH_SETGID ? 04000 : 06000;
#define REFUSED_IF(condition, error) ((condition) ? RET_ERRNO(error) : SECCOMP_RET_ALLOW)
	switch (number) {
	case 2: /* open */
		return REFUSED_IF(w[1] & (O_CREAT | 020000000) && w[2] & modes, EPERM);
	case 257: /* openat */
		return REFUSED_IF(w[2] & (O_CREAT | 020000000) && w[3] & modes, EPERM);
	case 83:
	case 85:
	case 90:
	case 91: /* mkdir creat chmod fchmod */
		return REFUSED_IF(w[1] & modes, EPERM);
	case 258:
	case 268:
	case 452: /* mkdirat fchmodat fchmodat2 */
		return REFUSED_IF(w[2] & modes, EPERM);
	case 133: /* mknod */
		return REFUSED_IF(w[1] & modes || S_ISCHR(w[1]) || S_ISBLK(w[1]) || S_ISLNK(w[1]) ||
					  (w[1] & S_IFMT & 020000),
			EPERM);
	case 259: /* mknodat */
		return REFUSED_IF(w[2] & modes || S_ISCHR(w[2]) || S_ISBLK(w[2]) || S_ISLNK(w[2]) ||
					  (w[2] & S_IFMT & 020000),
			EPERM);
	case 9: /* mmap */
		return REFUSED_IF(w[3] & 0x40000, ENOMEM);
	case 16: /* ioctl */
		if (w[1] == TIOCSTI || w[1] == TIOCLINUX || w[1] == TIOCSETD || w[1] == TIOCCONS ||
			w[1] == TIOCEXCL)
			return RET_ERRNO(EPERM);
		return REFUSED_IF(!ioctl_is_harmless(w[1]), ENOTTY);
	case 28: /* madvise */
		return REFUSED_IF(w[2] == 12, EINVAL);
	case 29: /* shmget */
		return REFUSED_IF(w[2] & 04000, EPERM);
	case 41: /* socket */
		return expected_socket(w[0], w[1], w[2]);
	case 53: /* socketpair */
		return REFUSED_IF(w[0] != AF_UNIX, EAFNOSUPPORT);
	case 54: /* setsockopt */
		if (w[1] == IPPROTO_TCP && w[2] == TCP_ULP)
			return RET_ERRNO(ENOPROTOOPT);
		if (w[1] == SOL_SOCKET && (w[2] == SO_ATTACH_FILTER || w[2] == SO_ATTACH_BPF ||
						  w[2] == SO_ATTACH_REUSEPORT_CBPF ||
						  w[2] == SO_ATTACH_REUSEPORT_EBPF))
			return RET_ERRNO(EPERM);
		return REFUSED_IF(
			(w[1] == IPPROTO_UDP || w[1] == IPPROTO_UDPLITE) && w[2] == UDP_ENCAP,
			EPERM);
	case 44:
	case 307: /* sendto sendmmsg */
		return REFUSED_IF(w[3] & MSG_OOB, EOPNOTSUPP);
	case 46: /* sendmsg */
		return REFUSED_IF(w[2] & MSG_OOB, EOPNOTSUPP);
	case 45:
	case 299: /* recvfrom recvmmsg */
		return REFUSED_IF(w[3] & MSG_OOB, EINVAL);
	case 47: /* recvmsg */
		return REFUSED_IF(w[2] & MSG_OOB, EINVAL);
	case 56: /* clone */
		return REFUSED_IF(
			w[0] & (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
				       CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET),
			EPERM);
	case 72: /* fcntl */
		return REFUSED_IF(w[1] == F_SETLEASE, EPERM);
	case 135: /* personality */
		return REFUSED_IF(w[0] != 0 && w[0] != 0x40000 && w[0] != 0xffffffff, EPERM);
	case 160: /* setrlimit: RLIMIT_CORE seems to be set */
		return REFUSED_IF(w[0] == RLIMIT_CORE, 0);
	case 302: /* prlimit64: PID 1; else the same when there is a new value */
		if (w[0] == 1)
			return RET_ERRNO(EPERM);
		return REFUSED_IF(w[1] == RLIMIT_CORE && args[2] != 0, 0);
	case 141: /* setpriority: PID 1, its group, or the user */
		return REFUSED_IF(w[0] == 2 || (w[0] <= 1 && w[1] == 1), EPERM);
	case 251: /* ioprio_set: the same, counted from 1 */
		return REFUSED_IF(w[0] == 3 || ((w[0] == 1 || w[0] == 2) && w[1] == 1), EPERM);
	case 142:
	case 144:
	case 203:
	case 314: /* sched_setparam, _setscheduler, _setaffinity, _setattr: PID 1 */
		return REFUSED_IF(w[0] == 1, EPERM);
	case 157: /* prctl: PR_FUTEX_HASH, PR_SET_MM, PR_SCHED_CORE */
		if (w[0] == 78)
			return RET_ERRNO(EINVAL);
		return REFUSED_IF(w[0] == PR_SET_MM || w[0] == 62, EPERM);
	case 316: /* renameat2 */
		return REFUSED_IF(w[4] & 4, EPERM);
	case 317: /* seccomp */
		return REFUSED_IF(w[1] & (8 | 32), EPERM);
	case 319: /* memfd_create */
		if (w[1] & ~(0x1fu | 0xfc000000))
			return RET_ERRNO(EINVAL);
		return REFUSED_IF(w[1] & 4, EPERM);
	}
	return SECCOMP_RET_ALLOW;
}

static uint32_t expected(unsigned options, const struct seccomp_data *data)
{
	uint32_t words[6];
	for (int i = 0; i < 6; i++)
		words[i] = (uint32_t)data->args[i];
	if (data->arch != ARCHITECTURE)
		return SECCOMP_RET_KILL_PROCESS;
	if (is_for_debuggers(data->nr) && options & SECCOMP_WITH_PTRACE)
		return expected_for_debuggers(data->nr, words);
	if (is_refused(data->nr) || is_for_debuggers(data->nr))
		return RET_ERRNO(EPERM);
	if (!is_allowed(data->nr) || (data->nr == 319 && !(options & SECCOMP_WITH_MEMFD)))
		return RET_ERRNO(ENOSYS);
	return expected_by_argument(options, data->nr, words, data->args);
}

/* Calls whose rules differ between the filters; the others are judged by one of them in turn. */
static bool depends_on_options(unsigned number)
{
	static const unsigned calls[] = { 2, 83, 85, 90, 91, 133, 257, 258, 259, 268, 319, 452 };
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (number == calls[i])
			return true;
	return is_for_debuggers(number);
}

static void check_with(unsigned options, const struct seccomp_data *data)
{
	bool constant;
	uint32_t is = judge(options, data, &constant), should = expected(options, data);
	if (is != should)
		fail_msg("options %u call %u arch %#x (%#lx, %#lx, %#lx, %#lx, %#lx): %#x, "
			 "expected %#x",
			options, data->nr, data->arch, (unsigned long)data->args[0],
			(unsigned long)data->args[1], (unsigned long)data->args[2],
			(unsigned long)data->args[3], (unsigned long)data->args[4], is, should);
}

static void check(const struct seccomp_data *data)
{
	for (unsigned options = 0; options < OPTION_SETS; options++)
		check_with(options, data);
}

static void test_every_number_is_judged_as_written_down(void **state)
{
	for (unsigned number = 0; number <= 600; number++)
		check(&(struct seccomp_data){ number, ARCHITECTURE });
	check(&(struct seccomp_data){ 0xffffffff, ARCHITECTURE });
	check(&(struct seccomp_data){ 0x80000000, ARCHITECTURE });
}

static void test_x32_calls_do_not_exist(void **state)
{
	bool constant;
	for (unsigned number = 0; number <= 600; number++) {
		struct seccomp_data data = { number | 0x40000000, ARCHITECTURE };
		for (unsigned options = 0; options < OPTION_SETS; options++)
			assert_int_equal(judge(options, &data, &constant), RET_ERRNO(ENOSYS));
	}
}

static void test_foreign_architectures_are_killed(void **state)
{
	bool constant;
	static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64, AUDIT_ARCH_ARM, 0,
		0xffffffff };
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		for (unsigned number = 0; number <= 600; number++) {
			struct seccomp_data data = { number, foreign[i], 0,
				{ 0, 06755, 06755, 06755 } };
			for (unsigned options = 0; options < OPTION_SETS; options++)
				assert_int_equal(
					judge(options, &data, &constant), SECCOMP_RET_KILL_PROCESS);
		}
}

static void test_arguments_are_judged_by_their_low_half(void **state)
{
	static const uint64_t values[] = { 0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 17, 26, 31, 32, 35,
		50, 51, 52, 58, 62, 78, 100, 132, 136, 262, 1024, 0644, 0755, 01777, 02000, 04000,
		06755, 010644, 020644, 040755, 060644, 0100644, 0104755, 0120777, 0140755, O_CREAT,
		O_WRONLY | O_CREAT | O_EXCL, O_TMPFILE, O_TMPFILE | O_WRONLY, O_DIRECTORY,
		SOCK_CLOEXEC | 1, SOCK_NONBLOCK | 5, 0x40000, 0x40022, CLONE_NEWUSER,
		CLONE_NEWNS | SIGCHLD, CLONE_NEWNET, CLONE_NEWPID, CLONE_NEWIPC, CLONE_NEWUTS,
		CLONE_NEWCGROUP, 0x80 /* NEWTIME */, 0x3d0f00 /* pthread */, 0xffffffff, 0x08, 0x28,
		TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS, TIOCEXCL, TIOCGWINSZ, TCGETS, TIOCSCTTY,
		FIONREAD, 0x80045430 /* TIOCGPTN */, 0x8912 /* SIOCGIFCONF */, 0x40049409,
		0x4020940d, 0xc0189436, 0x80086601, 0x40086602 /* FS_IOC_SETFLAGS */,
		0x5000940e /* btrfs subvolume */, 0x4b4d, 0x5606, 0xc0045877, 0xb701, 0x801c581f,
		0x401c5820, 0xc020660b, 0x80087601, 0xc0502100 /* notification */,
		0x1f /* every flag of memfd_create */, 0x54000004 /* huge pages of 2M */,
		0x4200 /* PTRACE_SETOPTIONS */, 0x4206 /* PTRACE_SEIZE */, 1 << 21 };
	const size_t count = sizeof(values) / sizeof(values[0]);
	for (unsigned number = 0; number <= 470; number++) {
		/* Every pair of values in neighbouring places, with and without high bits. */
		for (size_t i = 0; i < count * count; i++)
			for (int place = 0; place < 5; place++) {
				struct seccomp_data data = { number, ARCHITECTURE };
				data.args[place] = values[i % count];
				data.args[(place + 1) % 5] =
					values[i / count] | (i % 2 ? 1ull << 32 : 0);
				data.args[(place + 2) % 5] = values[(i + i / count) % count];
				data.args[place] |= i % 3 ? 0xdeadbeef00000000 : 0;
				if (depends_on_options(number))
					check(&data);
				else
					check_with((unsigned)i % OPTION_SETS, &data);
			}
	}
}

static uint32_t judge_role(bool may_fork, const struct seccomp_data *data)
{
	bool constant;
	return interpret(seccomp_role_program(may_fork), data, &constant);
}

/* Of what a sandbox may, by number. */
static bool is_refused_to_roles(unsigned number, bool may_fork)
{
	switch (number) {
	case 56: /* clone fork vfork */
	case 57:
	case 58:
	case 41: /* socket connect socketpair */
	case 42:
	case 53:
		return !may_fork;
	case 59: /* execve execveat */
	case 322:
	case 49: /* bind listen */
	case 50:
	case 105: /* setuid setgid setreuid setregid setgroups setresuid setresgid */
	case 106:
	case 113:
	case 114:
	case 116:
	case 117:
	case 119:
	case 122: /* setfsuid setfsgid */
	case 123:
	case 133: /* mknod mknodat */
	case 259:
	case 135: /* personality */
		return true;
	}
	return (number >= 29 && number <= 31) || number == 67 ||  /* shared memory */
	       (number >= 64 && number <= 66) || number == 220 || /* semaphores */
	       (number >= 68 && number <= 71) ||		  /* messages */
	       (number >= 240 && number <= 245);		  /* mq_* */
}

static uint32_t expected_for_roles(unsigned number, bool may_fork, const struct seccomp_data *data)
{
	if (data->arch != ARCHITECTURE)
		return SECCOMP_RET_KILL_PROCESS;
	if (number == 437) /* openat2 */
		return SECCOMP_RET_ALLOW;
	if (is_refused_to_roles(number, may_fork))
		return RET_ERRNO(EPERM);
	if (number == 41 && (uint32_t)data->args[0] != AF_UNIX)
		return expected(DEFAULTS, data) == SECCOMP_RET_ALLOW ? RET_ERRNO(EAFNOSUPPORT)
								     : expected(DEFAULTS, data);
	return expected(DEFAULTS, data);
}

static void test_roles_have_the_same_but_for_what_is_written_down(void **state)
{
	static const uint64_t values[] = { 0, 1, 2, 10, 16, 06755, 0x7e020000, 0x100000001 };
	for (int may_fork = 0; may_fork < 2; may_fork++)
		for (unsigned number = 0; number <= 600; number++)
			for (size_t i = 0; i < 8 * 8; i++) {
				struct seccomp_data data = { number, ARCHITECTURE, 0,
					{ values[i / 8], values[i % 8], values[i % 8],
						values[i / 8] } };
				uint32_t is = judge_role(may_fork, &data);
				uint32_t should = expected_for_roles(number, may_fork, &data);
				if (is != should)
					fail_msg("call %u (%#lx, %#lx): %#x, expected %#x", number,
						(unsigned long)data.args[0],
						(unsigned long)data.args[1], is, should);
			}
	struct seccomp_data foreign = { 437, AUDIT_ARCH_I386 };
	assert_int_equal(judge_role(true, &foreign), SECCOMP_RET_KILL_PROCESS);
	struct seccomp_data x32 = { 437 | 0x40000000, ARCHITECTURE };
	assert_int_equal(judge_role(true, &x32), RET_ERRNO(ENOSYS));
}

static void test_the_role_for_trees_makes_fifos_and_whiteouts_and_no_other_device(void **state)
{
	static const uint64_t values[] = { 0, 1, 2, 10, 16, 0644, 0x7e020000, 0x100000001 };
	const struct {
		uint64_t mode, device;
		uint32_t action;
	} nodes[] = { { S_IFIFO | 0600, 0, SECCOMP_RET_ALLOW }, { S_IFCHR, 0, SECCOMP_RET_ALLOW },
		{ S_IFCHR, 0x103, RET_ERRNO(EPERM) }, { S_IFBLK, 0x800, RET_ERRNO(EPERM) },
		{ S_IFREG | 04755, 0, RET_ERRNO(EPERM) } };
	bool constant;
	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
		struct seccomp_data data = { SYS_mknodat, ARCHITECTURE, 0,
			{ 0, 0, nodes[i].mode, nodes[i].device } };
		assert_int_equal(
			interpret(seccomp_trees_program(), &data, &constant), nodes[i].action);
	}
	/* Else it is a role that may not fork, but for setgid bits. */
	for (unsigned number = 0; number <= 600; number++)
		for (size_t i = 0; i < 8 * 8; i++) {
			struct seccomp_data data = { number, ARCHITECTURE, 0,
				{ values[i / 8], values[i % 8], values[i % 8], values[i / 8] } };
			if (number != SYS_mknodat)
				assert_int_equal(
					interpret(seccomp_trees_program(), &data, &constant),
					judge_role(false, &data));
		}
}

static void test_hot_calls_are_decided_without_arguments(void **state)
{
	/* The kernel then caches them and never runs the filters. */
	static const unsigned hot[] = { SYS_read, SYS_write, SYS_close, SYS_fstat, SYS_newfstatat,
		SYS_lseek, SYS_munmap, SYS_brk, SYS_futex, SYS_poll, SYS_epoll_wait,
		SYS_clock_gettime, SYS_getdents64, SYS_rt_sigprocmask, SYS_wait4, SYS_execve,
		SYS_pread64, SYS_statx, SYS_readlink, SYS_access };
	for (size_t i = 0; i < sizeof(hot) / sizeof(hot[0]); i++) {
		bool constant;
		struct seccomp_data data = { hot[i], ARCHITECTURE };
		assert_int_equal(judge(DEFAULTS, &data, &constant), SECCOMP_RET_ALLOW);
		assert_true(constant);
	}
}
#endif

/* Those of sandboxes, then those of roles. */
static const struct sock_fprog *program_at(unsigned p)
{
	if (p < OPTION_SETS)
		return seccomp_program(p);
	return p < OPTION_SETS + 2 ? seccomp_role_program(p - OPTION_SETS)
				   : seccomp_trees_program();
}

static void test_every_instruction_can_be_reached(void **state)
{
	for (unsigned p = 0; p < OPTION_SETS + 3; p++) {
		const struct sock_fprog *program = program_at(p);
		bool reached[512] = { [0] = true };
		assert_true(program->len < 512);
		for (unsigned i = 0; i < program->len; i++) {
			struct sock_filter code = program->filter[i];
			assert_true(reached[i]);
			if (code.code == (BPF_JMP | BPF_JA))
				reached[i + 1 + code.k] = true;
			else if (BPF_CLASS(code.code) == BPF_JMP)
				reached[i + 1 + code.jt] = reached[i + 1 + code.jf] = true;
			else if (BPF_CLASS(code.code) != BPF_RET)
				reached[i + 1] = true;
		}
	}
}

static void test_sizes_are_those_of_the_programs(void **state)
{
	for (unsigned p = 0; p < OPTION_SETS + 2; p++)
		assert_in_range(program_at(p)->len, 200, 400);
}

/* In the child, with the filter on: 0, or the number of the claim that doesn't hold. */
static int claims_of_child(void)
{
	struct error err;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || seccomp_load(DEFAULTS, &err) != 0)
		return 1;
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
		return 2;
#define IS(call, error) ((call) == -1 && errno == (error))
	if (!IS(syscall(SYS_unshare, CLONE_NEWUSER), EPERM))
		return 3;
	if (!IS(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM))
		return 4;
	if (!IS(syscall(SYS_clone3, NULL, 0), ENOSYS) ||
		!IS(syscall(437, AT_FDCWD, "/", NULL, 0), ENOSYS))
		return 5;
	if (!IS(syscall(SYS_socket, AF_PACKET | 1l << 32, SOCK_RAW, 0), EAFNOSUPPORT))
		return 6;
	if (!IS(syscall(SYS_ioctl, 0, TIOCSTI | 1l << 32, "x"), EPERM))
		return 7;
	if (!IS(syscall(SYS_fchmod, 0, 04755l | 1l << 32), EPERM))
		return 8;
	if (!IS(syscall(SYS_personality, 0x0400000l | 1l << 32), EPERM) ||
		syscall(SYS_personality, 0xffffffff) < 0)
		return 9;
	int fd = (int)syscall(SYS_memfd_create, "x", 0);
	if (fd < 0 || fchmod(fd, 0600) != 0 || write(fd, "x", 1) != 1)
		return 10;
	if (!IS(syscall(SYS_setsockopt, -1, 1l | 1l << 32, 26l | 1l << 32, NULL, 0), EPERM) ||
		!IS(syscall(SYS_setsockopt, -1, 1, SO_REUSEADDR, NULL, 0), EBADF))
		return 11;
	if (!IS(syscall(SYS_sendto, -1, "x", 1, MSG_OOB | 1l << 32, NULL, 0), EOPNOTSUPP) ||
		!IS(syscall(SYS_sendto, -1, "x", 1, 1l << 32, NULL, 0), EBADF))
		return 12;
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	return child > 0 && waitpid(child, NULL, 0) == child ? 0 : 13;
}

static void test_the_kernel_takes_them_and_refuses_by_them(void **state)
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(claims_of_child());
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#ifdef __x86_64__
static void test_an_i386_call_ends_the_process(void **state)
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct error err;
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
			seccomp_load(DEFAULTS, &err) != 0)
			_exit(1);
		long result = 20; /* getpid of i386 */
		__asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
		_exit(2);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	/* SIGSEGV where the kernel has no i386 calls at all. */
	assert_true(WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(test_every_number_is_judged_as_written_down),
		cmocka_unit_test(test_x32_calls_do_not_exist),
		cmocka_unit_test(test_foreign_architectures_are_killed),
		cmocka_unit_test(test_arguments_are_judged_by_their_low_half),
		cmocka_unit_test(test_roles_have_the_same_but_for_what_is_written_down),
		cmocka_unit_test(
			test_the_role_for_trees_makes_fifos_and_whiteouts_and_no_other_device),
		cmocka_unit_test(test_hot_calls_are_decided_without_arguments),
		cmocka_unit_test(test_an_i386_call_ends_the_process),
#endif
		cmocka_unit_test(test_every_instruction_can_be_reached),
		cmocka_unit_test(test_sizes_are_those_of_the_programs),
		cmocka_unit_test(test_the_kernel_takes_them_and_refuses_by_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
