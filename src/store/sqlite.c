#include "store/sqlite.h"

#include <fcntl.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/path.h"

#define BUSY_MS 50 /* short: callers wait for a commit */
/* While it is opened nothing else runs, and the core before this one may still be ending. */
#define OPEN_BUSY_MS 10000

/* Values of a row by their places in a statement: texts from ?1 on, numbers from ?5, bytes ?9. */
#define NUMBER_AT (1 + STORE_TEXTS)
#define BYTES_AT (NUMBER_AT + STORE_NUMBERS)

enum statement {
	BEGIN,
	COMMIT,
	ROLLBACK,
	PUT_GONE,
	PUT_ANSWER,
	FIND_ANSWER,
	TIDY_GONE,
	TIDY_OLD_ANSWERS,
	TIDY_SHARES_OF_ANSWERS,
	TIDY_MANY_ANSWERS,
	SETTLE,
	PROBE,
	STATEMENT_COUNT
};
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

static const char *const statement_texts[STATEMENT_COUNT] = {
	[BEGIN] = "BEGIN IMMEDIATE",
	[COMMIT] = "COMMIT",
	[ROLLBACK] = "ROLLBACK",
	[PUT_GONE] = "INSERT INTO gone (id, name, why, at_ms) VALUES (?1, ?2, ?3, ?5)"
		     " ON CONFLICT (id) DO UPDATE SET name = ?2, why = ?3, at_ms = ?5",
	[PUT_ANSWER] = "INSERT INTO answers (scope, key, at_ms, digest, status, location, body)"
		       " VALUES (?1, ?2, ?5, ?3, ?6, ?4, CAST(?9 AS BLOB))"
		       " ON CONFLICT (scope, key) DO UPDATE SET at_ms = ?5, digest = ?3,"
		       " status = ?6, location = ?4, body = CAST(?9 AS BLOB)",
	[FIND_ANSWER] = "SELECT digest, status, location, body FROM answers"
			" WHERE scope = ?1 AND key = ?2 AND at_ms > ?5",
	[TIDY_GONE] = "DELETE FROM gone WHERE at_ms < (SELECT at_ms FROM gone"
		      " ORDER BY at_ms DESC LIMIT 1 OFFSET " TEXT(STORE_GONE_MAX) " - 1)",
	[TIDY_OLD_ANSWERS] = "DELETE FROM answers WHERE at_ms <= ?5",
	/* Before those of all are counted: many of one principal remove none of another. length()
	 * of a blob doesn't read it. */
	[TIDY_SHARES_OF_ANSWERS] =
		"DELETE FROM answers WHERE rowid IN (SELECT rowid FROM"
		" (SELECT rowid, row_number() OVER own AS place,"
		" sum(length(body)) OVER own AS bytes FROM answers"
		" WINDOW own AS (PARTITION BY substr(scope, 1,"
		" instr(scope, ': ')) ORDER BY at_ms DESC, rowid DESC))"
		" WHERE place > " TEXT(STORE_ANSWERS_SHARE_MAX) " OR bytes > " TEXT(
			STORE_ANSWERS_SHARE_BYTES_MAX) ")",
	[TIDY_MANY_ANSWERS] = "DELETE FROM answers WHERE rowid IN (SELECT rowid FROM"
			      " (SELECT rowid, row_number() OVER newest AS place,"
			      " sum(length(body)) OVER newest AS bytes FROM answers"
			      " WINDOW newest AS (ORDER BY at_ms DESC, rowid DESC))"
			      " WHERE place > " TEXT(STORE_ANSWERS_MAX) " OR bytes > " TEXT(
				      STORE_ANSWERS_BYTES_MAX) ")",
	[SETTLE] = "DELETE FROM unsettled",
	/* Writes the page it is on, whatever it was. */
	[PROBE] = "PRAGMA user_version=" TEXT(SCHEMA_VERSION),
};

struct database {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENT_COUNT + 3 * STORE_TABLE_COUNT];
	struct sqlite_log log; /* when it is attached to be written to */
};

/* -- errors -- */

const char *sqlite_name(sqlite3 *db)
{
	const char *path = db ? sqlite3_db_filename(db, "main") : NULL;
	return path && path[0] ? path_basename(path) : "the database";
}

/* What a failed read or write of SQLite's own files means. A COMMIT that fails doesn't set SQLite's
 * own note of errno. */
