#include "cli/run/run_weak.h"

#include <unistd.h>
#include "base/id.h"
#include "base/str.h"
#include "linux/landlock.h"
#include "linux/probe.h"
#include "sandbox/plan/weak.h"

bool run_weak_is_asked(const struct options *run)
{
	return run->isolation && !strcmp(run->isolation, PLAN_ISOLATION_LANDLOCK);
}

int run_weak_check(const struct options *run, struct error *err)
{
	const struct {
		bool is_given;
		const char *option;
	} rows[] = {
		{ run->template != NULL, "--template" },
		{ run->environment != NULL, "--env" },
		{ env_request_asks(&run->env, ENV_KIND_PYTHON),
			"a Python environment (-r, --pip, --python)" },
		{ env_request_asks(&run->env, ENV_KIND_NODE),
			"a Node environment (--npm, --node)" },
		{ run->binds.count, "-v" },
		{ run->attach.count, "--attach" },
		{ plan_view_is_root(workspace_view_find(run->view)), "--view root" },
		{ run->net && strcmp(run->net, "none") != 0, "--net" },
		{ run->allow_domains.count, "--allow-domain" },
		{ run->deny_domains.count, "--deny-domain" },
		{ run->review, "--review" },
		{ run->ptrace, "--ptrace" },
		{ run->limits.disk_bytes, "--disk" },
		{ run->limits.tmp_bytes, "--tmp" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].is_given)
			return fail_hint(err, ERR_INVALID, "leave one of the two out",
				"%s needs namespaces, which --isolation landlock does without",
				rows[i].option);
	return 0;
}

int run_weak_plan(const struct options *run, const struct plan_options *options,
	const struct host *host, struct arena *arena, struct plan *plan, struct error *err)
{
	char id[ID_LEN + 1];
	id_make(id);
	const struct plan_weak weak = { .scratch = arena_printf(arena, "/tmp/carrel-%s", id),
		.cwd = run->cwd,
		.tasks = host_count_tasks(host) };
	return plan_weaken(options, &host->facts, &weak, arena, plan, err);
}

void run_weak_say(const struct plan *plan)
{
	if (plan->streams[1] != STREAM_CAPTURED)
		cli_say("warning: --isolation landlock has no namespaces: the command is confined "
			"by Landlock, seccomp and limits alone");
}

void run_weak_hint(struct error *err)
{
	struct probe userns, proc;
	const struct probe_ids ids = { geteuid(), getegid() };
	char before[ERROR_HINT_SIZE];
	if (err->code != ERR_UNAVAILABLE || landlock_abi() < 1)
		return;
	probe_user_namespace(&ids, &userns);
	if (!userns.error)
		probe_fresh_proc(&ids, &proc);
	if (!userns.error && !proc.error)
		return;
	str_copy(before, sizeof before, err->hint);
	if (before[0])
		error_hint(err, "%s; or, with less isolation: --isolation landlock", before);
	else
		error_hint(err, "with less isolation: --isolation landlock");
}
