/* packages_live.c -- packages of Python in a sandbox that runs: those that are visible there, and
 * new ones copied in, all by a file server inside. */
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "core/packages/packages_internal.h"
#include "format/packages/requirements.h"
#include "format/packages/wheel_record.h"

#define SUFFIX ".dist-info"
/* What lies in a sandbox may be forged. Whatever is beyond these stays until the next start. */
#define DISTS_MAX 20000		       /* that are listed */
#define RECORD_MAX ((size_t)4 << 20)   /* bytes of a RECORD */
#define RECORDS_MAX ((size_t)16 << 20) /* and of all that are read */
#define RUBBISH_MAX 50000	       /* paths that are removed */

/* ---- what is visible ---- */

struct listing {
	struct arena *arena;
	dist_list *dists;
};

const char *dists_directory(const struct env_meta *meta, struct arena *arena)
{
	unsigned major = 0, minor = 0;
	struct str text = str_from(meta->python_version), piece;
	uint64_t number;
	if (str_next(&text, '.', &piece) && str_to_u64(piece, &number))
		major = (unsigned)number;
	if (str_next(&text, '.', &piece) && str_to_u64(piece, &number))
		minor = (unsigned)number;
	return arena_printf(arena, "/env/lib/python%u.%u/site-packages", major, minor);
}

static bool add_dist(void *ctx, const char *directory)
{
	struct listing *listing = ctx;
	struct str text = str_from(directory), name, version;
	size_t suffix = sizeof SUFFIX - 1;
	bool is_dist = text.len > suffix && !strcmp(directory + text.len - suffix, SUFFIX);
	text.len -= is_dist ? suffix : 0;
	if (is_dist && str_cut(text, '-', &name, &version) && requirement_name_is_valid(name))
		vec_push(listing->arena, listing->dists,
			(struct dist){ arena_text(listing->arena, directory),
				requirement_normalize_name(listing->arena, name),
				arena_bytes(listing->arena, version.data, version.len) });
	return listing->dists->count < DISTS_MAX;
}

int dists_list(struct fiber *fiber, struct core_workspace *w, const struct env_meta *meta,
	struct arena *arena, dist_list *dists, struct error *err)
{
	struct listing listing = { arena, dists };
	return files_list_directories(
		fiber, w, dists_directory(meta, arena), add_dist, &listing, err);
}

/* ---- copied in ---- */

struct live {
	struct live_change change;
	const char *site;
	text_list layers;    /* that are copied */
	struct map wanted;   /* paths of what they hold, below /env */
	size_t record_bytes; /* that were read */
	text_list rubbish;   /* paths, in the order of their removal */
	struct map directories;
};

static int compare_reversed(const void *a, const void *b)
{
	return strcmp(*(const char *const *)b, *(const char *const *)a);
}

/* Files first, then the directories they were in, the deepest first. A trailing slash marks what
 * goes with all that is in it: bytecode. */
static void add_directories(struct live *live)
{
	struct arena *arena = live->change.arena;
	text_list directories = { 0 };
	for (size_t i = 0; i < live->directories.count; i++)
		vec_push(arena, &directories,
			(const char *)arena_bytes(arena, live->directories.entries[i].key.data,
				live->directories.entries[i].key.len));
	if (directories.count)
		qsort(directories.items, directories.count, sizeof *directories.items,
			compare_reversed);
	for (size_t i = 0; i < directories.count; i++) {
		const char *cache = arena_printf(arena, "%s/__pycache__", directories.items[i]);
		if (!map_get(&live->wanted, str_from(cache))) /* else it has the new bytecode */
			vec_push(arena, &live->rubbish,
				(const char *)arena_printf(arena, "%s/", cache));
		vec_push(arena, &live->rubbish, directories.items[i]);
	}
}

/* ---- what it had before ---- */

static void note_rubbish(struct live *live, const char *recorded)
{
	struct arena *arena = live->change.arena;
	const char *path = path_normalize(arena, live->site, recorded);
	if (live->rubbish.count >= RUBBISH_MAX || !path_is_beneath(path, "/env") ||
		strlen(path) >= FILE_PATH_MAX - 16 || map_get(&live->wanted, str_from(path)))
		return;
	vec_push(arena, &live->rubbish, path);
	size_t len = (size_t)(path_basename(path) - path) - 1;
	struct str directory = { path, len };
	if (path_is_beneath(path, live->site) && !str_is(directory, live->site))
		map_set(&live->directories, directory, live);
}

