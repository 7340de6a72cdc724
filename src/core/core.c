#include "core/core.h"

#include <fcntl.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/files/file_servers.h"
#include "core/access/approvals.h"
#include "core/access/audit_records.h"
#include "core/blobs.h"
#include "core/state/push.h"
#include "core/execs/execs.h"
#include "core/internal.h"
#include "core/workspaces/networks.h"
#include "core/workspaces/ports.h"
#include "core/access/policies.h"
#include "core/state/template_builds.h"
#include "core/state/template_fetch.h"
#include "core/tree_jobs.h"
#include "core/uploads.h"
#include "core/execs/watch.h"

/* ---- opening and closing ---- */

static void on_unasked(void *ctx, const struct launch_packet *packet)
{
	struct core *core = ctx;
	if (!packet) {
		log_record(&core->log, LOG_LEVEL_ERROR, "the launcher has ended", NULL);
		loop_stop(core->loop);
		return;
	}
	if (packet->head.type == LAUNCH_CERTIFICATES) {
		if (core->certificates)
			core->certificates(core->ready_ctx, packet->strings[0], packet->strings[1],
				packet->strings[2]);
		return;
	}
	struct core_workspace *w = packet->head.type == LAUNCH_ENDED
					   ? map_get(&core->ids, str_from(packet->head.id))
					   : NULL;
	if (w)
		sandbox_ended(w, packet->head.value);
}

static int open_directories(
	struct core *core, const struct core_options *options, struct error *err)
{
	auto_close int run = -1, blobs = -1;
	if (home_open_directory(&core->home, "workspaces", &core->workspaces, err) ||
		home_open_directory(&core->home, "blobs", &blobs, err) ||
		home_open_directory(&core->home, "run", &run, err))
		return -1;
	return execs_open(core, options->captured_max, run, err) ||
			       path_make_directories(run, "sb", 0700, &core->sockets, err)
		       ? -1
		       : 0;
}

static int open_state(struct core *core, const struct core_options *options, struct error *err)
{
	const struct store_host host = core_store_host(core);
	if (store_open(options->store_url, &host, &core->store, err) ||
		core_use_writer(core, options->writer, err))
		return -1;
	reconcile_ask(core);
	return 0;
}

int core_open(
	const struct core_options *options, struct loop *loop, struct core **out, struct error *err)
{
	struct core *core = xzalloc(sizeof *core);
	core->loop = loop;
	core->tree_jobs = (struct job_queue){ .core = core, .kind = &tree_job_kind };
	core->blobs = (struct job_queue){ .core = core, .kind = &blob_job_kind };
	shares_init(&core->creations, "workspaces being created", "wait until some are ready",
		CREATIONS_MAX, CREATIONS_MAX / 2);
	shares_init(&core->uploads, "uploads under way", "wait until some have ended", UPLOADS_MAX,
		UPLOADS_SHARE_MAX);
	core->log = options->log;
	core->config_digest = options->config_digest;
	core->release_after_ms = options->release_after_ms;
	core->landlock_writes = options->landlock_writes;
	core->keeps_spare = options->keeps_spare;
	core->workspaces = core->sockets = core->home.dir = -1;
	core->launcher.socket = core->writer = core->closer = -1;
	core->closer_child = CHILD_NONE;
	core->use_snapshots = options->use_snapshots;
	core->auto_repair = options->auto_repair;
	core->envs = (struct env_store){ .dir = -1, .layers = { .dir = -1 } };
	arena_init(&core->arena);
	access_open(core, options);
	packages_open(core);
	state_open(core, options);
	upkeep_open(core);
	struct map *tables[] = { &core->ids, &core->names, &core->contexts };
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		map_init(tables[i], NULL);
	core->metrics.started_ms = (uint64_t)clock_now_ms();
	journal_init(&core->journal, core->metrics.started_ms);
	if (home_open(options->home, &core->arena, &core->home, err) ||
		(options->audit > 0 &&
			audit_open(core, options->audit, options->audit_drops, err)) ||
		open_directories(core, options, err) || policies_open(core, err) ||
		open_state(core, options, err) ||
		env_store_open(&core->home, &core->arena, &core->envs, err) ||
		template_builds_open(core, err) ||
		template_copies_open(core, options->blob_source, err) ||
		file_servers_open(core, err) || closer_open(core, err) ||
		networks_init(core, options, err) ||
		launcher_open(&core->launcher, loop, options->launcher, err)) {
		core_free(core);
		return -1;
	}
	core->envs.never_waits = true;
	core->ready = options->ready;
	core->certificates = options->certificates;
	core->ready_ctx = options->ctx;
	core->row = options->row;
	core->row_ctx = options->row_ctx;
	core->launcher.unasked = on_unasked;
	core->launcher.ctx = core;
	lifetimes_start(core);
	if (reconcile_begin(core, err)) {
		core_free(core);
		return -1;
	}
	*out = core;
	return 0;
}