static int fail_io(sqlite3 *db, int rc, struct error *err)
{
	if (!errno && db)
		errno = sqlite3_system_errno(db);
	int number = errno;
	if (number == ENOSPC || number == EDQUOT || number == EFBIG)
		return fail_errno_code(err, ERR_DISK_FULL, "write %s", sqlite_name(db));
	if (number)
		return fail_errno_code(
			err, ERR_UNAVAILABLE, "%s (%s)", sqlite_name(db), sqlite3_errstr(rc));
	return fail(err, ERR_UNAVAILABLE, "%s: %s", sqlite_name(db), sqlite3_errstr(rc));
}

int sqlite_fail(sqlite3 *db, int rc, struct error *err)
{
	const char *text = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc), *name = sqlite_name(db);
	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		abort();
	case SQLITE_FULL:
		errno = ENOSPC;
		return fail_errno_code(err, ERR_DISK_FULL, "write %s", name);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return fail(err, ERR_UNAVAILABLE, "%s is locked by another process", name),
		       error_hint(err, "fuser shows which process has it open: fuser %s", name);
	case SQLITE_READONLY:
		return fail(err, ERR_UNAVAILABLE, "%s is read-only", name);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
	case SQLITE_ERROR: /* a missing table or column, despite the right version number */
		return fail(err, ERR_CORRUPT, "%s: %s", name, text);
	case SQLITE_CONSTRAINT:
		return fail(err, ERR_CONFLICT, "%s: %s", name, text);
	case SQLITE_TOOBIG:
		return fail(err, ERR_LIMIT, "%s: %s", name, text);
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return fail_io(db, rc, err);
	default:
		return fail(err, ERR_FAILED, "%s: %s", name, text);
	}
}

/* -- statements -- */

/* Behind the others: three of each table. */
enum { PUT_ROW, REMOVE_ROW, REMOVE_CHILDREN, OF_TABLE_COUNT };
static int of_table(int table, int which)
{
	return STATEMENT_COUNT + OF_TABLE_COUNT * table + which;
}

/* What a statement has no place for is passed over. */
static sqlite3_stmt *bind(struct database *d, int which, const struct store_row *row)
{
	sqlite3_stmt *statement = d->statements[which];
	sqlite3_reset(statement);
	for (int i = 0; i < STORE_TEXTS; i++)
		sqlite3_bind_text(statement, 1 + i, row->texts[i], -1, SQLITE_STATIC);
	for (int i = 0; i < STORE_NUMBERS; i++)
		sqlite3_bind_int64(statement, NUMBER_AT + i, row->numbers[i]);
	sqlite3_bind_text64(
		statement, BYTES_AT, row->bytes.data, row->bytes.len, SQLITE_STATIC, SQLITE_UTF8);
	return statement;
}

