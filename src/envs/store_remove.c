/* Removal of environments (by name, by limits) and collection of unreferenced layers. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "base/str.h"
#include "envs/store.h"
#include "envs/store_internal.h"
#include "model/nouns/eviction.h"
#include "trees/layers/stage.h"

#define FREE_PATIENCE_MS 5000 /* for the layers' lock, when the disk is full */
#define FAILED_LOG_MAX_AGE_S (30 * 86400)
#define PYTHONS "../pythons"
#define LOCKS "../locks" /* seen from envs/ */
#define KEY_LEN 64
#define AGE_MAX_S (30 * 86400)
#define COUNT_MAX 1000
#define DRAFT_AGE_MAX_S 3600

/* ---- one ---- */

/* The meta.json of `directory`, claimed, in *fd; -1 in it when there is none to claim. EAGAIN: it
 * is in use. */
static int claim(const struct env_store *store, const char *directory, int *fd)
{
	char path[ENVS_PATH_MAX];
	str_format(path, sizeof path, "%s/" ENVS_META, directory);
	*fd = path_open_nolinks(store->dir, path, O_RDWR | O_NONBLOCK, 0);
	if (*fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EISDIR
			       ? 0
			       : -1;
	return envs_claim(*fd);
}

int envs_retire(
	const struct env_store *store, const char *directory, bool *is_gone, struct error *err)
{
	auto_close int fd = -1;
	*is_gone = false;
	if (claim(store, directory, &fd)) {
		if (errno == EAGAIN || errno == EACCES)
			return 0;
		return fail_errno(err, "lock '%s/envs/%s'", store->home->path, directory);
	}
	fault_point("envs.remove");
	if (path_remove_tree(store->dir, directory, err))
		return error_context(err, "'%s/envs'", store->home->path);
	*is_gone = true;
	return 0;
}

/* The links and logs that bear its name. */
static void forget_name(const struct env_store *store, const char *name, const char *package_id)
{
	char path[ENVS_PATH_MAX], there[ENV_NAME_MAX + 1];
	str_format(path, sizeof path, ENVS_FAILED "/%s.log", name);
	unlinkat(store->dir, path, 0);
	if (!package_id || !env_package_id_is_valid(package_id))
		return;
	str_format(path, sizeof path, ENVS_CURRENT "/%s", package_id);
	ssize_t len = readlinkat(store->dir, path, there, sizeof there);
	if (len >= 0 && (size_t)len == strlen(name) && !memcmp(there, name, (size_t)len))
		unlinkat(store->dir, path, 0);
}

/* Renames it under its exclusive lock, then deletes it; after a crash env_sweep does. */
static int remove_one(const struct env_store *store, const char *name, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	char id[ID_LEN + 1], old[sizeof ENVS_OLD + ID_LEN];
	auto_arena struct arena arena = { 0 };
	auto_close int fd = -1;
	struct env_meta meta = { 0 };
	struct error unimportant;
	bool is_gone;
	if (claim(store, name, &fd)) {
		if (errno == EAGAIN)
			return fail_hint(err, ERR_CONFLICT,
				"end its commands, and remove the workspaces that use it: carrel "
				"ls shows them",
				"environment '%s' is in use", name);
		return fail_errno(err, "lock environment '%s'", name);
	}
	envs_read_meta(store, name, &arena, &meta, &unimportant);
	id_make(id);
	str_format(old, sizeof old, ENVS_OLD "%s", id);
	if (fault_fails("envs.evict") || renameat(store->dir, name, store->dir, old)) {
		if (errno == ENOENT)
			return fail_hint(err, ERR_NOT_FOUND, "carrel env ls lists the environments",
				"there is no environment '%s'", name);
		return fail_errno(err, "remove environment '%s'", name);
	}
	forget_name(store, name, meta.package_id);
	fd_close(&fd);
	return envs_retire(store, old, &is_gone, err);
}

/* ---- unreferenced layers ---- */

static bool is_leftover(const char *name)
{
	return str_starts_with(str_from(name), ENVS_NEW) ||
	       str_starts_with(str_from(name), ENVS_OLD);
}

/* The directory of a maker who died; one that lives has it locked. */
static void sweep_draft(const struct env_store *store, const char *name)
{
	struct error unimportant;
	bool is_gone;
	auto_close int dir = fd_open_directory(store->dir, name);
	if (dir >= 0 && !flock(dir, LOCK_EX | LOCK_NB))
		envs_retire(store, name, &is_gone, &unimportant);
}

void env_sweep(const struct env_store *store)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_arena struct arena arena = { 0 };
	text_list names = { 0 };
	struct error unimportant;
	envs_names_in(store, ".", &arena, &names, &unimportant);
	for (size_t i = 0; i < names.count; i++)
		if (str_starts_with(str_from(names.items[i]), ENVS_NEW))
			sweep_draft(store, names.items[i]);
	layer_stages_sweep(&store->layers, NULL, &unimportant);
}

