/* task_follow.c -- a task whose command runs in the background, because it had to be approved. Its
 * exec waits and runs on when core is started again, and its output is a file: the task is found
 * by the id that both have, and reads on. */
#include <unistd.h>
#include "base/fd.h"
#include "services/agents_internal.h"

#define PIECE 65536

struct core_exec *follow_exec(const struct task_run *run)
{
	struct core_exec *e;
	struct error ignored;
	return exec_find(core_system(), run->task->agents->base.core, run->task->model.id, &e,
		       &ignored)
		       ? NULL
		       : e;
}

/* Its task keeps no more of this stream. */
static bool is_full(const struct task_run *run, int stream)
{
	static const char *const names[] = { "stdout", "stderr" };
	if (run->entry->model.kind == AGENT_COMMAND)
		return run->offsets[0] + run->offsets[1] > PROGRAM_OUTPUT_MAX;
	for (const struct artifact *a = run->task->made; a; a = a->next)
		if (!strcmp(a->id, names[stream - 1]))
			return a->is_cut;
	return false;
}

/* What is there of one stream. */
static void read_stream(struct task_run *run, struct core_exec *e, int stream)
{
	static char piece[PIECE];
	uint64_t *at = &run->offsets[stream - 1];
	int opened = -1;
	ssize_t got;
	struct error ignored;
	if (exec_open_output(core_system(), e, stream, &opened, &ignored))
		return;
	auto_close int fd = opened;
	/* The oldest part may be gone. */
	uint64_t first = exec_output_first(fd);
	if (*at < first)
		*at = first;
	while ((!run->failing || stream == 2) && !is_full(run, stream) &&
		(got = pread(fd, piece, sizeof piece, (off_t)*at)) > 0) {
		*at += (uint64_t)got;
		run_output(run, stream, (struct str){ piece, (size_t)got });
	}
}

static void on_more(void *ctx, bool has_ended)
{
	struct task_run *run = ctx;
	struct core_exec *e = follow_exec(run);
	if (!e)
		return;
	const struct exec_record *record = exec_record_of(e);
	if (record->state == EXEC_RUNNING && !run->is_begun) {
		run->is_begun = true;
		run_started(run);
	}
	for (int stream = 1; stream <= 2; stream++)
		read_stream(run, e, stream);
	if (run->entry->model.kind == AGENT_COMMAND && is_full(run, 1))
		run_fail(run, "the agent's program wrote more than 16 MiB");
	if (!has_ended)
		return;
	run_unawait(run);
	follow_end(run);
	run_conclude(run, record, NULL);
}

void follow_begin(struct task_run *run, struct core_exec *e)
{
	run->is_background = true;
	run->follower = (struct exec_follower){ .more = on_more, .ctx = run };
	exec_follow(e, &run->follower);
}

void follow_end(struct task_run *run)
{
	struct core_exec *e = run->is_background ? follow_exec(run) : NULL;
	run->is_background = false;
	if (e)
		exec_unfollow(e, &run->follower);
}
