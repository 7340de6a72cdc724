/* package_edit.h -- adds packages to, and removes them from, the dependencies of a package.json as
 * text: the rest of the file stays as it is, indentation and line ends included. Pure. */
#pragma once
#include "base/buf.h"
#include "format/packages/node_package.h"

#define PACKAGE_EDIT_MAX ((size_t)256 << 10)

/* Appends the changed text to out. A package that dependencies, devDependencies or
 * optionalDependencies list gets the new range there, unless the range is NULL; one that isn't
 * listed is added to dependencies, in order of names where they are in order; without a range as
 * "latest". An empty text is an empty object. ERR_INVALID: not JSON, or not an object of objects;
 * ERR_LIMIT: too large. Nothing is appended then. */
int package_json_add(struct str text, const node_specs *specs, struct arena *arena, struct buf *out,
	struct error *err);
/* The same without these packages; those that aren't listed mean nothing. */
int package_json_remove(struct str text, const text_list *names, struct arena *arena,
	struct buf *out, struct error *err);
/* The ranges that a bun.lock or package-lock.json repeats from package.json; packages that aren't
 * listed mean nothing. */
int node_lock_set_ranges(struct str lock, const node_specs *specs, struct arena *arena,
	struct buf *out, struct error *err);
