/* sources.h -- packages without a wheel, and projects of the host, within a build: when they are
 * built (by sdist.h), and how the built wheels take part in resolving and installing.
 * 1. Packages are built only where that is allowed. A project is built because its caller named it.
 * 2. The only result of a build is a wheel in `wheels` of the build's stage. uv sees it at /wheels,
 * read-only, and treats it as untrusted.
 * 3. A lock has a built package with the hashes of the index's files, and a mark. Its layer has a
 * key of its own, so that builds without permission to build never use it. Projects are in no
 * lock. */
#pragma once
#include "envs/python/uv_run.h"

#define WHEELS_INSIDE "/wheels"

/* -- resolving -- */
/* Builds the projects that have a build backend; the network may be closed afterwards. */
int sources_build_projects(struct making *making, struct error *err);
/* Copies the wheels of wanted->locals, and builds its projects. */
int sources_take_locals(struct making *making, struct error *err);
/* Copies the wheel `from`, whose `file` is known, to the stage: its path and hash. */
int sources_copy_wheel(
	struct making *making, int from, struct built_wheel *wheel, struct error *err);
/* Adds the wheels of wanted->locals to making->packages. */
void sources_lock_locals(struct making *making);
/* Adds a line for each wheel of a project or local path to the requirements for uv. */
void sources_require_projects(const struct making *making, struct buf *requirements);
/* Binds the built wheels into a job of uv; `find`: uv may choose them. */
void sources_show(struct making *making, struct uv_job *uv, bool find);
/* uv failed for want of a wheel of `name`, and err says so: builds the version that fits. 0:
 * resolve again. -1: it isn't allowed (err as it was), it was built already, or it can't be built.
 */
int sources_build_package(struct making *making, const char *name, struct error *err);
/* Copies uv's lock without the lines of projects and local paths. */
void sources_without_projects(const struct making *making, struct str text, struct buf *out);
/* Puts the index's hashes and the mark on what was built of making->packages. */
void sources_mark(struct making *making);

/* -- installing -- */
/* Builds what is missing of the composition and isn't in the stage. */
int sources_build_missing(struct making *making, struct error *err);
/* uv failed for want of a wheel that a kept lock knows of: the index has its sources alone by now.
 * As sources_build_package, for the locked version; the lock says so from then on. 0: install
 * again. */
int sources_build_locked(struct making *making, struct error *err);
/* The wheel that is in the stage for a package, or NULL. */
const struct built_wheel *sources_find(
	const struct making *making, const struct lock_package *package);
/* The package of a project that was built. */
const struct lock_package *sources_project(
	const struct making *making, const struct env_project *project);
/* Sets kind and key of the package's layer. */
void sources_name_layer(
	const struct making *making, const struct lock_package *package, struct layer_draft *draft);
