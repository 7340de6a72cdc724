#include "core/tree_jobs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/file.h"
#include "base/id.h"
#include "core/internal.h"

#define FROZEN "snap-"

enum { FD_INPUT, FD_ANSWER, FD_OUTPUT, FD_COUNT };
const struct job_kind tree_job_kind = { .type = LAUNCH_TREE,
	.most = 4,
	.fd_count = FD_COUNT,
	.answer = FD_ANSWER,
	.handed_over = -1,
	.named = 0,
	.noun = "the job",
	.ended = layers_sweep }; /* layers that only this job named, and what it left behind */

bool tree_layer_is_frozen(const char *name)
{
	return !strncmp(name, FROZEN, strlen(FROZEN)) && id_is_valid(name + strlen(FROZEN));
}

void tree_jobs_each_name(
	const struct core *core, void (*fn)(void *ctx, const char *name), void *ctx)
{
	for (const struct core_job *job = core->tree_jobs.first; job; job = job->next)
		for (size_t i = 1; i < job->strings.count; i++)
			if (job->strings.items[i][0])
				fn(ctx, job->strings.items[i]);
}

static int open_fds(struct core_job *job, const struct tree_job_order *order, struct error *err)
{
	if (order->options.len) {
		job->fds[FD_INPUT] = file_in_memory("options", order->options);
		if (job->fds[FD_INPUT] < 0)
			return fail_errno(err, "store the options of a job");
	} else if (order->input >= 0)
		job->fds[FD_INPUT] = fcntl(order->input, F_DUPFD_CLOEXEC, 3);
	else
		job->fds[FD_INPUT] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	job->fds[FD_ANSWER] = memfd_create("answer", MFD_CLOEXEC);
	job->fds[FD_OUTPUT] = order->output >= 0 ? fcntl(order->output, F_DUPFD_CLOEXEC, 3)
						 : open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (job->fds[FD_INPUT] < 0 || job->fds[FD_ANSWER] < 0 || job->fds[FD_OUTPUT] < 0)
		return fail_errno(err, "open the files of a job");
	return 0;
}

/* Only what the launcher accepts: it ends a core that says anything else. */
static int copy_names(struct core_job *job, const struct tree_job_order *order, struct error *err)
{
	size_t bytes = 0;
	vec_push(&job->arena, &job->strings, arena_text(&job->arena, order->verb));
	for (size_t i = 0; i < order->name_count; i++) {
		const char *name = order->names[i];
		bytes += strlen(name) + 1;
		if (name[0] && !launch_tree_name_is_valid(name))
			return fail(err, ERR_INVALID, "invalid name '%s'", name);
		vec_push(&job->arena, &job->strings, arena_text(&job->arena, name));
	}
	if (job->strings.count > LAUNCH_STRINGS_MAX || bytes > LAUNCH_BODY_MAX - 256)
		return fail(err, ERR_LIMIT, "too many layers for one job");
	return 0;
}

struct core_job *tree_job_start(
	struct core *core, const struct tree_job_order *order, job_fn *done, void *ctx)
{
	struct core_job *job = job_new(&core->tree_jobs, order->request_id);
	job->owner = order->owner;
	if (!copy_names(job, order, &job->failure))
		open_fds(job, order, &job->failure);
	job_start(job, done, ctx);
	return job;
}
