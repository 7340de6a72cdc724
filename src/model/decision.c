#include "model/decision.h"

const char *policy_decision_name(enum policy_decision decision)
{
	static const char *const names[] = { "allow", "ask", "deny" };
	return names[decision];
}

bool policy_decision_from_name(const char *name, enum policy_decision *decision)
{
	for (enum policy_decision i = POLICY_ALLOW; i <= POLICY_DENY; i++)
		if (strcmp(name, policy_decision_name(i)) == 0) {
			*decision = i;
			return true;
		}
	return false;
}