/* Runs one that returns no rows. The values it was given need not live on. */
static int run(struct database *d, int which, const struct store_row *row)
{
	sqlite3_stmt *statement = bind(d, which, row);
	errno = 0;
	int rc = sqlite3_step(statement), number = errno;
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	errno = number;
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int run_plain(struct database *d, int which)
{
	return run(d, which, &(struct store_row){ 0 });
}

/* "id, name, …, document, sum". */
static void print_columns(struct buf *sql, const struct store_table *table)
{
	const struct field *column;
	for (size_t i = 0; (column = store_column(table, i)); i++)
		buf_printf(sql, "%s, ", field_name(column, FIELD_KEPT).text);
	buf_text(sql, "document, sum");
}

static void print_put(struct buf *sql, const struct store_table *table)
{
	const struct field *column;
	int text = 1, number = NUMBER_AT;
	auto_buf struct buf values, changes;
	buf_init(&values, 1024);
	buf_init(&changes, 1024);
	for (size_t i = 0; (column = store_column(table, i)); i++) {
		int at = column->kind == FIELD_TIME ? number++ : text++;
		buf_printf(&values, "?%d, ", at);
		buf_printf(&changes, "%s = ?%d, ", field_name(column, FIELD_KEPT).text, at);
	}
	buf_printf(sql, "INSERT INTO %s (", table->name);
	print_columns(sql, table);
	buf_printf(sql,
		") VALUES (%s?%d, ?%d) ON CONFLICT (id) DO UPDATE SET %sdocument = ?%d, sum = ?%d",
		values.data, BYTES_AT, NUMBER_AT + STORE_SUM, changes.data, BYTES_AT,
		NUMBER_AT + STORE_SUM);
}

/* Rows that are deleted with one of this table; without any, none. */
static void print_remove_children(struct buf *sql, const struct store_table *table)
{
	for (int i = 0; store_tables[i]; i++)
		if (store_tables[i]->parent == table)
			buf_printf(sql, "DELETE FROM %s WHERE %.*s = ?1", store_tables[i]->name,
				(int)strlen(table->name) - 1, table->name);
}

/* "SELECT" of all columns of a table, with what follows the name of the table; yours to finalize.
 */
static int prepare_scan(
	sqlite3 *db, const struct store_table *table, const char *tail, sqlite3_stmt **statement)
{
	auto_buf struct buf sql = buf_empty(1024);
	buf_text(&sql, "SELECT ");
	print_columns(&sql, table);
	buf_printf(&sql, " FROM %s %s", table->name, tail);
	return sqlite3_prepare_v2(db, sql.data, -1, statement, NULL);
}

/* -- opening -- */

static void close_database(void *db)
{
	struct database *d = db;
	for (size_t i = 0; i < sizeof d->statements / sizeof *d->statements; i++)
		sqlite3_finalize(d->statements[i]);
	sqlite3_close(d->db);
	free(d);
}

/* Opens it for reading and writing, however damaged. *db is yours to close, also after an error. */
static int open_file(
	const struct store_place *place, const char *name, sqlite3 **db, struct error *err)
{
	char path[SQLITE_PATH_MAX];
	if (sqlite_find_path(place, name, path, err))
		return -1;
	int rc = sqlite3_open_v2(
		path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
	if (rc != SQLITE_OK)
		return sqlite_fail(*db, rc, err);
	sqlite3_extended_result_codes(*db, 1);
	sqlite3_busy_timeout(*db, OPEN_BUSY_MS);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)NULL);
	/* Until it is known to be whole, its log is to stay as it is. */
	sqlite3_db_config(*db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
	/* The first that reads the file is journal_mode. */
	if (sqlite_exec(*db,
		    "PRAGMA page_size=4096; PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY;"
		    "PRAGMA foreign_keys=ON; PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL;"
		    "PRAGMA journal_size_limit=8388608",
		    err))
		return -1;
	/* One that can't be written is opened all the same: because of the file, or of a number in
	 * its header. */
	if (!sqlite3_db_readonly(*db, "main"))
		return 0;
	if (!faccessat(place->directory, name, W_OK, AT_EACCESS))
		return fail(err, ERR_CORRUPT, "%s is marked read-only in its header", name);
	return fail(err, ERR_UNAVAILABLE, "'%s' is read-only", path);
}

static int check_whole(sqlite3 *db, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	errno = 0;
	int rc = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(statement);
	int failed = rc == SQLITE_ROW ? 0 : sqlite_fail(db, rc, err);
	const char *text = failed ? NULL : (const char *)sqlite3_column_text(statement, 0);
	if (!failed && (!text || strcmp(text, "ok"))) {
		/* The first line may say only which database it is about. */
		const char *what = text ? strchr(text, '\n') : NULL;
		failed = fail(err, ERR_CORRUPT, "%s: %s", sqlite_name(db),
			what   ? what + 1
			: text ? text
			       : "unreadable");
	}
	sqlite3_finalize(statement);
	return failed;
}

static int prepare(struct database *d, int which, const char *sql, struct error *err)
{
	errno = 0;
	int rc = sqlite3_prepare_v3(
		d->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &d->statements[which], NULL);
	return rc == SQLITE_OK ? 0 : sqlite_fail(d->db, rc, err);
}

static int prepare_all(struct database *d, struct error *err)
{
	auto_buf struct buf sql = buf_empty(1024);
	for (int i = 0; i < STATEMENT_COUNT; i++)
		if (prepare(d, i, statement_texts[i], err))
			return -1;
	for (int i = 0; store_tables[i]; i++) {
		buf_clear(&sql);
		print_put(&sql, store_tables[i]);
		if (prepare(d, of_table(i, PUT_ROW), sql.data, err))
			return -1;
		buf_clear(&sql);
		buf_printf(&sql, "DELETE FROM %s WHERE id = ?1", store_tables[i]->name);
		if (prepare(d, of_table(i, REMOVE_ROW), sql.data, err))
			return -1;
		buf_clear(&sql);
		print_remove_children(&sql, store_tables[i]);
		if (sql.len && prepare(d, of_table(i, REMOVE_CHILDREN), sql.data, err))
			return -1;
	}
	return 0;
}

static struct database *database_new(void)
{
	struct database *d = calloc(1, sizeof *d);
	if (!d)
		abort();
	return d;
}

static void checkpoint_on_close(struct database *d)
{
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, (int *)NULL);
}

