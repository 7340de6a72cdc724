/* The quick half: parses and resolves a request, and finds or composes its environment. */
#include "envs/kind.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "envs/internal.h"
#include "envs/store_internal.h"
#include "policy/sources.h"

#define LOCK_MAX ((size_t)64 << 20)

#define READER(id, name) [ENV_KIND_##id] = &env_##name##_reader,
static const struct env_reader *const env_readers[ENV_KINDS] = { ENV_KIND_LIST(READER) };

static const struct env_reader *reader_of(const struct env_kind *kind)
{
	return env_readers[kind->row - env_kind_rows];
}

/* -- problems -- */

int build_failed(struct build_problem *problem, enum build_failure failure, const char *package)
{
	problem->failure = failure;
	problem->package = package;
	return -1;
}

int build_failed_as(struct build_problem *problem, const struct error *err)
{
	static const enum build_failure failures[ERR_CODE_COUNT] = {
		[ERR_NONE] = BUILD_FAILED,
		[ERR_INVALID] = BUILD_INVALID,
		[ERR_NOT_FOUND] = BUILD_NOT_FOUND,
		[ERR_CONFLICT] = BUILD_FAILED,
		[ERR_DENIED] = BUILD_DENIED,
		[ERR_LIMIT] = BUILD_DENIED,
		[ERR_DISK_FULL] = BUILD_DISK_FULL,
		[ERR_UNAVAILABLE] = BUILD_FAILED,
		[ERR_CORRUPT] = BUILD_HASH_MISMATCH,
		[ERR_FAILED] = BUILD_FAILED,
		[ERR_COMMAND_NOT_FOUND] = BUILD_FAILED,
		[ERR_NOT_EXECUTABLE] = BUILD_FAILED,
		[ERR_CANCELED] = BUILD_CANCELED,
	};
	return build_failed(problem, failures[err->code], NULL);
}

int build_settle(int failed, struct build_problem *problem, const struct error *err)
{
	if (failed < 0 && problem->failure == BUILD_FAILURE_COUNT)
		build_failed_as(problem, err);
	return failed;
}

/* -- policy -- */

int policy_judge_name(const struct config *config, const char *name, const char *where,
	struct build_problem *problem, struct error *err)
{
	if (text_list_has(&config->blocked_packages, name)) {
		fail_hint(err, ERR_DENIED, "see blocked_packages in config.yaml",
			"package '%s' (%s) is blocked", name, where);
		return build_failed(problem, BUILD_DENIED, name);
	}
	if (config->allowed_packages.count > 0 && !text_list_has(&config->allowed_packages, name)) {
		fail_hint(err, ERR_DENIED, "see allowed_packages in config.yaml",
			"package '%s' (%s) is not in allowed_packages", name, where);
		return build_failed(problem, BUILD_DENIED, name);
	}
	return 0;
}

int policy_judge_index(const struct env_request *request, const char *url, struct arena *arena,
	struct build_problem *problem, struct error *err)
{
	const text_list *allowed = &request->allowed_indexes;
	for (size_t i = 0; i < allowed->count; i++)
		if (sources_url_is_beneath(url, allowed->items[i]))
			return 0;
	if (!allowed->count)
		return 0;
	fail_hint(err, ERR_DENIED,
		"use a listed index, or add this one to package_managers of sources.json",
		"index %s is not among the allowed ones: %s%s", index_redact(arena, url),
		allowed->items[0], allowed->count > 1 ? ", …" : "");
	return build_failed(problem, BUILD_DENIED, NULL);
}

int policy_judge_indexes(const struct env_request *request, const struct env_meta *meta,
	struct arena *arena, struct build_problem *problem, struct error *err)
{
	for (size_t i = 0; meta->packages.count && i < meta->indexes.count; i++)
		if (policy_judge_index(request, meta->indexes.items[i], arena, problem, err) < 0)
			return -1;
	return 0;
}

/* -- files below <home>/locks -- */

int lock_read(const struct env_store *store, const char *name, struct arena *arena,
	struct str *text, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	char path[256];
	str_format(path, sizeof path, "locks/%s", name);
	if (file_read_at(home->dir, path, LOCK_MAX, arena, text) == 0)
		return 1;
	return errno == ENOENT || errno == EFBIG || errno == EINVAL
		       ? 0
		       : fail_errno(err, "read '%s/%s'", home->path, path);
}

