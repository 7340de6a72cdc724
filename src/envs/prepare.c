/* Base and pip beside uv's resolving: the network is what that waits for, and here is a core to
 * spare. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "envs/build_parts.h"
#include "envs/jobs.h"
#include "linux/child.h"

#define LOG_MAX ((size_t)1 << 20)

/* In the process of its own: an environment of no packages, as far as its layers. It says nothing,
 * neither to people nor to the audit: the build that it is part of does. */
static int prepare(const struct making *making)
{
	auto_arena struct arena arena;
	struct env_store store = *making->store;
	struct builder builder = *making->builder;
	struct build_problem problem = { 0 };
	struct error err;

	store.events = (struct events){ .sink = -1 };
	builder.store = &store;
	builder.progress = NULL;
	arena_init(&arena);
	struct making own = { .builder = &builder,
		.store = &store,
		.wanted = making->wanted,
		.arena = &arena,
		.problem = &problem,
		.stage = { .fd = -1, .lock = -1 },
		.layers = -1,
		.is_part = true,
		.started_ms = making->started_ms,
		.deadline_ms = making->deadline_ms };
	buf_init(&own.log, LOG_MAX);
	making_bound(&own);
	int found = making_find_layers(&own, &err);
	fd_close(&own.layers);
	if (found == 0)
		found = making_stage(&own, &err) < 0 || making_install(&own, &err) < 0 ? -1 : 1;
	fd_close(&own.layers);
	making_clean(&own);
	buf_done(&own.log);
	return found == 1 ? 0 : 1;
}

/* Both are there for every environment but the first of an interpreter. */
static bool is_prepared(struct making *making)
{
	struct making look = *making;
	struct error err;

	look.packages = (lock_list){ 0 };
	look.layers = -1;
	look.is_part = true;
	int found = making_find_layers(&look, &err);
	fd_close(&look.layers);
	return found != 0;
}

void prepare_start(struct making *making)
{
	struct error err;
	struct uv uv;

	if (making->helper.pid > 0 || making->is_without_pip || is_prepared(making) ||
		uv_find_here(
			making->store->home, making->builder->runner, making->arena, &uv, &err) < 0)
		return;
	if (child_fork(&making->helper, 0, SIGKILL, &err) || making->helper.pid)
		return;
	_exit(prepare(making));
}

void prepare_wait(struct making *making)
{
	if (making->helper.pid <= 0)
		return;
	if (making_is_interrupted(making))
		kill(making->helper.pid, SIGTERM);
	child_wait(&making->helper);
}
