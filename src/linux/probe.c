#include "linux/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
#include "linux/seccomp.h"

#define PROBE_SECONDS 5
#define OVERLAY_LOWERS_MAX 500
/* The one directory that is there wherever carrel can run, and that no probe needs after its maps
 * are written. */
#define SCRATCH "/proc"

/* Runs in the child. 0, or -1 with errno and *step set to the call that failed. */
typedef int probe_fn(const void *ctx, const char **step);

struct probe_child {
	pid_t pid;
	int go;	    /* closed: the child may start */
	int answer; /* a struct probe comes back; nothing does when the child executed something */
};

static void probe_fail(struct probe *out, int error, const char *step)
{
	out->error = error;
	str_copy(out->step, sizeof out->step, step);
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

static int write_maps(pid_t pid, const struct probe_ids *ids, const char **step)
{
	const struct {
		const char *name;
		long id; /* -1: "deny" */
	} files[] = { { "setgroups", -1 }, { "gid_map", (long)ids->gid },
		{ "uid_map", (long)ids->uid } };

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char path[64], text[64];
		str_format(path, sizeof path, "/proc/%d/%s", (int)pid, files[i].name);
		if (files[i].id < 0)
			str_copy(text, sizeof text, "deny");
		else
			str_format(text, sizeof text, "0 %ld 1", files[i].id);
		*step = files[i].name;
		/* Kernels without it (CONFIG_MULTIUSER aside) are older than our floor; a missing
		 * file is then said by gid_map. */
		if (fd_write_file(AT_FDCWD, path, text) < 0 &&
			!(files[i].id < 0 && errno == ENOENT))
			return -1;
	}
	return 0;
}

static void child_finish(struct probe_child *child, struct probe *out)
{
	struct probe answer = { 0 };
	int status = 0;

	fd_close(&child->go);
	ssize_t got = fd_read_full(child->answer, &answer, sizeof answer);
	fd_close(&child->answer);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (got == (ssize_t)sizeof answer)
		*out = answer;
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		probe_fail(out, ETIMEDOUT, "the kernel's answer");
	else if (WIFSIGNALED(status))
		probe_fail(
			out, ENOSYS, WTERMSIG(status) == SIGSYS ? "killed by seccomp" : "killed");
	else if (WEXITSTATUS(status) != 0)
		probe_fail(out, ENOEXEC, "exec");
}

/* The child waits until child_finish. `ids` are given with CLONE_NEWUSER and only then. -1: *out
 * says why there is no child. */
static int child_start(int flags, const struct probe_ids *ids, probe_fn *fn, const void *ctx,
	struct probe_child *child, struct probe *out)
{
	int go[2], answer[2];
	const char *step = "clone";

	memset(out, 0, sizeof *out);
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0) {
		probe_fail(out, errno, "pipe");
		return -1;
	}
	pid_t pid = (pid_t)syscall(SYS_clone, (long)(flags | SIGCHLD), NULL, NULL, NULL, NULL);
	if (pid == 0) {
		close(go[1]);
		child_main(go[0], answer[1], ids != NULL, fn, ctx);
	}
	int error = errno;
	close(go[0]);
	close(answer[1]);
	*child = (struct probe_child){ pid, go[1], answer[0] };
	if (pid > 0 && ids && write_maps(pid, ids, &step) < 0) {
		struct probe ignored;
		error = errno;
		kill(pid, SIGKILL);
		child_finish(child, &ignored);
	} else if (pid > 0) {
		return 0;
	} else {
		fd_close(&child->go);
		fd_close(&child->answer);
	}
	probe_fail(out, error, step);
	return -1;
}

static void probe_in_child(
	int flags, const struct probe_ids *ids, probe_fn *fn, const void *ctx, struct probe *out)
{
	struct probe_child child;
	if (child_start(flags, ids, fn, ctx, &child, out) == 0)
		child_finish(&child, out);
}

