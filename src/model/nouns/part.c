#include "model/nouns/part.h"

#define IN(directory)                                                                              \
	directory "upper", directory "work", directory "upper.new", directory "upper.old"

const struct workspace_part workspace_parts[WORKSPACE_PARTS] = {
	[PART_WORKSPACE] = { "workspace", "", IN(""), NULL,
		{ [VIEW_WORKSPACE] = "/workspace", [VIEW_ROOT] = "/" }, "" },
	[PART_PYTHON] = { "env", "env", IN("env/"), "python", { "/env", "/env" }, "/env/" },
	[PART_NODE] = { "node", "node", IN("node/"), "node",
		{ "/workspace/node_modules", "/node_modules" }, "node_modules/" },
};
