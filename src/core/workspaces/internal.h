/* internal.h -- what core/workspaces keeps. Private to this folder. */
#pragma once
#include "core/internal.h"

struct core_upkeep {
	struct core_workspace *spare; /* of spare.c; NULL: none is made ahead */
	struct loop_timer *spare_due, *spare_alone;
	struct loop_timer
		*sweep; /* every minute: last uses saved, dirty ones measured, the log bounded */
	struct loop_timer *cleaning; /* starts the child that removes .del- trees */
	struct measure cleaner, meter;
	bool has_rubbish;
	struct core_waiter *clean_waiters; /* called by the end of `cleaner`: trees_when_clean */
	struct core_waiter
		*measurements; /* queue; the first is in progress, since meter_began_ms */
	struct pace_counters meter_counters;
	uint64_t meter_began_ms;
	unsigned meter_moves;
	struct closed_measure *closed_meter; /* measures instead of `meter`; or NULL */
	bool counts_disk;    /* the launcher has reported that no kernel mechanism is available */
	uint64_t port_calls; /* number of the last one; their ids */
};
struct workspace_life {
	struct loop_timer *idle, *expiry;
	uint64_t expires_at_ms; /* monotonic */
	uint64_t kept_ms;   /* monotonic: last time that background processes were found running */
	bool has_warned;    /* the event for 80 % of its disk limit was sent */
	bool is_suspending; /* becomes suspended when its sandbox has ended and is measured */
	const char *removal_why; /* "removed", "expired" */
	bool has_no_row;	 /* its row was deleted: the removal goes on from there */
	bool has_made_room; /* the disk was too full to delete its row: its tree is removed first */
	bool needs_room;    /* and that waits for the end of its sandbox */
	unsigned lost_starts; /* consecutive starts whose sandbox was lost before init connected */
	struct core_waiter *refusals; /* other creations of this name, refused when it is created */
};
