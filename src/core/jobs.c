#include "core/jobs.h"

#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/internal.h"

#define ANSWER_MAX ((size_t)64 << 20)

static void start_waiting(struct job_queue *queue);

struct core_job *job_new(struct job_queue *queue, const char *request_id)
{
	struct core_job *job = xzalloc(sizeof *job);
	job->queue = queue;
	for (int i = 0; i < JOB_FDS_MAX; i++)
		job->fds[i] = -1;
	str_copy(job->request_id, sizeof job->request_id, request_id ? request_id : "");
	return job;
}

static void drop(struct core_job *job)
{
	struct core_job **at = &job->queue->first;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	for (int i = 0; i < JOB_FDS_MAX; i++)
		fd_close(&job->fds[i]);
	arena_done(&job->arena);
	free(job);
}

void jobs_done(struct job_queue *queue)
{
	loop_cancel(queue->core->loop, queue->turn);
	queue->turn = NULL;
	while (queue->first)
		drop(queue->first);
}

static void finish(struct core_job *job, const struct json_value *answer, const struct error *err)
{
	struct job_queue *queue = job->queue;
	/* Whoever reads its other end sees the end now. */
	if (queue->kind->handed_over >= 0)
		fd_close(&job->fds[queue->kind->handed_over]);
	job->done(job->ctx, answer, err);
	drop(job);
	if (queue->kind->ended)
		queue->kind->ended(queue->core);
	start_waiting(queue);
}

/* The codes of failed builds that errors in general don't have. */
static enum error_code code_of(const char *name)
{
	static const struct {
		const char *name;
		enum error_code code;
	} codes[] = {
		{ "version_not_found", ERR_NOT_FOUND },
		{ "hash_mismatch", ERR_DENIED },
		{ "network", ERR_UNAVAILABLE },
		{ "timeout", ERR_LIMIT },
	};
	for (size_t i = 0; name && i < sizeof codes / sizeof *codes; i++)
		if (!strcmp(name, codes[i].name))
			return codes[i].code;
	return error_code_from_name(name, ERR_FAILED);
}

#define CODE_OF_NO_START 125 /* of our programs, before they have read what they are to do */
/* A program of another version doesn't understand what this daemon asks of it. */
static int fail_unanswered(int exit_code, const char *what, struct error *err)
{
	if (exit_code >= 128)
		return fail(err, ERR_CANCELED, "%s was killed (code %d)", what, exit_code);
	fail(err, ERR_FAILED, "%s ended with code %d and no answer", what, exit_code);
	return exit_code == CODE_OF_NO_START
		       ? error_hint(err, "if carrel was replaced while this daemon ran, restart "
					 "the daemon: carrel serve --stop, carrel serve "
					 "--background")
		       : -1;
}

int job_read_answer(int fd, int exit_code, const char *what, struct arena *arena,
	struct json_value **answer, struct error *err)
{
	struct stat st;
	struct error why;
	if (fstat(fd, &st) || st.st_size > (off_t)ANSWER_MAX)
		return fail(err, ERR_LIMIT, "the answer of %s is too long", what);
	char *text = arena_alloc(arena, (size_t)st.st_size + 1);
	ssize_t len = pread(fd, text, (size_t)st.st_size, 0);
	if (len <= 0 || json_read((struct str){ text, (size_t)len }, arena, answer, &why))
		return fail_unanswered(exit_code, what, err);
	const struct json_value *error = json_member(*answer, "error");
	const char *message = json_member_text(error, "message");
	const char *hint = json_member_text(error, "hint");
	if (!error && exit_code == 0)
		return 0;
	fail(err, code_of(json_member_text(error, "code")), "%s",
		message ? message : "it failed without a reason");
	if (!message)
		error_context(err, "%s", what);
	return hint ? error_hint(err, "%s", hint) : -1;
}