static int attach(const struct store_place *place, void **db, struct error *err)
{
	struct database *d = database_new();
	if (open_file(place, place->file, &d->db, err) || prepare_all(d, err)) {
		close_database(d);
		return -1;
	}
	sqlite3_busy_timeout(d->db, BUSY_MS);
	checkpoint_on_close(d);
	sqlite_log_init(&d->log, d->db);
	*db = d;
	return 0;
}

static void settle(void *db, const struct store_place *place)
{
	struct database *d = db;
	sqlite_log_settle(&d->log, d->db, place);
}

/* The database `name`, of this version when it is open; *version is the one it had. */
static int open_name(const struct store_place *place, const char *name, struct database **out,
	int *version, struct error *err)
{
	struct database *d = database_new();
	if (open_file(place, name, &d->db, err) || check_whole(d->db, err) ||
		sqlite_migrate(d->db, strcmp(name, place->file) != 0, version, err) ||
		prepare_all(d, err)) {
		close_database(d);
		return -1;
	}
	sqlite3_busy_timeout(d->db, BUSY_MS);
	checkpoint_on_close(d);
	*out = d;
	return 0;
}

/* -- what is left of a damaged one -- */

static const char *column_text(sqlite3_stmt *statement, int at)
{
	return (const char *)sqlite3_column_text(statement, at);
}

/* Of a prepare_scan; *row lives until the next step. */
static int read_row(sqlite3_stmt *statement, const struct store_table *table, struct store_row *row,
	struct error *err)
{
	const struct field *column;
	int at = 0, texts = 0, times = 0;
	*row = (struct store_row){ 0 };
	for (size_t i = 0; (column = store_column(table, i)); i++, at++) {
		if (column->kind == FIELD_TIME)
			row->numbers[times++] = sqlite3_column_int64(statement, at);
		else if (!(row->texts[texts++] = column_text(statement, at)))
			return fail(err, ERR_CORRUPT, "a row has empty columns");
	}
	row->bytes.data = column_text(statement, at);
	row->bytes.len = (size_t)sqlite3_column_bytes(statement, at);
	row->numbers[STORE_SUM] = sqlite3_column_int64(statement, at + 1);
	return row->bytes.data ? 0 : fail(err, ERR_CORRUPT, "a row has empty columns");
}

/* Gives fn every row of a damaged database that can be reached from either end of its tables. fn
 * returns -1 to stop. */
static void salvage(const struct store_place *place,
	int (*fn)(void *ctx, int table, const struct store_row *row), void *ctx)
{
	/* In the order of the tables: uses no index, since it may be damaged, and no sorting. */
	static const char *const ways[] = { "NOT INDEXED ORDER BY rowid",
		"NOT INDEXED ORDER BY rowid DESC" };
	sqlite3 *db = NULL;
	bool is_there, is_stopped = false;
	/* What SQLite would take for a new one is not shown to it. */
	if (sqlite_look(place, &is_there, NULL) || !is_there)
		return;
	if (open_file(place, place->file, &db, NULL)) {
		sqlite3_close(db);
		return;
	}
	for (int i = 0; store_tables[i] && !is_stopped; i++) {
		int last = SQLITE_OK;
		/* From the other end only when the first way didn't lead to it. */
		for (int way = 0; way < 2 && last != SQLITE_DONE && !is_stopped; way++) {
			sqlite3_stmt *statement = NULL;
			struct store_row row;
			last = prepare_scan(db, store_tables[i], ways[way], &statement);
			while (!is_stopped && statement &&
				(last = sqlite3_step(statement)) == SQLITE_ROW)
				if (!read_row(statement, store_tables[i], &row, NULL))
					is_stopped = fn(ctx, i, &row) != 0;
			sqlite3_finalize(statement);
		}
	}
	sqlite3_close(db);
}

struct rescue {
	struct database *to;
	store_check_fn *check;
	int count, rc;
};

/* A row that can be read; whether it can be understood is the store's to say. */
static int rescue_row(void *ctx, int table, const struct store_row *row)
{
	struct rescue *rescue = ctx;
	if (!rescue->check(store_tables[table], row))
		return 0;
	rescue->rc = run(rescue->to, of_table(table, PUT_ROW), row);
	if (rescue->rc == SQLITE_OK)
		rescue->count++;
	/* Of two that can't be there both, the first stays. */
	if ((rescue->rc & 0xff) == SQLITE_CONSTRAINT)
		rescue->rc = SQLITE_OK;
	return rescue->rc == SQLITE_OK ? 0 : -1;
}

