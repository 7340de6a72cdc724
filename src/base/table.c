#include "base/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define LEAST_CAPACITY 16
/* Marks a slot whose entry was removed: a search goes on behind it. */
static char removed;

void table_init(struct table *table)
{
	*table = (struct table){ 0 };
	if (getrandom(&table->seed, sizeof table->seed, 0) != (ssize_t)sizeof table->seed)
		abort();
}

void table_done(struct table *table)
{
	free(table->slots);
	*table = (struct table){ 0 };
}

/* FNV-1a over a random start: an attacker who doesn't know it can't aim. */
static size_t hash(const struct table *table, struct str key)
{
	unsigned long h = table->seed ^ 14695981039346656037ul;
	for (size_t i = 0; i < key.len; i++)
		h = (h ^ (unsigned char)key.data[i]) * 1099511628211ul;
	return h ^ h >> 29;
}

/* The slot of `key`, or NULL. */
static struct table_entry *find(const struct table *table, struct str key)
{
	if (!table->capacity)
		return NULL;
	for (size_t at = hash(table, key);; at++) {
		struct table_entry *slot = &table->slots[at & (table->capacity - 1)];
		if (!slot->value)
			return NULL;
		if (slot->value != &removed && str_equal(slot->key, key))
			return slot;
	}
}

void *table_get(const struct table *table, struct str key)
{
	const struct table_entry *slot = find(table, key);
	return slot ? slot->value : NULL;
}

static void place(struct table *table, struct str key, void *value)
{
	size_t at = hash(table, key);
	while (table->slots[at & (table->capacity - 1)].value)
		at++;
	table->slots[at & (table->capacity - 1)] = (struct table_entry){ key, value };
	table->used++;
}

/* At most half full, removed ones counted; they go when it is laid out anew. */
static void make_room(struct table *table)
{
	if (table->used < table->capacity / 2)
		return;
	struct table old = *table;
	size_t capacity = LEAST_CAPACITY;
	while (capacity < (table->count + 1) * 4)
		capacity *= 2;
	table->slots = calloc(capacity, sizeof *table->slots);
	if (!table->slots)
		abort();
	table->capacity = capacity;
	table->used = 0;
	for (size_t i = 0; i < old.capacity; i++)
		if (old.slots[i].value && old.slots[i].value != &removed)
			place(table, old.slots[i].key, old.slots[i].value);
	free(old.slots);
}

void table_add(struct table *table, struct str key, void *value)
{
	if (!value || find(table, key))
		abort();
	make_room(table);
	place(table, key, value);
	table->count++;
}

void table_remove(struct table *table, struct str key)
{
	struct table_entry *slot = find(table, key);
	if (!slot)
		return;
	*slot = (struct table_entry){ { NULL, 0 }, &removed };
	table->count--;
}

void *table_next(const struct table *table, size_t *at)
{
	while (*at < table->capacity) {
		void *value = table->slots[(*at)++].value;
		if (value && value != &removed)
			return value;
	}
	return NULL;
}
