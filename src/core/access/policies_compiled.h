/* policies_compiled.h -- the compiled policies of workspaces. Private to policies*.c.
 * 1. Workspaces share one when all that it is made of is the same, byte for byte: those of a
 * template, forks.
 * 2. What is asked of many workspaces at once, or again and again (`facts`), stays as long as a
 * workspace has it. What commands are judged by (`stack`) takes 30 times the memory of its
 * settings, or more: those used last stay, POLICIES_BYTES_MOST together, and others are compiled
 * again on need. A larger one is compiled for each turn of the loop that needs it.
 * 3. They go at the next turn of the loop: pointers into one are good in this turn alone. */
#pragma once
#include "base/hash.h"
#include "core/access/internal.h"
#include "policy/stack.h"

/* With the address sanitizer no compiled policy is cached, so that a use after free is found. */
#ifdef __SANITIZE_ADDRESS__
#define POLICIES_BYTES_MOST 0
#else
#define POLICIES_BYTES_MOST ((size_t)64 << 20)
#endif

struct policies_facts {
	bool hold;			  /* anything is judged */
	uint64_t memory_bytes, time_ms;	  /* at most; 0: no limit */
	struct workspace_network network; /* as they let it be */
};
struct core_policies {
	struct last_use use; /* first: of its stack */
	unsigned char key[SHA256_LEN];
	unsigned users; /* workspaces */
	struct policies_facts facts;
	struct arena facts_arena;
	struct policy_stack stack;
	struct arena arena; /* of the stack */
};

/* Of a model as it may be. ERR_INVALID names the policy and its rule; the stack then denies. */
int policies_compile(const struct core *core, const struct workspace *model,
	struct policy_stack *stack, struct arena *arena, struct error *err);
const struct policies_facts *policies_facts(struct core_workspace *w);
/* One that can't be compiled denies. */
const struct policy_stack *policies_stack(struct core_workspace *w);
