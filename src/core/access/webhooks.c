#include "core/access/webhooks.h"

#include <sys/mman.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "core/access/internal.h"

enum { FD_DATA, FD_ANSWER, FD_COUNT };
static const struct job_kind webhook_job_kind = { .type = LAUNCH_WEBHOOK,
	.most = 4,
	.fd_count = FD_COUNT,
	.answer = FD_ANSWER,
	.handed_over = FD_DATA,
	.named = 0,
	.noun = "the webhook call for approval" };

struct delivery {
	struct core *core;
	char approval[ID_LEN + 1], workspace[ID_LEN + 1];
	struct buf body;
	unsigned attempts;
	struct loop_timer *timer; /* of the next attempt */
	struct delivery *next;
};
struct webhooks {
	struct job_queue queue;
	struct delivery *first;
	size_t count;
};

void webhooks_open(struct core *core)
{
	core->access->webhooks = xzalloc(sizeof *core->access->webhooks);
	core->access->webhooks->queue =
		(struct job_queue){ .core = core, .kind = &webhook_job_kind };
}

static void drop(struct delivery *d)
{
	struct delivery **at = &d->core->access->webhooks->first;
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	d->core->access->webhooks->count--;
	loop_cancel(d->core->loop, d->timer);
	buf_done(&d->body);
	free(d);
}

void webhooks_close(struct core *core)
{
	if (!core->access->webhooks)
		return;
	jobs_done(&core->access->webhooks->queue);
	while (core->access->webhooks->first)
		drop(core->access->webhooks->first);
	free(core->access->webhooks);
	core->access->webhooks = NULL;
}

static void attempt(struct delivery *d);

static void on_pause_over(struct loop *loop, void *ctx)
{
	struct delivery *d = ctx;
	d->timer = NULL;
	attempt(d);
}

/* 250 ms, 1 s, 4 s, 16 s, then a minute each. */
static uint64_t pause_ms(unsigned attempts)
{
	return attempts < 5 ? 250ull << (2 * (attempts - 1)) : 60000;
}

static void on_called(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct delivery *d = ctx;
	struct error why;
	uint64_t status = 0;
	json_member_u64(answer, "status", &status);
	if (!err && status >= 200 && status < 300) {
		drop(d);
		return;
	}
	if (!err) {
		fail(&why, ERR_FAILED, "the webhook answered with status %llu",
			(unsigned long long)status);
		err = &why;
	}
	log_record(&d->core->log, LOG_LEVEL_WARN, "a webhook call failed", "approval", d->approval,
		"error", err->text, NULL);
	if (d->attempts < WEBHOOK_ATTEMPTS) {
		d->timer = loop_after(d->core->loop, pause_ms(d->attempts), on_pause_over, d);
		return;
	}
	journal_emit(&d->core->journal, "webhook.failed", d->workspace, NULL, "approval",
		d->approval, "error", err->text, NULL);
	drop(d);
}

static void attempt(struct delivery *d)
{
	struct core_job *job = job_new(&d->core->access->webhooks->queue, NULL);
	d->attempts++;
	vec_push(&job->arena, &job->strings, (const char *)arena_text(&job->arena, d->approval));
	job->fds[FD_DATA] = memfd_create("webhook", MFD_CLOEXEC);
	job->fds[FD_ANSWER] = memfd_create("answer", MFD_CLOEXEC);
	if (job->fds[FD_DATA] < 0 || job->fds[FD_ANSWER] < 0 ||
		fd_write_full(job->fds[FD_DATA], d->body.data, d->body.len) !=
			(ssize_t)d->body.len ||
		lseek(job->fds[FD_DATA], 0, SEEK_SET))
		fail_errno(&job->failure, "write the body of a webhook call");
	job_start(job, on_called, d);
}

void webhook_send(struct core *core, const char *type, const struct approval *approval)
{
	char time[32], id[ID_LEN + 1];
	if (!core->access->webhooks)
		return;
	if (core->access->webhooks->count >= WEBHOOKS_MAX) {
		log_record(&core->log, LOG_LEVEL_ERROR,
			"a webhook call was left out: too many wait", "approval", approval->id,
			NULL);
		return;
	}
	struct delivery *d = xzalloc(sizeof *d);
	d->core = core;
	memcpy(d->approval, approval->id, sizeof d->approval);
	memcpy(d->workspace, approval->workspace, sizeof d->workspace);
	d->next = core->access->webhooks->first;
	core->access->webhooks->first = d;
	core->access->webhooks->count++;
	buf_init(&d->body, BUF_MAX_DEFAULT);
	struct json j = json_to(&d->body, false);
	clock_format_now(time);
	id_make(id);
	json_object(&j, NULL);
	json_text(&j, "id", id);
	json_text(&j, "type", type);
	json_text(&j, "time", time);
	record_print(&j, "approval", &approval_record, approval);
	json_end(&j);
	attempt(d);
}
