#include <sys/random.h>
#include "base/map.h"

void map_init(struct map *m, struct arena *arena)
{
	*m = (struct map){ .arena = arena };
	if (getrandom(&m->seed, sizeof m->seed, 0) != sizeof m->seed)
		abort();
}

void map_done(struct map *m)
{
	free(m->entries);
	free(m->slots);
	*m = (struct map){ 0 };
}

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

/* SipHash-1-3 keyed by the seed: keys that collide can't be chosen without knowing the seed. */
static size_t hash(const struct map *m, struct str key)
{
	uint64_t k0 = m->seed, k1 = ~m->seed;
	uint64_t v[4] = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
		k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u };
	for (size_t at = 0; at <= key.len; at += 8) {
		uint64_t word = 0;
		size_t left = key.len - at;
		if (left > 0)
			memcpy(&word, key.data + at, left < 8 ? left : 8);
		if (left < 8)
			word |= (uint64_t)key.len << 56;
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return (size_t)(v[0] ^ v[1] ^ v[2] ^ v[3]);
}

/* The slot where key is, or the empty one where it would go. There is always an empty slot. */
static unsigned *find_slot(const struct map *m, struct str key)
{
	size_t at = hash(m, key) & (m->slot_count - 1);
	for (; m->slots[at] != 0; at = (at + 1) & (m->slot_count - 1)) {
		const struct map_entry *entry = &m->entries[m->slots[at] - 1];
		if (entry->value && str_equal(entry->key, key))
			break;
	}
	return &m->slots[at];
}

static void *new_array(const struct map *m, size_t count, size_t size)
{
	void *array = m->arena ? arena_array(m->arena, count, size) : calloc(count, size);
	if (!array)
		abort();
	return array;
}

/* Entries are full: drops the removed ones, and doubles when that frees less than half. */
static void make_room(struct map *m)
{
	struct map_entry *old = m->entries;
	unsigned *old_slots = m->slots;
	size_t old_count = m->count;
	if (m->live > m->capacity / 2 || m->capacity == 0) {
		m->capacity = m->capacity ? m->capacity * 2 : 8;
		if (m->capacity > UINT_MAX / 2)
			abort();
		m->slot_count = m->capacity * 2;
		m->entries = new_array(m, m->capacity, sizeof *m->entries);
		m->slots = new_array(m, m->slot_count, sizeof *m->slots);
	} else {
		memset(m->slots, 0, m->slot_count * sizeof *m->slots);
	}
	m->count = 0;
	for (size_t i = 0; i < old_count; i++) {
		if (!old[i].value)
			continue;
		m->entries[m->count++] = old[i];
		*find_slot(m, old[i].key) = (unsigned)m->count;
	}
	if (!m->arena && m->entries != old) {
		free(old);
		free(old_slots);
	}
}

void *map_get(const struct map *m, struct str key)
{
	if (m->slot_count == 0)
		return NULL;
	unsigned slot = *find_slot(m, key);
	return slot ? m->entries[slot - 1].value : NULL;
}

void *map_set(struct map *m, struct str key, void *value)
{
	if (!value)
		return map_remove(m, key);
	unsigned *slot = m->slot_count ? find_slot(m, key) : NULL;
	if (slot && *slot) {
		struct map_entry *entry = &m->entries[*slot - 1];
		void *old = entry->value;
		entry->value = value;
		if (!m->arena)
			entry->key = key; /* the old one may go with the old value */
		return old;
	}
	if (m->count == m->capacity)
		make_room(m);
	slot = find_slot(m, key);
	if (m->arena)
		key.data = arena_bytes(m->arena, key.data, key.len);
	m->entries[m->count++] = (struct map_entry){ key, value };
	*slot = (unsigned)m->count;
	m->live++;
	return NULL;
}

void *map_remove(struct map *m, struct str key)
{
	unsigned slot = m->slot_count ? *find_slot(m, key) : 0;
	if (!slot)
		return NULL;
	void *old = m->entries[slot - 1].value;
	m->entries[slot - 1] = (struct map_entry){ 0 };
	m->live--;
	return old;
}

void map_add(struct map *m, struct str key, void *value)
{
	if (!value || map_set(m, key, value))
		abort();
}

void *map_next(const struct map *m, size_t *at)
{
	while (*at < m->count) {
		void *value = m->entries[(*at)++].value;
		if (value)
			return value;
	}
	return NULL;
}
