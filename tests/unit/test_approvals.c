/* core/access/approvals.c: asking, answering, waiting over a restart. The execs that wait are
 * played here. */
/* security: authority */
#include "core/access/approvals.h"

#include "core/access/internal.h"
#include "core/access/webhooks.h"
#include "core_fixture.h"

#define EXEC "eeeeeeeeeeeeeeeeeeee"

static const struct principal asker = { PRINCIPAL_UID, 1000, NULL, SCOPE_ALL, NULL },
			      alice = { PRINCIPAL_TOKEN, 0, "alice", SCOPE_READ | SCOPE_REVIEW,
				      NULL },
			      bob = { PRINCIPAL_TOKEN, 0, "bob", SCOPE_READ | SCOPE_REVIEW, NULL },
			      user = { PRINCIPAL_TOKEN, 0, "user", SCOPE_READ | SCOPE_USE, NULL },
			      elsewhere = { PRINCIPAL_TOKEN, 0, "else", SCOPE_READ | SCOPE_REVIEW,
				      "zzzzzzzzzzzzzzzzzzzz" };

static struct request by(const struct principal *principal)
{
	return (struct request){ principal, "request", "rest", 0 };
}

/* What the exec that waits was told. */
struct told {
	int calls;
	enum approval_state state;
	char note[128];
};

static void on_decided(void *ctx, enum approval_state state, const struct approval *approval)
{
	struct told *told = ctx;
	if (state == APPROVAL_PENDING)
		return;
	told->calls++;
	told->state = state;
	snprintf(told->note, sizeof told->note, "%s", approval->note ? approval->note : "");
}

static void ask(struct fixture *f, bool is_kept, struct told *told, char id[ID_LEN + 1])
{
	const char *argv[] = { "docker", "build", ".", NULL };
	const struct exec_spec spec = { .argv = { argv, 3, 3 }, .background = is_kept };
	const struct policy_verdict verdict = { .decision = POLICY_ASK };
	const struct approval_question question = { EXEC, &spec, &verdict, is_kept };
	char name[PRINCIPAL_NAME_SIZE];
	struct error err;
	if (approval_ask(access_name(&asker, name), find(f, "demo"), &question, on_decided, told,
		    id, &err))
		fail_msg("%s", err.text);
}

/* What a reviewer was told. */
struct answered {
	int calls;
	enum approval_state state;
	char by[64];
	struct error err;
};

static void on_answered(void *ctx, const struct approval *approval, const struct error *err)
{
	struct answered *answered = ctx;
	answered->calls++;
	answered->err = err ? *err : (struct error){ 0 };
	if (!approval)
		return;
	answered->state = approval->state;
	snprintf(answered->by, sizeof answered->by, "%s",
		approval->answered_by ? approval->answered_by : "");
}

static void begin_answer(struct fixture *f, const struct principal *principal, const char *id,
	enum approval_state decision, struct answered *answered)
{
	struct request request = by(principal);
	const struct approval_answer answer = { .decision = (int)decision, .note = "seen" };
	*answered = (struct answered){ 0 };
	core_approval_answer(&request, f->core, id, &answer, on_answered, answered);
	assert_int_equal(answered->calls, 0);
}

static struct answered answer_as(struct fixture *f, const struct principal *principal,
	const char *id, enum approval_state decision)
{
	struct answered answered;
	begin_answer(f, principal, id, decision, &answered);
	UNTIL(f, answered.calls);
	return answered;
}

static void make_demo(struct fixture *f)
{
	create(f, "demo", (struct workspace){ 0 });
	assert_false(f->has_failed);
	assert_true(tree_exists(f, f->id, ""));
}

static void test_an_answer_reaches_the_exec_once(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 };
	char id[ID_LEN + 1];
	make_demo(f);
	ask(f, false, &told, id);
	struct answered first = answer_as(f, &alice, id, APPROVAL_APPROVED);
	assert_int_equal(first.err.code, ERR_NONE);
	assert_int_equal(first.state, APPROVAL_APPROVED);
	assert_string_equal(first.by, "token alice");
	assert_int_equal(told.calls, 1);
	assert_int_equal(told.state, APPROVAL_APPROVED);
	assert_string_equal(told.note, "seen");
	/* The same again is the same; another one, or another's, is not. */
	assert_int_equal(answer_as(f, &alice, id, APPROVAL_APPROVED).err.code, ERR_NONE);
	struct answered other = answer_as(f, &alice, id, APPROVAL_DENIED);
	assert_int_equal(other.err.code, ERR_CONFLICT);
	other = answer_as(f, &bob, id, APPROVAL_APPROVED);
	assert_int_equal(other.err.code, ERR_CONFLICT);
	assert_non_null(strstr(other.err.text, "was approved by token alice"));
	assert_int_equal(told.calls, 1);
}