static int rescue_rows(const struct store_place *place, struct database *to, store_check_fn *check,
	struct store_opened *opened, struct error *err)
{
	struct rescue rescue = { .to = to, .check = check };
	rescue.rc = run_plain(to, BEGIN);
	if (rescue.rc == SQLITE_OK)
		salvage(place, rescue_row, &rescue);
	if (rescue.rc == SQLITE_OK)
		rescue.rc = run_plain(to, COMMIT);
	if (rescue.rc != SQLITE_OK)
		return sqlite_fail(to->db, rescue.rc, err);
	opened->rescued = rescue.count;
	return 0;
}

/* carrel.db.new, whole; *opened is noted in it. check: with what can be read of carrel.db. */
static int make_new(const struct store_place *place, store_check_fn *check,
	struct store_opened *opened, struct error *err)
{
	struct database *d = NULL;
	char name[STORE_NAME_MAX];
	int version;
	sqlite_name_new(place, "", name);
	int failed = sqlite_begin_new(place, err) || open_name(place, name, &d, &version, err) ||
		     (check && rescue_rows(place, d, check, opened, err)) ||
		     sqlite_note_new(d->db, opened, err);
	if (d)
		close_database(d); /* moves all of the log into the file */
	if (!failed)
		return 0;
	sqlite_drop_new(place, NULL);
	return error_context(err, "make a new %s", place->file);
}

static int open_database(
	const struct store_place *place, struct store_opened *opened, void **db, struct error *err)
{
	struct database *d;
	bool is_there;
	int version = 0;
	if (sqlite_look(place, &is_there, err))
		return -1;
	if (!is_there && (make_new(place, NULL, opened, err) || sqlite_end_new(place, err)))
		return -1;
	if (open_name(place, place->file, &d, &version, err))
		return -1;
	if (sqlite_read_new(d->db, opened, err)) {
		close_database(d);
		return -1;
	}
	sqlite_log_init(&d->log, d->db);
	opened->version = SCHEMA_VERSION;
	opened->migrated_from = version == SCHEMA_VERSION ? 0 : version;
	*db = d;
	return 0;
}

/* The new one first: when that can't be made, nothing has changed. */
static int replace(const struct store_place *place, store_check_fn *check,
	struct store_opened *opened, struct error *err)
{
	sqlite_name_aside(place, opened);
	if (make_new(place, check, opened, err) || sqlite_set_aside(place, opened, err))
		return -1;
	return sqlite_end_new(place, err);
}

/* -- reading -- */

/* What a column holds, in the arena: NULL too. */
static const char *copy_column(sqlite3_stmt *statement, int at, struct arena *arena)
{
	return arena_text(arena, column_text(statement, at));
}

static const struct field *first_time(const struct store_table *table)
{
	const struct field *column;
	for (size_t i = 0; (column = store_column(table, i)); i++)
		if (column->kind == FIELD_TIME)
			return column;
	return store_column(table, 0);
}

/* "SELECT" of what `table` says, the oldest first; yours to finalize. */
static int prepare_load(sqlite3 *db, int table, sqlite3_stmt **statement)
{
	char tail[96];
	if (table == STORE_GONE)
		return sqlite3_prepare_v2(db,
			"SELECT id, name, why, at_ms FROM gone ORDER BY at_ms, rowid", -1,
			statement, NULL);
	str_format(tail, sizeof tail, "ORDER BY %s, id",
		field_name(first_time(store_tables[table]), FIELD_KEPT).text);
	return prepare_scan(db, store_tables[table], tail, statement);
}

static int read_gone(sqlite3_stmt *statement, struct store_row *row, struct error *err)
{
	*row = (struct store_row){ .numbers = { sqlite3_column_int64(statement, 3) } };
	for (int i = 0; i < 3; i++)
		if (!(row->texts[i] = column_text(statement, i)))
			return fail(err, ERR_CORRUPT, "a row has empty columns");
	return 0;
}

