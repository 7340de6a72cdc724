/* Core with a launcher that is played here: workspaces come, go, expire, and survive a crash as
 * core/reconcile.c says. */
#include <sqlite3.h>
#include "core/idempotency.h"
#include "core_fixture.h"

static void what_was_created_is_there_after_a_crash(void **state)
{
	struct fixture *f = *state;
	char id[ID_LEN + 1];
	create(f, "first", (struct workspace){ 0 });
	assert_false(f->has_failed);
	memcpy(id, f->id, sizeof id);
	assert_true(tree_exists(f, id, "/upper/.workspace_configured"));
	assert_int_equal(find(f, "first")->model.state, WORKSPACE_READY);
	close_core(f);
	open_core(f);
	assert_non_null(find(f, "first"));
	assert_string_equal(find(f, "first")->model.id, id);
	assert_int_equal(find(f, id)->model.limits.pids, LIMIT_PIDS_DEFAULT);
}

static void a_name_is_taken_once(void **state)
{
	struct fixture *f = *state;
	struct workspace twice = { .name = "twin" };
	core_create(&request_system, f->core, &twice, on_done, f);
	core_create(&request_system, f->core, &twice, on_done, f);
	UNTIL(f, f->calls == 2);
	assert_int_equal(f->core->metrics.creates, 1);
	create(f, "twin", (struct workspace){ 0 });
	assert_true(f->has_failed);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	create(f, "Not A Name", (struct workspace){ 0 });
	assert_int_equal(f->err.code, ERR_INVALID);
}

static void a_context_id_finds_like_a_name(void **state)
{
	struct fixture *f = *state;
	struct text_pair pairs[] = { { "context_id", "ctx/Ä ..\n%" } };
	struct workspace wanted = { .labels = { pairs, 1, 1 } };
	create(f, NULL, wanted);
	assert_false(f->has_failed);
	assert_ptr_equal(find(f, "ctx/Ä ..\n%"), find(f, f->id));
	create(f, NULL, wanted);
	assert_int_equal(f->err.code, ERR_CONFLICT);
}

static void what_was_removed_is_gone_and_says_so(void **state)
{
	struct fixture *f = *state;
	struct core_workspace *w;
	struct error err;
	create(f, "short", (struct workspace){ 0 });
	f->calls = 0;
	core_remove(&request_system, find(f, "short"), "removed", on_done, f);
	core_remove(&request_system, find(f, "short"), "removed", on_done, f);
	UNTIL(f, f->calls == 2);
	assert_false(f->has_failed);
	assert_false(tree_exists(f, f->id, ""));
	assert_int_equal(core_find(&request_system, f->core, "short", &w, &err), -1);
	assert_non_null(strstr(err.text, "was removed at"));
	char del[64];
	snprintf(del, sizeof del, ".del-%s", f->id);
	UNTIL(f, !tree_exists(f, del, ""));
	close_core(f);
	open_core(f);
	assert_null(find(f, "short"));
}

static void what_is_half_made_is_removed_at_the_start(void **state)
{
	struct fixture *f = *state;
	char path[160], id[ID_LEN + 1];
	create(f, "kept", (struct workspace){ 0 });
	create(f, "broken", (struct workspace){ 0 });
	create(f, "going", (struct workspace){ 0 });
	char going[ID_LEN + 1], broken[ID_LEN + 1], to[160];
	memcpy(going, find(f, "going")->model.id, sizeof going);
	memcpy(broken, find(f, "broken")->model.id, sizeof broken);
	create(f, "unused", (struct workspace){ 0 });
	char unused[ID_LEN + 1];
	memcpy(unused, f->id, sizeof unused);
	find(f, "broken")->model.last_used_ms++;
	store_put(f->core->store, &store_workspaces, &find(f, "broken")->model, NULL, NULL);
	store_flush(f->core->store);
	close_core(f);
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, unused); /* never used, and gone */
	snprintf(to, sizeof to, "%s/elsewhere-too", f->home);
	assert_int_equal(rename(path, to), 0);
	id_make(id); /* a tree without a row */
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, id);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, going); /* a removal begun */
	snprintf(to, sizeof to, "%s/workspaces/.del-%s", f->home, going);
	assert_int_equal(rename(path, to), 0);
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, broken); /* a row without a tree */
	snprintf(to, sizeof to, "%s/elsewhere", f->home);
	assert_int_equal(rename(path, to), 0);
	open_core(f);
	UNTIL(f, !find(f, "going"));
	assert_false(tree_exists(f, id, ""));
	assert_int_equal(find(f, "kept")->model.state, WORKSPACE_READY);
	assert_int_equal(find(f, "unused")->model.state, WORKSPACE_READY);
	assert_true(tree_exists(f, unused, "/upper/.workspace_configured"));
	assert_int_equal(find(f, "broken")->model.state, WORKSPACE_FAILED);
	assert_non_null(find(f, "broken")->model.error);
}

