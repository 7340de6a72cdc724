#include "model/nouns/part.h"

#define IN(directory)                                                                              \
	directory "upper", directory "work", directory "upper.new", directory "upper.old"

const struct workspace_part workspace_parts[WORKSPACE_PARTS] = {
	[PART_WORKSPACE] = { "workspace", "", IN(""), false,
		{ [VIEW_WORKSPACE] = "/workspace", [VIEW_ROOT] = "/" }, "" },
	[PART_PYTHON] = { "env", "env", IN("env/"), true, { "/env", "/env" }, "/env/" },
	[PART_NODE] = { "node", "node", IN("node/"), true,
		{ "/workspace/node_modules", "/node_modules" }, "node_modules/" },
};
