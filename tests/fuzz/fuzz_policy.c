/* Rules, settings of each format, and requests judged by them: what denies can only be tightened,
 * and a judge always says why. The input is "RULE or SETTINGS\0REQUEST". */
#include <string.h>
#include "fuzz.h"
#include "policy/lint.h"
#include "policy/policy.h"

static const struct policy_places places = {
	.workspace = "/workspace", .context_id = "c", .home = "/home", .cwd = "/workspace"
};

static void judge(const struct policy *policy, const char *request, struct arena *arena)
{
	struct policy_request with = { SHELL_SH, "/workspace", "/home", arena, NULL };
	struct policy_verdict sh, bash;
	struct error err;
	text_list rules = { 0 };

	policy_judge_script(policy, &with, str_from(request), &sh);
	check(sh.trail.count > 0);
	policy_suggest(&sh, arena, &rules);
	for (size_t i = 0; i < rules.count; i++) {
		struct policy made;

		policy_init(&made, arena);
		check(policy_add_rule(&made, POLICY_ALLOW, rules.items[i], &places, &err) == 0);
	}
	with.dialect = SHELL_BASH;
	policy_judge_script(policy, &with, str_from(request), &bash);
	/* What any sh may run is at least as strict as what bash does. */
	check(sh.decision >= bash.decision || bash.decision == POLICY_ASK);
	policy_judge_subject(policy, &with, request, &sh, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *end = size ? memchr(data, '\0', size) : NULL;
	auto_arena struct arena arena;
	policy_findings findings = { 0 };
	struct policy policy, denying;
	struct error err;

	arena_init(&arena);
	if (!end || size > 8192)
		return 0;
	struct str text = { (const char *)data, (size_t)(end - (const char *)data) };
	const char *request = arena_bytes(&arena, end + 1, size - text.len - 1);
	policy_init(&policy, &arena);
	if (policy_add_settings(&policy, text, &places, &err) < 0) {
		policy_init(&policy, &arena);
		if (policy_add_rule(&policy, POLICY_ALLOW, arena_bytes(&arena, text.data, text.len),
			    &places, &err) < 0)
			return 0;
		policy_init(&denying, &arena);
		check(policy_add_rule(&denying, POLICY_DENY,
			      arena_bytes(&arena, text.data, text.len), &places, &err) == 0);
		judge(&denying, request, &arena);
	}
	policy_find_faults(&policy, &arena, &findings);
	judge(&policy, request, &arena);
	return 0;
}
