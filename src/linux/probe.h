/* probe.h -- what this kernel lets the caller do, found by doing it.
 * 1. Everything happens in a child that is gone, with its namespaces and mounts, when the call
 * returns. Nothing of the caller changes.
 * 2. A probe never fails as a function: what went wrong is its result. A child that hangs is ended
 * after five seconds (ETIMEDOUT), one that a seccomp filter kills counts as ENOSYS. */
#pragma once

#define PROBE_SKIPPED (-1) /* as `error`: it wasn't tried, because what it stands on failed */

struct probe {
	int error;     /* 0: it works; an errno value; PROBE_SKIPPED */
	char step[40]; /* the call that failed ("mount proc"), or "" */
};

struct probe_ids { /* the outside ids that a user namespace of a probe maps to its 0 */
	uid_t uid;
	gid_t gid;
};

/* A user namespace that is of use: cloned, mapped, and a tmpfs mounted in a mount namespace of its
 * own. */
void probe_user_namespace(const struct probe_ids *ids, struct probe *out);
/* One more namespace (CLONE_NEWNET …) together with a user namespace. */
void probe_namespace(const struct probe_ids *ids, int flag, struct probe *out);
/* A fresh proc in a user and pid namespace: refused where anything covers a part of the outer
 * /proc. */
void probe_fresh_proc(const struct probe_ids *ids, struct probe *out);
/* fsopen, fsconfig, fsmount, move_mount, open_tree and mount_setattr in a user namespace. */
void probe_mount_api(const struct probe_ids *ids, struct probe *out);
/* user.* attributes on a tmpfs mounted in a user namespace. */
void probe_tmpfs_xattr(const struct probe_ids *ids, struct probe *out);

/* An overlay with userxattr, mounted in a user namespace, that takes a write, a copy-up and a
 * whiteout. `dir` is an empty directory that belongs to ids->uid and holds its upper and work
 * directories, or -1 for a tmpfs. *lowers is the number of lower layers that went in by lowerdir+
 * (at most 500 are tried, on a tmpfs only; 0: the kernel has no lowerdir+). */
void probe_overlay(const struct probe_ids *ids, int dir, struct probe *out, int *lowers);
/* An idmapped mount of the directory `dir` that shows its owner as another id. Root only. */
void probe_idmap(const struct probe_ids *ids, int dir, struct probe *out);

/* clone3 with a pidfd, and waiting by it. */
void probe_clone3(struct probe *out);
/* Executing a sealed memfd: a copy of /proc/self/exe, called with the single argument "version". */
void probe_memfd_exec(struct probe *out);
/* Carrel's own filters loaded, and refusing. */
void probe_seccomp(struct probe *out);
/* A Landlock ruleset of this ABI enforced, and refusing. */
void probe_landlock(int abi, struct probe *out);
