#include <stdlib.h>
#include <string.h>
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
	if (list->count > 1)
		qsort(list->items, list->count, sizeof *list->items, compare_texts);
}
