/* internal.h -- what the files of the judge share. */
#pragma once
#include "policy/policy.h"
#include "policy/words.h"

struct policy_bucket { /* rules of one key */
	VEC(size_t) rules;
	/* Of a command's first word: whether rules of two words and more begin with it, which are
	 * found by both words. */
	bool has_longer, has_longer_forbidding;
};
#define POLICY_DEPTH_MAX 16 /* of scripts in arguments: sh -c 'sh -c …' */
/* Linux runs no program with a longer argument: sh -c SCRIPT. */
#define POLICY_SCRIPT_MAX ((size_t)128 << 10)
#define POLICY_WORDS_MAX 4096 /* of a simple command */

struct judge {
	const struct policy *policy;
	const struct policy_request *request;
	struct policy_verdict *verdict;
	struct arena *arena;
	struct policy_work *work;
	size_t size_max; /* of the arena */
	bool is_spent;	 /* the work or the memory: the verdict is ask at least */
	unsigned depth;
	bool is_moved;	      /* the script changes its directory: relative paths aren't known */
	const char *moved_to; /* but it does so once, to this one: they mean either place */
	bool begins_moved;    /* and no command runs before that */
	const struct shell_command *command; /* the simple command that is judged */
	const char *within;		     /* the wrappers around the command, or NULL */
	/* Commands of the script that may change files before, or while, the one that is judged
	 * runs; those among them that may change the configuration of git; those of git that write
	 * files of a working tree, where a repository may be brought; and whether one that may do
	 * either reads from a pipe. */
	unsigned others, others_than_git, checkouts, others_piped;
};

/* A judgement that begins: an empty trail, which allows. */
static inline struct judge judge_begin(const struct policy *policy,
	const struct policy_request *request, struct policy_verdict *verdict)
{
	*verdict = (struct policy_verdict){ .decision = POLICY_ALLOW };
	struct policy_work *work = request->work;
	if (!work) {
		work = arena_alloc(request->arena, sizeof *work);
		work->left = POLICY_WORK_MAX;
	}
	return (struct judge){ .policy = policy,
		.request = request,
		.verdict = verdict,
		.arena = request->arena,
		.work = work,
		.size_max = request->arena->size + POLICY_MEMORY_MAX };
}

/* rules.c */
int rule_split(struct arena *arena, struct str body, text_list *words, struct error *err);
/* Expands ~ and the variables of places. */
int rule_expand(struct arena *arena, const char *glob, const struct policy_places *places,
	const char **out, struct error *err);
/* host, *.host, * or one of them with a port. */
int rule_set_host(
	struct arena *arena, struct str pattern, struct policy_rule *rule, struct error *err);
int rule_check_text(const char *text, struct error *err); /* has no control characters */
/* The key of rules that begin with these two words. */
const char *rule_key(struct arena *arena, const char *first, struct str second, struct str *key);
/* ERR_LIMIT: there are POLICY_RULES_MAX. */
int rule_push(struct policy *policy, const struct policy_rule *rule, struct error *err);

/* judge.c */
/* Takes `steps` from what is left. false: the judgement has spent its work or its memory, and what
 * isn't looked at any more is asked for. A loop over rules, words or bytes calls it. */
bool judge_spend(struct judge *j, size_t steps);
/* What exceeds a limit of the judge is asked for, also where the policy never asks: a rule that
 * wasn't looked at may deny it. */
void judge_give_up(struct judge *j, const char *reason);
void judge_step(struct judge *j, const char *subject, enum policy_decision decision,
	const struct policy_rule *by, const char *reason);
/* A step that no rule decides, for that reason. */
void judge_ask(struct judge *j, const char *subject, const char *reason, ...)
	__attribute__((format(printf, 3, 4)));
/* A step that a rule, which isn't there yet, would allow. */
void judge_open_step(struct judge *j, const char *subject, enum policy_decision decision,
	const char *reason, const char *suggestion);
/* What a file says that isn't read yet: its reader judges again (inputs.h). */
void judge_wait(struct judge *j, const char *subject, const char *reason);
void judge_script(struct judge *j, enum shell_dialect dialect, struct str script);
/* What an expansion in a word does, apart from its commands. */
void judge_words(struct judge *j, const char *subject, const shell_words *words);

/* simple.c */
void judge_simple(struct judge *j, const struct shell_command *command);

/* match.c */
/* Whether `*`, any text, can make `pattern` into `text`; is_cut: into a text that begins so, where
 * *is_open tells whether only the last star of the pattern matched what isn't known. */
bool match_star(const char *pattern, const char *text, bool is_cut, bool *is_open);
enum match { MATCH_NO, MATCH_MAYBE, MATCH_YES };
/* The words from `first` on, as one command, against the shell rules. */
void match_command(struct judge *j, const char *subject, const shell_words *words, size_t first);
/* A command that needs no rule: allowed, unless one denies it or asks for it. */
void match_harmless(struct judge *j, const char *subject, const shell_words *words, size_t first,
	const char *reason);
/* The deny rule that matches the words from `first` on, or NULL. */
const struct policy_rule *match_denied(struct judge *j, const shell_words *words, size_t first);
/* The decision on a connection. */
enum policy_decision match_network(
	struct judge *j, const char *host, unsigned port, const struct policy_rule **by);