static void test_of_two_reviewers_at_once_one_wins(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 };
	struct answered first, second, again;
	char id[ID_LEN + 1];
	make_demo(f);
	ask(f, false, &told, id);
	begin_answer(f, &alice, id, APPROVAL_DENIED, &first);
	begin_answer(f, &bob, id, APPROVAL_APPROVED, &second);
	begin_answer(f, &alice, id, APPROVAL_DENIED, &again);
	UNTIL(f, first.calls && second.calls && again.calls && told.calls);
	assert_int_equal(first.err.code, ERR_NONE);
	assert_int_equal(again.err.code, ERR_NONE);
	assert_int_equal(second.err.code, ERR_CONFLICT);
	assert_non_null(strstr(second.err.text, "token alice"));
	assert_int_equal(told.state, APPROVAL_DENIED);
	assert_int_equal(told.calls, 1);
}

static void test_only_another_principal_with_the_scope_answers(void **state)
{
	static const struct principal inside = { PRINCIPAL_SANDBOX, 0, NULL, SCOPE_ALL, NULL };
	struct fixture *f = *state;
	struct told told = { 0 };
	char id[ID_LEN + 1];
	make_demo(f);
	ask(f, false, &told, id);
	struct answered mine = answer_as(f, &asker, id, APPROVAL_APPROVED);
	assert_int_equal(mine.err.code, ERR_DENIED);
	assert_non_null(strstr(mine.err.hint, "carrel token create --scope reviewer"));
	assert_int_equal(answer_as(f, &user, id, APPROVAL_APPROVED).err.code, ERR_DENIED);
	assert_int_equal(answer_as(f, &elsewhere, id, APPROVAL_APPROVED).err.code, ERR_NOT_FOUND);
	assert_int_equal(answer_as(f, &inside, id, APPROVAL_APPROVED).err.code, ERR_NOT_FOUND);
	struct principal sandbox = inside;
	sandbox.workspace = find(f, "demo")->model.id;
	assert_int_equal(answer_as(f, &sandbox, id, APPROVAL_APPROVED).err.code, ERR_DENIED);
	assert_int_equal(told.calls, 0);
	f->core->access->approvals_self = true;
	assert_int_equal(answer_as(f, &asker, id, APPROVAL_APPROVED).err.code, ERR_NONE);
	assert_int_equal(told.calls, 1);
}

static void test_an_exec_that_leaves_withdraws_its_question(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 };
	char id[ID_LEN + 1];
	make_demo(f);
	ask(f, false, &told, id);
	approval_withdraw(f->core, id);
	struct answered late = answer_as(f, &alice, id, APPROVAL_APPROVED);
	assert_int_equal(late.err.code, ERR_CONFLICT);
	assert_non_null(strstr(late.err.text, "has expired: the exec was canceled"));
	assert_int_equal(told.calls, 0);
}

static void test_time_denies(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 };
	char id[ID_LEN + 1];
	make_demo(f);
	f->core->access->approval_ttl_ms = 1;
	ask(f, false, &told, id);
	UNTIL(f, told.calls);
	assert_int_equal(told.state, APPROVAL_EXPIRED);
	assert_int_equal(answer_as(f, &alice, id, APPROVAL_APPROVED).err.code, ERR_CONFLICT);
}

static void test_a_removed_workspace_leaves_a_record(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 };
	char id[ID_LEN + 1];
	make_demo(f);
	ask(f, false, &told, id);
	f->calls = 0;
	core_remove(&request_system, find(f, "demo"), "removed", on_done, f);
	UNTIL(f, f->calls);
	struct answered late = answer_as(f, &alice, id, APPROVAL_APPROVED);
	assert_int_equal(late.err.code, ERR_CONFLICT);
	assert_non_null(strstr(late.err.text, "the workspace was removed"));
	assert_int_equal(told.calls, 0);
	close_core(f);
	open_core(f);
	const struct approval *kept;
	struct request request = by(&alice);
	struct error err;
	assert_int_equal(core_approval_find(&request, f->core, id, &kept, &err), 0);
	assert_int_equal(kept->state, APPROVAL_EXPIRED);
	assert_string_equal(kept->workspace_name, "demo");
}

static void test_after_a_restart_what_nobody_waits_for_expires(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 };
	char id[ID_LEN + 1];
	make_demo(f);
	ask(f, false, &told, id);
	store_flush(f->core->store);
	close_core(f);
	assert_int_equal(told.calls, 0);
	open_core(f);
	struct answered late = answer_as(f, &alice, id, APPROVAL_APPROVED);
	assert_int_equal(late.err.code, ERR_CONFLICT);
	assert_non_null(strstr(late.err.text, "the client that waited is gone"));
}

/* Stands in for the reconciliation of an exec: its row says that it waits. */
static const struct approval *await_again(struct fixture *f, struct told *told)
{
	const struct approval *approval = approval_await(f->core, EXEC, on_decided, told);
	assert_non_null(approval);
	return approval;
}

static void test_an_answer_of_before_a_restart_is_told_again(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 }, later = { 0 };
	char id[ID_LEN + 1];
	make_demo(f);
	ask(f, true, &told, id);
	/* Core dies when the answer is written, and before the exec has begun. */
	assert_int_equal(answer_as(f, &alice, id, APPROVAL_APPROVED).err.code, ERR_NONE);
	close_core(f);
	open_core(f);
	auto_arena struct arena arena = { 0 };
	struct exec_spec spec;
	struct error err;
	const struct approval *approval = await_again(f, &later);
	assert_int_equal(approval->state, APPROVAL_APPROVED);
	assert_int_equal(later.calls, 0);
	UNTIL(f, later.calls);
	assert_int_equal(later.state, APPROVAL_APPROVED);
	/* Settling found nobody who waits, and forgot what was kept to run it. */
	assert_int_equal(approval_read_spec(approval, &arena, &spec, &err), -1);
}

