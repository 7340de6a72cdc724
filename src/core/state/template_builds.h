/* template_builds.h -- templates that were built: the files that a workspace begins with as a
 * frozen layer (layers/snap-<id>), and the names of its environments. A workspace of a template
 * that was built shares the layer, writes no file, and asks for no build.
 * 1. A build is recorded in templates/NAME.json of the home, after its layer is on disk. A layer
 * without a record or a row is removed.
 * 2. A build counts while the template has the hash that it was built of; the next workspace of a
 * template that has changed builds it again.
 * 3. An environment that was evicted since is built again by whoever needs it. */
#pragma once
#include "core/internal.h"

#define TEMPLATE_STAGE_PREFIX ".template-" /* of a layer that is being written */

struct template_build {
	struct environment_names environments;
	const char *layer; /* "snap-<id>" */
	char sha256[2 * SHA256_LEN + 1];
	struct arena arena;
	char name[];
};

/* Reads the records. What can't be read is built again. */
int template_builds_open(struct core *core, struct error *err);
void template_builds_close(struct core *core);
/* NULL: not built, of another hash, or its layer is lost. */
const struct template_build *template_build_find(
	const struct core *core, const char *name, const char *sha256);
/* Builds the template of w, which has its environments and w->files; w then has the layer instead
 * of the files. */
int template_build_make(struct core_workspace *w, const char *sha256, struct error *err);
/* Makes the lost or damaged layer of a build again, of the same template. ERR_NOT_FOUND: it is not
 * one, or the template is another one by now; ERR_CONFLICT: a sandbox of another workspace runs on
 * it. */
int template_build_restore(struct core_workspace *w, const char *layer, struct error *err);
/* The template was removed. */
void template_build_forget(struct core *core, const char *name);
