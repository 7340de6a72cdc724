/* args.h -- command lines, from one table a command: parsing and --help follow from it.
 * 1. Options end at "--" or at the first operand, so that `carrel run ls -l` needs no quoting.
 * 2. An option given twice: the last one counts, lists collect.
 * 3. Values are checked here; a wrong one is ERR_INVALID and names the option and what was typed.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"
#include "model/records/record.h"

enum arg_kind {
	ARG_FLAG,     /* bool */
	ARG_TEXT,     /* const char * */
	ARG_LIST,     /* text_list */
	ARG_CHOICE,   /* const char *, one of `choices` */
	ARG_SIZE,     /* uint64_t bytes */
	ARG_DURATION, /* uint64_t milliseconds */
	ARG_COUNT,    /* uint64_t */
	ARG_CPUS,     /* uint64_t thousandths */
	ARG_ROWS,     /* the options of another table, `rows` */
	ARG_RECORD,   /* numbers that a client may send of `record`, each as an option; offset: of
			 its struct. A '_' in a name is a '-' here */
};
struct arg_help {
	const char *name; /* of a field; NULL ends the list */
	const char *help;
};

struct arg_option {
	char letter;	  /* or 0 */
	const char *name; /* without "--" */
	enum arg_kind kind;
	size_t offset;	     /* of the field in the options structure */
	const char *metavar; /* NULL for flags */
	const char *help;
	const char *choices;	      /* ARG_CHOICE: "text|json" */
	uint64_t least, most;	      /* numbers; most 0: no upper bound but the type's. Of a text
					 least 1: it may not be empty */
	const struct record *record;  /* ARG_RECORD */
	const struct arg_help *helps; /* instead of the rows' own, where they differ; or NULL */
	const char *later; /* ARG_CHOICE: words reserved for a later version, refused with that
			      reason */
	const struct arg_option *rows; /* ARG_ROWS */
	size_t row_count;
};
#define ARG_TABLE(array) .options = array, .option_count = sizeof(array) / sizeof *(array)

/* What help, the manual and completion list together. */
enum arg_group {
	GROUP_NONE, /* a subcommand */
	GROUP_EVERYDAY,
	GROUP_WORKSPACES,
	GROUP_EXECS,
	GROUP_PACKAGES,
	GROUP_AGENTS,
	GROUP_POLICY,
	GROUP_DAEMON,
	GROUP_SELF,
	GROUP_COUNT
};

struct command;
struct arg_spec {
	const char *command; /* "run", "env build" */
	/* What its usage line has behind the command: "NAME... [options]". How many operands there
	 * may be follows from it. NULL: "[options]", of a group "COMMAND [options]". */
	const char *usage;
	const char *about; /* one paragraph for --help */
	const struct arg_option *options;
	size_t option_count;
	const char *later;    /* "template|v": names and letters of options that a later version
				 has, or NULL: they are refused as such */
	const char *examples; /* lines for the end of --help, or NULL */
	const char *summary;  /* for the list of commands */
	enum arg_group group; /* in that list */
	size_t least, most;   /* operands, where the usage line doesn't say it; or 0 */
	bool takes_command;   /* after the operands that it needs: the words of a command, never
				 options */
	const struct arg_spec *const *commands; /* its subcommands, up to NULL; or NULL, and then */
	/* 0, an exit code after everything has been said, or -1. */
	int (*run)(struct command *command, struct error *err);
	/* Of a command that asks for the operation whose row has its name: see cli/plain.h. */
	const char *asks;   /* the name of another operation than that of its name; or NULL */
	const char *sends;  /* members of the body that operands stand for: "workspace snapshot" */
	const char *prints; /* the member of the answer that people see; NULL: "name" */
	/* Or what prints the answer for them. Its result is the exit code, also of -o json, which
	 * prints the answer as it came in place of that text. */
	int (*show)(struct command *command, const struct json_value *answer);
	int (*check)(const char *operand, struct error *err); /* the first one of `sends`, or all */
	const char *cancels, *afterwards; /* of struct remote: cancels, interrupted_hint */
	const struct record *record;	  /* of plain_list: the columns, */
	const char *key;		  /* and the member that --quiet prints */
	const struct removal *removal;	  /* of plain_remove, or NULL */
};
struct arg_usage {
	char text[512];
};
/* "carrel run [options] -- CMD [ARG...]". */
struct arg_usage args_usage(const struct arg_spec *spec);
/* How many operands it needs. */
size_t args_least(const struct arg_spec *spec);

/* Parses argv[1..]; *operands is the index of the first operand (argc when there is none). Every
 * table is understood to hold -h/--help as well: *help is set and the rest left unparsed. */
int args_parse(const struct arg_spec *spec, int argc, char **argv, void *options,
	struct arena *arena, int *operands, bool *help, struct error *err);
/* The same for commands whose operands may stand between options (`env build NAME -r FILE`); what
 * follows "--" are operands. */
int args_parse_mixed(const struct arg_spec *spec, int argc, char **argv, void *options,
	struct arena *arena, text_list *operands, bool *help, struct error *err);
/* As many as its usage line has; ERR_INVALID names the one that is missing, as the
 * usage line does ("carrel cp SOURCE TARGET"), or that is too much. */
int args_check_operands(const struct arg_spec *spec, const text_list *operands, struct error *err);
/* Whether argv has -o json: errors are then JSON, also for an invalid option before it. */
bool args_want_json(int argc, char **argv);
/* Calls fn for each option but --help; the option lives until fn returns. */
void args_each(const struct arg_spec *spec, void (*fn)(void *ctx, const struct arg_option *option),
	void *ctx);
/* The option of that name, or with that letter when it isn't 0; not --help. A name that a record
 * has given is gone. */
bool args_find(
	const struct arg_spec *spec, struct str name, char letter, struct arg_option *option);
/* Prints --help. */
void args_print_help(const struct arg_spec *spec, struct buf *out);
/* Appends the words that give these options again. */
void args_print_given(
	const struct arg_spec *spec, const void *options, struct arena *arena, text_list *words);
