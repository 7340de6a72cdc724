/* exec_stage.c -- which stage of an exec may follow which. */
#include "core/execs/internal.h"

#define FROM(stage) (1u << (stage))

/* By the stage that is entered: those that may be left for it. */
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
