/* Manifests: what parses prints to the same bytes, is sorted, and has plain paths only. */
#include <string.h>
#include "base/str.h"
#include "trees/layers/manifest.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	auto_buf struct buf out;
	struct manifest m = { 0 };
	struct error err = { 0 };
	struct str text = { (const char *)data, size };

	arena_init(&arena);
	buf_init(&out, MANIFEST_MAX);
	if (manifest_parse(text, &arena, &m, &err)) {
		check(err.code == ERR_CORRUPT && err.text[0] && !strchr(err.text, '\n'));
		check(!m.kind && !m.entries.items);
		return 0;
	}
	check(manifest_is_named(m.kind, m.name, m.version));
	for (size_t i = 0; i < m.entries.count; i++) {
		const struct manifest_entry *entry = &m.entries.items[i];

		check(i == 0 || strcmp(entry[-1].path, entry->path) < 0);
		check(entry->path[0] && entry->path[0] != '/' && !strstr(entry->path, "//"));
		check(strlen(entry->path) <= MANIFEST_PATH_MAX);
		check(!strstr(entry->path, "/../") && strncmp(entry->path, "../", 3) != 0);
		check((entry->kind == MANIFEST_LINK) == (entry->target != NULL));
		check(entry->kind == MANIFEST_LINK ? !entry->mode
						   : entry->mode == 0755 || entry->mode == 0644);
	}
	manifest_print(&m, &out);
	check(str_equal((struct str){ out.data, out.len }, text));
	return 0;
}
