/* Operations on trees that workspaces share. */
#include "model/nouns/shared_tree.h"
#include "model/operations/takes.h"
#include "model/records/rows.h"

static const struct field tree_body_rows[] = {
	ROW_OF(tree_body, TEXT, name, NULL, FIELD_REQUIRED, .least = 1, .most = 64,
		.pattern = "^[a-z0-9][a-z0-9._-]{0,63}$"),
};
static const struct record tree_wanted_record = { "TreeWanted", NULL, RECORD_ROWS(tree_body_rows),
	FIELD_IN };

static const struct operation operations[] = {
	{ "GET", "/v1/trees", "listTrees", "tree ls", VERB_TREE_LIST,
		.summary = "List shared trees",
		.more = "Shared trees are directories that several workspaces can attach (`attach` "
			"of `POST /v1/workspaces`).",
		PAGES, LISTED("Trees", shared_tree_record, "Sorted by name.") },
	{ "POST", "/v1/trees", "createTree", "tree create", VERB_TREE_CREATE,
		.summary = "Create a shared tree", .more = "The tree is empty at first.",
		.flags = ROUTE_LOCATION, TAKES(tree_wanted_record, struct tree_body),
		ANSWER(201, TYPE_JSON, &shared_tree_record, "It was created."), CHANGES },
	{ "DELETE", "/v1/trees/{id}", "removeTree", "tree rm", VERB_TREE_REMOVE,
		.summary = "Remove a shared tree that no workspace uses",
		.more = "409 while a workspace has it attached.", REMOVED, CHANGES },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "Tree", "{'name':'datasets','workspaces':['demo']}" },
	{ "TreeWanted", "{'name':'datasets'}" },
	{ 0 },
};

const struct operation_table tree_operations = { "files", operations, examples };
