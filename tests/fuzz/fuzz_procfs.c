/* The kernel's text files: whatever is in them, every view lies inside the text and every walk
 * ends. */
#include <string.h>
#include "format/text/procfs.h"
#include "fuzz.h"

static struct str text;

static void check_view(struct str view)
{
	check(view.len <= text.len);
	check(view.len == 0 ||
		(view.data >= text.data && view.data + view.len <= text.data + text.len));
	/* No field runs over the end of its line. */
	check(view.len == 0 || !memchr(view.data, '\n', view.len));
}

static void walk_mounts(void)
{
	struct procfs_mount mount;

	for (struct str rest = text; procfs_next_mount(&rest, &mount);) {
		check_view(mount.root);
		check_view(mount.target);
		check_view(mount.options);
		check_view(mount.type);
		check_view(mount.source);
		check_view(mount.super_options);
		procfs_has_word(mount.options, "rw");
	}
}

static void find_keys(void)
{
	static const char *const keys[] = { "", "VmRSS", "RssAnon", "oom_kill", "usage_usec" };
	uint64_t value;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		procfs_find_kb(text, keys[i], &value);
		procfs_find_number(text, keys[i], &value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct procfs_stat stat;
	struct procfs_cgroup cgroup;
	struct procfs_id_range range;

	text = (struct str){ (const char *)data, size };
	if (procfs_parse_stat(text, &stat))
		check(stat.pid >= 0 && stat.ppid >= 0);
	find_keys();
	walk_mounts();
	for (struct str rest = text; procfs_next_cgroup(&rest, &cgroup);) {
		check_view(cgroup.hierarchy);
		check_view(cgroup.controllers);
		check_view(cgroup.path);
	}
	for (struct str rest = text; procfs_next_id_range(&rest, &range);)
		;
	struct procfs_listener listener;
	for (struct str rest = text; procfs_next_listener(&rest, &listener);)
		check(listener.port > 0);
	return 0;
}
