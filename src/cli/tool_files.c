/* carrel tool discover, generate: files of this machine. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "base/fd.h"
#include "cli/columns.h"
#include "cli/tool.h"
#include "model/tool.h"

#define INDEX_MAX ((size_t)8 << 20)
#define SPEC_MAX ((size_t)64 << 10)

/* ---- discover ---- */

struct found {
	const struct json_value *tool;
	unsigned score;
};

/* How well a word fits: its name most, then a tag, then the description. */
static unsigned score_of(const struct json_value *tool, const char *word)
{
	const char *name = json_member_text(tool, "name");
	const char *description = json_member_text(tool, "description");
	const struct json_value *tags = json_member(tool, "tags");
	unsigned score = 0;
	if (name && strcasestr(name, word))
		score += strcasecmp(name, word) ? 4 : 8;
	for (const struct json_value *tag = tags ? tags->first : NULL; tag; tag = tag->next)
		if (tag->kind == JSON_STRING && !strcasecmp(tag->string.data, word))
			score += 3;
	if (description && strcasestr(description, word))
		score += 1;
	return score;
}

static int compare(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return strcmp(json_member_text(x->tool, "name"), json_member_text(y->tool, "name"));
}

static int read_index(struct command *command, const struct json_value **tools, struct error *err)
{
	const char *path = getenv("TOOL_INDEX_PATH");
	struct json_value *index;
	struct str text;
	if (!path || !path[0])
		return fail_hint(err, ERR_INVALID, "export TOOL_INDEX_PATH=FILE",
			"TOOL_INDEX_PATH, the index of tools, is not set");
	if (cli_read_file(path, INDEX_MAX, &command->arena, &text, err))
		return error_context(err, "TOOL_INDEX_PATH");
	if (json_read(text, &command->arena, &index, err))
		return error_context(err, "%s", path);
	const struct json_value *list = json_member(index, "tools");
	if (!list || list->kind != JSON_ARRAY)
		return fail(err, ERR_INVALID, "%s: 'tools' must be a list", path);
	for (const struct json_value *tool = list->first; tool; tool = tool->next)
		if (!json_member_text(tool, "name"))
			return fail(err, ERR_INVALID, "%s: a tool has no 'name'", path);
	*tools = list;
	return 0;
}

static void print_found(struct command *command, const struct found *all, size_t count)
{
	static const char *const heads[] = { "NAME", "PACKAGE", "DESCRIPTION" };
	struct columns columns = { .count = 3, .arena = &command->arena };
	if (command->json)
		json_array(&command->value, NULL);
	else
		columns_add(&columns, heads);
	for (size_t i = 0; i < count; i++) {
		const char *cells[] = { json_member_text(all[i].tool, "name"),
			json_member_text(all[i].tool, "package"),
			json_member_text(all[i].tool, "description") };
		if (command->json)
			json_copy(&command->value, NULL, all[i].tool);
		else
			columns_add(&columns, cells);
	}
	if (command->json)
		json_end(&command->value);
	else
		columns_print(&columns, &command->out);
}

static int run_discover(struct command *command, struct error *err)
{
	const struct json_value *tools = NULL;
	if (read_index(command, &tools, err))
		return -1;
	struct found *all = arena_array(&command->arena, tools->count + 1, sizeof *all);
	size_t count = 0;
	for (const struct json_value *tool = tools->first; tool; tool = tool->next) {
		struct found found = { tool, 0 };
		for (size_t i = 0; i < command->operands.count; i++)
			found.score += score_of(tool, command->operands.items[i]);
		if (found.score)
			all[count++] = found;
	}
	qsort(all, count, sizeof *all, compare);
	print_found(command, all, count);
	return 0;
}

static const struct arg_option discover_table[] = { { ARG_FROM(format_rows) } };
const struct arg_spec tool_discover_spec = {
	.command = "tool discover",
	.summary = "find tools in the index",
	.usage = "carrel tool discover WORD... [options]",
	.about = "Lists the tools of the index that TOOL_INDEX_PATH names which fit the words, the "
		 "best\nfirst: by name, then tags, then description.",
	ARG_TABLE(discover_table),
	.examples = "  TOOL_INDEX_PATH=index.json carrel tool discover html parser\n",
	.least = 1,
	.most = SIZE_MAX,
	.run = run_discover,
};

/* ---- generate ---- */

/* A name that Python takes as one of an argument. */
static bool is_identifier(struct str name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	static const char digits[] = "0123456789";
	if (!name.len || strlen(name.data) != name.len || strspn(name.data, digits))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (!strchr(letters, name.data[i]) && !strchr(digits, name.data[i]))
			return false;
	return true;
}

