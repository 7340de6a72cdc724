/* Straight code that waits: results, order, cancellation, stacks. */
#include "proc/fiber.h"

#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/str.h"
#include "proc/loop.h"
#include "unit.h"

struct job {
	struct loop *loop;
	struct fiber *fiber;
	char trace[128];
	int waits_left;
	struct error err;
	struct loop_timer *timer;
	unsigned *ended;
};

static void note(struct job *job, const char *what)
{
	size_t len = strlen(job->trace);
	str_copy(job->trace + len, sizeof job->trace - len, what);
}

static void succeed(struct loop *loop, void *ctx)
{
	struct job *job = ctx;
	job->timer = NULL;
	fiber_continue(job->fiber, NULL);
}

static int wait_for_timer(struct job *job, uint64_t delay_ms, struct error *err)
{
	job->timer = loop_after(job->loop, delay_ms, succeed, job);
	return fiber_wait(job->fiber, err);
}

static struct job new_job(void)
{
	struct job job = { 0 };
	struct error err;
	assert_int_equal(loop_new(&job.loop, &err), 0);
	return job;
}

static void stop(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

static void run_loop(struct loop *loop)
{
	struct error err;
	loop_after(loop, 20, stop, NULL);
	assert_int_equal(loop_run(loop, &err), 0);
}

/* Turns the loop until the job has noted all that is expected of it. */
static void await_trace(struct job *job, const char *trace)
{
	const uint64_t end_ms = clock_monotonic_ms() + 60000;
	while (strcmp(job->trace, trace) != 0 && clock_monotonic_ms() < end_ms)
		run_loop(job->loop);
	assert_string_equal(job->trace, trace);
}

/* ---- results and order ---- */

static void two_waits(struct fiber *fiber, void *ctx)
{
	struct job *job = ctx;
	job->fiber = fiber;
	note(job, "a");
	assert_int_equal(wait_for_timer(job, 1, &job->err), 0);
	note(job, "b");
	assert_int_equal(wait_for_timer(job, 1, &job->err), 0);
	note(job, "c");
}

static void a_job_goes_on_where_it_waited(void **state)
{
	struct job job = new_job();
	fiber_start(two_waits, &job);
	note(&job, "-");
	await_trace(&job, "a-bc");
	loop_free(job.loop);
}

static void answered_before_the_wait(struct fiber *fiber, void *ctx)
{
	struct job *job = ctx;
	struct error failure;
	fail_hint(&failure, ERR_CONFLICT, "a hint", "taken");
	fiber_continue(fiber, &failure);
	assert_int_equal(fiber_wait(fiber, &job->err), -1);
	assert_int_equal(job->err.code, ERR_CONFLICT);
	assert_string_equal(job->err.hint, "a hint");
	fiber_continue(fiber, NULL);
	assert_int_equal(fiber_wait(fiber, &job->err), 0);
	note(job, "end");
}

static void an_operation_may_end_before_the_wait(void **state)
{
	struct job job = { 0 };
	fiber_start(answered_before_the_wait, &job);
	assert_string_equal(job.trace, "end");
}

/* ---- cancellation ---- */

static void cut_timer(void *ctx)
{
	struct job *job = ctx;
	struct error failure;
	note(job, "cut ");
	loop_cancel(job->loop, job->timer);
	job->timer = NULL;
	fail(&failure, ERR_FAILED, "cut");
	fiber_continue(job->fiber, &failure);
}

static void canceled_job(struct fiber *fiber, void *ctx)
{
	struct job *job = ctx;
	job->fiber = fiber;
	job->timer = loop_after(job->loop, 3600000, succeed, job);
	assert_int_equal(fiber_wait_or_cut(fiber, cut_timer, job, &job->err), -1);
	assert_int_equal(job->err.code, ERR_CANCELED);
	fiber_cancel(fiber); /* delivered once */
	assert_int_equal(wait_for_timer(job, 0, &job->err), 0);
	note(job, "cleaned up");
}

static void a_cancellation_cuts_one_wait(void **state)
{
	struct job job = new_job();
	fiber_start(canceled_job, &job);
	fiber_cancel(job.fiber);
	await_trace(&job, "cut cleaned up");
	loop_free(job.loop);
}

static void canceled_without_cut(struct fiber *fiber, void *ctx)
{
	struct job *job = ctx;
	job->fiber = fiber;
	assert_int_equal(wait_for_timer(job, 1, &job->err), -1);
	assert_int_equal(job->err.code, ERR_CANCELED);
	note(job, "told at the end");
}

static void an_operation_without_cut_is_awaited(void **state)
{
	struct job job = new_job();
	fiber_start(canceled_without_cut, &job);
	fiber_cancel(job.fiber);
	assert_string_equal(job.trace, "");
	await_trace(&job, "told at the end");
	loop_free(job.loop);
}

static void canceled_between_waits(struct fiber *fiber, void *ctx)
{
	struct job *job = ctx;
	job->fiber = fiber;
	fiber_cancel(fiber);
	job->timer = loop_after(job->loop, 3600000, succeed, job);
	assert_int_equal(fiber_wait_or_cut(fiber, cut_timer, job, &job->err), -1);
	assert_int_equal(job->err.code, ERR_CANCELED);
}

static void a_cancellation_between_waits_cuts_the_next(void **state)
{
	struct job job = new_job();
	fiber_start(canceled_between_waits, &job);
	assert_string_equal(job.trace, "cut ");
	loop_free(job.loop);
}

static void cleaning_up(struct fiber *fiber, void *ctx)
{
	struct job *job = ctx;
	job->fiber = fiber;
	fiber_end_cancellation(fiber);
	assert_int_equal(wait_for_timer(job, 1, &job->err), 0);
	note(job, "cleaned up");
}

static void clean_up_is_not_canceled(void **state)
{
	struct job job = new_job();
	fiber_start(cleaning_up, &job);
	fiber_cancel(job.fiber);
	await_trace(&job, "cleaned up");
	loop_free(job.loop);
}

/* ---- stacks ---- */

static unsigned fill(unsigned depth)
{
	volatile char frame[1024];
	memset((char *)frame, (int)depth, sizeof frame);
	return depth ? fill(depth - 1) + (unsigned char)frame[depth % sizeof frame] : 0;
}

static void deep_job(struct fiber *fiber, void *ctx)
{
	struct job *job = ctx;
	char *block = malloc(100); /* named by this stack alone while the job waits */
	unsigned before = fill(300);
	job->fiber = fiber;
	assert_int_equal(wait_for_timer(job, 1, &job->err), 0);
	assert_int_equal(fill(300), before);
	free(block);
	++*job->ended;
}

static void many_jobs_have_stacks_of_their_own(void **state)
{
	enum { JOBS = 300 };
	struct job first = new_job(), *jobs = calloc(JOBS, sizeof *jobs);
	unsigned ended = 0;
	for (int i = 0; i < JOBS; i++) {
		jobs[i] = (struct job){ .loop = first.loop, .ended = &ended };
		fiber_start(deep_job, &jobs[i]);
	}
	run_loop(first.loop);
	while (ended < JOBS)
		run_loop(first.loop);
	free(jobs);
	loop_free(first.loop);
}

static void inner(struct fiber *fiber, void *ctx)
{
	struct job *job = ctx;
	job->fiber = fiber;
	note(job, "(");
	assert_int_equal(fiber_wait(fiber, &job->err), 0);
	note(job, ")");
}

static void outer(struct fiber *fiber, void *ctx)
{
	struct job *job = ctx;
	note(job, "[");
	fiber_start(inner, job);
	note(job, "x");
	fiber_continue(job->fiber, NULL);
	note(job, "]");
}

static void a_job_starts_and_continues_another(void **state)
{
	struct job job = { 0 };
	fiber_start(outer, &job);
	assert_string_equal(job.trace, "[(x)]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_goes_on_where_it_waited),
		cmocka_unit_test(an_operation_may_end_before_the_wait),
		cmocka_unit_test(a_cancellation_cuts_one_wait),
		cmocka_unit_test(an_operation_without_cut_is_awaited),
		cmocka_unit_test(a_cancellation_between_waits_cuts_the_next),
		cmocka_unit_test(clean_up_is_not_canceled),
		cmocka_unit_test(many_jobs_have_stacks_of_their_own),
		cmocka_unit_test(a_job_starts_and_continues_another),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
