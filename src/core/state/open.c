/* open.c -- what this room keeps of core and of each workspace is made and freed here. */
#include "core/state/internal.h"
#include "core/state/template_builds.h"

void state_open(struct core *core, const struct core_options *options)
{
	struct core_state *state = xzalloc(sizeof *state);
	core->state = state;
	map_init(&state->snapshots, NULL);
	map_init(&state->held_layers, NULL);
	map_init(&state->template_builds, NULL);
	state->template_dir = -1;
	state->archives_removed = options->archives_removed;
	state->archives_expired = options->archives_expired;
	state->archives_gzip = options->archives_gzip;
}

void state_close(struct core *core)
{
	template_builds_close(core);
	layers_done(core);
	map_done(&core->state->snapshots);
	free(core->state);
	core->state = NULL;
}

void state_attach(struct core_workspace *w)
{
	w->trees = xzalloc(sizeof *w->trees);
}

void state_detach(struct core_workspace *w)
{
	takers_forget(w);
	merge_forget(w);
	free(w->trees);
}
