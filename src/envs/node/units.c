#include "envs/node/units.h"

#include "base/str.h"

#define COMMANDS ".bin"

/* How much of the path names its unit: one component, or two where the first is a directory of
 * units. 0: it is such a directory. */
static size_t unit_len(const char *path)
{
	size_t first = strcspn(path, "/");
	bool is_shared =
		path[0] == '@' || (first == strlen(COMMANDS) && !strncmp(path, COMMANDS, first));
	if (!is_shared)
		return first;
	return path[first] ? first + 1 + strcspn(path + first + 1, "/") : 0;
}

struct str node_unit_of(const char *path)
{
	return (struct str){ path, unit_len(path) };
}

int node_units_read(const struct layer_store *layers, const char *id, struct arena *arena,
	struct map *units, struct error *err)
{
	struct manifest manifest = { 0 };
	if (layer_read(layers, id, arena, &manifest, err))
		return -1;
	for (size_t i = 0; i < manifest.entries.count; i++) {
		const struct manifest_entry *entry = &manifest.entries.items[i];
		struct str path = node_unit_of(entry->path);
		struct node_unit *unit = path.len ? map_get(units, path) : NULL;
		if (!path.len)
			continue;
		if (!unit) {
			unit = arena_alloc(arena, sizeof *unit);
			*unit = (struct node_unit){ .path = arena_bytes(
							    arena, path.data, path.len) };
			map_set(units, str_from(unit->path), unit);
		}
		vec_push(arena, &unit->entries, entry);
	}
	return 0;
}

const char *node_unit_package(const struct node_unit *unit, struct arena *arena)
{
	static const char up[] = "../";
	if (strncmp(unit->path, COMMANDS "/", strlen(COMMANDS) + 1))
		return unit->path;
	const struct manifest_entry *link = unit->entries.count ? unit->entries.items[0] : NULL;
	if (!link || link->kind != MANIFEST_LINK || strncmp(link->target, up, strlen(up)))
		return "";
	const char *target = link->target + strlen(up);
	return arena_bytes(arena, target, unit_len(target));
}

static bool is_equal(const struct manifest_entry *a, const struct manifest_entry *b)
{
	return a->kind == b->kind && a->mode == b->mode && a->size == b->size &&
	       !strcmp(a->path, b->path) &&
	       (a->kind != MANIFEST_FILE || !memcmp(a->sha256, b->sha256, sizeof a->sha256)) &&
	       (a->kind != MANIFEST_LINK || !strcmp(a->target, b->target));
}

bool node_units_equal(const struct node_unit *a, const struct node_unit *b)
{
	if (!a || !b || a->entries.count != b->entries.count)
		return !a && !b;
	for (size_t i = 0; i < a->entries.count; i++)
		if (!is_equal(a->entries.items[i], b->entries.items[i]))
			return false;
	return true;
}
