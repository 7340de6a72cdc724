#include "sandbox/native/isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include "base/fd.h"
#include "sandbox/native/start.h"
#include "sandbox/native/weak.h"

static int native_start(const struct warm_host *host, const struct warm_start *given, pid_t *pid,
	int *setup, struct error *err)
{
	struct start start;
	auto_close int ours = -1;
	auto_close int pidfd = -1;
	pid_t child;
	start_init(&start, given->plan, host->cgroups, given->cgroup);
	start.listener = given->listener;
	start.netns = given->netns;
	start.idmap = (struct start_idmap){ given->idmap, given->owner_uid, given->owner_gid,
		.is_borrowed = given->idmap >= 0 };
	start.own_netns = host->own_netns;
	start.mounts = host->mounts;
	start.own_mounts = host->own_mounts;
	start.has_root = given->has_root;
	start.parent = host->self;
	start.init_image = host->init_image;
	int failed = start_prepare(&start, err) || start_clone(&start, &ours, &pidfd, &child, err);
	if (!failed && start_let_go(&start, ours, child, err))
		failed = start_abandon(given->plan, child, ours, err);
	start_done(&start);
	if (failed)
		return -1;
	*pid = child;
	*setup = take_fd(&ours);
	return 0;
}

static int native_receive(int setup, int fds[WARM_FD_MAX], struct error *err)
{
	_Static_assert((int)WARM_PROC == SETUP_PROC && (int)WARM_ROOT == SETUP_ROOT &&
			       (int)WARM_WORKSPACE == SETUP_WORKSPACE,
		"the same places");
	struct setup_message message = { 0 };
	int came[SETUP_FD_MAX];
	int got = setup_receive(setup, false, &message, came);
	if (got < 0 && errno == EAGAIN)
		return 0;
	bool is_up = got == 1 && message.type == SETUP_DESCRIPTORS;
	for (int i = 0; is_up && i < WARM_FD_MAX; i++)
		fds[i] = take_fd(&came[i]);
	setup_close(came);
	if (is_up)
		return 1;
	if (got == 1 && message.type == SETUP_FAILED) {
		*err = message.error;
		return error_adopt(err);
	}
	if (got == 0)
		return fail(err, ERR_CANCELED, "the sandbox was killed while it started");
	return fail_errno(err, "receive from the sandbox");
}

static int native_find(pid_t pid, int fds[WARM_FD_MAX], struct error *err)
{
	int failed = start_find(pid, PLAN_WORKSPACE, fds, err);
	if (failed >= 0)
		return failed;
	/* View root has none, or anything of that name. */
	failed = start_find(pid, PLAN_ROOT, fds, err);
	if (failed)
		return failed;
	auto_close int tmp = take_fd(&fds[WARM_ROOT]);
	fds[WARM_ROOT] = fcntl(fds[WARM_WORKSPACE], F_DUPFD_CLOEXEC, 3);
	return fds[WARM_ROOT] < 0 ? fail_errno(err, "keep the root open") : 0;
}

/* carrel-init is PID 1 of its namespace: the kernel takes the rest along. */
static void native_end(pid_t pid)
{
	kill(pid, SIGKILL);
}

/* Nothing that stays: a workspace is mounts. */
static int weak_start(const struct warm_host *host, const struct warm_start *given, pid_t *pid,
	int *setup, struct error *err)
{
	return fail(err, ERR_UNAVAILABLE, "--isolation landlock is for carrel run alone");
}

static const struct isolation backends[] = {
	{ "native", start_want_cgroup, native_start, native_receive, native_find, native_end,
		sandbox_run },
	{ PLAN_ISOLATION_LANDLOCK, start_want_cgroup, weak_start, native_receive, native_find,
		native_end, weak_run },
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
	const struct isolation *isolation = NULL;
	if (isolation_find(plan->isolation, &isolation, err))
		return -1;
	return isolation->run(plan, cgroups, io, result, err);
}
