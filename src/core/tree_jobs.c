#include "core/tree_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/id.h"
#include "core/internal.h"

#define RUNNING_MAX 4
#define ANSWER_MAX ((size_t)16 << 20)
#define FROZEN "snap-"

struct tree_job_handle {
	struct core *core;
	struct arena arena;
	const char **strings;
	size_t count;
	int input, answer, output;
	char request_id[ID_LEN + 1];
	uint64_t tag; /* while it runs; 0: it waits */
	bool is_canceled;
	struct error failure; /* found before it was started */
	tree_job_fn *done;
	void *ctx;
	struct tree_job_handle *next;
};

bool tree_layer_is_frozen(const char *name)
{
	return !strncmp(name, FROZEN, strlen(FROZEN)) && id_is_valid(name + strlen(FROZEN));
}

static void start_waiting(struct core *core);

static void drop(struct tree_job_handle *job)
{
	struct tree_job_handle **at = &job->core->tree_jobs.first;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	fd_close(&job->input);
	fd_close(&job->answer);
	fd_close(&job->output);
	arena_done(&job->arena);
	free(job);
}

static void finish(
	struct tree_job_handle *job, const struct json_value *answer, const struct error *err)
{
	struct core *core = job->core;
	job->done(job->ctx, answer, err);
	drop(job);
	layers_sweep(core); /* layers that only this job named, and what it left behind */
	start_waiting(core);
}

void tree_jobs_each_name(
	const struct core *core, void (*fn)(void *ctx, const char *name), void *ctx)
{
	for (const struct tree_job_handle *job = core->tree_jobs.first; job; job = job->next)
		for (size_t i = 1; i < job->count; i++)
			if (job->strings[i] && job->strings[i][0])
				fn(ctx, job->strings[i]);
}

void tree_jobs_done(struct core *core)
{
	loop_cancel(core->loop, core->tree_jobs.turn);
	while (core->tree_jobs.first)
		drop(core->tree_jobs.first);
}

/* The answer, or the error that it is. */
static int read_answer(
	struct tree_job_handle *job, int exit_code, struct json_value **answer, struct error *err)
{
	struct stat st;
	struct error why;
	if (fstat(job->answer, &st) || st.st_size > (off_t)ANSWER_MAX)
		return fail(err, ERR_LIMIT, "the answer of a job on trees is too long");
	char *text = arena_alloc(&job->arena, (size_t)st.st_size + 1);
	ssize_t len = pread(job->answer, text, (size_t)st.st_size, 0);
	if (len <= 0 || json_read((struct str){ text, (size_t)len }, &job->arena, answer, &why))
		return exit_code >= 128
			       ? fail(err, ERR_CANCELED, "the job '%s' was killed", job->strings[0])
			       : fail(err, ERR_FAILED,
					 "the job '%s' ended with code %d and no answer",
					 job->strings[0], exit_code);
	const struct json_value *error = json_member(*answer, "error");
	const char *message = json_member_text(error, "message");
	const char *hint = json_member_text(error, "hint");
	if (!error && exit_code == 0)
		return 0;
	fail(err, error_code_from_name(json_member_text(error, "code"), ERR_FAILED), "%s",
		message ? message : "the job failed");
	return hint ? error_hint(err, "%s", hint) : -1;
}

static void on_ended(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct tree_job_handle *job = ctx;
	struct json_value *answer = NULL;
	struct error err;
	int failed;
	job->core->tree_jobs.running--;
	if (job->is_canceled)
		failed = fail(&err, ERR_CANCELED, "the job '%s' was canceled", job->strings[0]);
	else if (!packet || packet->head.type != LAUNCH_DONE)
		failed = launcher_failure(packet, &err);
	else
		failed = read_answer(job, packet->head.value, &answer, &err);
	finish(job, failed ? NULL : answer, failed ? &err : NULL);
}

static void begin(struct tree_job_handle *job)
{
	struct launch_message head = { .type = LAUNCH_TREE };
	const int fds[] = { job->input, job->answer, job->output };
	memcpy(head.request_id, job->request_id, sizeof head.request_id);
	job->core->tree_jobs.running++;
	job->tag = launcher_ask(
		&job->core->launcher, &head, job->strings, job->count, fds, 3, on_ended, job);
}

