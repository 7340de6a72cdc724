/* usage.h -- what a sandbox uses, read from its own /proc, for hosts where no control group counts
 * it.
 * 1. Every process of the sandbox is seen, since its /proc lists its pid namespace and nothing
 * else.
 * 2. Memory has a bound that never says less than is used, but for memfds, which only their
 * descriptors show; and what is used (shared pages once), at a price: it is asked for only when the
 * bound and what memfds could add to it are over the limit.
 * 3. Not seen at all: buffers of unix sockets, a memfd under way in a socket, one of a process that
 * isn't dumpable, and pages of shared mappings that were dropped from the page tables. */
#pragma once
#include "base/error.h"
#include "model/nouns/result.h"
#include "proc/loop.h"
#include "proc/measure.h"

#define USAGE_TMPFS 3 /* root, workspace, upper of the environment */

struct usage {
	int proc;    /* the sandbox's /proc */
	pid_t below; /* not 0: the host's /proc, of which this process and those below it count;
		      * of its own memory nothing */
	int tmpfs[USAGE_TMPFS]; /* its own tmpfs trees, or -1 */
	uint64_t shm_device; /* of the kernel's internal tmpfs: SysV and anonymous shared memory */
	uint64_t sysv_bytes; /* as carrel-init last said */
	int processes;	     /* seen by the last usage_memory_bound, init among them */
	uint64_t departed_cpu_ms; /* of processes that have been seen and are gone */
	struct usage_seen *seen;
	int seen_count;
};

int usage_init(struct usage *usage, int proc, const int tmpfs[USAGE_TMPFS], struct error *err);
void usage_done(struct usage *usage);
/* Calls fn for every process in `proc`, a sandbox's /proc. */
void usage_each_process(int proc, void (*fn)(void *ctx, int proc, int pid), void *ctx);
/* Summed cpu time of all processes, the ended ones included as far as they were seen or waited for.
 */
uint64_t usage_cpu_ms(struct usage *usage);
/* The largest peak of resident memory among the processes that live now, in kB. */
uint64_t usage_peak_kb(struct usage *usage);
/* What there is now: memory (shared pages count once for each process that has them; memfds that
 * aren't mapped don't count) and tasks, which are threads of all processes. */
void usage_look(struct usage *usage, uint64_t *memory_bytes, uint64_t *tasks);
/* Bytes and inodes still free in the tmpfs at `tree`; false when it can't be asked. */
bool usage_tmpfs_is_full(int tree);

/* Looks at a sandbox that no control group holds to its memory and its share of cpu time.
 * 1. Pages that processes share count once for each of them in the cheap look. Counting them right
 * is dear, so a child does it, seldom, and not at all when one process alone is over the limit.
 * Memfds are counted by that child, too. It is asked when the shared memory of the whole machine
 * has grown by what is left, and once a second while that memory is more than what is left.
 * 2. The share is kept by stopping everything until the time that was used is allowed; what isn't
 * used is saved for a moment only. */
#define SAMPLE_MS 20

struct sample {
	struct loop *loop;
	int init_socket;
	uint64_t memory_bytes, millicpus; /* 0: not held */
	void (*hit)(void *ctx, enum reason reason);
	void *ctx;
	struct usage *usage; /* the caller's, made by usage_init */
	bool is_held;	     /* the caller has stopped all processes: none is let go on */
	/* private */
	struct measure memory; /* what takes long to find */
	uint64_t memory_began_ms;
	uint64_t exact_after_ms; /* the dear measurement isn't made again before */
	uint64_t exact_until_ms; /* the last one says what memfds hold until then, */
	uint64_t bound_bytes, shared_bytes, hidden_bytes; /* with these beside it */
	bool is_paused;
	uint64_t paused_at_cpu_ms;
	int64_t saved_us;		 /* of cpu time; below 0: owed */
	uint64_t share_ms, share_cpu_ms; /* the last look */
	struct loop_timer *resume;
};
/* Begins with the present; the fields above are set. */
void sample_begin(struct sample *sample);
/* true: memory is over its limit for certain. Otherwise `hit` may be called for it a little later.
 */
bool sample_is_memory_over(struct sample *sample);
/* `cpu_ms`: what the sandbox has used in all. May call hit (REASON_CPU_LIMIT) for one that doesn't
 * let itself be stopped. */
void sample_hold_share(struct sample *sample, uint64_t cpu_ms);
/* How long to wait before the next look when this one took `cost_us` and `count` sandboxes are
 * looked at: all of it together is at most a tenth of one cpu. */
uint64_t sample_rest_ms(uint64_t cost_us, unsigned count);
void sample_end(struct sample *sample); /* nothing is called any more; idempotent */
