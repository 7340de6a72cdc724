/* jobs.h -- processes that the launcher starts for core, which answer with a JSON object: work on
 * trees (core/tree_jobs.h) and on the blob store (core/blobs.h). Private to these two and to those
 * who wait for them.
 * 1. A few of a kind run at once; others wait, first come, first served.
 * 2. A callback is called once, never from inside the call that started the job. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "base/vec.h"
#include "core/cancelable.h"
#include "format/text/json_read.h"

struct core;
struct core_job;
struct loop_timer;
/* answer: what the process said, valid during the call; NULL when *err says why there is none.
 * ERR_CANCELED: it was canceled, or killed. */
typedef void job_fn(void *ctx, const struct json_value *answer, const struct error *err);

#define JOB_FDS_MAX 3
struct job_kind {
	int type;	 /* of the launcher's message */
	unsigned most;	 /* that run at once */
	int fd_count;	 /* that the message takes along */
	int answer;	 /* index of the one for the answer; */
	int handed_over; /* and of the one that is closed here when the process has it, or -1 */
	size_t named;	 /* index of the string that errors name */
	const char *noun;
	void (*ended)(struct core *core); /* after each job; or NULL */
};
struct job_queue {
	struct core *core;
	const struct job_kind *kind;
	struct core_job *first;
	unsigned running;
	struct loop_timer *turn;
};
struct core_job {
	struct job_queue *queue;
	struct arena arena;
	text_list strings;    /* in the arena */
	int fds[JOB_FDS_MAX]; /* closed with the job; -1: none */
	char request_id[ID_LEN + 1];
	struct error failure; /* code ERR_NONE: none. Found before it was started; told in its turn
			       */
	const struct cancelable *owner; /* that is canceled with its jobs; or NULL */
	/* private */
	uint64_t tag; /* while it runs; 0: it waits */
	bool is_canceled;
	job_fn *done;
	void *ctx;
	struct core_job *next;
};
/* To be filled in, then started. request_id: for the log; or NULL. */
struct core_job *job_new(struct job_queue *queue, const char *request_id);
/* Starts it, now or when others have ended. The handle is valid until done is called. */
void job_start(struct core_job *job, job_fn *done, void *ctx);
void job_cancel(struct core_job *job);	 /* done is called with ERR_CANCELED */
void jobs_done(struct job_queue *queue); /* forgets all of them */

/* Reads what a process has written to `fd`: a JSON object, or {"error": {"code", "message",
 * "hint"}}, which becomes *err. `what`, in errors: "the process that …". */
int job_read_answer(int fd, int exit_code, const char *what, struct arena *arena,
	struct json_value **answer, struct error *err);