int lock_keep(const struct env_store *store, const char *name, struct str text, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_close int dir = -1;
	if (home_open_directory(home, "locks", &dir, err) < 0)
		return -1;
	return file_replace(dir, name, 0600, text, true) < 0
		       ? fail_errno(err, "write lock '%s'", name)
		       : 0;
}

int layer_add_bytes(
	const struct env_store *store, const char *id, uint64_t *bytes, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct manifest manifest = { 0 };
	if (layer_read(&store->layers, id, &arena, &manifest, err) < 0)
		return -1;
	for (size_t i = 0; i < manifest.entries.count; i++)
		*bytes += manifest.entries.items[i].size;
	return 0;
}

/* -- requests -- */

bool env_request_asks(const struct env_request *request, enum env_kind_id id)
{
	return env_readers[id]->is_asked(request);
}

bool env_request_has_packages(const struct env_request *request, enum env_kind_id id)
{
	return env_readers[id]->has_packages(request);
}

struct env_request env_request_part(const struct env_request *request, enum env_kind_id id)
{
	struct env_request part = *request;
	env_readers[id]->narrow(&part);
	return part;
}

/* The default is also what a request is for that says nothing. */
static enum env_kind_id kind_of(const struct env_request *request)
{
	enum env_kind_id id = ENV_KINDS - 1;
	while (id > 0 && !env_request_asks(request, id))
		id--;
	return id;
}

int env_request_prepare(const struct env_store *store, const struct env_request *request,
	struct arena *arena, struct env_wanted *wanted, struct build_problem *problem,
	struct error *err)
{
	enum env_kind_id id = kind_of(request);
	*problem = BUILD_NO_PROBLEM;
	int failed = env_readers[id]->prepare(store, request, arena, wanted, problem, err);
	wanted->kind = env_kinds[id];
	return build_settle(failed, problem, err);
}

/* A package that was blocked since is as little used as one that isn't installed. */
static int judge_installed(const struct env_store *store, const struct env_meta *meta,
	struct build_problem *problem, struct error *err)
{
	for (size_t i = 0; i < meta->packages.count; i++) {
		if (policy_judge_name(&store->config, meta->packages.items[i].key,
			    "of what is installed", problem, err) < 0)
			return -1;
	}
	return 0;
}

static int reuse(const struct env_store *store, const struct env_wanted *wanted,
	struct arena *arena, struct env_meta *meta, struct build_problem *problem,
	struct error *err)
{
	auto_close int pin = -1;
	struct env_meta found;
	if (wanted->request->rebuild || wanted->request->no_cache)
		return 0;
	/* Whatever is wrong with it: it is made again, or that fails and says why. */
	if (env_use(store, wanted->name, arena, &found, &pin, err) < 0)
		return 0;
	if (strcmp(found.fingerprint, wanted->fingerprint) != 0 ||
		strcmp(found.requirements_sha256, wanted->requirements_sha256) != 0)
		return 0;
	if (judge_installed(store, &found, problem, err) < 0 || env_select(store, &found, err) < 0)
		return -1;
	events_reused(&store->events, &found,
		(double)env_age_ms(found.created_at, clock_now_ms()) / 3600000);
	*meta = found;
	return 1;
}

/* -- composed -- */

int env_publish(const struct env_store *store, const struct env_wanted *wanted, struct str lock,
	struct str log, const struct env_meta *meta, struct error *err)
{
	struct env_files files = { .requirements = wanted->text,
		.lock = lock,
		.log = log,
		.lock_kept = wanted->lock_key };
	return env_write(store, meta, &files, err);
}

void env_tell_ready(const struct env_store *store, const struct env_meta *meta, double seconds)
{
	struct error ignored;
	/* The environment exists: ignore a failure to count it. */
	env_metrics_add(store, seconds, &ignored);
	events_installed(&store->events, meta, seconds);
	events_status(&store->events, "ready", meta->name);
}

/* Layers that were there take no more room, but environments are also counted. Names are cheap to
 * count: only when there are too many is anything read. What a crash left is seen by its name. */