/* Adds the layers of one directory to those that stay. Builders and removers are kept out by the
 * layers' lock, so a .new- or .old- directory here was left by a crash, or is in use. */
static int keep_layers_of(const struct env_store *store, const char *name, struct arena *arena,
	struct map *live, struct error *err)
{
	struct env_meta meta;
	bool is_gone = false, is_pinned = envs_is_pinned(store, name);
	if (is_leftover(name) && envs_retire(store, name, &is_gone, err))
		return -1;
	if (is_gone)
		return 0;
	if (envs_read_meta(store, name, arena, &meta, err)) {
		if (err->code == ERR_NOT_FOUND)
			return 0;
		if (err->code != ERR_CORRUPT)
			return -1;
		if (is_pinned)
			return fail(err, ERR_CONFLICT,
				"environment '%s' is in use and its meta.json can't be read: no "
				"layer can be removed",
				name);
		return 0;
	}
	for (size_t i = 0; i < meta.layers.count + meta.tools.count; i++) {
		struct str id = str_from(env_meta_layer(&meta, i));
		if (is_pinned || !map_get(live, id))
			map_set(live, id, is_pinned ? LAYER_IN_USE : live);
	}
	return 0;
}

static void sweep_current(const struct env_store *store, const text_list *links)
{
	for (size_t i = 0; i < links->count; i++) {
		char path[ENVS_PATH_MAX], target[ENV_NAME_MAX + 1];
		struct stat st;
		str_format(path, sizeof path, ENVS_CURRENT "/%s", links->items[i]);
		ssize_t len = readlinkat(store->dir, path, target, sizeof target);
		bool is_good = len > 0 && len <= ENV_NAME_MAX && !is_leftover(links->items[i]);
		if (is_good) {
			target[len] = 0;
			is_good = !fstatat(store->dir, target, &st, AT_SYMLINK_NOFOLLOW);
		}
		if (!is_good)
			unlinkat(store->dir, path, 0);
	}
}

/* Texts that no environment has any more. Who links them holds the layers' lock. */
static void sweep_shared(const struct env_store *store, const text_list *texts)
{
	for (size_t i = 0; i < texts->count; i++) {
		char path[ENVS_PATH_MAX];
		struct stat st;
		str_format(path, sizeof path, ENVS_SHARED "/%s", texts->items[i]);
		if (!fstatat(store->dir, path, &st, AT_SYMLINK_NOFOLLOW) && st.st_nlink == 1)
			unlinkat(store->dir, path, 0);
	}
}

static void sweep_logs(const struct env_store *store, const text_list *logs)
{
	int64_t now = clock_now_ms() / 1000;
	for (size_t i = 0; i < logs->count; i++) {
		char path[ENVS_PATH_MAX];
		struct stat st;
		str_format(path, sizeof path, ENVS_FAILED "/%s", logs->items[i]);
		int64_t most = is_leftover(logs->items[i]) ? DRAFT_AGE_MAX_S : FAILED_LOG_MAX_AGE_S;
		if (!fstatat(store->dir, path, &st, AT_SYMLINK_NOFOLLOW) &&
			now - st.st_mtime > most)
			unlinkat(store->dir, path, 0);
	}
}

/* <home>/locks, kept small: <key> is a lock, <key>-<16 digits> the layers it gave. */
struct kept {
	const char *name;
	int64_t time;
	bool is_used; /* an environment has it, too: its lock.txt is the same file */
};
typedef VEC(struct kept) kept_list;

static bool is_list(const char *name)
{
	return strlen(name) > KEY_LEN && name[KEY_LEN] == '-';
}

/* The newest first. */
static int compare_times(const void *a, const void *b)
{
	const struct kept *one = a, *other = b;
	return (one->time < other->time) - (one->time > other->time);
}

