#include "base/fault.h"
#include "base/str.h"
#include "store/sqlite.h"

/* Entry i takes a database from version i to i + 1, in one transaction. An entry that was released
 * is never changed. What a document (model/records/record.h) holds is part of the version: a new
 * field needs an entry that gives it a value in the rows there are (json_set), and 0 as their
 * sum. */
static const char *const migrations[SCHEMA_VERSION] = {
	/* 1: workspaces and background execs */
	"CREATE TABLE workspaces ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" name TEXT NOT NULL UNIQUE,"
	" state TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL,"
	" last_used_ms INTEGER NOT NULL,"
	" expires_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL,"
	" sum INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE execs ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" workspace TEXT NOT NULL REFERENCES workspaces(id) ON DELETE CASCADE,"
	" state TEXT NOT NULL,"
	" started_ms INTEGER NOT NULL,"
	" ended_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL,"
	" sum INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX execs_by_workspace ON execs(workspace);",
	/* 2: what was, what was answered, and what a new database has to say of itself */
	"CREATE TABLE gone ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" name TEXT NOT NULL,"
	" why TEXT NOT NULL,"
	" at_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX gone_by_name ON gone(name, at_ms);"
	"CREATE INDEX gone_by_time ON gone(at_ms);"
	"CREATE TABLE answers ("
	" scope TEXT NOT NULL,"
	" key TEXT NOT NULL,"
	" at_ms INTEGER NOT NULL,"
	" digest TEXT NOT NULL,"
	" status INTEGER NOT NULL,"
	" location TEXT,"
	" body BLOB NOT NULL,"
	" PRIMARY KEY (scope, key)"
	") STRICT;"
	"CREATE INDEX answers_by_time ON answers(at_ms);"
	"CREATE TABLE unsettled ("
	" aside TEXT NOT NULL,"
	" why TEXT NOT NULL"
	") STRICT;",
	/* 3: snapshots, which may outlive their workspaces */
	"CREATE TABLE snapshots ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" workspace TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL,"
	" sum INTEGER NOT NULL"
	") STRICT;",
	/* 4: access tokens; approvals, which outlive their workspaces */
	"CREATE TABLE tokens ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" scope TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL,"
	" expires_ms INTEGER NOT NULL,"
	" last_used_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL,"
	" sum INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE approvals ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" workspace TEXT NOT NULL,"
	" state TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL,"
	" expires_ms INTEGER NOT NULL,"
	" answered_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL,"
	" sum INTEGER NOT NULL"
	") STRICT;",
	/* 5: eval cases and their cells */
	"CREATE TABLE cases ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" name TEXT NOT NULL,"
	" state TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL,"
	" last_used_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL,"
	" sum INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE cells ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" case_id TEXT NOT NULL,"
	" state TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL,"
	" started_ms INTEGER NOT NULL,"
	" ended_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL,"
	" sum INTEGER NOT NULL"
	") STRICT;",
	/* 6: A2A agents, and their tasks, which outlive their workspaces */
	"CREATE TABLE agents ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" name TEXT NOT NULL UNIQUE,"
	" created_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL,"
	" sum INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE tasks ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" agent TEXT NOT NULL,"
	" context TEXT NOT NULL,"
	" state TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL,"
	" updated_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL,"
	" sum INTEGER NOT NULL"
	") STRICT;",
	/* 7: versions of tools */
	"CREATE TABLE tools ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" name TEXT NOT NULL,"
	" state TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL,"
	" changed_ms INTEGER NOT NULL,"
	" expires_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL,"
	" sum INTEGER NOT NULL"
	") STRICT;",
	/* 8: deployments of agent packages */
	"CREATE TABLE deployments ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" created_ms INTEGER NOT NULL,"
	" updated_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL,"
	" sum INTEGER NOT NULL"
	") STRICT;",
	/* 9: where tasks of A2A agents are pushed to */
	"CREATE TABLE push_configs ("
	" id TEXT PRIMARY KEY NOT NULL,"
	" task TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL,"
	" sum INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX push_configs_by_task ON push_configs(task);",
	/* 10: whose a workspace is (docs/design/0065). Until now labels said so, which clients
	 * could write: they are believed where a row of the service names the workspace. Labels of
	 * services on others get a name without meaning. */
	"CREATE TABLE claims (workspace TEXT, service TEXT, label TEXT, object TEXT, context TEXT);"
	"INSERT INTO claims SELECT json_extract(document, '$.workspace'), 'agents', 'agent', agent,"
	" context FROM tasks WHERE json_valid(document);"
	"INSERT INTO claims SELECT json_extract(document, '$.workspace'), 'agents', 'carrel.task',"
	" id, NULL FROM tasks WHERE json_valid(document);"
	"INSERT INTO claims SELECT json_extract(document, '$.workspace'), 'cases', 'carrel.case',"
	" id, NULL FROM cases WHERE json_valid(document);"
	"INSERT INTO claims SELECT json_extract(document, '$.workspace'), 'cases', 'carrel.case',"
	" case_id, NULL FROM cells WHERE json_valid(document);"
	"INSERT INTO claims SELECT json_extract(document, '$.workspace'), 'tools', 'carrel.tool',"
	" name, NULL FROM tools WHERE json_valid(document);"
	"INSERT INTO claims SELECT json_extract(d.document, '$.' || r.value || p.value),"
	" 'deployments', 'carrel.deployment', d.id, NULL FROM deployments d,"
	" json_each('[\"live\",\"next\",\"previous\"]') r,"
	" json_each('[\".layer\",\".rest.workspace\",\".a2a.workspace\",\".ui.workspace\"]') p"
	" WHERE json_valid(d.document);"
	"DELETE FROM claims WHERE workspace IS NULL;"
	"CREATE INDEX claims_by_workspace ON claims(workspace);"
	/* Of two labels of a name the first one counted. */
	"CREATE TABLE labels (workspace TEXT, at INTEGER, name TEXT, value TEXT, member TEXT);"
	"INSERT INTO labels SELECT w.id, l.key, json_extract(l.value, '$[0]'),"
	" json_extract(l.value, '$[1]'), m.value FROM workspaces w, json_each(w.document, "
	"'$.labels') l"
	" LEFT JOIN json_each('{\"context_id\":\"context_id\",\"agent\":\"agent\","
	"\"namespace\":\"namespace\",\"carrel.service\":\"service\",\"carrel.task\":\"task\","
	"\"carrel.deployment\":\"deployment\",\"carrel.role\":\"role\",\"carrel.case\":"
	"\"case_id\",\"carrel.tool\":\"tool\",\"carrel.tool-version\":\"tool_version\","
	"\"package_id\":\"package_id\"}') m ON m.key = json_extract(l.value, '$[0]')"
	" WHERE json_valid(w.document);"
	"CREATE INDEX labels_by_workspace ON labels(workspace, name, at);"
	"DELETE FROM labels AS l WHERE EXISTS (SELECT 1 FROM labels b WHERE b.workspace ="
	" l.workspace AND b.name = l.name AND b.at < l.at);"
	"CREATE TABLE owned AS SELECT DISTINCT c.workspace AS id FROM claims c"
	" JOIN labels s ON s.workspace = c.workspace AND s.name = 'carrel.service'"
	"  AND s.value = c.service"
	" JOIN labels o ON o.workspace = c.workspace AND o.name = c.label AND o.value = c.object"
	" LEFT JOIN labels x ON x.workspace = c.workspace AND x.name = 'context_id'"
	" WHERE c.context IS NULL OR c.context = x.value;"
	"UPDATE workspaces SET sum = 0, document = json_patch("
	" json_set(document, '$.labels', json((SELECT json_group_array(json_array(name, value)) "
	"FROM"
	"  (SELECT name, value FROM labels WHERE workspace = workspaces.id AND member IS NULL"
	"   AND name NOT GLOB 'carrel.*' ORDER BY at)))),"
	" (SELECT json_group_object('owner_' || member, value) FROM labels"
	"  WHERE workspace = workspaces.id AND member IS NOT NULL))"
	" WHERE id IN (SELECT id FROM owned);"
	"UPDATE workspaces SET sum = 0, document = json_set(document, '$.labels',"
	" json((SELECT json_group_array(json_array(CASE WHEN name GLOB 'carrel.*' THEN"
	"  substr('former-' || name, 1, 128) ELSE name END, value)) FROM"
	"  (SELECT name, value FROM labels WHERE workspace = workspaces.id ORDER BY at))))"
	" WHERE id NOT IN (SELECT id FROM owned)"
	" AND id IN (SELECT workspace FROM labels WHERE name GLOB 'carrel.*');"
	"DROP TABLE claims; DROP TABLE labels; DROP TABLE owned;",
};

