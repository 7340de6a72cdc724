/* `carrel env build` for core: a process of our own program, with the descriptors that core sent.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include "build/process.h"
#include "launch/parts.h"

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
	for (const struct build *at = launcher->builds; at; at = at->next)
		count++;
	return count;
}

static int begin(struct launcher *launcher, const struct launch_packet *packet, const int fds[3],
	pid_t *pid, struct error *err)
{
	const struct build_order order = { .carrel = launcher->options->self,
		.home = launcher->home->path,
		.package_id = packet->strings[0],
		.python = packet->strings[1],
		.options = packet->strings + 2,
		.option_count = packet->head.string_count - 2,
		.fds = launcher->own_fds,
		.streams = { fds[0], fds[1], fds[2] } };
	if (count_builds(launcher) >= BUILDS_MAX)
		return fail_hint(err, ERR_LIMIT, "try again when one has ended",
			"%d environments are being built", BUILDS_MAX);
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
	struct build *build = calloc(1, sizeof *build);
	if (!build)
		abort();
	*build = (struct build){
		.launcher = launcher, .pid = pid, .tag = head->tag, .next = launcher->builds
	};
	str_copy(build->request_id, sizeof build->request_id, head->request_id);
	launcher->builds = build;
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
	for (struct build *at = launcher->builds; at; at = at->next)
		if (at->tag == tag)
			cancel(at);
}

void builds_cancel_all(struct launcher *launcher)
{
	for (struct build *at = launcher->builds; at; at = at->next) {
		at->tag = 0;
		cancel(at);
	}
}

void build_ends(struct launcher *launcher, pid_t pid)
{
	for (struct build *at = launcher->builds; at; at = at->next)
		if (at->pid == pid)
			kill(-pid, SIGKILL);
}

bool build_died(struct launcher *launcher, pid_t pid, int status)
{
	struct build **at = &launcher->builds;
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
	launcher_check_end(launcher);
	return true;
}
