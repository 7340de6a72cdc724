/* kind.h -- kinds of environments: what a sandbox has to know of one besides its layers. Python is
 * the one there is. */
#pragma once

struct env_kind {
	const char *name;
	const char *target;	      /* where its environments are mounted */
	const char *const *variables; /* "K=V" that they set, NULL-terminated */
};
extern const struct env_kind env_python;
