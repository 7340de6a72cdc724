/* What programs inside find when they ask how much memory and how many cpus there are. */
#include "plan/plan.h"

static unsigned count_cpus(uint64_t millicpus)
{
	return (unsigned)((millicpus + 999) / 1000);
}

void plan_limit_env(const struct limits *limits, struct arena *arena, workspace_texts *env)
{
	/* How many threads a library starts: each asks in its own way, and few ask for a quota. */
	static const char *const threads[] = { "OMP_NUM_THREADS", "GOMAXPROCS",
		"LOKY_MAX_CPU_COUNT", "POLARS_MAX_THREADS", "PYTHON_CPU_COUNT",
		"RAYON_NUM_THREADS" };
	/* It stops its own process by ptrace, which a sandbox has not. */
	vec_push(arena, env, "ASAN_OPTIONS=detect_leaks=0");
	/* Soft: where the collector works harder. A tenth is left for what isn't its heap. */
	vec_push(arena, env,
		arena_printf(arena, "GOMEMLIMIT=%llu",
			(unsigned long long)(limits->memory_bytes / 10 * 9)));
	for (size_t i = 0; limits->millicpus && i < sizeof threads / sizeof *threads; i++)
		vec_push(arena, env,
			arena_printf(arena, "%s=%u", threads[i], count_cpus(limits->millicpus)));
}
