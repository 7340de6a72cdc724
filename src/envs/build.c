/* The slow half: builds missing environments, finds and rebuilds damaged ones. */
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/fd.h"
#include "envs/internal.h"
#include "envs/logins.h"
#include "format/text/quantity.h"
#include "sandbox/plan/plan.h"

#define LOG_MAX ((size_t)16 << 20)
#define FILE_MAX ((size_t)64 << 20)
#define LOCK_STEP_MS 250

#define MAKER(id, name) [ENV_KIND_##id] = &env_##name##_maker,
static const struct env_maker *const env_makers[ENV_KINDS] = { ENV_KIND_LIST(MAKER) };

static const struct env_maker *maker_of(const struct env_kind *kind)
{
	return env_makers[kind->row - env_kind_rows];
}

/* -- room on the disk -- */

static int free_bytes(const struct env_store *store, uint64_t *bytes, struct error *err)
{
	struct statvfs stat;
	if (fstatvfs(store->layers.dir, &stat) < 0)
		return fail_errno(err, "look at the disk of '%s'", store->home->path);
	*bytes = (uint64_t)stat.f_bavail * stat.f_frsize;
	return 0;
}

/* Removes environments until `needed` bytes are free, when that is possible. */
static int make_room(struct build_run *run, uint64_t needed, struct error *err)
{
	const struct env_store *store = run->store;
	uint64_t there = 0, count = 0;
	char is[16], must[16];
	if (free_bytes(store, &there, err) < 0)
		return -1;
	if (there >= needed)
		return 0;
	if (env_evict(store, run->wanted->name, needed - there, &count, err) < 0 ||
		free_bytes(store, &there, err) < 0)
		return -1;
	if (there >= needed)
		return 0;
	quantity_format_size(is, there);
	quantity_format_size(must, needed);
	return fail_hint(err, ERR_DISK_FULL,
		"remove environments that are in use, or lower min_free_bytes in config.yaml",
		"%s are free below '%s', %s are needed to build", is, store->home->path, must);
}

/* Evicts every unused environment. false: that freed nothing. */
static bool make_all_room(struct build_run *run)
{
	const struct env_store *store = run->store;
	uint64_t before, after, count = 0;
	struct error ignored; /* the caller reports the full disk */
	return free_bytes(store, &before, &ignored) == 0 &&
	       env_evict(store, run->wanted->name, EVICTION_ALL, &count, &ignored) == 0 &&
	       free_bytes(store, &after, &ignored) == 0 && after > before;
}

/* -- building -- */

static void show(const struct builder *builder, const char *phase, size_t done, size_t total)
{
	const struct env_progress *progress = builder->progress;
	if (progress && progress->show)
		progress->show(progress->ctx, phase, done, total, 0);
}

/* Makes it of layers that are whole: of those that were there, one may have been altered. */
static int make(struct build_run *run, const struct env_maker *maker, struct error *err)
{
	const char *damaged = NULL;
	for (int tries = 0; tries < 2; tries++) {
		run->layers = -1;
		if (maker->make(run, err) < 0)
			return -1;
		int whole = env_compare_layers(run->store, run->wanted, &run->meta, &damaged, err);
		if (whole != 0)
			return whole < 0 ? -1 : 0;
		buf_printf(&run->log, "layer %s is damaged: making it again\n", damaged);
		fd_close(&run->layers);
	}
	return fail(err, ERR_CORRUPT, "layer '%s' is damaged as soon as it is made", damaged);
}

/* Everything that a full disk can end. */
static int attempt(struct build_run *run, const struct env_maker *maker, struct error *err)
{
	auto_close int layers = -1;
	struct env_meta *meta = &run->meta;
	run->layers = -1;
	*run->problem = BUILD_NO_PROBLEM;
	int failed = make(run, maker, err);
	layers = run->layers;
	if (failed)
		return build_settle(-1, run->problem, err);
	if (builder_is_interrupted(run->builder))
		return run_canceled(run, err);
	meta->build_seconds = (double)(clock_monotonic_ms() - run->started_ms) / 1000;
	buf_printf(&run->log, "built %s in %.2f s: %zu packages, %zu layers\n", meta->name,
		meta->build_seconds, meta->packages.count, meta->layers.count);
	failed = env_publish(run->store, run->wanted, run->lock, buf_str(&run->log), meta, err);
	return build_settle(failed, run->problem, err);
}

/* Waits in small steps, so that it can be interrupted. */
static int lock_name(struct build_run *run, int *lock, struct error *err)
{
	while (env_lock(run->store, run->wanted->name, LOCK_STEP_MS, lock, err) < 0) {
		if (builder_is_interrupted(run->builder))
			return run_canceled(run, err);
		if (err->code != ERR_CONFLICT || clock_monotonic_ms() >= run->deadline_ms)
			return -1;
	}
	return 0;
}