/* A create that a crash cut short is made again under the same id, when its key is used again. */
static void what_is_made_again_is_not_taken_for_a_removal(void **state)
{
	struct fixture *f = *state;
	char path[160], del[64];
	struct workspace wanted = { 0 };
	create(f, "other", (struct workspace){ 0 });
	id_make(wanted.id);
	close_core(f);
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, wanted.id);
	assert_int_equal(mkdir(path, 0700), 0);
	open_core(f); /* half-made, and put away; its child hasn't come by yet */
	assert_false(tree_exists(f, wanted.id, ""));
	create(f, "again", wanted);
	assert_false(f->has_failed);
	assert_string_equal(f->id, wanted.id);
	close_core(f);
	open_core(f);
	assert_int_equal(find(f, "again")->model.state, WORKSPACE_READY);
	/* And one that was removed, whose bytes may still be there. */
	snprintf(del, sizeof del, ".del-%s", wanted.id);
	f->calls = 0;
	core_remove(&request_system, find(f, "again"), "removed", on_done, f);
	UNTIL(f, f->calls == 1);
	create(f, "again", wanted);
	assert_false(f->has_failed);
	assert_false(tree_exists(f, del, ""));
	close_core(f);
	open_core(f);
	assert_int_equal(find(f, "again")->model.state, WORKSPACE_READY);
}

static void a_removal_that_has_a_row_is_finished_after_a_crash(void **state)
{
	struct fixture *f = *state;
	char del[64], path[160];
	create(f, "going", (struct workspace){ 0 });
	snprintf(del, sizeof del, ".del-%s", f->id);
	snprintf(path, sizeof path, "%s/carrel.db", f->home);
	/* Nothing can be written: its tree is out of sight, its row stays. */
	sqlite3 *locker;
	assert_int_equal(sqlite3_open(path, &locker), SQLITE_OK);
	sqlite3_busy_timeout(locker, 60000);
	assert_int_equal(sqlite3_exec(locker, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	f->calls = 0;
	core_remove(&request_system, find(f, "going"), "removed", on_done, f);
	UNTIL(f, f->calls == 1);
	assert_true(f->has_failed);
	assert_int_equal(f->err.code, ERR_UNAVAILABLE);
	/* Its bytes go, which may be what the row has to wait for; the mark stays. */
	UNTIL(f, !tree_exists(f, del, "/upper"));
	assert_true(tree_exists(f, del, ""));
	assert_int_equal(sqlite3_close(locker), SQLITE_OK);
	close_core(f);
	open_core(f);
	UNTIL(f, !find(f, "going") && !tree_exists(f, del, ""));
}

static void a_tree_without_a_row_is_half_made_also_in_a_new_home(void **state)
{
	struct fixture *f = *state;
	char path[160], id[ID_LEN + 1], lost[64];
	close_core(f);
	id_make(id);
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, id);
	snprintf(lost, sizeof lost, ".lost-%s", id);
	assert_int_equal(mkdir(path, 0700), 0);
	open_core(f);
	assert_false(tree_exists(f, id, ""));
	assert_false(tree_exists(f, lost, ""));
}

static void trees_of_a_lost_database_are_kept(void **state)
{
	struct fixture *f = *state;
	char path[160], lost[64];
	create(f, "dear", (struct workspace){ 0 });
	close_core(f);
	snprintf(path, sizeof path, "%s/carrel.db", f->home);
	auto_close int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "this is no database at all, sorry", 33), 33);
	snprintf(path, sizeof path, "%s/carrel.db-wal", f->home);
	unlink(path);
	open_core(f);
	assert_true(f->core->store_opened.was_corrupt);
	assert_null(find(f, "dear"));
	snprintf(lost, sizeof lost, ".lost-%s", f->id);
	assert_true(tree_exists(f, lost, "/upper/.workspace_configured"));
	close_core(f);
	open_core(f);
	assert_true(tree_exists(f, lost, ""));
}

