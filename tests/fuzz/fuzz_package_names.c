/* Files of projects: names, addresses and further files with texts of their own, or an error of one
 * line. The first byte says which kind of file it is. */
#include <string.h>
#include "fuzz.h"
#include "policy/readers/package_names.h"

static void check_texts(const text_list *texts, size_t size)
{
	for (size_t i = 0; i < texts->count; i++)
		check(texts->items[i][0] && strlen(texts->items[i]) <= size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct error err = { 0 };
	struct package_names names = { 0 };

	arena_init(&arena);
	if (!size)
		return 0;
	enum package_file kind = (enum package_file)((data[0] - 'a') & 0xff) % PACKAGE_FILE_COUNT;
	struct str text = { (const char *)data + 1, size - 1 };
	if (package_names_read(kind, text, &arena, &names, &err) < 0) {
		check(err.text[0]);
		check(!names.names.count && !names.urls.count && !names.unknown);
		return 0;
	}
	check_texts(&names.names, size);
	check_texts(&names.urls, size);
	check_texts(&names.remotes, size);
	check_texts(&names.files, size);
	return 0;
}
