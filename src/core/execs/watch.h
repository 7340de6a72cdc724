/* watch.h -- keeps the limits of one warm sandbox that the kernel doesn't keep by itself, while
 * something runs there: summed cpu time of each exec, OOM kills; without a control group memory and
 * cpu share; the disk (watch_disk.h).
 * 1. Nothing is looked at while init is alone, nor before a command has run for 20 ms: a short exec
 * costs no look.
 * 2. The looks at all sandboxes together take at most a tenth of one cpu; a sandbox more makes each
 * of them rarer. */
#pragma once
#include "core/internal.h"
#include "model/nouns/metrics.h"

struct watch_limits;
int watch_open(struct core_workspace *w, struct error *err);
void watch_close(struct core_workspace *w);
/* An exec is about to be sent. */
void watch_spawning(struct core_workspace *w, struct core_exec *e);
/* It may delete there, and write no file. */
bool watch_forbids_growth(const struct core_workspace *w);
/* init answered INIT_STATS. */
void watch_receive_stats(struct core_workspace *w, uint64_t shm_bytes);
/* What the sandbox counts in an exec with a limit of cpu time, where that is more than its command
 * says. */
void watch_add_usage(struct core_workspace *w, struct core_exec *e);
/* Fills in what the sandbox uses: of a look at it now, or of the last one when the looks at all
 * sandboxes would take too long. Nothing when there is no sandbox. */
void watch_measure(struct core_workspace *w, struct workspace_metrics *metrics);
enum watch_verdict { WATCH_NOTHING, WATCH_HIT, WATCH_LATER };
/* Its command has ended. WATCH_HIT: *reason is the limit that it was over. WATCH_LATER: the tree is
 * being measured; exec_go_on_ending is called when that is done. */
enum watch_verdict watch_last_look(
	struct core_workspace *w, struct core_exec *e, enum reason *reason);
/* Stops all its processes for a copy of its trees, or lets them go on: whatever else stops and
 * continues them (a cpu share, a measurement) does not undo it. Sets w->is_paused. */
void watch_pause(struct core_workspace *w, bool pause);
/* The sandbox's init is gone: whether it ran out of memory. */
bool watch_is_out_of_memory(struct core_workspace *w);
/* It goes: nothing may be called back for it any more. */
void watch_forget(struct core_workspace *w, struct core_exec *e);