static void what_expires_goes_by_itself(void **state)
{
	struct fixture *f = *state;
	struct core_workspace *w;
	struct error err;
	create(f, "mayfly", (struct workspace){ .ttl_ms = 30 });
	UNTIL(f, !find(f, "mayfly"));
	assert_int_equal(core_find(&request_system, f->core, "mayfly", &w, &err), -1);
	assert_non_null(strstr(err.text, "expired"));
}

/* As it looks to core when the wall clock has gone forward by a day: the time that a workspace
 * expires at is long over, the time that was reckoned from it isn't. */
static void a_wall_clock_that_jumps_expires_nothing(void **state)
{
	struct fixture *f = *state;
	struct workspace_change change = { .has_idle_timeout = true, .idle_timeout_ms = 3600000 };
	create(f, "calm", (struct workspace){ .ttl_ms = 3600000 });
	struct core_workspace *w = find(f, "calm");
	w->model.expires_ms -= 24 * 3600000;
	w->model.last_used_ms -= 24 * 3600000;
	w->expires_from_ms = w->model.expires_ms;
	f->calls = 0;
	core_update(&request_system, w, &change, on_done, f); /* its timers are set anew */
	UNTIL(f, f->calls == 1);
	uint64_t later_ms = clock_monotonic_ms() + 50;
	UNTIL(f, clock_monotonic_ms() > later_ms);
	assert_int_equal(find(f, "calm")->model.state, WORKSPACE_READY);
}

static void an_idle_one_is_suspended_and_wakes(void **state)
{
	struct fixture *f = *state;
	create(f, "sleeper", (struct workspace){ .idle_timeout_ms = 30, .is_context = false });
	struct core_workspace *w = find(f, "sleeper");
	f->calls = 0;
	core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls);
	assert_false(f->has_failed);
	assert_true(w->model.state == WORKSPACE_READY && core_now(w).is_warm);
	assert_int_equal(f->starts, 1);
	core_release(w);
	UNTIL(f, w->model.state == WORKSPACE_SUSPENDED);
	assert_int_equal(f->ends, 1);
	close_core(f);
	open_core(f);
	w = find(f, "sleeper");
	assert_int_equal(w->model.state, WORKSPACE_SUSPENDED);
	f->calls = 0;
	core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls);
	assert_true(w->model.state == WORKSPACE_READY && core_now(w).is_warm);
	core_release(w);
}

static void one_is_suspended_and_resumed_on_demand(void **state)
{
	struct fixture *f = *state;
	create(f, "asked", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "asked");
	f->calls = 0;
	core_suspend(&request_system, w, false, on_done, f); /* it never had a sandbox */
	UNTIL(f, f->calls);
	assert_false(f->has_failed);
	assert_int_equal(w->model.state, WORKSPACE_SUSPENDED);
	f->calls = 0;
	core_resume(&request_system, w, on_done, f);
	core_suspend(&request_system, w, true, on_done, f); /* while it starts */
	UNTIL(f, f->calls == 2);
	assert_true(f->starts == 1 && f->ends == 1);
	assert_int_equal(w->model.state, WORKSPACE_SUSPENDED);
	f->calls = 0;
	core_suspend(&request_system, w, false, on_done, f);
	UNTIL(f, f->calls == 1);
	assert_false(f->has_failed);
	close_core(f);
	open_core(f);
	w = find(f, "asked");
	assert_int_equal(w->model.state, WORKSPACE_SUSPENDED);
	f->calls = 0;
	core_resume(&request_system, w, on_done, f);
	UNTIL(f, f->calls);
	assert_false(f->has_failed);
	assert_true(w->model.state == WORKSPACE_READY && core_now(w).is_warm && !w->users);
}

static void a_request_during_a_suspension_resumes(void **state)
{
	struct fixture *f = *state;
	create(f, "wanted", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "wanted");
	f->calls = 0;
	core_resume(&request_system, w, on_done, f);
	UNTIL(f, f->calls == 1);
	/* By force: the processes that the fixture shows are those of the host. */
	core_suspend(&request_system, w, true, on_done, f);
	core_resume(&request_system, w, on_done, f);
	UNTIL(f, f->calls == 3);
	assert_false(f->has_failed);
	assert_true(w->model.state == WORKSPACE_READY && core_now(w).is_warm);
	assert_int_equal(f->core->metrics.suspended, 1);
	f->calls = 0;
	core_suspend(&request_system, w, true, on_done, f);
	core_remove(&request_system, w, "removed", on_done, f);
	UNTIL(f, f->calls == 2);
	assert_null(find(f, "wanted"));
}

