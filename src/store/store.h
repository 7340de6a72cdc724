/* store.h -- the state that survives: workspaces, background execs, idempotency keys. SQLite now;
 * nothing here names it.
 * 1. Writes are queued and committed together, durably (on disk, not just handed over), when
 * store_flush is called or soon after by the timer; each `done` is called after its commit, in
 * order, from the loop, never from inside the call that queued it. Whoever answers a client does it
 * in `done`.
 * 2. Reads happen once, at start (store_load); from then on the caller's memory is the truth and
 * the store its record.
 * 3. A database that can't be read is moved aside (carrel.db.corrupt-<time>) and said so, never
 * silently empty. One that is locked by somebody else is ERR_UNAVAILABLE. A failed commit fails
 * every write in it, and the store stays usable: nothing was written.
 * 4. Migrations are numbered and embedded; a database from a later version is ERR_UNAVAILABLE. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "model/exec.h"
#include "model/workspace.h"

struct store;
/* How the store asks for its commit to happen soon: passed in, so that it knows no loop. `schedule`
 * is called when the first write is queued; the owner then calls store_flush from its loop. */
struct store_clock {
	void (*schedule)(void *ctx);
	void *ctx;
};
struct store_opened {
	bool was_corrupt;
	char aside[256]; /* the name the damaged one has now */
	char why[256];
	int migrated_from, version;
};
/* `directory`: an open descriptor of the home; the file is carrel.db in it, path used for messages.
 */
int store_open(int directory, const char *path, const struct store_clock *clock,
	struct store **store, struct store_opened *opened, struct error *err);
void store_close(struct store *store); /* flushes; NULL is nothing */
/* Commits what is queued and calls every done. */
void store_flush(struct store *store);
/* Whether the last commit failed: for /readyz. *err says why. */
bool store_is_failing(const struct store *store, struct error *err);

typedef void store_done_fn(void *ctx, const struct error *err); /* err NULL: committed */

struct store_loader {
	/* Each returns 0, or -1 to stop. *w lives in `arena` of the call. */
	int (*workspace)(void *ctx, const struct workspace *w);
	int (*exec)(void *ctx, const struct exec_record *e);
	void *ctx;
};
/* Everything, workspaces first. ERR_CORRUPT: a row that can't be understood is named. */
int store_load(struct store *store, const struct store_loader *loader, struct error *err);

/* The values are copied before these return. done may be NULL. */
void store_put_workspace(
	struct store *store, const struct workspace *w, store_done_fn *done, void *ctx);
/* Its execs and keys go too; a row in `gone` keeps name, id, why and when (newest 10,000). */
void store_remove_workspace(struct store *store, const char *id, const char *name, const char *why,
	store_done_fn *done, void *ctx);
void store_put_exec(
	struct store *store, const struct exec_record *e, store_done_fn *done, void *ctx);
void store_remove_exec(struct store *store, const char *id, store_done_fn *done, void *ctx);
/* Why and when a workspace that is no more went. false: never heard of. */
bool store_find_gone(struct store *store, const char *id_or_name, struct arena *arena,
	const char **why, int64_t *at_ms);

/* Idempotency: the answer that was given for a key. `scope`: "POST /v1/workspaces". `digest`: of
 * the request's body. */
struct store_answer {
	char digest[65];
	int status;
	struct str body;
	const char *location; /* or NULL */
};
bool store_find_answer(struct store *store, const char *scope, const char *key, struct arena *arena,
	struct store_answer *answer);
/* Queued with the writes around it: committed together. Kept for 24 hours. */
void store_put_answer(struct store *store, const char *scope, const char *key,
	const struct store_answer *answer, store_done_fn *done, void *ctx);
