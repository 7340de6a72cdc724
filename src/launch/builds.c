/* `carrel env build` and `carrel env verify` for core: a process of our own program, with the
 * descriptors that core sent, and the egress role through which builds reach their indexes. */
#include <sys/epoll.h>
#include <sys/wait.h>
#include "base/fd.h"
#include "egress/egress.h"
#include "envs/builder/process.h"
#include "launch/internal.h"

/* ---- egress ---- */

static void close_egress(struct launcher *launcher)
{
	struct egress_link *egress = &launcher->egress;
	loop_unwatch(launcher->loop, egress->pending);
	fd_close(&egress->pending);
	fd_close(&egress->service);
}

static void on_first_policy(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct launcher *launcher = ctx;
	struct egress_link *egress = &launcher->egress;
	struct error err;
	loop_unwatch(loop, fd);
	if (!launcher_start_role(launcher, ROLE_EGRESS, &egress->pending, 1, &err)) {
		fd_close(&egress->pending);
		return;
	}
	/* The build sees that its channel has ended. */
	launcher_log(launcher, LOG_LEVEL_ERROR, "egress can't be started", NULL, NULL, &err);
	close_egress(launcher);
}

static int open_egress(struct launcher *launcher, struct error *err)
{
	struct egress_link *egress = &launcher->egress;
	int ends[2];
	if (egress->service >= 0)
		return 0;
	if (egress_pair(ends, err))
		return -1;
	egress->service = ends[0];
	egress->pending = ends[1];
	if (!loop_watch(launcher->loop, egress->pending, EPOLLIN, on_first_policy, launcher, err))
		return 0;
	close_egress(launcher);
	return -1;
}

void egress_answer(struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	uint64_t tag = packet->head.tag;
	struct launch_message head = { .type = LAUNCH_EGRESS_STARTED, .tag = tag, .present = 1 };
	struct error err;
	if (open_egress(launcher, &err)) {
		link_send_failed(launcher, tag, &err);
		return;
	}
	launcher->egress.is_cores = true;
	link_send(launcher, &head, NULL, 0, &launcher->egress.service, 1);
}

/* Builds that use it fail with an error; the next build starts a new one, and so does core. */
void egress_died(struct launcher *launcher, enum role which, int status)
{
	struct error err;
	role_explain_end(status, &err);
	launcher_log(launcher, LOG_LEVEL_ERROR, "egress has ended", NULL, NULL, &err);
	close_egress(launcher);
}

void egress_end(struct launcher *launcher)
{
	pid_t *pid = &launcher->roles[ROLE_EGRESS];
	close_egress(launcher);
	role_kill(launcher, ROLE_EGRESS);
	if (*pid)
		waitpid(*pid, NULL, 0);
	*pid = 0;
}

void egress_forget_builds(struct launcher *launcher)
{
	if (!launcher->egress.is_cores && !jobs_are_there(launcher, JOB_BUILD))
		egress_end(launcher);
}

void egress_forget_core(struct launcher *launcher)
{
	launcher->egress.is_cores = false;
	egress_forget_builds(launcher);
}

/* ---- builds ---- */

int build_begin(struct launcher *launcher, const struct launch_packet *packet, const int *fds,
	pid_t *pid, struct error *err)
{
	struct build_order order = { .carrel = launcher->options->self,
		.home = launcher->home->path,
		.package_id = packet->head.string_count ? packet->strings[0] : "",
		.python = "",
		.fds = launcher->own_fds,
		.streams = { fds[0], fds[1], fds[2] } };
	if (packet->head.type == LAUNCH_REGISTRIES) {
		order.kind = BUILD_REGISTRIES;
	} else if (packet->head.type == LAUNCH_VERIFY) {
		order.kind = packet->head.value ? BUILD_REPAIR : BUILD_VERIFY;
	} else {
		order.python = packet->strings[1];
		order.options = packet->strings + 2;
		order.option_count = packet->head.string_count - 2;
	}
	if (open_egress(launcher, err))
		return -1;
	order.egress = launcher->egress.service;
	return build_start_ordered(&order, pid, err);
}
