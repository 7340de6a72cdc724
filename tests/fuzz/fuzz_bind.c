/* -v SRC:DST[:ro]: what is accepted has a source, and a target that is absolute, plain, and outside
 * /proc, /dev and /sys. */
#include <string.h>
#include "base/arena.h"
#include "base/path.h"
#include "fuzz.h"
#include "sandbox/plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct plan_bind bind = { 0 };
	struct error err = { 0 };

	arena_init(&arena);
	char *text = arena_bytes(&arena, (const char *)data, size);
	if (plan_parse_bind(text, &arena, &bind, &err)) {
		check(err.code == ERR_INVALID && err.text[0] && !strchr(err.text, '\n'));
		check(!bind.source && !bind.target);
		return 0;
	}
	check(bind.source[0] && path_is_normal(bind.target) && strcmp(bind.target, "/"));
	check(!path_is_beneath(bind.target, "/proc") && !path_is_beneath(bind.target, "/dev"));
	check(strlen(bind.source) + strlen(bind.target) < strlen(text));
	return 0;
}
