/* approval.h -- from a verdict to the question that a person is asked. */
#pragma once
#include "model/nouns/approval.h"
#include "policy/policy.h"

/* Sets trail, trail_is_cut, and suggested or always_refused; all in the arena. */
void policy_fill_approval(
	struct approval *approval, const struct policy_verdict *verdict, struct arena *arena);
