/* `carrel env build` and `carrel env verify` for core: a process of our own program, with the
 * descriptors that core sent, and the egress role through which builds reach their indexes. */
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include "base/arena.h"
#include "base/fd.h"
#include "egress/egress.h"
#include "envs/builder/process.h"
#include "launch/internal.h"

#define BUILDS_MAX 32
#define PATIENCE_MS 10000 /* a build that is to end removes what it began */

struct build {
	struct launcher *launcher;
	pid_t pid;
	uint64_t tag;
	char request_id[ID_LEN + 1];
	struct loop_timer *patience; /* it was told to end */
	struct build *next;
};

static unsigned count_builds(const struct launcher *launcher)
{
	unsigned count = 0;
	for (const struct build *at = launcher->builds.first; at; at = at->next)
		count++;
	return count;
}

/* ---- egress ---- */

static void close_egress(struct launcher *launcher)
{
	struct builds *builds = &launcher->builds;
	loop_unwatch(launcher->loop, builds->pending);
	fd_close(&builds->pending);
	fd_close(&builds->service);
}

static void on_first_policy(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct launcher *launcher = ctx;
	struct builds *builds = &launcher->builds;
	struct error err;
	loop_unwatch(loop, fd);
	if (!launcher_start_role(launcher, ROLE_EGRESS, &builds->pending, 1, &err)) {
		fd_close(&builds->pending);
		return;
	}
	/* The build sees that its channel has ended. */
	launcher_log(launcher, LOG_LEVEL_ERROR, "egress can't be started", NULL, NULL, &err);
	close_egress(launcher);
}

static int open_egress(struct launcher *launcher, struct error *err)
{
	struct builds *builds = &launcher->builds;
	int ends[2];
	if (builds->service >= 0)
		return 0;
	if (egress_pair(ends, err))
		return -1;
	builds->service = ends[0];
	builds->pending = ends[1];
	if (!loop_watch(launcher->loop, builds->pending, EPOLLIN, on_first_policy, launcher, err))
		return 0;
	close_egress(launcher);
	return -1;
}

void egress_answer(struct launcher *launcher, uint64_t tag)
{
	struct launch_message head = { .type = LAUNCH_EGRESS_STARTED, .tag = tag, .present = 1 };
	struct error err;
	if (open_egress(launcher, &err)) {
		link_send_failed(launcher, tag, &err);
		return;
	}
	launcher->builds.is_cores = true;
	link_send(launcher, &head, NULL, 0, &launcher->builds.service, 1);
}

/* Builds that use it fail with an error; the next build starts a new one, and so does core. */
void egress_died(struct launcher *launcher, int status)
{
	struct error err;
	role_explain_end(status, &err);
	launcher_log(launcher, LOG_LEVEL_ERROR, "egress has ended", NULL, NULL, &err);
	close_egress(launcher);
}

static void end_egress(struct launcher *launcher)
{
	pid_t *pid = &launcher->roles[ROLE_EGRESS];
	close_egress(launcher);
	role_kill(launcher, ROLE_EGRESS);
	if (*pid)
		waitpid(*pid, NULL, 0);
	*pid = 0;
}

void egress_forget_core(struct launcher *launcher)
{
	launcher->builds.is_cores = false;
	if (!launcher->builds.first)
		end_egress(launcher);
}

void builds_done(struct launcher *launcher)
{
	end_egress(launcher);
}

/* ---- builds ---- */

static int begin(struct launcher *launcher, const struct launch_packet *packet, const int fds[3],
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
	if (count_builds(launcher) >= BUILDS_MAX)
		return fail_hint(err, ERR_LIMIT, "try again when one has ended",
			"%d environments are being built", BUILDS_MAX);
	if (open_egress(launcher, err))
		return -1;
	order.egress = launcher->builds.service;
	return build_start_ordered(&order, pid, err);
}

void build_start(struct launcher *launcher, const struct launch_packet *packet, const int fds[3])
{
	const struct launch_message *head = &packet->head;
	struct error err;
	pid_t pid = 0;
	if (begin(launcher, packet, fds, &pid, &err)) {
		launcher_log(launcher, LOG_LEVEL_WARN, "build failed to start", NULL,
			head->request_id, &err);
		link_send_failed(launcher, head->tag, &err);
		return;
	}
	struct build *build = xzalloc(sizeof *build);
	*build = (struct build){
		.launcher = launcher, .pid = pid, .tag = head->tag, .next = launcher->builds.first
	};
	str_copy(build->request_id, sizeof build->request_id, head->request_id);
	launcher->builds.first = build;
	launcher_log(launcher, LOG_LEVEL_INFO, "build started", NULL, build->request_id, NULL);
}

static void on_patience(struct loop *loop, void *ctx)
{
	struct build *build = ctx;
	build->patience = NULL;
	kill(-build->pid, SIGKILL);
}

static void cancel(struct build *build)
{
	if (build->patience)
		return;
	kill(build->pid, SIGTERM); /* it passes it on, and says so */
	build->patience = loop_after(build->launcher->loop, PATIENCE_MS, on_patience, build);
}

void build_cancel(struct launcher *launcher, uint64_t tag)
{
	for (struct build *at = launcher->builds.first; at; at = at->next)
		if (at->tag == tag)
			cancel(at);
}

void builds_cancel_all(struct launcher *launcher)
{
	for (struct build *at = launcher->builds.first; at; at = at->next) {
		at->tag = 0;
		cancel(at);
	}
}

void build_ends(struct launcher *launcher, pid_t pid)
{
	for (struct build *at = launcher->builds.first; at; at = at->next)
		if (at->pid == pid)
			kill(-pid, SIGKILL);
}

bool build_died(struct launcher *launcher, pid_t pid, int status)
{
	struct build **at = &launcher->builds.first;
	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	struct build *build = *at;
	if (!build)
		return false;
	*at = build->next;
	loop_cancel(launcher->loop, build->patience);
	struct launch_message head = { .type = LAUNCH_BUILT,
		.tag = build->tag,
		.value = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status) };
	launcher_log(launcher, LOG_LEVEL_INFO, "build ended", NULL, build->request_id, NULL);
	if (build->tag)
		link_send(launcher, &head, NULL, 0, NULL, 0);
	free(build);
	if (!launcher->builds.first && !launcher->builds.is_cores)
		end_egress(launcher);
	launcher_check_end(launcher);
	return true;
}
