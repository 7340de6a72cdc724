/* package.json and locks of Node: what is kept of a package.json is taken again as it is; a package
 * of a lock has a name, a version and a SHA-512. */
#include <string.h>
#include "format/packages/node_package.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct str text = { (const char *)data, size }, kept, again;
	struct error err = { 0 };
	node_specs specs = { 0 }, same = { 0 };
	node_lock lock = { 0 };
	const char *package;
	bool is_npm;

	arena_init(&arena);
	if (package_json_read(text, &arena, &specs, &kept, &package, &err) == 0) {
		check(package_json_read(kept, &arena, &same, &again, &package, &err) == 0);
		check(same.count == specs.count && str_equal(kept, again));
		for (size_t i = 0; i < specs.count; i++)
			check(node_name_is_valid(specs.items[i].name));
	}
	if (node_lock_read(text, &arena, &lock, &is_npm, &package, &err) == 0)
		for (size_t i = 0; i < lock.count; i++)
			check(node_name_is_valid(lock.items[i].name) && lock.items[i].version[0] &&
				strncmp(lock.items[i].integrity, "sha512-", 7) == 0);
	return 0;
}
