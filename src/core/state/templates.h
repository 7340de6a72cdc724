/* templates.h -- templates: those that carreld ships, and those that users added, kept in the blob
 * store as workspace-templates/NAME.yaml.
 * 1. A template of a user takes precedence over the shipped one of the same name, also where
 * another one extends that name.
 * 2. What is kept was valid when it was added. What it extends may have been removed since: then
 * finding it is an error, and lists show that error as a warning.
 * 3. Homes that share a blob store share their templates.
 * 4. Workspaces keep what they were made of: no change of a template reaches them. */
#pragma once
#include "base/arena.h"
#include "core/core.h"
#include "model/nouns/template.h"

#define TEMPLATES_MAX 1000 /* of users */

/* Resolved. ERR_NOT_FOUND: the hint names the nearest one. Texts are in the arena. */
core_verb int core_template_get(const struct request *request, struct core *core, const char *name,
	struct arena *arena, struct template_shown *out, struct error *err);
typedef VEC(struct template_shown) template_list;
/* Sorted by name, without their YAML. */
core_verb int core_template_list(const struct request *request, struct core *core,
	struct arena *arena, template_list *out, struct error *err);

/* What a template changes by. shown: valid during the call; of a removal without values; NULL when
 * *err says why. was_there: in place of one that a user had added. */
typedef void template_changed_fn(
	void *ctx, const struct template_shown *shown, bool was_there, const struct error *err);
/* Checks the YAML, and what it extends, and (unless is_check) keeps it. ERR_INVALID names line and
 * key. */
core_verb void core_template_add(const struct request *request, struct core *core, struct str yaml,
	bool is_check, template_changed_fn *done, void *ctx);
/* ERR_CONFLICT: it is shipped. */
core_verb void core_template_remove(const struct request *request, struct core *core,
	const char *name, template_changed_fn *done, void *ctx);

/* Before each of these verbs, and before a workspace is made of a template: fetches what other
 * homes have changed, where the blob store is shared with them (core/state/template_fetch.h). The
 * verb itself looks at what was fetched last. false: there is nothing to wait for, and done isn't
 * called; w is NULL. */
core_verb bool core_template_fetch(
	const struct request *request, struct core *core, core_workspace_fn *done, void *ctx);
