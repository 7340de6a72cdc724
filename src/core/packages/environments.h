/* environments.h -- environments that are found or built for no workspace yet: whoever asks for one
 * makes workspaces with it afterwards. */
#pragma once
#include "core/core.h"

#define ENVIRONMENT_WHEELS "prebuilt"
struct env_pin;
struct fiber;
struct environment_made {
	struct env_pin *pin; /* it isn't removed before environment_release */
	const char *name;    /* as long as that */
	bool was_cached;     /* nothing had to be installed: it, or all of its layers, were there */
};
/* Finds or builds the environment of Python of `recipe`: its python, requirements, packages,
 * build_options, and the label that names the package; they stay until then. w says by its policies
 * which indexes and packages are allowed, and events of the progress name it; it stays as it is. A
 * canceled wait ends the build. wheels: the id of a workspace in which nothing runs, and whose
 * directory ENVIRONMENT_WHEELS has what it is made of (`carrel env build --wheels`); or NULL. */
core_verb int environment_make(const struct request *request, struct fiber *fiber,
	struct core_workspace *w, const struct workspace *recipe, const char *wheels,
	struct environment_made *made, struct error *err);
void environment_release(struct core *core, struct env_pin *pin); /* NULL: nothing */
