#include "linux/probe.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "linux/landlock.h"
#include "linux/memfd.h"
#include "linux/namespace.h"
#include "linux/pidfd.h"
#include "linux/seccomp.h"

#define PROBE_SECONDS 5
#define OVERLAY_LOWERS_MAX 500
/* The one directory that is there wherever carrel can run, and that no probe needs after its maps
 * are written. */
#define SCRATCH "/proc"

/* Runs in the child. 0, or -1 with errno and *step set to the call that failed. */
typedef int probe_fn(const void *ctx, const char **step);

static void probe_fail(struct probe *out, int error, const char *step)
{
	out->error = error;
	str_copy(out->step, sizeof out->step, step);
}

/* A call and its result. */
static bool fails(const char **step, const char *call, long result)
{
	if (result < 0)
		*step = call;
	return result < 0;
}

static void child_main(int go, int answer, bool is_mapped, probe_fn *fn, const void *ctx)
{
	struct probe result = { 0 };
	const char *step = "";
	char byte;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	alarm(PROBE_SECONDS);
	(void)fd_read_full(go, &byte, 1);
	if (is_mapped &&
		(syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0))
		probe_fail(&result, errno, "setresuid");
	else if (fn(ctx, &step) < 0)
		probe_fail(&result, errno, step);
	(void)fd_write_full(answer, &result, sizeof result);
	_exit(0);
}

/* Nothing comes from `answer` when the child executed something. */
static void probe_take_answer(pid_t pid, int answer, struct probe *out)
{
	struct probe said = { 0 };
	int status = 0;
	ssize_t got = fd_read_full(answer, &said, sizeof said);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (got == (ssize_t)sizeof said)
		*out = said;
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		probe_fail(out, ETIMEDOUT, "the kernel's answer");
	else if (WIFSIGNALED(status))
		probe_fail(
			out, ENOSYS, WTERMSIG(status) == SIGSYS ? "killed by seccomp" : "killed");
	else if (WEXITSTATUS(status) != 0)
		probe_fail(out, ENOEXEC, "exec");
}

/* `ids` are given with CLONE_NEWUSER and only then: the child waits until they are mapped. */
static void probe_in_child(
	int flags, const struct probe_ids *ids, probe_fn *fn, const void *ctx, struct probe *out)
{
	int go[2], answer[2];
	struct error err = { 0 };
	*out = (struct probe){ 0 };
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0) {
		probe_fail(out, errno, "pipe");
		return;
	}
	auto_close int go_in = go[1], answer_out = answer[0];
	pid_t pid = (pid_t)syscall(SYS_clone, (long)(flags | SIGCHLD), NULL, NULL, NULL, NULL);
	if (pid == 0) {
		close(go[1]);
		child_main(go[0], answer[1], ids != NULL, fn, ctx);
	}
	int error = errno;
	close(go[0]);
	close(answer[1]);
	if (pid < 0) {
		probe_fail(out, error, "clone");
		return;
	}
	const struct namespace_ids maps = { 0, ids ? ids->uid : 0, 0, ids ? ids->gid : 0 };
	bool is_mapped = !ids || namespace_write_maps(pid, &maps, true, &err) == 0;
	if (!is_mapped)
		kill(pid, SIGKILL);
	fd_close(&go_in);
	probe_take_answer(pid, answer_out, out);
	if (!is_mapped)
		probe_fail(out, err.sys_errno, "map ids");
}

static int mount_scratch(const char **step)
{
	return fails(step, "make mounts private",
		       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) ||
			       fails(step, "mount tmpfs",
				       mount("tmpfs", SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV,
					       "size=4m,mode=0755"))
		       ? -1
		       : 0;
}

static int do_nothing(const void *ctx, const char **step)
{
	return 0;
}

static int do_user_namespace(const void *ctx, const char **step)
{
	return mount_scratch(step);
}

void probe_user_namespace(const struct probe_ids *ids, struct probe *out)
{
	probe_in_child(CLONE_NEWUSER | CLONE_NEWNS, ids, do_user_namespace, NULL, out);
}

void probe_namespace(const struct probe_ids *ids, int flag, struct probe *out)
{
	probe_in_child(CLONE_NEWUSER | flag, ids, do_nothing, NULL, out);
}

