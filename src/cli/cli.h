/* cli.h -- the commands of carrel. Each is a struct arg_spec; cli_call parses its command line,
 * runs it, prints its `out` buffer, and reports its error.
 * 1. The options of all commands are members of one structure, so that option tables share rows,
 * and an option has the same meaning in all commands.
 * 2. Options and operands are checked before the daemon is called and before the home is opened.
 * 3. It brings what every command uses: texts, buffers, errors, JSON, options, the connection to
 * the daemon. */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "cli/args.h"
#include "cli/remote.h"
#include "envs/build.h"
#include "envs/store.h"
#include "model/nouns/limits.h"
#include "model/nouns/result.h"

struct options {
	const char *format, *host, *token_file, *ca;
	/* sandbox, directory and user of a command */
	const char *environment, *template, *net, *isolation, *view, *dir, *cwd, *user;
	text_list variables, binds, attach;
	text_list allow_domains, deny_domains;
	struct limits limits;
	bool tty, interactive, background, plan, ptrace, writable_config, review;
	text_list accept;
	const char *template_settings, *template_sources; /* JSON of the template */
	bool ask;
	/* environments */
	struct env_request env; /* package_id: the operand; paths as typed */
	uint64_t build_timeout_ms;
	bool events, repair, log, dry_run;
	/* workspaces */
	text_list labels, removed_labels, removed_variables;
	uint64_t ttl_ms, idle_timeout_ms;
	const char *ttl, *idle_timeout; /* of `update`, where they may be "none" */
	bool context, archive, no_archive, force, no_persist, node_packages, patch;
	uint64_t older_than_ms, max_bytes;
	text_list paths;
	const char *state, *workspace, *after, *stream, *signal;
	uint64_t offset, tail_lines;
	bool all, quiet, follow, no_stdin, once, deep;
	uint64_t interval_ms;
	const char *file;  /* -f of env export */
	bool exported;	   /* of env ls and rm: those of the blob store */
	const char *scope; /* of token create */
	const char *tests; /* of code run, tool forge */
	const char *code;  /* this and what follows: of tool */
	text_list requires;
	uint64_t version;
	const char *context_id, *task; /* of agent send */
	const char *url, *sha256;      /* of deploy */
	bool always;		       /* of approval approve */
	bool no_wait;		       /* of exec: for an approval */
	bool refresh;		       /* of deploy */
	bool with_env;		       /* of package build */
	const char *tag, *note, *when_busy, *snapshot, *from, *name, *to;
	uint64_t count, timeout_ms;
	/* policies */
	const char *settings, *settings_format, *sources, *home, *shell, *command, *path, *network;
	bool is_stream;
	/* serve, home */
	text_list listens; /* of serve */
	bool insecure;
	const char *tls_certificate, *tls_key, *tls_client_ca;
	text_list names; /* of tls init */
	bool renew;
	const char *listen, *log_format, *log_level, *fs;
	uint64_t idle_sandbox_ms, captured_bytes, size_bytes;
	bool stop, reload;
	/* of case run */
	uint64_t jobs, repeat;
	bool keep_sandboxes, resume;
	const char *harness, *out_dir;
	/* audit */
	const char *since, *until, *type, *against;
	bool verify, head;
};
#define AT(member) offsetof(struct options, member)
#define ARG_FROM(array)                                                                            \
	.kind = ARG_ROWS, .rows = array, .row_count = sizeof(array) / sizeof *(array)

/* Rows of several commands. */
extern const struct arg_option format_rows[1], remote_rows[3]; /* -o; --host, --token-file, -o */
extern const struct arg_option command_rows[2];		       /* -e, -w */
extern const struct arg_option terminal_rows[2];	       /* -t, -i */
extern const struct arg_option network_rows[3]; /* --net, --allow-domain, --deny-domain */
extern const struct arg_option sandbox_rows[3]; /* --ptrace, --isolation, --view */

/* The same as the only options of a command. */
#define REMOTE_OPTIONS                                                                             \
	.options = remote_rows, .option_count = sizeof remote_rows / sizeof *remote_rows
extern const struct arg_option mount_rows[3]; /* -v, --dir, --attach */

struct command {
	const struct arg_spec *spec;
	struct options options;
	text_list operands;
	char **argv; /* spec->takes_command: the words of the command, up to NULL */
	bool json;   /* -o json */
	struct arena arena;
	struct buf out;	   /* printed when the command has ended well */
	struct json value; /* -o json: one value, written into `out`; cli_call adds the newline */
	struct remote remote;
	struct home home; /* home and store: open after cli_open_store */
	struct env_store store;
	struct build_problem problem; /* of a build that failed, beside the error */
};

/* Sets what options of `carrel serve` stand for; paths are below `base`. */
struct config;
void serve_take_options(const struct options *options, const char *base, struct arena *arena,
	struct config *config);

