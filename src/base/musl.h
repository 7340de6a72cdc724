/* musl.h -- what musl 1.2 has no declaration for, included by the compiler's command line where
 * carrel is built with musl (docs/design/0002). Thin: system calls by number, and the kernel's
 * constants. */
#pragma once
#ifndef __ASSEMBLER__
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef __O_TMPFILE
#define __O_TMPFILE (O_TMPFILE & ~O_DIRECTORY)
#endif
#ifndef PRJQUOTA
#define PRJQUOTA 2
#endif

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
static inline int open_tree(int dir, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags);
}
static inline int move_mount(
	int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}
static inline int fsopen(const char *type, unsigned flags)
{
	return (int)syscall(SYS_fsopen, type, flags);
}
static inline int fsconfig(int fs, unsigned command, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fs, command, key, value, aux);
}
static inline int fsmount(int fs, unsigned flags, unsigned attributes)
{
	return (int)syscall(SYS_fsmount, fs, flags, attributes);
}
static inline int mount_setattr(
	int dir, const char *path, unsigned flags, struct mount_attr *attr, size_t size)
{
	return (int)syscall(SYS_mount_setattr, dir, path, flags, attr, size);
}

#define CLOSE_RANGE_CLOEXEC 4
static inline int close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

#define STATX_BASIC_STATS 0x7ff
#define STATX_MNT_ID 0x1000
#define STATX_ATTR_MOUNT_ROOT 0x2000
struct statx_timestamp {
	int64_t tv_sec;
	uint32_t tv_nsec;
	int32_t reserved;
};
struct statx {
	uint32_t stx_mask, stx_blksize;
	uint64_t stx_attributes;
	uint32_t stx_nlink, stx_uid, stx_gid;
	uint16_t stx_mode, spare;
	uint64_t stx_ino, stx_size, stx_blocks, stx_attributes_mask;
	struct statx_timestamp stx_atime, stx_btime, stx_ctime, stx_mtime;
	uint32_t stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor;
	uint64_t stx_mnt_id, reserved[13];
};
static inline int statx(int dir, const char *path, int flags, unsigned mask, struct statx *out)
{
	return (int)syscall(SYS_statx, dir, path, flags, mask, out);
}

/* musl's strerror has one language only. */
static inline const char *strerrordesc_np(int number)
{
	return strerror(number);
}
#endif
