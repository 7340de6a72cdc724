/* table.h -- text keys to pointers, for things that come and go: nothing is copied, nothing is
 * kept.
 * 1. A key belongs to its value and must stay as it is while it is in the table. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"

struct table_entry {
	struct str key;
	void *value;
};
struct table {
	struct table_entry *slots;
	size_t count, used, capacity; /* used: with those that were removed */
	unsigned long seed;	      /* random: keys may be an attacker's */
};
void table_init(struct table *table);
void table_done(struct table *table);
void *table_get(const struct table *table, struct str key); /* NULL when absent */
/* The key must be absent: adding it twice aborts. */
void table_add(struct table *table, struct str key, void *value);
void table_remove(struct table *table, struct str key); /* absent: nothing */
/* Walks all of them in no order: start with *at = 0; NULL at the end. Nothing may be added
 * meanwhile; the one just returned may be removed. */
void *table_next(const struct table *table, size_t *at);