/* 1: composed from existing layers. */
static int build(struct build_run *run, bool *was_there, struct error *err)
{
	const struct env_store *store = run->store;
	const struct env_maker *maker = maker_of(run->wanted->kind);
	auto_close int lock = -1;
	*was_there = false;
	if (maker->complete(run, err) < 0 || lock_name(run, &lock, err) < 0)
		return -1;
	/* Another process may have built it while this one waited. */
	int found = compose_locked(
		store, run->wanted, run->arena, &run->meta, was_there, run->problem, err);
	if (found != 0)
		return found;
	run->meta = (struct env_meta){ .name = run->wanted->name,
		.package_id = run->wanted->request->package_id,
		.requirements_sha256 = run->wanted->requirements_sha256 };
	events_creating(&store->events, &run->meta);
	events_status(&store->events, "building_env", run->wanted->name);
	show(run->builder, "building_env", 0, 0);
	env_sweep(store);
	if (make_room(run, store->config.min_free_bytes, err) < 0)
		return -1;
	if (attempt(run, maker, err) == 0)
		return 0;
	/* Once more, with all the room that there can be. */
	if (run->problem->failure != BUILD_DISK_FULL || !make_all_room(run))
		return -1;
	buf_printf(&run->log, "%s: building again with a higher limit\n", err->text);
	return attempt(run, maker, err);
}

static void finish(struct build_run *run)
{
	const struct env_store *store = run->store;
	struct error ignored;
	uint64_t count = run->meta.packages.count > 0 ? run->meta.packages.count : 1;
	/* The environment exists now: later failures don't undo it. */
	env_tell_ready(store, &run->meta, run->meta.build_seconds);
	show(run->builder, "ready", count, count);
	env_evict(store, run->meta.name, 0, &count, &ignored);
}

/* Keeps the log, and tells. */
static void tell_failure(struct build_run *run, struct error *err)
{
	const struct env_store *store = run->store;
	const char *name = run->wanted->name, *failure = build_failure_names[run->problem->failure];
	struct error ignored;
	if (err->hint[0] == '\0')
		error_hint(err, "carrel env show --log %s prints the whole log", name);
	buf_printf(&run->log, "%s: %s\n", failure, err->text);
	env_keep_log(store, name, buf_str(&run->log), &ignored);
	events_failed(&store->events, name, failure, run->problem->package, err);
}

int env_build(const struct builder *builder, struct env_wanted *wanted, struct arena *arena,
	struct env_meta *meta, bool *was_there, struct build_problem *problem, struct error *err)
{
	struct build_run run = { .builder = builder,
		.store = builder->store,
		.wanted = wanted,
		.arena = arena,
		.problem = problem,
		.started_ms = clock_monotonic_ms(),
		.layers = -1,
		.stage = LAYER_STAGE_NONE };
	run.deadline_ms = run.started_ms + builder->store->config.install_timeout_ms;
	buf_init(&run.log, LOG_MAX);
	*problem = BUILD_NO_PROBLEM;
	int failed = build(&run, was_there, err);
	if (failed >= 0 &&
		policy_judge_indexes(wanted->request, &run.meta, arena, problem, err) < 0)
		failed = -1;
	build_settle(failed, problem, err);
	if (builder->progress) {
		builder->progress->count = NULL;
		builder->progress->unpacked = NULL;
	}
	/* Whatever failed by it. */
	if (failed < 0 && builder_is_interrupted(builder))
		run_canceled(&run, err);
	if (failed < 0)
		tell_failure(&run, err);
	else
		*meta = run.meta;
	if (failed == 0)
		finish(&run);
	buf_done(&run.log);
	return failed < 0 ? -1 : failed;
}

/* -- what is wrong -- */

void finding_add(struct arena *arena, env_findings *findings, const char *layer,
	const char *package, const char *path, const char *what)
{
	vec_push(arena, findings,
		(struct env_finding){
			layer, package, arena_text(arena, path), arena_text(arena, what) });
}

