#include "envs/python/rivals.h"

#include <fcntl.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "format/packages/wheel_record.h"

typedef VEC(size_t) places; /* in `rivals` */
struct contest {
	struct arena *arena;
	const struct split *split;
	places rivals;	  /* in split->packages */
	struct map files; /* path -> places that list it */
	unsigned *wins;	  /* [a * rivals.count + b]: files of both that have a's content */
};

static const struct wheel_record *entry_of(const struct contest *c, size_t place, struct str path)
{
	return map_get(&c->split->packages.items[c->rivals.items[place]].files, path);
}

static void add_files(struct contest *c, size_t place)
{
	const struct map *files = &c->split->packages.items[c->rivals.items[place]].files;
	for (size_t i = 0; i < files->count; i++) {
		places *listed = map_get(&c->files, files->entries[i].key);
		if (!files->entries[i].value)
			continue;
		if (!listed) {
			listed = arena_alloc(c->arena, sizeof *listed);
			map_set(&c->files, files->entries[i].key, listed);
		}
		vec_push(c->arena, listed, place);
	}
}

/* All of them list a hash, and not all the same. */
static bool is_contested(const struct contest *c, const places *listed, struct str path)
{
	const struct wheel_record *first = entry_of(c, listed->items[0], path);
	bool differs = false;
	for (size_t i = 0; i < listed->count; i++) {
		const struct wheel_record *entry = entry_of(c, listed->items[i], path);
		if (!entry->has_sha256)
			return false;
		differs |= memcmp(entry->sha256, first->sha256, SHA256_LEN) != 0;
	}
	return differs;
}

static int count_wins(
	struct contest *c, int root, const places *listed, struct str path, struct error *err)
{
	const char *name = arena_bytes(c->arena, path.data, path.len);
	auto_close int fd = path_open_nolinks(root, name, O_RDONLY | O_NONBLOCK, 0);
	unsigned char found[SHA256_LEN];
	if (fd < 0 || file_hash(fd, found, NULL) < 0)
		return fail_errno(err, "read '%s'", name);
	for (size_t i = 0; i < listed->count; i++) {
		size_t winner = listed->items[i];
		if (memcmp(entry_of(c, winner, path)->sha256, found, SHA256_LEN) != 0)
			continue;
		for (size_t k = 0; k < listed->count; k++)
			c->wins[winner * c->rivals.count + listed->items[k]]++;
	}
	return 0;
}

/* The first of those left that none of them beats; else the first. */
static size_t find_topmost(const struct contest *c, const bool *is_taken)
{
	size_t count = c->rivals.count, first = count;
	for (size_t a = 0; a < count; a++) {
		bool is_beaten = false;
		if (is_taken[a])
			continue;
		if (first == count)
			first = a;
		for (size_t b = 0; b < count && !is_beaten; b++)
			is_beaten = !is_taken[b] && c->wins[b * count + a] > c->wins[a * count + b];
		if (!is_beaten)
			return a;
	}
	return first;
}

int rivals_order(struct split *split, int root, struct error *err)
{
	struct contest c = { .arena = split->arena, .split = split };
	split->order.count = 0;
	for (size_t i = 0; i < split->packages.count; i++) {
		if (split->packages.items[i].rival)
			vec_push(c.arena, &c.rivals, i);
	}
	if (c.rivals.count == 0)
		return 0;
	map_init(&c.files, c.arena);
	c.wins = arena_array(c.arena, c.rivals.count * c.rivals.count, sizeof *c.wins);
	for (size_t i = 0; i < c.rivals.count; i++)
		add_files(&c, i);
	for (size_t i = 0; i < c.files.count; i++) {
		const struct map_entry *file = &c.files.entries[i];
		const places *listed = file->value;
		if (listed->count > 1 && is_contested(&c, listed, file->key) &&
			count_wins(&c, root, listed, file->key, err) < 0)
			return -1;
	}
	bool *is_taken = arena_array(c.arena, c.rivals.count, sizeof *is_taken);
	for (size_t i = 0; i < c.rivals.count; i++) {
		size_t topmost = find_topmost(&c, is_taken);
		is_taken[topmost] = true;
		vec_push(c.arena, &split->order, c.rivals.items[topmost]);
	}
	return 0;
}
