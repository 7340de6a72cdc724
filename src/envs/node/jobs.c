/* Jobs of a build of Node: within the time that is left, and noted in the log. */
#include <fcntl.h>
#include <string.h>
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

void node_show(const struct node_making *making, const char *phase)
{
	const struct env_progress *progress = making->run->builder->progress;
	events_status(&making->store->events, phase, making->wanted->name);
	if (progress && progress->show)
		progress->show(progress->ctx, phase, 0, 0, 0);
}

void node_close(struct node_making *making)
{
	const struct build_network *network = making->run->builder->network;
	network->close(network->ctx);
	making->is_reaching = false;
}

void node_clean(struct node_making *making)
{
	struct error ignored;
	node_close(making);
	/* What can't be removed is swept by the next build. */
	layer_stage_done(&making->store->layers, &making->stage, &ignored);
}

int node_stage(struct node_making *making, struct error *err)
{
	struct error ignored;
	auto_close int root = -1;
	layer_stage_done(&making->store->layers, &making->stage, &ignored);
	if (layer_stage_make(&making->store->layers, making->arena, &making->stage, err) < 0)
		return -1;
	auto_leave const struct home *home = home_entered(making->store->home);
	return path_make_directories(making->stage.fd, NODE_STAGE_ROOT, 0755, &root, err);
}

int node_reach(struct node_making *making, struct error *err)
{
	const struct build_network *network = making->run->builder->network;
	const struct index_set set = { .index = making->node->registry.url };
	if (making->is_reaching)
		return 0;
	if (network->open(network->ctx, &set, err) < 0 || network->settle(network->ctx, err) < 0)
		return -1;
	making->is_reaching = true;
	return 0;
}

int node_put(struct node_making *making, const char *name, struct str text, struct error *err)
{
	auto_leave const struct home *home = home_entered(making->store->home);
	auto_close int dir =
		path_open_nolinks(making->stage.fd, NODE_STAGE_ROOT, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0 || file_replace(dir, name, 0644, text, false) < 0)
		return fail_errno(err, "write '%s' of a build", name);
	return 0;
}

