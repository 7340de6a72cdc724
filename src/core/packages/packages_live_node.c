/* packages_live_node.c -- packages of Node in a sandbox that runs: those that are visible there,
 * and new ones copied in. */
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "base/file.h"
#include "core/packages/packages_internal.h"
#include "envs/node/units.h"
#include "format/text/json_read.h"

#define LIST_STEP 1000
/* What lies in a sandbox may be forged. */
#define MODULES_MAX 5000		      /* that are listed */
#define MANIFEST_JSON_MAX ((size_t)256 << 10) /* bytes of a package.json that are read */
#define MANIFESTS_MAX ((size_t)16 << 20)      /* and of all of them */

/* ---- copied in ---- */

struct live_node {
	struct live_files files;
	struct map before, after, changed; /* units by path */
	environment_fn *done;
	void *ctx;
};

static int read_units(const struct live_change *change, const struct env_meta *meta,
	struct map *units, struct error *err)
{
	map_init(units, change->arena);
	for (size_t i = 0; meta && i < meta->layers.count; i++)
		if (node_units_read(&change->w->core->envs.layers, meta->layers.items[i],
			    change->arena, units, err))
			return -1;
	return 0;
}

/* In the process that packs. */
static bool is_changed(void *ctx, const char *path)
{
	const struct live_node *live = ctx;
	struct str unit = node_unit_of(path);
	return unit.len && map_get(&live->changed, unit);
}

static bool has_entry(const struct node_unit *unit, const char *path)
{
	for (size_t i = 0; i < unit->entries.count; i++)
		if (!strcmp(unit->entries.items[i]->path, path))
			return true;
	return false;
}

/* Files of the old version that the new one hasn't: deeper ones first. */
static void list_outdated(struct live_node *live, struct arena *arena, const struct node_unit *old,
	const struct node_unit *new)
{
	for (size_t i = old->entries.count; i-- > 0;) {
		const char *path = old->entries.items[i]->path;
		if (!has_entry(new, path))
			vec_push(arena, &live->files.last,
				(const char *)arena_printf(
					arena, "%s/%s", live->files.target, path));
	}
}

static void choose(struct live_node *live, const struct live_change *change)
{
	struct arena *arena = change->arena;
	const char *target = live->files.target;
	const struct node_unit *unit;
	for (size_t at = 0; (unit = map_next(&live->after, &at));) {
		const struct node_unit *old = map_get(&live->before, str_from(unit->path));
		bool is_named = packages_is_named(&change->names, node_unit_package(unit, arena));
		if (node_units_equal(unit, old) && !is_named)
			continue;
		map_set(&live->changed, str_from(unit->path), live);
		if (old && !node_units_equal(unit, old))
			list_outdated(live, arena, old, unit);
		else if (!old && is_named) /* a command may have installed it */
			vec_push(arena, &live->files.first,
				(const char *)arena_printf(arena, "%s/%s/", target, unit->path));
	}
	for (size_t at = 0; (unit = map_next(&live->before, &at));)
		if (!map_get(&live->after, str_from(unit->path)))
			vec_push(arena, &live->files.last,
				(const char *)arena_printf(arena, "%s/%s/", target, unit->path));
}

static void on_copied(void *ctx, const struct error *err)
{
	struct live_node *live = ctx;
	live->done(live->ctx, err);
	free(live);
}

void live_apply_node(const struct live_change *change, environment_fn *done, void *ctx)
{
	struct live_node *live = xzalloc(sizeof *live);
	struct error err;
	*live = (struct live_node){
		.files = { .w = change->w, .target = env_node.target }, .done = done, .ctx = ctx
	};
	live->files.is_kept = is_changed;
	live->files.keep_ctx = live;
	map_init(&live->changed, change->arena);
	if (read_units(change, change->before, &live->before, &err) ||
		read_units(change, change->after, &live->after, &err)) {
		on_copied(live, &err);
		return;
	}
	choose(live, change);
	if (live->changed.count)
		live->files.layers = change->after->layers;
	live_copy(&live->files, on_copied, live);
}

