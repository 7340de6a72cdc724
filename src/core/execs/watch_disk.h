/* watch_disk.h -- keeps the disk limit of one workspace while something runs in its sandbox.
 * 1. Where the file system has a quota, the kernel keeps the limit; here it is found out whether a
 * command that failed failed for it.
 * 2. Otherwise the limit is counted: the tree, at least a block an inode, and what the processes
 * hold outside it (sandbox/native/held.h), which the launcher counts. A look is one statfs; it
 * comes sooner the less room is left (sandbox/native/pace.h). When the limit may be passed,
 * everything in the sandbox is stopped until the tree is measured.
 * 3. A counted limit also holds for commands too short to be seen by a look: the first one in a
 * workspace that is over it may still clear up as it likes; once one has made it grow instead, the
 * next ones can delete but write no file (INIT_NO_GROWTH), until it is below its limit. In a
 * workspace that is over, an exec ends when its tree has been walked: the next one is held to what
 * is there.
 * 4. Trees are walked by children, a quarter of the time at most, and only when the file system has
 * lost room since the last walk. */
#pragma once
#include "core/internal.h"
#include "sandbox/native/held.h"
#include "proc/measure.h"

struct disk_mechanism; /* a row of the table in watch_disk.c */
struct execs;

struct watch_disk {
	struct core_workspace *w;
	struct execs *execs;
	const struct disk_mechanism *mechanism; /* NULL: no limit */
	struct loop_timer *timer;
	uint64_t timer_ms; /* that it was set to */
	bool was_full;	   /* at a look */
	bool was_over;	   /* perhaps, before the exec that began when nothing ran */
	/* the measurement that runs: the walk, and the question to the launcher */
	bool is_measuring, is_walked, is_walk_ok;
	struct measure tree;
	struct closed_measure *closed; /* in place of it; or NULL */
	uint64_t walked_bytes;
	uint64_t question; /* tag; 0: answered, or not asked */
	struct held held;
	uint64_t began_ms;
	uint64_t free_before; /* when it began */
	unsigned walks;	      /* begun */
	/* what the last one said */
	struct held_base base;
	uint64_t known_bytes, unmeasured_ms; /* time in which commands ran since that was known */
	uint64_t known_at_ms, free_room;     /* on the whole file system, then */
	uint64_t over_bytes;	/* when it was first seen over its limit; 0: it isn't */
	uint64_t after_ms;	/* not again before; */
	uint64_t stop_after_ms; /* nor is anything stopped for it */
	unsigned doubt;		/* how often others took the room that was lost */
	bool is_stopped;
	struct core_exec *judged; /* wait for a walk; linked by e->judged_next */
};

/* `w` and `execs` are set. is_adopted: the sandbox was started by an earlier core. */
void watch_disk_open(struct watch_disk *disk, bool is_adopted);
void watch_disk_close(struct watch_disk *disk);
void watch_disk_spawning(struct watch_disk *disk);
bool watch_disk_forbids_growth(const struct watch_disk *disk);
enum watch_verdict watch_disk_last_look(struct watch_disk *disk, struct core_exec *e);
void watch_disk_forget(struct watch_disk *disk, struct core_exec *e);
/* ---- watch.c ---- */
/* Its sandbox is ended for the limit. */
void watch_disk_hit(struct core_workspace *w);
/* of the current sandbox; NULL: no sandbox */
struct watch_disk *watch_disk_of(const struct core_workspace *w);
