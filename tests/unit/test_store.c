/* The store: what is acknowledged is there, in order, and once. */
#define STORE_ON_DISK
#include "base/clock.h"
#include "store_fixture.h"
#include "store/sqlite.h"
#include <sqlite3.h>

#define TEXT_OF(number) #number
#define NUMBER(macro) TEXT_OF(macro)

static void a_new_database_is_whole_private_and_says_so(void **state)
{
	struct fixture *f = *state;
	struct stat file;

	open_store(f);
	assert_true(f->opened.is_new && !f->opened.was_corrupt);
	assert_string_equal(f->opened.aside, "");
	assert_int_equal(f->opened.version, SCHEMA_VERSION);
	assert_int_equal(f->opened.migrated_from, 0);
	assert_int_equal(fstatat(f->dir, STORE_FILE, &file, 0), 0);
	assert_int_equal(file.st_mode & 07777, 0600);
	assert_int_equal(count_files(f, STORE_FILE ".new"), 0);
	load(f);
	assert_int_equal(f->workspaces + f->execs, 0);
}

static void it_stays_new_until_the_first_commit(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	close_store(f);
	open_store(f);
	assert_true(f->opened.is_new);
	put_workspace(f, 1);
	close_store(f);
	open_store(f);
	assert_false(f->opened.is_new);
}

static void everything_comes_back_as_it_was(void **state)
{
	struct fixture *f = *state;
	auto_buf struct buf before;

	buf_init(&before, BUF_MAX_DEFAULT);
	open_store(f);
	for (int i = 1; i <= 5; i++)
		put_workspace(f, i);
	put_exec(f, 1, 3);
	put_exec(f, 2, 5);
	store_flush(f->store);
	assert_string_equal(f->acks, ".......");
	load(f);
	assert_int_equal(f->workspaces, 5);
	assert_int_equal(f->execs, 2);
	buf_append(&before, f->loaded.data, f->loaded.len);
	assert_non_null(strstr(before.data, "\"name\":\"desk-5\""));
	close_store(f);
	open_store(f);
	load(f);
	assert_string_equal(before.data, f->loaded.data);
}

static void workspaces_come_first_and_the_oldest_of_each(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	for (int i = 3; i >= 1; i--) {
		put_workspace(f, i);
		put_exec(f, i, i);
	}
	store_flush(f->store);
	load(f);
	const char *first = strstr(f->loaded.data, "\"name\":\"desk-1\""),
		   *last = strstr(f->loaded.data, "\"name\":\"desk-3\""),
		   *exec = strstr(f->loaded.data, "\"id\":\"e"), *late;
	assert_true(first && last && exec && first < last && last < exec);
	late = strstr(exec, "e0000000000000000003\"");
	assert_true(late && strstr(exec, "e0000000000000000001\"") < late);
}

static void a_second_put_replaces_the_first(void **state)
{
	struct fixture *f = *state;
	auto_arena struct arena arena = { 0 };
	struct workspace w = make_workspace(&arena, 1);
	struct exec_record e = make_exec(&arena, 1, 1);

	open_store(f);
	store_put(f->store, &store_workspaces, &w, on_done, f);
	store_put(f->store, &store_execs, &e, on_done, f);
	w.state = WORKSPACE_SUSPENDED;
	w.name = "other";
	w.disk_usage_bytes = 77;
	e.state = EXEC_ENDED;
	e.result.exit_status = 9;
	store_put(f->store, &store_workspaces, &w, on_done, f);
	store_put(f->store, &store_execs, &e, on_done, f);
	store_flush(f->store);
	assert_string_equal(f->acks, "....");
	load(f);
	assert_int_equal(f->workspaces + f->execs, 2);
	assert_non_null(strstr(f->loaded.data, "\"name\":\"other\",\"state\":\"suspended\""));
	assert_non_null(strstr(f->loaded.data, "\"disk_usage_bytes\":77"));
	assert_non_null(strstr(f->loaded.data, "\"exit_code\":9"));
}

