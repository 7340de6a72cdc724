/* handlers.h -- the functions that serve the operations of REST, in a table for each of its files,
 * which alone names them. Private to this folder. */
#pragma once
#include "doors/call.h"
#include "model/operations/takes.h"

struct handler {
	const char *name; /* of the operation; NULL ends a table */
	route_fn *run;
	int which; /* c->which in run, when one function serves several operations */
};

/* workspaces.c: answers with the workspace that core is done with; 201 has a Location. */
void pending_answer_workspace(
	struct pending *op, struct core_workspace *w, const struct error *err, int status);
