/* Version 10 of the database: labels of version 9 say whose a workspace is where a row of the
 * service names it; all others lose that meaning, and nothing else. */
/* security: authority */
#include <string.h>
#include "base/arena.h"
#include "store/sqlite.h"
#include "unit.h"

#define AGENT_LABELS "[\"carrel.service\",\"agents\"],[\"agent\",\"tools\"],[\"namespace\",\"n\"]"
static const struct {
	const char *id, *labels, *expected; /* members that differ from those before */
} cases[] = {
	{ "context", AGENT_LABELS ",[\"context_id\",\"c\"],[\"team\",\"red\"]",
		"{\"labels\":[[\"team\",\"red\"]],\"owner_service\":\"agents\",\"owner_agent\":"
		"\"tools\",\"owner_namespace\":\"n\",\"owner_context_id\":\"c\"}" },
	{ "otherContext", AGENT_LABELS ",[\"context_id\",\"forged\"]",
		"{\"labels\":[[\"former-carrel.service\",\"agents\"],[\"agent\",\"tools\"],"
		"[\"namespace\",\"n\"],[\"context_id\",\"forged\"]]}" },
	{ "unnamed", AGENT_LABELS ",[\"context_id\",\"c\"]",
		"{\"labels\":[[\"former-carrel.service\",\"agents\"],[\"agent\",\"tools\"],"
		"[\"namespace\",\"n\"],[\"context_id\",\"c\"]]}" },
	{ "thrown", AGENT_LABELS ",[\"carrel.task\",\"t2\"]",
		"{\"labels\":[],\"owner_service\":\"agents\",\"owner_agent\":\"tools\","
		"\"owner_namespace\":\"n\",\"owner_task\":\"t2\"}" },
	{ "twice",
		"[\"carrel.service\",\"code\"],[\"carrel.service\",\"cases\"],[\"carrel.case\","
		"\"k\"]",
		"{\"labels\":[[\"former-carrel.service\",\"code\"],[\"former-carrel.case\",\"k\"]]"
		"}" },
	{ "case", "[\"carrel.service\",\"cases\"],[\"carrel.case\",\"k\"]",
		"{\"labels\":[],\"owner_service\":\"cases\",\"owner_case_id\":\"k\"}" },
	{ "cell", "[\"carrel.service\",\"cases\"],[\"carrel.case\",\"k\"]",
		"{\"labels\":[],\"owner_service\":\"cases\",\"owner_case_id\":\"k\"}" },
	{ "desk",
		"[\"carrel.tool\",\"f\"],[\"carrel.tool-version\",\"2\"],[\"carrel.service\","
		"\"tools\"]",
		"{\"labels\":[],\"owner_service\":\"tools\",\"owner_tool\":\"f\","
		"\"owner_tool_version\":\"2\"}" },
	{ "layer",
		"[\"carrel.service\",\"deployments\"],[\"carrel.deployment\",\"d\"],"
		"[\"carrel.role\",\"package\"],[\"package_id\",\"p@1\"]",
		"{\"labels\":[],\"owner_service\":\"deployments\",\"owner_deployment\":\"d\","
		"\"owner_role\":\"package\",\"owner_package_id\":\"p@1\"}" },
	{ "surface", "[\"carrel.service\",\"deployments\"],[\"carrel.deployment\",\"d\"]",
		"{\"labels\":[],\"owner_service\":\"deployments\",\"owner_deployment\":\"d\"}" },
	{ "variable", "[\"carrel.service\",\"deployments\"],[\"carrel.deployment\",\"d\"]",
		"{\"labels\":[[\"former-carrel.service\",\"deployments\"],"
		"[\"former-carrel.deployment\",\"d\"]]}" },
	{ "plain", "[\"context_id\",\"chat/1\"],[\"package_id\",\"x\"],[\"Carrel.x\",\"y\"]",
		"{\"labels\":[[\"context_id\",\"chat/"
		"1\"],[\"package_id\",\"x\"],[\"Carrel.x\",\"y\"]]}" },
	{ "none", "", "{\"labels\":[]}" },
};

