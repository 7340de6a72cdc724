#include "envs/kind.h"

#include <string.h>

/* The first is what is meant when nothing says another. */
static const struct env_kind *const env_kinds[] = { &env_python, &env_node };

const struct env_kind *env_kind_find(const char *name)
{
	for (size_t i = 0; i < sizeof env_kinds / sizeof *env_kinds; i++)
		if (strcmp(env_kinds[i]->name, name) == 0)
			return env_kinds[i];
	return NULL;
}

const struct env_kind *env_kind_of(const struct env_meta *meta)
{
	const struct env_kind *found = meta->kind ? env_kind_find(meta->kind) : NULL;

	return found ? found : env_kinds[0];
}
