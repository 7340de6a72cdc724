/* seccomp.h -- the filters of sandboxes and roles, compiled from linux/seccomp_rules.h when carrel
 * is built.
 * 1. An allow-list by call number: EPERM for the named refusals, ENOSYS for all else, also for x32;
 * a call of a foreign architecture kills the process.
 * 2. Of what is allowed, some arguments are denied; 32-bit arguments are compared masked to 32
 * bits.
 * 3. One filter decides both: a second one would cost every call that is judged by argument. */
#pragma once
#include "base/error.h"

struct sock_fprog;

/* What a filter may allow beyond the least. */
enum seccomp_option {
	SECCOMP_WITH_PTRACE = 1, /* ptrace and its relatives */
	SECCOMP_WITH_SETGID = 2, /* setgid bits of files and directories */
	SECCOMP_WITH_MEMFD = 4,	 /* memfd_create; else ENOSYS */
};

/* Loads the filter with `options` (of enum seccomp_option) on the calling thread, which must have
 * no_new_privs. */
int seccomp_load(unsigned options, struct error *err);
/* The program itself (of <linux/filter.h>), for the tests. */
const struct sock_fprog *seccomp_program(unsigned options);
/* The same for a role: without execve, with openat2; without `may_fork` it can create neither
 * processes nor sockets. */
int seccomp_load_role(bool may_fork, struct error *err);
const struct sock_fprog *seccomp_role_program(bool may_fork);
/* The same for the role that copies trees of workspaces: as a role that may not fork, with setgid
 * bits, fifos and whiteouts. */
int seccomp_load_trees(struct error *err);
const struct sock_fprog *seccomp_trees_program(void);
/* A second filter, loaded before the sandbox's own where there are no namespaces: no sockets but
 * pairs that are connected for good, no System V or POSIX IPC, which other processes of the host
 * share, and no limits or priorities of other processes. */
int seccomp_load_alone(struct error *err);
