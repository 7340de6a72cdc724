#include "envs/kind.h"

#define KIND(id, name) [ENV_KIND_##id] = &env_##name,
const struct env_kind *const env_kinds[ENV_KINDS] = { ENV_KIND_LIST(KIND) };

const struct env_kind *env_kind_find(const char *name)
{
	const struct env_kind_row *row = env_kind_row_find(name);
	return row ? env_kinds[row - env_kind_rows] : NULL;
}

const struct env_kind *env_kind_of(const struct env_meta *meta)
{
	return env_kinds[env_kind_row_of(meta) - env_kind_rows];
}
