/* disk_quota.h -- by what a tree on this file system can be kept to a number of bytes. (Not
 * quota.h: that name would hide the kernel's <linux/quota.h>.) */
#pragma once

enum quota_mechanism {
	QUOTA_COUNTED, /* by nothing in the kernel: the tree is walked and summed */
	QUOTA_PROJECT, /* project quota of xfs or ext4, accounted and enforced */
	QUOTA_QGROUP,  /* btrfs, one subvolume a tree */
};
#define QUOTA_WHY_LEN 96

/* Tries it on `dir`, an empty directory of ours whose project id it may change; limits that exist
 * stay as they are. `why` says for QUOTA_COUNTED what is missing ("xfs: project quota is off"). */
enum quota_mechanism quota_probe(int dir, char why[QUOTA_WHY_LEN]);
