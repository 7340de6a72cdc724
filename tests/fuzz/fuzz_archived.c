/* Entries of archives: what is let in lies beneath the root, clean, and leads nowhere else. */
#include <string.h>
#include "base/str.h"
#include "format/archives/archived.h"
#include "fuzz.h"

static size_t count_parts(const char *path, bool *is_clean)
{
	struct str rest = str_from(path), part;
	size_t count = 0;

	*is_clean = path[0] != '/' && (path[0] == '\0' || path[strlen(path) - 1] != '/');
	while (str_next(&rest, '/', &part)) {
		count++;
		if (part.len == 0 || part.len > NAME_MAX || str_is(part, ".") || str_is(part, ".."))
			*is_clean = false;
	}
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[8192], target[8192], attribute[256];
	static struct archived_place place;
	struct error err = { 0 };
	bool is_clean;

	if (size < 3 || size > 8000)
		return 0;
	struct tar_entry entry = { .kind = data[0] % 5,
		.mode = (unsigned)(data[1] << 8 | data[2]) };
	struct str text = { (const char *)data + 3, size - 3 }, first, second;
	str_cut(text, '\n', &first, &second);
	str_format(name, sizeof name, "%.*s", (int)first.len, first.data);
	str_format(target, sizeof target, "%.*s", (int)second.len, second.data);
	entry.name = name;
	entry.link = target;
	str_copy(attribute, sizeof attribute, target);
	if (archived_judge_attribute(name, attribute, &err) == 0)
		check(strncmp(attribute, "security.", 9) != 0);
	if (archived_judge(&entry, ARCHIVED_DEPTH_MAX, &place, &err) < 0) {
		check(err.code == ERR_DENIED || err.code == ERR_INVALID || err.code == ERR_LIMIT);
		return 0;
	}
	size_t depth = count_parts(place.path, &is_clean);
	check(is_clean && depth <= ARCHIVED_DEPTH_MAX && !(place.mode & ~0777u));
	check(entry.kind != TAR_OTHER && (depth > 0 || entry.kind == TAR_DIRECTORY));
	if (entry.kind == TAR_HARDLINK)
		check(count_parts(place.target, &is_clean) > 0 && is_clean);
	if (entry.kind == TAR_SYMLINK)
		check(target[0] && strcmp(place.target, target) == 0);
	return 0;
}
