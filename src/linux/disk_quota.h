/* disk_quota.h -- by what a tree on this file system can be kept to a number of bytes. */
#pragma once
#include "base/error.h"

enum quota_mechanism {
	QUOTA_COUNTED, /* by nothing in the kernel: the tree is walked and summed */
	QUOTA_PROJECT, /* project quota of xfs or ext4, accounted and enforced */
	QUOTA_QGROUP,  /* btrfs, one subvolume a tree */
};
#define QUOTA_MECHANISM_COUNT 3
extern const char *const quota_names[QUOTA_MECHANISM_COUNT]; /* as they are shown and stored */
#define QUOTA_WHY_LEN 96

/* Finds the mechanism by trying it on `dir`, an empty scratch directory whose project id it may
 * change; existing limits stay as they are. For QUOTA_COUNTED, `why` gets what is missing ("xfs:
 * project quota is off"). */
enum quota_mechanism quota_probe(int dir, char why[QUOTA_WHY_LEN]);

/* A directory that can be kept to a limit by that mechanism: mkdirat, and for QUOTA_QGROUP a
 * subvolume. 0, or -1 with errno. */
int quota_make_directory(int parent, const char *name, mode_t mode, enum quota_mechanism mechanism);
/* Keeps the tree at `dir` (open for reading, the owner's, empty when this is first asked for) to so
 * many bytes and inodes (0: any), whatever `mechanism` quota_probe found; for QUOTA_COUNTED there
 * is nothing to do. May be called again, with other limits. Needs root. Project ids are found, not
 * kept: one above 2^30 that nothing has. ERR_UNAVAILABLE: not this directory (on btrfs: no
 * subvolume); it has to be counted. */
int quota_limit(int dir, enum quota_mechanism mechanism, uint64_t bytes, uint64_t inodes,
	struct error *err);
