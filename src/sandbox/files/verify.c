/* verify.c -- tries from inside what the isolation of the sandbox must refuse, as a command would.
 * Each check is one entry: its name, mode 1 when it holds, and what was seen as the link. No call
 * changes anything where it is allowed: its arguments are invalid. */
#include <fcntl.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"
#include "sandbox/files/server.h"

#define AGENT_UID 1000
#define LANDLOCK_MOST 16

struct seen {
	bool ok;
	char text[256];
};

static void see(struct seen *seen, bool ok, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The first thing that is wrong stays. */
static void see(struct seen *seen, bool ok, const char *fmt, ...)
{
	va_list args;
	if (!seen->ok)
		return;
	seen->ok = ok;
	va_start(args, fmt);
	vsnprintf(seen->text, sizeof seen->text, fmt, args);
	va_end(args);
}

static void try_calls(struct seen *seen)
{
	static const struct {
		const char *name;
		long number, first;
	} calls[] = { { "unshare", SYS_unshare, CLONE_NEWUSER }, { "setns", SYS_setns, -1 },
		{ "mount", SYS_mount, 0 }, { "umount2", SYS_umount2, 0 },
		{ "pivot_root", SYS_pivot_root, 0 }, { "chroot", SYS_chroot, 0 },
		{ "bpf", SYS_bpf, -1 }, { "perf_event_open", SYS_perf_event_open, 0 },
		{ "keyctl", SYS_keyctl, -1 }, { "add_key", SYS_add_key, 0 },
		{ "io_uring_setup", SYS_io_uring_setup, 0 }, { "userfaultfd", SYS_userfaultfd, -1 },
		{ "open_by_handle_at", SYS_open_by_handle_at, -1 },
		{ "init_module", SYS_init_module, 0 }, { "kexec_load", SYS_kexec_load, -1 },
		{ "swapon", SYS_swapon, 0 }, { "open_tree", SYS_open_tree, -1 },
		{ "fsopen", SYS_fsopen, 0 }, { "process_vm_readv", SYS_process_vm_readv, -1 } };
	size_t count = sizeof calls / sizeof *calls;
	int mode = prctl(PR_GET_SECCOMP);
	see(seen, mode == 2, "the seccomp mode is %d, not 2", mode);
	for (size_t i = 0; i < count; i++) {
		long result = syscall(calls[i].number, calls[i].first, 0, 0, 0, 0, 0);
		see(seen, result < 0 && (errno == EPERM || errno == ENOSYS),
			"%s is not refused: %s", calls[i].name,
			result < 0 ? strerror(errno) : "it succeeded");
	}
	see(seen, true, "the filter is active; %zu calls are refused", count);
}

static void try_sockets(struct seen *seen)
{
	static const int families[] = { AF_PACKET, AF_VSOCK, AF_BLUETOOTH, AF_ALG };
	struct sockaddr_in somewhere = {
		.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = { htonl(0x08080808) }
	};
	char text[2048];
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		auto_close int fd = socket(families[i], SOCK_RAW, 0);
		see(seen, fd < 0, "a socket of family %d can be made", families[i]);
	}
	auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int failed = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&somewhere, sizeof somewhere);
	see(seen, failed != 0, "there is a route to the network");
	ssize_t len = fd_read_file(AT_FDCWD, "/proc/net/dev", text, sizeof text);
	struct str rest = { text, len > 0 ? (size_t)len : 0 }, line;
	while (str_next(&rest, '\n', &line)) {
		struct str name, more;
		if (str_cut(line, ':', &name, &more) && !str_is(str_trim(name), "lo"))
			see(seen, false, "there is an interface besides lo");
	}
	see(seen, true, "only lo, and no route beyond it");
}