int node_drop(struct node_making *making, const char *name, struct error *err)
{
	auto_leave const struct home *home = home_entered(making->store->home);
	auto_close int dir =
		path_open_nolinks(making->stage.fd, NODE_STAGE_ROOT, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return fail_errno(err, "open the stage of a build");
	return path_remove_tree(dir, name, err) < 0
		       ? error_context(err, "remove '%s' of a build", name)
		       : 0;
}

static bool is_interrupted(const struct node_making *making)
{
	const volatile int *interrupted = making->run->builder->runner->interrupted;
	return interrupted && *interrupted != 0;
}

static int canceled(struct node_making *making, struct error *err)
{
	fail_hint(err, ERR_CANCELED, "run the same command again",
		"the build of environment '%s' was interrupted", making->wanted->name);
	return build_failed(making->run->problem, BUILD_CANCELED, NULL);
}

static int run_bounded(void *ctx, const struct job *job, struct buf *out, struct buf *errors,
	struct job_result *result, struct error *err)
{
	struct node_making *making = ctx;
	const struct runner *runner = making->run->builder->runner;
	uint64_t now = clock_monotonic_ms(), deadline = making->run->deadline_ms;
	uint64_t left = now < deadline ? deadline - now : 1;
	struct job bounded = *job;
	if (is_interrupted(making))
		return canceled(making, err);
	if (bounded.timeout_ms == 0 || bounded.timeout_ms > left)
		bounded.timeout_ms = left;
	return runner->run(runner->ctx, &bounded, out, errors, result, err);
}

struct runner node_runner(struct node_making *making)
{
	struct runner runner = *making->run->builder->runner;
	runner.ctx = making;
	runner.run = run_bounded;
	return runner;
}

/* Replaces credentials, which clients may repeat, and drops control characters. */
static void note(struct node_making *making, struct buf *text)
{
	const text_list *secrets = &making->wanted->secrets;
	struct buf *log = &making->run->log;
	for (size_t i = 0; i < secrets->count; i++) {
		size_t len = strlen(secrets->items[i]);
		char *at = text->data;
		while (at && (at = memmem(at, text->len - (size_t)(at - text->data),
				      secrets->items[i], len)))
			memset(at, '*', len);
	}
	for (size_t i = 0; i < text->len; i++) {
		unsigned char c = (unsigned char)text->data[i];
		if ((c >= 0x20 && c != 0x7f && (c < 0x80 || c >= 0xa0)) || c == '\n' || c == '\t')
			buf_char(log, (char)c);
	}
	if (text->len > 0 && text->data[text->len - 1] != '\n')
		buf_char(log, '\n');
}

static int explain_end(struct node_making *making, const char *what,
	const struct job_result *result, struct str said, struct error *err)
{
	struct build_problem *problem = making->run->problem;
	switch (result->reason) {
	case REASON_EXITED:
		return node_explain(making, what, said, err);
	case REASON_TIMEOUT:
		return node_timeout(making, err);
	case REASON_DISK_LIMIT:
		fail_hint(err, ERR_LIMIT, "a higher max_install_bytes in config.yaml allows it",
			"the packages of environment '%s' are too large", making->wanted->name);
		return build_failed(problem, BUILD_DENIED, NULL);
	case REASON_CANCELED:
		return canceled(making, err);
	default:
		fail(err, ERR_FAILED, "%s was ended: %s", what, reason_names[result->reason]);
		return build_failed(problem, BUILD_FAILED, NULL);
	}
}

static void add_tools(struct node_making *making, struct job *job)
{
	struct arena *arena = making->arena;
	for (size_t i = 0; i < making->node->tool_count; i++) {
		const struct node_tool *tool = &making->node->tools[i];
		job_bind(job, arena,
			arena_printf(
				arena, "%s/layers/%s/tree", making->store->home->path, tool->id),
			arena_printf(arena, NODE_TOOLS_INSIDE "/%s", tool->name));
	}
	job_set_env(job, arena, "PATH",
		NODE_TOOLS_INSIDE "/bun/bin:" NODE_TOOLS_INSIDE "/node/bin:" NODE_TOOLS_INSIDE
				  "/npm/bin:/usr/local/bin:/usr/bin:/bin");
}

/* The private cache lies in the same mount as the packages, so that the client can link files. */
static struct job make_job(struct node_making *making, char *const *argv, bool reaches)
{
	struct arena *arena = making->arena;
	const struct npm_registry *registry = &making->node->registry;
	struct job job = { .argv = argv,
		.cwd = "/env",
		.stage = arena_printf(arena, "%s/" NODE_STAGE_ROOT, making->stage.path),
		.forward = reaches,
		.disk_bytes = making->store->config.max_install_bytes + CACHE_BYTES };
	add_tools(making, &job);
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

int node_run(struct node_making *making, char *const *argv, const char *what, bool reaches,
	struct error *err)
{
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	auto_buf struct buf errors = buf_empty(2 * OUTPUT_MAX);
	struct buf *log = &making->run->log;
	struct job job = make_job(making, argv, reaches);
	struct job_result result = { 0 };
	*making->run->problem = BUILD_NO_PROBLEM;
	buf_text(log, "$");
	for (char *const *word = argv; *word; word++)
		buf_printf(log, " %s", *word);
	buf_char(log, '\n');
	if (run_bounded(making, &job, &out, &errors, &result, err) < 0)
		return -1;
	buf_append(&errors, out.data, out.len);
	note(making, &errors);
	buf_printf(log, "(%llu ms, %llu in all)\n", (unsigned long long)result.duration_ms,
		(unsigned long long)(clock_monotonic_ms() - making->run->started_ms));
	if (is_interrupted(making))
		return canceled(making, err);
	if (result.reason == REASON_EXITED && result.exit_code == 0)
		return 0;
	return explain_end(making, what, &result, buf_str(&errors), err);
}
