#include "linux/mount.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"

int mount_clone(int dir, const char *path, int *tree, struct error *err)
{
	int fd = open_tree(dir, path,
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
			(path[0] ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH));
	if (fd < 0)
		return fail_errno(err, "open '%s' for mounting", path);
	*tree = fd;
	return 0;
}

int mount_make(const char *type, const char *const options[], unsigned attributes, int *tree,
	struct error *err)
{
	auto_close int fs = fsopen(type, FSOPEN_CLOEXEC);
	if (fs < 0)
		return fail_errno(err, "make a %s file system", type);
	for (size_t i = 0; options[i]; i += 2)
		if (fsconfig(fs, FSCONFIG_SET_STRING, options[i], options[i + 1], 0))
			return fail_errno(
				err, "set %s=%s of a %s", options[i], options[i + 1], type);
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return fail_errno(err, "make a %s file system", type);
	int fd = fsmount(fs, FSMOUNT_CLOEXEC, attributes);
	if (fd < 0)
		return fail_errno(err, "mount a %s file system", type);
	*tree = fd;
	return 0;
}

int mount_attach(int tree, int dir, const char *path, struct error *err)
{
	unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (path[0] ? 0 : MOVE_MOUNT_T_EMPTY_PATH);
	if (move_mount(tree, "", dir, path, flags))
		return fail_errno(err, "mount at '/%s'", path);
	return 0;
}

int mount_change(int dir, const char *path, const struct mount_change *change, struct error *err)
{
	struct mount_attr attr = {
		.attr_set = change->set,
		.attr_clr = change->clear,
		.propagation = change->propagation,
		.userns_fd = change->set & MOUNT_ATTR_IDMAP ? (uint64_t)change->idmap : 0,
	};
	unsigned flags = (path[0] ? 0 : AT_EMPTY_PATH) | (change->recursive ? AT_RECURSIVE : 0);
	if (mount_setattr(dir, path, flags, &attr, sizeof attr))
		return fail_errno(err, "set mount attributes of '%s'", path);
	return 0;
}

int mount_cover_root(int root, struct error *err)
{
	if (move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH))
		return fail_errno(err, "move the new root to '/'");
	if (fchdir(root) || chroot(".") || chdir("/"))
		return fail_errno(err, "enter the new root");
	return 0;
}

int mount_pivot(int root, struct error *err)
{
	if (fchdir(root))
		return fail_errno(err, "enter the new root");
	/* The old root ends up on top of the new one, at the same place. */
	if (syscall(SYS_pivot_root, ".", "."))
		return fail_errno(err, "pivot_root");
	if (chdir("/"))
		return fail_errno(err, "enter the new root");
	return 0;
}

int mount_drop_old_root(struct error *err)
{
	/* The path's last step leads to what is mounted on top. */
	if (umount2("/", MNT_DETACH))
		return fail_errno(err, "unmount the old root");
	return 0;
}
