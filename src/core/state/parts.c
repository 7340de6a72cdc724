/* parts.c -- the parts of one workspace (model/nouns/part.h). */
#include "core/internal.h"
#include "envs/kind.h"
#include "model/nouns/part.h"

/* The kind of environment below it, or NULL. */
static const struct env_kind *kind_of(const struct workspace_part *part)
{
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (env_kinds[i]->part == part)
			return env_kinds[i];
	return NULL;
}

bool part_is_used(const struct core_workspace *w, const struct workspace_part *part)
{
	for (size_t i = 0; part->has_packages && i < ENV_KINDS; i++) {
		const struct env_kind *kind = environment_kind(w, i);
		if (kind && kind->part == part)
			return true;
	}
	return !part->has_packages;
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
		const struct env_kind *kind = kind_of(&workspace_parts[i]);
		if (workspace_parts[i].has_packages)
			parts_add_list(arena, names, kind ? environment_layers(w, kind) : NULL);
	}
}
