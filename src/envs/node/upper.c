/* upper.c -- what lies on top of node_modules, by packages and commands (units.h). */
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "envs/node/units.h"
#include "envs/upper.h"
#include "format/packages/node_package.h"

struct settling {
	int upper;
	const struct upper_change *change;
	struct arena *arena;
	struct map before, after, forced;
};

/* The directory in the upper that has, or would have, the entry `path`; -1: there is none. */
static int open_parent(const struct settling *s, const char *path)
{
	return upper_open(s->upper, path_parent(path));
}

static int take_out(const struct settling *s, const char *path, struct error *err)
{
	auto_close int dir = open_parent(s, path);
	const char *name = path_basename(path);
	struct stat st;
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (S_ISDIR(st.st_mode))
		return path_remove_tree(dir, name, err);
	if (unlinkat(dir, name, 0) && errno != ENOENT)
		return fail_errno(err, "remove '%s' from the changes of an environment", path);
	return 0;
}

/* Whether the upper has all files of the unit, unchanged. */
static bool is_copied(const struct settling *s, const struct node_unit *unit)
{
	size_t files = 0;
	for (size_t i = 0; i < unit->entries.count; i++) {
		const struct manifest_entry *entry = unit->entries.items[i];
		struct stat st;
		if (entry->kind == MANIFEST_DIRECTORY)
			continue;
		auto_close int dir = open_parent(s, entry->path);
		const char *name = path_basename(entry->path);
		if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
			!upper_is_same(dir, name, &st, entry))
			return false;
		files++;
	}
	return files > 0;
}

/* A directory made in an overlay is opaque: "@scope" or ".bin" would hide those of the layers. */
static void show_parent(const struct settling *s, const char *path)
{
	auto_close int dir = strchr(path, '/') ? open_parent(s, path) : -1;
	if (dir >= 0)
		fremovexattr(dir, UPPER_OPAQUE);
}

static int show(const struct settling *s, const struct node_unit *unit, struct error *err)
{
	const char *package = node_unit_package(unit, s->arena);
	show_parent(s, unit->path);
	bool is_new = !node_units_equal(unit, map_get(&s->before, str_from(unit->path)));
	if (!map_get(&s->forced, str_from(package)) && (!is_new || !is_copied(s, unit)))
		return 0;
	return take_out(s, unit->path, err);
}

/* A package that is gone: the marks of its deleted files, and files that commands added to it, are
 * of no use without it. One that a command installed whole in its place stays. */
static int drop(const struct settling *s, const struct node_unit *unit, struct error *err)
{
	struct stat st;
	if (map_get(&s->after, str_from(unit->path)) ||
		(s->change->is_frozen && s->change->is_frozen(s->change->ctx, unit->path)))
		return 0;
	auto_close int own = upper_open(s->upper, str_from(unit->path));
	bool is_whole = own >= 0 && !fstatat(own, "package.json", &st, AT_SYMLINK_NOFOLLOW) &&
			S_ISREG(st.st_mode);
	auto_close int dir = own < 0 ? open_parent(s, unit->path) : -1;
	if (is_whole || (own < 0 && (dir < 0 ||
					    fstatat(dir, path_basename(unit->path), &st,
						    AT_SYMLINK_NOFOLLOW) ||
					    !upper_is_whiteout(&st))))
		return 0;
	return take_out(s, unit->path, err);
}

static int read_units(struct settling *s, const struct layer_store *layers, const text_list *ids,
	struct map *units, bool is_needed, struct error *err)
{
	map_init(units, s->arena);
	for (size_t i = 0; i < ids->count; i++) {
		struct error why;
		if (!node_units_read(layers, ids->items[i], s->arena, units, &why))
			continue;
		/* One that was collected meanwhile has left nothing worth an error. */
		if (is_needed || why.code != ERR_NOT_FOUND) {
			*err = why;
			return -1;
		}
	}
	return 0;
}

int node_upper_settle(const struct layer_store *layers, int upper,
	const struct upper_change *change, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct settling s = { .upper = upper, .change = change, .arena = &arena };
	const struct node_unit *unit;
	map_init(&s.forced, &arena);
	for (size_t i = 0; i < change->forced.count; i++)
		map_set(&s.forced, str_from(change->forced.items[i]), &s);
	if (read_units(&s, layers, &change->before, &s.before, false, err) ||
		read_units(&s, layers, &change->after, &s.after, true, err))
		return -1;
	for (size_t i = 0; i < change->forced.count; i++)
		if (node_name_is_valid(change->forced.items[i]) &&
			take_out(&s, change->forced.items[i], err))
			return -1;
	for (size_t at = 0; (unit = map_next(&s.after, &at));)
		if (show(&s, unit, err))
			return -1;
	for (size_t at = 0; (unit = map_next(&s.before, &at));)
		if (drop(&s, unit, err))
			return -1;
	return 0;
}

/* A layer holds whole packages, each in a directory of its name. */
int node_upper_restore(
	int upper, const struct manifest *manifest, const char *package, struct error *err)
{
	for (size_t i = 0; i < manifest->entries.count; i++)
		if (!strcmp(manifest->entries.items[i].path, package))
			return upper_remove(upper, package, err) ? -1 : 1;
	return 0;
}
