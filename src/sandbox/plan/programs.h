/* programs.h -- which program a name runs in a sandbox whose commands a policy judges. Pure.
 * 1. No directory of PLAN_PROGRAMS_PATH can be written from inside: what a name means is fixed when
 * the sandbox starts, for init, for shells and for wrappers alike.
 * 2. A name is that of the environment's own interpreters and installers, else of the system's
 * programs, else of programs in package layers. What was written inside has a path, and no name. */
#pragma once
#include "base/arena.h"
#include "base/error.h"

#define PLAN_PROGRAMS "/run/programs" /* holds `first` and `last`: links, and two scripts */
#define PLAN_PACKAGES "/run/layers"   /* holds the package layers, at the tree's target */
#define PLAN_PROGRAMS_FIRST PLAN_PROGRAMS "/first"
#define PLAN_PROGRAMS_LAST PLAN_PROGRAMS "/last"
#define PLAN_SYSTEM_PATH "/usr/local/bin:/usr/bin:/bin"
#define PLAN_PROGRAMS_PATH "PATH=" PLAN_PROGRAMS_FIRST ":" PLAN_SYSTEM_PATH ":" PLAN_PROGRAMS_LAST

/* Of a name that isn't found. */
#define PLAN_PROGRAMS_HINT                                                                         \
	"where a policy holds, a program that was installed or written inside has no name: call "  \
	"it by its path, such as /env/bin/NAME"

enum program_name {
	PROGRAM_ANY,
	PROGRAM_RESERVED, /* an interpreter, a shell: no package brings it */
	PROGRAM_PYTHON,	  /* python, python3, python3.12 */
	PROGRAM_PIP,	  /* pip, pip3, pip3.12 */
};
enum program_name program_name_of(const char *name);

/* Whether something of the user's may be mounted or attached there: not over a directory of
 * programs, in one, or in place of one. Otherwise as plan_check_target. ERR_INVALID. */
int plan_check_attached(const char *target, struct error *err);
