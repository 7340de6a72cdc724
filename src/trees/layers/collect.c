#include <fcntl.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/id.h"
#include "base/path.h"
#include "trees/layers/damage.h"
#include "trees/layers/internal.h"

#define HOLDERS_MAX ((size_t)1 << 20)

const char layer_in_use;

void store_bad_name(const char *id, char name[sizeof BAD_PREFIX + LAYER_ID_LEN + 1 + ID_LEN])
{
	char random[ID_LEN + 1];
	id_make(random);
	str_format(name, sizeof BAD_PREFIX + LAYER_ID_LEN + 1 + ID_LEN, BAD_PREFIX "%s-%s", id,
		random);
}

/* A line for each holder. Without the file they aren't known, and the copy stays longer: a full
 * disk is no reason to use a damaged layer. Whoever mounts the layer after this finds another. */
void store_write_holders(const struct layer_store *store, const char *name)
{
	auto_close int dir = fd_open_directory(store->dir, name);
	auto_buf struct buf text = buf_empty(HOLDERS_MAX);
	auto_arena struct arena arena = { 0 };
	text_list holders = { 0 };
	struct error unimportant;
	if (dir < 0 || !store->list_holders ||
		store->list_holders(store->holders_ctx, &arena, &holders, &unimportant))
		return;
	for (size_t i = 0; i < holders.count; i++)
		buf_printf(&text, "%s\n", holders.items[i]);
	if (!text.overflow)
		file_replace(dir, HOLDERS, 0600, buf_str(&text), true);
}

int layer_quarantine(const struct layer_store *store, const char *id, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	char name[sizeof BAD_PREFIX + LAYER_ID_LEN + 1 + ID_LEN];
	if (!layer_id_is_valid(id))
		return fail(err, ERR_NOT_FOUND, "'%s' is not the id of a layer", id);
	store_bad_name(id, name);
	if (fault_fails("layers.quarantine") || renameat(store->dir, id, store->dir, name) < 0)
		return store_fail(err, "set aside", id);
	damage_clear(store->dir, id);
	store_write_holders(store, name);
	return fsync(store->dir) < 0 ? store_fail(err, "write to disk", "layers") : 0;
}

/* Whether it is a quarantined copy that may be mounted. */
static bool is_held(const struct layer_store *store, const char *name, const struct map *live,
	const text_list *holders, struct arena *arena)
{
	struct str id = { name + strlen(BAD_PREFIX), LAYER_ID_LEN }, text, holder;
	if (strlen(name) != strlen(BAD_PREFIX) + LAYER_ID_LEN + 1 + ID_LEN)
		return false;
	if (!store->list_holders ||
		file_read_at(store->dir, arena_printf(arena, "%s/" HOLDERS, name), HOLDERS_MAX,
			arena, &text) < 0)
		return map_get(live, id) == LAYER_IN_USE;
	while (str_next(&text, '\n', &holder))
		for (size_t i = 0; i < holders->count; i++)
			if (str_is(holder, holders->items[i]))
				return true;
	return false;
}

/* Takes a layer's name away first: what a crash leaves of it isn't taken for a layer. */
static int take_name(
	const struct layer_store *store, const char **name, struct arena *arena, struct error *err)
{
	char random[ID_LEN + 1];
	id_make(random);
	const char *gone = arena_printf(arena, GONE_PREFIX "%s", random);
	if (fault_fails("layers.collect") || renameat(store->dir, *name, store->dir, gone) < 0)
		return store_fail(err, "remove", *name);
	damage_clear(store->dir, *name);
	*name = gone;
	return 0;
}

static int remove_one(
	const struct layer_store *store, const char *name, uint64_t *bytes, struct error *err)
{
	uint64_t size = 0, inodes;
	auto_close int dir = fd_open_directory(store->dir, name);
	/* What can't be measured is removed all the same. */
	if (dir >= 0 && path_measure_tree(dir, &size, &inodes, NULL) < 0)
		size = 0;
	if (fault_fails("layers.remove"))
		return store_fail(err, "remove", name);
	if (path_remove_tree(store->dir, name, err) < 0)
		return error_context(err, "layers");
	*bytes += size;
	return 0;
}

/* Keys that lead nowhere, and what a crash left of making one. */
static int remove_keys(const struct layer_store *store, struct arena *arena, struct error *err)
{
	text_list keys = { 0 };
	if (file_names(store->dir, KEYS, arena, &keys) < 0 && errno != ENOENT)
		return store_fail(err, "read", KEYS);
	for (size_t i = 0; i < keys.count; i++) {
		char target[LAYER_ID_LEN + 2];
		const char *path = arena_printf(arena, KEYS "/%s", keys.items[i]);
		ssize_t len = readlinkat(store->dir, path, target, sizeof target);
		if (len == LAYER_ID_LEN && layer_id_is_valid(keys.items[i])) {
			target[len] = '\0';
			if (faccessat(store->dir, target, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
				continue;
		}
		if (unlinkat(store->dir, path, 0) < 0 && errno != ENOENT)
			return store_fail(err, "remove", path);
	}
	return 0;
}

int layers_collect(const struct layer_store *store, const struct map *live, uint64_t *count,
	uint64_t *bytes, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_arena struct arena arena = { 0 };
	text_list all = { 0 }, gone = { 0 }, holders = { 0 };
	uint64_t freed = 0;
	if (store->list_holders &&
		store->list_holders(store->holders_ctx, &arena, &holders, err) < 0)
		return -1;
	if (file_names(store->dir, ".", &arena, &all) < 0)
		return store_fail(err, "read", "layers");
	for (size_t i = 0; i < all.count; i++) {
		const char *name = all.items[i];
		bool is_layer = layer_id_is_valid(name);
		if (is_layer ? map_get(live, str_from(name)) != NULL
			     : strncmp(name, GONE_PREFIX, strlen(GONE_PREFIX)) != 0 &&
					(strncmp(name, BAD_PREFIX, strlen(BAD_PREFIX)) != 0 ||
						is_held(store, name, live, &holders, &arena)))
			continue;
		if (is_layer && take_name(store, &name, &arena, err) < 0)
			return -1;
		vec_push(&arena, &gone, name);
	}
	if (remove_keys(store, &arena, err) < 0)
		return -1;
	for (size_t i = 0; i < gone.count; i++)
		if (remove_one(store, gone.items[i], &freed, err) < 0)
			return -1;
	*count = gone.count;
	*bytes = freed;
	return 0;
}
