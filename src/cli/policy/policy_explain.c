/* carrel policy explain: why a request is allowed, asked for or denied. */
#include "base/str.h"
#include "cli/policy/policy.h"

static void print_step(struct buf *out, const struct policy_step *step)
{
	char subject[600], text[600];
	str_printable(subject, sizeof subject, str_from(step->subject));
	buf_printf(out, "  %-5s  %s%s%s%s\n", policy_decision_name(step->decision), subject,
		step->within ? "  (through " : "", step->within ? step->within : "",
		step->within ? ")" : "");
	if (step->rule) {
		str_printable(text, sizeof text, str_from(step->rule));
		buf_printf(out, "         by the rule %s", text);
		if (step->by && step->by->line)
			buf_printf(out, ", %s%sline %d", step->by->file ? step->by->file : "",
				step->by->file ? ", " : "", step->by->line);
		buf_char(out, '\n');
	}
	if (step->reason) {
		str_printable(text, sizeof text, str_from(step->reason));
		buf_printf(out, "         %s\n", text);
	}
}

static int run_explain(struct command *command, struct error *err)
{
	struct policy_rules rules;
	struct policy_verdict verdict;
	text_list suggestions = { 0 };
	if (policy_load(command, &rules, err) ||
		policy_judge_options(command, &rules, &verdict, err))
		return -1;
	policy_suggest(&verdict, &command->arena, &suggestions);
	if (command->json) {
		json_object(&command->value, NULL);
		policy_print_verdict(&command->value, &verdict);
		json_texts(&command->value, "suggestions", &suggestions);
		json_end(&command->value);
		return policy_exit_code(verdict.decision);
	}
	buf_printf(&command->out, "%s\n", policy_decision_name(verdict.decision));
	bool is_open = false;
	for (size_t i = 0; i < verdict.trail.count; i++) {
		const struct policy_step *step = &verdict.trail.items[i];
		is_open |= step->decision != POLICY_ALLOW && !step->suggestion;
		print_step(&command->out, step);
	}
	for (size_t i = 0; i < suggestions.count; i++)
		buf_printf(&command->out, "%s%s\n",
			i	  ? ""
			: is_open ? "rules that would allow a part of it:\n"
				  : "rules that would allow it:\n",
			arena_printf(&command->arena, "  %s", suggestions.items[i]));
	if (is_open)
		buf_text(&command->out, verdict.decision == POLICY_DENY
						? "no rule allows what another one denies\n"
						: "a person has to allow what no rule can name\n");
	return policy_exit_code(verdict.decision);
}

static const struct arg_option table[] = {
	{ ARG_FROM(policy_rows) },
	{ 0, "command", ARG_TEXT, AT(command), "SCRIPT", "judge a script as a shell gets it" },
	{ 0, "file", ARG_TEXT, AT(path), "read|write|delete|*:PATH", "judge file operations" },
	{ 0, "network", ARG_TEXT, AT(network), "HOST[:PORT]", "judge a connection" },
	{ ARG_FROM(format_rows) },
};
const struct arg_spec policy_explain_spec = {
	.command = "policy explain",
	.summary = "say which rule decides each part of a request",
	.usage = "-s FILE [options] -- CMD [ARG...]",
	.about = "Judges a request as 'carrel policy check' does, and prints each simple command, "
		 "file and\n"
		 "expansion in it with the rule that decided, and the rules that would allow what "
		 "is asked for.",
	ARG_TABLE(table),
	.examples =
		"  carrel policy explain -s settings.json --command 'timeout 5 curl x | tee a'\n",
	.takes_command = true,
	.run = run_explain,
};
