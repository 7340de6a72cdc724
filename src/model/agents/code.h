/* code.h -- a file that is run once in a throw-away workspace, and its tests. Pure.
 * 1. The end of its name says how a file is run: .py by Python, .sh by a shell. Tests that end in
 * .py are pytest's; tests that end in .sh have passed when they exit with 0. */
#pragma once
#include "model/nouns/exec.h"

#define CODE_BYTES_MAX (1u << 20) /* of each file */
#define CODE_FILE_PATTERN "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\\.(py|sh)$"

struct code_wanted {
	const char *file, *tests_file; /* NULL: main.py; test_main.py, or test_main.sh */
	const char *code, *tests;      /* tests: or NULL */
	text_list packages;
	const char *python; /* version, or NULL */
	struct str stdin_text;
	pair_list env;
	struct limits limits;
	struct workspace_network network;
	uint64_t timeout_ms; /* of the file, and of its tests; 0: the default of an exec */
};
extern const struct record code_wanted_record;
/* Deep copy, with the names of files that weren't given. */
void code_copy(struct arena *arena, const struct code_wanted *from, struct code_wanted *to);
bool code_is_shell(const char *file);
int code_check_file(const char *name, struct error *err);
/* The command that runs the file, of that text; items[count] is NULL. */
text_list code_command(struct arena *arena, const char *file, const char *text);

enum code_verdict {
	CODE_PASSED,
	CODE_FAILED,
	CODE_NONE,    /* no test was found */
	CODE_NOT_RUN, /* the file itself has failed */
	CODE_VERDICT_COUNT
};
extern const char *const code_verdict_names[CODE_VERDICT_COUNT + 1]; /* "passed" …, NULL */
/* Of the tests in that file, by how they ended. */
enum code_verdict code_judge(const char *file, const struct result *result);
extern const struct record code_result_schema; /* of what is answered */
