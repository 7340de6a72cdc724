/* The thread of a child that makes a sandbox: every job is done once, by one of the two. */
#include <errno.h>
#include <pthread.h>
#include "sandbox/native/worker.h"
#include "unit.h"

struct note {
	pthread_t by;
	int count;
	sem_t *begun, *go; /* it waits in between, when they are there */
};

static int write_note(void *ctx, struct error *err)
{
	struct note *note = ctx;
	note->by = pthread_self();
	note->count++;
	if (note->begun) {
		sem_post(note->begun);
		sem_wait(note->go);
	}
	return 0;
}

static int refuse(void *ctx, struct error *err)
{
	errno = EPERM;
	return fail_errno(err, "do it");
}

static void without_a_thread_a_job_is_done_when_it_is_needed(void **state)
{
	struct worker worker = { 0 };
	struct note note = { 0 };
	struct error err;
	size_t job = worker_do(&worker, write_note, &note);
	assert_int_equal(note.count, 0);
	assert_int_equal(worker_finish(&worker, job, &err), 0);
	assert_int_equal(note.count, 1);
	assert_int_equal(worker_end(&worker, &err), 0);
}

static void the_thread_does_what_nobody_waits_for(void **state)
{
	struct worker worker = { 0 };
	struct note notes[2] = { 0 };
	struct error err;
	assert_int_equal(worker_start(&worker, &err), 0);
	for (int i = 0; i < 2; i++)
		worker_do(&worker, write_note, &notes[i]);
	assert_int_equal(worker_end(&worker, &err), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(notes[i].count, 1);
		assert_false(pthread_equal(notes[i].by, pthread_self()));
	}
}

static void what_the_thread_has_not_begun_is_done_here(void **state)
{
	struct worker worker = { 0 };
	sem_t begun, go;
	struct note first = { .begun = &begun, .go = &go }, others[2] = { 0 };
	size_t jobs[2];
	struct error err;
	sem_init(&begun, 0, 0);
	sem_init(&go, 0, 0);
	assert_int_equal(worker_start(&worker, &err), 0);
	size_t held = worker_do(&worker, write_note, &first);
	sem_wait(&begun);
	for (int i = 0; i < 2; i++)
		jobs[i] = worker_do(&worker, write_note, &others[i]);
	worker_begin(&worker, jobs[0]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(worker_finish(&worker, jobs[i], &err), 0);
		assert_true(pthread_equal(others[i].by, pthread_self()));
	}
	sem_post(&go);
	assert_int_equal(worker_finish(&worker, held, &err), 0);
	assert_int_equal(worker_end(&worker, &err), 0);
	assert_false(pthread_equal(first.by, pthread_self()));
	assert_int_equal(first.count + others[0].count + others[1].count, 3);
}

static void a_failure_comes_with_its_reason(void **state)
{
	struct worker worker = { 0 };
	struct note note = { 0 };
	struct error err;
	assert_int_equal(worker_start(&worker, &err), 0);
	size_t bad = worker_do(&worker, refuse, NULL), good = worker_do(&worker, write_note, &note);
	assert_int_equal(worker_finish(&worker, good, &err), 0);
	assert_int_equal(worker_finish(&worker, bad, &err), -1);
	assert_int_equal(err.sys_errno, EPERM);
	assert_int_equal(worker_end(&worker, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_thread_a_job_is_done_when_it_is_needed),
		cmocka_unit_test(the_thread_does_what_nobody_waits_for),
		cmocka_unit_test(what_the_thread_has_not_begun_is_done_here),
		cmocka_unit_test(a_failure_comes_with_its_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
