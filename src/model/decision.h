/* decision.h -- what rules and reviewers say of a request: "allow", "ask", "deny". */
#pragma once

/* In order of strictness: of two decisions the greater one holds. */
enum policy_decision { POLICY_ALLOW, POLICY_ASK, POLICY_DENY };
const char *policy_decision_name(enum policy_decision decision);
bool policy_decision_from_name(const char *name, enum policy_decision *decision);
