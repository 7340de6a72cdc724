#include "proc/role.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "linux/capability.h"
#include "linux/child.h"
#include "linux/landlock.h"
#include "linux/namespace.h"
#include "linux/pidfd.h"
#include "linux/seccomp.h"
#include "proc/role_root.h"

#define FIRST_FD 3
#define FDS_MAX 1048576
#define OVERFLOW_UID 65534 /* what every uid without a name looks like in a user namespace */
#define ENV_MAX 64
#define TREE_RIGHTS                                                                                \
	(1u << CAPABILITY_DAC_OVERRIDE | 1u << CAPABILITY_DAC_READ_SEARCH | 1u << CAPABILITY_FOWNER)

/* What the child sends before it is executed: an error, or that it will die with its parent. */
struct role_report {
	bool is_bound;
	struct error err;
};

void role_raise_fds(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	rlim_t most = limit.rlim_max > FDS_MAX ? FDS_MAX : limit.rlim_max;
	if (limit.rlim_cur >= most)
		return;
	limit.rlim_cur = most;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* 1 and not 0: docs/design/0006. */
static int forbid_cores(struct error *err)
{
	return child_limit(RLIMIT_CORE, 1, err);
}

static int take_identity(const struct role_start *start, struct error *err)
{
	uid_t real, effective, saved;
	gid_t group = (gid_t)-1;
	/* Now, while it may; capability_drop_all reads it back. */
	for (int i = 0; i < 64; i++)
		prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	/* A plain user's role keeps its groups: setgroups is denied in an unprivileged user
	 * namespace. */
	if (geteuid() == 0 && setgroups(0, NULL))
		return fail_errno(err, "drop supplementary groups");
	if (setresgid(start->gid, start->gid, start->gid))
		return fail_errno(err, "become group %u", (unsigned)start->gid);
	if (setresuid(start->uid, start->uid, start->uid))
		return fail_errno(err, "become user %u", (unsigned)start->uid);
	group = getegid();
	if (getresuid(&real, &effective, &saved) || real != start->uid || effective != start->uid ||
		saved != start->uid || group != start->gid)
		return fail(
			err, ERR_FAILED, "the role did not become user %u", (unsigned)start->uid);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return fail_errno(err, "set no_new_privs");
	return capability_drop_all(err);
}

static int open_settings(const char *settings)
{
	if (!settings)
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	auto_close int fd = memfd_create("settings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ssize_t len = (ssize_t)strlen(settings);
	if (fd < 0 || fd_write_full(fd, settings, (size_t)len) != len || lseek(fd, 0, SEEK_SET) ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		return -1;
	return take_fd(&fd);
}

/* Everything is moved out of the way first, so that no place is taken before it is free. */
static int place_fds(const struct role_start *start, int *report, struct error *err)
{
	int moved[ROLE_FDS_MAX], last = FIRST_FD + start->fd_count;
	int in = open_settings(start->settings);
	int log = fcntl(start->log, F_DUPFD_CLOEXEC, last);
	*report = fcntl(*report, F_DUPFD_CLOEXEC, last);
	if (in < 0 || log < 0 || *report < 0)
		return fail_errno(err, "open the settings and the log of a role");
	for (int i = 0; i < start->fd_count; i++)
		if ((moved[i] = fcntl(start->fds[i], F_DUPFD_CLOEXEC, last)) < 0)
			return fail_errno(err, "duplicate descriptor %d for a role", FIRST_FD + i);
	bool failed = dup2(in, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
		      dup2(log, STDERR_FILENO) < 0;
	for (int i = 0; i < start->fd_count; i++)
		failed |= dup2(moved[i], FIRST_FD + i) < 0;
	if (failed || close_range((unsigned)last, ~0u, CLOSE_RANGE_CLOEXEC))
		return fail_errno(err, "move the descriptors of a role into place");
	return 0;
}

/* The parent may have died before the kernel knew what then to do; it is in another pid namespace,
 * so that getppid() doesn't tell. */
static int bind_to_parent(int report, struct error *err)
{
	const struct role_report bound = { .is_bound = true };
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return fail_errno(err, "set the parent-death signal of a role");
	if (send(report, &bound, sizeof bound, MSG_NOSIGNAL) != sizeof bound)
		_exit(125);
	return 0;
}

static int prepare(const struct role_start *start, bool has_userns, int *report, struct error *err)
{
	const struct namespace_ids ids = { start->uid, start->uid, start->gid, start->gid };
	setsid(); /* a terminal's ^C is for the parent to act on */
	child_reset_signals();
	signal(SIGPIPE, SIG_DFL); /* for the role to decide */
	if (has_userns && namespace_write_maps(0, &ids, true, err))
		return -1;
	role_raise_fds();
	if (forbid_cores(err) || role_enter_root(start, err) || place_fds(start, report, err) ||
		take_identity(start, err))
		return -1;
	return bind_to_parent(*report, err);
}

/* A sanitizer's options are for its programs too; what leaks can't be looked for in a role, which
 * may not be traced. */
static char *const *sanitizer_env(char *const *env)
{
	static char text[2][512];
	static char *extended[ENV_MAX + 3];
	const char *address = getenv("ASAN_OPTIONS"), *undefined = getenv("UBSAN_OPTIONS");
	size_t count = 0;
	while (count < ENV_MAX && env[count]) {
		extended[count] = env[count];
		count++;
	}
	str_format(text[0], sizeof text[0], "ASAN_OPTIONS=%s:detect_leaks=0",
		address ? address : "abort_on_error=0");
	str_format(text[1], sizeof text[1], "UBSAN_OPTIONS=%s", undefined ? undefined : "");
	extended[count++] = text[0];
	extended[count++] = text[1];
	extended[count] = NULL;
	return extended;
}

static _Noreturn void become(const struct role_start *start, bool has_userns, int report)
{
	struct role_report failed = { 0 };
	char path[512];
	if (!prepare(start, has_userns, &report, &failed.err)) {
		str_format(path, sizeof path, "%s/%s", ROLE_PROGRAM_DIR, start->argv[0]);
		execve(path, start->argv, IS_SANITIZED ? sanitizer_env(start->env) : start->env);
		fail_errno(&failed.err, "execute '%s'", start->program);
	}
	send(report, &failed, sizeof failed, MSG_NOSIGNAL);
	_exit(125);
}

static int check(struct role_start *start, bool *has_userns, struct error *err)
{
	*has_userns = !capability_is_effective(CAPABILITY_SYS_ADMIN);
	if (start->uid == (uid_t)-1) {
		start->uid = geteuid();
		start->gid = getegid();
	}
	if (!path_is_normal(start->program) || start->fd_count < 0 ||
		start->fd_count > ROLE_FDS_MAX)
		return fail(err, ERR_INVALID,
			"role '%s': invalid program path or number of descriptors", start->program);
	if (start->uid == 0 || start->gid == 0)
		return fail(err, ERR_DENIED, "role '%s' must not run as root", start->program);
	if (*has_userns && start->uid != geteuid())
		return fail(err, ERR_DENIED, "role '%s' can't become user %u without CAP_SYS_ADMIN",
			start->program, (unsigned)start->uid);
	if (geteuid() != 0 && start->uid == OVERFLOW_UID)
		return fail_hint(err, ERR_UNAVAILABLE, "run carrel as another user",
			"uid %u is the overflow uid, which can't be mapped in a user namespace",
			OVERFLOW_UID);
	return 0;
}

/* Until the program is executed, which closes the other end. */
static int await(int report, struct error *err)
{
	struct role_report got;
	bool is_bound = false;
	for (;;) {
		ssize_t len = recv(report, &got, sizeof got, 0);
		if (len < 0 && errno == EINTR)
			continue;
		if (len == sizeof got && got.is_bound) {
			is_bound = true;
			continue;
		}
		if (len == sizeof got) {
			if (err)
				*err = got.err;
			return -1;
		}
		return is_bound && len == 0
			       ? 0
			       : fail(err, ERR_FAILED, "the role ended while it started");
	}
}

int role_start(const struct role_start *wanted, pid_t *pid, int *pidfd, struct error *err)
{
	struct role_start start = *wanted;
	int ends[2], status;
	bool has_userns;
	pid_t child;
	auto_close int child_fd = -1;
	if (check(&start, &has_userns, err))
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return fail_errno(err, "make a pair of sockets");
	auto_close int report = ends[0], theirs = ends[1];
	if (namespace_clone(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
				    (start.has_network ? 0 : CLONE_NEWNET) |
				    (has_userns ? CLONE_NEWUSER : 0),
		    -1, &child_fd, &child, err))
		return error_context(err, "start '%s'", start.program);
	if (child == 0) {
		fd_close(&report);
		become(&start, has_userns, theirs);
	}
	fd_close(&theirs);
	if (await(report, err)) {
		pidfd_signal(child_fd, SIGKILL, NULL);
		pidfd_reap(child_fd, true, &status, NULL, NULL);
		return error_context(err, "start '%s'", start.program);
	}
	*pid = child;
	*pidfd = take_fd(&child_fd);
	return 0;
}

static int close_files(const struct role_lock *lock, struct error *err)
{
	int abi = landlock_abi();
	auto_close int ruleset = -1;
	if (landlock_create_changes(abi, &ruleset, err))
		return -1;
	for (size_t i = 0; i < lock->path_count; i++) {
		const struct role_path *path = &lock->paths[i];
		/* seccomp lets who owns trees make device 0:0, and no other. */
		unsigned whiteout = lock->owns_trees ? LANDLOCK_WHITEOUT : 0;
		unsigned access = (path->access & ROLE_WRITE ? LANDLOCK_CHANGE | whiteout : 0) |
				  (path->access & ROLE_EXECUTE ? LANDLOCK_EXECUTE : 0);
		auto_close int fd = open(path->path, O_PATH | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			return fail_errno(err, "open '%s'", path->path);
		if (fd >= 0 && access && landlock_allow(ruleset, abi, fd, path->path, access, err))
			return -1;
	}
	return landlock_enforce(ruleset, err);
}

/* "1000 1000 1": a plain user's. */
static bool has_one_id(void)
{
	char text[128];
	unsigned inside, outside, count;
	return fd_read_file(AT_FDCWD, "/proc/self/uid_map", text, sizeof text) > 0 &&
	       sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 && count == 1;
}

int role_lock(const struct role_lock *lock, struct error *err)
{
	bool is_root = geteuid() == 0 || getuid() == 0;
	if (is_root && !lock->may_be_root)
		return fail(err, ERR_DENIED, "a role must not run as root");
	bool has_rights = lock->owns_trees && !namespace_enter_own(err);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return fail_errno(err, "set no_new_privs");
	if (has_rights ? capability_keep(TREE_RIGHTS, err) : capability_drop_held(err))
		return -1;
	if (forbid_cores(err))
		return -1;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return fail_errno(err, "make the role undumpable");
	bool is_closed = lock->path_count && (lock->owns_trees || !has_one_id());
	if ((is_closed || is_root) && close_files(lock, err))
		return -1;
	return lock->owns_trees ? seccomp_load_trees(err) : seccomp_load_role(lock->may_fork, err);
}
