/* home_image.h -- a home that is a file system of its own, in one sparse file beside it: for hosts
 * whose file systems keep no quotas. $CARREL_HOME.img is mounted on $CARREL_HOME.
 * 1. The image belongs to root, and so does its directory: no other user can make root mount a
 * prepared image.
 * 2. An image has its name when it is whole; what a crash leaves has another one.
 * 3. The directory below the mount holds HOME_IMAGE_MARK: a home whose image was lost isn't taken
 * for an empty one. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "linux/disk_quota.h"

#define HOME_IMAGE_MARK ".carrel-image"
#define HOME_IMAGE_BYTES_MIN (256ull << 20)

enum home_image_fs { HOME_IMAGE_BTRFS, HOME_IMAGE_EXT4, HOME_IMAGE_FS_COUNT };
const char *home_image_fs_name(enum home_image_fs fs);

/* Mounts the image of the home at `path` when it has one that isn't mounted. A no-op for callers
 * other than root, and for a home without an image. ERR_NOT_FOUND: its image is gone. ERR_DENIED:
 * it isn't root's alone. ERR_CORRUPT: it holds no file system that can be mounted. */
int home_image_ensure(const char *path, struct error *err);

/* Makes an image of `size_bytes` for the home at `path`, which is absent or empty, gives the file
 * system in it to uid and gid, and mounts it. *image: its path, in the arena; *mechanism: how the
 * kernel keeps limits there. Nothing is left on failure. ERR_CONFLICT: the home isn't empty or has
 * an image, or another process is making one. ERR_UNAVAILABLE: a program, loop devices, or quotas
 * of that file system aren't there. Needs root. */
int home_image_make(const char *path, uint64_t size_bytes, enum home_image_fs fs, uid_t uid,
	gid_t gid, struct arena *arena, const char **image, enum quota_mechanism *mechanism,
	struct error *err);
