/* environments.h -- environments that are found or built for no workspace yet: whoever asks for one
 * makes workspaces with it afterwards. */
#pragma once
#include "core/core.h"

#define ENVIRONMENT_WHEELS "prebuilt"
struct environment_job;
struct environment_made {
	const char *name;
	bool was_cached; /* nothing had to be installed: it, or all of its layers, were there */
};
/* made: valid during the call; NULL with an error. */
typedef void environment_made_fn(
	void *ctx, const struct environment_made *made, const struct error *err);
/* Finds or builds the environment of Python of `recipe`: its python, requirements, packages,
 * build_options, and the label that names the package. w says by its policies which indexes and
 * packages are allowed, and events of the progress name it; it stays as it is. fn: once, from the
 * loop. The environment isn't removed before environment_release. wheels: the id of a workspace in
 * which nothing runs, and whose directory ENVIRONMENT_WHEELS has what it is made of (`carrel env
 * build --wheels`); or NULL. */
core_verb struct environment_job *environment_make(const struct request *request,
	struct core_workspace *w, const struct workspace *recipe, const char *wheels,
	environment_made_fn *done, void *ctx);
/* NULL: nothing. Before fn: the build is ended, and fn isn't called any more. */
void environment_release(struct environment_job *job);
