/* policies.h -- whether a command, a file verb or a change of packages may be done in a workspace.
 * 1. A workspace has a stack of policies: the operator's (policies_open), its template's and its
 * own. The strictest verdict of the stack holds, so that none of them can loosen another. Rules
 * that reviewers have added are allow rules of each; deny still wins.
 * 2. A stack is compiled when it is needed (policies_compiled.h). One that can't be compiled denies
 * everything, and so does a judge that fails or gets more than it can judge in
 * bounded time.
 * 3. What core does for itself (request_system) isn't judged.
 * 4. A refusal is ERR_POLICY, and ERR_APPROVAL_REQUIRED where a reviewer is to be asked; the trail
 * of the verdict is access_trail of the request. */
#pragma once
#include "base/arena.h"
#include "core/core.h"
#include "model/nouns/exec.h"
#include "policy/inputs.h"
#include "policy/stack.h"
#include "store/store.h"

/* Where `carrel serve` puts the operator's policy, below run/: {"settings","sources","default"},
 * the first two as texts of JSON. */
#define POLICIES_FILE "policy.json"
int policies_open(struct core *core, struct error *err);
bool policies_have_sources(const struct core *core); /* the operator's: what may be reached */
void policies_close(struct core *core);		     /* when there are no workspaces any more */

/* The policies of *model can be compiled. ERR_INVALID names the one and its rule. */
int policies_check(const struct core *core, const struct workspace *model, struct error *err);
/* Something in its model has changed that they depend on, or the workspace goes. */
void policies_forget(struct core_workspace *w);
/* Whether anything is judged in it. */
bool policies_hold(struct core_workspace *w);

/* The command of *spec, with all variables that it gets: its own and those of the workspace.
 * POLICY_DENY is ERR_POLICY; else *verdict, which lives in the arena of *inputs, says whether it
 * may run at once or has to be approved; with files that *inputs wants, that is known when those
 * are read. */
int policies_judge_exec(const struct request *request, struct core_workspace *w,
	const struct exec_spec *spec, struct policy_inputs *inputs, struct policy_verdict *verdict,
	struct error *err);
/* A command that waits before it runs has the variables of the workspace as its own: what was
 * judged, and shown to a reviewer, is what it gets. */
void policies_keep_env(struct core_workspace *w, struct arena *arena, pair_list *env);
/* `env` is that of such a command, which runs now. ERR_POLICY: the workspace has got another
 * variable meanwhile. */
int policies_check_env(struct core_workspace *w, const pair_list *env, struct error *err);
/* The same with the files that were read. Nothing is noted or recorded. */
void policies_judge_inputs(struct core_workspace *w, const struct exec_spec *spec,
	struct policy_inputs *inputs, struct arena *arena, struct policy_verdict *verdict);
/* The same command by the policy as it is now, with further allow rules in every policy of the
 * stack. Nothing is noted or recorded. The verdict lives in `arena`. */
void policies_judge_with(struct core_workspace *w, const struct exec_spec *spec,
	const text_list *rules, struct arena *arena, struct policy_verdict *verdict);
/* What a policy lacks for that command: access_learned of the request. What a rule denies, no rule
 * can allow: ERR_POLICY. */
int policies_learn_exec(const struct request *request, struct core_workspace *w,
	const struct exec_spec *spec, struct error *err);
/* The error of a verdict that isn't POLICY_ALLOW; returns -1. policies_refuse records it, too. */
int policies_explain(
	const struct core_workspace *w, const struct policy_verdict *verdict, struct error *err);
int policies_refuse(const struct request *request, const struct core_workspace *w,
	const struct policy_verdict *verdict, struct error *err);
/* `path` is absolute, or relative to the workspace's directory; made normal here. is_tree: and
 * everything below it. */
int policies_judge_file(const struct request *request, struct core_workspace *w,
	enum policy_operation operation, const char *path, bool is_tree, struct error *err);
/* Variables that the principal sets for all later commands. */
int policies_judge_env(const struct request *request, struct core_workspace *w,
	const pair_list *env, struct error *err);

/* The paths that its sandbox denies (sandbox/plan/denials.h), as strings of a START; how many.
 * Those for which there is no room are only judged. */
size_t policies_describe(
	struct core_workspace *w, struct arena *arena, const char **strings, size_t room);

struct env_kind_row;
struct env_meta;
/* The packages that are to be installed, by names; and those of a resolved environment, with all
 * their dependencies, and its size. ERR_POLICY. */
int policies_judge_packages(const struct request *request, struct core_workspace *w,
	const struct env_kind_row *kind, const text_list *names, struct error *err);
int policies_check_environment(
	struct core_workspace *w, const struct env_meta *meta, struct error *err);
/* The indexes, or registries of npm, that its builds may use; none: any. ERR_POLICY: it may not use
 * packages of that kind. */
int policies_indexes(struct core_workspace *w, const struct env_kind_row *kind, struct arena *arena,
	text_list *urls, struct error *err);
/* What is left of WORKSPACE_REGISTRIES for it. */
struct policy_registries policies_registries(struct core_workspace *w, struct arena *arena);
/* What one connection of its sandbox may bring of a remote of git. */
void policies_meter(struct core_workspace *w, const struct policy_registries *registries,
	struct arena *arena, struct network_meter *meter);
/* What sources.json says of memory and of the time of a command: the least of `value` and that; 0
 * is no limit. */
uint64_t policies_limit_memory(struct core_workspace *w, uint64_t value);
uint64_t policies_limit_time(struct core_workspace *w, uint64_t value_ms);

/* Its network as its policies let it be: that of its record, or what its sources let it reach when
 * none was asked for; mode none where a policy closes everything. It lives until policies_forget.
 */
const struct workspace_network *policies_network(struct core_workspace *w);
/* What bounds it. In `arena`, with texts that are good in this turn of the loop. */
network_bounds policies_bounds(struct core_workspace *w, struct arena *arena);

/* Adds an allow rule to the workspace; done as store_put's. ERR_INVALID by done: malformed, or too
 * many. */
void policies_add_rule(struct core_workspace *w, const char *rule, store_done_fn *done, void *ctx);
