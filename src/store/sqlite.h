/* sqlite.h -- the parts of the SQLite back end: its files (sqlite_files.c), its schema
 * (sqlite_schema.c), its log (sqlite_log.c), and what is done with all of it (sqlite.c). */
#pragma once
#include <sqlite3.h>
#include "store/backend.h"

#define SQLITE_PATH_MAX 512    /* of SQLite's own */
#define SQLITE_PAGE_BYTES 4096 /* PRAGMA page_size of a new one */
#define SCHEMA_VERSION 10
#define SCHEMA_APPLICATION_ID 0x4361726c /* "Carl" */

/* Sets *err from what db (or NULL) says last, and errno as it stands (0 before the call that
 * failed); the code follows from `rc`. Out of memory aborts. */
int sqlite_fail(sqlite3 *db, int rc, struct error *err);
/* "carrel.db": the name of its file. */
const char *sqlite_name(sqlite3 *db);

/* -- files -- */

/* The absolute path of `name` in the directory, for SQLite, which takes no descriptors. */
int sqlite_find_path(const struct store_place *place, const char *name, char path[SQLITE_PATH_MAX],
	struct error *err);
/* *is_there: whether there is a database to open. ERR_CORRUPT: it is damaged beyond opening (cut
 * short, or only its log is left). */
int sqlite_look(const struct store_place *place, bool *is_there, struct error *err);
/* Before and after a new one is made, as carrel.db.new: carrel.db is whole or not there. */
int sqlite_begin_new(const struct store_place *place, struct error *err);
int sqlite_end_new(const struct store_place *place, struct error *err);
int sqlite_drop_new(const struct store_place *place, struct error *err);
/* "carrel.db.new" and what SQLite appends to a name. */
#define STORE_NAME_MAX 128
void sqlite_name_new(const struct store_place *place, const char *part, char name[STORE_NAME_MAX]);
/* opened->aside: a free name; and what there is gets it. */
void sqlite_name_aside(const struct store_place *place, struct store_opened *opened);
int sqlite_set_aside(
	const struct store_place *place, const struct store_opened *opened, struct error *err);

/* -- schema -- */

/* Takes an open database to SCHEMA_VERSION; *version is the one it had, 0 only when it is_new.
 * ERR_CORRUPT: not a database of carrel; ERR_UNAVAILABLE: it is of a later version. */
int sqlite_migrate(sqlite3 *db, bool is_new, int *version, struct error *err);
/* In a new one: what it has to say of itself until it is settled. And back. */
int sqlite_note_new(sqlite3 *db, const struct store_opened *opened, struct error *err);
int sqlite_read_new(sqlite3 *db, struct store_opened *opened, struct error *err);
int sqlite_exec(sqlite3 *db, const char *sql, struct error *err);

struct sqlite_log {
	int pages;    /* in it, after the last commit */
	bool is_long; /* it has its length */
};
void sqlite_log_init(struct sqlite_log *log, sqlite3 *db); /* which stays where it is */
/* Call it after a commit, when its callbacks have run. */
void sqlite_log_settle(struct sqlite_log *log, sqlite3 *db, const struct store_place *place);
