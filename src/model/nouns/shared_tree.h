/* shared_tree.h -- a directory of the home that several workspaces have mounted at once. */
#pragma once
#include "base/vec.h"
#include "model/records/record.h"

struct shared_tree {
	const char *name;
	text_list workspaces; /* names of those that have it attached */
};
extern const struct record shared_tree_record;
