/* tar.c -- the trees of layers as a tar archive. */
#include <fcntl.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "format/archives/tar.h"
#include "trees/layers/internal.h"

#define PIECE ((size_t)256 << 10)

static int flush(struct buf *text, int out, struct error *err)
{
	if (fd_write_full(out, text->data, text->len) != (ssize_t)text->len)
		return fail_errno(err, "write an archive of layers");
	buf_clear(text);
	return 0;
}

static int write_content(
	int tree, const struct manifest_entry *entry, struct buf *text, int out, struct error *err)
{
	auto_close int fd = path_open_nolinks(tree, entry->path, O_RDONLY | O_NONBLOCK, 0);
	uint64_t left = entry->size;
	if (fd < 0)
		return store_fail(err, "open", entry->path);
	while (left) {
		size_t len = left < PIECE ? (size_t)left : PIECE;
		char *room = buf_reserve(text, len);
		if (!room || fd_read_full(fd, room, len) != (ssize_t)len)
			return fail(err, ERR_CORRUPT, "'%s' of a layer is shorter than it was",
				entry->path);
		buf_grew(text, len);
		left -= len;
		if (text->len >= PIECE && flush(text, out, err))
			return -1;
	}
	tar_write_padding(text, entry->size);
	return 0;
}

/* The directories that something is in. */
static void find_parents(const struct manifest *manifest, struct map *parents)
{
	for (size_t i = 0; i < manifest->entries.count; i++) {
		const char *path = manifest->entries.items[i].path;
		if (strchr(path, '/'))
			map_set(parents, path_parent(path), parents);
	}
}

static int write_layer(const struct layer_store *store, const char *id, layer_path_fn *is_kept,
	void *ctx, struct arena *arena, struct buf *text, int out, struct error *err)
{
	struct manifest manifest = { 0 };
	char path[LAYER_ID_LEN + 16];
	struct map parents;
	if (layer_read(store, id, arena, &manifest, err))
		return -1;
	map_init(&parents, arena);
	find_parents(&manifest, &parents);
	str_format(path, sizeof path, "%s/tree", id);
	auto_close int tree = path_open_nolinks(store->dir, path, O_RDONLY | O_DIRECTORY, 0);
	if (tree < 0)
		return store_fail(err, "open", path);
	for (size_t i = 0; i < manifest.entries.count; i++) {
		const struct manifest_entry *entry = &manifest.entries.items[i];
		struct tar_entry written = { .kind = entry->kind == MANIFEST_FILE   ? TAR_FILE
						     : entry->kind == MANIFEST_LINK ? TAR_SYMLINK
										    : TAR_DIRECTORY,
			.name = entry->path,
			.link = entry->kind == MANIFEST_LINK ? entry->target : NULL,
			.size = entry->size,
			.mode = entry->kind == MANIFEST_LINK ? 0777 : entry->mode,
			.modified_s = LAYER_MTIME };
		if (is_kept && !is_kept(ctx, entry->path))
			continue;
		if (entry->kind == MANIFEST_DIRECTORY && map_get(&parents, str_from(entry->path)))
			continue;
		if (tar_write_entry(text, &written, err) ||
			(entry->kind == MANIFEST_FILE &&
				write_content(tree, entry, text, out, err)) ||
			(text->len >= PIECE && flush(text, out, err)))
			return -1;
	}
	return 0;
}

int layers_write_tar(const struct layer_store *store, const char *const *ids, size_t count,
	layer_path_fn *is_kept, void *ctx, int out, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_buf struct buf text = buf_empty(PIECE * 8);
	auto_arena struct arena arena = { 0 };
	for (size_t i = 0; i < count; i++)
		if (write_layer(store, ids[i], is_kept, ctx, &arena, &text, out, err))
			return -1;
	tar_write_end(&text);
	return flush(&text, out, err);
}
