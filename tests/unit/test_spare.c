/* The workspace that is made ahead: taken by a creation, ended when it is not wanted. */
#include "core_fixture.h"
#include "core/workspaces/internal.h"

static void open_with_spare(struct fixture *f, uint64_t release_after_ms)
{
	close_core(f);
	f->keeps_spare = true;
	f->release_after_ms = release_after_ms;
	open_core(f);
	create(f, "first", (struct workspace){ 0 });
	UNTIL(f, f->core->upkeep->spare && f->core->upkeep->spare->sandbox.state == SANDBOX_UP);
	assert_int_equal(f->starts, 1);
}

static void count_one(void *ctx, struct core_workspace *w)
{
	++*(int *)ctx;
}

static int count_listed(struct fixture *f)
{
	const struct core_filter filter = { .state = -1, .limit = 100 };
	char next[CORE_CURSOR_SIZE];
	struct error err;
	int count = 0;
	assert_int_equal(
		core_list(&request_system, f->core, &filter, count_one, &count, next, &err), 0);
	return count;
}

static void a_creation_takes_the_spare_workspace(void **state)
{
	struct fixture *f = *state;
	open_with_spare(f, 60000);
	struct core_workspace *spare = f->core->upkeep->spare;
	char id[ID_LEN + 1];
	memcpy(id, spare->model.id, sizeof id);
	assert_null(find(f, id));
	assert_null(find(f, spare->model.name));
	assert_int_equal(count_listed(f), 1);
	create(f, "second", (struct workspace){ 0 });
	assert_false(f->has_failed);
	assert_string_equal(f->id, id);
	assert_ptr_equal(find(f, "second"), spare);
	assert_int_equal(spare->sandbox.state, SANDBOX_UP);
	assert_int_equal(spare->model.state, WORKSPACE_READY);
	assert_true(spare->model.created_ms > find(f, "first")->model.created_ms);
	assert_int_equal(count_listed(f), 2);
	assert_int_equal(spare->users, 0);
	/* And the next one is made. */
	UNTIL(f, f->core->upkeep->spare);
	assert_ptr_not_equal(f->core->upkeep->spare, spare);
}

/* It has no creation that would end: who asks for its id isn't kept waiting for one. */
static void a_creation_does_not_wait_for_the_spare_workspace(void **state)
{
	struct fixture *f = *state;
	open_with_spare(f, 60000);
	struct text_pair label = { WORKSPACE_CONTEXT_LABEL, f->core->upkeep->spare->model.id };
	create(f, "second", (struct workspace){ .labels = { &label, 1, 1 } });
	assert_true(f->has_failed);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	assert_int_equal(count_listed(f), 1);
}

static void only_a_plain_creation_takes_it(void **state)
{
	struct fixture *f = *state;
	open_with_spare(f, 60000);
	struct core_workspace *spare = f->core->upkeep->spare;
	struct workspace wanted[] = { { .limits = { .memory_bytes = 64 << 20 } },
		{ .ptrace = true }, { .id = "01234567890123456789" } };
	char name[] = "w0";
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++, name[1]++) {
		create(f, name, wanted[i]);
		assert_false(f->has_failed);
		assert_int_equal(find(f, name)->sandbox.state, SANDBOX_NONE);
		assert_ptr_equal(f->core->upkeep->spare, spare);
	}
}

static void a_spare_workspace_that_is_not_wanted_goes(void **state)
{
	struct fixture *f = *state;
	char id[ID_LEN + 1];
	open_with_spare(f, 60000);
	memcpy(id, f->core->upkeep->spare->model.id, sizeof id);
	assert_true(tree_exists(f, id, "/upper"));
	f->core->release_after_ms = 1;
	lifetime_arm(f->core->upkeep->spare);
	UNTIL(f, !f->core->upkeep->spare);
	assert_false(tree_exists(f, id, ""));
	assert_int_equal(f->ends, 1);
	create(f, "second", (struct workspace){ 0 });
	assert_false(f->has_failed);
}

static void the_last_workspace_takes_the_spare_one_with_it(void **state)
{
	struct fixture *f = *state;
	open_with_spare(f, 60000);
	core_remove(&request_system, find(f, "first"), "removed", NULL, NULL);
	UNTIL(f, !f->core->newest);
	assert_null(f->core->upkeep->spare);
}

static void a_crash_leaves_nothing_of_the_spare_workspace(void **state)
{
	struct fixture *f = *state;
	open_with_spare(f, 60000);
	memcpy(f->running, f->core->upkeep->spare->model.id, sizeof f->running);
	close_core(f);
	f->ends = 0;
	open_core(f);
	UNTIL(f, f->ends == 1);
	assert_false(tree_exists(f, f->running, ""));
	assert_int_equal(count_listed(f), 1);
}

static void a_spare_workspace_that_does_not_start_is_forgotten(void **state)
{
	struct fixture *f = *state;
	close_core(f);
	f->keeps_spare = f->refuses_start = true;
	open_core(f);
	create(f, "first", (struct workspace){ 0 });
	UNTIL(f, f->starts == 1 && !f->core->upkeep->spare);
	assert_int_equal(count_listed(f), 1);
	f->refuses_start = false;
	f->dies_early = 9;
	create(f, "second", (struct workspace){ 0 });
	UNTIL(f, f->ends == 3 && !f->core->upkeep->spare);
	assert_int_equal(count_listed(f), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_creation_takes_the_spare_workspace),
		TEST(a_creation_does_not_wait_for_the_spare_workspace),
		TEST(only_a_plain_creation_takes_it),
		TEST(a_spare_workspace_that_is_not_wanted_goes),
		TEST(the_last_workspace_takes_the_spare_one_with_it),
		TEST(a_crash_leaves_nothing_of_the_spare_workspace),
		TEST(a_spare_workspace_that_does_not_start_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