void core_check_stopped(struct core *core)
{
	if (!core->is_stopping || !core->stopped)
		return;
	for (struct core_workspace *w = core->newest; w; w = w->older)
		if (w->sandbox.state != SANDBOX_NONE)
			return;
	store_flush(core->store);
	void (*stopped)(void *ctx) = core->stopped;
	core->stopped = NULL;
	stopped(core->stopped_ctx);
}

static void on_stop(struct loop *loop, void *ctx)
{
	core_check_stopped(ctx);
}

void core_begin_stop(struct core *core)
{
	core->is_stopping = true;
}

void core_stop(struct core *core, void (*done)(void *ctx), void *ctx)
{
	core->is_stopping = true;
	core->stopped = done;
	core->stopped_ctx = ctx;
	execs_end_asked(core, NULL);
	for (struct core_workspace *w = core->newest; w; w = w->older) {
		core_end_sandbox(w, REASON_CANCELED);
		if (w->saved_last_used_ms != w->model.last_used_ms && !w->is_spare)
			workspace_save(w, NULL, NULL);
	}
	loop_after(core->loop, 0, on_stop, core);
}

void core_end_foreground(struct core *core)
{
	core->is_leaving = true;
	execs_end_foreground(core);
	for (struct core_workspace *w = core->newest; w; w = w->older)
		if (w->saved_last_used_ms != w->model.last_used_ms && !w->is_spare)
			workspace_save(w, NULL, NULL);
	store_flush(core->store);
}

void core_flush(struct core *core)
{
	store_flush(core->store);
}

void core_free(struct core *core)
{
	lifetimes_stop(core);
	if (core->flush)
		loop_cancel(core->loop, core->flush);
	jobs_done(&core->tree_jobs);
	merges_done(core);
	inquiries_done(core);
	jobs_done(&core->blobs);
	shares_done(&core->uploads);
	shares_done(&core->creations);
	template_copies_close(core);
	pulls_done(core);
	approvals_quiet(core);
	execs_done(core);
	networks_done(core);
	for (struct core_workspace *w = core->newest, *older; w; w = older) {
		older = w->older;
		w->users = 0;
		workspace_drop(w);
	}
	file_servers_done(core);
	snapshots_done(core);
	closer_done(core);
	store_close(core->store);
	access_close(core);
	if (core->is_ready && core->audit)
		audit_daemon(core, core->is_leaving ? "daemon.reload" : "daemon.stop",
			core->config_digest);
	audit_close(core);
	launcher_done(&core->launcher);
	env_store_done(&core->envs);
	state_close(core);
	journal_done(&core->journal);
	struct map *tables[] = { &core->ids, &core->names, &core->contexts };
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		map_done(tables[i]);
	packages_close(core);
	upkeep_close(core);
	execs_close(core);
	fd_close(&core->workspaces);
	fd_close(&core->sockets);
	home_done(&core->home);
	arena_done(&core->arena);
	free(core);
}

/* ---- the workspaces that are known ---- */

