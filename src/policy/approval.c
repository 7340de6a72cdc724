#include "policy/approval.h"

#include "format/text/json.h"

static void print_step(struct json *j, const struct policy_step *step)
{
	json_object(j, NULL);
	json_text(j, "subject", step->subject);
	json_text(j, "rule", step->rule);
	json_text(j, "reason", step->reason);
	json_text(j, "decision", policy_decision_name(step->decision));
	json_end(j);
}

/* The steps that decided come first where not all of them fit. */
static void print_trail(
	struct approval *approval, const struct policy_verdict *verdict, struct arena *arena)
{
	auto_buf struct buf text = buf_empty(APPROVAL_BYTES_MAX);
	struct json j = json_to(&text, false);
	size_t left = APPROVAL_STEPS_MAX, serious = 0, bytes = 0;
	for (size_t i = 0; i < verdict->trail.count; i++)
		serious += verdict->trail.items[i].decision != POLICY_ALLOW;
	size_t allowed = serious < left ? left - serious : 0;
	json_array(&j, NULL);
	for (size_t i = 0; i < verdict->trail.count; i++) {
		const struct policy_step *step = &verdict->trail.items[i];
		bool is_allowed = step->decision == POLICY_ALLOW;
		/* JSON makes at most six bytes of one. */
		bytes += 6 * (strlen(step->subject) + (step->rule ? strlen(step->rule) : 0) +
				     (step->reason ? strlen(step->reason) : 0)) +
			 128;
		if (!left || (is_allowed && !allowed) || bytes > APPROVAL_BYTES_MAX - 1024) {
			approval->trail_is_cut = true;
			continue;
		}
		left--;
		allowed -= is_allowed;
		print_step(&j, step);
	}
	json_end(&j);
	approval->trail = arena_bytes(arena, text.data, text.len);
}

/* Only what no rule has decided can be allowed by another rule; a rule that asks does so each time.
 */
static void suggest(
	struct approval *approval, const struct policy_verdict *verdict, struct arena *arena)
{
	text_list rules = { 0 };
	policy_suggest(verdict, arena, &rules);
	for (size_t i = 0; i < verdict->trail.count; i++) {
		const struct policy_step *step = &verdict->trail.items[i];
		if (step->decision == POLICY_ALLOW || (!step->rule && step->suggestion))
			continue;
		approval->always_refused =
			step->rule ? arena_printf(
					     arena, "the rule '%.200s' asks each time", step->rule)
				   : arena_printf(arena, "no rule can say '%.200s'", step->subject);
		return;
	}
	if (!rules.count || rules.count > APPROVAL_RULES_MAX)
		approval->always_refused = rules.count ? "it would take more than 16 rules"
						       : "no rule can say what was asked for";
	else
		approval->suggested = text_list_copy(arena, &rules);
}

void policy_fill_approval(
	struct approval *approval, const struct policy_verdict *verdict, struct arena *arena)
{
	print_trail(approval, verdict, arena);
	suggest(approval, verdict, arena);
}
