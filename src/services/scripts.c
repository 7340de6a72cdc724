#include "services/scripts.h"

static const char keep[] = {
#include "services/script_keep.inc"
};
static const char tests_of[] = {
#include "services/script_tests.inc"
};
static const char call_of[] = {
#include "services/script_call.inc"
};
static const char package[] = {
#include "services/script_package.inc"
};
static const char package_tests[] = {
#include "services/script_package_tests.inc"
};
const struct str script_package_tests = { package_tests, sizeof package_tests };

const char *script_package(struct arena *arena, const char *name)
{
	static const char mark[] = "@PACKAGE@";
	const size_t size = sizeof package, mark_len = sizeof mark - 1;
	const char *at = memmem(package, size, mark, mark_len);
	if (!at)
		abort(); /* a script without its mark */
	size_t before = (size_t)(at - package);
	return arena_printf(arena, "%s%s%s", arena_bytes(arena, package, before), name,
		arena_bytes(arena, at + mark_len, size - before - mark_len));
}

/* The script, then a call of one of its functions with these texts. */
static void make(struct arena *arena, struct str script, const char *function,
	const char *const *arguments, struct exec_spec *spec)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	buf_append(&out, keep, sizeof keep);
	buf_append(&out, script.data, script.len);
	buf_printf(&out, "\n%s(", function);
	for (size_t i = 0; arguments[i]; i++) {
		buf_text(&out, i ? ", \"" : "\"");
		buf_base64(&out, arguments[i], strlen(arguments[i]));
		buf_char(&out, '"');
	}
	buf_text(&out, ")\n");
	if (out.overflow)
		abort(); /* all of it has a maximum that is less */
	spec->stdin_text.data = arena_bytes(arena, out.data, out.len);
	spec->stdin_text.len = out.len;
	spec->has_stdin_text = true;
}

static const char *isolated[] = { "python3", "-I", "-B", "-", NULL };
/* With the variables that the client has given. */
static const char *plain[] = { "python3", "-", NULL };

void script_test_tool(
	struct arena *arena, const char *code, const char *tests, struct exec_spec *spec)
{
	const char *const texts[] = { code, tests, NULL };
	spec->argv = (text_list){ isolated, 4, 4 };
	make(arena, (struct str){ tests_of, sizeof tests_of }, "test_tool", texts, spec);
}

void script_test_code(struct arena *arena, const char *file, struct exec_spec *spec)
{
	const char *const texts[] = { file, NULL };
	spec->argv = (text_list){ plain, 2, 2 };
	make(arena, (struct str){ tests_of, sizeof tests_of }, "test_code", texts, spec);
}

void script_call(struct arena *arena, const char *mark, const char *code, const char *arguments,
	struct exec_spec *spec)
{
	const char *const texts[] = { mark, code, arguments, NULL };
	spec->argv = (text_list){ isolated, 4, 4 };
	make(arena, (struct str){ call_of, sizeof call_of }, "main", texts, spec);
}
