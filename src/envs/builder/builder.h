/* builder.h -- what makes environments (struct builder of envs/build.h) with jobs in sandboxes:
 * progress, events, and cancellation by signals. At most one per process, since it handles the
 * process's signals. */
#pragma once
#include "envs/builder/job_runner.h"
#include "envs/builder/progress.h"

struct build_site {
	const struct env_store *store;
	struct jobs jobs;
	struct env_progress progress;
	struct progress shown;	/* to people */
	struct builder builder; /* for env_build, env_verify, env_repair */
	const char *venv;	/* yours to set: what is being built, for events; NULL: nothing */
	bool tells_phases;	/* yours to set: events of progress also begin each phase, as lines
				 * for people do */
	char phase[32];
	uint64_t done, total, told_ms;
};
/* The site and the store stay where they are. build_site_done follows. */
void build_site_init(
	struct build_site *site, const struct env_store *store, enum progress_kind kind);
void build_site_done(struct build_site *site);

/* SIGINT, SIGTERM and SIGHUP end the build in order, unless they are ignored. While nothing is
 * under way that would have to be undone (phase "verifying") they end the process at once. */
void build_catch_signals(void);
/* A reader of events that has ended doesn't end the build. */
void build_ignore_closed_pipes(void);
bool build_is_interrupted(void);
/* Something begins that has to be undone. */
void build_begins(void);
