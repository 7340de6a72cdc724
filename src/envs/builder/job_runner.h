/* job_runner.h -- runs the jobs of envs/ in sandboxes, and holds the egress policy through which
 * some of them reach the indexes. The only network a build ever has. */
#pragma once
#include "egress/egress.h"
#include "envs/build.h"
#include "envs/runner.h"

struct jobs {
	const struct layer_store *layers;
	pid_t pid;		 /* of the process that made these jobs */
	struct egress_role role; /* pid -1: not ours to stop; the daemon's, or not started yet */
	pid_t starter;
	struct egress egress;
	bool is_open;
	pid_t opener; /* who closes it: processes forked off for parts of a build share it */
	struct runner runner;
	struct build_network network;
};
/* runner.tick and tick_ctx may be set afterwards. jobs_done follows. */
void jobs_init(struct jobs *jobs, const struct layer_store *layers);
void jobs_done(struct jobs *jobs);
