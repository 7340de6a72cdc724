/* Paths made normal: absolute, without "." and "..", the same when done twice or in two steps.
 * Input: base NUL path. */
#include <string.h>
#include "base/arena.h"
#include "base/path.h"
#include "base/str.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct str input = { (const char *)data, size }, first, second;

	arena_init(&arena);
	str_cut(input, '\0', &first, &second);
	char *base = path_normalize(&arena, "/", arena_bytes(&arena, first.data, first.len));
	char *path = arena_bytes(&arena, second.data, second.len);
	char *normal = path_normalize(&arena, base, path);

	check(path_is_normal(normal) || strlen(normal) > 4095);
	check(path_is_beneath(normal, "/") && path_is_beneath(normal, normal));
	check(strlen(normal) <= strlen(base) + strlen(path) + 1);
	check(strcmp(path_normalize(&arena, "/", normal), normal) == 0);
	/* Against a base is the same as written behind it. */
	if (!path_is_absolute(path))
		check(strcmp(path_normalize(&arena, "/", arena_printf(&arena, "%s/%s", base, path)),
			      normal) == 0);
	/* Without ".." nothing leaves the base. */
	if (!path_is_absolute(path) && !strstr(path, ".."))
		check(path_is_beneath(normal, base));
	check(strchr(path_basename(normal), '/') == NULL);
	return 0;
}
