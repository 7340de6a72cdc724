/* View root: the workspace's tree becomes the root, and what a sandbox has of its own is put over
 * the names that it takes there. The tmpfs that held all of it is gone with the old root. Nothing
 * of the workspace's tree is followed or believed: its commands may have left anything there. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "linux/mount.h"
#include "sandbox/native/child.h"
#include "sandbox/native/point.h"

/* A link such as /bin is followed within our own root: in its place, what it leads to is shown.
 * -1 with errno. */
static int open_own(int own, const char *name)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	return (int)syscall(SYS_openat2, own, name, &how, sizeof how);
}

static bool is_directory(int own, const char *name)
{
	struct stat st;
	return !fstatat(own, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

static bool is_mounted(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->mounts.count; i++) {
		const struct plan_mount *mount = &plan->mounts.items[i];
		/* Views lie in our own root. */
		if (mount->kind != MOUNT_VIEWS && !strcmp(mount->target + 1, name))
			return true;
	}
	return false;
}

/* *tree is attached, and yours. 1: there is nothing of that name. */
static int cover(
	struct sandbox_child *child, int workspace, const char *name, int *tree, struct error *err)
{
	struct stat st;
	struct mount_change shut = { .set = child_attributes(MOUNT_RO) };
	auto_close int from = open_own(child->root, name), clone = -1, point = -1;
	if (from < 0 && errno == ENOENT)
		return 1;
	if (from < 0 || fstat(from, &st))
		return fail_errno(err, "open '/%s' of the sandbox", name);
	/* A directory of our own root, such as /etc. What is mounted has its attributes. */
	bool is_plain = !is_mounted(child->plan, name) && is_directory(child->root, name);
	if (mount_clone(from, "", &clone, err) || (is_plain && mount_change(clone, "", &shut, err)))
		return -1;
	if (point_open(workspace, name, S_ISDIR(st.st_mode), &point, err) ||
		mount_attach(clone, point, "", err))
		return error_context(err, "'/%s'", name);
	*tree = take_fd(&clone);
	return 0;
}

/* With a root that a command has closed to its own user, no command could run, nor open it again.
 */
static int open_up(const struct sandbox_child *child, int workspace, struct error *err)
{
	struct stat st;
	if (fstat(workspace, &st))
		return fail_errno(err, "look at the workspace");
	if ((st.st_mode & S_IRWXU) == S_IRWXU)
		return 0;
	return fchmodat(child->root, &PLAN_WORKSPACE[1], (st.st_mode & 07777) | S_IRWXU, 0)
		       ? fail_errno(err, "give the workspace back to its user")
		       : 0;
}

int child_take_workspace_root(struct sandbox_child *child, int workspace, struct error *err)
{
	const struct plan *plan = child->plan;
	if (child_finish_files(child, err) || open_up(child, workspace, err))
		return -1;
	for (size_t i = 0; i < plan->covers.count; i++) {
		const char *name = plan->covers.items[i];
		auto_close int tree = -1;
		int failed = cover(child, workspace, name, &tree, err);
		if (failed < 0)
			return -1;
		/* Narrows and reports the hierarchy that processes see. */
		if (!failed && !strcmp(name, "proc")) {
			fd_close(&child->report[SETUP_PROC]);
			child->report[SETUP_PROC] = take_fd(&tree);
		}
	}
	int root = fcntl(workspace, F_DUPFD_CLOEXEC, 0);
	if (root < 0)
		return fail_errno(err, "keep the workspace open");
	child->root = root;
	return 0;
}