static void a_name_of_an_earlier_version_is_kept(void **state)
{
	struct fixture *f = *state;
	create(f, "old", (struct workspace){ 0 });
	find(f, "old")->model.name = "-old";
	workspace_save(find(f, "old"), NULL, NULL);
	close_core(f);
	open_core(f);
	assert_int_equal(find(f, "-old")->model.state, WORKSPACE_READY);
}

static void many_who_wait_share_one_start(void **state)
{
	struct fixture *f = *state;
	create(f, "busy", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "busy");
	f->calls = 0;
	for (int i = 0; i < 5; i++)
		core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls == 5);
	assert_int_equal(f->starts, 1);
	assert_int_equal(w->users, 5);
	for (int i = 0; i < 5; i++)
		core_release(w);
}

static void a_start_that_fails_is_told_and_tried_again(void **state)
{
	struct fixture *f = *state;
	create(f, "unlucky", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "unlucky");
	f->refuses_start = true;
	f->calls = 0;
	core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls);
	assert_true(f->has_failed);
	assert_int_equal(w->model.state, WORKSPACE_READY);
	assert_int_equal(w->users, 0);
	f->refuses_start = false;
	f->calls = 0;
	core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls);
	assert_false(f->has_failed);
	core_release(w);
}

static void wake_with_early_deaths(struct fixture *f, struct core_workspace *w, int deaths)
{
	f->dies_early = deaths;
	f->starts = f->calls = 0;
	core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls);
}

static void who_waits_for_one_that_dies_early_gets_another(void **state)
{
	struct fixture *f = *state;
	create(f, "early", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "early");
	wake_with_early_deaths(f, w, 2);
	assert_false(f->has_failed);
	assert_int_equal(f->starts, 3);
	core_release(w);
	core_end_sandbox(w, REASON_CANCELED);
	UNTIL(f, w->sandbox.state != SANDBOX_ENDING && w->sandbox.state != SANDBOX_UP);
	/* But not for ever. */
	char path[96];
	snprintf(path, sizeof path, "%s/run/sb/%s", f->home, w->model.id);
	unlink(path);
	wake_with_early_deaths(f, w, 9);
	assert_true(f->has_failed);
	assert_int_equal(f->starts, 3);
	UNTIL(f, w->sandbox.state != SANDBOX_ENDING);
}

static void what_runs_is_adopted(void **state)
{
	struct fixture *f = *state;
	create(f, "alive", (struct workspace){ 0 });
	memcpy(f->running, f->id, sizeof f->running);
	listen_at(f, f->id);
	close_core(f);
	open_core(f);
	assert_true(core_now(find(f, "alive")).is_warm);
	assert_int_equal(f->starts, 0);
	id_make(f->running); /* one that nobody knows is ended */
	close_core(f);
	open_core(f);
	UNTIL(f, f->ends == 1);
	f->running[0] = 0;
}

static void on_woken_late(void *ctx, struct core_workspace *w, const struct error *err)
{
	assert_int_equal(w->model.state, WORKSPACE_DELETING);
	on_done(ctx, w, err);
}

static void removing_ends_what_runs(void **state)
{
	struct fixture *f = *state;
	create(f, "doomed", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "doomed");
	f->calls = 0;
	core_wake(w, NULL, on_woken_late, f);
	core_remove(&request_system, w, "removed", on_done, f); /* while it starts */
	UNTIL(f, f->calls == 2);
	assert_null(find(f, "doomed"));
	assert_int_equal(f->ends, 1);
}

/* Its tree is out of sight when the launcher looks for it. */
static void a_start_that_a_removal_overtakes_has_not_failed(void **state)
{
	struct fixture *f = *state;
	create(f, "doomed", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "doomed");
	f->refuses_start = true;
	f->calls = 0;
	core_wake(w, NULL, on_done, f);
	core_remove(&request_system, w, "removed", NULL, NULL);
	UNTIL(f, f->calls);
	assert_true(f->has_failed);
	assert_int_equal(f->err.code, ERR_NOT_FOUND);
	assert_non_null(strstr(f->err.text, "is being removed"));
	UNTIL(f, !find(f, "doomed"));
}

