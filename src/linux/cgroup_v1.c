#include <fcntl.h>

#include "linux/cgroup_internal.h"

static int limit_memory(int dir, uint64_t bytes, struct error *err)
{
	char text[24];
	str_format(text, sizeof text, "%llu", (unsigned long long)cgroup_round_memory(bytes));
	if (cgroup_set(dir, "memory.limit_in_bytes", text, err) < 0)
		return -1;
	/* memsw holds memory and swap together (not there when the kernel doesn't count swap);
	 * swappiness 0 keeps the pages of the group from being swapped out at all. */
	if (cgroup_try_set(dir, "memory.memsw.limit_in_bytes", text, err) < 0)
		return -1;
	/* Buffers of sockets are counted apart on v1, and not at all by default. The kernel gives
	 * each socket a first one all the same: cgroup_socket_bytes tells. */
	str_format(text, sizeof text, "%llu", (unsigned long long)cgroup_round_memory(bytes / 2));
	if (cgroup_try_set(dir, "memory.kmem.tcp.limit_in_bytes", text, err) < 0)
		return -1;
	return cgroup_set(dir, "memory.swappiness", "0", err);
}

static int limit_cpu(int dir, uint64_t millicpus, struct error *err)
{
	uint64_t quota_us, period_us;
	cgroup_cpu_quota(millicpus, &quota_us, &period_us);
	if (cgroup_set_number(dir, "cpu.cfs_period_us", period_us, err) < 0)
		return -1;
	return cgroup_set_number(dir, "cpu.cfs_quota_us", quota_us, err);
}

int cgroup_v1_place(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err)
{
	/* Also without a limit: the sweep looks for memory groups only. */
	if (cgroup_add_dir(group, host->memory, "memory", &group->memory, err) < 0 ||
		(want->millicpus && cgroup_add_dir(group, host->cpu, "cpu", &group->cpu, err) < 0))
		return -1;
	return want->count_cpu
		       ? cgroup_add_dir(group, host->cpuacct, "cpuacct", &group->cpuacct, err)
		       : 0;
}

int cgroup_v1_limit(const struct cgroup_want *want, struct cgroup *group, struct error *err)
{
	if (want->memory_bytes &&
		limit_memory(group->dirs[group->memory], want->memory_bytes, err) < 0)
		return -1;
	if (want->millicpus && limit_cpu(group->dirs[group->cpu], want->millicpus, err) < 0)
		return -1;
	for (int i = 0; i < group->dir_count; i++) {
		if (group->enter[i] >= 0)
			continue;
		group->enter[i] = openat(group->dirs[i], "tasks", O_WRONLY | O_CLOEXEC);
		if (group->enter[i] < 0)
			return fail_errno(
				err, "open '%s/%s/tasks'", group->parents[i], group->name);
	}
	return 0;
}
