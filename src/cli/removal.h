/* removal.h -- `rm` of the daemon's objects: what would lose something in use is asked about on a
 * terminal, and refused elsewhere unless --force was given. */
#pragma once
#include "cli/cli.h"

struct users;
struct removal_use {
	const char *why;    /* "exec 'x' (sh) runs in it"; NULL: it isn't in use */
	const char *remedy; /* a hint, or NULL */
};
/* A kind of objects. `find`: NULL, or finds who uses the one at `path`. */
struct removal {
	const char *noun; /* "workspace" */
	int (*find)(struct command *command, const char *path, const char *name,
		struct users *users, struct removal_use *use, struct error *err);
};
extern const struct removal workspace_removal, agent_removal, case_removal, deployment_removal,
	template_removal;

#define REMOVAL_FORCE_ROW                                                                          \
	{                                                                                          \
		0, "force", ARG_FLAG, AT(force), NULL, "don't ask, and remove also what is in use" \
	}

/* DELETEs `path`/NAME for each name, as "/v1/archives/NAME", and prints the results. removal: NULL,
 * when nothing is looked at before. `query`, or NULL, is appended to the paths. */
int removal_run(struct command *command, const char *path, const text_list *names,
	const struct removal *removal, const char *query, struct error *err);
