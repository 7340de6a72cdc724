/* store.h -- the state that survives: workspaces, background execs, idempotency keys. SQLite now;
 * nothing here names it.
 * 1. Writes are queued and committed together, durably (on disk, not just handed over), by a
 * separate process, so that this one never waits for a disk. One commit is under way at a time,
 * what is queued meanwhile is the next. Each `done` is called after its commit, in order, from the
 * loop, never from inside the call that queued it. Clients are answered in `done`. A write queued
 * from inside a `done` belongs to the next commit.
 * 2. Only that process opens the database. Rows are read once, at start (store_load); from then on
 * the caller's memory is the truth and the store its record. What is gone is kept in memory too;
 * answers of keys are asked for.
 * 3. A database that can't be read is moved aside (carrel.db.corrupt-<time>) and said so, never
 * silently empty; the new one has every row of it that is still whole. One that is locked by
 * somebody else is ERR_UNAVAILABLE. A failed commit fails every write in it (ERR_DISK_FULL,
 * ERR_UNAVAILABLE, …), and the store stays usable: nothing was written. When the process that
 * writes ends, another one does the commit again, some times; only when that fails too nobody knows
 * what was written (ERR_UNAVAILABLE). A write that can't be
 * (ERR_CONFLICT: the name is taken, the exec's workspace isn't there; ERR_LIMIT: it is too large)
 * fails alone.
 * 4. Migrations are numbered and embedded; a database from a later version is ERR_UNAVAILABLE.
 * 5. Every row has a checksum: a bit that flipped is noticed at the next start. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "model/agents/agent.h"
#include "model/agents/case.h"
#include "model/agents/deployment.h"
#include "model/agents/push_config.h"
#include "model/agents/task.h"
#include "model/agents/tool.h"
#include "model/nouns/approval.h"
#include "model/nouns/exec.h"
#include "model/nouns/snapshot.h"
#include "model/nouns/token.h"
#include "model/nouns/workspace.h"

#define STORE_FILE_LEN_MAX 64 /* of a URL's name of a file */
#define STORE_GONE_MAX 10000  /* workspaces that were, the newest; about */
#define STORE_ANSWERS_MAX 10000
#define STORE_ANSWERS_BYTES_MAX 67108864 /* bodies of all answers together */
#define STORE_ANSWERS_SHARE_MAX 5000	 /* of one principal: its scopes begin "PRINCIPAL: " */
#define STORE_ANSWERS_SHARE_BYTES_MAX 33554432
#define STORE_ANSWER_BODY_MAX (1u << 20)      /* of one */
#define STORE_ANSWER_KEPT_MS (24 * 3600000ll) /* how long */
#define STORE_DOCUMENT_MAX (2u << 20)	      /* a workspace or an exec, as a document */

/* A noun as it is stored: FIELD_COLUMN of its record are columns, the id first, then texts, then
 * times; FIELD_KEPT are its document. A new noun is one of these in store_tables, and a migration
 * that makes its table. */
struct store_table {
	const char *name; /* "workspaces": what there are many of */
	const struct record *record;
	size_t size; /* of the struct that the record is about */
	/* Its rows are deleted with the row of this one whose id is in the column of its name
	 * ("workspace" of "workspaces"); or NULL. */
	const struct store_table *parent;
};
extern const struct store_table store_workspaces, store_execs, store_snapshots, store_tokens,
	store_approvals, store_cases, store_cells, store_agents, store_tasks, store_push_configs,
	store_tools, store_deployments;

struct store;
/* What the store can't do itself, because it knows neither loop nor processes. */
struct store_host {
	/* Something is queued: the owner calls store_begin from its loop, soon. */
	void (*schedule)(void *ctx);
	/* Has a process started that does store_serve and nothing else; answered with
	 * store_use_writer, at once or later. */
	void (*start_writer)(void *ctx);
	/* It has ended, or is of no use: closes the socket. */
	void (*end_writer)(void *ctx);
	void (*committed)(void *ctx, uint64_t ns); /* how long one took, well or not */
	void *ctx;
};
/* That process: until there is nothing more to do, 0, or the store is gone. `directory`: an open
 * descriptor of the home; `path`: the same directory's path; `url`: "sqlite:NAME", a file in it.
 * Needs these files, memory, and time to sleep. */
int store_serve(int socket, int directory, const char *path, const char *url, struct error *err);

