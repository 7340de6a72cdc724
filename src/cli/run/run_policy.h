/* run_policy.h -- the policy of `carrel run`: the same files and rules as a workspace's, without a
 * daemon. */
#pragma once
#include "cli/cli.h"
#include "policy/stack.h"
#include "sandbox/plan/plan.h"

/* Judges the command of *options by the operator's policy, the template's settings and -s, and adds
 * the paths that file rules deny. ERR_POLICY: denied, or it would have to be approved and nobody
 * did; the trail was printed on stderr. With --ask the user is asked, on the controlling terminal.
 * Nothing is judged for --plan. */
int run_policy(struct command *command, struct plan_options *options, struct policy_stack *stack,
	struct error *err);
/* An environment that the sandbox is to have, by the same stack. ERR_POLICY. */
struct env_meta;
int run_policy_environment(const struct policy_stack *stack, const struct env_meta *meta,
	struct arena *arena, struct error *err);
