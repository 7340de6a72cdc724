/* templates.h -- templates: those that carreld ships, and those that users added, kept in the blob
 * store as workspace-templates/NAME.yaml.
 * 1. A template of a user takes precedence over the shipped one of the same name, also where
 * another one extends that name.
 * 2. What is kept was valid when it was added. What it extends may have been removed since: then
 * finding it is an error, and lists show that error as a warning.
 * 3. Workspaces keep what they were made of: no change of a template reaches them. */
#pragma once
#include "base/arena.h"
#include "core/core.h"
#include "model/template.h"

#define TEMPLATES_MAX 1000 /* of users */

/* Resolved. ERR_NOT_FOUND: the hint names the nearest one. Texts are in the arena. */
core_verb int core_template_get(const struct request *request, struct core *core, const char *name,
	struct arena *arena, struct template_shown *out, struct error *err);
typedef VEC(struct template_shown) template_list;
/* Sorted by name, without their YAML. */
core_verb int core_template_list(const struct request *request, struct core *core,
	struct arena *arena, template_list *out, struct error *err);
/* Checks the YAML, and what it extends, and (unless is_check) keeps it. *was_there: in place of one
 * that the user had added. ERR_INVALID names line and key. */
core_verb int core_template_add(const struct request *request, struct core *core, struct str yaml,
	bool is_check, struct arena *arena, struct template_shown *out, bool *was_there,
	struct error *err);
/* ERR_CONFLICT: it is shipped. */
core_verb int core_template_remove(
	const struct request *request, struct core *core, const char *name, struct error *err);