int env_read_text(const struct env_store *store, const char *name, const char *file,
	struct arena *arena, struct str *text, struct error *err)
{
	auto_buf struct buf all = { 0 };
	buf_init(&all, FILE_MAX);
	*text = STR("");
	if (env_read_file(store, name, file, &all, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	*text = buf_copy(arena, &all);
	return 0;
}

/* Against its manifest; and one that is whole, for logins. */
static int verify_layer(const struct builder *builder, const char *id, const char *package,
	const text_list *logins, struct arena *arena, env_findings *findings, struct error *err)
{
	const struct env_store *store = builder->store;
	layer_damages damages = { 0 };
	if (layer_verify(&store->layers, id, arena, &damages, err) < 0) {
		if (err->code != ERR_NOT_FOUND && err->code != ERR_CORRUPT)
			return -1;
		finding_add(arena, findings, id, package, "",
			err->code == ERR_NOT_FOUND ? "missing" : err->text);
		return 0;
	}
	for (size_t d = 0; d < damages.count; d++)
		finding_add(
			arena, findings, id, package, damages.items[d].path, damages.items[d].what);
	return damages.count ? 0 : logins_search(store, id, package, logins, arena, findings, err);
}

static int verify_layers(const struct builder *builder, const struct env_meta *meta,
	struct arena *arena, env_findings *findings, struct error *err)
{
	const struct env_store *store = builder->store;
	const struct env_maker *maker = maker_of(env_kind_of(meta));
	size_t count = meta->layers.count + meta->tools.count;
	text_list logins = { 0 };
	if (logins_find(builder, arena, &logins, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		show(builder, "verifying", i, count);
		/* A signal that came before; later ones end the process while it only reads. */
		if (builder_is_interrupted(builder))
			return fail(err, ERR_CANCELED, "env verify was interrupted");
		if (verify_layer(builder, env_meta_layer(meta, i),
			    maker->name_layer(store, meta, i, arena), &logins, arena, findings,
			    err) < 0)
			return -1;
	}
	return 0;
}

int env_verify(const struct builder *builder, const char *name, struct arena *arena,
	env_findings *findings, struct error *err)
{
	const struct env_store *store = builder->store;
	struct env_meta meta;
	if (env_read(store, name, arena, &meta, err) < 0) {
		if (err->code != ERR_CORRUPT)
			return -1;
		finding_add(arena, findings, NULL, NULL, "", err->text);
		return 0;
	}
	if (verify_layers(builder, &meta, arena, findings, err) < 0)
		return -1;
	if (meta.layers.count > PLAN_LOWERS_MAX)
		finding_add(arena, findings, NULL, NULL, "",
			arena_printf(arena, "%zu layers, of which %d can be mounted",
				meta.layers.count, PLAN_LOWERS_MAX));
	return maker_of(env_kind_of(&meta))->verify(builder, &meta, arena, findings, err);
}

/* -- and made anew -- */

int findings_set_aside(
	const struct env_store *store, const env_findings *findings, struct error *err)
{
	auto_close int alone = -1;
	if (layer_store_lock(&store->layers, true, &alone, err) < 0)
		return -1;
	for (size_t i = 0; i < findings->count; i++) {
		const char *id = findings->items[i].layer;
		if (id && (i == 0 || findings->items[i - 1].layer != id) &&
			layer_quarantine(&store->layers, id, err) < 0 && err->code != ERR_NOT_FOUND)
			return -1;
	}
	return 0;
}

/* A login that a package brings is in what was built, too. */
static int judge_repaired(const struct builder *builder, const struct env_meta *meta,
	struct arena *arena, struct error *err)
{
	text_list logins = { 0 };
	env_findings again = { 0 };
	if (logins_find(builder, arena, &logins, err) < 0)
		return -1;
	for (size_t i = 0; i < meta->layers.count + meta->tools.count; i++)
		if (logins_search(builder->store, env_meta_layer(meta, i), NULL, &logins, arena,
			    &again, err) < 0)
			return -1;
	if (!again.count)
		return 0;
	return fail_hint(err, ERR_DENIED,
		"replace the login at the registry, and in the configuration of this host",
		"the packages of environment '%s', built again, bring a login of this host in '%s'",
		meta->name, again.items[0].path);
}

int env_repair(const struct builder *builder, const char *name, const env_findings *findings,
	struct arena *arena, struct env_meta *meta, struct build_problem *problem,
	struct error *err)
{
	struct env_request *request = arena_alloc(arena, sizeof *request);
	struct env_wanted *wanted = arena_alloc(arena, sizeof *wanted);
	struct env_meta old;
	bool was_there;
	if (env_read(builder->store, name, arena, &old, err) < 0) {
		if (err->code == ERR_CORRUPT)
			error_hint(err,
				"its requirements are lost: carrel env rm %s, and build it again",
				name);
		/* No build has failed: what the error says of itself is all. */
		*problem = BUILD_NO_PROBLEM;
		return -1;
	}
	const struct env_kind *kind = env_kind_of(&old);
	if (findings_set_aside(builder->store, findings, err) < 0 ||
		maker_of(kind)->ask_again(builder, &old, arena, request, wanted, err) < 0)
		return build_failed_as(problem, err);
	wanted->kind = kind;
	if (env_build(builder, wanted, arena, meta, &was_there, problem, err) < 0)
		return -1;
	return build_settle(judge_repaired(builder, meta, arena, err), problem, err);
}
