/* Configurations of git: entries with texts of their own, or an error of one line. */
#include <string.h>
#include "fuzz.h"
#include "policy/readers/git_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct error err = { 0 };
	git_entries entries = { 0 };
	size_t total = 0;

	arena_init(&arena);
	if (git_config_parse((struct str){ (const char *)data, size }, &arena, &entries, &err) <
		0) {
		check(entries.count == 0 && (err.code == ERR_INVALID || err.code == ERR_LIMIT));
		return 0;
	}
	for (size_t i = 0; i < entries.count; i++) {
		const struct git_entry *entry = &entries.items[i];

		check(entry->section[0] && entry->key[0]);
		total += strlen(entry->key) + strlen(entry->value);
	}
	check(total <= size);
	return 0;
}
