#include "cli/run_env.h"

#include <unistd.h>
#include "base/fd.h"
#include "cli/progress.h"

bool run_env_is_asked(const struct run_env_options *options)
{
	return options->name || env_options_are_given(&options->build);
}

static int find_name(struct run_env *env, const struct run_env_options *asked, bool json,
	const char **name, struct build_problem *problem, struct error *err)
{
	struct env_ensured ensured;
	/* What goes to a terminal is seen by somebody who waits; elsewhere stderr is the command's.
	 */
	struct env_build_options build = { .env = asked->build,
		.format = json ? "json" : "text",
		.quiet = progress_kind_for(STDERR_FILENO) != PROGRESS_BAR };
	if (asked->name)
		return env_resolve(
			&env->session.store, asked->name, &env->session.arena, name, err);
	if (env_ensure(&env->session, &build, "run", &ensured, problem, err))
		return -1;
	if (ensured.exit_code && ensured.said)
		(void)!fd_write_full(STDOUT_FILENO, ensured.said, strlen(ensured.said));
	*name = ensured.meta.name;
	return ensured.exit_code;
}

int run_env_add(struct run_env *env, const struct run_env_options *asked, bool json,
	struct plan_options *options, struct build_problem *problem, struct error *err)
{
	struct env_session *session = &env->session;
	const char *name;
	if (asked->name && env_options_are_given(&asked->build))
		return fail(err, ERR_INVALID,
			"--env can't be combined with -r, --pip or --python: it names an "
			"environment that exists");
	if (env_session_open(session, err))
		return -1;
	int failed = find_name(env, asked, json, &name, problem, err);
	if (failed)
		return failed;
	if (env_use(&session->store, name, &session->arena, &env->meta, &env->pin, err)) {
		if (err->code == ERR_CORRUPT && !err->hint[0])
			error_hint(err, "carrel env verify --repair %s", name);
		return -1;
	}
	return environment_mount(&session->store.layers, &env->meta, NULL, &session->arena, options,
		&env->mount, err);
}

void run_env_done(struct run_env *env)
{
	environment_unmount(&env->mount);
	fd_close(&env->pin);
	env_session_done(&env->session);
}
