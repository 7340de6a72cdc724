/* interpreter.h -- the Pythons of this host: found by version, looked into once, kept.
 * Looked for, in order: /usr/bin, /usr/local/bin, $PYENV_ROOT or ~/.pyenv, uv's managed ones
 * ($UV_PYTHON_INSTALL_DIR or ${XDG_DATA_HOME:-~/.local/share}/uv/python), <home>/pythons, PATH.
 * Those of <home>/pythons are links to layers, which environments name as their tool "python". What
 * one is (version, tag, prefixes) is asked of itself, in a sandbox, once; the answer is kept in
 * <home>/pythons/.known/<hash of path, inode, size, mtime> and is found again without running it.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "envs/runner.h"
#include "linux/home.h"

struct interpreter {
	const char *path;    /* the real file, e.g. /usr/bin/python3.11 */
	const char *version; /* "3.11.2"; only "3.11" (from its name) until it was looked into */
	const char *minor;   /* "3.11" */
	/* known after interpreter_look: */
	const char *tag;    /* what decides whether a layer fits: implementation, magic number, ABI,
			       platform and libc, e.g. "cpython-311-3495-x86_64-linux-gnu-2.36";
			       of one outside /usr also its place: it compiles what is in layers,
			       and others shall not run what it made of it */
	const char *prefix; /* sys.base_prefix */
	bool in_usr;	    /* the prefix is /usr or /usr/local: every sandbox has it */
	const char *identity; /* hash of path, inode, size, mtime */
};
typedef VEC(struct interpreter) interpreter_list;

/* The version in "cpython-3.12.1-linux-x86_64-gnu", or NULL. */
const char *interpreter_version_in(struct arena *arena, const char *name);
/* The layer that holds it, or NULL: it isn't one of ours. */
const char *interpreter_layer(const struct interpreter *it, struct arena *arena);
/* All that are there, each once, in the order above; versions from names. Runs nothing. */
void interpreters_find(const struct home *home, struct arena *arena, interpreter_list *list);
/* The one that `wanted` ("3.12", "3.12.1", "python3.12", a path; NULL: the default: config's, else
 * /usr/bin/python3, else the newest) names, if it is known already: quick, runs nothing.
 * ERR_NOT_FOUND (with a list of what is there in the hint): no such Python. ERR_UNAVAILABLE: it is
 * there but hasn't been looked into: *out and *is_default are set all the same; interpreter_look,
 * then choose again (a full version may turn out to be another). ERR_INVALID: `wanted` is no
 * version, or no Python's file. *is_default: it is what NULL would give. */
int interpreter_choose(const struct home *home, const char *wanted, const char *configured,
	struct arena *arena, struct interpreter *out, bool *is_default, struct error *err);
/* Asks it, in a sandbox, and keeps the answer. ERR_INVALID: it isn't a Python 3.8 or later.
 * ERR_DENIED: its prefix, which every sandbox that uses it sees, holds more than a Python (a home
 * directory). */
int interpreter_look(const struct home *home, const struct runner *runner, struct interpreter *it,
	struct arena *arena, struct error *err);
/* Shows its prefix to the job, read-only at its own path, unless it lies in /usr. */
void interpreter_bind(const struct interpreter *it, struct arena *arena, struct job *job);
/* Sets the error of a version that isn't there, with a list of those that are; returns -1. */
int interpreter_absent(
	const struct home *home, const char *version, struct arena *arena, struct error *err);
/* Whether a prefix that was written down may be bound: it is the one of that interpreter, has a
 * standard library, and is no directory of a person's or our own. ERR_DENIED, ERR_INVALID. */
int interpreter_check_prefix(const struct home *home, const char *path, const char *prefix,
	struct arena *arena, struct error *err);
