#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "trees/layers/internal.h"

struct merging {
	const struct layer_store *store;
	struct arena *arena;
	struct map *files;
	int tree; /* of the draft */
};

/* Shares the blocks where the file system can. */
static int copy_content(int from, int to)
{
	static char data[256 << 10];
	ssize_t got;
	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	while ((got = fd_read_full(from, data, sizeof data)) > 0) {
		if (fd_write_full(to, data, (size_t)got) < 0)
			return -1;
		if ((size_t)got < sizeof data)
			return 0;
	}
	return got < 0 ? -1 : 0;
}

/* `to` has the entry's name already, or a file is where its directory would be. */
static bool is_hidden(int error)
{
	return error == EEXIST || error == ENOTDIR || error == ELOOP;
}

static int copy_file(
	struct merging *m, int from, const struct manifest_entry *entry, struct error *err)
{
	auto_close int to = path_open_nolinks(
		m->tree, entry->path, O_WRONLY | O_CREAT | O_EXCL, (mode_t)entry->mode);
	if (to < 0 && is_hidden(errno))
		return 0;
	if (to < 0)
		return store_fail(err, "make", entry->path);
	auto_close int source = tree_open_file(from, entry->path, 0);
	/* Damaged; other damage is found when the copy is hashed. */
	if (source < 0)
		return fail_errno_code(err, ERR_CORRUPT, "open '%s'", entry->path);
	if (copy_content(source, to) < 0)
		return store_fail(err, "copy", entry->path);
	map_set(m->files, str_from(entry->path), (void *)entry);
	return 0;
}

/* A directory or a link: in the directory that was made before it. */
static int make_entry(struct merging *m, const struct manifest_entry *entry, struct error *err)
{
	const char *name = path_basename(entry->path);
	struct str parent = path_parent(entry->path);
	const char *above = parent.len ? arena_bytes(m->arena, parent.data, parent.len) : ".";
	auto_close int dir = path_open_nolinks(m->tree, above, O_PATH | O_DIRECTORY, 0);
	if (dir >= 0 && entry->kind == MANIFEST_DIRECTORY && mkdirat(dir, name, 0755) == 0)
		return 0;
	if (dir >= 0 && entry->kind == MANIFEST_LINK && symlinkat(entry->target, dir, name) == 0)
		return 0;
	return is_hidden(errno) ? 0 : store_fail(err, "make", entry->path);
}

static int add_layer(struct merging *m, const char *id, struct error *err)
{
	struct manifest manifest = { 0 };
	char path[LAYER_ID_LEN + 8];
	if (layer_read(m->store, id, m->arena, &manifest, err) < 0)
		return -1;
	str_format(path, sizeof path, "%s/tree", id);
	auto_close int from = fd_open_directory(m->store->dir, path);
	if (from < 0)
		return fail_errno_code(err, ERR_CORRUPT, "open layer '%s'", id);
	for (size_t i = 0; i < manifest.entries.count; i++) {
		const struct manifest_entry *entry = &manifest.entries.items[i];
		int failed = entry->kind == MANIFEST_FILE ? copy_file(m, from, entry, err)
							  : make_entry(m, entry, err);
		if (failed)
			return error_context(
				err, "layer of %s %s", manifest.name, manifest.version);
	}
	return 0;
}

int layers_merge(const struct layer_store *store, const char *const *ids, size_t count, int stage,
	const char *draft, struct arena *arena, struct map *files, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_close int tree = -1;
	map_init(files, arena);
	if (path_make_directories(stage, arena_printf(arena, "%s/tree", draft), 0755, &tree, err) <
		0)
		return -1;
	struct merging m = { store, arena, files, tree };
	for (size_t i = 0; i < count; i++)
		if (add_layer(&m, ids[i], err) < 0)
			return -1;
	return 0;
}
