/* worker.h -- a thread of the child that makes a sandbox. It does jobs whose results the child
 * needs only later; a job that the thread has not begun by then is done by the child itself.
 * 1. The thread takes jobs in the order of worker_do.
 * 2. It shares everything with the child but its credentials: until worker_end has returned, the
 *    child changes its ids by the system call (libc would change both threads') and executes
 *    nothing.
 * 3. Without worker_start every job is done by worker_finish. */
#pragma once
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include "base/error.h"

#define WORKER_JOBS_MAX 4

struct worker_job {
	int (*run)(void *ctx, struct error *err); /* NULL: the end */
	void *ctx;
	atomic_bool is_taken;
	sem_t done;
	int failed;
	struct error err;
};
struct worker {
	bool has_thread;
	pthread_t thread;
	sem_t due;
	size_t count;
	struct worker_job jobs[WORKER_JOBS_MAX + 1];
};

int worker_start(struct worker *worker, struct error *err);
/* Adds a job. What it returns is its number. */
size_t worker_do(struct worker *worker, int (*run)(void *ctx, struct error *err), void *ctx);
/* Does that job here unless the thread has begun it: for what the child can't do later. */
void worker_begin(struct worker *worker, size_t job);
/* Returns when that job is done, with its result. Once a job. */
int worker_finish(struct worker *worker, size_t job, struct error *err);
/* No job comes any more: waits for the thread. */
int worker_end(struct worker *worker, struct error *err);
