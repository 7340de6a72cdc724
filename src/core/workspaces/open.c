/* open.c -- what this room keeps of core and of each workspace is made and freed here. */
#include "core/workspaces/internal.h"

void upkeep_open(struct core *core)
{
	core->upkeep = xzalloc(sizeof *core->upkeep);
}

void upkeep_close(struct core *core)
{
	free(core->upkeep);
	core->upkeep = NULL;
}

void life_attach(struct core_workspace *w)
{
	w->life = xzalloc(sizeof *w->life);
}

void life_detach(struct core_workspace *w)
{
	free(w->life);
}