/* Rows of services; those without a workspace, and one that can't be read, among them. */
static const char rows[] =
	"INSERT INTO tasks VALUES "
	"('t1','tools','c','completed',1,1,'{\"workspace\":\"context\"}',1),"
	"('t2','tools','x','working',1,1,'{\"workspace\":\"thrown\"}',1),"
	"('t3','tools','c','completed',1,1,'{\"workspace\":\"otherContext\"}',1),"
	"('t4','tools','c','completed',1,1,'{\"workspace\":null}',1),"
	"('t5','tools','c','completed',1,1,'damaged',1);"
	"INSERT INTO cases VALUES ('k','x','ready',1,1,'{\"workspace\":\"case\"}',1),"
	"('k2','x','ready',1,1,'{\"workspace\":\"twice\"}',1);"
	"INSERT INTO cells VALUES ('e','k','passed',1,1,1,'{\"workspace\":\"cell\"}',1);"
	"INSERT INTO tools VALUES ('f1','f','active',1,1,0,'{\"workspace\":\"desk\"}',1);"
	"INSERT INTO deployments VALUES "
	"('d',1,1,'{\"live\":{\"layer\":\"layer\",\"rest\":{\"workspace\":"
	"null},\"a2a\":{\"workspace\":\"surface\"},\"env\":[[\"A\",\"variable\"]]},\"next\":null}',"
	"1);";

static void keep(sqlite3 *db, const char *id, const char *labels)
{
	auto_arena struct arena arena = { 0 };
	struct error err;
	const char *sql = arena_printf(&arena,
		"INSERT INTO workspaces VALUES ('%s','%s','ready',1,1,1,"
		"'{\"ttl_ms\":18446744073709551615,\"labels\":[%s],\"last\":{\"a\":1.50}}',7)",
		id, id, labels);
	assert_int_equal(sqlite_exec(db, sql, &err), 0);
}

/* The text of one value. */
static char *ask(sqlite3 *db, struct arena *arena, const char *sql)
{
	sqlite3_stmt *statement;
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	char *text = arena_text(arena, (const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	return text;
}

/* Those of a document that differ, in one order. */
static char *members(sqlite3 *db, struct arena *arena, const char *document, const char *id)
{
	return ask(db, arena,
		arena_printf(arena,
			"SELECT (SELECT group_concat(key || '=' || value, ' ') FROM (SELECT key, "
			"value"
			" FROM json_each(%s) WHERE key NOT IN ('ttl_ms', 'last') ORDER BY key))"
			" FROM workspaces WHERE id = '%s'",
			document, id));
}

static void labels_count_where_a_row_of_their_service_names_the_workspace(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct error err;
	sqlite3 *db;
	int version;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite_migrate(db, true, &version, &err), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		keep(db, cases[i].id, cases[i].labels);
	assert_int_equal(sqlite_exec(db, rows, &err), 0);
	assert_int_equal(sqlite_exec(db,
				 "INSERT INTO workspaces VALUES ('bad','bad','ready',1,1,1,'{',7);"
				 "PRAGMA user_version=9",
				 &err),
		0);
	if (sqlite_migrate(db, false, &version, &err))
		fail_msg("%s", err.text);
	assert_int_equal(version, 9);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_string_equal(members(db, &arena, "document", cases[i].id),
			members(db, &arena, arena_printf(&arena, "'%s'", cases[i].expected),
				cases[i].id));
		const char *all = ask(db, &arena,
			arena_printf(&arena, "SELECT document FROM workspaces WHERE id = '%s'",
				cases[i].id));
		assert_non_null(strstr(all, "\"ttl_ms\":18446744073709551615"));
		assert_non_null(strstr(all, "\"last\":{\"a\":1.50}"));
		bool is_changed = strchr(cases[i].labels, '.') && strcmp(cases[i].id, "plain") != 0;
		assert_string_equal(
			ask(db, &arena,
				arena_printf(&arena, "SELECT sum FROM workspaces WHERE id = '%s'",
					cases[i].id)),
			is_changed ? "0" : "7");
	}
	assert_string_equal(
		ask(db, &arena, "SELECT document FROM workspaces WHERE id = 'bad'"), "{");
	assert_string_equal(ask(db, &arena,
				    "SELECT count(*) FROM sqlite_schema WHERE name IN ('claims', "
				    "'labels', 'owned')"),
		"0");
	sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_count_where_a_row_of_their_service_names_the_workspace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
