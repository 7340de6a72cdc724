/* uv.h -- the tool that resolves and unpacks: pinned to UV_VERSION, taken from PATH when it is that
 * version, else installed once into <home>/tools/uv-<version>/uv from the index, its hash checked
 * against the one written here. It runs in sandboxes only. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "envs/python/index.h"
#include "envs/python/interpreter.h"
#include "envs/runner.h"
#include "linux/home.h"

#define UV_VERSION "0.13.7"
#define UV_IN_HOME "tools/uv-" UV_VERSION "/uv" /* where it is kept when it was fetched */
#define UV_INSIDE "/tools/uv"			/* where jobs see it */
#define CERTIFICATES_INSIDE "/tools/certificates.pem"

struct uv {
	const char *path; /* on the host */
};
/* ERR_UNAVAILABLE with a hint when it is nowhere and can't be fetched. `python`: any interpreter,
 * to fetch with; runner->run with forward set must reach the index (indexes->index is not NULL) and
 * where it keeps its files: see hosts.h. */
int uv_find(const struct home *home, const struct runner *runner, const struct index_set *indexes,
	const struct interpreter *python, struct arena *arena, struct uv *uv, struct error *err);
/* The part of it that needs no network: ERR_NOT_FOUND when it would have to be fetched. */
int uv_find_here(const struct home *home, const struct runner *runner, struct arena *arena,
	struct uv *uv, struct error *err);
/* What uv takes as its index when nothing is configured: read from its own help, in a sandbox.
 * Without uv, pip is asked instead. ERR_UNAVAILABLE: neither knows one; hint: --index. The answer
 * is cached. */
int uv_default_index(const struct home *home, const struct runner *runner,
	const struct interpreter *python, struct arena *arena, const char **url, struct error *err);
/* The same when it is known, without running anything; else NULL. */
const char *uv_known_index(
	const struct home *home, const struct interpreter *python, struct arena *arena);
/* Adds to a job what a script or uv needs to reach the indexes: the certificates at
 * CERTIFICATES_INSIDE, SSL_CERT_FILE, CARREL_INDEXES, CARREL_TRUSTED_HOSTS; sets forward. */
void job_reach_indexes(struct job *job, struct arena *arena, const struct index_set *indexes);