static void link_newest(struct core *core, struct core_workspace *w)
{
	w->older = core->newest;
	if (core->newest)
		core->newest->newer = w;
	else
		core->oldest = w;
	core->newest = w;
}

/* Keys of these are texts of the workspace. */
static void add_names(struct core_workspace *w)
{
	struct core *core = w->core;
	const char *context = workspace_context_key(&w->model, &w->arena);
	map_add(&core->names, str_from(w->model.name), w);
	if (context && !map_get(&core->contexts, str_from(context)))
		map_add(&core->contexts, str_from(context), w);
}

static void remove_names(struct core_workspace *w)
{
	struct core *core = w->core;
	auto_arena struct arena arena = { 0 };
	const char *context = workspace_context_key(&w->model, &arena);
	map_remove(&core->names, str_from(w->model.name));
	if (context && map_get(&core->contexts, str_from(context)) == w)
		map_remove(&core->contexts, str_from(context));
}

static void add_to_tables(struct core_workspace *w)
{
	link_newest(w->core, w);
	map_add(&w->core->ids, str_from(w->model.id), w);
	add_names(w);
}

static void remove_from_tables(struct core_workspace *w)
{
	struct core *core = w->core;
	map_remove(&core->ids, str_from(w->model.id));
	remove_names(w);
	*(w->newer ? &w->newer->older : &core->newest) = w->older;
	*(w->older ? &w->older->newer : &core->oldest) = w->newer;
	w->newer = NULL;
}

/* In an arena that holds nothing else. */
static void copy_texts(struct core_workspace *w)
{
	struct arena before = w->arena;
	arena_init(&w->arena);
	record_copy_texts(&workspace_record, &w->arena, &w->model);
	w->files = pair_list_copy(&w->arena, &w->files);
	arena_done(&before);
}

static void set_model(struct core_workspace *w, const struct workspace *model)
{
	policies_forget(w);
	w->model = *model;
	copy_texts(w);
	w->saved_last_used_ms = model->last_used_ms;
	w->used_ms = clock_monotonic_ms();
	w->is_dirty = false;
	add_to_tables(w);
	w->texts_bytes = w->arena.size;
}

struct core_workspace *workspace_new(struct core *core, const struct workspace *model)
{
	struct core_workspace *w = xzalloc(sizeof *w);
	w->core = core;
	arena_init(&w->arena);
	packages_attach(w);
	state_attach(w);
	life_attach(w);
	file_servers_attach(w);
	sandbox_clear(&w->sandbox);
	set_model(w, model);
	return w;
}

void workspace_replace(struct core_workspace *w, const struct workspace *model)
{
	remove_from_tables(w);
	set_model(w, model);
}

static void free_workspace(struct core_workspace *w)
{
	file_servers_free(w);
	ports_free(w);
	policies_forget(w);
	state_detach(w);
	packages_detach(w);
	life_detach(w);
	waiters_forget(w->waiters);
	waiters_forget(w->suspenders);
	for (struct cancelable *c = w->operations; c; c = c->next)
		c->w = NULL;
	arena_done(&w->arena);
	free(w);
}

/* With the address sanitizer any change is enough, so that a pointer to a text that was replaced
 * shows. */
#ifdef __SANITIZE_ADDRESS__
#define TEXTS_REPLACED_MOST 0
#else
#define TEXTS_REPLACED_MOST ((size_t)16 << 10)
#endif

static bool has_replaced_texts(const struct core_workspace *w)
{
	size_t replaced = w->arena.size - w->texts_bytes;
	return replaced > TEXTS_REPLACED_MOST &&
	       (!TEXTS_REPLACED_MOST || replaced > w->texts_bytes);
}

static void on_tidy(struct loop *loop, void *ctx)
{
	struct core *core = ctx;
	core->tidy = NULL;
	for (struct core_workspace *w = core->newest; w; w = w->older) {
		if (!has_replaced_texts(w))
			continue;
		remove_names(w);
		copy_texts(w);
		add_names(w);
		w->texts_bytes = w->arena.size;
	}
}