static int load(void *db, int table, store_row_fn *fn, void *ctx, struct error *err)
{
	struct database *d = db;
	sqlite3_stmt *statement = NULL;
	int failed = 0;
	errno = 0;
	int rc = prepare_load(d->db, table, &statement);
	while (!failed && rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
		struct store_row row;
		failed = (table == STORE_GONE
					 ? read_gone(statement, &row, err)
					 : read_row(statement, store_tables[table], &row, err)) ||
			 fn(ctx, table, &row, err);
		rc = SQLITE_OK;
	}
	if (!failed && rc != SQLITE_DONE)
		failed = sqlite_fail(d->db, rc, err);
	sqlite3_finalize(statement);
	return failed ? -1 : 0;
}

static struct store_row *find_answer(void *db, const struct store_row *wanted, struct arena *arena)
{
	struct database *d = db;
	struct store_row *found = NULL;
	sqlite3_stmt *statement = bind(d, FIND_ANSWER, wanted);
	if (sqlite3_step(statement) == SQLITE_ROW) {
		const void *body = sqlite3_column_blob(statement, 3);
		size_t len = (size_t)sqlite3_column_bytes(statement, 3);
		found = arena_alloc(arena, sizeof *found);
		*found = (struct store_row){ { copy_column(statement, 0, arena),
						     copy_column(statement, 2, arena) },
			{ sqlite3_column_int(statement, 1) },
			{ arena_bytes(arena, body ? body : "", len), len } };
	}
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return found;
}

/* -- writing -- */

static int apply(struct database *d, const struct store_write *write)
{
	static const enum statement steps[STORE_KIND_COUNT][4] = {
		[STORE_PUT_ANSWER] = { PUT_ANSWER },
		[STORE_TIDY] = { TIDY_GONE, TIDY_OLD_ANSWERS, TIDY_SHARES_OF_ANSWERS,
			TIDY_MANY_ANSWERS },
		[STORE_SETTLE] = { SETTLE },
		[STORE_PROBE] = { PROBE },
	};
	const struct store_row *row = &write->row;
	int rc = SQLITE_OK;
	for (int i = 0; i < 4 && steps[write->kind][i] && rc == SQLITE_OK; i++)
		rc = run(d, steps[write->kind][i], row);
	if (write->kind == STORE_PUT)
		return run(d, of_table(write->table, PUT_ROW), row);
	if (write->kind != STORE_REMOVE)
		return rc;
	if (d->statements[of_table(write->table, REMOVE_CHILDREN)])
		rc = run(d, of_table(write->table, REMOVE_CHILDREN), row);
	if (rc == SQLITE_OK)
		rc = run(d, of_table(write->table, REMOVE_ROW), row);
	return rc == SQLITE_OK && row->texts[2] ? run(d, PUT_GONE, row) : rc;
}

/* If the file is moved away while it is open, later writes would be lost with it. */
static int check_place(struct database *d, struct error *err)
{
	int has_moved = 0;
	sqlite3_file_control(d->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
	if (has_moved)
		return fail_hint(err, ERR_UNAVAILABLE, "put it back, or restart the daemon",
			"%s was moved or removed while it was in use", sqlite_name(d->db));
	return 0;
}

static int commit_all(struct database *d, struct store_batch *batch, struct error *err)
{
	int rc = run_plain(d, BEGIN);
	for (struct store_write *write = batch->first; write && rc == SQLITE_OK;
		write = write->next) {
		if (write->failed) /* refused when it was queued */
			continue;
		rc = apply(d, write);
		/* Undone by SQLite alone; the others can go on. */
		if ((rc & 0xff) == SQLITE_CONSTRAINT) {
			write->failed = arena_alloc(&batch->arena, sizeof *write->failed);
			sqlite_fail(d->db, rc, write->failed);
			rc = SQLITE_OK;
		}
	}
	if (rc == SQLITE_OK && fault_fails("store.commit"))
		return fail_io(d->db, SQLITE_IOERR, err);
	if (rc == SQLITE_OK)
		rc = run_plain(d, COMMIT);
	return rc == SQLITE_OK ? 0 : sqlite_fail(d->db, rc, err);
}

static int commit(void *db, struct store_batch *batch, struct error *err)
{
	struct database *d = db;
	if (check_place(d, err))
		return -1;
	int failed = commit_all(d, batch, err);
	if (failed && !sqlite3_get_autocommit(d->db))
		run_plain(d, ROLLBACK);
	return failed;
}

const struct store_backend store_sqlite = {
	.scheme = "sqlite",
	.open = open_database,
	.replace = replace,
	.attach = attach,
	.load = load,
	.commit = commit,
	.settle = settle,
	.find_answer = find_answer,
	.close = close_database,
};
