#include "sandbox/native/worker.h"

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) && errno == EINTR)
		;
}

static bool take(struct worker_job *job)
{
	return !atomic_exchange(&job->is_taken, true);
}

static void run_job(struct worker_job *job)
{
	job->failed = job->run(job->ctx, &job->err);
	sem_post(&job->done);
}

static void *work(void *ctx)
{
	struct worker *worker = ctx;
	for (struct worker_job *job = worker->jobs;; job++) {
		wait_for(&worker->due);
		if (!job->run)
			return NULL;
		if (take(job))
			run_job(job);
	}
}

int worker_start(struct worker *worker, struct error *err)
{
	sem_init(&worker->due, 0, 0);
	errno = pthread_create(&worker->thread, NULL, work, worker);
	if (errno)
		return fail_errno(err, "start a thread");
	worker->has_thread = true;
	return 0;
}

size_t worker_do(struct worker *worker, int (*run)(void *ctx, struct error *err), void *ctx)
{
	if (worker->count == WORKER_JOBS_MAX)
		abort();
	struct worker_job *job = &worker->jobs[worker->count];
	job->run = run;
	job->ctx = ctx;
	sem_init(&job->done, 0, 0);
	if (worker->has_thread)
		sem_post(&worker->due);
	return worker->count++;
}

void worker_begin(struct worker *worker, size_t number)
{
	struct worker_job *job = &worker->jobs[number];
	if (take(job))
		run_job(job);
}

int worker_finish(struct worker *worker, size_t number, struct error *err)
{
	struct worker_job *job = &worker->jobs[number];
	worker_begin(worker, number);
	wait_for(&job->done);
	if (job->failed)
		*err = job->err;
	return job->failed;
}

int worker_end(struct worker *worker, struct error *err)
{
	if (!worker->has_thread)
		return 0;
	sem_post(&worker->due);
	worker->has_thread = false;
	errno = pthread_join(worker->thread, NULL);
	return errno ? fail_errno(err, "wait for a thread") : 0;
}
