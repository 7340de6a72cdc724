#include "linux/disk_quota.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/quota.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
/* Any id will do for the trial: the directory is removed after it. */
#define TRIAL_PROJECT 1879048191u

static enum quota_mechanism counted(char why[QUOTA_WHY_LEN], const char *type, const char *reason)
{
	str_format(why, QUOTA_WHY_LEN, "%s: %s", type, reason);
	return QUOTA_COUNTED;
}

static enum quota_mechanism probe_project(int dir, const char *type, char why[QUOTA_WHY_LEN])
{
	struct fs_quota_statv state = { .qs_version = FS_QSTATV_VERSION1 };
	struct fsxattr attributes;

	/* One call for both file systems; it needs no privilege, and no path of the block device.
	 */
	if (syscall(SYS_quotactl_fd, dir, QCMD(Q_XGETQSTATV, PRJQUOTA), 0, &state) < 0)
		return counted(why, type,
			errno == ENOSYS ? "the kernel has no quota" : "project quota is off");
	if (!(state.qs_flags & FS_QUOTA_PDQ_ENFD))
		return counted(why, type, "project quota is not enforced");
	if (ioctl(dir, FS_IOC_FSGETXATTR, &attributes) < 0)
		return counted(why, type, "no project ids");
	attributes.fsx_projid = TRIAL_PROJECT;
	attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	if (ioctl(dir, FS_IOC_FSSETXATTR, &attributes) < 0)
		return counted(why, type, "a project id can't be set");
	struct dqblk limits = { 0 };
	if (syscall(SYS_quotactl_fd, dir, QCMD(Q_GETQUOTA, PRJQUOTA), TRIAL_PROJECT, &limits) < 0 &&
		errno != ENOENT && errno != ESRCH)
		return counted(why, type, "setting limits needs root");
	why[0] = '\0';
	return QUOTA_PROJECT;
}

static enum quota_mechanism probe_qgroup(int dir, char why[QUOTA_WHY_LEN])
{
	/* No flag: the call goes all the way for the subvolume that holds dir, and changes no
	 * limit. A trial on a subvolume made for it would leave a stale group behind until the file
	 * system's cleaner comes by. */
	struct btrfs_ioctl_qgroup_limit_args limit = { .lim = { .flags = 0 } };

	if (ioctl(dir, BTRFS_IOC_QGROUP_LIMIT, &limit) == 0) {
		why[0] = '\0';
		return QUOTA_QGROUP;
	}
	if (errno == ENOTCONN)
		return counted(why, "btrfs", "quotas are off");
	return counted(
		why, "btrfs", errno == EPERM ? "setting limits needs root" : strerror(errno));
}

enum quota_mechanism quota_probe(int dir, char why[QUOTA_WHY_LEN])
{
	static const struct {
		long magic;
		const char *name;
	} others[] = { { TMPFS_MAGIC, "tmpfs" }, { OVERLAYFS_SUPER_MAGIC, "overlay" },
		{ NFS_SUPER_MAGIC, "nfs" } };
	struct statfs info;

	if (fstatfs(dir, &info) < 0)
		return counted(why, "unknown file system", strerror(errno));
	if (info.f_type == XFS_SUPER_MAGIC)
		return probe_project(dir, "xfs", why);
	if (info.f_type == EXT4_SUPER_MAGIC)
		return probe_project(dir, "ext4", why);
	if (info.f_type == BTRFS_SUPER_MAGIC)
		return probe_qgroup(dir, why);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if ((long)info.f_type == others[i].magic)
			return counted(why, others[i].name, "no quota of its own");
	return counted(why, "this file system", "no quota that carrel knows");
}
