/* waits.h -- operations of core that a job on a fiber waits for (proc/fiber.h). Each returns -1
 * with the error of the operation. An answer is valid until the fiber waits again. A job that can
 * be canceled names its cancelable as the owner of what it starts. */
#pragma once
#include "core/transfers.h"
#include "proc/fiber.h"

/* Answers that are not wanted: NULL. */
int wait_tree_job(struct fiber *fiber, struct core *core, const struct tree_job_order *order,
	const struct json_value **answer, struct error *err);
int wait_blob_job(struct fiber *fiber, struct core *core, const struct blob_order *order,
	const struct json_value **answer, struct error *err);
int wait_transfer(struct fiber *fiber, struct core *core, const struct tree_job_order *tree,
	const struct blob_order *blob, const struct json_value **tree_answer,
	const struct json_value **blob_answer, struct error *err);
struct store_table;
/* A row is on disk, with those that were stored before it in this turn. */
int wait_put(struct fiber *fiber, struct core *core, const struct store_table *table,
	const void *row, struct error *err);
int wait_remove(struct fiber *fiber, struct core *core, const struct store_table *table,
	const char *id, struct error *err);
/* A core_workspace_fn: continues the fiber that is its ctx. */
void fiber_continue_workspace(void *fiber, struct core_workspace *w, const struct error *err);
/* The next turn of the loop: whoever has started the job is done with what it does. */
void wait_turn(struct fiber *fiber, struct core *core);
/* The same for a job that is refused. Returns -1. */
int fail_later(struct fiber *fiber, struct core *core);
void wait_ms(struct fiber *fiber, struct core *core, uint64_t ms);