static int do_fresh_proc(const void *ctx, const char **step)
{
	if (fails(step, "make mounts private", mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)))
		return -1;
	*step = "mount proc";
	return mount("proc", SCRATCH, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

void probe_fresh_proc(const struct probe_ids *ids, struct probe *out)
{
	probe_in_child(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID, ids, do_fresh_proc, NULL, out);
}

/* Makes the superblock that `fs` describes and returns a detached mount of it. */
static int create_mount(int fs, const char **step)
{
	if (fails(step, "fsconfig create", fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0)))
		return -1;
	*step = "fsmount";
	return fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int do_mount_api(const void *ctx, const char **step)
{
	struct mount_attr attributes = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
						     MOUNT_ATTR_NODEV };
	auto_close int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (fails(step, "fsopen", fs) ||
		fails(step, "fsconfig", fsconfig(fs, FSCONFIG_SET_STRING, "size", "1m", 0)))
		return -1;
	auto_close int mounted = create_mount(fs, step);
	if (mounted < 0 ||
		fails(step, "move_mount",
			move_mount(mounted, "", AT_FDCWD, SCRATCH, MOVE_MOUNT_F_EMPTY_PATH)))
		return -1;
	auto_close int tree =
		open_tree(AT_FDCWD, SCRATCH, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (fails(step, "open_tree", tree))
		return -1;
	*step = "mount_setattr";
	return mount_setattr(
		tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes);
}

void probe_mount_api(const struct probe_ids *ids, struct probe *out)
{
	probe_in_child(CLONE_NEWUSER | CLONE_NEWNS, ids, do_mount_api, NULL, out);
}

static int do_tmpfs_xattr(const void *ctx, const char **step)
{
	if (mount_scratch(step) < 0 || fails(step, "mkdir", mkdir(SCRATCH "/d", 0755)))
		return -1;
	*step = "setxattr";
	return setxattr(SCRATCH "/d", "user.carrel", "1", 1, 0);
}

void probe_tmpfs_xattr(const struct probe_ids *ids, struct probe *out)
{
	probe_in_child(CLONE_NEWUSER | CLONE_NEWNS, ids, do_tmpfs_xattr, NULL, out);
}

struct overlay_probe {
	int dir;
	int *lowers; /* in memory that the child shares */
};

/* Everything that an upper has to be able to do: a new file, a copy-up, a whiteout. */
static int use_overlay(int mounted, const char **step)
{
	auto_close int made = openat(mounted, "new", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (fails(step, "write through the overlay", made))
		return -1;
	auto_close int copied = openat(mounted, "changed", O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fails(step, "copy up", copied))
		return -1;
	*step = "make a whiteout";
	return unlinkat(mounted, "removed", 0);
}

static int make_file(const char *path)
{
	auto_close int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	return fd < 0 ? -1 : 0;
}

/* Gives `fs` lower directories 0, 1, …; the first is made already. Returns how many went in, 0
 * without lowerdir+. */
static int add_lowers(int fs, int most)
{
	int count = 0;
	for (; count < most; count++) {
		char name[16];
		str_format(name, sizeof name, "%d", count);
		if (count > 0 && mkdir(name, 0755) < 0)
			break;
		if (fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir+", name, 0) < 0)
			break;
	}
	return count;
}

static int do_overlay(const void *ctx, const char **step)
{
	const struct overlay_probe *probe = ctx;
	bool on_tmpfs = probe->dir < 0;
	/* The mount namespace comes after fchdir: the kernel then moves our cwd into the copy,
	 * where overlay accepts it. */
	if ((!on_tmpfs && fails(step, "chdir", fchdir(probe->dir))) ||
		fails(step, "unshare", unshare(CLONE_NEWNS)) ||
		(on_tmpfs && (mount_scratch(step) < 0 || chdir(SCRATCH) < 0)) ||
		fails(step, "mkdir", mkdir("0", 0755)) ||
		fails(step, "mkdir", mkdir("upper", 0755)) ||
		fails(step, "mkdir", mkdir("work", 0755)) ||
		fails(step, "make a file", make_file("0/changed")) ||
		fails(step, "make a file", make_file("0/removed")))
		return -1;
	auto_close int fs = fsopen("overlay", FSOPEN_CLOEXEC);
	if (fails(step, "fsopen overlay", fs))
		return -1;
	*probe->lowers = add_lowers(fs, on_tmpfs ? OVERLAY_LOWERS_MAX : 1);
	if ((*probe->lowers == 0 &&
		    fails(step, "fsconfig lowerdir",
			    fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", "0", 0))) ||
		fails(step, "fsconfig userxattr",
			fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0)) ||
		fails(step, "fsconfig upperdir",
			fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", "upper", 0)) ||
		fails(step, "fsconfig workdir",
			fsconfig(fs, FSCONFIG_SET_STRING, "workdir", "work", 0)))
		return -1;
	auto_close int mounted = create_mount(fs, step);
	return mounted < 0 ? -1 : use_overlay(mounted, step);
}

void probe_overlay(const struct probe_ids *ids, int dir, struct probe *out, int *lowers)
{
	int *shared = mmap(
		NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		probe_fail(out, errno, "mmap");
		return;
	}
	const struct overlay_probe probe = { dir, shared };
	probe_in_child(CLONE_NEWUSER, ids, do_overlay, &probe, out);
	*lowers = *shared;
	munmap(shared, sizeof *shared);
}

static int idmap_tree(int dir, int userns, const char **step)
{
	struct mount_attr attributes = { .attr_set = MOUNT_ATTR_IDMAP,
		.userns_fd = (unsigned)userns };
	struct stat before, after;
	auto_close int tree =
		open_tree(dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fails(step, "open_tree", tree) ||
		fails(step, "mount_setattr",
			mount_setattr(tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes)))
		return -1;
	*step = "translate an owner";
	if (fstat(dir, &before) < 0 || fstat(tree, &after) < 0)
		return -1;
	errno = EINVAL;
	return before.st_uid == after.st_uid ? -1 : 0;
}

void probe_idmap(const struct probe_ids *ids, int dir, struct probe *out)
{
	auto_close int userns = -1;
	struct error err = { 0 };
	const char *step = "";
	*out = (struct probe){ 0 };
	if (namespace_make_idmap(0, 0, ids->uid, ids->gid, &userns, &err) < 0)
		probe_fail(out, err.sys_errno, "make a user namespace");
	/* This makes and drops a detached mount only: it needs no child of its own. */
	else if (idmap_tree(dir, userns, &step) < 0)
		probe_fail(out, errno, step);
}

void probe_clone3(struct probe *out)
{
	auto_close int pidfd = -1;
	struct error err = { 0 };
	int status;
	pid_t pid;
	*out = (struct probe){ 0 };
	if (namespace_clone(0, -1, &pidfd, &pid, &err) < 0) {
		probe_fail(out, err.sys_errno, "clone3");
		return;
	}
	if (pid == 0)
		_exit(0);
	if (pidfd_reap(pidfd, true, &status, NULL, &err) < 0) {
		probe_fail(out, err.sys_errno, "waitid by pidfd");
		waitpid(pid, NULL, 0);
	}
}

static int do_memfd_exec(const void *ctx, const char **step)
{
	static char name[] = "carrel", verb[] = "version";
	char *const argv[] = { name, verb, NULL }, *const env[] = { NULL };
	struct stat info;
	int memfd = memfd_create_program("probe");
	if (fails(step, "memfd_create", memfd))
		return -1;
	*step = "copy /proc/self/exe";
	int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (exe < 0 || fstat(exe, &info) < 0)
		return -1;
	for (off_t done = 0; done < info.st_size;) {
		ssize_t moved = sendfile(memfd, exe, &done, (size_t)(info.st_size - done));
		if (moved <= 0)
			return -1;
	}
	if (fails(step, "seal",
		    fcntl(memfd, F_ADD_SEALS,
			    F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)))
		return -1;
	/* Without /dev/null (in a chroot) the output goes to a memfd. */
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		null = memfd_create("null", MFD_CLOEXEC);
	*step = "dup2";
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null, fd) < 0)
			return -1;
	*step = "execveat";
	return (int)syscall(SYS_execveat, memfd, "", argv, env, AT_EMPTY_PATH);
}

void probe_memfd_exec(struct probe *out)
{
	probe_in_child(0, NULL, do_memfd_exec, NULL, out);
}

static int do_seccomp(const void *ctx, const char **step)
{
	struct error err = { 0 };
	if (fails(step, "no_new_privs", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
		return -1;
	*step = "load filters";
	if (seccomp_load(SECCOMP_WITH_MEMFD, &err) < 0) {
		errno = err.sys_errno != 0 ? err.sys_errno : EINVAL;
		return -1;
	}
	*step = "refuse unshare";
	if (unshare(0) == 0 || errno != EPERM) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}

void probe_seccomp(struct probe *out)
{
	probe_in_child(0, NULL, do_seccomp, NULL, out);
}

static int do_landlock(const void *ctx, const char **step)
{
	int abi = *(const int *)ctx;
	auto_close int ruleset = -1;
	struct error err = { 0 };
	if (fails(step, "no_new_privs", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
		return -1;
	*step = "restrict";
	if (landlock_create(abi, &ruleset, &err) < 0 || landlock_enforce(ruleset, &err) < 0) {
		errno = err.sys_errno != 0 ? err.sys_errno : EINVAL;
		return -1;
	}
	*step = "refuse to open /";
	auto_close int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root >= 0 || errno != EACCES) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}

void probe_landlock(int abi, struct probe *out)
{
	probe_in_child(0, NULL, do_landlock, &abi, out);
}
