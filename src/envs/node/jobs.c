/* Jobs of a build of Node: within the time that is left, and noted in the log. */
#include <fcntl.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "envs/node/internal.h"
#include "envs/python/scripts.h"
#include "envs/python/uv.h"

#define OUTPUT_MAX ((size_t)16 << 20)
#define CACHE_BYTES                                                                                \
	((uint64_t)512 << 20) /* what the client's cache may take beside the packages              \
			       */

void node_show(const struct build_run *run, const char *phase)
{
	const struct env_progress *progress = run->builder->progress;
	events_status(&run->store->events, phase, run->wanted->name);
	if (progress && progress->show)
		progress->show(progress->ctx, phase, 0, 0, 0);
}

void node_close(struct build_run *run)
{
	const struct build_network *network = run->builder->network;
	network->close(network->ctx);
	run->is_reaching = false;
}

void node_clean(struct build_run *run)
{
	struct error ignored;
	node_close(run);
	/* What can't be removed is swept by the next build. */
	layer_stage_done(&run->store->layers, &run->stage, &ignored);
}

int node_stage(struct build_run *run, struct error *err)
{
	struct error ignored;
	auto_close int root = -1;
	layer_stage_done(&run->store->layers, &run->stage, &ignored);
	if (layer_stage_make(&run->store->layers, run->arena, &run->stage, err) < 0)
		return -1;
	auto_leave const struct home *home = home_entered(run->store->home);
	return path_make_directories(run->stage.fd, NODE_STAGE_ROOT, 0755, &root, err);
}

int node_reach(struct build_run *run, struct error *err)
{
	const struct build_network *network = run->builder->network;
	const struct index_set set = { .index = run->wanted->node->registry.url };
	if (run->is_reaching)
		return 0;
	if (network->open(network->ctx, &set, err) < 0 || network->settle(network->ctx, err) < 0)
		return -1;
	run->is_reaching = true;
	return 0;
}

int node_put(struct build_run *run, const char *name, struct str text, struct error *err)
{
	auto_leave const struct home *home = home_entered(run->store->home);
	auto_close int dir =
		path_open_nolinks(run->stage.fd, NODE_STAGE_ROOT, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0 || file_replace(dir, name, 0644, text, false) < 0)
		return fail_errno(err, "write '%s' of a build", name);
	return 0;
}

int node_drop(struct build_run *run, const char *name, struct error *err)
{
	auto_leave const struct home *home = home_entered(run->store->home);
	auto_close int dir =
		path_open_nolinks(run->stage.fd, NODE_STAGE_ROOT, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return fail_errno(err, "open the stage of a build");
	return path_remove_tree(dir, name, err) < 0
		       ? error_context(err, "remove '%s' of a build", name)
		       : 0;
}

static int explain_end(struct build_run *run, const char *what, const struct job_result *result,
	struct str said, struct error *err)
{
	struct build_problem *problem = run->problem;
	switch (result->reason) {
	case REASON_EXITED:
		return node_explain(run, what, said, err);
	case REASON_TIMEOUT:
		return node_timeout(run, err);
	case REASON_DISK_LIMIT:
		fail_hint(err, ERR_LIMIT, "a higher max_install_bytes in config.yaml allows it",
			"the packages of environment '%s' are too large", run->wanted->name);
		return build_failed(problem, BUILD_DENIED, NULL);
	case REASON_CANCELED:
		return run_canceled(run, err);
	default:
		fail(err, ERR_FAILED, "%s was ended: %s", what, reason_names[result->reason]);
		return build_failed(problem, BUILD_FAILED, NULL);
	}
}

static void add_tools(struct build_run *run, struct job *job)
{
	struct arena *arena = run->arena;
	for (size_t i = 0; i < run->wanted->node->tool_count; i++) {
		const struct node_tool *tool = &run->wanted->node->tools[i];
		job_bind(job, arena,
			arena_printf(arena, "%s/layers/%s/tree", run->store->home->path, tool->id),
			arena_printf(arena, NODE_TOOLS_INSIDE "/%s", tool->name));
	}
	job_set_env(job, arena, "PATH",
		NODE_TOOLS_INSIDE "/bun/bin:" NODE_TOOLS_INSIDE "/node/bin:" NODE_TOOLS_INSIDE
				  "/npm/bin:/usr/local/bin:/usr/bin:/bin");
}

/* The private cache lies in the same mount as the packages, so that the client can link files. */
static struct job make_job(struct build_run *run, const char *const *argv, bool reaches)
{
	struct arena *arena = run->arena;
	const struct npm_registry *registry = &run->wanted->node->registry;
	struct job job = { .argv = argv,
		.cwd = "/env",
		.stage = arena_printf(arena, "%s/" NODE_STAGE_ROOT, run->stage.path),
		.forward = reaches,
		.disk_bytes = run->store->config.max_install_bytes + CACHE_BYTES };
	add_tools(run, &job);
	job_set_env(&job, arena, "BUN_INSTALL_CACHE_DIR", "/env/.cache");
	job_set_env(&job, arena, "npm_config_cache", "/env/.cache");
	job_set_env(&job, arena, "npm_config_update_notifier", "false");
	job_set_env(&job, arena, "npm_config_fetch_retry_mintimeout", "500");
	job_set_env(&job, arena, "npm_config_fetch_retry_maxtimeout", "5000");
	job_set_env(&job, arena, "DO_NOT_TRACK", "1");
	if (reaches && registry->certificates) {
		job_bind(&job, arena, registry->certificates, CERTIFICATES_INSIDE);
		job_set_env(&job, arena, "NODE_EXTRA_CA_CERTS", CERTIFICATES_INSIDE);
		job_set_env(&job, arena, "npm_config_cafile", CERTIFICATES_INSIDE);
	}
	return job;
}

int node_run(struct build_run *run, const char *const *argv, const char *what, bool reaches,
	struct error *err)
{
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	auto_buf struct buf errors = buf_empty(2 * OUTPUT_MAX);
	struct runner runner = run_runner(run);
	struct job job = make_job(run, argv, reaches);
	struct job_result result = { 0 };
	*run->problem = BUILD_NO_PROBLEM;
	run_note_command(run, argv);
	if (runner.run(runner.ctx, &job, &out, &errors, &result, err) < 0)
		return -1;
	buf_append(&errors, out.data, out.len);
	run_note_end(run, &run->wanted->secrets, &errors, &result);
	if (builder_is_interrupted(run->builder))
		return run_canceled(run, err);
	if (result.reason == REASON_EXITED && result.exit_code == 0)
		return 0;
	return explain_end(run, what, &result, buf_str(&errors), err);
}
