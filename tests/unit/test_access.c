/* Who may do what: principals of every kind against the table of verbs, and what a bound one finds.
 */
/* security: authority */
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "core/execs/internal.h"
#include "core/files/file_servers.h"
#include "core/files/files.h"
#include "core/files/tree_archive.h"
#include "core/access/internal.h"
#include "unit.h"

#define HERE "aaaaaaaaaaaaaaaaaaaa"
#define THERE "bbbbbbbbbbbbbbbbbbbb"

static struct access own;
static struct execs execs;
static struct core core;
static struct core_workspace here, there;
static struct error err;

static int set_up(void **state)
{
	own = (struct access){ 0 };
	core = (struct core){
		.access = &own, .execs = &execs, .log = { .fd = -1, .least = LOG_LEVEL_ERROR }
	};
	map_init(&core.ids, NULL);
	map_init(&core.names, NULL);
	map_init(&core.contexts, NULL);
	execs = (struct execs){ 0 };
	map_init(&execs.by_id, NULL);
	here = (struct core_workspace){ .core = &core,
		.model = {
			.id = HERE, .name = "here", .state = WORKSPACE_READY, .created_ms = 1 } };
	there = (struct core_workspace){ .core = &core,
		.model = { .id = THERE,
			.name = "there",
			.state = WORKSPACE_READY,
			.created_ms = 2 },
		.older = &here };
	file_servers_attach(&here);
	file_servers_attach(&there);
	here.newer = core.newest = &there;
	core.oldest = &here;
	map_add(&core.ids, str_from(HERE), &here);
	map_add(&core.ids, str_from(THERE), &there);
	map_add(&core.names, str_from("here"), &here);
	map_add(&core.names, str_from("there"), &there);
	err = (struct error){ 0 };
	return 0;
}

static int tear_down(void **state)
{
	struct map *tables[] = { &core.ids, &core.names, &core.contexts, &execs.by_id };
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		map_done(tables[i]);
	file_servers_free(&here);
	file_servers_free(&there);
	return 0;
}
#define ACCESS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct principal reader = { PRINCIPAL_TOKEN, 0, "t1", SCOPE_READ, NULL },
			      user = { PRINCIPAL_TOKEN, 0, "t2", SCOPE_READ | SCOPE_USE, NULL },
			      bound = { PRINCIPAL_TOKEN, 0, "t3", SCOPE_READ | SCOPE_USE, HERE },
			      inside = { PRINCIPAL_SANDBOX, 0, NULL, SCOPE_ALL, HERE };

static struct request by(const struct principal *principal)
{
	return (struct request){ principal, "request", "rest", 0 };
}

static void assert_refused(int result)
{
	assert_int_equal(result, -1);
	assert_int_equal(err.code, ERR_DENIED);
}

/* ---- the check ---- */

static void test_every_verb_has_a_row(void **state)
{
	for (int i = 0; i < VERB_COUNT; i++) {
		assert_non_null(verb_table[i].name);
		assert_int_not_equal(verb_table[i].scope & SCOPE_ALL, 0);
		for (int k = 0; k < i; k++)
			assert_false(verb_table[i].noun == verb_table[k].noun &&
				     !strcmp(verb_table[i].name, verb_table[k].name));
	}
}

static void test_system_and_a_local_user_may_do_everything(void **state)
{
	auto_arena struct arena arena;
	const struct principal *principal;
	arena_init(&arena);
	own.uids[0] = (struct core_uid){ 1000, SCOPE_ALL };
	own.uid_count = 1;
	assert_int_equal(access_peer(&core, 1000, &arena, &principal, &err), 0);
	const struct request *request = access_request(principal, "rest", "r", &arena);
	assert_int_equal(request->principal->kind, PRINCIPAL_UID);
	assert_int_equal(request->principal->uid, 1000);
	for (int i = 0; i < VERB_COUNT; i++) {
		assert_int_equal(access_check(&core, request, (enum verb)i, &here, &err), 0);
		assert_int_equal(access_check(&core, request, (enum verb)i, NULL, &err), 0);
		assert_int_equal(access_check(&core, &request_system, (enum verb)i, NULL, &err), 0);
	}
}

