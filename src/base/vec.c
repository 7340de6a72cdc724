#include "base/vec.h"

void *vec_grow(struct arena *a, void *items, size_t count, size_t *capacity, size_t item_size)
{
	if (count < *capacity)
		return items;
	size_t wanted = *capacity ? *capacity : 4;
	if (__builtin_mul_overflow(wanted, 2u, &wanted))
		abort();
	void *moved = arena_array(a, wanted, item_size);
	if (count > 0)
		memcpy(moved, items, count * item_size);
	*capacity = wanted;
	return moved;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void text_list_sort(text_list *list)
{
	vec_sort(list, compare_texts);
}

bool text_list_has(const text_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i], text) == 0)
			return true;
	return false;
}

text_list text_list_copy(struct arena *arena, const text_list *from)
{
	text_list to = { 0 };
	for (size_t i = 0; i < from->count; i++)
		vec_push(arena, &to, (const char *)arena_text(arena, from->items[i]));
	vec_push(arena, &to, NULL);
	to.count--;
	return to;
}

pair_list pair_list_copy(struct arena *arena, const pair_list *from)
{
	pair_list to = { 0 };
	for (size_t i = 0; i < from->count; i++)
		vec_push(arena, &to,
			(struct text_pair){ arena_text(arena, from->items[i].key),
				arena_text(arena, from->items[i].value) });
	return to;
}
