#include "linux/disk_quota.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
/* Any id will do for the trial: the directory is removed after it. */
#define TRIAL_PROJECT 1879048191u
#define PROJECT_FIRST (1u << 30)
#define PROJECT_TRIES 1000
#define SUBVOLUME_INODE 256 /* inode number of every subvolume's root directory */

static enum quota_mechanism counted(char why[QUOTA_WHY_LEN], const char *type, const char *reason)
{
	str_format(why, QUOTA_WHY_LEN, "%s: %s", type, reason);
	return QUOTA_COUNTED;
}

/* `attributes` are those of fd, as they were read. What is made in it later gets the id, too. */
static int set_project(int fd, struct fsxattr *attributes, uint32_t project)
{
	attributes->fsx_projid = project;
	attributes->fsx_xflags |= FS_XFLAG_PROJINHERIT;
	return ioctl(fd, FS_IOC_FSSETXATTR, attributes);
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
	if (set_project(dir, &attributes, TRIAL_PROJECT) < 0)
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
	/* Without flags the call does all its checks for the subvolume that holds dir, and changes
	 * no limit. A trial on a new subvolume would leave a stale group behind until the file
	 * system's cleaner runs. */
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

const char *const quota_names[QUOTA_MECHANISM_COUNT] = { [QUOTA_COUNTED] = "counted",
	[QUOTA_PROJECT] = "project-quota",
	[QUOTA_QGROUP] = "btrfs-qgroup" };

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
	return counted(why, "this file system", "no quota that carrel supports");
}

/* -- limits -- */

int quota_make_directory(int parent, const char *name, mode_t mode, enum quota_mechanism mechanism)
{
	struct btrfs_ioctl_vol_args args = { .fd = 0 };
	if (mechanism != QUOTA_QGROUP)
		return mkdirat(parent, name, mode);
	if (!str_copy(args.name, sizeof args.name, name)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	/* An ioctl takes no O_PATH descriptor. */
	auto_close int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, BTRFS_IOC_SUBVOL_CREATE, &args) < 0)
		return -1;
	auto_close int made = fd_open_directory(parent, name);
	return made < 0 ? -1 : fchmod(made, mode);
}

static bool project_is_free(int dir, uint32_t project)
{
	struct dqblk used = { 0 };
	if (syscall(SYS_quotactl_fd, dir, QCMD(Q_GETQUOTA, PRJQUOTA), project, &used) < 0)
		return errno == ENOENT || errno == ESRCH;
	return used.dqb_curinodes == 0 && used.dqb_curspace == 0;
}

/* Searches from a start derived from the inode, so that concurrent callers rarely try the same ids.
 * Stale limits of a removed tree don't matter: an id without usage is free. */
static int find_project(int dir, uint32_t *project, struct error *err)
{
	struct stat st;
	if (fstat(dir, &st) < 0)
		return fail_errno(err, "look at the directory");
	uint32_t at = (uint32_t)st.st_ino & (PROJECT_FIRST - 1);
	for (int i = 0; i < PROJECT_TRIES; i++, at = (at + 1) & (PROJECT_FIRST - 1)) {
		if (project_is_free(dir, PROJECT_FIRST + at)) {
			*project = PROJECT_FIRST + at;
			return 0;
		}
	}
	return fail(err, ERR_UNAVAILABLE, "no project id is free");
}

static int limit_project(int dir, uint64_t bytes, uint64_t inodes, struct error *err)
{
	struct fsxattr attributes;
	uint32_t project;
	if (ioctl(dir, FS_IOC_FSGETXATTR, &attributes) < 0)
		return fail_errno(err, "read a project id");
	project = attributes.fsx_projid;
	bool is_new = project < PROJECT_FIRST;
	if (is_new && find_project(dir, &project, err) < 0)
		return -1;
	/* In kilobytes, whatever the file system. */
	struct dqblk limits = { .dqb_bhardlimit = (bytes + 1023) / 1024,
		.dqb_bsoftlimit = (bytes + 1023) / 1024,
		.dqb_ihardlimit = inodes,
		.dqb_isoftlimit = inodes,
		.dqb_valid = QIF_LIMITS };
	if (syscall(SYS_quotactl_fd, dir, QCMD(Q_SETQUOTA, PRJQUOTA), project, &limits) < 0)
		return fail_errno(err, "set the limits of project %u", project);
	/* Set last. */
	if (is_new && set_project(dir, &attributes, project) < 0)
		return fail_errno(err, "set a project id");
	return 0;
}

static int limit_qgroup(int dir, uint64_t bytes, struct error *err)
{
	struct btrfs_ioctl_qgroup_limit_args limit = {
		.lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER,
			.max_rfer = bytes ? bytes : UINT64_MAX }
	};
	struct stat st;
	if (fstat(dir, &st) < 0)
		return fail_errno(err, "look at the directory");
	if (st.st_ino != SUBVOLUME_INODE)
		return fail(err, ERR_UNAVAILABLE, "the directory is not a subvolume");
	/* qgroupid 0: of the subvolume that dir is in. */
	if (ioctl(dir, BTRFS_IOC_QGROUP_LIMIT, &limit) < 0)
		return fail_errno(err, "set the limit of a subvolume");
	return 0;
}

int quota_limit(
	int dir, enum quota_mechanism mechanism, uint64_t bytes, uint64_t inodes, struct error *err)
{
	switch (mechanism) {
	case QUOTA_PROJECT:
		return limit_project(dir, bytes, inodes, err);
	case QUOTA_QGROUP:
		return limit_qgroup(dir, bytes, err);
	case QUOTA_COUNTED:
		break;
	}
	return 0;
}
