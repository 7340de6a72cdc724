/* transitions.c -- which state of a sandbox may follow which. */
#include "core/internal.h"

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