static void test_a_uid_has_the_scopes_that_were_configured_last(void **state)
{
	auto_arena struct arena arena = { 0 };
	const struct principal *principal;
	own.uids[0] = (struct core_uid){ 1000, SCOPE_ALL };
	own.uids[1] = (struct core_uid){ 1001, access_scopes(TOKEN_REVIEWER) };
	own.uids[2] = (struct core_uid){ 1000, 0 };
	own.uid_count = 3;
	assert_refused(access_peer(&core, 1000, &arena, &principal, &err));
	assert_int_equal(access_peer(&core, 1001, &arena, &principal, &err), 0);
	assert_int_equal(principal->scopes, SCOPE_READ | SCOPE_REVIEW);
}

static void test_a_uid_that_is_not_listed_gets_no_request(void **state)
{
	auto_arena struct arena arena;
	const struct principal *principal = NULL;
	arena_init(&arena);
	assert_refused(access_peer(&core, 0, &arena, &principal, &err));
	own.uids[0] = (struct core_uid){ 1000, SCOPE_ALL };
	own.uid_count = 1;
	assert_refused(access_peer(&core, 0, &arena, &principal, &err));
	assert_refused(access_peer(&core, 1001, &arena, &principal, &err));
	assert_null(principal);
}

static void test_a_scope_that_is_missing_refuses_the_verbs_that_need_it(void **state)
{
	struct request reads = by(&reader), uses = by(&user);
	for (int i = 0; i < VERB_COUNT; i++) {
		int failed = access_check(&core, &reads, (enum verb)i, &here, &err);
		if (verb_table[i].scope == SCOPE_READ)
			assert_int_equal(failed, 0);
		else
			assert_refused(failed);
		failed = access_check(&core, &uses, (enum verb)i, &here, &err);
		if (verb_table[i].scope & user.scopes)
			assert_int_equal(failed, 0);
		else
			assert_refused(failed);
	}
	assert_refused(access_check(&core, &reads, VERB_EXEC_START, &here, &err));
	assert_string_equal(err.text, "token t1 has no scope 'use', which exec.start needs");
}

static void test_a_bound_token_is_held_to_its_workspace(void **state)
{
	struct request request = by(&bound);
	for (int i = 0; i < VERB_COUNT; i++) {
		int failed = access_check(&core, &request, (enum verb)i, &here, &err);
		if (verb_table[i].scope & bound.scopes)
			assert_int_equal(failed, 0);
		else
			assert_refused(failed);
		assert_refused(access_check(&core, &request, (enum verb)i, &there, &err));
		assert_refused(access_check(&core, &request, (enum verb)i, NULL, &err));
	}
}

static void test_a_sandbox_is_always_bound_and_never_reviews(void **state)
{
	static const struct principal nowhere = { PRINCIPAL_SANDBOX, 0, NULL, SCOPE_ALL, NULL },
				      reviews = { PRINCIPAL_SANDBOX, 0, NULL,
					      SCOPE_REVIEW | SCOPE_ADMIN, HERE };
	struct request request = by(&nowhere), inner = by(&inside), judge = by(&reviews);
	assert_refused(access_check(&core, &request, VERB_WORKSPACE_GET, &here, &err));
	assert_refused(access_check(&core, &request, VERB_WORKSPACE_LIST, NULL, &err));
	assert_int_equal(access_check(&core, &inner, VERB_EXEC_START, &here, &err), 0);
	assert_refused(access_check(&core, &inner, VERB_EXEC_START, &there, &err));
	for (int i = 0; i < VERB_COUNT; i++)
		assert_refused(access_check(&core, &judge, (enum verb)i, &here, &err));
}

static void test_nothing_begins_after_the_deadline(void **state)
{
	struct request request = by(&user);
	request.deadline_ms = clock_monotonic_ms() + 3600000;
	assert_int_equal(access_check(&core, &request, VERB_EXEC_START, &here, &err), 0);
	request.deadline_ms = clock_monotonic_ms();
	assert_int_equal(access_check(&core, &request, VERB_EXEC_START, &here, &err), -1);
	assert_int_equal(err.code, ERR_CANCELED);
}

