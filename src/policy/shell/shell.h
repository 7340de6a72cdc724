/* shell.h -- the syntax tree of a shell script, for a judge of commands. Pure.
 * 1. A script is understood whole or not at all: a construct that isn't in this grammar, or that
 * shells read differently, is an error, never a smaller tree. A caller takes an error for
 * "unknown".
 * 2. Every command that the script could run from its own text is in the tree: in substitutions,
 * here-documents, default values, arithmetic, conditions and function bodies too (shell_visit).
 * 3. A word keeps its quoting: its `literal` is set only when no shell would expand any part of it.
 * 4. What isn't in the text can't be in the tree: eval, aliases, sourced files, and arithmetic on
 * variables (bash runs `a[$(id)]` when a variable with that value is a number's name) are left to
 * the judge, who finds them by the command's name and by SHELL_ARITHMETIC. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

#define SHELL_SCRIPT_MAX ((size_t)1 << 20)
#define SHELL_TREE_MAX ((size_t)16 << 20) /* bytes that the tree of one script takes */
#define SHELL_DEPTH_MAX 64		  /* of substitutions and compound commands in each other */

enum shell_dialect {
	SHELL_SH,   /* whichever shell /bin/sh is: only what dash and bash read alike */
	SHELL_BASH, /* bash, not in its POSIX mode */
};

enum shell_part_kind {
	SHELL_TEXT,	  /* text: bytes after quote removal */
	SHELL_PARAMETER,  /* text: its name; words: the default, pattern, offset … */
	SHELL_COMMAND,	  /* $(…) and `…`: commands */
	SHELL_PROCESS,	  /* <(…) and >(…): commands */
	SHELL_ARITHMETIC, /* $((…)): words */
	SHELL_PATTERN,	  /* text: an unquoted * ? or [ */
	SHELL_BRACES,	  /* an unquoted { that may begin a brace expansion */
	SHELL_TILDE,	  /* an unquoted ~ where shells look for a home directory */
};
struct shell_list;
struct shell_word;
typedef VEC(struct shell_word) shell_words;
struct shell_part {
	enum shell_part_kind kind;
	bool is_quoted;	   /* the result isn't split into words nor matched as a pattern */
	bool is_evaluated; /* ARITHMETIC with a name or an expansion; PARAMETER with a subscript */
	bool is_assigned;  /* PARAMETER: ${name=…} and ${name:=…} */
	const char *text;
	size_t text_len, text_capacity;
	shell_words words;
	const struct shell_list *commands;
};
struct shell_word {
	VEC(struct shell_part) parts;
	const char *literal; /* the word after quote removal; NULL: it has another part than TEXT */
	bool is_bare;	     /* unquoted text alone: may be a reserved word */
	struct str source;   /* as written; of a script in backquotes: with its escapes removed */
};

struct shell_assignment {
	const char *name;
	bool is_appended;	 /* += */
	bool has_subscript;	 /* name[…]=: bash evaluates it as arithmetic */
	struct shell_word index; /* has_subscript */
	struct shell_word value;
	bool is_array;	   /* name=(…) */
	shell_words items; /* is_array */
};
enum shell_redirect_kind {
	SHELL_READ,	   /* <  */
	SHELL_WRITE,	   /* >  */
	SHELL_CLOBBER,	   /* >| */
	SHELL_APPEND,	   /* >> */
	SHELL_READ_WRITE,  /* <> */
	SHELL_COPY_IN,	   /* <&: target is digits or - */
	SHELL_COPY_OUT,	   /* >&: target is digits or - */
	SHELL_WRITE_BOTH,  /* &>, and >& with a file */
	SHELL_APPEND_BOTH, /* &>> */
	SHELL_HEREDOC,	   /* << and <<-: target is the body */
	SHELL_HERESTRING,  /* <<< */
};
struct shell_redirect {
	enum shell_redirect_kind kind;
	int fd; /* -1: the default of its kind */
	struct shell_word target;
};
enum shell_command_kind {
	SHELL_SIMPLE,	/* assignments, words, redirects */
	SHELL_GROUP,	/* { … } */
	SHELL_SUBSHELL, /* ( … ) */
	SHELL_IF,	/* bodies: condition, then, condition, then … else */
	SHELL_WHILE,
	SHELL_UNTIL,	 /* bodies: condition, body */
	SHELL_FOR,	 /* words: the name, then the items; bodies: one */
	SHELL_SELECT,	 /* as FOR */
	SHELL_CASE,	 /* words: the subject, then all patterns; bodies: one for each branch */
	SHELL_FUNCTION,	 /* words: its name; bodies: one */
	SHELL_CONDITION, /* [[ … ]]: words: the operands and operators between */
	SHELL_ARITHMETIC_FOR, /* for ((…)): words: one; bodies: one */
	SHELL_EVALUATION,     /* ((…)): words: one */
};
struct shell_command {
	enum shell_command_kind kind;
	VEC(struct shell_assignment) assignments;
	shell_words words;
	VEC(struct shell_redirect) redirects;
	VEC(struct shell_list *) bodies;
	bool is_piped; /* its output is the input of the next command of the list */
	int line;      /* from 1 */
	struct str source;
};
struct shell_list {
	VEC(struct shell_command *) commands; /* in order, whatever joins them: ; & && || | */
};

/* Parses `script`; the tree is in `arena` and points into `script`. ERR_INVALID: not understood;
 * the text says why, "line 3: …". ERR_LIMIT: too long, too deep,
 * or the tree is too large. */
int shell_parse(struct str script, enum shell_dialect dialect, struct arena *arena,
	const struct shell_list **list, struct error *err);

/* Calls `visit` for each command of the list, at any depth, a command before those within it.
 * Stops at the first result that isn't 0, and returns it. */
typedef int shell_visit_fn(void *ctx, const struct shell_command *command);
int shell_visit(const struct shell_list *list, shell_visit_fn *visit, void *ctx);
