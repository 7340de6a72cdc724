/* Descriptors that a file server sends out of a sandbox: believed only after a look at them. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include "core/files/file_servers.h"

/* What a sandbox's trees can lie on. Not what the kernel makes up (/proc), and what a process could
 * stand behind. */
static bool is_expected(const struct statfs *fs)
{
	static const unsigned long types[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC, EROFS_SUPER_MAGIC_V1,
		SQUASHFS_MAGIC, NFS_SUPER_MAGIC, V9FS_MAGIC, CEPH_SUPER_MAGIC, FUSE_SUPER_MAGIC,
		0x2fc12fc1 /* ZFS */, 0xca451a4e /* bcachefs */ };

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if ((unsigned long)fs->f_type == types[i])
			return true;
	return false;
}

int file_check_fd(const struct file_ask *ask, int fd, struct error *err)
{
	bool writes = ask->verb == FILE_CREATE;
	struct statfs fs;
	struct stat st;
	int flags;

	if (fd < 0 || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0 ||
		(flags = fcntl(fd, F_GETFL)) < 0)
		return fail(err, ERR_FAILED, "the file agent sent no usable descriptor");
	int mode = flags & O_ACCMODE;
	if (!S_ISREG(st.st_mode) || flags & O_PATH || mode == (writes ? O_RDONLY : O_WRONLY) ||
		(writes && st.st_size))
		return fail(
			err, ERR_FAILED, "the file agent sent another descriptor than asked for");
	if (!is_expected(&fs))
		return fail(err, ERR_INVALID,
			"'%s' is on a file system whose files can only be read inside", ask->path);
	return 0;
}
