/* env.h -- what commands that make or use environments share. */
#pragma once
#include "cli/cli.h"

/* Where packages are named; what chooses between versions of them. */
extern const struct arg_option env_source_rows[4], env_choice_rows[7];
/* The same for Node. */
extern const struct arg_option env_node_rows[6];
extern const struct arg_spec env_build_spec, env_warm_spec, env_verify_spec, env_registries_spec,
	env_export_spec, env_import_spec, env_wheels_spec;

/* options->env as a request: checked, paths absolute; texts stay those of the options or live in
 * the arena. ERR_INVALID; ERR_NOT_FOUND: an --editable that isn't there. */
int env_options_fill(const struct options *options, const char *package_id, struct arena *arena,
	struct env_request *request, struct error *err);
/* Makes *wanted of the options; the store tells of what happens meanwhile: --events of all, a
 * reader of text of what is evicted. */
int env_prepare(struct command *command, const struct options *options, const char *package_id,
	struct env_wanted *wanted, struct error *err);
/* What a build that succeeded prints: the object, the name and a summary on stderr, or nothing more
 * with --events alone. */
struct env_outcome {
	bool was_there; /* reused as it was */
	bool is_built;	/* layers were missing, or were to be resolved again */
};
void env_print_built(
	struct command *command, const struct env_meta *meta, const struct env_outcome *outcome);
/* One environment; `outcome` NULL: it isn't said. `problem` as in env_row. */
void env_print_json(struct json *j, const struct env_store *store, const struct env_meta *meta,
	bool is_in_use, const char *problem, const struct env_outcome *outcome);

/* carrel env wheels, run to its end; what failed was said on stderr. */
int env_run_wheels(
	struct command *command, const char *name, const char *directory, struct error *err);
/* Finds, composes or builds what is asked for; when something has to be built, carrel-build is run
 * and waited for. For `env warm` and `run`. */
struct env_ensured {
	struct env_meta meta;
	struct env_outcome outcome;
	/* Not 0: carrel-build failed and has said why: on stderr, or (json) as the text in `said`,
	 * which is to be printed as it is. */
	int exit_code;
	const char *said;
};
int env_ensure(struct command *command, const struct options *options, const char *package_id,
	struct env_ensured *ensured, struct error *err);
