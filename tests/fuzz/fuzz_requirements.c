/* Requirement files: whatever is in them, an error of one line or requirements that read back the
 * same from their own text. */
#include <string.h>
#include "format/packages/requirements.h"
#include "fuzz.h"

static void check_requirement(const struct requirement *r, struct arena *arena)
{
	requirement_list again = { 0 };
	struct error err;

	check(r->line > 0 && r->text[0] && r->specifier);
	check(!strchr(r->text, '\n'));
	check((r->kind == REQUIREMENT_OPTION || r->kind == REQUIREMENT_EDITABLE) == !!r->option);
	check(r->kind != REQUIREMENT_PACKAGE || requirement_name_is_valid(str_from(r->name)));
	for (size_t i = 0; i < r->hashes.count; i++)
		check(strncmp(r->hashes.items[i], "sha", 3) == 0);
	/* What we judged is what the next reader of the text gets. */
	check(requirements_parse(str_from(r->text), arena, &again, &err) == 0);
	check(again.count == 1 && again.items[0].kind == r->kind);
	check(strcmp(again.items[0].text, r->text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct error err = { 0 };
	requirement_list list = { 0 };

	arena_init(&arena);
	if (requirements_parse((struct str){ (const char *)data, size }, &arena, &list, &err) < 0) {
		check(list.count == 0 && (err.code == ERR_INVALID || err.code == ERR_LIMIT));
		check(err.text[0] && !strchr(err.text, '\n'));
		return 0;
	}
	for (size_t i = 0; i < list.count && i < 50; i++)
		check_requirement(&list.items[i], &arena);
	return 0;
}
