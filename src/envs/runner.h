/* runner.h -- how this room runs a command in a sandbox: the runner is passed in, so that envs/
 * knows nothing of namespaces. envs/builder/job_runner.c is the one there is. A job's sandbox sees
 * /usr and the like, `stage` at /env (writable), the binds (read-only), /workspace and /tmp of its
 * own, no network unless `forward` is set; no workspace, secret or other build. */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"
#include "model/nouns/result.h"

struct env_meta;
struct job_bind {
	const char *source, *target; /* absolute; shown read-only */
	bool is_writable;
};
struct job {
	const char *const *argv; /* NULL-terminated */
	text_list env;		 /* "K=V", besides what every sandbox has */
	const char *cwd;	 /* NULL: /workspace */
	const char *stage; /* host directory shown at /env, writable; NULL: none. It belongs to the
			      home's owner */
	VEC(struct job_bind) binds;
	bool forward;	     /* the build's forwarder is to be reached: HTTP(S)_PROXY are set */
	uint64_t timeout_ms; /* 0: none */
	const struct env_meta
		*environment;  /* mounted at /env, changes are thrown away; no stage then */
	uint64_t disk_bytes;   /* that the stage may hold; 0: no limit */
	uint64_t memory_bytes; /* 0: 4 GiB, or what the host can */
};
struct job_result {
	enum reason reason; /* the output limit is 32 MB to stdout and stderr */
	int exit_code;
	uint64_t duration_ms;
};
struct runner {
	void *ctx;
	/* Runs it to its end; `out` and `errors` get what it wrote, at most 16 MB each. -1 only
	 * when the sandbox itself failed. */
	int (*run)(void *ctx, const struct job *job, struct buf *out, struct buf *errors,
		struct job_result *result, struct error *err);
	/* Called about ten times a second while a job runs; NULL: not. For progress. */
	void (*tick)(void *ctx);
	void *tick_ctx;
	/* Not 0: interrupted (Ctrl-C); running jobs end by themselves. NULL: never interrupted. */
	volatile int *interrupted;
};
