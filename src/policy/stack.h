/* stack.h -- several policies that hold at once: the operator's, a template's, a workspace's own.
 * Pure.
 * 1. The strictest verdict of the stack holds, so that none of them can loosen another.
 * 2. The default and the rules that reviewers have added are the same for all of them.
 * 3. An empty stack judges nothing: everything is allowed. A stack that could not be built, or a
 * command that is too long to be judged in bounded time, is denied.
 * 4. The memory of a judgement is freed at its end: what stays is the trail, in the caller's arena,
 * whose texts are shortened. */
#pragma once
#include "model/network/network.h"
#include "policy/policy.h"
#include "policy/sources.h"

#define POLICY_STACK_MAX 3
#define POLICY_ARGV_BYTES_MAX (256 << 10) /* of a command that can be judged */
#define POLICY_ARGV_MAX 4096

struct policy_layer {
	const char *name;     /* for errors: "the operator's policy" */
	const char *settings; /* JSON, or NULL */
	const char *sources;  /* JSON, or NULL. Without settings, what they don't say is allowed */
	bool holds_empty;     /* also without both: only the default holds then */
	const char *owner;    /* "the operator", "the template", "the workspace" */
};
struct policy_stack {
	struct policy policies[POLICY_STACK_MAX];
	struct sources sources[POLICY_STACK_MAX]; /* of each; empty ones restrict nothing */
	const char *owners[POLICY_STACK_MAX];
	size_t count;
	const char *failure; /* why it could not be built, or NULL */
};
/* Layers that have nothing are left out. ERR_INVALID names the layer and its rule; the stack then
 * denies everything. */
int policy_stack_build(struct policy_stack *stack, const struct policy_layer *layers, size_t count,
	const text_list *rules, enum policy_decision otherwise, const struct policy_places *places,
	struct arena *arena, struct error *err);

/* What is to be judged: one of the three. */
struct policy_question {
	const text_list *argv; /* a command, */
	const char *script;    /* which is {"/bin/sh", "-c", script}; or NULL */
	const pair_list *env;  /* and variables that it gets, or that all commands get; or NULL */
	const char *path;      /* a file, absolute or relative to cwd, */
	bool is_tree;	       /* and everything below it */
	enum policy_operation operation;
	const char *cwd, *home;	      /* absolute and normal */
	struct policy_inputs *inputs; /* as in struct policy_request */
	struct policy_work *work;     /* as there; the policies of the stack share it */
	bool has_terminal;	      /* as there */
};
/* The verdict and its trail live in `arena`. */
void policy_stack_judge(const struct policy_stack *stack, const struct policy_question *question,
	struct arena *arena, struct policy_verdict *verdict);
/* Packages by name that "pip" or "npm" installs, and how many bytes they take together; 0: not
 * known. ERR_POLICY names the package and the key that refuses it. */
int policy_stack_check_packages(const struct policy_stack *stack, const char *program,
	const text_list *names, uint64_t size_bytes, struct error *err);
/* The indexes that "pip" or "npm" may use: what is below one of *urls, which is what each policy
 * lists. false: any. ERR_POLICY: the manager may not be used, or no index is left. */
int policy_stack_indexes(const struct policy_stack *stack, const char *program, struct arena *arena,
	text_list *urls, bool *is_bound, struct error *err);
/* Of what WORKSPACE_REGISTRIES stands for (envs/registries.h): leaves the indexes that every policy
 * lists of managers that none refuses. */
struct policy_registries {
	text_list variables, indexes, hosts;
};
struct policy_registries policy_stack_registries(const struct policy_stack *stack,
	const struct policy_registries *found, struct arena *arena);
/* The least of `value` and what sources say; 0: no limit. */
uint64_t policy_stack_limit_memory(const struct policy_stack *stack, uint64_t value);
uint64_t policy_stack_limit_time(const struct policy_stack *stack, uint64_t value_ms);
/* What may be reached at most (bounds.c), for connections, where nobody can be asked:
 * 1. web_access of sources: nothing when it is disabled, else only its allowed_domains, without its
 * blocked_domains.
 * 2. network rules of settings: those that deny or ask close. Where no rule matches and that is
 * denied (srt, a default of deny), only what its rules allow is open; else allow rules open nothing
 * and close nothing.
 * A stack that could not be built closes everything. */
void policy_stack_bounds(
	const struct policy_stack *stack, struct arena *arena, network_bounds *bounds);
/* git.max_clone_size_mb: the least of all policies, for the hosts of their allowed_remotes; of
 * every host but `registries` where a policy allows any remote. */
void policy_stack_meter(const struct policy_stack *stack,
	const struct policy_registries *registries, struct arena *arena,
	struct network_meter *meter);
/* The domains of every enabled web_access: what is to be reached where no network was asked for. */
void policy_stack_domains(
	const struct policy_stack *stack, struct arena *arena, text_list *domains);
/* The first step that decided, or NULL. */
const struct policy_step *policy_deciding_step(const struct policy_verdict *verdict);
/* A sentence about a verdict that isn't allow, for an error: "rm -rf /: rule 'shell(rm:*)'". */
const char *policy_explain(const struct policy_verdict *verdict, struct arena *arena);
