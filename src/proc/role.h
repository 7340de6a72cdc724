/* role.h -- a process of ours that is re-executed, dropped and locked before it serves.
 * 1. The launcher starts a role by fork and exec of its program with descriptors at fixed numbers
 * and an environment of its own; nothing else is inherited. It dies with the launcher (PDEATHSIG).
 * 2. The role locks itself as its first act: uid and gid (no groups), all capabilities dropped,
 * no_new_privs, Landlock (only the paths named), seccomp (role_filter), RLIMIT_CORE 0, not
 * dumpable. A lock that can't be set stops the start and is named. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "base/error.h"

#define ROLE_FDS_MAX 8
struct role_start {
	const char *program; /* absolute path */
	char *const *argv;
	char *const *env;
	uid_t uid; /* (uid_t)-1: as we are */
	gid_t gid;
	int fds[ROLE_FDS_MAX]; /* they become 3, 4, … in the child */
	int fd_count;
	int log; /* becomes stderr */
};
/* *pidfd is yours. */
int role_start(const struct role_start *start, pid_t *pid, int *pidfd, struct error *err);

enum role_access { ROLE_READ = 1, ROLE_WRITE = 2, ROLE_EXECUTE = 4 };
struct role_path {
	const char *path; /* one that doesn't exist is passed over */
	unsigned access;
};
struct role_lock {
	const struct role_path *paths;
	size_t path_count;
	bool may_fork; /* children: archives, measuring */
};
/* In the role itself, after it has opened what it needs. */
int role_lock(const struct role_lock *lock, struct error *err);
