/* packages.h -- packages of a workspace: installed into it and taken out while it is there, and
 * listed.
 * 1. An install resolves what the workspace has and what is new together, and finds or builds that
 * as an environment: on an error of that the workspace stays as it was.
 * 2. The workspace has the new environment from its next sandbox on. One in which nothing runs is
 * ended. Where something runs, the files of the new layers are copied into the live /env or
 * node_modules through a file server; running processes keep the files they have open, and the
 * copies go at the next start.
 * 3. Files that commands put on top of the environment stay, except those of the packages that are
 * installed.
 * 4. Changes of one workspace are done one after the other. What was answered is in the store. */
#pragma once
#include "base/vec.h"
#include "core/core.h"
#include "model/nouns/environment.h"

struct packages_wanted {
	text_list packages; /* requirements ("pandas>=2"); names, when is_removal */
	bool is_removal;
	const struct env_kind_row *kind; /* of the packages */
	bool persists; /* pyproject.toml or package.json of /workspace is changed too */
};
struct packages_result { /* valid until the callback returns */
	const char *environment;
	pair_list installed, removed; /* name and version */
	bool is_live;		      /* copied into the sandbox that runs */
	bool is_persisted;	      /* pyproject.toml or package.json was changed */
};
typedef void packages_fn(void *ctx, const struct packages_result *result, const struct error *err);
/* ERR_INVALID: no requirement, or the project's file isn't valid; ERR_NOT_FOUND, ERR_CONFLICT, … of
 * the build; ERR_LIMIT: the disk limit of the workspace. */
core_verb struct cancelable *packages_change(const struct request *request,
	struct core_workspace *w, const struct packages_wanted *wanted, packages_fn *done,
	void *ctx);

struct package {
	const char *name, *version;
	bool is_requested;   /* asked for by name, not only a dependency */
	bool is_environment; /* of the environment; else a command installed it */
	const struct env_kind_row *kind;
};
struct packages_listed {
	VEC(struct package) packages; /* sorted by name */
};
typedef void packages_list_fn(
	void *ctx, const struct packages_listed *listed, const struct error *err);
/* As Python and Node in the workspace find them; of Node those at the top of node_modules. */
core_verb void packages_list(
	const struct request *request, struct core_workspace *w, packages_list_fn *done, void *ctx);
