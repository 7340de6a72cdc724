/* carrel diff: what changed in a workspace. */
#include <unistd.h>
#include "cli/plain.h"

/* Bytes of a workspace could give orders to a terminal. */
static void print_shown(struct buf *out, struct str text)
{
	struct str line;
	while (str_next(&text, '\n', &line)) {
		struct str rest = line, part;
		bool is_first = true;
		while (str_next(&rest, '\t', &part)) {
			size_t size = 4 * part.len + 1;
			char *room = buf_reserve(out, size + 1);
			if (!room)
				return;
			if (!is_first)
				*room = '\t';
			str_printable(room + !is_first, size, part);
			buf_grew(out, strlen(room));
			is_first = false;
		}
		buf_char(out, '\n');
	}
}

static int print_patch(struct command *command, struct error *err)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response response;
	request.method = "GET";
	request.path = plain_path(command, command->operands.items[0]);
	request.accept = "text/x-patch";
	if (remote_open(&command->remote, err) ||
		client_call(&command->remote.client, &request, &command->arena, &response, err))
		return -1;
	if (isatty(STDOUT_FILENO))
		print_shown(&command->out, response.body);
	else
		buf_append(&command->out, response.body.data, response.body.len);
	return 0;
}

static void print_change(struct buf *out, const struct json_value *item)
{
	char path[4096 * 4];
	const struct json_value *name = json_member(item, "path");
	const char *change = json_member_text(item, "change");
	const char *type = json_member_text(item, "type");
	if (!name || name->kind != JSON_STRING)
		return;
	str_printable(path, sizeof path, name->string);
	buf_printf(out, "%s %s%s\n", change ? change : "?", path,
		type && !strcmp(type, "directory") ? "/" : "");
}

static int run_diff(struct command *command, struct error *err)
{
	struct remote_answer answer;
	if (command->options.patch && command->json)
		return fail_hint(err, ERR_INVALID, "leave one of them out",
			"--patch prints a patch, not JSON");
	if (command->options.patch)
		return print_patch(command, err);
	if (plain_ask(command, &answer, err))
		return -1;
	const struct json_value *items = json_member(answer.value, "items");
	if (!items)
		return fail(err, ERR_CORRUPT, "the daemon's answer has no items");
	if (command->json)
		json_copy(&command->value, NULL, items);
	else
		for (const struct json_value *at = items->first; at; at = at->next)
			print_change(&command->out, at);
	return 0;
}

static const struct arg_option diff_table[] = {
	{ 0, "patch", ARG_FLAG, AT(patch), NULL, "print a patch, as git apply reads it" },
	{ 0, "path", ARG_LIST, AT(paths), "PATH",
		"only this path and what is below it; may be repeated", .least = 1 },
	{ 0, "all", ARG_FLAG, AT(all), NULL, "also what changed in /env and node_modules" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_diff = {
	.command = "diff",
	.summary = "list what changed in a workspace",
	.group = GROUP_EVERYDAY,
	.usage = "NAME [SNAPSHOT|TAG|VERSION] [options]",
	.about = "Lists the files that were added (A), modified (M), deleted (D) or replaced by "
		 "another type (T) since a snapshot of the workspace, by default the last one; "
		 "without a snapshot, all its files.",
	ARG_TABLE(diff_table),
	.examples = "  carrel diff demo\n"
		    "  carrel diff demo before-upgrade\n"
		    "  carrel diff demo --patch | git apply --stat\n",
	.run = run_diff,
	.sends = "snapshot",
};
