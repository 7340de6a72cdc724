/* capability.h -- all five sets emptied, by raw syscalls, and read back. */
#pragma once
#include <stdbool.h>
#include "base/error.h"

/* Empties bounding, ambient, permitted, effective, inheritable; sets the securebits that keep it so
 * where allowed. */
int capability_drop_all(struct error *err);
/* `capability` (CAP_SYS_ADMIN …) is in the effective set of the caller. */
bool capability_is_effective(int capability);
