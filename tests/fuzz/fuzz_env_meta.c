/* meta.json: damage is an error with a name; what is read and printed reads as the same. */
#include <string.h>
#include "model/nouns/environment.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf once = { 0 }, twice = { 0 };
	struct env_meta meta = { .name = "untouched" };
	struct error err = { 0 };

	if (env_meta_parse((struct str){ (const char *)data, size }, &arena, &meta, &err) < 0) {
		check(err.code == ERR_CORRUPT && err.text[0] &&
			strcmp(meta.name, "untouched") == 0);
		return 0;
	}
	check(env_name_is_valid(meta.name) && env_package_id_is_valid(meta.package_id));
	for (size_t i = 0; i < meta.layers.count; i++)
		check(strlen(meta.layers.items[i]) == 64 && !strchr(meta.layers.items[i], '/'));
	buf_init(&once, BUF_MAX_DEFAULT);
	buf_init(&twice, BUF_MAX_DEFAULT);
	env_meta_print(&meta, &once);
	check(once.len > ENV_META_USE_LEN && once.data[ENV_META_USE_LEN - 1] == ',');
	check(env_meta_parse((struct str){ once.data, once.len }, &arena, &meta, &err) == 0);
	env_meta_print(&meta, &twice);
	check(strcmp(once.data, twice.data) == 0);
	return 0;
}
