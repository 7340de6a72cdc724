/* carrel template ls, show, add, rm, validate. */
#include <unistd.h>
#include "base/path.h"
#include "cli/removal.h"
#include "cli/run/policy_file.h"
#include "cli/plain.h"
#include "cli/environments/template.h"
#include "model/nouns/template.h"

/* ---- files of this host ---- */

static int inline_files(const char *path, struct arena *arena, struct str *text, struct error *err);

int template_read_file(const char *path, struct arena *arena, struct str *text, struct error *err)
{
	if (cli_read_file(path, TEMPLATE_BYTES_MAX, arena, text, err))
		return -1;
	if (memchr(text->data, '\0', text->len) ||
		str_utf8_prefix(text->data, text->len) != text->len)
		return fail(err, ERR_INVALID, "%s: not valid UTF-8 text", path);
	if (!text->len)
		return fail(err, ERR_INVALID, "%s: the file is empty", path);
	return inline_files(path, arena, text, err);
}

/* The file that a line "settings: NAME" names; NULL: it says something else. */
static const char *named_file(struct str line, const char *key, struct arena *arena)
{
	struct str name, value;
	if (!str_cut(line, ':', &name, &value) || !str_is(name, key))
		return NULL;
	value = str_trim(value);
	if (value.len >= 2 && (value.data[0] == '"' || value.data[0] == '\'') &&
		value.data[value.len - 1] == value.data[0])
		value = (struct str){ value.data + 1, value.len - 2 };
	/* Anything else that YAML could mean is for its reader. */
	if (!value.len || memchr("{[&*|>!%@`#\"'", value.data[0], 13))
		return NULL;
	for (size_t i = 0; i < value.len; i++)
		if (value.data[i] == '#' && i && value.data[i - 1] == ' ')
			value.len = i;
	value = str_trim(value);
	return arena_bytes(arena, value.data, value.len);
}

static int add_line_or_file(
	struct buf *out, struct str line, const char *dir, struct arena *arena, struct error *err)
{
	static const struct {
		const char *key;
		int (*read)(const char *path, struct arena *arena, const char **json,
			struct error *err);
	} kinds[] = { { "settings", policy_file_settings }, { "sources", policy_file_sources } };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const char *name = named_file(line, kinds[i].key, arena), *json;
		if (!name)
			continue;
		if (kinds[i].read(
			    path_is_absolute(name) ? name : arena_printf(arena, "%s%s", dir, name),
			    arena, &json, err))
			return error_context(err, "%s", kinds[i].key);
		buf_printf(out, "%s: %s", kinds[i].key, json);
		return 0;
	}
	buf_append(out, line.data, line.len);
	return 0;
}

/* The files of a policy that the template names, relative to itself: what they say now is what the
 * template says. */
static int inline_files(const char *path, struct arena *arena, struct str *text, struct error *err)
{
	const char *slash = strrchr(path, '/');
	const char *dir = slash ? arena_printf(arena, "%.*s", (int)(slash - path) + 1, path) : "";
	struct str rest = *text, line;
	auto_buf struct buf out = buf_empty(TEMPLATE_BYTES_MAX);
	while (str_next(&rest, '\n', &line)) {
		if (add_line_or_file(&out, line, dir, arena, err))
			return error_context(err, "%s", path);
		if (line.data + line.len < text->data + text->len)
			buf_char(&out, '\n');
	}
	if (out.overflow)
		return fail(err, ERR_LIMIT, "'%s' with its files has more than %d bytes", path,
			TEMPLATE_BYTES_MAX);
	*text = (struct str){ arena_bytes(arena, out.data, out.len), out.len };
	return 0;
}

void template_say_warnings(const struct json_value *object)
{
	const struct json_value *one = json_member_first(object, "warnings");
	for (; one; one = one->next)
		if (one->kind == JSON_STRING)
			cli_say("warning: %s", one->string.data);
}

void template_print_made(struct command *command, const struct remote_answer *answer)
{
	const char *name = json_member_text(answer->value, "name");
	if (command->json) {
		remote_print_answer(answer, &command->out);
		return;
	}
	template_say_warnings(answer->value);
	buf_printf(&command->out, "%s\n", name ? name : "");
}

/* ---- commands ---- */

