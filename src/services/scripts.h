/* scripts.h -- what runs in the workspaces of tools and code: Python, given to the interpreter as
 * its input.
 * 1. No file of a tool's workspace can replace it, or what it imports: neither /workspace nor a
 * variable is part of sys.path, and the tests and calls of tools can't write below /env. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "core/execs/execs.h"

/* Exit codes of tests that didn't pass; others are pytest's own. */
enum {
	SCRIPT_FAILED = 1,
	SCRIPT_NONE = 5,
	SCRIPT_ORDER = 6,
	SCRIPT_LOST = 7,
	SCRIPT_STOPPED = 8,
	SCRIPT_UNCALLABLE = 9
};

extern const struct str script_package_tests;
/* The adapter of the package of that name. */
const char *script_package(struct arena *arena, const char *name);

/* Sets command and input of *spec; texts live in the arena. The first runs the tests of a tool
 * twice, the second a file of tests beside the code, the third run(**arguments); its result stands
 * behind `mark`, of hex digits. */
void script_test_tool(
	struct arena *arena, const char *code, const char *tests, struct exec_spec *spec);
void script_test_code(struct arena *arena, const char *file, struct exec_spec *spec);
void script_call(struct arena *arena, const char *mark, const char *code, const char *arguments,
	struct exec_spec *spec);