static void sweep_locks(int dir, kept_list *locks, int64_t now)
{
	size_t unused = 0;
	vec_sort(locks, compare_times);
	for (size_t i = 0; i < locks->count; i++) {
		const struct kept *lock = &locks->items[i];
		if (!lock->is_used && (now - lock->time > AGE_MAX_S || ++unused > COUNT_MAX))
			unlinkat(dir, lock->name, 0);
	}
}

/* A list goes with its lock. That of an empty environment has none: it is made again in no time. */
static void sweep_lists(int dir, const kept_list *lists, int64_t now)
{
	for (size_t i = 0; i < lists->count; i++) {
		const struct kept *list = &lists->items[i];
		char key[KEY_LEN + 1];
		struct stat st;
		str_copy(key, sizeof key, list->name);
		if (fstatat(dir, key, &st, AT_SYMLINK_NOFOLLOW) &&
			now - list->time > DRAFT_AGE_MAX_S)
			unlinkat(dir, list->name, 0);
	}
}

static void sweep_kept(const struct env_store *store, const text_list *names)
{
	auto_arena struct arena arena = { 0 };
	kept_list locks = { 0 }, lists = { 0 };
	int64_t now = clock_now_ms() / 1000;
	auto_close int dir = fd_open_directory(store->dir, LOCKS);
	for (size_t i = 0; i < names->count; i++) {
		const char *name = names->items[i];
		struct stat st;
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		struct kept kept = { name, st.st_mtime, st.st_nlink > 1 };
		if (name[0] != '.')
			vec_push(&arena, is_list(name) ? &lists : &locks, kept);
		else if (now - kept.time > DRAFT_AGE_MAX_S)
			unlinkat(dir, name, 0);
	}
	sweep_locks(dir, &locks, now);
	sweep_lists(dir, &lists, now);
}

/* <home>/pythons/<name> is a link to the layer of an interpreter. One that was just made is in no
 * environment yet: it stays for the build that made it. A link whose layer is gone goes. */