static void test_what_waits_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 };
	const char *argv[] = { "a", NULL };
	const struct exec_spec spec = { .argv = { argv, 1, 1 } };
	const struct policy_verdict verdict = { .decision = POLICY_ASK };
	const struct approval_question question = { EXEC, &spec, &verdict, false };
	struct error err;
	char id[ID_LEN + 1];
	make_demo(f);
	for (int i = 0; i < APPROVALS_WAITING_MAX; i++)
		ask(f, false, &told, id);
	assert_int_equal(
		approval_ask("asker", find(f, "demo"), &question, on_decided, &told, id, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
}

static void test_a_principal_has_a_share_of_what_may_wait(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 };
	const char *argv[] = { "a", NULL }, *names[] = { "one", "two", "three" };
	/* An agent asks for the principal that it acts for. */
	const char *askers[] = { "token one", "agent a for token one",
		"agent of deployment b for token one" };
	const struct exec_spec spec = { .argv = { argv, 1, 1 } };
	const struct policy_verdict verdict = { .decision = POLICY_ASK };
	const struct approval_question question = { EXEC, &spec, &verdict, false };
	struct error err;
	char id[ID_LEN + 1];
	for (size_t i = 0; i < 3; i++)
		create(f, names[i], (struct workspace){ 0 });
	for (int i = 0; i < APPROVALS_SHARE_MAX; i++)
		assert_int_equal(approval_ask(askers[i % 3], find(f, names[i % 2]), &question,
					 on_decided, &told, id, &err),
			0);
	assert_int_equal(
		approval_ask("token one", find(f, "three"), &question, on_decided, &told, id, &err),
		-1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_non_null(strstr(err.text, "of token one"));
	assert_int_equal(approval_ask("agent c for token one", find(f, "three"), &question,
				 on_decided, &told, id, &err),
		-1);
	assert_int_equal(
		approval_ask("token two", find(f, "three"), &question, on_decided, &told, id, &err),
		0);
	assert_int_equal(approval_ask("subject x for token one", find(f, "three"), &question,
				 on_decided, &told, id, &err),
		0);
}

static void count(void *ctx, const struct approval *approval)
{
	++*(int *)ctx;
}

static void test_lists_filter_and_page(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 };
	struct request request = by(&alice), bound = by(&elsewhere);
	struct approval_filter filter = { .state = -1, .limit = 2 };
	char id[ID_LEN + 1], next[CORE_CURSOR_SIZE], page[CORE_CURSOR_SIZE];
	struct error err;
	int seen = 0;
	make_demo(f);
	for (int i = 0; i < 3; i++)
		ask(f, false, &told, id);
	answer_as(f, &alice, id, APPROVAL_DENIED);
	assert_int_equal(
		core_approval_list(&request, f->core, &filter, count, &seen, next, &err), 0);
	assert_int_equal(seen, 2);
	memcpy(page, next, sizeof page);
	filter.cursor = page;
	assert_int_equal(
		core_approval_list(&request, f->core, &filter, count, &seen, next, &err), 0);
	assert_int_equal(seen, 3);
	assert_string_equal(next, "");
	filter = (struct approval_filter){ .state = APPROVAL_PENDING, .limit = 9 };
	seen = 0;
	assert_int_equal(
		core_approval_list(&request, f->core, &filter, count, &seen, next, &err), 0);
	assert_int_equal(seen, 2);
	assert_int_equal(
		core_approval_list(&bound, f->core, &filter, count, &seen, next, &err), -1);
}

static void test_a_webhook_that_fails_is_called_again_and_delays_nothing(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 };
	char id[ID_LEN + 1];
	make_demo(f);
	webhooks_open(f->core);
	f->webhook_failures = 2;
	ask(f, false, &told, id);
	assert_int_equal(answer_as(f, &alice, id, APPROVAL_APPROVED).err.code, ERR_NONE);
	assert_int_equal(told.calls, 1);
	/* The request and the answer, two of them twice. */
	UNTIL(f, f->webhook_calls == 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_answer_reaches_the_exec_once),
		TEST(test_of_two_reviewers_at_once_one_wins),
		TEST(test_only_another_principal_with_the_scope_answers),
		TEST(test_an_exec_that_leaves_withdraws_its_question),
		TEST(test_time_denies),
		TEST(test_a_removed_workspace_leaves_a_record),
		TEST(test_after_a_restart_what_nobody_waits_for_expires),
		TEST(test_an_answer_of_before_a_restart_is_told_again),
		TEST(test_what_waits_is_bounded),
		TEST(test_a_principal_has_a_share_of_what_may_wait),
		TEST(test_lists_filter_and_page),
		TEST(test_a_webhook_that_fails_is_called_again_and_delays_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