static void nothing_is_written_before_the_flush_and_it_is_asked_for_once(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	load(f);
	assert_int_equal(f->scheduled, 0);
	put_workspace(f, 1);
	put_workspace(f, 2);
	assert_int_equal(f->scheduled, 1);
	assert_string_equal(f->acks, "");
	load(f);
	assert_int_equal(f->workspaces, 0);
	store_flush(f->store);
	assert_string_equal(f->acks, "..");
	store_flush(f->store);
	assert_string_equal(f->acks, "..");
	assert_int_equal(f->scheduled, 1);
	put_workspace(f, 3);
	assert_int_equal(f->scheduled, 2);
	store_flush(NULL);
}

static void the_values_are_copied(void **state)
{
	struct fixture *f = *state;
	char *name = strdup("fleeting"), *why = strdup("because");
	struct workspace w = { .id = "a0000000000000000001", .name = name, .error = why };

	open_store(f);
	store_put(f->store, &store_workspaces, &w, NULL, NULL);
	memset(name, 'x', strlen(name));
	memset(why, 'x', strlen(why));
	free(name);
	free(why);
	w.state = WORKSPACE_FAILED;
	store_flush(f->store);
	load(f);
	assert_non_null(strstr(f->loaded.data, "\"fleeting\",\"state\":\"creating\""));
	assert_non_null(strstr(f->loaded.data, "\"because\""));
}

static void queue_another(void *ctx, const struct error *err)
{
	struct fixture *f = ctx;

	on_done(f, err);
	put_workspace(f, 50);
	store_flush(f->store); /* not now: it is at it */
}

static void a_write_queued_by_a_done_belongs_to_the_next_flush(void **state)
{
	struct fixture *f = *state;
	auto_arena struct arena arena = { 0 };
	struct workspace w = make_workspace(&arena, 1);

	open_store(f);
	store_put(f->store, &store_workspaces, &w, queue_another, f);
	put_workspace(f, 2);
	store_flush(f->store);
	assert_string_equal(f->acks, "..");
	assert_int_equal(f->scheduled, 2);
	load(f);
	assert_int_equal(f->workspaces, 2);
	store_flush(f->store);
	assert_string_equal(f->acks, "...");
	load(f);
	assert_int_equal(f->workspaces, 3);
}

static void closing_writes_what_is_queued_and_what_that_queues(void **state)
{
	struct fixture *f = *state;
	auto_arena struct arena arena = { 0 };
	struct workspace w = make_workspace(&arena, 1);

	open_store(f);
	store_put(f->store, &store_workspaces, &w, queue_another, f);
	close_store(f);
	assert_string_equal(f->acks, "..");
	assert_int_equal(f->scheduled, 1);
	open_store(f);
	load(f);
	assert_int_equal(f->workspaces, 2);
	store_close(NULL);
}

static void a_write_that_breaks_a_rule_fails_alone(void **state)
{
	struct fixture *f = *state;
	auto_arena struct arena arena = { 0 };
	struct workspace same = make_workspace(&arena, 2), large = make_workspace(&arena, 9);
	struct store_answer answer = { .status = 201 };
	char *text = calloc(1, STORE_DOCUMENT_MAX + 1);

	memset(text, 'x', STORE_DOCUMENT_MAX);
	same.name = "desk-1";
	large.requirements = text;
	answer.body = (struct str){ text, STORE_ANSWER_BODY_MAX + 1 };
	open_store(f);
	put_workspace(f, 1);
	put_exec(f, 1, 77); /* no such workspace */
	assert_int_equal(f->last.code, ERR_NONE);
	store_flush(f->store);
	assert_string_equal(f->acks, ".!");
	assert_int_equal(f->last.code, ERR_CONFLICT);
	assert_non_null(strstr(f->last.text, STORE_FILE));
	store_put(f->store, &store_workspaces, &same, on_done, f);
	put_exec(f, 2, 1);
	store_flush(f->store);
	assert_string_equal(f->acks, ".!!.");
	assert_int_equal(f->last.code, ERR_CONFLICT);
	store_put(f->store, &store_workspaces, &large, on_done, f);
	store_put_answer(f->store, "s", "k", &answer, on_done, f);
	put_exec(f, 3, 1);
	store_flush(f->store);
	assert_string_equal(f->acks, ".!!.!!.");
	assert_int_equal(f->last.code, ERR_LIMIT);
	assert_false(store_is_failing(f->store, &f->last));
	assert_false(find_answer(f, "s", "k", &arena, &answer));
	load(f);
	assert_int_equal(f->workspaces, 1);
	assert_int_equal(f->execs, 2);
	free(text);
}

