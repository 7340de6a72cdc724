/* capability.h -- all five sets emptied, by raw syscalls, and read back. */
#pragma once
#include "base/error.h"

/* The kernel's own header of this name is hidden by ours; these are the ones that are asked for. */
enum {
	CAPABILITY_DAC_OVERRIDE = 1,
	CAPABILITY_DAC_READ_SEARCH = 2,
	CAPABILITY_FOWNER = 3,
	CAPABILITY_SETGID = 6,
	CAPABILITY_SETUID = 7,
	CAPABILITY_SYS_ADMIN = 21
};

/* Empties bounding, ambient, permitted, effective, inheritable; sets the securebits that keep it so
 * where allowed. */
int capability_drop_all(struct error *err);
/* The same but for the bounding set, which only CAP_SETPCAP can empty: for a caller that hasn't it,
 * and has no_new_privs. */
int capability_drop_held(struct error *err);
/* Empties them but for the capabilities of `mask` (1 << CAPABILITY_…), which must be permitted, in
 * the permitted and effective sets. */
int capability_keep(unsigned mask, struct error *err);
/* Whether the permitted set is kept by an execve of a caller that isn't root (the inheritable and
 * ambient sets), or only by the caller. */
int capability_keep_over_exec(bool is_kept, struct error *err);
/* `capability` (CAPABILITY_SYS_ADMIN …) is in the effective set of the caller. */
bool capability_is_effective(int capability);
