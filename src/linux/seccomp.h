/* seccomp.h -- the two filters of every sandbox and of every role of ours, compiled when carrel is
 * built from linux/seccomp_rules.h.
 * 1. filter_numbers: an allow-list by call number; EPERM for the named refusals, ENOSYS for all
 * else, kill for a foreign architecture.
 * 2. filter_arguments: denials by argument, default allow; 32-bit arguments are compared masked to
 * 32 bits. */
#pragma once
#include <stdbool.h>
#include "base/error.h"

struct sock_fprog;

/* Loads both on the calling thread, which must have no_new_privs. Without `memfd`, memfd_create is
 * ENOSYS: what is written to a memfd and not mapped is in no process's figures, so that only a
 * control group can count it. */
int seccomp_load(bool memfd, struct error *err);
/* The programs themselves (of <linux/filter.h>), for the tests; not to be written. */
void seccomp_programs(struct sock_fprog *numbers, struct sock_fprog *arguments);
/* The same for a role of ours: without execve, with openat2; without `may_fork` it can't. */
int seccomp_load_role(bool may_fork, struct error *err);
void seccomp_role_programs(bool may_fork, struct sock_fprog *numbers, struct sock_fprog *arguments);