void workspace_tidy(struct core_workspace *w)
{
	if (!w->is_gone && !w->core->tidy && has_replaced_texts(w))
		w->core->tidy = loop_after(w->core->loop, 0, on_tidy, w->core);
}

void workspace_drop(struct core_workspace *w)
{
	lifetime_disarm(w);
	environments_release(w);
	networks_detach(w);
	sandbox_close(w->core, &w->sandbox, true);
	remove_from_tables(w);
	w->is_gone = true;
	if (!w->users)
		free_workspace(w);
}

void core_hold(struct core_workspace *w)
{
	w->users++;
}

void core_release(struct core_workspace *w)
{
	if (--w->users == 0 && w->is_gone)
		free_workspace(w);
}

void core_touch(struct core_workspace *w)
{
	w->used_ms = clock_monotonic_ms();
	w->model.last_used_ms = clock_now_ms();
	w->is_dirty = true;
	lifetime_used(w);
}

void workspace_save(struct core_workspace *w, store_done_fn *done, void *ctx)
{
	struct workspace row = w->model;
	/* Until its archive is made nothing of it goes, also when core is killed meanwhile. */
	if (row.state == WORKSPACE_DELETING && w->wants_archive)
		row.state = WORKSPACE_READY;
	w->saved_last_used_ms = w->model.last_used_ms;
	store_put(w->core->store, &store_workspaces, &row, done, ctx);
	workspace_tidy(w);
}

void workspace_set_state(struct core_workspace *w, enum workspace_state state)
{
	static const char *const types[WORKSPACE_STATE_COUNT] = { "workspace.creating",
		"workspace.ready", "workspace.running" /* never set */, "workspace.suspended",
		"workspace.failed", "workspace.deleting" };
	/* A sandbox that starts late must not change the state of a workspace that is being
	 * removed. */
	if (w->model.state == state || w->model.state == WORKSPACE_DELETING)
		return;
	w->model.state = state;
	journal_emit(&w->core->journal, types[state], w->model.id, w->model.name,
		w->model.error ? "error" : NULL, w->model.error, NULL);
}

/* ---- finding ---- */

int core_find(const struct request *request, struct core *core, const char *text,
	struct core_workspace **out, struct error *err)
{
	struct map *tables[] = { &core->ids, &core->names, &core->contexts };
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		struct core_workspace *w = map_get(tables[i], str_from(text));
		if (w && w->model.state != WORKSPACE_CREATING && access_reaches(request, w)) {
			if (access_check(core, request, VERB_WORKSPACE_GET, w, err))
				return -1;
			*out = w;
			return 0;
		}
	}
	const char *why;
	int64_t at_ms;
	/* A bound principal must not learn of removed workspaces of others either. */
	if (access_is_bound(request) || !store_find_gone(core->store, text, &why, &at_ms))
		return fail_hint(err, ERR_NOT_FOUND, "carrel ls lists them",
			"there is no workspace '%s'", text);
	char time[32];
	clock_format(time, at_ms);
	return fail(err, ERR_NOT_FOUND, "there is no workspace '%s': it %s%s at %s", text,
		strcmp(why, "expired") ? "was " : "", why, time);
}

const struct workspace *core_model(const struct core_workspace *w)
{
	return &w->model;
}

struct workspace_now core_now(struct core_workspace *w)
{
	const struct core_sandbox *sandbox = &w->sandbox;
	unsigned waiters = 0;
	for (const struct core_waiter *waiter = w->waiters; waiter; waiter = waiter->next)
		waiters++;
	struct workspace_now now = { w->model.state, sandbox->state == SANDBOX_UP,
		view_limiter(&sandbox->view), w->core->landlock_writes, w->traffic,
		policies_network(w) };
	if (now.state == WORKSPACE_READY &&
		(sandbox->exec_count || waiters > file_servers_waking(w) ||
			(sandbox->state == SANDBOX_UP && sandbox_has_processes(w))))
		now.state = WORKSPACE_RUNNING;
	lifetime_list_uses(w, now.uses);
	if (w->model.expires_ms && lifetime_is_held(w))
		now.expires_ms = clock_now_ms() + (int64_t)w->model.ttl_ms;
	return now;
}

