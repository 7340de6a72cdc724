/* plain.h -- commands that ask the daemon for one operation and show its answer: method, path,
 * query and body come from the row of that name (model/operations), of what options and operands
 * gave. A noun gives its columns, and the member that people see.
 * 1. An option fills the parameter or the member of its name, with '_' for '-'. Members of other
 * names are the command's own: `more` adds them.
 * 2. The first operand stands for {id}; spec->sends says what the others are. */
#pragma once
#include "cli/cli.h"
#include "cli/columns.h"

/* Rows of many commands, as tables: -q; --force of what may be in use. */
extern const struct arg_option plain_ids_table[2], plain_names_table[2], plain_rm_table[2];

/* The path of the command's operation (the one that spec->asks names, or that has its name), with
 * `id` for {id} and the query of what options gave. */
const char *plain_path(struct command *command, const char *id);
/* The members of its body that options and operands gave, into an open object. */
void plain_print(struct command *command, struct json *j);
/* One request. _with: `more` adds members to its body. */
int plain_ask(struct command *command, struct remote_answer *answer, struct error *err);
typedef int plain_more_fn(const void *ctx, struct json *j, struct error *err);
int plain_ask_with(struct command *command, plain_more_fn *more, const void *ctx,
	struct remote_answer *answer, struct error *err);
/* The same request for each operand, and their results: cli_print_ones. */
int plain_each(struct command *command, const char *done, struct error *err);
/* Shows an answer: as it came, or by spec->show or spec->prints. Returns the exit code. */
int plain_show(struct command *command, const struct remote_answer *answer);

/* ---- arg_spec.run of whole commands ---- */
int plain_run(struct command *command, struct error *err);
/* `ls`: the columns of spec->record, or with --quiet its member spec->key. */
int plain_list(struct command *command, struct error *err);
/* `rm`: each operand, unless one of spec->removal is in use. */
int plain_remove(struct command *command, struct error *err);