static void tidy(const struct env_store *store, const char *keep, struct arena *arena)
{
	struct error ignored;
	text_list names = { 0 };
	uint64_t count = 0;
	bool is_untidy = false;
	envs_names_in(store, ".", arena, &names, &ignored);
	for (size_t i = 0; i < names.count; i++) {
		count += names.items[i][0] != '.';
		is_untidy |= str_starts_with(str_from(names.items[i]), ENVS_NEW);
	}
	if (is_untidy)
		env_sweep(store);
	if (count > store->config.max_envs)
		env_evict(store, keep, 0, &count, &ignored);
}

int env_compare_layers(const struct env_store *store, const struct env_wanted *wanted,
	const struct env_meta *meta, const char **damaged, struct error *err)
{
	bool is_anew = wanted->request->rebuild || wanted->request->no_cache;
	*damaged = NULL;
	for (size_t i = 0; is_anew && i < meta->layers.count + meta->tools.count; i++) {
		auto_arena struct arena arena = { 0 };
		const char *id = env_meta_layer(meta, i);
		layer_damages damages = { 0 };
		int failed = layer_verify(&store->layers, id, &arena, &damages, err);
		if (failed && err->code != ERR_NOT_FOUND && err->code != ERR_CORRUPT)
			return -1;
		if ((failed || damages.count) && !*damaged)
			*damaged = id;
	}
	return !*damaged;
}

static int compose(const struct env_store *store, const struct env_wanted *wanted,
	struct arena *arena, struct env_meta *meta, struct build_problem *problem,
	struct error *err)
{
	uint64_t started_ns = clock_monotonic_ns();
	auto_close int layers = -1;
	struct env_meta made;
	const char *damaged;
	struct str lock = STR("");
	if (layer_store_lock(&store->layers, false, &layers, err) < 0)
		return -1;
	int found =
		reader_of(wanted->kind)->compose(store, wanted, arena, &made, &lock, problem, err);
	if (found > 0)
		found = env_compare_layers(store, wanted, &made, &damaged, err);
	if (found <= 0)
		return found;
	auto_leave const struct home *home = home_entered(store->home);
	made.build_seconds = (double)(clock_monotonic_ns() - started_ns) / 1e9;
	events_creating(&store->events, &made);
	if (env_publish(store, wanted, lock, STR(""), &made, err) < 0)
		return -1;
	fd_close(&layers);
	env_tell_ready(store, &made, (double)(clock_monotonic_ns() - started_ns) / 1e9);
	tidy(store, made.name, arena);
	*meta = made;
	return 1;
}

/* Neither an environment nor a lock is to be reused; without requirements there is no lock that
 * could be out of date. */
static bool must_resolve(const struct env_wanted *wanted)
{
	return wanted->request->no_cache && wanted->needs_lock;
}

int compose_locked(const struct env_store *store, const struct env_wanted *wanted,
	struct arena *arena, struct env_meta *meta, bool *was_there, struct build_problem *problem,
	struct error *err)
{
	int found = reuse(store, wanted, arena, meta, problem, err);
	*was_there = found == 1;
	if (found != 0 || must_resolve(wanted))
		return found;
	return compose(store, wanted, arena, meta, problem, err);
}

static int find_or_compose(const struct env_store *store, const struct env_wanted *wanted,
	struct arena *arena, struct env_meta *meta, bool *was_there, struct build_problem *problem,
	struct error *err)
{
	auto_close int builder = -1;
	int found = reuse(store, wanted, arena, meta, problem, err);
	*was_there = found == 1;
	if (found != 0 || must_resolve(wanted))
		return found;
	if (env_lock(store, wanted->name, store->config.install_timeout_ms, &builder, err) < 0)
		return -1;
	/* Somebody else may have made it while we waited. */
	return compose_locked(store, wanted, arena, meta, was_there, problem, err);
}

int env_compose(const struct env_store *store, const struct env_wanted *wanted, struct arena *arena,
	struct env_meta *meta, bool *was_there, struct build_problem *problem, struct error *err)
{
	if (!wanted->lock_key) /* what it depends on has to be found out first */
		return 0;
	int found = find_or_compose(store, wanted, arena, meta, was_there, problem, err);
	if (found == 1 && policy_judge_indexes(wanted->request, meta, arena, problem, err) < 0)
		found = -1;
	return build_settle(found, problem, err);
}
