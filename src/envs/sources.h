/* sources.h -- packages that have no wheel, and projects of the host, within a build: when they are
 * built (sdist.h does it), and how what came of it takes part in resolving and installing.
 * 1. Packages are built only where that is allowed; a project whoever names it wants built.
 * 2. A wheel file each is all that comes of it, in `wheels` of the build's stage: uv sees it at
 * /wheels, read-only, and unpacks it as a stranger's.
 * 3. A lock has a built package with the hashes of the index's files, and a mark. Its layer has a
 * key of its own: who doesn't allow building never gets it. Projects are in no lock. */
#pragma once
#include "envs/uv_run.h"

#define WHEELS_INSIDE "/wheels"

/* -- resolving -- */
/* Those that have a build backend; the network may be closed afterwards. */
int sources_build_projects(struct making *making, struct error *err);
/* The same for wheels and projects of wanted->locals: copied, or built. */
int sources_take_locals(struct making *making, struct error *err);
/* Adds them to making->packages. */
void sources_lock_locals(struct making *making);
/* Lines for uv's requirements: these very wheels. */
void sources_require_projects(const struct making *making, struct buf *requirements);
/* Shows uv what was built; `find`: also to choose from. */
void sources_show(struct making *making, struct uv_job *uv, bool find);
/* uv failed for want of a wheel of `name`, and err says so: builds the version that fits. 0:
 * resolve again. -1: it isn't allowed (err as it was), it was built already, or it can't be built.
 */
int sources_build_package(struct making *making, const char *name, struct error *err);
/* What uv resolved without the projects. */
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
/* kind and key. */
void sources_name_layer(
	const struct making *making, const struct lock_package *package, struct layer_draft *draft);