/* ---- what is visible ---- */

struct listing {
	struct core_workspace *w;
	struct arena *arena;
	text_list directories; /* below node_modules: "", then "@scope" of each */
	size_t directory;
	const char *cursor;
	dist_list modules;
	size_t module, bytes; /* that were read */
	dists_fn *done;
	void *ctx;
};

static void finish(struct listing *listing, const struct error *err)
{
	dist_list known = { 0 };
	for (size_t i = 0; i < listing->modules.count; i++)
		if (listing->modules.items[i].version)
			vec_push(listing->arena, &known, listing->modules.items[i]);
	listing->done(listing->ctx, &known, err);
	free(listing);
}

static void read_next(struct listing *listing);

static void on_manifest(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct listing *listing = ctx;
	struct dist *module = &listing->modules.items[listing->module++];
	auto_close int fd = answer ? answer->fd : -1;
	auto_arena struct arena own = { 0 };
	struct json_value *root;
	struct str text = { 0 };
	struct error ignored;
	if (fd >= 0 && listing->bytes < MANIFESTS_MAX &&
		!file_read(fd, MANIFEST_JSON_MAX, &own, &text)) {
		listing->bytes += text.len;
		const char *version = !json_read(text, &own, &root, &ignored)
					      ? json_member_text(root, "version")
					      : NULL;
		if (version && strlen(version) <= 256)
			module->version = arena_text(listing->arena, version);
	}
	read_next(listing);
}

static void read_next(struct listing *listing)
{
	if (listing->module == listing->modules.count) {
		finish(listing, NULL);
		return;
	}
	struct files_request what = { .verb = FILES_OPEN,
		.path = arena_printf(listing->arena, "%s/%s/package.json", env_node.target,
			listing->modules.items[listing->module].directory) };
	files_do(&request_system, listing->w, &what, on_manifest, listing);
}

static void list_next(struct listing *listing);

static void add(struct listing *listing, const char *directory, const char *name)
{
	const char *path = directory[0] ? arena_printf(listing->arena, "%s/%s", directory, name)
					: arena_text(listing->arena, name);
	if (!directory[0] && name[0] == '@')
		vec_push(listing->arena, &listing->directories, path);
	else if (node_name_is_valid(path) && listing->modules.count < MODULES_MAX)
		vec_push(listing->arena, &listing->modules, (struct dist){ path, path, NULL });
}

static void on_listed(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct listing *listing = ctx;
	const char *directory = listing->directories.items[listing->directory];
	if (err && err->code != ERR_NOT_FOUND) {
		finish(listing, err);
		return;
	}
	for (size_t i = 0; answer && i < answer->infos.count; i++)
		if (!strcmp(answer->infos.items[i].type, "directory"))
			add(listing, directory, answer->infos.items[i].name);
	bool is_more = answer && answer->next && listing->modules.count < MODULES_MAX;
	listing->cursor = is_more ? arena_text(listing->arena, answer->next) : NULL;
	if (!is_more)
		listing->directory++;
	list_next(listing);
}

static void list_next(struct listing *listing)
{
	if (listing->directory == listing->directories.count) {
		read_next(listing);
		return;
	}
	const char *directory = listing->directories.items[listing->directory];
	struct files_request what = { .verb = FILES_LIST,
		.path = arena_printf(listing->arena, "%s%s%s", env_node.target,
			directory[0] ? "/" : "", directory),
		.cursor = listing->cursor,
		.limit = LIST_STEP };
	files_do(&request_system, listing->w, &what, on_listed, listing);
}

void modules_list(struct core_workspace *w, struct arena *arena, dists_fn *done, void *ctx)
{
	struct listing *listing = xzalloc(sizeof *listing);
	*listing = (struct listing){ .w = w, .arena = arena, .done = done, .ctx = ctx };
	vec_push(arena, &listing->directories, "");
	list_next(listing);
}
