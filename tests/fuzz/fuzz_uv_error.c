/* What uv says: whatever it is, a code, and short texts of one line that are safe to show. */
#include <string.h>
#include "format/packages/uv_error.h"
#include "fuzz.h"

static void check_text(const char *text, size_t max)
{
	size_t len = strlen(text);

	check(len > 0 && len < max && str_utf8_prefix(text, len) == len);
	for (size_t i = 0; i < len; i++)
		check((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct uv_error out;

	arena_init(&arena);
	uv_error_classify((struct str){ (const char *)data, size }, &arena, &out);
	check(out.failure >= 0 && out.failure < BUILD_FAILURE_COUNT);
	check_text(out.message, 512);
	if (out.suggestion)
		check_text(out.suggestion, 256);
	if (out.package)
		check_text(out.package, 256);
	check(!out.needs_build || out.needs_build == out.package);
	return 0;
}