static int mount_scratch(const char **step)
{
	*step = "make mounts private";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	*step = "mount tmpfs";
	return mount("tmpfs", SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=0755");
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
	*step = "make mounts private";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
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
	*step = "fsconfig create";
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	*step = "fsmount";
	return fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int do_mount_api(const void *ctx, const char **step)
{
	struct mount_attr attributes = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
						     MOUNT_ATTR_NODEV };

	*step = "fsopen";
	auto_close int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0)
		return -1;
	*step = "fsconfig";
	if (fsconfig(fs, FSCONFIG_SET_STRING, "size", "1m", 0) < 0)
		return -1;
	auto_close int mounted = create_mount(fs, step);
	if (mounted < 0)
		return -1;
	*step = "move_mount";
	if (move_mount(mounted, "", AT_FDCWD, SCRATCH, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -1;
	*step = "open_tree";
	auto_close int tree =
		open_tree(AT_FDCWD, SCRATCH, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (tree < 0)
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
	if (mount_scratch(step) < 0)
		return -1;
	*step = "mkdir";
	if (mkdir(SCRATCH "/d", 0755) < 0)
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
	*step = "write through the overlay";
	auto_close int made = openat(mounted, "new", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (made < 0)
		return -1;
	*step = "copy up";
	auto_close int copied = openat(mounted, "changed", O_WRONLY | O_APPEND | O_CLOEXEC);
	if (copied < 0)
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
	*step = "chdir";
	if (!on_tmpfs && fchdir(probe->dir) < 0)
		return -1;
	*step = "unshare";
	if (unshare(CLONE_NEWNS) < 0)
		return -1;
	if (on_tmpfs && (mount_scratch(step) < 0 || chdir(SCRATCH) < 0))
		return -1;
	*step = "mkdir";
	if (mkdir("0", 0755) < 0 || mkdir("upper", 0755) < 0 || mkdir("work", 0755) < 0)
		return -1;
	*step = "make a file";
	if (make_file("0/changed") < 0 || make_file("0/removed") < 0)
		return -1;
	*step = "fsopen overlay";
	auto_close int fs = fsopen("overlay", FSOPEN_CLOEXEC);
	if (fs < 0)
		return -1;
	*probe->lowers = add_lowers(fs, on_tmpfs ? OVERLAY_LOWERS_MAX : 1);
	*step = "fsconfig lowerdir";
	if (*probe->lowers == 0 && fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", "0", 0) < 0)
		return -1;
	*step = "fsconfig userxattr";
	if (fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0)
		return -1;
	*step = "fsconfig upperdir";
	if (fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", "upper", 0) < 0 ||
		fsconfig(fs, FSCONFIG_SET_STRING, "workdir", "work", 0) < 0)
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

static int idmap_tree(int dir, pid_t holder, const char **step)
{
	struct mount_attr attributes = { .attr_set = MOUNT_ATTR_IDMAP };
	char path[64];
	struct stat before, after;

	*step = "open a user namespace";
	str_format(path, sizeof path, "/proc/%d/ns/user", (int)holder);
	auto_close int userns = open(path, O_RDONLY | O_CLOEXEC);
	if (userns < 0)
		return -1;
	*step = "open_tree";
	auto_close int tree =
		open_tree(dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return -1;
	*step = "mount_setattr";
	attributes.userns_fd = (unsigned)userns;
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0)
		return -1;
	*step = "translate an owner";
	if (fstat(dir, &before) < 0 || fstat(tree, &after) < 0)
		return -1;
	errno = EINVAL;
	return before.st_uid == after.st_uid ? -1 : 0;
}

void probe_idmap(const struct probe_ids *ids, int dir, struct probe *out)
{
	struct probe_child child;
	struct probe ignored;
	const char *step = "";

	if (child_start(CLONE_NEWUSER, ids, do_nothing, NULL, &child, out) < 0)
		return;
	/* Both calls make and drop a detached mount only: this needs no child of its own. */
	if (idmap_tree(dir, child.pid, &step) < 0)
		probe_fail(out, errno, step);
	child_finish(&child, &ignored);
}

void probe_clone3(struct probe *out)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&pidfd, .exit_signal = SIGCHLD
	};

	memset(out, 0, sizeof *out);
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		_exit(0);
	if (pid < 0) {
		probe_fail(out, errno, "clone3");
		return;
	}
	siginfo_t info;
	if (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0) {
		probe_fail(out, errno, "waitid by pidfd");
		waitpid(pid, NULL, 0);
	}
	fd_close(&pidfd);
}

static int do_memfd_exec(const void *ctx, const char **step)
{
	static char name[] = "carrel", verb[] = "version";
	char *const argv[] = { name, verb, NULL }, *const env[] = { NULL };
	struct stat info;

	*step = "memfd_create";
	int memfd = memfd_create_program("probe");
	if (memfd < 0)
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
	*step = "seal";
	if (fcntl(memfd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -1;
	/* Where there is no /dev/null (a chroot), what it prints goes where nobody looks all the
	 * same. */
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

	*step = "no_new_privs";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
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

	*step = "no_new_privs";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
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
