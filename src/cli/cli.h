/* cli.h -- the commands. Each takes its own argv (argv[0] is its name) and returns the process's
 * exit code. */
#pragma once
#include <stdbool.h>
#include "base/error.h"

struct cli_command {
	const char *name, *summary;
	int (*run)(int argc, char **argv);
};
/* The one table of commands; ends with a NULL name. `carrel help` prints it. */
extern const struct cli_command cli_commands[];
/* The command that who typed `name` may have meant, or NULL. */
const char *cli_nearest(const struct cli_command *commands, const char *name);

int cli_run(int argc, char **argv);
int cli_env(int argc, char **argv);
int cli_home(int argc, char **argv);
int cli_create(int argc, char **argv);
int cli_exec(int argc, char **argv);
int cli_shell(int argc, char **argv);
int cli_ls(int argc, char **argv);
int cli_info(int argc, char **argv);
int cli_update(int argc, char **argv);
int cli_rm(int argc, char **argv);
int cli_cp(int argc, char **argv);
int cli_ps(int argc, char **argv);
int cli_logs(int argc, char **argv);
int cli_kill(int argc, char **argv);
int cli_events(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_serve(int argc, char **argv);
int cli_version(int argc, char **argv);
int cli_help(int argc, char **argv);

/* Prints err as "carrel: text" and "hint: …" on stderr, or as {"error":{…}} on stdout when json;
 * returns its exit code. */
int cli_fail(const struct error *err, bool json);
/* {"code","message","hint"} under `key`. */
struct json;
void cli_print_error(struct json *j, const char *key, const struct error *err);
/* Runs the command that argv[1] names. */
int cli_main(int argc, char **argv);