static void count_one(void *ctx, struct core_workspace *w)
{
	(*(int *)ctx)++;
}

static void lists_go_on_where_they_ended(void **state)
{
	struct fixture *f = *state;
	char next[CORE_CURSOR_SIZE], cursor[CORE_CURSOR_SIZE];
	struct error err;
	int seen = 0, pages = 0;
	struct workspace wanted = { 0 };
	f->calls = 0;
	for (int i = 0; i < 25; i++)
		core_create(&request_system, f->core, &wanted, on_done, f);
	UNTIL(f, f->calls == 25);
	struct core_filter filter = { .state = -1, .limit = 10 };
	do {
		assert_int_equal(
			core_list(&request_system, f->core, &filter, count_one, &seen, next, &err),
			0);
		memcpy(cursor, next, sizeof cursor);
		filter.cursor = cursor;
		pages++;
	} while (next[0]);
	assert_int_equal(seen, 25);
	assert_int_equal(pages, 3);
	filter.cursor = "x";
	assert_int_equal(
		core_list(&request_system, f->core, &filter, count_one, &seen, next, &err), -1);
}

static void on_stopped(void *ctx)
{
	*(bool *)ctx = true;
}

static void stopping_ends_all_sandboxes(void **state)
{
	struct fixture *f = *state;
	create(f, "last", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "last");
	f->calls = 0;
	core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls);
	core_release(w);
	bool stopped = false;
	core_stop(f->core, on_stopped, &stopped);
	UNTIL(f, stopped);
	assert_int_equal(f->ends, 1);
	create(f, "late", (struct workspace){ 0 });
	assert_int_equal(f->err.code, ERR_UNAVAILABLE);
}

static off_t size_of(struct fixture *f, const char *path)
{
	char full[160];
	struct stat st;
	snprintf(full, sizeof full, "%s/%s", f->home, path);
	return stat(full, &st) ? -1 : st.st_size;
}

static void a_log_in_the_home_that_is_too_long_is_put_aside(void **state)
{
	struct fixture *f = *state;
	char path[160], line[64] = "";
	struct log was = f->core->log;
	snprintf(path, sizeof path, "%s/run/carrel.log", f->home);
	auto_close int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	auto_close int shared = dup(log); /* the launcher's */
	assert_int_equal(ftruncate(log, LOG_FILE_BYTES_MAX), 0);
	f->core->log = (struct log){ .fd = log };
	log_bound(f->core);
	assert_false(f->core->rotation.is_running);
	log_record(&f->core->log, LOG_LEVEL_INFO, "the last", NULL);
	off_t size = size_of(f, "run/carrel.log");
	log_bound(f->core);
	assert_true(f->core->rotation.is_running);
	log_bound(f->core); /* once */
	UNTIL(f, !f->core->rotation.is_running);
	assert_int_equal(size_of(f, "run/carrel.log"), 0);
	assert_int_equal(size_of(f, "run/carrel.log.1"), size);
	auto_close int aside = openat(f->core->home.dir, "run/carrel.log.1", O_RDONLY | O_CLOEXEC);
	assert_true(pread(aside, line, sizeof line - 1, size - 10) > 0);
	assert_string_equal(line, " the last\n");
	/* Both go on where it begins anew. */
	assert_int_equal(write(shared, "a\n", 2) + write(log, "b\n", 2), 4);
	assert_int_equal(size_of(f, "run/carrel.log"), 4);
	/* Another file isn't ours. */
	assert_int_equal(ftruncate(log, LOG_FILE_BYTES_MAX + 1) | unlink(path), 0);
	log_bound(f->core);
	assert_false(f->core->rotation.is_running);
	f->core->log = was;
}

static void on_answer(void *ctx, const struct idempotency_answer *answer)
{
	(*(int *)ctx)++;
}

/* As a door does. */
struct again {
	struct idempotency_waiter waiter;
	struct idempotency *all;
	const struct request *request;
	struct str body;
	struct arena *arena;
	struct idempotency_entry *entry;
	struct idempotency_answer known;
	char id[ID_LEN + 1];
	int is;
	struct error err;
};

static void begin_again(void *ctx, const struct idempotency_answer *answer)
{
	struct again *a = ctx;
	a->is = idempotency_begin(a->all, a->request, "POST /v1/workspaces", "key", a->body,
		a->arena, &a->waiter, &a->entry, a->id, &a->known, &a->err);
}

