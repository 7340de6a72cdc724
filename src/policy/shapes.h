/* shapes.h -- the exactly known shapes of programs that can run others, or write files.
 * 1. A row lists all options that are known: one that isn't in it, an abbreviation, a value where
 * none is taken and a value that is missing make the reading unknown, and a person is asked.
 * 2. Options are read as the program itself reads them (getopt_long, or what `style` says): what
 * is taken for a value here is one there, and the command of a wrapper begins where it finds it.
 *
 * A row's options are separated by blanks: NAME|NAME…[KIND[EFFECT]]. A NAME of one character is a
 * short option, "NUM" is -1, -20 and so on.
 * KIND: none, or ',' no value; '=' a value, glued or the next word; '?' a value only if it is
 * glued; ':' as '=', but only the next word.
 * EFFECT, of the option or its value; none: harmless
 * !  can run programs or write files: a person is asked
 * r w b  a file that is read, written, both
 * W O  a file, a directory, that is written, and nothing in `.`
 * . h  writes in the directory `.`, doesn't
 * R V  all operands are read, written
 * T  a directory: written, and all operands are read
 * Y  deletes in the last operand
 * C  the directory to work in
 * j J q G  an editor is opened, also if a text is given; unless one is given; a text, a file of it
 * Q P  as q, but not "amend:" or "reword:"; not "interactive"
 * s p  a script of sh, a program of sed or awk
 * i c  an end of a name without '/' and '*', a value without ','
 * g f  a remote of git, an address
 * @ F N  a file after a leading '@', of a form, in NAME@FILE
 * u %  a file of curl's without a pattern, what curl prints at the end
 * M  a makefile
 * X  a command up to ';'
 * S I n  of wrappers: env -S, the string that xargs replaces, nothing is run
 * A D m x t  of tar: archive, directory; creates, extracts, lists
 *
 * `operands`, one letter each: '-' not a file; r w b O p g f as above; E a tree that is read;
 * d read, written and deleted; o read where it is surely a path; k K an input of a compiler that
 * is read, written; v a variable or target of make; l an input of less; ! a person is asked.
 * '*' the next one is for all that follow, '$' and one for the last.
 * Before those: '.' writes in `.`, ':' one with a colon is on another host, '=' assignments, '~'
 * opens an editor unless a text is given. %: a format of printf.
 * "-->": a wrapper, whose command comes after two operands; ">+" adds words to it. */
#pragma once
#include "policy/internal.h"

enum shape_style {
	SHAPE_MIXED,   /* options among the operands */
	SHAPE_FIRST,   /* options before the first operand */
	SHAPE_NEGATED, /* as MIXED; --no-NAME where NAME is in the row */
	SHAPE_DASH,    /* -name before letters: gcc, go */
	SHAPE_TAR,     /* as MIXED, after a word of letters without a dash */
	SHAPE_PAIRS,   /* NAME=VALUE alone: dd, make's variables are operands */
	SHAPE_FIND,    /* an expression; ':' alone */
};
struct shape {
	const char *names; /* of programs, or PROGRAM/SUBCOMMAND; separated by blanks */
	const char *options, *operands;
	enum shape_style style;
};
struct shape_item {
	bool is_operand;
	char effect;		 /* of an option; 0: harmless */
	bool has_value;		 /* of an option */
	struct shell_word value; /* or the operand */
	size_t from, to;	 /* X: the words of the command */
};
struct shape_reading {
	VEC(struct shape_item) items;
	size_t end;	     /* FIRST: the first operand; words->count */
	const char *unknown; /* why it isn't known what the words mean; NULL: it is */
};

/* The row of a program, by its name without a directory and a version; NULL: in no table. */
const struct shape *shape_find(struct arena *arena, const char *name);
/* The row of PROGRAM/SUBCOMMAND. */
const struct shape *shape_find_sub(
	struct arena *arena, const struct shape *program, const char *subcommand);
bool shape_has_subcommands(const struct shape *shape);
/* The program of a wrapper runs another. */
bool shape_is_wrapper(const struct shape *shape);
/* Whether the row has the option; its kind (0: no value) and effect. */
bool shape_option(const struct shape *shape, struct str name, char *kind, char *effect);
/* Reads the words after `first`. */
void shape_read(struct arena *arena, const struct shape *shape, const shell_words *words,
	size_t first, struct shape_reading *reading);
/* What the options of a wrapper read, write and run. */
void judge_shape_items(struct judge *j, const char *subject, const struct shape *shape,
	const shell_words *words, const struct shape_reading *reading);
