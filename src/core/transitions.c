/* transitions.c -- which state of a sandbox or an exec may follow which. */
#include <stdlib.h>
#include "core/execs/core_exec.h"

#define FROM(state) (1u << (state))

/* By the state that is entered: those that may be left for it. */
static const unsigned sandbox_from[SANDBOX_STATE_COUNT] = {
	[SANDBOX_NONE] = FROM(SANDBOX_STARTING) | FROM(SANDBOX_ENDING),
	[SANDBOX_STARTING] = FROM(SANDBOX_NONE),
	/* One that a core before this one left running is adopted as it is. */
	[SANDBOX_UP] = FROM(SANDBOX_NONE) | FROM(SANDBOX_STARTING),
	/* A sandbox that can't be connected to is ended at once. */
	[SANDBOX_ENDING] = FROM(SANDBOX_NONE) | FROM(SANDBOX_STARTING) | FROM(SANDBOX_UP),
};

void sandbox_move(struct core_sandbox *sandbox, enum sandbox_state to)
{
	if (!(sandbox_from[to] & FROM(sandbox->state)))
		abort();
	sandbox->state = to;
}

static const unsigned exec_from[STAGE_COUNT] = {
	[STAGE_WAITING] = FROM(STAGE_ASKED),
	/* One that a core before this one had wait for an approval. */
	[STAGE_ASKED] = FROM(STAGE_WAITING),
	[STAGE_STARTING] = FROM(STAGE_WAITING),
	/* STARTING is skipped when the start isn't reported, and for execs started by an earlier
	 * core. */
	[STAGE_RUNNING] = FROM(STAGE_WAITING) | FROM(STAGE_STARTING),
	[STAGE_ENDING] = FROM(STAGE_RUNNING),
	/* At any time it may be lost with its sandbox, or fail to start. */
	[STAGE_ENDED] = FROM(STAGE_ASKED) | FROM(STAGE_WAITING) | FROM(STAGE_STARTING) |
			FROM(STAGE_RUNNING) | FROM(STAGE_ENDING),
};

void exec_move(struct core_exec *e, enum exec_stage to)
{
	static const enum exec_state shown[STAGE_COUNT] = { EXEC_WAITING, EXEC_STARTING,
		EXEC_STARTING, EXEC_RUNNING, EXEC_RUNNING, EXEC_ENDED };
	if (!(exec_from[to] & FROM(e->stage)))
		abort();
	e->stage = to;
	e->record.state = shown[to];
}
