#include "sandbox/isolation.h"

#include <signal.h>
#include <string.h>

/* carrel-init is PID 1 of its namespace: the kernel takes the rest along. */
static void kill_init(pid_t pid)
{
	kill(pid, SIGKILL);
}

static const struct isolation backends[] = {
	{ "native", warm_want_cgroup, warm_begin, warm_hear, warm_find, kill_init, sandbox_run },
};

int isolation_find(const char *name, const struct isolation **isolation, struct error *err)
{
	for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
		if (!strcmp(backends[i].name, name)) {
			*isolation = &backends[i];
			return 0;
		}
	return fail_hint(err, ERR_UNAVAILABLE, "leave it out, or use --isolation native",
		"--isolation %s is not available in this version", name);
}

int isolation_run(const struct plan *plan, const struct cgroup_host *cgroups, struct sandbox_io *io,
	struct result *result, struct error *err)
{
	const struct isolation *isolation;
	if (isolation_find(plan->isolation, &isolation, err))
		return -1;
	return isolation->run(plan, cgroups, io, result, err);
}