int sqlite_exec(sqlite3 *db, const char *sql, struct error *err)
{
	errno = 0;
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : sqlite_fail(db, rc, err);
}

static int read_int(sqlite3 *db, const char *sql, int64_t *value, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	errno = 0;
	int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(statement);
	int failed = rc == SQLITE_ROW ? 0 : sqlite_fail(db, rc, err);
	if (!failed)
		*value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return failed;
}

static int run_migration(sqlite3 *db, int from, struct error *err)
{
	char end[128];
	str_format(end, sizeof end, "PRAGMA user_version=%d; PRAGMA application_id=%d; COMMIT",
		from + 1, SCHEMA_APPLICATION_ID);
	if (!sqlite_exec(db, "BEGIN IMMEDIATE", err) && !sqlite_exec(db, migrations[from], err)) {
		fault_point("store_migrate");
		if (!sqlite_exec(db, end, err)) {
			fault_point("store_migrated");
			return 0;
		}
	}
	if (!sqlite3_get_autocommit(db))
		sqlite_exec(db, "ROLLBACK", NULL);
	return error_context(err, "migrate %s to version %d", sqlite_name(db), from + 1);
}

int sqlite_migrate(sqlite3 *db, bool is_new, int *version, struct error *err)
{
	int64_t is, application;
	if (read_int(db, "PRAGMA user_version", &is, err) ||
		read_int(db, "PRAGMA application_id", &application, err))
		return -1;
	if (!is_new && (application != SCHEMA_APPLICATION_ID || is < 1))
		return fail(err, ERR_CORRUPT, "%s is not a database of Carrel", sqlite_name(db));
	if (is > SCHEMA_VERSION)
		return fail_hint(err, ERR_UNAVAILABLE, "use the newer carrel with this home",
			"%s has version %d, this carrel knows %d", sqlite_name(db), (int)is,
			SCHEMA_VERSION);
	for (int at = (int)is; at < SCHEMA_VERSION; at++)
		if (run_migration(db, at, err))
			return -1;
	*version = (int)is;
	return 0;
}

int sqlite_note_new(sqlite3 *db, const struct store_opened *opened, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	errno = 0;
	int rc = sqlite3_prepare_v2(
		db, "INSERT INTO unsettled (aside, why) VALUES (?, ?)", -1, &statement, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, opened->aside, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 2, opened->why, -1, SQLITE_STATIC);
		rc = sqlite3_step(statement);
	}
	int failed = rc == SQLITE_DONE ? 0 : sqlite_fail(db, rc, err);
	sqlite3_finalize(statement);
	return failed;
}

int sqlite_read_new(sqlite3 *db, struct store_opened *opened, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	errno = 0;
	int rc = sqlite3_prepare_v2(db, "SELECT aside, why FROM unsettled", -1, &statement, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW) {
		const char *aside = (const char *)sqlite3_column_text(statement, 0);
		const char *why = (const char *)sqlite3_column_text(statement, 1);
		opened->is_new = true;
		str_copy(opened->aside, sizeof opened->aside, aside ? aside : "");
		str_copy(opened->why, sizeof opened->why, why ? why : "");
		opened->was_corrupt = opened->aside[0] != '\0';
	}
	int failed = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : sqlite_fail(db, rc, err);
	sqlite3_finalize(statement);
	return failed;
}