static const struct arg_spec ls_spec = {
	.command = "template ls",
	.summary = "list templates",
	.about = "Lists the templates that carrel ships and those that were added.",
	REMOTE_OPTIONS,
	.run = plain_list,
	.record = &template_record,
	.key = "name",
};

static int run_show(struct command *command, struct error *err)
{
	struct remote_answer answer;
	if (plain_ask(command, &answer, err))
		return -1;
	if (!command->json)
		template_say_warnings(answer.value);
	return plain_show(command, &answer);
}

static const struct arg_spec show_spec = {
	.command = "template show",
	.summary = "print a template",
	.usage = "NAME [options]",
	.about = "Prints the YAML of a template, and on stderr a warning for each key that has no "
		 "effect in this version. -o json prints its values with those of the templates "
		 "that it extends.",
	REMOTE_OPTIONS,
	.examples = "  carrel template show default > mine.yaml\n",
	.run = run_show,
	.check = template_check_name,
	.prints = "yaml",
};

int template_print_yaml(const void *ctx, struct json *j, struct error *err)
{
	const struct str *text = ctx;
	json_str(j, "yaml", *text);
	return 0;
}

static int print_check(const void *ctx, struct json *j, struct error *err)
{
	json_bool(j, "check", true);
	return template_print_yaml(ctx, j, err);
}

static int send_file(struct command *command, plain_more_fn *print, struct remote_answer *answer,
	struct error *err)
{
	const char *path = command->operands.items[0];
	struct str text;
	if (template_read_file(path, &command->arena, &text, err))
		return -1;
	if (!plain_ask_with(command, print, &text, answer, err))
		return 0;
	return err->code == ERR_INVALID ? error_context(err, "%s", path) : -1;
}

static int run_add(struct command *command, struct error *err)
{
	struct remote_answer answer;
	if (send_file(command, template_print_yaml, &answer, err))
		return -1;
	template_print_made(command, &answer);
	return 0;
}

static const struct arg_spec add_spec = {
	.command = "template add",
	.summary = "add a template, or replace one",
	.usage = "FILE [options]",
	.about = "Adds the template in a YAML file (-: stdin) under the name that the file says. "
		 "It replaces one of that name that was added before, and is used instead of a "
		 "shipped one. Workspaces that exist don't change. Prints its name.",
	REMOTE_OPTIONS,
	.examples = "  carrel template add mine.yaml\n"
		    "  carrel template show strict | sed 's/name: strict/name: tight/' | carrel "
		    "template add -\n",
	.afterwards = "carrel template ls lists what there is; carrel template rm removes it",
	.run = run_add,
};

static const struct arg_spec rm_spec = {
	.command = "template rm",
	.summary = "remove templates that were added",
	.usage = "NAME... [options]",
	.about = "Removes templates that were added. Shipped templates can't be removed. "
		 "Workspaces that were made of it stay. One that an agent makes its contexts of is "
		 "asked about on a terminal, and needs --force elsewhere.",
	ARG_TABLE(plain_rm_table),
	.run = plain_remove,
	.check = template_check_name,
	.removal = &template_removal,
};

static int run_validate(struct command *command, struct error *err)
{
	struct remote_answer answer;
	if (send_file(command, print_check, &answer, err))
		return -1;
	if (command->json) {
		remote_print_answer(&answer, &command->out);
		return 0;
	}
	template_say_warnings(answer.value);
	buf_printf(&command->out, "%s: ok\n", command->operands.items[0]);
	return 0;
}

static const struct arg_spec validate_spec = {
	.command = "template validate",
	.summary = "check a template file",
	.usage = "FILE [options]",
	.about = "Checks the template in a YAML file (-: stdin) and what it extends. An error "
		 "names the line and the key. Nothing is added.",
	REMOTE_OPTIONS,
	.run = run_validate,
	.asks = "addTemplate",
};

const struct arg_spec cli_template = {
	.command = "template",
	.summary = "list, show, add, validate and remove templates of workspaces",
	.group = GROUP_PACKAGES,
	.about = "Templates: YAML from which workspaces are made, by carrel create --template.",
	.examples = "  carrel template ls\n"
		    "  carrel create demo --template minimal\n",
	.commands = (const struct arg_spec *const[]){ &ls_spec, &show_spec, &add_spec, &rm_spec,
		&validate_spec, NULL },
};
