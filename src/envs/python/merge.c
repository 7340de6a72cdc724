/* More layers than can be mounted: the smallest become one. Layers that have no file in common with
 * another one may lie in any order, so they are merged first; of the others only the lowest. */

#include "base/fd.h"
#include "base/hash.h"
#include "envs/python/internal.h"
#include "envs/python/progress.h"

#define MERGED "merged" /* the draft, and the layer's name */

struct candidate {
	const char *id;
	uint64_t bytes;
	size_t place;	   /* in the list, topmost first */
	bool has_overlaps; /* with a layer that isn't the same */
	bool is_chosen;
};
struct choosing {
	struct arena *arena;
	struct candidate *all;
	size_t count;
	struct map owners; /* path of a file or link -> the first candidate that has it */
};

/* A directory overlaps with what isn't one, and with no other directory: so they come after all
 * files and links have their owners. */
static void find_overlaps(struct choosing *c, const struct manifest *manifests, bool directories)
{
	for (size_t i = 0; i < c->count; i++) {
		for (size_t k = 0; k < manifests[i].entries.count; k++) {
			const struct manifest_entry *entry = &manifests[i].entries.items[k];
			struct str path = str_from(entry->path);
			struct candidate *owner;
			if ((entry->kind == MANIFEST_DIRECTORY) != directories)
				continue;
			c->all[i].bytes += entry->size;
			owner = map_get(&c->owners, path);
			if (owner)
				owner->has_overlaps = c->all[i].has_overlaps = true;
			else if (!directories)
				map_set(&c->owners, path, &c->all[i]);
		}
	}
}

static int read_candidates(struct choosing *c, const struct env_store *store,
	const text_list *layers, struct error *err)
{
	struct manifest *manifests = arena_array(c->arena, c->count, sizeof *manifests);
	map_init(&c->owners, c->arena);
	c->all = arena_array(c->arena, c->count, sizeof *c->all);
	for (size_t i = 0; i < c->count; i++) {
		c->all[i] = (struct candidate){ .id = layers->items[i], .place = i };
		if (layer_read(&store->layers, layers->items[i], c->arena, &manifests[i], err) < 0)
			return -1;
	}
	find_overlaps(c, manifests, false);
	find_overlaps(c, manifests, true);
	return 0;
}

/* Those without overlaps first, the smallest first; then the others, the lowest first. */
static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *one = *(struct candidate *const *)a;
	const struct candidate *other = *(struct candidate *const *)b;
	if (one->has_overlaps != other->has_overlaps)
		return one->has_overlaps ? 1 : -1;
	if (!one->has_overlaps && one->bytes != other->bytes)
		return one->bytes < other->bytes ? -1 : 1;
	return (one->place < other->place) - (one->place > other->place);
}

/* The last one is the base, which stays. */
static void choose(struct choosing *c)
{
	size_t to_merge = c->count - ENV_LAYERS_MERGED + 1;
	struct candidate **sorted = arena_array(c->arena, c->count, sizeof *sorted);
	for (size_t i = 0; i < c->count; i++)
		sorted[i] = &c->all[i];
	qsort(sorted, c->count - 1, sizeof *sorted, compare_candidates);
	for (size_t i = 0; i < to_merge; i++)
		sorted[i]->is_chosen = true;
}

static const char *merged_key(const text_list *parts, struct arena *arena)
{
	struct sha256 hash;
	sha256_init(&hash);
	for (size_t i = 0; i < parts->count; i++)
		sha256_add(&hash, parts->items[i], LAYER_ID_LEN);
	return arena_printf(arena, "merged %s", sha256_end_text(&hash, arena));
}

int merge_find(const struct env_store *store, text_list *layers, text_list *parts,
	struct arena *arena, struct error *err)
{
	struct choosing c = { .arena = arena, .count = layers->count };
	char id[LAYER_ID_LEN + 1];
	text_list rest = { 0 };
	parts->count = 0;
	if (layers->count <= ENV_LAYERS_MAX)
		return 1;
	if (read_candidates(&c, store, layers, err) < 0)
		return err->code == ERR_CORRUPT || err->code == ERR_NOT_FOUND ? 0 : -1;
	choose(&c);
	for (size_t i = 0; i < c.count; i++) {
		if (c.all[i].is_chosen)
			vec_push(arena, parts, c.all[i].id);
		else
			vec_push(arena, &rest, c.all[i].id);
	}
	if (layer_find(&store->layers, merged_key(parts, arena), id, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	parts->count = 0;
	/* The base is never chosen. */
	if (rest.count == 0)
		return fail(err, ERR_FAILED, "all %zu layers were chosen to be merged", c.count);
	const char *base = rest.items[rest.count - 1];
	rest.items[rest.count - 1] = arena_text(arena, id);
	vec_push(arena, &rest, base);
	*layers = rest;
	return 1;
}

/* A layer_file_fn; ctx: layers_merge's files. */
static int compare_copy(void *ctx, size_t draft, const char *path,
	const unsigned char sha256[SHA256_LEN], uint64_t size, struct error *err)
{
	const struct manifest_entry *entry = map_get(ctx, str_from(path));
	if (entry && entry->size == size && memcmp(entry->sha256, sha256, SHA256_LEN) == 0)
		return 0;
	return fail(err, ERR_CORRUPT, "'%s' is not what its layer's manifest says", path);
}

static int merge(struct making *making, const text_list *parts, struct error *err)
{
	const struct layer_store *layers = &making->store->layers;
	struct layer_draft draft = { .path = MERGED,
		.kind = "python-merged",
		.name = MERGED,
		.version = arena_printf(making->arena, "%zu", parts->count),
		.key = merged_key(parts, making->arena) };
	struct map files;
	if (layer_stage_make(layers, making->arena, &making->stage, err) < 0 ||
		layers_merge(layers, parts->items, parts->count, making->stage.fd, MERGED,
			making->arena, &files, err) < 0)
		return -1;
	return layers_publish(layers, making->stage.fd, &draft, 1, compare_copy, &files, err);
}

static int set_aside_damaged(struct making *making, const text_list *parts, struct error *err)
{
	const struct layer_store *layers = &making->store->layers;
	env_findings findings = { 0 };
	fd_close(&making->run->layers);
	for (size_t i = 0; i < parts->count; i++) {
		layer_damages damages = { 0 };
		if (layer_verify(layers, parts->items[i], making->arena, &damages, err) < 0) {
			if (err->code != ERR_NOT_FOUND)
				return -1;
			continue;
		}
		if (damages.count > 0)
			vec_push(making->arena, &findings,
				(struct env_finding){ .layer = parts->items[i] });
	}
	return findings_set_aside(making->store, &findings, err);
}

int making_merge(struct making *making, struct error *err)
{
	text_list parts = making->composition.parts;
	making_show_packages(making, "building_layers", 0);
	buf_printf(&making->run->log,
		"%zu layers are merged to one: more than %d can't be mounted well\n", parts.count,
		ENV_LAYERS_MAX);
	if (merge(making, &parts, err) == 0)
		return 0;
	if (err->code != ERR_CORRUPT)
		return -1;
	buf_printf(&making->run->log, "%s: damaged layers are made again\n", err->text);
	return set_aside_damaged(making, &parts, err);
}
