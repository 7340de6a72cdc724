#include "model/agents/tool_spec.h"

#include "base/str.h"
#include "format/packages/pep508.h"
#include "model/records/rows.h"

#define ARGUMENTS_MAX (32u << 10)
#define WORDS_MAX 256

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

static int check_spec(const void *value, struct error *err)
{
	const struct tool_spec *spec = value;
	auto_arena struct arena arena = { 0 };
	struct json_value *arguments;
	if (!spec->arguments)
		return 0;
	if (json_read(str_from(spec->arguments), &arena, &arguments, err))
		return error_context(err, "arguments");
	for (const struct json_value *one = arguments->first; one; one = one->next)
		if (!is_identifier(one->key))
			return fail(err, ERR_INVALID, "arguments: '%.64s' is not a name",
				one->key.data);
	return 0;
}

#define AT(member) offsetof(struct tool_spec, member)
static const struct field spec_rows[] = {
	ROW(TEXT, name, "of the tool", FIELD_REQUIRED, .pattern = TOOL_NAME_PATTERN,
		.check = tool_check_name),
	ROW(TEXT, description, "what the tool is to do", .least = 1, .most = TOOL_DESCRIPTION_MAX),
	ROW(JSON, arguments, "of run: names and examples", FIELD_EXACT, .most = ARGUMENTS_MAX),
	ROW(TEXTS, requires, "requirements of Python packages", .most = TOOL_REQUIRES_MAX),
};
#undef AT
const struct record tool_spec_record = { "ToolSpec", NULL, RECORD_ROWS(spec_rows), FIELD_IN,
	.check = check_spec };

#define AT(member) offsetof(struct tool_source, member)
static const struct field source_rows[] = {
	ROW(TEXT, name, "of the tool"),
	ROW(TEXT, code, "tool.py"),
	ROW(TEXT, tests, "test_tool.py"),
	ROW(TEXTS, requires, "requirements of Python packages"),
	{ "generated", FIELD_BOOLEAN, AT(is_generated),
		"by the operator's generator; false: skeletons, whose tests fail" },
};
#undef AT
const struct record tool_source_record = { "ToolSource", NULL, RECORD_ROWS(source_rows),
	FIELD_OUT };

void tool_spec_copy(struct arena *arena, const struct tool_spec *from, struct tool_spec *to)
{
	*to = (struct tool_spec){ .name = arena_text(arena, from->name),
		.description = arena_text(arena, from->description),
		.arguments = arena_text(arena, from->arguments),
		.requires = text_list_copy(arena, &from->requires) };
}

void tool_spec_print(const struct tool_spec *spec, struct buf *out)
{
	struct json j = json_to(out, false);
	json_object(&j, NULL);
	json_text(&j, "name", spec->name);
	json_text(&j, "description", spec->description);
	json_raw(&j, "arguments", spec->arguments ? spec->arguments : "{}");
	json_texts(&j, "requires", &spec->requires);
	json_end(&j);
	json_finish(&j);
}

/* ---- skeletons ---- */

static const char *quoted(struct arena *arena, const char *text)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	buf_quoted(&out, str_from(text));
	return arena_bytes(arena, out.data, out.len);
}

void tool_spec_skeleton(
	const struct tool_spec *spec, struct arena *arena, struct tool_source *source)
{
	const char *arguments = spec->arguments ? spec->arguments : "{}", *names = "";
	struct json_value *value = NULL;
	struct error err;
	if (!json_read(str_from(arguments), arena, &value, &err))
		for (const struct json_value *one = value->first; one; one = one->next)
			names = arena_printf(
				arena, "%s%s%s", names, names[0] ? ", " : "", one->key.data);
	/* A JSON text is a Python literal too. */
	source->name = spec->name;
	source->code =
		arena_printf(arena, "%s\n\n\ndef run(%s):\n    raise NotImplementedError(\"%s\")\n",
			quoted(arena, spec->description ? spec->description : spec->name), names,
			spec->name);
	source->tests = arena_printf(arena,
		"import json\n\nimport tool\n\nARGUMENTS = json.loads(%s)\n\n\ndef "
		"test_the_result_is_json():\n    json.dumps(tool.run(**ARGUMENTS), "
		"allow_nan=False)\n",
		quoted(arena, arguments));
	source->requires = spec->requires;
	source->is_generated = false;
}

int tool_read_requires(struct str text, struct arena *arena, text_list *requires, struct error *err)
{
	text_list read = { 0 };
	int line = 0;
	while (text.len) {
		const char *end = memchr(text.data, '\n', text.len);
		size_t len = end ? (size_t)(end - text.data) : text.len;
		struct str one = { text.data, len };
		const char *comment = memmem(one.data, one.len, "#", 1), *reason;
		struct pep508 parsed;
		line++;
		if (comment)
			one.len = (size_t)(comment - one.data);
		one = str_trim(one);
		text.data += len + (end != NULL);
		text.len -= len + (end != NULL);
		if (!one.len)
			continue;
		if (!pep508_parse(one, &parsed, &reason))
			return fail(err, ERR_INVALID, "line %d: '%.*s' is not a requirement: %s",
				line, one.len > 128 ? 128 : (int)one.len, one.data, reason);
		if (read.count == TOOL_REQUIRES_MAX)
			return fail(err, ERR_LIMIT, "more than %d requirements", TOOL_REQUIRES_MAX);
		vec_push(arena, &read, arena_bytes(arena, one.data, one.len));
	}
	*requires = read;
	return 0;
}

/* ---- settings ---- */

#define AT(member) offsetof(struct tool_settings, member)
static const struct field settings_rows[] = {
	ROW(TEXTS, generator, .most = WORDS_MAX),
	ROW(TEXTS, domains, .most = WORKSPACE_HOSTS_MAX),
	{ "timeout", FIELD_DURATION, AT(timeout_ms), .most = WORKSPACE_TIME_MOST },
};
#undef AT
const struct record tool_settings_record = { "ToolSettings", NULL, RECORD_ROWS(settings_rows),
	FIELD_KEPT };
