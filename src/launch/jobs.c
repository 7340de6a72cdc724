/* Processes that do one piece of work for core and end: builds, work on trees, operations on the
 * blob store, calls of the webhook. Their exit code is the answer to what core asked. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fault.h"
#include "launch/internal.h"

#define PATIENCE_MS 10000 /* a build that is to end removes what it began */

static const struct {
	job_begin_fn *begin;
	size_t most;	      /* at once */
	const char *are_many; /* what so many do */
	const char *failed;
} rows[JOB_KIND_COUNT] = {
	[JOB_BUILD] = { build_begin, 32, "environments are being built", "build failed to start" },
	[JOB_TREE] = { tree_begin, 16, "jobs on trees run already",
		"work on trees failed to start" },
	[JOB_BLOB] = { blob_begin, 16, "operations on the blob store run already",
		"an operation on the blob store failed to start" },
	[JOB_WEBHOOK] = { webhook_begin, 4, "webhook calls run already",
		"a webhook call failed to start" },
};

static const enum job_kind kinds[] = { [LAUNCH_BUILD] = JOB_BUILD,
	[LAUNCH_VERIFY] = JOB_BUILD,
	[LAUNCH_REGISTRIES] = JOB_BUILD,
	[LAUNCH_TREE] = JOB_TREE,
	[LAUNCH_BLOB] = JOB_BLOB,
	[LAUNCH_WEBHOOK] = JOB_WEBHOOK };

struct job {
	struct launcher *launcher;
	enum job_kind kind;
	pid_t pid;
	uint64_t tag; /* 0: its end isn't reported */
	char request_id[ID_LEN + 1];
	struct loop_timer *patience; /* a build that was told to end */
	struct job *next;
};

static size_t count_jobs(const struct launcher *launcher, enum job_kind kind)
{
	size_t count = 0;
	for (const struct job *at = launcher->jobs; at; at = at->next)
		count += at->kind == kind;
	return count;
}

bool jobs_are_there(const struct launcher *launcher, enum job_kind kind)
{
	return count_jobs(launcher, kind) > 0;
}

int job_check_fds(const int *fds, int count, const char *what, struct error *err)
{
	for (int i = 0; i < count; i++) {
		int flags = fcntl(fds[i], F_GETFL);
		if (flags < 0 || flags & O_PATH)
			return fail(err, ERR_DENIED, "invalid descriptors for %s", what);
	}
	return 0;
}

struct role_start job_role(
	const struct launcher *launcher, const char *program, const int *fds, int fd_count)
{
	struct role_start start = { .program = program,
		.uid = geteuid() == 0 ? launcher->home->uid : (uid_t)-1,
		.gid = launcher->home->gid,
		.fd_count = fd_count,
		.log = launcher->log.fd };
	for (int i = 0; i < fd_count; i++)
		start.fds[i] = fds[i];
	return start;
}

static int job_begin(struct launcher *launcher, enum job_kind kind,
	const struct launch_packet *packet, const int *fds, pid_t *pid, struct error *err)
{
	if (count_jobs(launcher, kind) < rows[kind].most)
		return rows[kind].begin(launcher, packet, fds, pid, err);
	fail(err, ERR_LIMIT, "%zu %s", rows[kind].most, rows[kind].are_many);
	return kind == JOB_BUILD ? error_hint(err, "try again when one has ended") : -1;
}

void job_start(struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	const struct launch_message *head = &packet->head;
	enum job_kind kind = kinds[head->type];
	struct error err;
	pid_t pid = 0;
	if (job_begin(launcher, kind, packet, fds, &pid, &err)) {
		launcher_log(
			launcher, LOG_LEVEL_WARN, rows[kind].failed, NULL, head->request_id, &err);
		link_send_failed(launcher, head->tag, &err);
		return;
	}
	struct job *job = xzalloc(sizeof *job);
	*job = (struct job){ launcher, kind, pid, head->tag, .next = launcher->jobs };
	str_copy(job->request_id, sizeof job->request_id, head->request_id);
	launcher->jobs = job;
	if (kind == JOB_BUILD)
		launcher_log(
			launcher, LOG_LEVEL_INFO, "build started", NULL, job->request_id, NULL);
	else if (kind == JOB_TREE)
		fault_point("launch_tree_started");
}

static void on_patience(struct loop *loop, void *ctx)
{
	struct job *build = ctx;
	build->patience = NULL;
	kill(-build->pid, SIGKILL);
}

static void cancel(struct job *job)
{
	if (job->kind != JOB_BUILD) {
		kill(job->pid, SIGKILL);
		return;
	}
	if (job->patience)
		return;
	kill(job->pid, SIGTERM); /* it passes it on, and says so */
	job->patience = loop_after(job->launcher->loop, PATIENCE_MS, on_patience, job);
}

void job_cancel(struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	for (struct job *at = launcher->jobs; at; at = at->next)
		if (at->tag == packet->head.other)
			cancel(at);
}

void jobs_cancel_all(struct launcher *launcher)
{
	for (struct job *at = launcher->jobs; at; at = at->next) {
		at->tag = 0;
		cancel(at);
	}
}

void job_ends(struct launcher *launcher, pid_t pid)
{
	for (struct job *at = launcher->jobs; at; at = at->next)
		if (at->pid == pid && at->kind == JOB_BUILD)
			kill(-pid, SIGKILL);
}

bool job_died(struct launcher *launcher, pid_t pid, int status)
{
	struct job **at = &launcher->jobs;
	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	struct job *job = *at;
	if (!job)
		return false;
	*at = job->next;
	loop_cancel(launcher->loop, job->patience);
	bool is_build = job->kind == JOB_BUILD;
	struct launch_message head = { .type = is_build ? LAUNCH_BUILT : LAUNCH_DONE,
		.tag = job->tag,
		.value = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status) };
	if (is_build)
		launcher_log(launcher, LOG_LEVEL_INFO, "build ended", NULL, job->request_id, NULL);
	if (job->tag)
		link_send(launcher, &head, NULL, 0, NULL, 0);
	free(job);
	if (is_build)
		egress_forget_builds(launcher);
	launcher_check_end(launcher);
	return true;
}