extern const struct arg_spec cli_run, cli_create, cli_exec, cli_shell, cli_ls, cli_info, cli_update,
	cli_rm, cli_archive, cli_suspend, cli_resume, cli_health, cli_repair, cli_verify,
	cli_install, cli_uninstall, cli_snapshot, cli_fork, cli_restore, cli_cp, cli_diff,
	cli_apply, cli_ps, cli_logs, cli_wait, cli_attach, cli_kill, cli_port, cli_top, cli_tree,
	cli_events, cli_audit, cli_env, cli_template, cli_approval, cli_token, cli_case, cli_code,
	cli_agent, cli_tool, cli_package, cli_deploy, cli_deployment, cli_config, cli_context,
	cli_policy, cli_home, cli_serve, cli_tls, cli_doctor, cli_completion;
/* Runs the command that argv[1] names. */
int cli_main(int argc, char **argv);
/* All commands; and one of a group by its word ("build" of "env build"), or NULL. */
extern const struct arg_spec cli_all;
const struct arg_spec *cli_find(const struct arg_spec *group, const char *name);
const char *cli_word(const struct arg_spec *spec);
/* "everyday commands": the heading of its group. */
const char *cli_group_title(const struct arg_spec *spec);
/* `carrel __complete WORD...`, for the scripts of `carrel completion`: prints what the last word
 * could be, one a line, each with a tab and a description. ":files" or ":dirs" stands for the
 * host's. Never fails, never starts a daemon. */
int completion_answer(int argc, char **argv);
/* carrel-build: the half of `carrel env` that runs things in build sandboxes. It takes the
 * arguments of `carrel env build` and `carrel env verify`, and is run by carrel. */
int builder_main(int argc, char **argv);
/* Runs one command, whose name is argv[0]; returns the exit code. */
int cli_call(const struct arg_spec *spec, int argc, char **argv);

/* Prints err as "carrel: text" and "hint: …" on stderr, or as {"error":{…}} on stdout when json;
 * returns its exit code. problem: as in cli_print_error. */
int cli_fail(const struct error *err, bool json, const struct build_problem *problem);
/* {"code","message","hint"} under `key`; with `problem`, the code of a failed build and "package".
 */
void cli_print_error(struct json *j, const char *key, const struct error *err,
	const struct build_problem *problem);
/* Writes all of the text to stdout. */
int cli_print(const struct buf *text, struct error *err);
/* Prints a line for people on stderr; write errors are ignored. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2), nonnull(1)));
/* This program, and carreld: beside carrel or where packages put such programs; never by PATH. */
int cli_find_programs(char self[PATH_MAX], char carreld[PATH_MAX], struct error *err);
int cli_open_home(struct command *command, struct error *err);
/* Opens the home and its store of environments. */
int cli_open_store(struct command *command, struct error *err);

/* Collects the facts of this host that a sandbox of `carrel run` needs, and config.yaml if there is
 * a home (*home: its path in the arena, or NULL). is_run: the sandbox will be started, for which
 * root needs a home that records the uids of its sandboxes. guarded: see host_look. egress: what
 * config.yaml says of networks; may be NULL. */
struct network_settings;
struct host;
int run_look_at_host(struct host *host, bool is_run, const char *guarded, const char **home,
	struct network_settings *egress, struct arena *arena, struct error *err);
/* Expands -e options into K=V pairs in the arena; "-e K" takes the value from this process. */
int cli_read_variables(
	const text_list *given, struct arena *arena, text_list *pairs, struct error *err);
/* ERR_INVALID: --env together with options that build an environment. */
int cli_check_environment(const struct options *options, struct error *err);
/* Adds a hint on the likely cause to ERR_COMMAND_NOT_FOUND or ERR_NOT_EXECUTABLE. */
void cli_hint_at_command(
	char *const *argv, const char *python, const char *path, struct error *err);

/* --dir, -v and --attach of a new workspace, into an open object. *voucher: the descriptor to be
 * sent with it, yours to close; untouched when there is none. */
int mounts_print(const struct options *options, struct json *j, struct arena *arena, int *voucher,
	struct error *err);
/* Prints one line on stderr when a limit ended the command: its exit code alone could be the
 * command's own. `limits`: those in force, 0 where unknown. */
void cli_explain(const struct result *result, const struct limits *limits);
/* The result as JSON, with the captured output. limiter: the mechanism that enforced the limits, or
 * NULL. */
void cli_print_result(const struct result *result, const struct buf *out, const struct buf *errors,
	const char *limiter, struct json *j);
/* The same, and leaves the object open: json_end follows. */
void cli_begin_result(const struct result *result, const struct buf *out, const struct buf *errors,
	const char *limiter, struct json *j);

/* The results of one command on several operands: it goes on after a failure. */
struct cli_one {
	const char *name;
	const char *archive; /* that a removed workspace was archived as, or NULL */
	bool has_failed;
	struct error err;
};
typedef VEC(struct cli_one) cli_ones;
/* Prints the results. done: the key of the successful ones, such as "removed". JSON is
 * {done:[NAME…],"archives":{NAME:ARCHIVE…},"failed":[{"name","error"}…]}; with a signal, its number
 * is a member too, and the text lists only failures. Returns as arg_spec.run does: 125 when one of
 * several has failed; the failure of a single operand is returned as *err. */
int cli_print_ones(struct command *command, const cli_ones *all, const char *done, int signal,
	struct error *err);
/* A file of this host, or standard input for "-", of at most max bytes. */
int cli_read_file(
	const char *path, size_t max, struct arena *arena, struct str *text, struct error *err);