/* The first that waits. */
static struct tree_job_handle *find_waiting(struct core *core)
{
	struct tree_job_handle *job = core->tree_jobs.first;
	while (job && job->tag)
		job = job->next;
	return job;
}

static void on_turn(struct loop *loop, void *ctx)
{
	struct core *core = ctx;
	struct tree_job_handle *job;
	core->tree_jobs.turn = NULL;
	while (core->tree_jobs.running < RUNNING_MAX && (job = find_waiting(core))) {
		struct error err = job->failure;
		if (job->is_canceled)
			fail(&err, ERR_CANCELED, "the job '%s' was canceled", job->strings[0]);
		if (err.code)
			finish(job, NULL, &err);
		else
			begin(job);
	}
}

/* Never from inside the call that asked. */
static void start_waiting(struct core *core)
{
	if (find_waiting(core) && !core->tree_jobs.turn)
		core->tree_jobs.turn = loop_after(core->loop, 0, on_turn, core);
}

static int open_fds(
	struct tree_job_handle *job, const struct tree_job_order *order, struct error *err)
{
	if (order->options.len) {
		job->input = memfd_create("options", MFD_CLOEXEC);
		if (job->input < 0 ||
			fd_write_full(job->input, order->options.data, order->options.len) !=
				(ssize_t)order->options.len ||
			lseek(job->input, 0, SEEK_SET))
			return fail_errno(err, "store the options of a job");
	} else if (order->input >= 0)
		job->input = fcntl(order->input, F_DUPFD_CLOEXEC, 3);
	else
		job->input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	job->answer = memfd_create("answer", MFD_CLOEXEC);
	job->output = order->output >= 0 ? fcntl(order->output, F_DUPFD_CLOEXEC, 3)
					 : open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (job->input < 0 || job->answer < 0 || job->output < 0)
		return fail_errno(err, "open the files of a job");
	return 0;
}

/* What the launcher takes: it ends a core that says anything else. */
static int copy_names(
	struct tree_job_handle *job, const struct tree_job_order *order, struct error *err)
{
	size_t bytes = 0;
	job->count = order->name_count + 1;
	job->strings = arena_array(&job->arena, job->count, sizeof *job->strings);
	job->strings[0] = arena_text(&job->arena, order->verb);
	for (size_t i = 0; i < order->name_count; i++) {
		const char *name = order->names[i];
		bytes += strlen(name) + 1;
		if (name[0] && !launch_tree_name_is_valid(name))
			return fail(err, ERR_INVALID, "invalid name '%s'", name);
		job->strings[i + 1] = arena_text(&job->arena, name);
	}
	if (job->count > LAUNCH_STRINGS_MAX || bytes > LAUNCH_BODY_MAX - 256)
		return fail(err, ERR_LIMIT, "too many layers for one job");
	return 0;
}

struct tree_job_handle *tree_job_start(
	struct core *core, const struct tree_job_order *order, tree_job_fn *done, void *ctx)
{
	struct tree_job_handle *job = xzalloc(sizeof *job);
	struct tree_job_handle **last = &core->tree_jobs.first;
	*job = (struct tree_job_handle){
		.core = core, .input = -1, .answer = -1, .output = -1, .done = done, .ctx = ctx
	};
	arena_init(&job->arena);
	str_copy(job->request_id, sizeof job->request_id,
		order->request_id ? order->request_id : "");
	if (!copy_names(job, order, &job->failure))
		open_fds(job, order, &job->failure); /* a failure is told in its turn */
	while (*last)
		last = &(*last)->next;
	*last = job;
	start_waiting(core);
	return job;
}

void tree_job_cancel(struct tree_job_handle *job)
{
	struct launch_message head = { .type = LAUNCH_CANCEL, .other = job->tag };
	if (job->is_canceled)
		return;
	job->is_canceled = true;
	if (job->tag)
		launcher_ask(&job->core->launcher, &head, NULL, 0, NULL, 0, NULL, NULL);
}
