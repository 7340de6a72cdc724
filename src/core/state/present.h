/* present.h -- the present state of a workspace as a list of layers. Private to core. */
#pragma once
#include "core/internal.h"
#include "core/waits.h"

struct state {
	text_list layers; /* that show it, topmost first */
	/* The topmost one, if it was made for this; "": nothing was changed since those below. */
	char layer[LAUNCH_FROZEN_LEN + 1];
	bool is_moved; /* the workspace's uppers are empty now: its row must name the layer */
	/* private */
	struct core_workspace *w; /* held */
	struct arena arena;
	bool is_taken;
};
struct freeze_wanted {
	enum when_busy when_busy;
	uint64_t timeout_ms;		/* 0: the default */
	const struct cancelable *owner; /* that ends it, and its waits, when it is canceled */
};
/* Freezes the uppers, or copies them while commands run (WHEN_BUSY_PAUSE) or where they lie on
 * another file system; the layer is on disk then. Waits for a merge of the layers of w when there
 * are too many. The trees of w stay taken until state_end, which must follow; with an error
 * there is no state, and nothing was changed. */
int state_freeze(struct fiber *fiber, struct core_workspace *w, const struct freeze_wanted *wanted,
	struct state *state, struct error *err);
/* is_named: rows that name the layers are committed; else everything is as it was before. */
void state_end(struct state *state, bool is_named);
