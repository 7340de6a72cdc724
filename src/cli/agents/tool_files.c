/* carrel tool discover, generate: files of this machine that tools are made of. */
#include <fcntl.h>
#include <unistd.h>
#include "base/fd.h"
#include "cli/agents/tool.h"
#include "cli/columns.h"
#include "model/agents/tool.h"
#include "model/agents/tool_spec.h"

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
	const struct json_value *tag = json_member_first(tool, "tags");
	unsigned score = 0;
	if (name && strcasestr(name, word))
		score += strcasecmp(name, word) ? 4 : 8;
	for (; tag; tag = tag->next)
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
	.usage = "WORD... [options]",
	.about = "Lists the tools of the index that TOOL_INDEX_PATH names which fit the words, the "
		 "best first: by name, then tags, then description.",
	ARG_TABLE(discover_table),
	.examples = "  TOOL_INDEX_PATH=index.json carrel tool discover html parser\n",
	.run = run_discover,
};

/* ---- generate ---- */

static int write_new(
	struct command *command, int dir, const char *name, const char *text, struct error *err)
{
	auto_close int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || fd_write_full(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return fail_errno(err, "write '%s'", name);
	if (!command->json)
		buf_printf(&command->out, "%s\n", name);
	return 0;
}

static int write_source(
	struct command *command, const struct tool_source *source, struct error *err)
{
	const char *to = command->options.to ? command->options.to : ".";
	const char *code = arena_printf(&command->arena, "%s.py", source->name);
	const char *tests = arena_printf(&command->arena, "test_%s.py", source->name);
	auto_close int dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "open '%s'", to);
	if (write_new(command, dir, code, source->code, err))
		return -1;
	if (write_new(command, dir, tests, source->tests, err)) {
		unlinkat(dir, code, 0);
		return -1;
	}
	if (command->json) {
		json_object(&command->value, NULL);
		json_text(&command->value, "code", code);
		json_text(&command->value, "tests", tests);
		json_texts(&command->value, "requires", &source->requires);
		json_bool(&command->value, "generated", source->is_generated);
		json_end(&command->value);
	}
	for (size_t i = 0; !command->json && i < source->requires.count; i++)
		cli_say("it needs --requires '%s'", source->requires.items[i]);
	return 0;
}

static int run_generate(struct command *command, struct error *err)
{
	const char *path = command->operands.items[0];
	auto_buf struct buf body = buf_empty(SPEC_MAX);
	struct remote_answer answer = { 0 };
	struct tool_source source = { 0 };
	struct tool_spec spec = { 0 };
	struct json_value *value;
	struct str text;
	if (cli_read_file(path, SPEC_MAX, &command->arena, &text, err))
		return -1;
	if (json_read(text, &command->arena, &value, err) ||
		record_read(&tool_spec_record, value, &command->arena, &spec, err))
		return error_context(err, "%s", path);
	buf_append(&body, text.data, text.len);
	if (remote_open(&command->remote, err))
		return -1;
	remote_catch_interrupts(&command->remote);
	int failed = remote_call(&command->remote, "POST", "/v1/tool-sources", &body, &answer, err);
	if (remote_is_interrupted())
		return fail(err, ERR_CANCELED, "interrupted: the generator was ended");
	if (failed || record_read_shown(&tool_source_record, answer.value->source, &command->arena,
			      &source, err))
		return -1;
	/* It becomes the name of a file here. */
	if (!source.name || !source.code || !source.tests || tool_check_name(source.name, err))
		return fail(err, ERR_CORRUPT, "the daemon's answer has no valid tool");
	return write_source(command, &source, err);
}

static const struct arg_option generate_table[] = {
	{ 0, "to", ARG_TEXT, AT(to), "DIR", "where the files are written (default .)", NULL, 1 },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec tool_generate_spec = {
	.command = "tool generate",
	.summary = "write the code and the tests of a tool",
	.usage = "SPEC [options]",
	.about =
		"Writes NAME.py and test_NAME.py for a specification, a JSON file: {\"name\", "
		"\"description\", \"arguments\": {NAME: EXAMPLE}, \"requires\"}. The generator of "
		"the daemon's config.yaml writes them, in a workspace of its own; without one they "
		"are skeletons, whose tests fail until run is written. Files that exist are left.",
	ARG_TABLE(generate_table),
	.examples = "  carrel tool generate slug.json --to tools\n",
	.run = run_generate,
};