static void keys_are_a_principals_own(void **state)
{
	struct fixture *f = *state;
	const struct principal who[] = { { PRINCIPAL_UID, .uid = 1000, .scopes = SCOPE_ALL },
		{ PRINCIPAL_UID, .uid = 1001, .scopes = SCOPE_ALL } };
	const struct request first = { &who[0], "", "rest", 0 },
			     second = { &who[1], "", "rest", 0 };
	struct idempotency_answer known, made = { 201, STR("{}"), NULL };
	int told = 0;
	struct idempotency_waiter waiter = { on_answer, &told, NULL };
	struct idempotency_entry *entry, *other;
	auto_arena struct arena arena;
	struct idempotency all;
	char id[ID_LEN + 1];
	struct error err;
	arena_init(&arena);
	idempotency_init(&all, f->core);
#define BEGIN(request, body, entry)                                                                \
	idempotency_begin(&all, request, "POST /v1/workspaces", "key", STR(body), &arena, &waiter, \
		entry, id, &known, &err)
	/* What is stored is asked for first, and those that waited ask again. */
	struct again first_again = { .waiter = { begin_again, &first_again, NULL },
		.all = &all,
		.request = &first,
		.body = STR("{}"),
		.arena = &arena },
		     second_again = { .waiter = { begin_again, &second_again, NULL },
			     .all = &all,
			     .request = &second,
			     .body = STR("other"),
			     .arena = &arena };
	begin_again(&first_again, NULL);
	begin_again(&second_again, NULL);
	assert_int_equal(first_again.is, IDEMPOTENCY_WAIT);
	UNTIL(f, first_again.is == IDEMPOTENCY_NEW && second_again.is == IDEMPOTENCY_NEW);
	entry = first_again.entry;
	other = second_again.entry;
	assert_int_equal(BEGIN(&first, "{}", &entry), IDEMPOTENCY_WAIT);
	idempotency_forget(&all, &waiter);
	assert_int_equal(BEGIN(&first, "different", &entry), -1);
	idempotency_end(first_again.entry, &made);
	UNTIL(f, !map_get(&all.running, STR("uid 1000: POST /v1/workspaces\nkey")));
	assert_int_equal(told, 0);
	begin_again(&first_again, NULL);
	UNTIL(f, first_again.is == IDEMPOTENCY_KNOWN);
	assert_int_equal(first_again.known.status, 201);
	first_again.body = STR("other");
	begin_again(&first_again, NULL);
	UNTIL(f, first_again.is == -1);
	assert_int_equal(first_again.err.code, ERR_CONFLICT);
	/* Nobody asks again: nothing is left. */
	assert_int_equal(BEGIN(&first, "{}", &entry), IDEMPOTENCY_WAIT);
	UNTIL(f, told);
	assert_null(map_get(&all.running, STR("uid 1000: POST /v1/workspaces\nkey")));
	idempotency_end(other, NULL);
	idempotency_done(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_created_is_there_after_a_crash),
		TEST(a_name_is_taken_once),
		TEST(a_context_id_finds_like_a_name),
		TEST(what_was_removed_is_gone_and_says_so),
		TEST(what_is_half_made_is_removed_at_the_start),
		TEST(what_is_made_again_is_not_taken_for_a_removal),
		TEST(a_removal_that_has_a_row_is_finished_after_a_crash),
		TEST(a_tree_without_a_row_is_half_made_also_in_a_new_home),
		TEST(trees_of_a_lost_database_are_kept),
		TEST(what_expires_goes_by_itself),
		TEST(a_wall_clock_that_jumps_expires_nothing),
		TEST(an_idle_one_is_suspended_and_wakes),
		TEST(one_is_suspended_and_resumed_on_demand),
		TEST(a_request_during_a_suspension_resumes),
		TEST(a_name_of_an_earlier_version_is_kept),
		TEST(many_who_wait_share_one_start),
		TEST(a_start_that_fails_is_told_and_tried_again),
		TEST(who_waits_for_one_that_dies_early_gets_another),
		TEST(what_runs_is_adopted),
		TEST(removing_ends_what_runs),
		TEST(a_start_that_a_removal_overtakes_has_not_failed),
		TEST(lists_go_on_where_they_ended),
		TEST(stopping_ends_all_sandboxes),
		TEST(a_log_in_the_home_that_is_too_long_is_put_aside),
		TEST(keys_are_a_principals_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
