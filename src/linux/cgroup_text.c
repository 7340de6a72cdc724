#include <unistd.h>

#include "format/text/procfs.h"
#include "linux/cgroup_internal.h"

/* The own group's path goes into `own` until the mount is known. */
static void set_own(struct cgroup_place *place, struct str path)
{
	place->is_known =
		str_format(place->own, sizeof place->own, "%.*s", (int)path.len, path.data);
}

/* "4:memory:/a/b", "3:cpu,cpuacct:/", "0::/a" */
void cgroup_add_own(struct cgroup_places *places, struct str line)
{
	struct procfs_cgroup own;
	if (!procfs_next_cgroup(&line, &own))
		return;
	if (str_is(own.hierarchy, "0"))
		set_own(&places->unified, own.path);
	if (procfs_has_word(own.controllers, "memory"))
		set_own(&places->memory, own.path);
	if (procfs_has_word(own.controllers, "cpu"))
		set_own(&places->cpu, own.path);
	if (procfs_has_word(own.controllers, "cpuacct"))
		set_own(&places->cpuacct, own.path);
}

/* What of `path` is below `root`; false when it is elsewhere. "/../x" is outside of the cgroup
 * namespace. */
static bool path_below(struct str path, struct str root, struct str *below)
{
	if (str_starts_with(path, "/..") || str_starts_with(root, "/.."))
		return false;
	if (str_is(root, "/"))
		root.len = 0;
	if (path.len < root.len || memcmp(path.data, root.data, root.len) != 0)
		return false;
	*below = (struct str){ path.data + root.len, path.len - root.len };
	if (str_is(*below, "/"))
		below->len = 0;
	return below->len == 0 || below->data[0] == '/';
}

void cgroup_set_mount(struct cgroup_place *place, struct str root, struct str point)
{
	char own[CGROUP_PATH_MAX];
	struct str below;
	if (!place->is_known || place->is_inside)
		return;
	place->is_mounted = true;
	if (!path_below(str_from(place->own), root, &below))
		return;
	/* A path that is too long is treated as unreachable. */
	if (!str_format(place->top, sizeof place->top, "%.*s", (int)point.len, point.data) ||
		!str_format(own, sizeof own, "%s%.*s", place->top, (int)below.len, below.data))
		return;
	str_copy(place->own, sizeof place->own, own);
	place->is_inside = true;
	place->is_top = below.len == 0;
}

void cgroup_add_mount(struct cgroup_places *places, struct str line)
{
	struct procfs_mount mount;
	if (!procfs_next_mount(&line, &mount) || !str_starts_with(mount.type, "cgroup"))
		return;
	/* Ignore mount points with escaped characters: cgroups aren't mounted there. */
	if (mount.target.len > 0 && memchr(mount.target.data, '\\', mount.target.len))
		return;
	if (str_is(mount.type, "cgroup2")) {
		cgroup_set_mount(&places->unified, mount.root, mount.target);
		return;
	}
	if (procfs_has_word(mount.super_options, "memory"))
		cgroup_set_mount(&places->memory, mount.root, mount.target);
	if (procfs_has_word(mount.super_options, "cpu"))
		cgroup_set_mount(&places->cpu, mount.root, mount.target);
	if (procfs_has_word(mount.super_options, "cpuacct"))
		cgroup_set_mount(&places->cpuacct, mount.root, mount.target);
}

bool cgroup_has_all(const struct cgroup_places *places)
{
	const struct cgroup_place *v1[] = { &places->memory, &places->cpu, &places->cpuacct };
	if (!places->memory.is_known)
		return places->unified.is_inside || !places->unified.is_known;
	for (int i = 0; i < 3; i++)
		if (v1[i]->is_known && !v1[i]->is_inside)
			return false;
	return true;
}

bool cgroup_parse_name(struct str name, struct cgroup_maker *maker)
{
	struct str prefix, pid, ticks, pidns;
	uint64_t number;
	return str_cut(name, '-', &prefix, &name) && str_is(prefix, "carrel") &&
	       str_cut(name, '-', &pid, &name) && str_cut(name, '-', &ticks, &name) &&
	       str_cut(name, '-', &pidns, &name) && str_to_u64(pid, &maker->pid) &&
	       str_to_u64(ticks, &maker->ticks) && str_to_u64(pidns, &maker->pidns) &&
	       str_to_u64(name, &number);
}

uint64_t cgroup_round_memory(uint64_t bytes)
{
	const uint64_t most = (uint64_t)1 << 62;
	return (bytes < most ? bytes : most) & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

void cgroup_cpu_quota(uint64_t millicpus, uint64_t *quota_us, uint64_t *period_us)
{
	/* The kernel wants a quota of at least 1 ms: a hundredth of the usual period. */
	*period_us = millicpus < 10 ? 1000000 : 100000;
	*quota_us = millicpus * (*period_us / 1000);
}