static const char *describe(struct core_job *job)
{
	return arena_printf(&job->arena, "%s '%s'", job->queue->kind->noun,
		job->strings.count > job->queue->kind->named
			? job->strings.items[job->queue->kind->named]
			: "");
}

static void on_ended(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct core_job *job = ctx;
	struct json_value *answer = NULL;
	struct error err;
	int failed;
	job->queue->running--;
	if (job->is_canceled)
		failed = fail(&err, ERR_CANCELED, "%s was canceled", describe(job));
	else if (!packet || packet->head.type != LAUNCH_DONE)
		failed = launcher_failure(packet, &err);
	else
		failed = job_read_answer(job->fds[job->queue->kind->answer], packet->head.value,
			describe(job), &job->arena, &answer, &err);
	finish(job, failed ? NULL : answer, failed ? &err : NULL);
}

static void begin(struct core_job *job)
{
	const struct job_kind *kind = job->queue->kind;
	struct launch_message head = { .type = (uint32_t)kind->type };
	memcpy(head.request_id, job->request_id, sizeof head.request_id);
	job->queue->running++;
	job->tag = launcher_ask(&job->queue->core->launcher, &head, job->strings.items,
		job->strings.count, job->fds, kind->fd_count, on_ended, job);
	/* The process has its own now: a pipe ends when that one closes it. */
	if (kind->handed_over >= 0)
		fd_close(&job->fds[kind->handed_over]);
}

static struct core_job *find_waiting(const struct job_queue *queue)
{
	struct core_job *job = queue->first;
	while (job && job->tag)
		job = job->next;
	return job;
}

static void on_turn(struct loop *loop, void *ctx)
{
	struct job_queue *queue = ctx;
	struct core_job *job;
	queue->turn = NULL;
	while (queue->running < queue->kind->most && (job = find_waiting(queue))) {
		struct error err = job->failure;
		if (job->is_canceled)
			fail(&err, ERR_CANCELED, "%s was canceled", describe(job));
		if (err.code)
			finish(job, NULL, &err);
		else
			begin(job);
	}
}

static void start_waiting(struct job_queue *queue)
{
	if (find_waiting(queue) && !queue->turn)
		queue->turn = loop_after(queue->core->loop, 0, on_turn, queue);
}

void job_start(struct core_job *job, job_fn *done, void *ctx)
{
	struct core_job **last = &job->queue->first;
	job->done = done;
	job->ctx = ctx;
	job->is_canceled = job->owner && job->owner->is_canceled;
	while (*last)
		last = &(*last)->next;
	*last = job;
	start_waiting(job->queue);
}

void job_cancel(struct core_job *job)
{
	struct launch_message head = { .type = LAUNCH_CANCEL, .other = job->tag };
	if (job->is_canceled)
		return;
	job->is_canceled = true;
	if (job->tag)
		launcher_ask(&job->queue->core->launcher, &head, NULL, 0, NULL, 0, NULL, NULL);
}

/* ---- operations that own jobs ---- */

void cancelable_cancel(struct cancelable *c)
{
	const struct job_queue *const queues[] = { &c->core->tree_jobs, &c->core->blobs };
	c->is_canceled = true;
	for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
		for (struct core_job *job = queues[i]->first; job; job = job->next)
			if (job->owner == c)
				job_cancel(job);
	if (c->cut)
		c->cut(c);
}

void cancelable_use(struct cancelable *c, struct core_workspace *w, const char *what)
{
	c->w = w;
	c->what = what;
	c->next = w->operations;
	w->operations = c;
}

void cancelable_done(struct cancelable *c)
{
	struct cancelable **at = c->w ? &c->w->operations : NULL;
	while (at && *at != c)
		at = &(*at)->next;
	if (at)
		*at = c->next;
	c->w = NULL;
}

int cancelable_check(const struct cancelable *c, struct error *err)
{
	return c->is_canceled ? fail(err, ERR_CANCELED, "its client has disconnected") : 0;
}
