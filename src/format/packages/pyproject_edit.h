/* pyproject_edit.h -- adds requirements to, and removes them from, project.dependencies of a
 * pyproject.toml as text: the rest of the file stays as it is, comments and line ends included.
 * Pure. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

/* Appends the changed text to out. Requirements are lines of a requirements file ("pandas>=2"). One
 * whose package is listed replaces that entry, unless it names no version: then the entry stays. A
 * file without [project] gets one, and so does an empty text; `python` ("3.11") is its
 * requires-python then. ERR_INVALID: not TOML (the line is named), or dependencies are declared in
 * a way that can't be edited here; nothing is appended then. ERR_LIMIT: too large. */
int pyproject_add(struct str text, const text_list *requirements, const char *python,
	struct arena *arena, struct buf *out, struct error *err);
/* The same without these packages (normalised names); those that aren't listed mean nothing. */
int pyproject_remove(struct str text, const text_list *names, struct arena *arena, struct buf *out,
	struct error *err);
