/* role.h -- a daemon process that is executed anew, loses its privileges and is confined before it
 * serves.
 * 1. role_start forks and executes the role's program with descriptors at fixed numbers and an
 * environment of its own; nothing else is inherited. It dies with its parent (PDEATHSIG), and with
 * it all that it has forked.
 * 2. Before the program starts it has: namespaces of its own (mount, pid, ipc, uts, net unless
 * has_network; without CAP_SYS_ADMIN also user), a narrow root, its uid and gid and no groups, no
 * capability, no_new_privs, RLIMIT_CORE 1 (docs/design/0006), as many descriptors as the hard limit
 * allows.
 * 3. The program calls role_lock as its first act: Landlock, seccomp, not dumpable.
 * 4. A lock that can't be set stops the start and is named.
 * 5. It is PID 1 of its pid namespace: a signal that it neither blocks nor handles doesn't reach
 * it, SIGKILL from its parent does. Peers of its sockets that are in other namespaces have pid 0,
 * and, when it has a user namespace, all uids but its own are 65534. */
#pragma once
#include "base/error.h"

enum role_access { ROLE_READ = 1, ROLE_WRITE = 2, ROLE_EXECUTE = 4 };
struct role_path {
	const char *path; /* absolute; skipped when it does not exist */
	unsigned access;
};

#define ROLE_FDS_MAX 24
struct role_start {
	const char *program; /* absolute path */
	char *const *argv;   /* argv[0], without a slash, is also the name of the process */
	char *const *env;
	uid_t uid; /* (uid_t)-1: as we are; never 0 */
	gid_t gid;
	int fds[ROLE_FDS_MAX]; /* they become 3, 4, … in the child */
	int fd_count;
	int log;	      /* becomes stdout and stderr */
	const char *settings; /* what it reads from stdin; NULL: nothing */
	/* What its root holds, at the same places: these, the trees that libraries lie in
	 * (read-only), /dev/null, and a /proc of its own. ROLE_WRITE: else read-only. Files can't
	 * be executed without ROLE_EXECUTE. */
	const struct role_path *root;
	size_t root_count;
	bool has_network; /* it stays in our network namespace */
};
/* Returns when the program was executed; what went wrong before that is *err. *pidfd is yours; the
 * role is a child to be reaped. */
int role_start(const struct role_start *start, pid_t *pid, int *pidfd, struct error *err);

struct role_lock {
	/* Where files may be made, removed and moved (ROLE_WRITE) or executed, by Landlock. Reading
	 * is restricted by the root alone: Landlock would also forbid reading below descriptors
	 * that the role is sent (/proc or /dev/pts of a sandbox). None: no Landlock. A plain user's
	 * roles have none either: they inspect processes of the user's sandboxes, which a process
	 * in a Landlock domain can't, and their root has the same restrictions. */
	const struct role_path *paths;
	size_t path_count;
	/* Children (archives, measuring), which inherit the lock, and sockets beside those that it
	 * was started with. */
	bool may_fork;
	/* It works on whole trees of its own files: before all else it enters a user namespace
	 * where it may read, change and remove every file of its uid and gid whatever the modes
	 * say, and has no other capability. Where no user namespace can be had, the modes hold.
	 * Landlock restricts also a plain user's. */
	bool owns_trees;
	/* It tried to become another user and can't: root of a container that has no capability or
	 * no second id. It may stay root then, and can change no file (Landlock). */
	bool may_be_root;
};
/* In the role itself, after it has opened what it needs. Nothing can be executed afterwards.
 * ERR_DENIED: it runs as root. */
int role_lock(const struct role_lock *lock, struct error *err);

/* As many descriptors as the hard limit allows (at most a million), for us and what we start. */
void role_raise_fds(void);
