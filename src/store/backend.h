/* backend.h -- what a database does for serve.c, the process that has it; store.c has the queue,
 * the callbacks and the documents. One struct a database; only these files know SQL. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "store/store.h"

extern const struct store_table *const store_tables[]; /* ended by NULL; the order is the wire's */
#define STORE_TABLE_COUNT 12
#define STORE_GONE STORE_TABLE_COUNT /* where a table is read: what is gone, as STORE_REMOVE */
/* What is written or read, of whatever kind: as enum store_write_kind says. */
#define STORE_TEXTS 4
#define STORE_NUMBERS 4
#define STORE_SUM 3
struct store_row {
	const char *texts[STORE_TEXTS]; /* NULL past the last */
	int64_t numbers[STORE_NUMBERS];
	struct str bytes;
};
/* ---- rows.c ---- */
/* The i-th column of a table, or NULL. */
const struct field *store_column(const struct store_table *table, size_t i);
/* What is in the columns of an object, which the row points into; without bytes and sum. */
void row_show(const struct store_table *table, const void *object, struct store_row *row);
int64_t row_sum(const struct store_table *table, const struct store_row *row);
/* Back into *object, which is zeroed first. Texts are the row's, or in the arena. ERR_CORRUPT. */
int row_read(const struct store_table *table, const struct store_row *row, struct arena *arena,
	void *object, struct error *err);
/* The same, into *object in the arena; the error names the row and the file. */
int row_load(int table, const struct store_row *row, const char *file, struct arena *arena,
	void **object, struct error *err);

enum store_write_kind {
	/* A row of `table`. texts: id, owner, state: its columns; numbers: times, and behind them
	 * the sum of all else (0: a migration wrote it); bytes: its document. */
	STORE_PUT,
	STORE_REMOVE,	  /* texts: id, name, why (NULL: it isn't remembered); numbers: when */
	STORE_PUT_ANSWER, /* texts: scope, key, digest, location; numbers: when, status; bytes */
	STORE_TIDY,	  /* what is too much goes, and answers of before numbers[0] */
	STORE_SETTLE,	  /* is_new and was_corrupt are over */
	STORE_PROBE,	  /* changes nothing, but is written: does writing work? */
	/* texts: scope, key; numbers: not before. Found is: digest, location; status; bytes. */
	STORE_FIND_ANSWER,
	STORE_LOAD, /* alone in its batch: opens the database, made new where needed; all rows */
	STORE_KIND_COUNT
};
struct store_write {
	enum store_write_kind kind;
	int table; /* in store_tables */
	struct store_row row;
	store_done_fn *done;
	store_found_fn *told; /* in the place of done: STORE_FIND_ANSWER */
	void *ctx;
	struct error *failed;	 /* it alone could not be written; in the batch's arena */
	struct store_row *found; /* or NULL; its texts are the answer's, or in the batch's arena */
	struct store_write *next;
};
/* Writes that are committed together, in order. */
struct store_batch {
	struct arena arena;
	struct store_write *first, **last;
};

void store_batch_init(struct store_batch *batch);

struct store_place {
	int directory;	  /* the home */
	const char *path; /* of it */
	const char *file; /* what the URL says behind its scheme: "carrel.db" */
};
typedef bool store_check_fn(const struct store_table *table, const struct store_row *row);
typedef int store_row_fn(void *ctx, int table, const struct store_row *row, struct error *err);

struct store_backend {
	const char *scheme; /* of its URLs: "sqlite" */
	/* Opens it, made or migrated where needed, and looks whether it is whole. A process has one
	 * open at most, and none across a fork. ERR_CORRUPT: replace, and open again. */
	int (*open)(const struct store_place *place, struct store_opened *opened, void **db,
		struct error *err);
	/* A new one in the place of what there is, which is moved aside; opened->aside is its name
	 * then. What can still be read of it, and passes the check, is in the new one, which
	 * remembers `aside` and `why` for those who open it. */
	int (*replace)(const struct store_place *place, store_check_fn *check,
		struct store_opened *opened, struct error *err);
	/* Opens what `open` has left as it should be. */
	int (*attach)(const struct store_place *place, void **db, struct error *err);
	/* A table, or STORE_GONE. Oldest first. *row lives during the call. */
	int (*load)(void *db, int table, store_row_fn *fn, void *ctx, struct error *err);
	/* All of it durably, or nothing: but a write that breaks a rule is left out, and has its
	 * `failed` set. */
	int (*commit)(void *db, struct store_batch *batch, struct error *err);
	/* Called after a commit, when no write is waiting: prepares for fast later commits. */
	void (*settle)(void *db, const struct store_place *place);
	/* In the arena; NULL: there is none, or it can't be read. */
	struct store_row *(*find_answer)(
		void *db, const struct store_row *wanted, struct arena *arena);
	void (*close)(void *db);
};
extern const struct store_backend store_sqlite;
/* Finds the backend by the scheme of the URL, and *file, the rest. ERR_INVALID: unknown scheme. */
int store_find_backend(const char *url, const struct store_backend **backend, const char **file,
	struct error *err);