/* is_new and was_corrupt stay, also over a crash and the next start, until store_settle or the
 * first commit after store_load: trees without a row may belong to the lost database, and must not
 * be deleted. */
struct store_opened {
	bool is_new; /* there was none, or it was_corrupt: made now */
	bool was_corrupt;
	char aside[256]; /* the name the damaged one has now */
	char why[256];
	int rescued; /* rows of it that could be read, and are in the new one: said once */
	int migrated_from, version; /* migrated_from 0: it is of this version */
};
/* `url` lives as long as the store. ERR_INVALID: no backend has its scheme. */
int store_open(
	const char *url, const struct store_host *host, struct store **store, struct error *err);
/* Flushes, also what is queued by the last `done`s, until a commit fails. NULL is nothing. */
void store_close(struct store *store);
/* Hands on what is queued, unless a commit is under way: that goes on when it has ended. */
void store_begin(struct store *store);
void store_go_on(struct store *store);
/* `socket` leads to a process that runs store_serve; the caller keeps it, and calls store_go_on
 * from its loop whenever it is readable or writable (EPOLLIN | EPOLLOUT | EPOLLET). err not NULL:
 * there is no such process, and the commit under way fails; the next one asks again. */
void store_use_writer(struct store *store, int socket, const struct error *err);
/* Waits for the commit that is under way, and for one of what is queued then; calls every done.
 * Without a process that writes they fail (ERR_UNAVAILABLE). From inside a `done`, or with NULL:
 * nothing. */
void store_flush(struct store *store);
/* Whether the last commit failed, or one takes very long: for /readyz. *err says why. After a
 * failure tries again by itself, at most once a second while it is asked, so that it is ready again
 * when the cause is gone. */
bool store_is_failing(struct store *store, struct error *err);

typedef void store_done_fn(void *ctx, const struct error *err); /* err NULL: committed */

/* *object, of the table's struct, is gone when it returns: 0, or -1 to stop. */
typedef int store_load_fn(void *ctx, const struct store_table *table, const void *object);
typedef void store_loaded_fn(void *ctx, const struct store_opened *opened, const struct error *err);
/* Opens the database, made new, migrated or replaced where needed, and gives fn (NULL: nobody)
 * everything as it comes, workspaces first, the oldest first; then done is called. Asked at once;
 * fn and done are called from store_go_on and store_flush alone. *opened is also set when it fails
 * after the damaged one was moved. ERR_UNAVAILABLE: locked, read-only, of a later version, can't be
 * read just now, or the process that reads it has ended: it isn't tried again. ERR_CORRUPT: a row
 * that can't be understood is named. ERR_CANCELED: fn stopped it. Comes ahead of what is queued. */
void store_load(struct store *store, store_load_fn *fn, store_loaded_fn *done, void *ctx);

/* What there was without a row has been put aside: is_new and was_corrupt are over, as soon as that
 * is committed. */
void store_settle(struct store *store);

/* A noun, new or changed; copied before it returns. done may be NULL. */
void store_put(struct store *store, const struct store_table *table, const void *object,
	store_done_fn *done, void *ctx);
/* Also removes the rows that belong to it. gone (or NULL): a record of its id, name, and why and
 * when it was removed is kept. */
struct store_gone {
	const char *name, *why;
};
void store_remove(struct store *store, const struct store_table *table, const char *id,
	const struct store_gone *gone, store_done_fn *done, void *ctx);
/* Why and when a workspace was removed, once that is committed; *why lives until the next commit.
 * false: unknown. */
bool store_find_gone(
	const struct store *store, const char *id_or_name, const char **why, int64_t *at_ms);

/* Idempotency: the answer that was given for a key. `scope`: "POST /v1/workspaces". `digest`: of
 * the request's body. */
struct store_answer {
	char digest[65];
	int status;
	struct str body;
	const char *location; /* or NULL */
};
/* NULL: there is none, or it can't be read; it lives during the call. */
typedef void store_found_fn(void *ctx, const struct store_answer *answer);
/* Finds committed answers only: for earlier ones the caller has its own record. */
void store_find_answer(
	struct store *store, const char *scope, const char *key, store_found_fn *told, void *ctx);
/* Queued with the writes around it: committed together. Replaces the one of the same key. Kept for
 * 24 hours, unless there are more than the maxima above: then the oldest go first. */
void store_put_answer(struct store *store, const char *scope, const char *key,
	const struct store_answer *answer, store_done_fn *done, void *ctx);
