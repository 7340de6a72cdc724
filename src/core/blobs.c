#include "core/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/internal.h"

#define RUNNING_MAX 8
#define ANSWER_MAX ((size_t)64 << 20)

struct blob_job {
	struct core *core;
	struct arena arena;
	text_list strings;
	int data, answer;
	char request_id[ID_LEN + 1];
	uint64_t tag; /* while it runs; 0: it waits */
	bool is_canceled;
	struct error failure; /* found before it was started */
	blob_job_fn *done;
	void *ctx;
	struct blob_job *next;
};

static void start_waiting(struct core *core);

static void drop(struct blob_job *job)
{
	struct blob_job **at = &job->core->blobs.first;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	fd_close(&job->data);
	fd_close(&job->answer);
	arena_done(&job->arena);
	free(job);
}

static void finish(struct blob_job *job, const struct json_value *answer, const struct error *err)
{
	struct core *core = job->core;
	/* Whoever reads its other end sees the end now. */
	fd_close(&job->data);
	job->done(job->ctx, answer, err);
	drop(job);
	start_waiting(core);
}

void blob_jobs_done(struct core *core)
{
	loop_cancel(core->loop, core->blobs.turn);
	core->blobs.turn = NULL;
	while (core->blobs.first)
		drop(core->blobs.first);
}

static int read_answer(
	struct blob_job *job, int exit_code, struct json_value **answer, struct error *err)
{
	struct stat st;
	struct error why;
	if (fstat(job->answer, &st) || st.st_size > (off_t)ANSWER_MAX)
		return fail(err, ERR_LIMIT, "the answer of the blob store is too long");
	char *text = arena_alloc(&job->arena, (size_t)st.st_size + 1);
	ssize_t len = pread(job->answer, text, (size_t)st.st_size, 0);
	if (len <= 0 || json_read((struct str){ text, (size_t)len }, &job->arena, answer, &why))
		return fail(err, exit_code >= 128 ? ERR_CANCELED : ERR_FAILED,
			"the process that works on object '%s' ended with code %d and no answer",
			job->strings.items[1], exit_code);
	const struct json_value *error = json_member(*answer, "error");
	const char *message = json_member_text(error, "message");
	const char *hint = json_member_text(error, "hint");
	if (!error && exit_code == 0)
		return 0;
	fail(err, error_code_from_name(json_member_text(error, "code"), ERR_FAILED), "%s",
		message ? message : "the blob store failed");
	return hint ? error_hint(err, "%s", hint) : -1;
}

static void on_ended(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct blob_job *job = ctx;
	struct json_value *answer = NULL;
	struct error err;
	int failed;
	job->core->blobs.running--;
	if (job->is_canceled)
		failed = fail(&err, ERR_CANCELED, "work on object '%s' was canceled",
			job->strings.items[1]);
	else if (!packet || packet->head.type != LAUNCH_DONE)
		failed = launcher_failure(packet, &err);
	else
		failed = read_answer(job, packet->head.value, &answer, &err);
	finish(job, failed ? NULL : answer, failed ? &err : NULL);
}

static void begin(struct blob_job *job)
{
	struct launch_message head = { .type = LAUNCH_BLOB };
	const int fds[] = { job->data, job->answer };
	memcpy(head.request_id, job->request_id, sizeof head.request_id);
	job->core->blobs.running++;
	job->tag = launcher_ask(&job->core->launcher, &head, job->strings.items, job->strings.count,
		fds, 2, on_ended, job);
	/* The process has its own now: a pipe ends when that one closes it. */
	fd_close(&job->data);
}

static struct blob_job *find_waiting(struct core *core)
{
	struct blob_job *job = core->blobs.first;
	while (job && job->tag)
		job = job->next;
	return job;
}

static void on_turn(struct loop *loop, void *ctx)
{
	struct core *core = ctx;
	struct blob_job *job;
	core->blobs.turn = NULL;
	while (core->blobs.running < RUNNING_MAX && (job = find_waiting(core))) {
		struct error err = job->failure;
		if (job->is_canceled)
			fail(&err, ERR_CANCELED, "work on object '%s' was canceled",
				job->strings.items[1]);
		if (err.code)
			finish(job, NULL, &err);
		else
			begin(job);
	}
}

/* Never from inside the call that asked. */
static void start_waiting(struct core *core)
{
	if (find_waiting(core) && !core->blobs.turn)
		core->blobs.turn = loop_after(core->loop, 0, on_turn, core);
}

/* What the launcher takes: it ends a core that says anything else. */
static int prepare(struct blob_job *job, const struct blob_order *order, struct error *err)
{
	enum blob_verb verb;
	const char *key;
	struct blob_words words;
	blob_words_write(order->verb, arena_text(&job->arena, order->key), &order->words,
		&job->arena, &job->strings);
	if (blob_words_read(job->strings.items, job->strings.count, &verb, &key, &words, err))
		return -1;
	job->data = order->data >= 0 ? fcntl(order->data, F_DUPFD_CLOEXEC, 3)
				     : open("/dev/null", O_RDWR | O_CLOEXEC);
	job->answer = memfd_create("answer", MFD_CLOEXEC);
	if (job->data < 0 || job->answer < 0)
		return fail_errno(err, "open the files of an operation on the blob store");
	return 0;
}

struct blob_job *blob_job_start(
	struct core *core, const struct blob_order *order, blob_job_fn *done, void *ctx)
{
	struct blob_job *job = xzalloc(sizeof *job);
	struct blob_job **last = &core->blobs.first;
	*job = (struct blob_job){
		.core = core, .data = -1, .answer = -1, .done = done, .ctx = ctx
	};
	str_copy(job->request_id, sizeof job->request_id,
		order->request_id ? order->request_id : "");
	prepare(job, order, &job->failure); /* a failure is told in its turn */
	while (*last)
		last = &(*last)->next;
	*last = job;
	start_waiting(core);
	return job;
}

void blob_job_cancel(struct blob_job *job)
{
	struct launch_message head = { .type = LAUNCH_CANCEL, .other = job->tag };
	if (job->is_canceled)
		return;
	job->is_canceled = true;
	if (job->tag)
		launcher_ask(&job->core->launcher, &head, NULL, 0, NULL, 0, NULL, NULL);
}
