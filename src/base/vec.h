/* vec.h -- a growing array in an arena. Declare with VEC(type), push with vec_push. Old storage
 * stays in the arena. */
#pragma once
#include "base/arena.h"

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t count, capacity;                                                            \
	}
/* Appends `value`; evaluates v twice or more: pass a plain lvalue. */
#define vec_push(arena, v, ...)                                                                    \
	do {                                                                                       \
		(v)->items = vec_grow(                                                             \
			arena, (v)->items, (v)->count, &(v)->capacity, sizeof *(v)->items);        \
		(v)->items[(v)->count++] = (__VA_ARGS__);                                          \
	} while (0)
/* Sorts the items by a comparison as qsort takes it. */
#define vec_sort(v, compare)                                                                       \
	do {                                                                                       \
		if ((v)->count > 1)                                                                \
			qsort((v)->items, (v)->count, sizeof *(v)->items, compare);                \
	} while (0)
/* Makes room for one more item; returns the (maybe moved) storage. */
void *vec_grow(struct arena *a, void *items, size_t count, size_t *capacity, size_t item_size);

typedef VEC(const char *) text_list;
void text_list_sort(text_list *list); /* by bytes */
bool text_list_has(const text_list *list, const char *text);
struct text_pair {
	const char *key, *value;
};
typedef VEC(struct text_pair) pair_list;
/* With their texts. items[count] of a text_list is NULL. */
text_list text_list_copy(struct arena *arena, const text_list *from);
pair_list pair_list_copy(struct arena *arena, const pair_list *from);
