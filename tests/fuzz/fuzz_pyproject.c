/* pyproject.toml and the pylock.toml of any tool: whatever is in them, an error of one line or
 * texts that are one line each. */
#include <string.h>
#include "format/packages/pylock.h"
#include "format/packages/pyproject.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	auto_arena struct arena arena;
	struct error err = { 0 };
	struct pyproject found = { 0 };
	requirement_lines lines = { 0 };
	text_list extras = { 0 }, groups = { 0 };

	arena_init(&arena);
	vec_push(&arena, &extras, "web");
	vec_push(&arena, &groups, "test");
	for (int i = 0; i < 2; i++) {
		if (pyproject_read(text, &extras, &groups, &arena, &found, &err) < 0)
			check(err.code == ERR_INVALID || err.code == ERR_LIMIT);
		for (size_t k = 0; k < found.dependencies.count; k++) {
			requirement_list list = { 0 };
			const struct requirement_line *line = &found.dependencies.items[k];

			check(line->line > 0);
			/* By its grammar it can't be an option, nor two requirements. */
			if (requirements_parse(str_from(line->text), &arena, &list, &err) == 0)
				check(list.count == 1 && !list.items[0].option);
		}
		found = (struct pyproject){ 0 };
		extras.count = groups.count = 0;
	}
	if (pylock_requirements(text, &arena, &lines, &err) < 0)
		check(lines.count == 0 && (err.code == ERR_INVALID || err.code == ERR_LIMIT));
	for (size_t i = 0; i < lines.count; i++)
		check(lines.items[i].line > 0 && strstr(lines.items[i].text, "--hash=sha256:"));
	return 0;
}