static void note_files(struct live *live, int record)
{
	auto_arena struct arena own = { 0 };
	wheel_record_list records = { 0 };
	struct str text = { 0 };
	struct error ignored;
	if (live->record_bytes >= RECORDS_MAX || file_read(record, RECORD_MAX, &own, &text))
		return;
	live->record_bytes += text.len;
	if (wheel_record_parse(text, &own, &records, &ignored))
		return;
	for (size_t i = 0; i < records.count && live->rubbish.count < RUBBISH_MAX; i++)
		note_rubbish(live, records.items[i].path);
}

static void note_outdated(struct fiber *fiber, struct live *live, const struct dist *dist)
{
	struct arena *arena = live->change.arena;
	const char *path = arena_printf(arena, "%s/%s/", live->site, dist->directory);
	struct error ignored;
	auto_close int fd = -1;
	if (!files_open(
		    fiber, live->change.w, arena_printf(arena, "%sRECORD", path), &fd, &ignored))
		note_files(live, fd);
	vec_push(arena, &live->rubbish, path);
}

static bool is_among(const text_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i], text))
			return true;
	return false;
}

static bool is_outdated(const struct live *live, const struct dist *dist)
{
	const char *path = arena_printf(live->change.arena, "%s/%s", live->site, dist->directory);
	return is_among(&live->change.names, dist->name) && !map_get(&live->wanted, str_from(path));
}

/* The layers that are new, and those of packages that are named. */
static int choose_layers(struct live *live, struct error *err)
{
	const struct live_change *change = &live->change;
	const text_list *ids = &change->after->layers;
	for (size_t i = 0; i < ids->count; i++) {
		struct manifest manifest = { 0 };
		if (layer_read(&change->w->core->envs.layers, ids->items[i], change->arena,
			    &manifest, err))
			return -1;
		bool is_new = !change->before || !is_among(&change->before->layers, ids->items[i]);
		const char *name =
			requirement_normalize_name(change->arena, str_from(manifest.name));
		if (!is_new && !is_among(&change->names, name))
			continue;
		vec_push(change->arena, &live->layers,
			(const char *)arena_text(change->arena, ids->items[i]));
		for (size_t k = 0; k < manifest.entries.count; k++)
			map_set(&live->wanted,
				str_from(arena_printf(
					change->arena, "/env/%s", manifest.entries.items[k].path)),
				live);
	}
	return 0;
}

/* Packages that are in the one before, and not in the one after. */
static void name_removed(struct live *live)
{
	const struct live_change *change = &live->change;
	for (size_t i = 0; change->before && i < change->before->packages.count; i++) {
		const struct text_pair *had = &change->before->packages.items[i];
		bool is_kept = false;
		for (size_t k = 0; k < change->after->packages.count; k++)
			is_kept |= !strcmp(change->after->packages.items[k].key, had->key);
		if (!is_kept && !is_among(&change->names, had->key))
			vec_push(change->arena, &live->change.names,
				(const char *)arena_text(change->arena, had->key));
	}
}

int live_apply(struct fiber *fiber, const struct live_change *change, struct error *err)
{
	struct arena *arena = change->arena;
	struct live live = { .change = *change, .site = dists_directory(change->after, arena) };
	dist_list dists = { 0 };
	live.change.names = text_list_copy(arena, &change->names);
	map_init(&live.wanted, arena);
	map_init(&live.directories, arena);
	name_removed(&live);
	if (choose_layers(&live, err) ||
		dists_list(fiber, change->w, change->after, arena, &dists, err))
		return -1;
	for (size_t i = 0; i < dists.count; i++)
		if (is_outdated(&live, &dists.items[i]))
			note_outdated(fiber, &live, &dists.items[i]);
	add_directories(&live);
	const struct live_files files = { .w = change->w,
		.target = env_python.target,
		.layers = live.layers,
		.last = live.rubbish };
	return live_copy(fiber, &files, err);
}
