/* What doesn't need what the build is just doing, on the core that it leaves. */
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "envs/python/internal.h"
#include "envs/python/jobs.h"
#include "linux/child.h"

#define LOG_MAX ((size_t)1 << 20)

/* In the process of its own: an environment of no packages, as far as its layers. It says nothing,
 * neither to people nor to the audit: the build that it is part of does. */
static int prepare(const struct making *making, bool is_pip_plain)
{
	auto_arena struct arena arena = { 0 };
	struct env_store store = *making->store;
	struct builder builder = *making->builder;
	struct build_problem problem = { 0 };
	struct error err;
	store.events = (struct events){ .sink = -1 };
	builder.store = &store;
	builder.progress = NULL;
	struct build_run run = { .builder = &builder,
		.store = &store,
		.wanted = making->wanted,
		.arena = &arena,
		.problem = &problem,
		.started_ms = making->run->started_ms,
		.deadline_ms = making->run->deadline_ms,
		.layers = -1 };
	buf_init(&run.log, LOG_MAX);
	struct making own = making_of(&run);
	own.is_part = true;
	own.is_pip_plain = is_pip_plain;
	int found = making_find_layers(&own, &err);
	fd_close(&run.layers);
	if (found == 0)
		found = making_stage(&own, &err) < 0 || making_install(&own, &err) < 0 ? -1 : 1;
	fd_close(&run.layers);
	making_clean(&own);
	buf_done(&run.log);
	return found == 1 ? 0 : 1;
}

/* Whether base and pip are there, as they are for every environment but the first ones of an
 * interpreter. If not, *is_pip_plain: not even a pip without bytecode. */
static bool is_prepared(struct making *making, bool *is_pip_plain)
{
	struct build_run run = *making->run;
	struct making look = *making;
	struct error err;
	run.layers = -1;
	look.run = &run;
	look.packages = (lock_list){ 0 };
	look.is_part = look.is_pip_plain = true;
	int found = making_find_layers(&look, &err);
	fd_close(&run.layers);
	*is_pip_plain = found == 0;
	return found < 0 || (found == 1 && !look.composition.is_pip_plain);
}

struct child prepare_index(struct making *making)
{
	const struct env_wanted *wanted = making->wanted;
	struct arena *arena = making->arena;
	struct child child = CHILD_NONE;
	const char *url;
	struct error ignored;
	if (wanted->indexes.index || !wanted->needs_lock || wanted->python_is_known ||
		uv_find_here(making->store->home, &making->runner, arena, &making->uv, &ignored) <
			0 ||
		child_fork(&child, 0, SIGKILL, &ignored) < 0)
		return CHILD_NONE;
	if (child.pid == 0)
		_exit(uv_default_index(making->store->home, &making->runner, &wanted->python, arena,
			      &url, &ignored) < 0);
	return child;
}

static _Noreturn void help(struct making *making, bool asks, bool is_pip_plain)
{
	const struct build_network *network = making->builder->network;
	struct error err;
	buf_clear(&making->run->log);
	/* What waits in the forwarder is judged in any case. */
	if (asks && making_allow_files(making, &err) < 0)
		network->settle(network->ctx, &err);
	if (asks && making->run->log.len > 0)
		(void)!fd_write_full(
			making->helper.pipe, making->run->log.data, making->run->log.len);
	/* The build closes its forwarder when it has its packages: pip comes by another one. */
	network->close(network->ctx);
	_exit(making->is_preparing ? prepare(making, is_pip_plain) : 0);
}

bool prepare_start(struct making *making, bool asks)
{
	bool is_pip_plain = false;
	struct error ignored;
	if (making->helper.pid > 0)
		return false;
	making->is_preparing = !making->is_without_pip && !is_prepared(making, &is_pip_plain);
	if ((asks || making->is_preparing) &&
		child_fork(&making->helper, CHILD_PIPE, SIGKILL, &ignored) == 0) {
		if (making->helper.pid == 0)
			help(making, asks, is_pip_plain);
		return true;
	}
	making->is_preparing = false;
	return false;
}

void prepare_wait(struct making *making)
{
	char text[4096];
	ssize_t len;
	if (making->helper.pid <= 0)
		return;
	if (builder_is_interrupted(making->builder))
		kill(making->helper.pid, SIGTERM);
	while ((len = fd_read_full(making->helper.pipe, text, sizeof text)) > 0)
		buf_append(&making->run->log, text, (size_t)len);
	child_wait(&making->helper);
	making->is_preparing = false;
}