static void a_removed_workspace_takes_its_execs_and_leaves_a_reason(void **state)
{
	struct fixture *f = *state;
	auto_arena struct arena arena = { 0 };
	int64_t now = clock_now_ms(), at = 0;
	const char *why = NULL;

	open_store(f);
	put_workspace(f, 1);
	put_workspace(f, 2);
	put_exec(f, 1, 1);
	put_exec(f, 2, 2);
	put_exec(f, 3, 2);
	store_remove(f->store, &store_execs, "e0000000000000000003", NULL, on_done, f);
	store_remove(f->store, &store_workspaces, "a0000000000000000001",
		&(struct store_gone){ "desk-1", "ttl" }, on_done, f);
	assert_false(store_find_gone(f->store, "desk-1", &why, &at));
	store_flush(f->store);
	assert_string_equal(f->acks, ".......");
	load(f);
	assert_int_equal(f->workspaces, 1);
	assert_int_equal(f->execs, 1);
	assert_true(store_find_gone(f->store, "desk-1", &why, &at));
	assert_string_equal(why, "ttl");
	assert_true(at >= now && at <= clock_now_ms());
	assert_true(store_find_gone(f->store, "a0000000000000000001", &why, &at));
	assert_false(store_find_gone(f->store, "desk-2", &why, &at));
	/* The name is free again, and the newest one of it counts. */
	auto_arena struct arena names = { 0 };
	struct workspace again = make_workspace(&names, 7);
	again.name = "desk-1";
	store_put(f->store, &store_workspaces, &again, on_done, f);
	store_remove(f->store, &store_workspaces, again.id, &(struct store_gone){ "desk-1", "rm" },
		on_done, f);
	close_store(f);
	assert_string_equal(f->acks, ".........");
	open_store(f);
	assert_true(store_find_gone(f->store, "desk-1", &why, &at));
	assert_string_equal(why, "rm");
	/* What was never there can be removed too. */
	store_remove(f->store, &store_workspaces, "a0000000000000000099",
		&(struct store_gone){ "none", "x" }, on_done, f);
	store_flush(f->store);
	assert_string_equal(f->acks, "..........");
}

static void the_answer_of_a_key_is_found_again_and_replaced(void **state)
{
	struct fixture *f = *state;
	auto_arena struct arena arena = { 0 };
	struct store_answer begun = { .digest = "d1", .status = 0, .body = STR("id\0x") };
	struct store_answer answer = {
		.digest = "d1", .status = 201, .body = STR("{}"), .location = "/v1/workspaces/x"
	};
	struct store_answer found = { 0 };

	open_store(f);
	store_put_answer(f->store, "POST /v1/workspaces", "k", &begun, on_done, f);
	assert_false(find_answer(f, "POST /v1/workspaces", "k", &arena, &found));
	store_flush(f->store);
	assert_true(find_answer(f, "POST /v1/workspaces", "k", &arena, &found));
	assert_true(str_equal(found.body, begun.body));
	assert_int_equal(found.status, 0);
	assert_null(found.location);
	store_put_answer(f->store, "POST /v1/workspaces", "k", &answer, on_done, f);
	close_store(f);
	open_store(f);
	assert_true(find_answer(f, "POST /v1/workspaces", "k", &arena, &found));
	assert_int_equal(found.status, 201);
	assert_string_equal(found.digest, "d1");
	assert_string_equal(found.location, "/v1/workspaces/x");
	assert_true(str_is(found.body, "{}"));
	assert_false(find_answer(f, "POST /v1/workspaces", "K", &arena, &found));
	assert_false(find_answer(f, "POST", "k", &arena, &found));
}

