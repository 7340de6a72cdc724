/* namespace.h -- new namespaces, their id maps, and why they can't be had.
 * 1. Every map has one id: the sandbox's own. Nothing else of the host has a name inside.
 * 2. An error names the cause on this host (a sysctl, AppArmor, a container's filter) and has a
 * hint. */
#pragma once
#include "base/error.h"

/* Forks by clone3 with `flags` (CLONE_NEW*), SIGCHLD at exit, and a pidfd. The child is born in the
 * v2 group `cgroup_fd` unless that is -1. Returns twice with 0: *pid is 0 in the child (which has
 * no *pidfd), the child's pid in the parent
 * (*pidfd is yours to close). ERR_UNAVAILABLE: this host doesn't allow such namespaces. */
int namespace_clone(uint64_t flags, int cgroup_fd, int *pidfd, pid_t *pid, struct error *err);

/* The same without namespaces and group, by clone: filters of containers refuse clone3, whose flags
 * they can't see. */
int namespace_fork(int *pidfd, pid_t *pid, struct error *err);

/* Sets *err to why making a user namespace (or writing its maps) failed with `sys_errno`, as far as
 * the files of `proc` (a descriptor of /proc) tell, with a hint. Returns -1. */
int namespace_explain(int sys_errno, int proc, struct error *err);

struct namespace_ids {
	uid_t inside_uid, outside_uid;
	gid_t inside_gid, outside_gid;
};
/* Writes the maps of process `pid` (0: the caller's own). deny_setgroups comes first; a plain user
 * must have it. */
int namespace_write_maps(
	pid_t pid, const struct namespace_ids *ids, bool deny_setgroups, struct error *err);

/* Makes the user namespace that MOUNT_ATTR_IDMAP takes: what belongs to owner_uid:owner_gid on disk
 * belongs to outside_uid:outside_gid (as seen by the host) in the mount, and the other way round
 * for files made there. Needs CAP_SETUID and CAP_SETGID. *userns_fd is yours to close; no process
 * is left. */
int namespace_make_idmap(uid_t owner_uid, gid_t owner_gid, uid_t outside_uid, gid_t outside_gid,
	int *userns_fd, struct error *err);

/* Moves the caller, which must be single-threaded, into a new user namespace with its uid and gid
 * mapped to themselves and all capabilities, until the next execve. */
int namespace_enter_own(struct error *err);