static bool is_of(const struct workspace *w, const struct core_filter *filter)
{
	const char *service = w->owner.service;
	return (!filter->service || (service && !strcmp(service, filter->service))) &&
	       (!filter->only_contexts || w->owner.context_id);
}

static bool has_labels(const struct workspace *w, const pair_list *wanted)
{
	for (size_t i = 0; wanted && i < wanted->count; i++) {
		const char *value = workspace_label(w, wanted->items[i].key);
		if (!value || (wanted->items[i].value && strcmp(value, wanted->items[i].value)))
			return false;
	}
	return true;
}

int core_list(const struct request *request, struct core *core, const struct core_filter *filter,
	void (*fn)(void *ctx, struct core_workspace *w), void *ctx, char next[CORE_CURSOR_SIZE],
	struct error *err)
{
	struct core_page page;
	if (access_check(core, request, VERB_WORKSPACE_LIST, access_bound(core, request), err) ||
		core_page_begin(&page, filter->cursor, filter->limit, next, err))
		return -1;
	for (struct core_workspace *w = core->newest; w && !core_page_is_full(&page); w = w->older)
		if (w->model.state != WORKSPACE_CREATING && access_reaches(request, w) &&
			(filter->state < 0 || (int)core_now(w).state == filter->state) &&
			is_of(&w->model, filter) && has_labels(&w->model, filter->labels) &&
			core_page_takes(&page, w->model.created_ms))
			fn(ctx, w);
	return 0;
}

/* ---- numbers ---- */

int core_events(const struct request *request, struct core *core, const struct core_workspace *w,
	struct journal **journal, struct error *err)
{
	if (access_check(core, request, VERB_EVENT_LISTEN, w, err))
		return -1;
	*journal = &core->journal;
	return 0;
}

int core_look(const struct request *request, struct core_workspace *w,
	struct workspace_metrics *metrics, struct error *err)
{
	const struct limits *limits = &w->model.limits;
	if (access_check(w->core, request, VERB_WORKSPACE_MEASURE, w, err))
		return -1;
	struct workspace_now now = core_now(w);
	*metrics = (struct workspace_metrics){ .name = w->model.name,
		.state = now.state,
		.is_warm = now.is_warm,
		.memory_limit = policies_limit_memory(w, limits->memory_bytes),
		.pids_limit = limits->pids,
		.disk_bytes = w->model.disk_usage_bytes,
		.disk_limit = limits->disk_bytes,
		.execs = w->sandbox.exec_count };
	memcpy(metrics->id, w->model.id, sizeof metrics->id);
	watch_measure(w, metrics);
	return 0;
}

void core_count_read(struct core *core, uint64_t bytes)
{
	core->metrics.file_read_bytes += bytes;
}

int core_count(const struct request *request, const struct core *core, struct core_numbers *numbers,
	struct error *err)
{
	if (access_check(core, request, VERB_DAEMON_MEASURE, NULL, err))
		return -1;
	*numbers = (struct core_numbers){ .metrics = core->metrics,
		.captured_bytes = execs_captured_bytes(core) };
	const struct audit_numbers audit = audit_count(core);
	numbers->audit_records = audit.records;
	numbers->audit_dropped = audit.dropped;
	numbers->is_audit_failing = audit.is_failing;
	for (struct core_workspace *w = core->newest; w; w = w->older) {
		if (w->is_spare)
			continue;
		numbers->workspaces[core_now(w).state]++;
		numbers->disk_bytes += w->model.disk_usage_bytes;
		numbers->execs += w->sandbox.exec_count;
		if (w->sandbox.state == SANDBOX_ENDING)
			numbers->sandboxes_ending++;
		else if (w->sandbox.state == SANDBOX_UP)
			numbers->sandboxes_up++;
		else if (w->sandbox.state == SANDBOX_STARTING)
			numbers->sandboxes_starting++;
	}
	return 0;
}
