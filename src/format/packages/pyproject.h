/* pyproject.h -- the dependencies in pyproject.toml (PEP 621 and 735) as lines of a requirements
 * file: those of the project, of extras and of dependency groups. Pure.
 * Tables that change where packages come from or which versions are taken ([tool.uv.sources],
 * override-dependencies) are refused: ignoring them would install something else. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "format/packages/requirements.h"

struct pyproject {
	requirement_lines dependencies;
	requirement_lines constraints; /* constraint-dependencies of [tool.uv] */
};
/* Of these extras and groups, by their normalised names. ERR_INVALID names the extra, the group or
 * the line; ERR_LIMIT: larger than TOML_MAX, or too many. */
int pyproject_read(struct str text, const text_list *extras, const text_list *groups,
	struct arena *arena, struct pyproject *found, struct error *err);