static int keep_interpreters(
	const struct env_store *store, struct arena *arena, struct map *live, struct error *err)
{
	static const char before[] = "../layers/";
	text_list names = { 0 };
	int64_t now = clock_now_ms() / 1000;
	if (envs_names_in(store, PYTHONS, arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		char path[ENVS_PATH_MAX], target[128] = "";
		struct stat st;
		str_format(path, sizeof path, PYTHONS "/%s", names.items[i]);
		if (readlinkat(store->dir, path, target, sizeof target - 1) < 0 ||
			strncmp(target, before, strlen(before)) != 0)
			continue;
		const char *id = arena_bytes(
			arena, target + strlen(before), strcspn(target + strlen(before), "/"));
		bool is_new = !fstatat(store->dir, path, &st, AT_SYMLINK_NOFOLLOW) &&
			      now - st.st_mtime < DRAFT_AGE_MAX_S;
		if (is_new && !map_get(live, str_from(id)))
			map_set(live, str_from(id), live);
		else if (!is_new && !map_get(live, str_from(id)))
			unlinkat(store->dir, path, 0);
	}
	return 0;
}

static int find_live(
	const struct env_store *store, struct arena *arena, struct map *live, struct error *err)
{
	static const struct {
		const char *path;
		void (*sweep)(const struct env_store *store, const text_list *names);
	} sweeps[] = { { ENVS_CURRENT, sweep_current }, { ENVS_FAILED, sweep_logs },
		{ ENVS_SHARED, sweep_shared }, { LOCKS, sweep_kept } };
	text_list names = { 0 };
	if (envs_names_in(store, ".", arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if ((names.items[i][0] != '.' || is_leftover(names.items[i])) &&
			keep_layers_of(store, names.items[i], arena, live, err))
			return -1;
	if (keep_interpreters(store, arena, live, err))
		return -1;
	/* Used by older versions only. A failure is ignored. */
	path_remove_tree(store->dir, ENVS_LOCKS, err);
	for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++) {
		text_list found = { 0 };
		if (envs_names_in(store, sweeps[i].path, arena, &found, err))
			return -1;
		sweeps[i].sweep(store, &found);
	}
	/* An environment that came back after a crash would miss its layers. */
	if (fsync(store->dir))
		return fail_errno(err, "sync '%s/envs'", store->home->path);
	return 0;
}

/* Under the layers' lock, taken alone. */
static int collect_locked(
	const struct env_store *store, uint64_t *count, uint64_t *bytes, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_arena struct arena arena = { 0 };
	struct map live;
	map_init(&live, &arena);
	if (find_live(store, &arena, &live, err))
		return -1;
	fault_point("envs.collect");
	if (layers_collect(&store->layers, &live, count, bytes, err))
		return -1;
	envs_trim_sizes(store);
	return layer_stages_sweep(&store->layers, NULL, err);
}

int env_collect(const struct env_store *store, uint64_t *count, uint64_t *bytes, struct error *err)
{
	auto_close int lock = -1;
	if (layer_store_lock(&store->layers, true, &lock, err))
		return -1;
	return collect_locked(store, count, bytes, err);
}

/* A build can take minutes: layers then stay for the next collection. */
static int collect_soon(const struct env_store *store, uint64_t patience_ms, uint64_t *count,
	uint64_t *bytes, struct error *err)
{
	auto_close int lock = -1;
	uint64_t deadline = clock_monotonic_ms() + patience_ms;
	*count = *bytes = 0;
	while (layer_store_try_lock(&store->layers, &lock, err)) {
		if (err->code != ERR_CONFLICT)
			return -1;
		if (clock_monotonic_ms() >= deadline)
			return 0;
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
	return collect_locked(store, count, bytes, err);
}

int env_remove(const struct env_store *store, const char *name, bool keep_layers, struct error *err)
{
	uint64_t count, bytes;
	if (envs_check_name(name, err) || remove_one(store, name, err))
		return -1;
	events_status(&store->events, "Removing venv", name);
	return keep_layers ? 0 : collect_soon(store, 0, &count, &bytes, err);
}

/* ---- those over the limits ---- */

static int64_t time_of(const char *text)
{
	int64_t ms;
	return text && env_time_parse(text, &ms) ? ms : 0;
}

static struct eviction_candidate candidate_of(
	const struct env_row *row, const char *keep, const struct map *sizes, struct arena *arena)
{
	const struct env_meta *meta = &row->meta;
	size_t count = meta->layers.count + meta->tools.count;
	const char **layers = arena_array(arena, count + 1, sizeof *layers);
	uint64_t *bytes = arena_array(arena, count + 1, sizeof *bytes);
	for (size_t i = 0; i < count; i++) {
		layers[i] = env_meta_layer(meta, i);
		const uint64_t *size = map_get(sizes, str_from(layers[i]));
		bytes[i] = size ? *size : 0;
	}
	return (struct eviction_candidate){
		.name = meta->name,
		.created_ms = time_of(meta->created_at),
		.last_used_ms = time_of(meta->last_used_at ? meta->last_used_at : meta->created_at),
		.use_count = meta->use_count,
		.size_bytes = meta->size_bytes,
		.layers = layers,
		.layer_bytes = bytes,
		.is_in_use = row->is_in_use || (keep && !strcmp(keep, meta->name)),
	};
}

/* An eviction in progress, or a dry run. */
struct evicting {
	const struct env_store *store;
	struct arena *arena;
	struct env_pruned *pruned;
	bool is_dry;
	void (*tell)(const char *name, const char *limit);
};

/* Removes one environment. It isn't a failure if it is in use or already removed by now. */
static int evict_one(struct evicting *evicting, const struct env_meta *meta, const char *reason,
	const char *limit, struct error *err)
{
	const struct env_store *store = evicting->store;
	struct arena *arena = evicting->arena;
	if (!evicting->is_dry) {
		if (remove_one(store, meta->name, err))
			return err->code == ERR_CONFLICT || err->code == ERR_NOT_FOUND ? 0 : -1;
		events_evicted(&store->events, meta, reason);
	}
	if (evicting->tell)
		evicting->tell(meta->name, limit);
	vec_push(arena, &evicting->pruned->removed,
		(struct env_gone){ arena_text(arena, meta->name), reason });
	return 0;
}

static int evict(struct evicting *evicting, const char *keep, uint64_t free_bytes,
	const struct map *sizes, struct error *err)
{
	const struct env_store *store = evicting->store;
	const struct config *config = &store->config;
	struct arena *arena = evicting->arena;
	struct eviction_limits limits = { config->eviction, config->max_envs, config->max_bytes,
		config->ttl_ms, free_bytes };
	eviction_choices choices = { 0 };
	env_rows rows = { 0 };
	if (envs_rows(store, arena, false, &rows, err))
		return -1;
	struct eviction_candidate *candidates =
		arena_array(arena, rows.count + 1, sizeof *candidates);
	for (size_t i = 0; i < rows.count; i++)
		candidates[i] = candidate_of(&rows.items[i], keep, sizes, arena);
	eviction_choose(candidates, rows.count, &limits, clock_now_ms(), arena, &choices);
	for (size_t i = 0; i < choices.count; i++)
		if (evict_one(evicting, &rows.items[choices.items[i].index].meta,
			    choices.items[i].reason, choices.items[i].limit, err))
			return -1;
	return 0;
}

int env_evict(const struct env_store *store, const char *keep, uint64_t free_bytes, uint64_t *count,
	struct error *err)
{
	auto_arena struct arena arena;
	struct map sizes;
	struct env_pruned pruned = { 0 };
	struct evicting evicting = { store, &arena, &pruned, false, store->evicted };
	uint64_t bytes, started_ms = clock_monotonic_ms();
	arena_init(&arena);
	map_init(&sizes, &arena);
	/* Collect unreferenced layers first: that may be enough. */
	if (free_bytes && collect_soon(store, FREE_PATIENCE_MS, &pruned.layers, &pruned.bytes, err))
		return -1;
	if (free_bytes != EVICTION_ALL)
		free_bytes -= pruned.bytes < free_bytes ? pruned.bytes : free_bytes;
	if (envs_measure_layers(store, &arena, &sizes, &bytes, err) ||
		evict(&evicting, keep, free_bytes, &sizes, err))
		return -1;
	if ((pruned.removed.count || bytes > store->config.max_bytes || free_bytes) &&
		collect_soon(store, free_bytes ? FREE_PATIENCE_MS : 0, &pruned.layers,
			&pruned.bytes, err))
		return -1;
	*count = pruned.removed.count;
	if (*count && store->freed)
		store->freed(
			*count, pruned.bytes, (double)(clock_monotonic_ms() - started_ms) / 1000);
	return 0;
}

static int remove_all(struct evicting *evicting, struct error *err)
{
	env_rows rows = { 0 };
	if (envs_rows(evicting->store, evicting->arena, false, &rows, err))
		return -1;
	for (size_t i = 0; i < rows.count; i++)
		if (!rows.items[i].is_in_use &&
			evict_one(evicting, &rows.items[i].meta, "pruned", NULL, err))
			return -1;
	return 0;
}

static bool is_removed(const struct env_pruned *pruned, const char *name)
{
	for (size_t i = 0; i < pruned->removed.count; i++)
		if (!strcmp(pruned->removed.items[i].name, name))
			return true;
	return false;
}

/* The layers that env_collect would remove after the removal: those that no remaining environment
 * lists. */
static int foresee_layers(const struct env_store *store, const struct map *sizes,
	struct arena *arena, struct env_pruned *pruned, struct error *err)
{
	text_list names = { 0 };
	struct map live;
	map_init(&live, arena);
	if (envs_names_in(store, ".", arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		struct env_meta meta;
		struct error unimportant;
		if (is_removed(pruned, name) ||
			(is_leftover(name) ? !envs_is_pinned(store, name) : name[0] == '.') ||
			envs_read_meta(store, name, arena, &meta, &unimportant))
			continue;
		for (size_t k = 0; k < meta.layers.count + meta.tools.count; k++)
			map_set(&live, str_from(env_meta_layer(&meta, k)), &live);
	}
	for (size_t i = 0; i < sizes->count; i++) {
		const uint64_t *bytes = sizes->entries[i].value;
		if (!bytes || map_get(&live, sizes->entries[i].key))
			continue;
		pruned->layers++;
		pruned->bytes += *bytes;
	}
	return 0;
}

int env_prune(const struct env_store *store, bool all, bool is_dry, struct arena *arena,
	struct env_pruned *pruned, struct error *err)
{
	struct map sizes;
	struct env_pruned done = { 0 };
	struct evicting evicting = { store, arena, &done, is_dry, NULL };
	uint64_t bytes;
	map_init(&sizes, arena);
	if (((is_dry || !all) && envs_measure_layers(store, arena, &sizes, &bytes, err)) ||
		(all ? remove_all(&evicting, err) : evict(&evicting, NULL, 0, &sizes, err)))
		return -1;
	if (is_dry ? foresee_layers(store, &sizes, arena, &done, err)
		   : env_collect(store, &done.layers, &done.bytes, err))
		return -1;
	*pruned = done;
	return 0;
}
