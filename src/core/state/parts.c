/* parts.c -- the parts of one workspace (model/nouns/part.h). */
#include "core/internal.h"
#include "envs/kind.h"
#include "model/nouns/part.h"

bool part_is_used(const struct core_workspace *w, const struct workspace_part *part)
{
	if (!part->kind)
		return true;
	for (size_t i = 0; i < WORKSPACE_ENVIRONMENTS; i++)
		if (environment_kind(w, i) == env_kind_find(part->kind))
			return true;
	return false;
}

void parts_add_list(struct arena *arena, text_list *names, const text_list *more)
{
	for (size_t i = 0; more && i < more->count; i++)
		vec_push(arena, names, more->items[i]);
	vec_push(arena, names, "");
}

void parts_add_packages(struct core_workspace *w, struct arena *arena, text_list *names)
{
	for (size_t i = 0; i < WORKSPACE_PARTS; i++) {
		const char *kind = workspace_parts[i].kind;
		if (kind)
			parts_add_list(arena, names, environment_layers(w, env_kind_find(kind)));
	}
}
