#include "sandbox/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include "base/fd.h"
#include "linux/child.h"
#include "sandbox/start.h"

void warm_want_cgroup(const struct plan *plan, struct cgroup_want *want)
{
	start_want_cgroup(plan, want);
}

int warm_open_image(int *image, struct error *err)
{
	return start_open_image(image, err);
}

/* The child's own reason is the better one. */
static int fail_as_said(const struct setup_message *message, struct error *err)
{
	*err = message->error;
	return error_adopt(err);
}

/* The child is ended and reaped. */
static int abandon(pid_t pid, int setup, struct error *err)
{
	struct setup_message message = { 0 };
	int fds[SETUP_FD_MAX];
	child_kill(&(struct child){ pid, -1, -1 });
	int got = setup_receive(setup, false, &message, fds);
	for (int i = 0; i < SETUP_FD_MAX; i++)
		fd_close(&fds[i]);
	if (got == 1 && message.type == SETUP_FAILED)
		fail_as_said(&message, err);
	return -1;
}

int warm_begin(const struct warm_host *host, const struct warm_start *given, pid_t *pid, int *setup,
	struct error *err)
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
		failed = abandon(child, ours, err);
	start_done(&start);
	if (failed)
		return -1;
	*pid = child;
	*setup = take_fd(&ours);
	return 0;
}

int warm_hear(int setup, int fds[WARM_FD_MAX], struct error *err)
{
	static const enum setup_fd places[WARM_FD_MAX] = { SETUP_PROC, SETUP_ROOT,
		SETUP_WORKSPACE };
	struct setup_message message = { 0 };
	int came[SETUP_FD_MAX];
	int got = setup_receive(setup, false, &message, came);
	if (got < 0 && errno == EAGAIN)
		return 0;
	bool is_up = got == 1 && message.type == SETUP_DESCRIPTORS;
	for (int i = 0; is_up && i < WARM_FD_MAX; i++)
		fds[i] = take_fd(&came[places[i]]);
	for (int i = 0; i < SETUP_FD_MAX; i++)
		fd_close(&came[i]);
	if (is_up)
		return 1;
	if (got == 1 && message.type == SETUP_FAILED)
		return fail_as_said(&message, err);
	if (got == 0)
		return fail(err, ERR_CANCELED, "the sandbox was killed while it started");
	return fail_errno(err, "receive from the sandbox");
}

int warm_find(pid_t pid, int fds[WARM_FD_MAX], struct error *err)
{
	_Static_assert((int)WARM_WORKSPACE == FOUND_MEASURED && (int)WARM_FD_MAX == FOUND_MAX &&
			       (int)WARM_PROC == FOUND_PROC && (int)WARM_ROOT == FOUND_ROOT,
		"the same places");
	return start_find(pid, PLAN_WORKSPACE, fds, err);
}
