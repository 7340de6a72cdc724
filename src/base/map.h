/* map.h -- text keys to pointers, in an arena; keeps insertion order in `entries` (count of them,
 * live ones with a value). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "base/arena.h"
#include "base/str.h"

struct map_entry {
	struct str key;
	void *value; /* NULL: removed */
};
struct map {
	struct arena *arena;
	struct map_entry *entries;
	unsigned *slots; /* 1 + index into entries; 0 is empty */
	size_t count, live, capacity, slot_count;
	unsigned long seed; /* random per map: keys may be an attacker's */
};
void map_init(struct map *m, struct arena *arena);
void *map_get(const struct map *m, struct str key); /* NULL when absent */
/* Copies the key; returns the value replaced. A NULL value removes. A key set again after its
 * removal may be back in its old place. Entries move: don't hold pointers to them across a set. */
void *map_set(struct map *m, struct str key, void *value);
void *map_remove(struct map *m, struct str key); /* the value it had */
