/* wheelhouse.h -- `--wheels DIR`: a directory that holds all that an environment is made of, so
 * that no index is asked: lock.txt (name==version --hash=sha256:…, one hash each) and wheels/. It
 * may be a stranger's (a package.venv.tar.gz).
 * 1. No link of it is followed, and everything in it is a regular file that is expected there.
 * 2. Each wheel has the hash that lock.txt says, each package of lock.txt has one wheel, and what
 * uv resolves the requirements to, from these wheels alone and without network, is lock.txt.
 * Then the wheels are installed as those of an index are: the files of each are compared with its
 * RECORD.
 * 3. The hash of lock.txt is in the environment's name and in the key of its lock: neither is that
 * of an environment from an index. The layer of a wheel is found by the hash of that wheel alone:
 * what is forged is found only by whoever asks for the forged hash. */
#pragma once
#include "envs/python/internal.h"

#define WHEELHOUSE_LOCK "lock.txt"
#define WHEELHOUSE_WHEELS "wheels"
#define WHEELHOUSE_HINT                                                                            \
	"carrel package build DIR --with-env, or carrel env wheels, makes a right one"

int wheelhouse_open(const char *directory, int *dir, struct error *err);
/* A regular file, not through a link: else ERR_DENIED. */
int wheelhouse_open_file(int dir, const char *name, int *file, struct error *err);
/* Its lock.txt, and the hash of that in hex. ERR_INVALID: it isn't such a directory. */
int wheelhouse_read(const char *directory, struct arena *arena, struct str *lock,
	const char **sha256, struct error *err);
/* Copies its wheels to `wheels` of the stage, checked; nothing when they are there, or when no
 * --wheels was given. */
int wheelhouse_take(struct making *making, struct error *err);
/* Compares making->packages, as they were resolved, with lock.txt. */
int wheelhouse_compare(struct making *making, struct error *err);