/* "text, count": the arguments of run. */
static int print_names(const struct json_value *arguments, struct buf *out, struct error *err)
{
	if (arguments && arguments->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "arguments: must be an object of names and examples");
	for (const struct json_value *one = arguments ? arguments->first : NULL; one;
		one = one->next) {
		if (!is_identifier(one->key))
			return fail(
				err, ERR_INVALID, "arguments: '%s' is not a name", one->key.data);
		buf_printf(out, "%s%s", one == arguments->first ? "" : ", ", one->key.data);
	}
	return 0;
}

static int write_new(struct command *command, int dir, const char *name, const struct buf *text,
	struct error *err)
{
	auto_close int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || fd_write_full(fd, text->data, text->len) != (ssize_t)text->len)
		return fail_errno(err, "write '%s'", name);
	if (!command->json)
		buf_printf(&command->out, "%s\n", name);
	return 0;
}

static int check_spec(const struct json_value *spec, struct error *err)
{
	static const char *const known[] = { "name", "description", "arguments", "requires", NULL };
	const char *name = json_member_text(spec, "name");
	const struct json_value *requires = json_member(spec, "requires");
	for (const struct json_value *one = spec->first; one; one = one->next) {
		int i = 0;
		while (known[i] && strcmp(known[i], one->key.data) != 0)
			i++;
		if (spec->kind != JSON_OBJECT || !known[i])
			return fail(err, ERR_INVALID, "unknown member '%s'",
				spec->kind == JSON_OBJECT ? one->key.data : "");
	}
	if (!name)
		return fail(err, ERR_INVALID, "'name' is needed");
	if (requires && requires->kind != JSON_ARRAY)
		return fail(err, ERR_INVALID, "requires: must be a list");
	return tool_check_name(name, err);
}

static int run_generate(struct command *command, struct error *err)
{
	const char *path = command->operands.items[0];
	const char *to = command->options.to ? command->options.to : ".";
	auto_buf struct buf names = buf_empty(SPEC_MAX), code = buf_empty(SPEC_MAX * 4),
			    tests = buf_empty(SPEC_MAX * 4);
	struct json_value *spec;
	struct str text;
	if (cli_read_file(path, SPEC_MAX, &command->arena, &text, err))
		return -1;
	if (json_read(text, &command->arena, &spec, err) || check_spec(spec, err))
		return error_context(err, "%s", path);
	const char *name = json_member_text(spec, "name");
	const char *description = json_member_text(spec, "description");
	const struct json_value *arguments = json_member(spec, "arguments");
	if (print_names(arguments, &names, err))
		return error_context(err, "%s", path);
	/* A JSON text is a Python literal too, but for true, false and null. */
	auto_buf struct buf quoted = buf_empty(SPEC_MAX * 4);
	buf_escaped(&quoted, str_from(description ? description : name));
	buf_printf(&code, "\"%s\"\n\n\ndef run(%s):\n    raise NotImplementedError(\"%s\")\n",
		quoted.len ? quoted.data : "", names.len ? names.data : "", name);
	quoted.len = 0;
	buf_escaped(&quoted, arguments ? arguments->source : STR("{}"));
	buf_printf(&tests,
		"import json\n\nimport tool\n\nARGUMENTS = json.loads(\"%s\")\n\n\ndef "
		"test_the_result_is_json():\n    json.dumps(tool.run(**ARGUMENTS), "
		"allow_nan=False)\n",
		quoted.data);
	auto_close int dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "open '%s'", to);
	const char *code_name = arena_printf(&command->arena, "%s.py", name);
	const char *tests_name = arena_printf(&command->arena, "test_%s.py", name);
	if (write_new(command, dir, code_name, &code, err))
		return -1;
	if (write_new(command, dir, tests_name, &tests, err)) {
		unlinkat(dir, code_name, 0);
		return -1;
	}
	if (command->json) {
		json_object(&command->value, NULL);
		json_text(&command->value, "code", code_name);
		json_text(&command->value, "tests", tests_name);
		json_end(&command->value);
	}
	return 0;
}

static const struct arg_option generate_table[] = {
	{ 0, "to", ARG_TEXT, AT(to), "DIR", "where the files are written (default .)", NULL, 1 },
	{ ARG_FROM(format_rows) },
};
const struct arg_spec tool_generate_spec = {
	.command = "tool generate",
	.summary = "write the skeletons of a tool and its tests",
	.usage = "carrel tool generate SPEC [options]",
	.about = "Writes NAME.py and test_NAME.py for a specification, a JSON file: {\"name\",\n"
		 "\"description\", \"arguments\": {NAME: EXAMPLE}, \"requires\"}. Files that "
		 "exist are left.\nThe tests fail until run is written.",
	ARG_TABLE(generate_table),
	.examples = "  carrel tool generate slug.json --to tools\n",
	.least = 1,
	.most = 1,
	.run = run_generate,
};
