/* packages_live_node.c -- packages of Node in a sandbox that runs: those that are visible there,
 * and new ones copied in. */
#include "base/fd.h"
#include "base/file.h"
#include "core/packages/packages_internal.h"
#include "envs/node/units.h"
#include "format/text/json_read.h"

/* What lies in a sandbox may be forged. */
#define MODULES_MAX 5000		      /* that are listed */
#define MANIFEST_JSON_MAX ((size_t)256 << 10) /* bytes of a package.json that are read */
#define MANIFESTS_MAX ((size_t)16 << 20)      /* and of all of them */

/* ---- copied in ---- */

struct live_node {
	struct live_files files;
	struct map before, after, changed; /* units by path */
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

int live_apply_node(struct fiber *fiber, const struct live_change *change, struct error *err)
{
	struct live_node live = { .files = { .w = change->w,
					  .target = env_node.target,
					  .is_kept = is_changed,
					  .keep_ctx = &live } };
	map_init(&live.changed, change->arena);
	if (read_units(change, change->before, &live.before, err) ||
		read_units(change, change->after, &live.after, err))
		return -1;
	choose(&live, change);
	if (live.changed.count)
		live.files.layers = text_list_copy(change->arena, &change->after->layers);
	return live_copy(fiber, &live.files, err);
}

/* ---- what is visible ---- */

struct listing {
	struct arena *arena;
	text_list directories; /* below node_modules: "", then "@scope" of each */
	const char *directory; /* that is listed */
	dist_list modules;
	size_t bytes; /* that were read */
};

static bool add(void *ctx, const char *name)
{
	struct listing *listing = ctx;
	const char *directory = listing->directory;
	const char *path = directory[0] ? arena_printf(listing->arena, "%s/%s", directory, name)
					: arena_text(listing->arena, name);
	if (!directory[0] && name[0] == '@')
		vec_push(listing->arena, &listing->directories, path);
	else if (node_name_is_valid(path) && listing->modules.count < MODULES_MAX)
		vec_push(listing->arena, &listing->modules, (struct dist){ path, path, NULL });
	return listing->modules.count < MODULES_MAX;
}

static int list_directory(
	struct fiber *fiber, struct core_workspace *w, struct listing *listing, struct error *err)
{
	const char *path = listing->directory[0] ? arena_printf(listing->arena, "%s/%s",
							   env_node.target, listing->directory)
						 : env_node.target;
	return files_list_directories(fiber, w, path, add, listing, err);
}

/* The version in a package.json; NULL: none is known. */
static const char *read_version(struct listing *listing, int manifest)
{
	auto_arena struct arena own = { 0 };
	struct json_value *root;
	struct str text = { 0 };
	struct error ignored;
	if (listing->bytes >= MANIFESTS_MAX || file_read(manifest, MANIFEST_JSON_MAX, &own, &text))
		return NULL;
	listing->bytes += text.len;
	const char *version =
		!json_read(text, &own, &root, &ignored) ? json_member_text(root, "version") : NULL;
	return version && strlen(version) <= 256 ? arena_text(listing->arena, version) : NULL;
}

int modules_list(struct fiber *fiber, struct core_workspace *w, struct arena *arena,
	dist_list *modules, struct error *err)
{
	struct listing listing = { .arena = arena };
	vec_push(arena, &listing.directories, "");
	for (size_t i = 0; i < listing.directories.count; i++) {
		listing.directory = listing.directories.items[i];
		if (list_directory(fiber, w, &listing, err))
			return -1;
	}
	for (size_t i = 0; i < listing.modules.count; i++) {
		struct dist *module = &listing.modules.items[i];
		const char *path = arena_printf(
			arena, "%s/%s/package.json", env_node.target, module->directory);
		struct error ignored;
		auto_close int fd = -1;
		if (!files_open(fiber, w, path, &fd, &ignored))
			module->version = read_version(&listing, fd);
		if (module->version)
			vec_push(arena, modules, *module);
	}
	return 0;
}
