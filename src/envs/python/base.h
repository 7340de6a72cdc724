/* base.h -- the lowest layer of every environment: what makes /env a virtual environment of one of
 * the host's interpreters. bin/python, python3 and python3.N lead to it by its absolute path. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "envs/python/interpreter.h"

/* The key of that layer, for layer_find. The interpreter has been looked into. */
const char *interpreter_base_key(
	struct arena *arena, const struct interpreter *python, bool system_site_packages);
/* Makes the tree itself in the directory `dir` (empty, 0755 of the caller's): also what a build
 * stage begins with. */
int interpreter_base_tree(
	int dir, const struct interpreter *python, bool system_site_packages, struct error *err);