static void try_files(struct seen *seen)
{
	static const char *const hidden[] = { "/etc/shadow", "/root", "/boot", "/sys/kernel",
		"/run/docker.sock", "/dev/mem", "/dev/kmsg", "/dev/sda" };
	static const char *const closed[] = { "/usr/.carrel-verify", "/etc/.carrel-verify",
		"/proc/.carrel-verify", "/dev/.carrel-verify", "/var/.carrel-verify",
		"/.carrel-verify" };
	struct stat root, above, st;
	char cwd[16] = "";
	/* View root: / is the workspace, where core started this process. */
	bool is_root = getcwd(cwd, sizeof cwd) && !strcmp(cwd, "/");
	for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
		see(seen,
			access(hidden[i], R_OK) != 0 ||
				(is_root && !stat("/", &root) && !lstat(hidden[i], &st) &&
					st.st_dev == root.st_dev),
			"'%s' of the host can be read", hidden[i]);
	for (size_t i = 0; i < sizeof closed / sizeof *closed - is_root; i++) {
		auto_close int fd = open(closed[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			unlink(closed[i]);
		see(seen, fd < 0, "'%s' can be made", closed[i]);
	}
	see(seen,
		!stat("/", &root) && !stat("/..", &above) && root.st_dev == above.st_dev &&
			root.st_ino == above.st_ino,
		"'..' of the root is another directory");
	see(seen, true, "no file of the host is visible, and the system's are read-only");
}

static void try_proc(struct seen *seen)
{
	static const char *const masked[] = { "/proc/kcore", "/proc/keys", "/proc/timer_list",
		"/proc/sched_debug" };
	static const char *const fixed[] = { "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
		"/proc/sys/kernel/hostname" };
	for (size_t i = 0; i < sizeof masked / sizeof *masked; i++) {
		char byte;
		auto_close int fd = open(masked[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		see(seen, fd < 0 || read(fd, &byte, 1) <= 0, "'%s' can be read", masked[i]);
	}
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
		auto_close int fd = open(fixed[i], O_WRONLY | O_CLOEXEC);
		see(seen, fd < 0, "'%s' can be written", fixed[i]);
	}
	see(seen, true, "kernel files are masked or read-only");
}

/* A process can be under 16 rulesets: one that can add as many was under none. In a child, which
 * nothing else is then forbidden to. */
static void try_landlock(struct seen *seen)
{
	pid_t pid = fork();
	int status = 0, added = 0;
	if (pid == 0) {
		struct landlock_ruleset_attr handled = { .handled_access_fs =
								 LANDLOCK_ACCESS_FS_MAKE_SOCK };
		for (; added < LANDLOCK_MOST; added++) {
			int fd = (int)syscall(
				SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
			if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0))
				break;
			close(fd);
		}
		_exit(added);
	}
	bool is_known = pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status);
	added = WEXITSTATUS(status);
	see(seen, is_known && added > 0 && added < LANDLOCK_MOST,
		"no ruleset is in force, or that can't be told");
	see(seen, true, "%d ruleset%s in force", LANDLOCK_MOST - added,
		LANDLOCK_MOST - added == 1 ? " is" : "s are");
}

static void try_identity(struct seen *seen)
{
	see(seen, getuid() == AGENT_UID && geteuid() == AGENT_UID, "the uid is %u",
		(unsigned)geteuid());
	see(seen, setuid(0) != 0 && setgid(0) != 0, "it can become root");
	see(seen, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "no_new_privs is not set");
	see(seen, true, "uid %d, which can't become another", AGENT_UID);
}

static void try_limits(struct seen *seen)
{
	static const struct {
		int which;
		const char *name;
	} rows[] = { { RLIMIT_NOFILE, "open files" }, { RLIMIT_NPROC, "processes" } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
		getrlimit(rows[i].which, &limit);
		struct rlimit more = { limit.rlim_max + 1, limit.rlim_max + 1 };
		see(seen, limit.rlim_max != RLIM_INFINITY, "%s are not limited", rows[i].name);
		see(seen, limit.rlim_max == RLIM_INFINITY || setrlimit(rows[i].which, &more) != 0,
			"the limit of %s can be raised", rows[i].name);
	}
	see(seen, true, "processes and open files are limited, and can't be raised");
}

int serve_verify(struct serve_job *job, struct error *err)
{
	static const struct {
		const char *name;
		void (*look)(struct seen *seen);
	} checks[] = { { "seccomp_calls", try_calls }, { "network_inside", try_sockets },
		{ "landlock", try_landlock }, { "files", try_files }, { "proc", try_proc },
		{ "identity_inside", try_identity }, { "limits_inside", try_limits } };
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
		struct seen seen = { .ok = true };
		checks[i].look(&seen);
		struct file_entry info = { .mode = seen.ok };
		if (serve_add_entry(job, checks[i].name, &info, seen.text, err) < 0)
			return -1;
	}
	return 0;
}
