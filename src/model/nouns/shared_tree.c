#include "model/nouns/shared_tree.h"
#include "model/records/rows.h"

static const struct field tree_rows[] = {
	ROW_OF(shared_tree, TEXT, name, .head = "NAME", .column = 1),
	ROW_OF(shared_tree, TEXTS, workspaces, "that have it attached", .head = "WORKSPACES",
		.column = 2),
};
const struct record shared_tree_record = { "Tree", "A directory that workspaces share.",
	RECORD_ROWS(tree_rows), FIELD_OUT };
