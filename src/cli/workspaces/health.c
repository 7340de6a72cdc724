/* carrel health, carrel repair: whether workspaces work, and what is done about it. */
#include "cli/plain.h"
#include "format/text/quantity.h"

#define UNHEALTHY 1 /* exit code: issues were found */

static void print_lines(struct buf *out, const struct json_value *at, const char *before)
{
	char line[1100];
	for (; at; at = at->next) {
		str_printable(line, sizeof line, at->string);
		buf_printf(out, "%s%s\n", before, line);
	}
}

static const struct {
	const char *label, *field;
} flags[] = { { "configured", "configured" }, { "python venv", "python_venv" },
	{ "python packages", "python_deps_installed" }, { "node_modules", "node_modules" },
	{ "node packages", "node_deps_installed" } };

static void print_health(struct buf *out, const struct json_value *health)
{
	const char *name = json_member_text(health, "name");
	const char *mechanism = json_member_text(health, "disk_limit_mechanism");
	uint64_t used = 0, most = 0;
	char sizes[2][16];
	json_member_u64(health, "disk_usage", &used);
	json_member_u64(health, "disk_limit", &most);
	quantity_format_size(sizes[0], used);
	quantity_format_size(sizes[1], most);
	buf_printf(out, "%s: %s\n", name ? name : "-",
		json_member_true(health, "healthy") ? "healthy" : "has issues");
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		buf_printf(out, "  %-15s  %s\n", flags[i].label,
			json_member_true(health, flags[i].field) ? "yes" : "no");
	buf_printf(out, "  %-15s  %s of %s%s%s%s\n", "disk", sizes[0], sizes[1],
		mechanism ? " (" : "", mechanism ? mechanism : "", mechanism ? ")" : "");
	print_lines(out, json_member_first(health, "issues"), "  issue: ");
}

struct checked {
	struct command *command;
	text_list names;
	bool has_issues;
};

static void note_name(void *ctx, const struct json_value *item)
{
	struct checked *checked = ctx;
	const char *name = json_member_text(item, "name");
	if (name)
		vec_push(&checked->command->arena, &checked->names,
			(const char *)arena_text(&checked->command->arena, name));
}

static int check_one(struct checked *checked, const char *name, struct error *err)
{
	struct command *command = checked->command;
	struct remote_answer answer;
	if (remote_call(&command->remote, "GET", plain_path(command, name), NULL, &answer, err))
		return -1;
	checked->has_issues |= !json_member_true(answer.value, "healthy");
	if (command->json)
		json_copy(&command->value, NULL, answer.value);
	else
		print_health(&command->out, answer.value);
	return 0;
}

static int run_health(struct command *command, struct error *err)
{
	struct checked checked = { .command = command, .names = command->operands };
	bool is_list = command->options.all || command->operands.count != 1;
	if (command->options.all && command->operands.count)
		return fail(err, ERR_INVALID, "--all can't be combined with a name");
	if (!command->operands.count &&
		remote_each(&command->remote, "/v1/workspaces", note_name, &checked, err))
		return -1;
	if (command->json && is_list)
		json_array(&command->value, NULL);
	for (size_t i = 0; i < checked.names.count; i++) {
		/* One of a list may be removed meanwhile. */
		if (check_one(&checked, checked.names.items[i], err) &&
			!(err->code == ERR_NOT_FOUND && !command->operands.count))
			return -1;
	}
	if (command->json && is_list)
		json_end(&command->value);
	return checked.has_issues ? UNHEALTHY : 0;
}

static const struct arg_option health_table[] = {
	{ 0, "all", ARG_FLAG, AT(all), NULL, "check all workspaces (the default without NAME)" },
	{ 0, "deep", ARG_FLAG, AT(deep), NULL, "compare every file of the layers with its hash" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_health = {
	.command = "health",
	.summary = "check workspaces: files, packages, layers, disk",
	.group = GROUP_WORKSPACES,
	.usage = "[NAME...] [options]",
	.about = "Checks workspaces (without NAME: all): whether they are configured, have their "
		 "Python and Node packages and can import them, whether their layers exist, and "
		 "their disk usage. Exits 1 if one has issues.",
	ARG_TABLE(health_table),
	.examples = "  carrel health demo\n"
		    "  carrel health --all -o json\n",
	.run = run_health,
};

static int show_repair(struct command *command, const struct json_value *answer)
{
	const struct json_value *done = json_member_first(answer, "done");
	const struct json_value *failed = json_member_first(answer, "failed");
	print_lines(&command->out, done, "");
	print_lines(&command->out, failed, "not repaired: ");
	if (!done && !failed)
		buf_printf(&command->out, "%s is healthy\n", command->operands.items[0]);
	return json_member_true(json_member(answer, "health"), "healthy") ? 0 : UNHEALTHY;
}

static const struct arg_option repair_table[] = {
	{ 0, "deep", ARG_FLAG, AT(deep), NULL, "compare every file of the layers with its hash" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_repair = {
	.command = "repair",
	.summary = "repair what a check of a workspace finds",
	.group = GROUP_WORKSPACES,
	.usage = "NAME [options]",
	.about = "Repairs what carrel health finds, and prints what it did: makes missing links "
		 "and directories again, builds a damaged environment again, restores packages "
		 "from their layers. Exits 1 if issues remain.",
	ARG_TABLE(repair_table),
	.examples = "  carrel repair demo\n",
	.run = plain_run,
	.show = show_repair,
};

static int show_verdict(struct command *command, const struct json_value *answer)
{
	const struct json_value *at = json_member_first(answer, "layers");
	for (; at; at = at->next) {
		char detail[600];
		const char *name = json_member_text(at, "name"),
			   *from = json_member_text(at, "seen_from"),
			   *text = json_member_text(at, "detail");
		str_printable(detail, sizeof detail, str_from(text ? text : ""));
		buf_printf(&command->out, "%-6s  %-17s  %-7s  %s\n",
			json_member_true(at, "ok") ? "ok" : "FAILED", name ? name : "-",
			from ? from : "-", detail);
	}
	if (!json_member_true(answer, "inside_trusted"))
		buf_text(&command->out, "note: commands run in the sandbox, which could fake the "
					"lines with 'inside'\n");
	return json_member_true(answer, "ok") ? 0 : UNHEALTHY;
}

const struct arg_spec cli_verify = {
	.command = "verify",
	.summary = "check the isolation of a workspace's sandbox",
	.group = GROUP_WORKSPACES,
	.usage = "NAME [options]",
	.about = "Checks the isolation of the sandbox of a workspace as it runs: from outside, "
		 "what the kernel says of its processes, and from inside, what a process there is "
		 "refused. Exits 1 if a layer fails.",
	REMOTE_OPTIONS,
	.examples = "  carrel verify demo\n",
	.run = plain_run,
	.show = show_verdict,
};
