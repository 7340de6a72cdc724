#include "store/sqlite.h"

/* In the order of the tables themselves: no index is believed, and nothing is sorted. */
static const char *const ways[] = { "NOT INDEXED ORDER BY rowid",
	"NOT INDEXED ORDER BY rowid DESC" };

void sqlite_salvage(const struct store_place *place,
	int (*fn)(void *ctx, int table, const struct store_row *row), void *ctx)
{
	sqlite3 *db = NULL;
	bool is_there, is_stopped = false;
	/* What SQLite would take for a new one is not shown to it. */
	if (sqlite_look(place, &is_there, NULL) || !is_there)
		return;
	if (sqlite_open_file(place, place->file, &db, NULL)) {
		sqlite3_close(db);
		return;
	}
	for (int i = 0; store_tables[i] && !is_stopped; i++) {
		int last = SQLITE_OK;
		/* From the other end only when the first way didn't lead to it. */
		for (int way = 0; way < 2 && last != SQLITE_DONE && !is_stopped; way++) {
			sqlite3_stmt *statement = NULL;
			struct store_row row;
			last = sqlite_prepare_scan(db, store_tables[i], ways[way], &statement);
			while (!is_stopped && statement &&
				(last = sqlite3_step(statement)) == SQLITE_ROW)
				if (!sqlite_read_row(statement, store_tables[i], &row, NULL))
					is_stopped = fn(ctx, i, &row) != 0;
			sqlite3_finalize(statement);
		}
	}
	sqlite3_close(db);
}
