/* internal.h -- what the files of the judge share. */
#pragma once
#include "model/policy/policy.h"

struct policy_bucket { /* the rules that begin with one word; of "" those for any command */
	VEC(size_t) rules;
};
#define POLICY_DEPTH_MAX 16 /* of scripts in arguments: sh -c 'sh -c …' */

struct judge {
	const struct policy *policy;
	const struct policy_request *request;
	struct policy_verdict *verdict;
	struct arena *arena;
	unsigned depth;
	bool is_moved; /* the script changes its directory: relative paths aren't known */
};

/* judge.c */
void judge_step(struct judge *j, const char *subject, enum policy_decision decision,
	const char *rule, const char *reason);
void judge_script(struct judge *j, enum shell_dialect dialect, struct str script);
/* What an expansion in a word does, apart from its commands. */
void judge_words(struct judge *j, const char *subject, const shell_words *words);

/* simple.c */
void judge_simple(struct judge *j, const struct shell_command *command);

/* match.c */
enum match { MATCH_NO, MATCH_MAYBE, MATCH_YES };
/* The words from `first` on, as one command, against the shell rules. */
void match_command(struct judge *j, const char *subject, const shell_words *words, size_t first);
/* *rule: the one that decided, or NULL. */
enum policy_decision match_file(const struct policy *policy, enum policy_operation operation,
	const char *path, const char **rule);
/* Any file below `dir`, or `dir` itself. */
enum policy_decision match_files_below(const struct policy *policy, enum policy_operation operation,
	const char *dir, const char **rule);
bool glob_matches(const char *glob, const char *path);

/* files.c */
const char *file_subject(struct judge *j, enum policy_operation operation, const char *path);
void judge_redirect(struct judge *j, const char *subject, const struct shell_redirect *redirect);
/* A path that a command names, against the file rules. */
void judge_path(struct judge *j, enum policy_operation operation, const struct shell_word *word);
/* The file operations that the program at words[first] is known for. */
void judge_operands(struct judge *j, const shell_words *words, size_t first);

/* programs.c */
/* Options and arguments of the program at words[first] that run other programs or hide what is
 * done. Commands in its arguments are judged. */
void judge_program(struct judge *j, const char *subject, const shell_words *words, size_t first);
/* Variables that change which program runs, or what it does. */
bool variable_is_dangerous(const char *name);
/* Whether the word may begin with '-' once it is expanded. */
bool word_may_be_option(const struct shell_word *word);
