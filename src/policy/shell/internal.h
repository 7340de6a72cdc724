/* internal.h -- what the files of the shell grammar share.
 * A parser reads one text: the script, or the content of a pair of backquotes. A function that
 * parses returns 0, or -1 with p->err set; it stands at the first byte after what it read. */
#pragma once
#include "policy/shell/shell.h"

struct shell_pending { /* a here-document whose body comes after the line */
	struct shell_command *command;
	size_t redirect; /* its place in command->redirects */
	const char *delimiter;
	bool is_literal, strips_tabs;
};
struct shell_parser {
	const char *data;
	size_t len, at;
	enum shell_dialect dialect;
	unsigned depth;
	int line; /* of data[line_at] */
	size_t line_at;
	VEC(struct shell_pending) pending;
	char word[16]; /* of shell_next_word */
	struct arena *arena;
	size_t size_max; /* of the arena */
	struct error *err;
};

/* lexer.c */
int shell_unknown(struct shell_parser *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(2)));
int shell_line(struct shell_parser *p);
int shell_enter(struct shell_parser *p);      /* one level deeper; -1: too deep */
int shell_check_size(struct shell_parser *p); /* -1: the tree is too large */
/* The byte `ahead` places on, as if backslash-newline weren't there; -1 at the end. */
int shell_look(const struct shell_parser *p, size_t ahead);
int shell_current(struct shell_parser *p); /* the same for 0; skips backslash-newline */
void shell_skip(struct shell_parser *p, size_t count);
bool shell_accept(struct shell_parser *p, const char *text); /* skips `text` if it comes next */
bool shell_ends_word(int c);				     /* blank, newline, operator, end */
bool shell_is_name_start(int c);
bool shell_is_name(int c);
void shell_skip_blanks(struct shell_parser *p); /* blanks, and a comment up to its newline */
/* Blanks, comments and newlines; reads the here-documents that are pending. */
int shell_skip_lines(struct shell_parser *p);

/* word.c */
int shell_read_word(struct shell_parser *p, struct shell_word *word); /* at least one byte */
int shell_read_value(
	struct shell_parser *p, struct shell_word *word); /* of an assignment: or none */
enum shell_end {		/* where a piece of text ends that isn't a word of a command */
	SHELL_END_BRACE,	/* ${x:-…} */
	SHELL_END_QUOTED_BRACE, /* the same within double quotes or a here-document */
	SHELL_END_BRACKET,	/* name[…] */
	SHELL_END_PARENTHESES,	/* $((…)), ((…)) */
	SHELL_END_TEXT,		/* a here-document */
};
int shell_read_text(struct shell_parser *p, enum shell_end end, struct shell_word *word);
void shell_add_text(struct shell_parser *p, struct shell_word *word, const char *data, size_t len,
	bool is_quoted);

/* expansion.c */
/* At '$' or '`'. Adds a part, or '$' as text where no expansion follows. */
int shell_read_expansion(struct shell_parser *p, bool is_quoted, struct shell_word *word);
int shell_read_process(struct shell_parser *p, struct shell_word *word);    /* after "<(" or ">(" */
int shell_read_arithmetic(struct shell_parser *p, struct shell_word *word); /* after "((" */

int shell_read_index(struct shell_parser *p, struct shell_word *index); /* after "name[" */

/* heredoc.c */
int shell_read_delimiter(struct shell_parser *p, struct shell_pending *pending);
int shell_read_heredocs(struct shell_parser *p); /* after a newline */

/* redirect.c */
bool shell_at_redirect(struct shell_parser *p);
int shell_read_redirect(struct shell_parser *p, struct shell_command *command);

/* command.c */
/* Commands up to the end, ")" or a reserved word that can't begin one; which isn't read. */
int shell_read_list(struct shell_parser *p, struct shell_list **list);
/* The word that comes next, if it could be a reserved one; NULL otherwise. Reads nothing; the
 * result is valid until the next call. */
const char *shell_next_word(struct shell_parser *p);

/* compound.c */
/* Reads the compound command that `word` begins. *is_read: false when it begins none. */
int shell_read_compound(
	struct shell_parser *p, const char *word, struct shell_command *command, bool *is_read);
int shell_read_body(struct shell_parser *p, struct shell_command *command, const char *closing);
/* After the name and "()": lines that may follow, and the compound command that is the body. */
int shell_read_function_body(struct shell_parser *p, struct shell_command *command);
