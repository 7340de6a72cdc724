/* guard.h -- keeps the limits of a running sandbox that the kernel doesn't keep by itself: wall
 * time, summed cpu time, the buffers of sockets on cgroup v1, and where there is no control group
 * also memory and cpu share; watches for OOM kills and a full workspace.
 * 1. The first limit that is hit is the one that is named.
 * 2. A sample that cost a lot delays the next one: at most a tenth of one cpu goes into looking. */
#pragma once
#include "linux/cgroup.h"
#include "model/nouns/result.h"
#include "proc/loop.h"
#include "proc/measure.h"
#include "sandbox/native/held.h"
#include "sandbox/native/usage.h"
#include "sandbox/plan/plan.h"

/* Keeps a directory of the host to a number of bytes where no quota does it, while a sandbox works
 * there (`carrel run --dir D --disk N`).
 * 1. Counted are the tree, at least a block an inode, and what the processes hold outside it
 * (held.h).
 * 2. It is looked at more often the less room is left (pace.h). When the limit may be passed,
 * everything in the sandbox is stopped until the tree is measured. */
struct guard_disk {
	struct held_base base; /* of guard_check_disk */
	struct loop_timer *timer;
	struct measure measure;
	struct guard_disk_found {
		struct held held;
		uint64_t counted_bytes, free_bytes, free_room;
	} found;
	uint64_t known_bytes, free_room; /* of the last measurement */
	uint64_t began_ms, known_at_ms, rest_until_ms, stop_after_ms;
	unsigned doubt; /* pace_doubt */
	bool is_stopped;
};

struct guard {
	const struct plan *plan;
	const struct cgroup *cgroup;
	struct loop *loop;
	int init_socket;
	void (*hit)(void *ctx, enum reason reason); /* a limit: end the sandbox */
	void *ctx;
	pid_t family; /* the process that is above the sandbox's, without a pid namespace; else 0 */
	struct guard_disk counted; /* set: base, for a disk that is counted */
	/* private */
	struct usage usage;
	bool is_watching;		  /* usage is there */
	int root, workspace, upper, proc; /* descriptors of the sandbox's own file systems */
	int oom_fd;
	uint64_t started_ms;
	struct loop_timer *wall, *sample, *disk, *oom, *sockets;
	int oom_looks; /* since the last event */
	unsigned samples;
	bool disk_was_full;
	uint64_t noted_cpu_ms, noted_peak_kb;
	volatile uint64_t *sampled_cpu_ms; /* where to note it for another process, or NULL */
	uint64_t missed_cpu_ms;		   /* that another process has counted before this one */
	bool is_deputy;			   /* guard_take_over: init's answers are not for us */
	struct sample look;
};

/* Measures the directory before the start, when the plan has one that is counted. ERR_LIMIT: it is
 * over its limit already. */
int guard_check_disk(const struct plan *plan, struct held_base *base, struct error *err);
/* Begins: the wall clock runs from here. */
int guard_start(struct guard *guard, struct error *err);
/* Descriptors of the sandbox; guard owns them now. */
void guard_descriptors(struct guard *guard, int proc, int root, int workspace);
/* How long a command may run before its child is listened to. */
uint64_t guard_first_look_ms(const struct guard *guard);
/* It lives long enough to be measured: sampling begins. */
int guard_watch(struct guard *guard, struct error *err);
/* carrel-init answered INIT_STATS. */
void guard_shm(struct guard *guard, uint64_t bytes);
/* When the command has ended: an OOM kill, or a failure with the workspace full, that no sample has
 * seen. true: *reason is the limit. */
bool guard_last_look(struct guard *guard, bool command_failed, enum reason *reason);
/* Notes the usage of the running processes. Call it before they are killed: the kernel doesn't
 * report it afterwards. */
void guard_note_usage(struct guard *guard);
/* Adds what guard knows to the figures of the caller's rusage. */
void guard_add_usage(struct guard *guard, struct result *result);
/* In a child of the process of `from`: goes on in its place, in a loop of its own. `suspended`: the
 * sandbox is stopped on purpose, and stays so. `counted_ms`: the cpu time that the parent has
 * counted last. loop, hit and ctx are set. */
void guard_take_over(
	struct guard *guard, const struct guard *from, bool suspended, uint64_t counted_ms);
/* In the parent, when that child was ended: it may have stopped the sandbox for a moment. */
void guard_let_go_on(struct guard *guard);
/* Which exec carrel-init is to signal so that all stop: 0, all; without a pid namespace the
 * command's process group. */
#define GUARD_COMMAND_ID 1
static inline uint64_t guard_signal_id(const struct plan *plan)
{
	return plan_has_pids(plan) ? 0 : GUARD_COMMAND_ID;
}
/* Whether a limit is kept that needs a process which looks. */
bool guard_is_needed(const struct plan *plan);
/* What it looks through. */
#define GUARD_FDS (5 + CGROUP_DIRS_MAX)
int guard_descriptors_of(const struct guard *guard, int fds[GUARD_FDS]);
/* The sandbox is gone: no limit can be hit any more. */
void guard_end(struct guard *guard);
void guard_stop(struct guard *guard);
