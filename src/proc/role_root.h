/* role_root.h -- the narrow root of a role: what libraries need, and what is named; for
 * proc/role.c. */
#pragma once
#include "proc/role.h"

/* In a mount and a pid namespace of the caller's own, with CAP_SYS_ADMIN over them: the caller's
 * root is then one that holds `start`'s paths and its program, as ROLE_PROGRAM_DIR/argv[0]. Nothing
 * of the host's other mounts is left. */
#define ROLE_PROGRAM_DIR "/program"
int role_enter_root(const struct role_start *start, struct error *err);
