/* carrel policy lint: rules that are malformed, too wide or without effect. */
#include "cli/policy/policy.h"
#include "policy/lint.h"

static void print_finding(struct command *command, const char *file, int line, const char *kind,
	const char *rule, const char *text, const struct policy_rule *other)
{
	struct json *j = &command->value;
	char shown[256], of_other[256];
	if (command->json) {
		json_object(j, NULL);
		json_text(j, "kind", kind);
		json_text(j, "file", file);
		json_u64(j, "line", (uint64_t)line);
		json_text(j, "rule", rule);
		json_text(j, "message", text);
		json_text(j, "other", other ? other->text : NULL);
		if (other)
			json_u64(j, "other_line", (uint64_t)other->line);
		json_end(j);
		return;
	}
	str_printable(shown, sizeof shown, str_from(rule ? rule : ""));
	buf_printf(&command->out, "%s:%d: %s: %s%s%s", file, line, kind, shown, rule ? ": " : "",
		text);
	if (other) {
		str_printable(of_other, sizeof of_other, str_from(other->text));
		buf_printf(&command->out, ": %s%s", policy_decision_name(other->decision), " ");
		buf_printf(&command->out, "%s, line %d", of_other, other->line);
	}
	buf_char(&command->out, '\n');
}

static int run_lint(struct command *command, struct error *err)
{
	const char *path = command->operands.items[0];
	struct policy_places places = { .workspace = "/workspace",
		.context_id = "context",
		.home = "/workspace",
		.cwd = "/workspace" };
	policy_problems problems = { 0 };
	struct policy_file file = { .name = path, .problems = &problems };
	policy_findings findings = { 0 };
	struct policy policy;
	policy_init(&policy, &command->arena);
	if (command->options.settings_format)
		policy_format_from_name(command->options.settings_format, &file.format);
	if (policy_read_file(path, POLICY_SETTINGS_MAX, &command->arena, &file.text, err) ||
		policy_add_file(&policy, &file, &places, err))
		return -1;
	policy_find_faults(&policy, &command->arena, &findings);
	if (command->json)
		json_array(&command->value, NULL);
	for (size_t i = 0; i < problems.count; i++)
		print_finding(command, path, problems.items[i].line, "malformed", NULL,
			problems.items[i].text, NULL);
	for (size_t i = 0; i < findings.count; i++)
		print_finding(command, path, findings.items[i].rule->line,
			policy_lint_name(findings.items[i].kind), findings.items[i].rule->text,
			findings.items[i].text, findings.items[i].other);
	if (command->json)
		json_end(&command->value);
	return problems.count || findings.count ? 1 : 0;
}

static const struct arg_option table[] = {
	{ 0, "settings-format", ARG_CHOICE, AT(settings_format), "carrel|claude|srt",
		"the file's format (default: known by its shape)", "carrel|claude|srt" },
	{ ARG_FROM(format_rows) },
};
const struct arg_spec policy_lint_spec = {
	.command = "policy lint",
	.summary = "find rules that are malformed, too wide or without effect",
	.usage = "FILE [options]",
	.about = "Reads a settings file, and prints a line for each rule that is malformed, too "
		 "wide (an interpreter, every file, every host), there twice, or never decides "
		 "since another one does. Exits 1 if there is one.",
	ARG_TABLE(table),
	.examples = "  carrel policy lint settings.json\n",
	.run = run_lint,
};
