/* causes.h -- why a thing can't be done on this host, and what to type: one table of rules, the
 * first that fits counts. Pure, like diagnose.h. */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "linux/probe.h"

struct facts;

enum subject { /* what was tried */
	SUBJECT_USERNS = 1 << 0,
	SUBJECT_NAMESPACE = 1 << 1,
	SUBJECT_PROC = 1 << 2,
	SUBJECT_MOUNT_API = 1 << 3,
	SUBJECT_CLONE3 = 1 << 4,
	SUBJECT_SECCOMP = 1 << 5,
	SUBJECT_LANDLOCK = 1 << 6,
	SUBJECT_MEMFD = 1 << 7,
	SUBJECT_OVERLAY = 1 << 8,
	SUBJECT_HOME = 1 << 9,
	SUBJECT_HOME_OVERLAY = 1 << 10,
	SUBJECT_IDMAP = 1 << 11,
	SUBJECT_TMPFS_XATTR = 1 << 12,
	SUBJECT_CGROUP = 1 << 13,
};

/* What the facts' texts say about where we are. */
struct situation {
	unsigned traits;     /* of enum trait in causes.c */
	const char *place;   /* "a Docker container", "unit a.service", NULL: nothing of the kind */
	const char *unit;    /* the systemd service we run in, or "" */
	const char *label;   /* AppArmor's or SELinux's, or "" */
	const char *covered; /* what is mounted over parts of /proc, separated by blanks, or "" */
	const char *exe, *home, *lsm;
	const char *namespace_name; /* as in user.max_<name>_namespaces; set by the caller for
				       SUBJECT_NAMESPACE */
	bool namespace_is_zero;	    /* … and that sysctl is 0 */
};
void situation_read(const struct facts *facts, struct arena *arena, struct situation *out);

/* Sets *cause and *remedy (to text in the arena) where a rule fits; leaves them where none does. */
void causes_find(const struct situation *situation, enum subject subject, const struct probe *probe,
	struct arena *arena, const char **cause, const char **remedy);
