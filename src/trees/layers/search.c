#include <fcntl.h>
#include "trees/layers/internal.h"

#define STEP ((size_t)256 << 10)

struct search {
	const text_list *texts;
	size_t longest;
	char *data; /* of the end of the last step, and the next step behind it */
};

static bool holds_any(const struct search *s, size_t len)
{
	for (size_t i = 0; i < s->texts->count; i++)
		if (memmem(s->data, len, s->texts->items[i], strlen(s->texts->items[i])))
			return true;
	return false;
}

/* 1: it holds one; 0: none; -1 with errno. */
static int search_file(const struct search *s, int fd)
{
	size_t kept = 0;
	ssize_t got;
	while ((got = fd_read_full(fd, s->data + kept, STEP)) > 0) {
		size_t len = kept + (size_t)got;
		if (holds_any(s, len))
			return 1;
		/* A text may lie across two steps. */
		kept = len < s->longest - 1 ? len : s->longest - 1;
		memmove(s->data, s->data + len - kept, kept);
	}
	return got < 0 ? -1 : 0;
}

static int search_tree(const struct layer_store *store, const char *id, const struct search *s,
	const struct manifest *manifest, struct arena *arena, text_list *paths, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_close int dir = fd_open_directory(store->dir, id);
	if (dir < 0)
		return store_fail(err, "open layer", id);
	for (size_t i = 0; i < manifest->entries.count; i++) {
		const struct manifest_entry *entry = &manifest->entries.items[i];
		if (entry->kind != MANIFEST_FILE)
			continue;
		auto_close int fd =
			tree_open_file(dir, arena_printf(arena, "tree/%s", entry->path), 0);
		int found = fd < 0 ? -1 : search_file(s, fd);
		if (found < 0)
			return fail_errno_code(
				err, ERR_CORRUPT, "read '%s' of layer '%s'", entry->path, id);
		if (found)
			vec_push(arena, paths, entry->path);
	}
	return 0;
}

int layer_search(const struct layer_store *store, const char *id, const text_list *texts,
	struct arena *arena, text_list *paths, struct error *err)
{
	struct search s = { .texts = texts };
	struct manifest manifest;
	text_list found = { 0 };
	for (size_t i = 0; i < texts->count; i++)
		if (strlen(texts->items[i]) > s.longest)
			s.longest = strlen(texts->items[i]);
	if (layer_read(store, id, arena, &manifest, err) < 0)
		return -1;
	auto_free char *data = s.data = malloc(STEP + s.longest);
	if (!data)
		return fail(err, ERR_LIMIT, "no memory to search layer '%s'", id);
	if (s.longest && search_tree(store, id, &s, &manifest, arena, &found, err) < 0)
		return -1;
	*paths = found;
	return 0;
}
