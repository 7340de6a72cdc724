/* The texts about control groups: lines before the first empty one are /proc/self/cgroup, the rest
 * is mountinfo. A place that is inside of what is mounted lies below the mount point. */
#include <string.h>
#include "format/text/procfs.h"
#include "fuzz.h"
#include "linux/cgroup_internal.h"

static void check_place(const struct cgroup_place *place)
{
	check(memchr(place->own, '\0', sizeof place->own) != NULL);
	check(memchr(place->top, '\0', sizeof place->top) != NULL);
	if (!place->is_inside)
		return;
	check(place->is_known && place->is_mounted);
	check(strncmp(place->own, place->top, strlen(place->top)) == 0);
	check(!place->is_top || strcmp(place->own, place->top) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size }, rest = text, line;
	struct cgroup_places places = { 0 };
	struct procfs_stat stat;
	uint64_t value;
	struct cgroup_maker maker;
	bool is_mount = false;

	while (str_next(&rest, '\n', &line)) {
		if (line.len == 0)
			is_mount = true;
		else if (is_mount)
			cgroup_add_mount(&places, line);
		else
			cgroup_add_own(&places, line);
	}
	check_place(&places.memory);
	check_place(&places.cpu);
	check_place(&places.cpuacct);
	check_place(&places.unified);
	cgroup_has_all(&places);

	procfs_parse_stat(text, &stat);
	procfs_find_number(text, "oom_kill", &value);
	procfs_find_number(text, NULL, &value);
	if (cgroup_parse_name(text, &maker))
		check(str_starts_with(text, "carrel-"));
	return 0;
}
