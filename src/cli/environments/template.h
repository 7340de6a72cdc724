/* template.h -- what commands that use templates share. */
#pragma once
#include "cli/cli.h"

#define TEMPLATE_BYTES_MAX (256 << 10)

/* A file of this host; "-": stdin. UTF-8 without NUL, not empty. The text of a file that its line
 * "settings: NAME" names, relative to it, takes the place of that name. */
int template_read_file(const char *path, struct arena *arena, struct str *text, struct error *err);
/* Of such a file, whose text ctx is: the member `yaml`; a plain_more_fn. */
int template_print_yaml(const void *ctx, struct json *j, struct error *err);
/* Puts what the template that --template names (a name, or the path of a file) says of limits,
 * variables and packages below the options that were given; nothing without --template. */
int template_use(struct options *options, struct arena *arena, struct error *err);
/* Prints the texts of its member `warnings` on stderr. */
void template_say_warnings(const struct json_value *object);
/* The workspace that the daemon has made: its name and warnings, or the answer in JSON. */
void template_print_made(struct command *command, const struct remote_answer *answer);
