/* internal.h -- what core/packages keeps. Private to this folder. */
#pragma once
#include "core/internal.h"

struct core_packages {
	struct map pins; /* environments in use, by name */
};
struct workspace_packages {
	struct env_pin *pins[ENV_KINDS];   /* of model.environments */
	struct env_pin *before[ENV_KINDS]; /* of model.unsettled */
	uint64_t build;			   /* that its preparation waits for, or 0 */
	struct package_change *changes;	   /* queue: the first is under way */
};
