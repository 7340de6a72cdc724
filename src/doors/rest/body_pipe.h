/* body_pipe.h -- the body of a request into a pipe, in constant memory: reading from the client
 * pauses while the pipe is full. */
#pragma once
#include "core/uploads.h"
#include "doors/call.h"

struct body_pipe {
	struct call *call;
	int fd;			  /* doesn't block; -1: what comes is dropped */
	void (*ended)(void *ctx); /* all was written, or the reader is gone: close it */
	void *ctx;
	/* private */
	bool is_watched, is_last;
	struct buf rest; /* that the pipe hasn't taken */
};
void body_pipe_init(struct body_pipe *pipe, struct call *call, void (*ended)(void *), void *ctx);
/* From now on the body goes to fd. What comes is given to body_pipe_take. */
void body_pipe_open(struct body_pipe *pipe, int fd);
/* The next bytes; none: the end. */
void body_pipe_take(struct body_pipe *pipe, struct str data);
/* Stops writing; the descriptor stays the caller's. */
void body_pipe_stop(struct body_pipe *pipe);
void body_pipe_done(struct body_pipe *pipe);

/* archives.c: stores the body by a verb of core that begins an upload (core/uploads.h), and answers
 * 201 when it is stored. */
typedef int upload_verb(struct call *c, const char *sha256, job_fn *done, void *ctx,
	struct upload **upload, struct error *err);
int call_upload(struct call *c, upload_verb *verb, struct error *err);