/* Runs SQL on the database from outside, as an administrator would. */
static void run_sql(const struct fixture *f, const char *sql)
{
	char path[128];
	sqlite3 *db;

	str_format(path, sizeof path, "%s/" STORE_FILE, f->path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 10000); /* the writer may lengthen its log just now */
	char *message = NULL;
	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s", message);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t read_number(const struct fixture *f, const char *sql)
{
	char path[128];
	sqlite3 *db;
	sqlite3_stmt *statement;

	str_format(path, sizeof path, "%s/" STORE_FILE, f->path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	int64_t value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return value;
}

static void old_answers_are_not_given_and_go_at_the_next_tidying(void **state)
{
	struct fixture *f = *state;
	auto_arena struct arena arena = { 0 };
	struct store_answer answer = { .status = 201, .body = STR("x") };

	open_store(f);
	store_put_answer(f->store, "s", "old", &answer, NULL, NULL);
	store_put_answer(f->store, "s", "young", &answer, NULL, NULL);
	close_store(f);
	run_sql(f, "UPDATE answers SET at_ms = at_ms - 24 * 3600000 WHERE key = 'old'");
	open_store(f);
	assert_false(find_answer(f, "s", "old", &arena, &answer));
	assert_true(find_answer(f, "s", "young", &arena, &answer));
	assert_int_equal(read_number(f, "SELECT count(*) FROM answers"), 2);
	store_put_answer(f->store, "s", "new", &answer, NULL, NULL); /* the first of a start */
	store_flush(f->store);
	assert_int_equal(read_number(f, "SELECT count(*) FROM answers"), 2);
	assert_int_equal(read_number(f, "SELECT count(*) FROM answers WHERE key = 'old'"), 0);
}

static void what_was_is_capped_and_the_oldest_goes_first(void **state)
{
	struct fixture *f = *state;
	struct store_answer answer = { .status = 201, .body = STR("x") };

	open_store(f);
	close_store(f);
	run_sql(f, "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n"
		   " WHERE i < 11000) INSERT INTO gone SELECT 'g' || i, 'n' || i, 'w', i FROM n");
	run_sql(f, "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n"
		   " WHERE i < 11000) INSERT INTO answers SELECT (i % 2) || ': s', 'k' || i,"
		   " (SELECT unixepoch() * 1000 - 100000) + i, '', 1, NULL, x'00' FROM n");
	open_store(f);
	store_put_answer(f->store, "s", "last", &answer, NULL, NULL);
	store_flush(f->store);
	assert_int_equal(read_number(f, "SELECT count(*) FROM gone"), STORE_GONE_MAX);
	assert_int_equal(read_number(f, "SELECT min(at_ms) FROM gone"), 1001);
	assert_int_equal(read_number(f, "SELECT count(*) FROM answers"), STORE_ANSWERS_MAX);
	assert_int_equal(read_number(f, "SELECT count(*) FROM answers WHERE key = 'last'"), 1);
	assert_int_equal(read_number(f, "SELECT count(*) FROM answers WHERE key = 'k1001'"), 0);
	/* Large ones are fewer. */
	run_sql(f, "UPDATE answers SET body = zeroblob(1000000) WHERE rowid % 131 = 0");
	close_store(f);
	open_store(f);
	store_put_answer(f->store, "s", "last", &answer, NULL, NULL);
	store_flush(f->store);
	assert_in_range(read_number(f, "SELECT sum(length(body)) FROM answers"), 60000000,
		STORE_ANSWERS_BYTES_MAX);
	assert_int_equal(read_number(f, "SELECT count(*) FROM answers WHERE key = 'last'"), 1);
}

static void answers_of_one_principal_remove_none_of_another(void **state)
{
	struct fixture *f = *state;
	struct store_answer answer = { .status = 201, .body = STR("x") };

	open_store(f);
	close_store(f);
	run_sql(f, "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n"
		   " WHERE i < 12000) INSERT INTO answers SELECT iif(i > 100, 'token a', 'token b')"
		   " || ': POST /v1/' || (i % 3), 'k' || i,"
		   " (SELECT unixepoch() * 1000 - 100000) + i, '', 1, NULL, x'00' FROM n");
	open_store(f);
	store_put_answer(f->store, "token a: POST /v1/1", "last", &answer, NULL, NULL);
	store_flush(f->store);
	assert_int_equal(
		read_number(f, "SELECT count(*) FROM answers WHERE scope LIKE 'token b: %'"), 100);
	assert_int_equal(
		read_number(f, "SELECT count(*) FROM answers WHERE scope LIKE 'token a: %'"),
		STORE_ANSWERS_SHARE_MAX);
	assert_int_equal(read_number(f, "SELECT count(*) FROM answers WHERE key = 'last'"), 1);
	run_sql(f, "UPDATE answers SET body = zeroblob(1000000) WHERE scope LIKE 'token a: %' AND"
		   " rowid % 50 = 0");
	close_store(f);
	open_store(f);
	store_put_answer(f->store, "token b: POST /v1/1", "last", &answer, NULL, NULL);
	store_flush(f->store);
	assert_int_equal(
		read_number(f, "SELECT count(*) FROM answers WHERE scope LIKE 'token b: %'"), 101);
	assert_in_range(read_number(f, "SELECT sum(length(body)) FROM answers"), 30000000,
		STORE_ANSWERS_SHARE_BYTES_MAX);
}

/* A database of version 1, as it was written then. */
static const char version_1[] =
	"PRAGMA journal_mode=WAL;"
	"CREATE TABLE workspaces (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL UNIQUE,"
	" state TEXT NOT NULL, created_ms INTEGER NOT NULL, last_used_ms INTEGER NOT NULL,"
	" expires_ms INTEGER NOT NULL, document TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;"
	"CREATE TABLE execs (id TEXT PRIMARY KEY NOT NULL,"
	" workspace TEXT NOT NULL REFERENCES workspaces(id) ON DELETE CASCADE,"
	" state TEXT NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,"
	" document TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;"
	"CREATE INDEX execs_by_workspace ON execs(workspace);"
	"INSERT INTO workspaces VALUES ('a0000000000000000001', 'old-desk', 'ready', 1, 2, 0,"
	" '{\"ttl_ms\":0,\"idle_timeout_ms\":0,\"labels\":[[\"k\",\"v\"]],\"env\":[],"
	"\"limits\":{\"memory_bytes\":1,\"disk_bytes\":2,\"tmp_bytes\":3,\"pids\":4,\"fds\":5,"
	"\"millicpus\":6,\"cpu_time_ms\":7,\"timeout_ms\":8,\"output_bytes\":9},"
	"\"environment\":null,\"python\":null,\"requirements\":null,\"packages\":[],"
	"\"is_context\":false,\"disk_usage_bytes\":10,\"disk_mechanism\":null,\"error\":null}', "
	"1216012037866097403);"
	"INSERT INTO execs VALUES ('e0000000000000000001', 'a0000000000000000001', 'ended', 7, 8,"
	" '{\"argv\":[\"true\"],\"cwd\":\"/workspace\",\"background\":true,\"tty\":false,"
	"\"result\":{\"reason\":\"exited\",\"exit_status\":0,\"signal\":0,\"duration_ms\":9,\"cpu_"
	"ms\":1,\"max_rss_bytes\":933888,\"truncated\":false},"
	"\"output_bytes\":0,\"output_dropped\":0,"
	"\"error\":null,\"error_exit_code\":0,\"timeout_ms\":0,\"cpu_time_ms\":0,\"output_cap_"
	"bytes\":67108864}', 8040586404877670809);"
	"PRAGMA application_id=1130459756; PRAGMA user_version=1;";

static void version_1_is_migrated_with_all_it_holds(void **state)
{
	struct fixture *f = *state;
	auto_arena struct arena arena = { 0 };
	struct store_answer answer = { .status = 1, .body = STR("x") };

	write_whole(f, STORE_FILE, STR(""));
	run_sql(f, version_1);
	open_store(f);
	assert_int_equal(f->opened.migrated_from, 1);
	assert_int_equal(f->opened.version, SCHEMA_VERSION);
	assert_false(f->opened.is_new || f->opened.was_corrupt);
	load(f);
	assert_int_equal(f->workspaces, 1);
	assert_int_equal(f->execs, 1);
	assert_non_null(strstr(f->loaded.data, "\"old-desk\",\"state\":\"ready\""));
	store_put_answer(f->store, "s", "k", &answer, on_done, f);
	store_flush(f->store);
	assert_string_equal(f->acks, ".");
	close_store(f);
	open_store(f);
	assert_int_equal(f->opened.migrated_from, 0);
	assert_true(find_answer(f, "s", "k", &arena, &answer));
}

static void a_url_of_another_database_is_refused(void **state)
{
	struct fixture *f = *state;
	const struct store_host host = { 0 };
	struct error err;

	assert_int_equal(store_open("postgresql://x/y", &host, &f->store, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.text, "postgresql://x/y"));
}

static void a_later_version_is_refused_by_both_numbers_and_left_alone(void **state)
{
	struct fixture *f = *state;
	struct error err;

	open_store(f);
	put_workspace(f, 1);
	close_store(f);
	run_sql(f, "PRAGMA user_version=1000");
	assert_int_equal(try_open(f, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "version 1000"));
	assert_non_null(strstr(err.text, "knows " NUMBER(SCHEMA_VERSION)));
	assert_int_equal(count_files(f, STORE_FILE ".corrupt-"), 0);
	run_sql(f, "PRAGMA user_version=" NUMBER(SCHEMA_VERSION));
	open_store(f);
	load(f);
	assert_int_equal(f->workspaces, 1);
}

static void ten_thousand_workspaces_are_loaded_in_a_moment(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	for (int i = 1; i <= 10000; i++) {
		auto_arena struct arena arena = { 0 };
		struct workspace w = make_workspace(&arena, i);
		store_put(f->store, &store_workspaces, &w, NULL, NULL);
	}
	store_flush(f->store);
	close_store(f);
	uint64_t began = clock_process_cpu_us();
	open_store(f);
	load(f);
	uint64_t used = clock_process_cpu_us() - began;
	assert_int_equal(f->workspaces, 10000);
	print_message("10,000 workspaces: opened and loaded with %llu us of cpu time\n",
		(unsigned long long)used);
	assert_in_range(used, 0, 20000000); /* sanitizers */
}

static int refuse(void *ctx, const struct store_table *table, const void *object)
{
	return -1;
}

static void a_loader_may_stop(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	put_workspace(f, 1);
	store_flush(f->store);
	store_load(f->store, refuse, on_loaded, f);
	store_flush(f->store);
	assert_true(f->has_failed);
	assert_int_equal(f->load_error.code, ERR_CANCELED);
	load(f);
	assert_int_equal(f->workspaces, 1);
}

static void an_administrator_may_read_it_meanwhile(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	put_workspace(f, 1);
	store_flush(f->store);
	assert_int_equal(read_number(f, "SELECT count(*) FROM workspaces"), 1);
	put_workspace(f, 2);
	store_flush(f->store);
	assert_string_equal(f->acks, "..");
	assert_int_equal(read_number(f, "SELECT count(*) FROM workspaces"), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_database_is_whole_private_and_says_so),
		TEST(it_stays_new_until_the_first_commit),
		TEST(everything_comes_back_as_it_was),
		TEST(workspaces_come_first_and_the_oldest_of_each),
		TEST(a_second_put_replaces_the_first),
		TEST(nothing_is_written_before_the_flush_and_it_is_asked_for_once),
		TEST(the_values_are_copied),
		TEST(a_write_queued_by_a_done_belongs_to_the_next_flush),
		TEST(closing_writes_what_is_queued_and_what_that_queues),
		TEST(a_write_that_breaks_a_rule_fails_alone),
		TEST(a_removed_workspace_takes_its_execs_and_leaves_a_reason),
		TEST(the_answer_of_a_key_is_found_again_and_replaced),
		TEST(old_answers_are_not_given_and_go_at_the_next_tidying),
		TEST(what_was_is_capped_and_the_oldest_goes_first),
		TEST(answers_of_one_principal_remove_none_of_another),
		TEST(version_1_is_migrated_with_all_it_holds),
		TEST(a_url_of_another_database_is_refused),
		TEST(a_later_version_is_refused_by_both_numbers_and_left_alone),
		TEST(ten_thousand_workspaces_are_loaded_in_a_moment),
		TEST(a_loader_may_stop),
		TEST(an_administrator_may_read_it_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
