/* env.h -- what the parts of `carrel env` and carrel-build share. */
#pragma once
#include <stdbool.h>
#include "base/buf.h"
#include "cli/args.h"
#include "cli/env_options.h"
#include "envs/build.h"
#include "envs/store.h"
#include "format/json.h"

int env_cli_build(int argc, char **argv);
int env_cli_warm(int argc, char **argv);
int env_cli_verify(int argc, char **argv);
int env_cli_ls(int argc, char **argv);
int env_cli_show(int argc, char **argv);
int env_cli_metrics(int argc, char **argv);
int env_cli_rm(int argc, char **argv);
int env_cli_prune(int argc, char **argv);

/* Parses, and deals with --help and what is wrong. true: go on; false: *code is the exit code.
 * Between `least` and `most` operands. */
bool env_cli_parse(const struct arg_spec *spec, int argc, char **argv, void *options,
	struct arena *arena, size_t least, size_t most, text_list *operands, int *code);
bool env_cli_is_json(const char *format);

struct env_session {
	struct arena arena;
	struct home home;
	struct env_store store;
};
int env_session_open(struct env_session *session, struct error *err);
void env_session_done(struct env_session *session);
#define ENV_SESSION_NONE                                                                           \
	{                                                                                          \
		.home = { .dir = -1 }, .store = {.dir = -1, .layers = { .dir = -1 } }              \
	}
#define auto_env_session __attribute__((cleanup(env_session_done)))

/* One environment; `cached` NULL: it isn't said. `problem` as in env_row. */
void env_print_json(struct json *j, const struct env_store *store, const struct env_meta *meta,
	bool is_in_use, const char *problem, const bool *cached);
/* The members alone of that object. */
void env_print_members(struct json *j, const struct env_store *store, const struct env_meta *meta,
	bool is_in_use, const char *problem);
/* Writes text and a newline-terminated JSON value to stdout; 0, or the exit code after saying why
 * not. */
int env_print_all(const struct buf *text);
/* The object that describes one: {"code","message","hint","package"}. */
void env_print_error(struct json *j, const char *key, const struct error *err,
	const struct build_problem *problem);
/* As cli_fail, with the code and package of a failed build (problem->failure BUILD_FAILURE_COUNT,
 * or problem NULL: with those of the error). */
int env_fail(const struct error *err, const struct build_problem *problem, bool json);
/* "3h ago", "2d ago", "now"; out needs 32 bytes. Pure. */
void env_format_age(char out[32], const char *time, int64_t now_ms);

struct env_build_options {
	struct env_options env;
	const char *format;
	bool events, quiet;
};
extern const struct arg_spec env_build_spec;
/* Who hears of what happens meanwhile: --events of all, a reader of text of what is evicted. */
void env_tell(struct env_store *store, const struct env_build_options *options);
/* What a build that succeeded prints: the object, the name and a summary on stderr, or nothing more
 * with --events alone. Exit code. */
int env_print_built(const struct env_store *store, const struct env_build_options *options,
	const struct env_meta *meta, bool was_there);
struct env_verify_options {
	const char *format;
	bool repair;
};
extern const struct arg_spec env_verify_spec;

/* Finds, composes or builds what is asked for; when something has to be built, carrel-build is run
 * and waited for. For `env warm` and `run`. */
struct env_ensured {
	struct env_meta meta;
	bool was_there;
	/* Not 0: carrel-build failed and has said why: on stderr, or (json) as the text in `said`,
	 * which is to be printed as it is. */
	int exit_code;
	const char *said;
};
int env_ensure(struct env_session *session, const struct env_build_options *options,
	const char *package_id, struct env_ensured *ensured, struct build_problem *problem,
	struct error *err);
