/* inputs.h -- files that a judge wants to look at: what `pip install -r FILE` and `npm ci` install,
 * which programs git's configuration names, and which address a remote stands for. Pure: the judge
 * names them, its caller reads them as a command in the sandbox would, and judges again.
 * 1. Their number, their sizes and the rounds are bounded. What isn't read is asked for.
 * 2. What was judged may be changed before the command runs: the sandbox and its network are the
 * boundary. A command that other commands of its script precede isn't allowed by what its files
 * held before those ran. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "policy/readers/git_config.h"
#include "policy/readers/package_names.h"

#define POLICY_INPUTS_MAX 64		      /* files */
#define POLICY_INPUT_MAX ((size_t)2 << 20)    /* bytes of one */
#define POLICY_INPUTS_BYTES ((size_t)6 << 20) /* of all */
#define POLICY_INPUT_ROUNDS 8		      /* of judging and reading */

enum policy_input_kind {
	POLICY_INPUT_FILE,  /* what a file holds; links are followed */
	POLICY_INPUT_TYPE,  /* path_type() of the path itself: a link is not followed */
	POLICY_INPUT_NAMES, /* the names in a directory, one on a line; '/' behind directories */
};
#define POLICY_INPUT_NAMES_MAX 256 /* a directory with more isn't read */

enum policy_input_state {
	POLICY_INPUT_WANTED,
	POLICY_INPUT_READ,
	POLICY_INPUT_MISSING,
	POLICY_INPUT_UNREAD, /* too large, not a file, not to be opened */
};
struct policy_input {
	enum policy_input_kind kind;
	const char *path; /* absolute and normal */
	enum policy_input_state state;
	struct str text;
	/* What it was understood as, once. */
	bool is_parsed;
	const char *problem; /* why it isn't understood, or NULL */
	struct package_names names;
	git_entries entries;
};
struct policy_inputs {
	struct arena *arena;
	struct policy_input *items[POLICY_INPUTS_MAX];
	size_t count, bytes;
	unsigned rounds;
};
/* The input, which is wanted from now on. NULL: too many are, or it isn't read in any round left.
 */
struct policy_input *policy_inputs_want(
	struct policy_inputs *inputs, enum policy_input_kind kind, const char *path);
/* The next input to be read, or NULL. */
struct policy_input *policy_inputs_next(const struct policy_inputs *inputs);
/* Whether files are to be read, and what was asked for is to be judged once more then. Counts the
 * rounds. */
bool policy_inputs_go_on(struct policy_inputs *inputs);
/* What it holds; not copied. */
void policy_inputs_give(struct policy_inputs *inputs, struct policy_input *input, struct str text);
/* It can't be read: ERR_NOT_FOUND is MISSING. */
void policy_inputs_fail(struct policy_input *input, enum error_code code);
