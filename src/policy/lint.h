/* lint.h -- rules that are too wide, or without effect. Pure. */
#pragma once
#include "policy/policy.h"

enum policy_lint {
	POLICY_LINT_WIDE,      /* allows more than people mean */
	POLICY_LINT_DUPLICATE, /* the same as `other` */
	POLICY_LINT_SHADOWED,  /* `other` says the same, and more */
	POLICY_LINT_NEVER,     /* can never decide: `other` wins, or nothing matches it */
};
struct policy_finding {
	enum policy_lint kind;
	const struct policy_rule *rule, *other; /* other: or NULL */
	const char *text;			/* what is wrong with the rule */
};
typedef VEC(struct policy_finding) policy_findings;
/* Appends what it finds, in the order of the rules. */
void policy_find_faults(
	const struct policy *policy, struct arena *arena, policy_findings *findings);
const char *policy_lint_name(enum policy_lint kind); /* "too_wide", "duplicate" … */
