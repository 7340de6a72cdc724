/* open.c -- what this room keeps of core and of each workspace is made and freed here. */
#include "core/packages/internal.h"

void packages_open(struct core *core)
{
	core->packages = xzalloc(sizeof *core->packages);
	map_init(&core->packages->pins, NULL);
}

void packages_close(struct core *core)
{
	map_done(&core->packages->pins);
	free(core->packages);
}

void packages_attach(struct core_workspace *w)
{
	w->packages = xzalloc(sizeof *w->packages);
}

void packages_detach(struct core_workspace *w)
{
	free(w->packages);
}