static void test_refusals_are_recorded_and_audited_verbs_too(void **state)
{
	int fds[2];
	char text[4096];
	struct request request = by(&bound);
	assert_int_equal(pipe(fds), 0);
	core.log = (struct log){ .fd = fds[1], .least = LOG_LEVEL_DEBUG };
	access_check(&core, &request, VERB_WORKSPACE_GET, &here, &err);
	access_check(&core, &request, VERB_EXEC_START, &here, &err);
	access_check(&core, &request, VERB_EXEC_START, &there, &err);
	close(fds[1]);
	ssize_t len = read(fds[0], text, sizeof text - 1);
	close(fds[0]);
	assert_true(len > 0);
	text[len] = 0;
	assert_null(strstr(text, "workspace.get"));
	char *granted = strstr(text, "exec.start"), *refused = strstr(text, "access refused");
	assert_true(granted && refused && granted < refused);
	assert_non_null(strstr(refused, "token t3"));
	assert_non_null(strstr(refused, THERE));
	assert_non_null(strstr(refused, "request_id=request"));
}

/* ---- verbs ---- */

static void test_a_bound_principal_finds_no_other_workspace(void **state)
{
	struct request request = by(&inside);
	struct core_workspace *w = NULL;
	assert_int_equal(core_find(&request, &core, "here", &w, &err), 0);
	assert_ptr_equal(w, &here);
	const char *names[] = { "there", THERE };
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(core_find(&request, &core, names[i], &w, &err), -1);
		assert_int_equal(err.code, ERR_NOT_FOUND); /* as one that isn't there */
	}
	assert_int_equal(core_find(&request, &core, "nowhere", &w, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void count(void *ctx, struct core_workspace *w)
{
	int *seen = ctx;
	*seen |= w == &here ? 1 : 2;
}

static void test_a_list_leaves_out_what_a_principal_can_not_find(void **state)
{
	struct core_filter all = { .state = -1, .limit = 10 };
	char next[CORE_CURSOR_SIZE];
	int seen = 0;
	struct request request = by(&reader), one = by(&bound);
	assert_int_equal(core_list(&request, &core, &all, count, &seen, next, &err), 0);
	assert_int_equal(seen, 3);
	seen = 0;
	assert_int_equal(core_list(&one, &core, &all, count, &seen, next, &err), 0);
	assert_int_equal(seen, 1);
	map_remove(&core.ids, str_from(HERE));
	assert_refused(core_list(&one, &core, &all, count, &seen, next, &err));
}

static void on_exec(void *ctx, struct core_exec *e)
{
}

static void test_verbs_refuse_before_they_do_anything(void **state)
{
	struct request reads = by(&reader), one = by(&bound);
	struct exec_spec spec = { 0 };
	struct exec_listener listener = { 0 };
	struct core_numbers numbers;
	struct journal *journal;
	struct core_exec *e;
	assert_refused(exec_start(&reads, &here, &spec, EXEC_CAPTURED, NULL, &listener, &e, &err));
	assert_refused(exec_start(&one, &there, &spec, EXEC_CAPTURED, NULL, &listener, &e, &err));
	assert_refused(exec_list(&one, &core, &there, on_exec, NULL, &err));
	assert_refused(core_events(&one, &core, NULL, &journal, &err));
	assert_refused(core_events(&one, &core, &there, &journal, &err));
	assert_refused(core_count(&one, &core, &numbers, &err));
	assert_int_equal(core_events(&one, &core, &here, &journal, &err), 0);
}

struct answer {
	int calls;
	enum error_code code;
	struct loop *loop;
};

static void on_answer(void *ctx, struct core_workspace *w, const struct error *refusal)
{
	struct answer *answer = ctx;
	assert_null(w);
	answer->calls++;
	answer->code = refusal ? refusal->code : ERR_NONE;
	if (answer->calls == 9)
		loop_stop(answer->loop);
}

static void on_file(void *ctx, const struct files_answer *none, const struct error *refusal)
{
	on_answer(ctx, NULL, refusal);
}

static void on_write(void *ctx, struct file_write *none, const struct error *refusal)
{
	on_answer(ctx, NULL, refusal);
}

static void on_archive(void *ctx, const struct error *refusal)
{
	on_answer(ctx, NULL, refusal);
}

static void test_verbs_that_answer_later_refuse_later(void **state)
{
	struct request reads = by(&reader), one = by(&bound);
	struct workspace wanted = { .name = "new" };
	struct workspace_change change = { .has_ttl = true };
	struct answer answer = { 0 };
	assert_int_equal(loop_new(&core.loop, &err), 0);
	answer.loop = core.loop;
	assert_null(core_create(&one, &core, &wanted, on_answer, &answer));
	core_update(&reads, &here, &change, on_answer, &answer);
	core_remove(&reads, &here, "removed", on_answer, &answer);
	core_measure(&one, &there, on_answer, &answer);
	files_do(&reads, &here, &(struct files_request){ FILES_MKDIR, .path = "new" }, on_file,
		&answer);
	files_do(&reads, &here, &(struct files_request){ FILES_REMOVE, .path = "old" }, on_file,
		&answer);
	files_do(&one, &there, &(struct files_request){ FILES_STAT, .path = "file" }, on_file,
		&answer);
	files_begin_write(&reads, &here, "new", 0, 0, on_write, &answer);
	struct archive_listener listener = { NULL, on_archive, &answer };
	archive_in(&reads, &here, "new", &listener);
	assert_int_equal(answer.calls, 0);
	assert_int_equal(loop_run(core.loop, &err), 0);
	assert_int_equal(answer.calls, 9);
	assert_int_equal(answer.code, ERR_DENIED);
	assert_int_equal(here.model.state, WORKSPACE_READY);
	assert_null(here.removal);
	loop_free(core.loop);
}

/* What a WebSocket has of the request that opened it. */
static void a_request_that_is_kept_needs_nothing_of_the_first(void **state)
{
	static const char texts[] = "0123456789";
	auto_arena struct arena kept_arena = { 0 };
	struct arena *arena = &(struct arena){ 0 };
	struct principal *given = arena_alloc(arena, sizeof *given);
	*given = (struct principal){ .kind = PRINCIPAL_SUBJECT,
		.scopes = SCOPE_READ,
		.token_id = arena_text(arena, texts),
		.workspace = arena_text(arena, texts),
		.address = arena_text(arena, texts),
		.subject = arena_text(arena, texts) };
	const struct request *kept = access_keep(
		access_request(given, "rest", arena_text(arena, "id"), arena), &kept_arena);
	memset((char *)(uintptr_t)given->token_id, 'x', sizeof texts - 1);
	arena_done(arena);
	const struct principal *principal = kept->principal;
	assert_string_equal(principal->token_id, texts);
	assert_string_equal(principal->workspace, texts);
	assert_string_equal(principal->address, texts);
	assert_string_equal(principal->subject, texts);
	assert_string_equal(access_id(kept), "id");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ACCESS_TEST(a_request_that_is_kept_needs_nothing_of_the_first),
		ACCESS_TEST(test_every_verb_has_a_row),
		ACCESS_TEST(test_system_and_a_local_user_may_do_everything),
		ACCESS_TEST(test_a_uid_has_the_scopes_that_were_configured_last),
		ACCESS_TEST(test_a_uid_that_is_not_listed_gets_no_request),
		ACCESS_TEST(test_a_scope_that_is_missing_refuses_the_verbs_that_need_it),
		ACCESS_TEST(test_a_bound_token_is_held_to_its_workspace),
		ACCESS_TEST(test_a_sandbox_is_always_bound_and_never_reviews),
		ACCESS_TEST(test_nothing_begins_after_the_deadline),
		ACCESS_TEST(test_refusals_are_recorded_and_audited_verbs_too),
		ACCESS_TEST(test_a_bound_principal_finds_no_other_workspace),
		ACCESS_TEST(test_a_list_leaves_out_what_a_principal_can_not_find),
		ACCESS_TEST(test_verbs_refuse_before_they_do_anything),
		ACCESS_TEST(test_verbs_that_answer_later_refuse_later),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