/* *by: the rule that decided, or NULL. */
enum policy_decision match_file(struct judge *j, enum policy_operation operation, const char *path,
	const struct policy_rule **by);
/* Where no rule matches. */
enum policy_decision match_default(
	const struct policy *policy, enum policy_operation operation, const char *path);
/* Any file below `dir`, or `dir` itself. */
enum policy_decision match_files_below(struct judge *j, enum policy_operation operation,
	const char *dir, const struct policy_rule **by);
/* Whether a rule denies, or asks for, a file that may lie below `dir`. */
bool match_is_forbidden_below(struct judge *j, enum policy_operation operation, const char *dir);
/* Whether the glob matches each path that the pattern (pattern.c) stands for. */
bool glob_covers(struct judge *j, const char *glob, const char *pattern);

/* pattern.c */
/* The paths that a word with wildcards may become in `dir`; NULL: it isn't known which. */
const char *pattern_of(struct judge *j, const char *dir, const struct shell_word *word);
/* All paths below those of a pattern, or of a plain path. */
const char *pattern_below(struct arena *arena, const char *pattern);
/* Whether a rule denies, or asks for, a path that the pattern stands for. */
bool pattern_is_forbidden(struct judge *j, enum policy_operation operation, const char *pattern);
/* The decision on all its paths; POLICY_ASK without *by where a rule forbids one of them. */
enum policy_decision match_pattern(struct judge *j, enum policy_operation operation,
	const char *pattern, const struct policy_rule **by);

/* settings_claude.c */
/* Commands that Claude Code takes for harmless, where no rule matches. */
bool claude_runs_unasked(const struct policy *policy, const shell_words *words, size_t first);
/* Wrappers that it looks through as if they weren't there. */
bool claude_strips(const char *wrapper);

/* suggest.c */
/* The rule that would allow these words as a command; NULL: they are expanded. */
const char *suggest_command(struct arena *arena, const shell_words *words, size_t first);

/* order.c */
/* Notes what makes the order of the script's commands unknown: loops, functions, `&`. */
void order_note_script(struct judge *j, struct str script, const struct shell_list *list);
/* Notes a command that was judged. */
void order_note_command(struct judge *j, const struct shell_command *command);
/* Whether a command in the words of this one, which runs before it, may write files. */
bool order_writes_within(const struct shell_command *command);

/* git_config.c */
/* The configuration and the hooks that git at words[first] obeys. */
void judge_git_config(struct judge *j, const char *subject, const shell_words *words, size_t first);

/* install.c */
/* What sources.json says of the command at words[first]. */
void judge_sources(struct judge *j, const char *subject, const shell_words *words, size_t first);

/* walks.c */
/* Directories that the program at words[first] reads with all that is in them. */
void judge_walks(struct judge *j, const shell_words *words, size_t first);
/* The file or directory that a word names, and all that is below it. */
void judge_tree(struct judge *j, unsigned operations, const struct shell_word *word);

/* files.c */
const char *file_subject(struct judge *j, enum policy_operation operation, const char *path);
/* A normal path against the file rules; is_open: also where none of them matches. */
void file_judge(struct judge *j, enum policy_operation operation, const char *path, bool is_open);
void judge_redirect(struct judge *j, const char *subject, const struct shell_redirect *redirect);
/* A path that a command names, against the file rules. */
void judge_path(struct judge *j, enum policy_operation operation, const struct shell_word *word);
/* The same of a redirection's target or of a file that an option writes. Without any file rule, one
 * inside the workspace or /tmp follows the command. */
void judge_output(
	struct judge *j, enum policy_operation operation, const struct shell_word *target);
/* The last name of a path, or of an address, without slashes behind it. */
const char *kept_name(struct judge *j, const char *source, bool is_address);
/* A file that is copied into `dir`, where it keeps the last name of `source`. unknown: NULL, or
 * `source` is an address, and what has one of these in its name gets another name. */
void judge_kept_name(struct judge *j, const char *dir, const char *source, const char *unknown);
/* The file operations that the program at words[first] is known for. */
void judge_operands(struct judge *j, const shell_words *words, size_t first);
/* The files that options of a wrapper name, before the command at words[end]. */
void judge_wrapper_files(struct judge *j, const shell_words *words, size_t first, size_t end);
/* A path that is read as a program or a script. */
void judge_script_path(struct judge *j, const char *subject, const struct shell_word *word);

/* programs.c */
/* Options and arguments of the program at words[first] that run other programs or hide what is
 * done. Commands in its arguments are judged. */
void judge_program(struct judge *j, const char *subject, const shell_words *words, size_t first);
/* Variables that change which program runs, or what it does. */
bool variable_is_dangerous(const char *name);

/* expanded_words.c */
/* Whether the word may become several words, or none, once it is expanded. File names that a
 * wildcard matches aren't counted. */
bool word_splits(const struct shell_word *word);
/* Whether it may begin with '-', or one of several words that it becomes may be an option. */
bool word_may_begin_option(const struct shell_word *word);
bool word_may_be_option(const struct shell_word *word);
/* Whether an expanded word may be, or have, the ';' that ends a command in arguments. */
bool word_may_end_command(const struct shell_word *word);
