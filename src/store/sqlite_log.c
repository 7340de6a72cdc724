/* The log of a database that is written to, in the time between two commits. A commit that makes
 * the log longer waits for the file system's own journal as well: two to twenty times as long as
 * one that writes over what is there. So the log gets its length at once, and is written back
 * before it is full: then it begins anew. */
#include <sys/statfs.h>
#include "store/sqlite.h"

#define LOG_BYTES (2 << 20)
#define LOG_PAGES_FULL 400		/* of 509 that fit */
#define FREE_BYTES_LEAST (256ull << 20) /* with less free space, don't take 2 MB in advance */
#define STEP_BYTES 65536

static bool has_plenty(const struct store_place *place)
{
	struct statfs fs;
	return !fstatfs(place->directory, &fs) &&
	       (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize >= FREE_BYTES_LEAST;
}

/* Appends zeros, which SQLite doesn't take for frames. false: there is no log yet. */
static bool lengthen(sqlite3 *db)
{
	static const char zeros[STEP_BYTES];
	sqlite3_file *file = NULL;
	sqlite3_int64 at = 0;
	if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) != SQLITE_OK ||
		!file || !file->pMethods || file->pMethods->xFileSize(file, &at) != SQLITE_OK ||
		!at)
		return false;
	while (at < LOG_BYTES &&
		file->pMethods->xWrite(file, zeros,
			(int)(LOG_BYTES - at < STEP_BYTES ? LOG_BYTES - at : STEP_BYTES),
			at) == SQLITE_OK)
		at += STEP_BYTES;
	file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
	return true;
}

static int on_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
	struct sqlite_log *log = ctx;
	log->pages = pages;
	return SQLITE_OK;
}

void sqlite_log_init(struct sqlite_log *log, sqlite3 *db)
{
	*log = (struct sqlite_log){ 0 };
	sqlite3_wal_hook(db, on_commit, log); /* in the place of SQLite's own checkpoints */
}

void sqlite_log_settle(struct sqlite_log *log, sqlite3 *db, const struct store_place *place)
{
	/* Under the write lock: data appended by another process meanwhile would be overwritten. */
	if (!log->is_long && !sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL)) {
		log->is_long = !has_plenty(place) || lengthen(db);
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	}
	/* Pages that can't be written back because of a reader are left for the next checkpoint. */
	if (log->pages >= LOG_PAGES_FULL)
		sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}
