/* measure.h -- a number that takes a while to find: a child finds it, and the loop goes on
 * meanwhile.
 * 1. One at a time; the child dies with us. */
#pragma once
#include "base/error.h"
#include "linux/child.h"
#include "proc/loop.h"

#define MEASURE_KEEP_MAX 6
#define MEASURE_DETAIL_MAX sizeof(struct error) /* the answer is a single write to the pipe */

struct measure {
	struct loop *loop;
	uint64_t (*find)(void *ctx); /* runs in the child */
	/* false: the child ended without an answer */
	void (*found)(void *ctx, bool ok, uint64_t value);
	void *ctx;
	/* Descriptors that the child keeps open besides its answer (-1: none). It closes all
	 * others, so that readers of pipes that this process closes see end of file. keep_count 0:
	 * it keeps all. */
	int keep[MEASURE_KEEP_MAX], keep_count;
	/* Set by `find` in the child, copied back to the same place in the parent. NULL: nothing.
	 */
	void *detail;
	size_t detail_len; /* at most MEASURE_DETAIL_MAX */
	bool is_running, has_answer;
	struct child child;
	uint64_t answer;
};

/* Starts the child; set the fields above is_running before. A failed start is reported like a child
 * without an answer. */
void measure_start(struct measure *measure);
void measure_stop(struct measure *measure); /* ends a child that runs; idempotent */
