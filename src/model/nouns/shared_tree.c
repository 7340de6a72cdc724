#include "model/nouns/shared_tree.h"

static const struct field tree_rows[] = {
	{ "name", FIELD_TEXT, offsetof(struct shared_tree, name), .head = "NAME", .column = 1 },
	{ "workspaces", FIELD_TEXTS, offsetof(struct shared_tree, workspaces),
		"that have it attached", .head = "WORKSPACES", .column = 2 },
};
const struct record shared_tree_record = { "Tree", "A directory that workspaces share.",
	RECORD_ROWS(tree_rows), FIELD_OUT };
