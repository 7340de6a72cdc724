/* map.h -- bytes as keys to pointers, in order of insertion.
 * 1. A map with an arena copies its keys and lives as long as the arena. A map without one is for
 * things that come and go: nothing is copied, a key belongs to its value and must stay as it is
 * while it is in the map, and map_done frees the memory.
 * 2. `entries` holds `count` of them, `live` ones with a value. They move: don't hold pointers to
 * them across a set. */
#pragma once
#include "base/arena.h"
#include "base/str.h"

struct map_entry {
	struct str key;
	void *value; /* NULL: the entry was removed, and `key` is empty */
};
struct map {
	struct arena *arena; /* or NULL */
	struct map_entry *entries;
	unsigned *slots; /* 1 + index into entries; 0 is empty */
	size_t count, live, capacity, slot_count;
	unsigned long seed; /* random per map: keys may be an attacker's */
};
void map_init(struct map *m, struct arena *arena);
void map_done(struct map *m);			    /* for a map without an arena */
void *map_get(const struct map *m, struct str key); /* NULL when absent */
/* Returns the value replaced. A NULL value removes. */
void *map_set(struct map *m, struct str key, void *value);
void map_add(struct map *m, struct str key, void *value); /* aborts if the key exists */
void *map_remove(struct map *m, struct str key);	  /* the value it had */
/* The next value in order: start with *at = 0; NULL at the end. Nothing may be set meanwhile;
 * anything may be removed. */
void *map_next(const struct map *m, size_t *at);
