/* uv.h -- the tool that resolves and unpacks: pinned to UV_VERSION, taken from PATH when it is that
 * version, else installed once into <home>/tools/uv-<version>/uv from the index, its hash checked
 * against the one written here. It runs in sandboxes only. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "envs/index.h"
#include "envs/interpreter.h"
#include "envs/runner.h"
#include "linux/home.h"

#define UV_VERSION "0.13.7"
#define UV_INSIDE "/tools/uv" /* where jobs see it */

struct uv {
	const char *path; /* on the host */
};
/* ERR_UNAVAILABLE with a hint when it is nowhere and can't be fetched. `python`: any interpreter, to
 * fetch with; runner->run with forward set must reach the index. */
int uv_find(const struct home *home, const struct runner *runner, const struct index_set *indexes,
	const struct interpreter *python, struct arena *arena, struct uv *uv, struct error *err);
/* What uv takes as its index when nothing is configured: read from its own help, in a sandbox. When
 * there is no uv yet, the same is asked of pip. ERR_UNAVAILABLE: neither is there; hint: --index. */
int uv_default_index(const struct home *home, const struct runner *runner,
	const struct interpreter *python, struct arena *arena, const char **url, struct error *err);
