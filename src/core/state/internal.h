/* internal.h -- what core/state keeps. Private to this folder. */
#pragma once
#include "core/internal.h"

/* A snapshot that has a row. */
struct core_snapshot {
	struct core *core;
	struct snapshot model;
	struct arena arena; /* of the model's texts */
	bool is_unexamined; /* its size or content id could not be found out */
	struct core_snapshot *newer, *older;
};

struct core_state {
	struct map snapshots;		       /* by id */
	struct core_snapshot *newest_snapshot; /* all of them, by creation */
	struct inquiry *inquiry; /* the job that reads a snapshot (snapshot_content.c), or NULL */
	struct map held_layers;	 /* by name: layer_hold */
	struct loop_timer *layer_sweep;
	struct layer_merge *merge;  /* the merge in progress (merge_layers.c), or NULL */
	struct pull *pulls;	    /* queue of pull.c: the first is in progress */
	struct map template_builds; /* of template_builds.c, by name */
	int template_dir;	    /* <home>/templates */
	bool templates_outside;	    /* their store isn't in this home (template_fetch.c) */
	struct template_fetch *template_fetch;			/* the fetch in progress, or NULL */
	struct core_waiter *template_waiters;			/* called by the next fetch */
	bool archives_removed, archives_expired, archives_gzip; /* as configured */
};
struct workspace_trees {
	struct tree_taker *takers; /* queue of operations on them (takers.c) */
	struct loop_timer *look;   /* for `takers`: checks whether the workspace is still in use */
	bool is_taken;		   /* an operation has them: no sandbox starts meanwhile */
	struct layer_merge *merge; /* finished merge of layers that replaces them at the next start
				    * (merge_layers.c) */
	size_t unmerged_layers;	   /* number of layers when a merge failed: retry with more */
	struct archiving *archiving; /* the archive in progress (archives.c), or NULL */
};

void takers_forget(struct core_workspace *w); /* it goes */
void merge_forget(struct core_workspace *w);
void layers_done(struct core *core); /* forgets what is held */
