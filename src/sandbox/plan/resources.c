/* What programs inside find when they ask how much memory and how many cpus there are. */
#include "sandbox/plan/plan.h"

#define PERIOD_US 100000
#define USED_BYTES (4ull << 20) /* of a sandbox in which nothing runs; 0 is taken for an error */

static unsigned count_cpus(uint64_t millicpus)
{
	return (unsigned)((millicpus + 999) / 1000);
}

void plan_limit_env(const struct limits *limits, bool ptrace, struct arena *arena, text_list *env)
{
	/* How many threads a library starts: each asks in its own way, and few ask for a quota. */
	static const char *const threads[] = { "OMP_NUM_THREADS", "GOMAXPROCS",
		"LOKY_MAX_CPU_COUNT", "POLARS_MAX_THREADS", "PYTHON_CPU_COUNT",
		"RAYON_NUM_THREADS" };
	/* Looking for leaks stops the own process by ptrace. */
	if (!ptrace)
		vec_push(arena, env, "ASAN_OPTIONS=detect_leaks=0");
	/* Soft limit, above which the collector works harder; a tenth is reserved for memory
	 * outside its heap. */
	vec_push(arena, env,
		arena_printf(arena, "GOMEMLIMIT=%llu",
			(unsigned long long)(limits->memory_bytes / 10 * 9)));
	for (size_t i = 0; limits->millicpus && i < sizeof threads / sizeof *threads; i++)
		vec_push(arena, env,
			arena_printf(arena, "%s=%u", threads[i], count_cpus(limits->millicpus)));
}

static const char *number(struct arena *arena, uint64_t value)
{
	return arena_printf(arena, "%llu\n", (unsigned long long)value);
}

/* "0-3": the first `count` cpus. */
static const char *cpu_list(struct arena *arena, unsigned count)
{
	return count > 1 ? arena_printf(arena, "0-%u\n", count - 1) : "0\n";
}

/* As the kernel writes it; what programs read of it. */
static const char *meminfo(struct arena *arena, uint64_t memory_bytes)
{
	unsigned long long total = memory_bytes >> 10, unused = (memory_bytes - USED_BYTES) >> 10;
	return arena_printf(arena,
		"MemTotal:       %8llu kB\nMemFree:        %8llu kB\nMemAvailable:   %8llu kB\n"
		"Buffers:               0 kB\nCached:                0 kB\n"
		"SwapCached:            0 kB\nActive:                0 kB\n"
		"Inactive:              0 kB\nSwapTotal:             0 kB\n"
		"SwapFree:              0 kB\nShmem:                 0 kB\n"
		"Slab:                  0 kB\nSReclaimable:          0 kB\n"
		"CommitLimit:    %8llu kB\nCommitted_AS:          0 kB\n",
		total, unused, unused, total);
}

/* One hierarchy for all controllers, whatever the host has: that is what the files below
 * PLAN_CGROUP look like. */
static const char cgroups[] = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
			      "cpuset\t0\t1\t1\ncpu\t0\t1\t1\ncpuacct\t0\t1\t1\n"
			      "memory\t0\t1\t1\npids\t0\t1\t1\n";

void plan_add_views(const struct plan_facts *facts, struct arena *arena, struct plan *plan)
{
	const struct limits *limits = &plan->limits;
	uint64_t memory = limits->memory_bytes;
	if (facts->memory_bytes && facts->memory_bytes < memory)
		memory = facts->memory_bytes;
	unsigned all = facts->cpus, usable = facts->usable_cpus;
	unsigned cpus = limits->millicpus ? count_cpus(limits->millicpus) : usable;
	uint64_t quota_us = limits->millicpus * (PERIOD_US / 1000);
	const char *online = cpu_list(arena, cpus < usable ? cpus : usable);
	const struct plan_view views[] = {
		{ "/proc/meminfo", meminfo(arena, memory) },
		{ "/proc/cgroups", cgroups },
		{ PLAN_SYS "/devices/system/cpu/online", online },
		/* How large an array by cpu number has to be: a quota doesn't change which cpus a
		 * thread runs on. */
		{ PLAN_SYS "/devices/system/cpu/possible", cpu_list(arena, all) },
		{ PLAN_CGROUP "/cgroup.controllers", "cpuset cpu memory pids\n" },
		{ PLAN_CGROUP "/cpu.max", limits->millicpus
						  ? arena_printf(arena, "%llu %d\n",
							    (unsigned long long)quota_us, PERIOD_US)
						  : "max 100000\n" },
		{ PLAN_CGROUP "/memory.current", number(arena, USED_BYTES) },
		{ PLAN_CGROUP "/memory.max", number(arena, memory) },
		{ PLAN_CGROUP "/memory.swap.max", "0\n" },
		{ PLAN_CGROUP "/pids.max", number(arena, limits->pids) },
		/* For programs that know the first version of control groups only. */
		{ PLAN_CGROUP "/cpu/cpu.cfs_period_us", "100000\n" },
		{ PLAN_CGROUP "/cpu/cpu.cfs_quota_us",
			limits->millicpus ? number(arena, quota_us) : "-1\n" },
		{ PLAN_CGROUP "/memory/memory.limit_in_bytes", number(arena, memory) },
	};
	for (size_t i = 0; i < sizeof views / sizeof *views; i++)
		vec_push(arena, &plan->views, views[i]);
	plan->has_unified = facts->has_unified;
}
