/* case.h -- carrel case run: the results of its cells, and the directory that they are written to.
 * 1. results.jsonl has a line for each cell that has passed or failed, written as soon as it has:
 * what is there after a crash is what --resume goes on with.
 * 2. A result is of one case, source and harness (its key) and one repeat. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"
#include "cli/cli.h"

struct case_result {
	const char *name, *key;
	uint64_t repeat, duration_ms;
	bool has_passed;
	const struct json_value *value; /* of its line */
};
typedef VEC(struct case_result) case_results;
struct case_out {
	int dir;
	int lines; /* results.jsonl, to append to */
	const char *path;
};
/* Makes the directory, or with `resume` also takes the results that are there, which stay the first
 * lines. ERR_CONFLICT: there are results, and resume isn't set. */
int case_out_open(struct case_out *out, const char *path, bool resume, struct arena *arena,
	case_results *results, struct error *err);
/* Of the cell's JSON, as the daemon shows it: adds its line, and its files CASE/REPEAT/: env.json,
 * diff.patch, and a log for each step. */
int case_out_add(struct case_out *out, const struct json_value *cell, const char *key,
	struct arena *arena, case_results *results, struct error *err);
/* junit.xml and report.html. */
int case_out_finish(struct case_out *out, const case_results *results, struct error *err);
void case_out_done(struct case_out *out);

/* What a cell has failed by: its reason, with the names of graders that it did not pass; NULL if it
 * has no reason. */
const char *case_cause(const struct case_result *result, struct arena *arena);
/* Whether the name of a case is that of one file. */
bool case_name_is_plain(const char *name);
/* One line for each case: sorted by name, the repeats of a case together. */
void case_results_sort(case_results *results);
void case_print_table(const case_results *results, struct arena *arena, struct buf *out);
