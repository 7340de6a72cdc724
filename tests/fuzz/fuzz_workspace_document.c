/* A workspace's document: damage is an error with a name; what is read and printed
 * reads as the same. */
#include <string.h>
#include "model/nouns/workspace.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf once, twice;
	struct workspace w = { 0 };
	struct error err = { 0 };

	buf_init(&once, BUF_MAX_DEFAULT);
	buf_init(&twice, BUF_MAX_DEFAULT);
	if (record_read_kept(&workspace_record, (struct str){ (const char *)data, size }, &arena,
		    &w, &err)) {
		check(err.code == ERR_CORRUPT && err.text[0] && !strchr(err.text, '\n'));
		return 0;
	}
	for (size_t i = 0; i < w.labels.count; i++)
		check(w.labels.items[i].key && w.labels.items[i].value);
	check(w.packages.items && !w.packages.items[w.packages.count]);
	check(w.limits.memory_bytes <= INT64_MAX && w.ttl_ms <= INT64_MAX);
	record_print_kept(&workspace_record, &w, &once);
	check(!record_read_kept(
		&workspace_record, (struct str){ once.data, once.len }, &arena, &w, &err));
	record_print_kept(&workspace_record, &w, &twice);
	check(!strcmp(once.data, twice.data));
	return 0;
}
