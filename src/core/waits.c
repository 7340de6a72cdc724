#include "core/waits.h"

#include "core/internal.h"

struct wait {
	struct fiber *fiber;
	const struct json_value *answers[2];
};

static void on_answer(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct wait *wait = ctx;
	wait->answers[0] = answer;
	fiber_continue(wait->fiber, err);
}

int wait_tree_job(struct fiber *fiber, struct core *core, const struct tree_job_order *order,
	const struct json_value **answer, struct error *err)
{
	struct wait wait = { .fiber = fiber };
	tree_job_start(core, order, on_answer, &wait);
	int failed = fiber_wait(fiber, err);
	if (answer)
		*answer = wait.answers[0];
	return failed;
}

int wait_blob_job(struct fiber *fiber, struct core *core, const struct blob_order *order,
	const struct json_value **answer, struct error *err)
{
	struct wait wait = { .fiber = fiber };
	blob_job_start(core, order, on_answer, &wait);
	int failed = fiber_wait(fiber, err);
	if (answer)
		*answer = wait.answers[0];
	return failed;
}

static void on_answers(void *ctx, const struct json_value *tree, const struct json_value *blob,
	const struct error *err)
{
	struct wait *wait = ctx;
	wait->answers[0] = tree;
	wait->answers[1] = blob;
	fiber_continue(wait->fiber, err);
}

int wait_transfer(struct fiber *fiber, struct core *core, const struct tree_job_order *tree,
	const struct blob_order *blob, const struct json_value **tree_answer,
	const struct json_value **blob_answer, struct error *err)
{
	struct wait wait = { .fiber = fiber };
	transfer_start(core, tree, blob, on_answers, &wait);
	int failed = fiber_wait(fiber, err);
	if (tree_answer)
		*tree_answer = wait.answers[0];
	if (blob_answer)
		*blob_answer = wait.answers[1];
	return failed;
}

int wait_put(struct fiber *fiber, struct core *core, const struct store_table *table,
	const void *row, struct error *err)
{
	store_put(core->store, table, row, fiber_continue, fiber);
	return fiber_wait(fiber, err);
}

int wait_remove(struct fiber *fiber, struct core *core, const struct store_table *table,
	const char *id, struct error *err)
{
	store_remove(core->store, table, id, NULL, fiber_continue, fiber);
	return fiber_wait(fiber, err);
}

void fiber_continue_workspace(void *fiber, struct core_workspace *w, const struct error *err)
{
	fiber_continue(fiber, err);
}

void wait_turn(struct fiber *fiber, struct core *core)
{
	struct error none;
	core_later(core, fiber_continue_workspace, fiber, NULL, NULL);
	fiber_wait(fiber, &none);
}

int fail_later(struct fiber *fiber, struct core *core)
{
	wait_turn(fiber, core);
	return -1;
}

static void on_time(struct loop *loop, void *ctx)
{
	fiber_continue(ctx, NULL);
}

void wait_ms(struct fiber *fiber, struct core *core, uint64_t ms)
{
	struct error none;
	loop_after(core->loop, ms, on_time, fiber);
	fiber_wait(fiber, &none);
}
