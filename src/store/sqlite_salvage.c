#include "store/sqlite.h"

/* In the order of the tables themselves: no index is believed, and nothing is sorted. */
#define WORKSPACES                                                                                 \
	"SELECT id, name, state, created_ms, last_used_ms, expires_ms, document, sum"              \
	" FROM workspaces NOT INDEXED ORDER BY rowid"
#define EXECS                                                                                      \
	"SELECT id, workspace, state, started_ms, ended_ms, 0, document, sum"                      \
	" FROM execs NOT INDEXED ORDER BY rowid"

void sqlite_salvage(const struct store_place *place,
	int (*fn)(void *ctx, enum store_table table, const struct store_row *row), void *ctx)
{
	static const struct {
		enum store_table table;
		const char *sql;
	} scans[] = { { STORE_WORKSPACES, WORKSPACES }, { STORE_WORKSPACES, WORKSPACES " DESC" },
		{ STORE_EXECS, EXECS }, { STORE_EXECS, EXECS " DESC" } };
	int last = SQLITE_OK;
	sqlite3 *db = NULL;
	bool is_there, is_stopped = false;
	/* What SQLite would take for a new one is not shown to it. */
	if (sqlite_look(place, &is_there, NULL) || !is_there)
		return;
	if (sqlite_open_file(place, STORE_FILE, &db, NULL)) {
		sqlite3_close(db);
		return;
	}
	for (size_t i = 0; i < sizeof scans / sizeof *scans && !is_stopped; i++) {
		sqlite3_stmt *statement = NULL;
		struct store_row row;
		/* From the other end only when the first way didn't lead to it. */
		if (i % 2 && last == SQLITE_DONE)
			continue;
		last = sqlite3_prepare_v2(db, scans[i].sql, -1, &statement, NULL);
		while (!is_stopped && statement && (last = sqlite3_step(statement)) == SQLITE_ROW)
			if (!sqlite_read_row(statement, &row, NULL))
				is_stopped = fn(ctx, scans[i].table, &row) != 0;
		sqlite3_finalize(statement);
	}
	sqlite3_close(db);
}
