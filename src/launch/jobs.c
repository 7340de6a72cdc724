/* Processes that do one piece of work for core and end: work on trees, operations on the blob
 * store. Their exit code is the answer to what core asked. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include "base/arena.h"
#include "launch/internal.h"

struct job {
	enum job_kind kind;
	pid_t pid;
	uint64_t tag; /* 0: nobody waits for its end */
	struct job *next;
};

size_t jobs_count(const struct launcher *launcher, enum job_kind kind)
{
	size_t count = 0;
	for (const struct job *at = launcher->jobs; at; at = at->next)
		count += at->kind == kind;
	return count;
}

void job_add(struct launcher *launcher, enum job_kind kind, pid_t pid, uint64_t tag)
{
	struct job *job = xzalloc(sizeof *job);
	*job = (struct job){ kind, pid, tag, launcher->jobs };
	launcher->jobs = job;
}

void job_cancel(struct launcher *launcher, uint64_t tag)
{
	for (const struct job *at = launcher->jobs; at; at = at->next)
		if (at->tag == tag)
			kill(at->pid, SIGKILL);
}

void jobs_cancel_all(struct launcher *launcher)
{
	for (struct job *at = launcher->jobs; at; at = at->next) {
		at->tag = 0;
		kill(at->pid, SIGKILL);
	}
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
	struct launch_message head = { .type = LAUNCH_DONE,
		.tag = job->tag,
		.value = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status) };
	if (job->tag)
		link_send(launcher, &head, NULL, 0, NULL, 0);
	free(job);
	launcher_check_end(launcher);
	return true;
}
