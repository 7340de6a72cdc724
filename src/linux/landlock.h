/* landlock.h -- Landlock by raw syscalls: a ruleset that handles everything the running ABI knows.
 */
#pragma once
#include "base/error.h"

enum landlock_access {	   /* what a rule may grant */
	LANDLOCK_READ = 1, /* read files, list directories */
	LANDLOCK_EXECUTE = 2,
	LANDLOCK_WRITE = 4,	/* write, truncate, make, remove, rename, link across */
	LANDLOCK_DEVICE = 8,	/* write and ioctl on what exists; make nothing */
	LANDLOCK_CHANGE = 16,	/* LANDLOCK_WRITE without writing and truncating files */
	LANDLOCK_TRUNCATE = 32, /* truncate what exists. Every open asks for it silently, and is
				 * slower where a rule doesn't grant it */
	LANDLOCK_WHITEOUT =
		128, /* make character devices; a seccomp filter limits its holders to whiteouts */
	LANDLOCK_ONLY_WRITES =
		64, /* a modifier: drop rights that landlock_create_writes does not handle */
};

/* ABI version of this kernel's Landlock, 0 when it is missing or disabled. */
int landlock_abi(void);
/* Makes a ruleset that handles every file right of `abi`, and scopes abstract sockets and signals
 * when abi >= 6. */
int landlock_create(int abi, int *ruleset, struct error *err);
/* The same, and no TCP port can be bound or connected to when abi >= 4: for a sandbox without a
 * network namespace. */
int landlock_create_alone(int abi, int *ruleset, struct error *err);
/* Makes a ruleset that scopes signals and nothing else: what enforces it can signal itself and its
 * descendants only. Needs ABI 6. */
int landlock_create_scope(int *ruleset, struct error *err);
/* As landlock_create, for LANDLOCK_CHANGE and LANDLOCK_EXECUTE alone (grant nothing else to it):
 * what can be seen can be read and written. */
int landlock_create_changes(int abi, int *ruleset, struct error *err);
/* As landlock_create, without the rights to read, list and truncate: opening a file for reading is
 * then not looked at. Grants must have LANDLOCK_ONLY_WRITES. */
int landlock_create_writes(int abi, int *ruleset, struct error *err);
/* Grants `access` (of enum landlock_access) beneath the O_PATH descriptor `path_fd`; `name` is for
 * the error only. */
int landlock_allow(
	int ruleset, int abi, int path_fd, const char *name, unsigned access, struct error *err);
/* Restricts the calling thread, which must have no_new_privs. */
int landlock_enforce(int ruleset, struct error *err);
