/* recipes.h -- what a workspace asks of its environment of each kind, beside a name, and how a
 * build is told of it. Private to this folder. */
#pragma once
#include "model/nouns/workspace.h"

struct environment_recipe {
	/* Anything is asked for. */
	bool (*is_given)(const struct workspace *model);
	/* Packages are, which come from an index. */
	bool (*has_packages)(const struct workspace *model);
	/* Code of packages is to run while they are installed. */
	bool (*runs_scripts)(const struct workspace *model);
	/* Whether the build reads files from its stdin; print_input writes them. */
	bool (*has_input)(const struct workspace *model);
	void (*print_input)(const struct workspace *model, struct buf *text);
	/* The Python that is asked for, or NULL. */
	const char *(*python)(const struct workspace *model);
	/* Options of `carrel env build` that name the rest. */
	void (*list_words)(const struct workspace *model, struct arena *arena, text_list *words);
	const char *instead; /* of too many packages: a hint */
};
extern const struct environment_recipe *const environment_recipes[ENV_KINDS];
