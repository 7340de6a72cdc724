/* run_env.h -- the environment of `carrel run`: a built one by name, or one made of -r, --pip and
 * --python, with the name run_…; held while the command runs. */
#pragma once
#include "cli/env.h"
#include "build/environment.h"

struct run_env_options {
	const char *name; /* --env */
	struct env_options build;
};
struct run_env {
	struct env_session session;
	struct env_meta meta;
	int pin;
	struct environment_mount mount;
};
#define RUN_ENV_NONE                                                                               \
	{                                                                                          \
		.session = ENV_SESSION_NONE, .pin = -1                                             \
	}
/* Whether one was asked for. */
bool run_env_is_asked(const struct run_env_options *options);
/* Finds or builds it, pins it and adds it to plan options. 0: it is there. > 0: building failed,
 * all has been said, and this is the exit code. -1: error. run_env_done follows always. */
int run_env_add(struct run_env *env, const struct run_env_options *asked, bool json,
	struct plan_options *options, struct build_problem *problem, struct error *err);
void run_env_done(struct run_env *env);
