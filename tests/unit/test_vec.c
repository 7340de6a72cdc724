/* Growing arrays: order and content survive every move. */
#include "base/vec.h"
#include "unit.h"

struct pair {
	int a, b;
};

static void pushed_items_stay_in_order(void **state)
{
	auto_arena struct arena arena;
	VEC(struct pair) pairs = { 0 };
	text_list names = { 0 };

	arena_init(&arena);
	for (int i = 0; i < 1000; i++) {
		vec_push(&arena, &pairs, (struct pair){ i, -i });
		vec_push(&arena, &names, arena_printf(&arena, "%d", i));
	}
	assert_int_equal(pairs.count, 1000);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(pairs.items[i].a, i);
		assert_int_equal(pairs.items[i].b, -i);
	}
	assert_string_equal(names.items[0], "0");
	assert_string_equal(names.items[999], "999");
}

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void items_are_sorted_and_texts_found(void **state)
{
	auto_arena struct arena arena = { 0 };
	VEC(int) numbers = { 0 };
	text_list words = { 0 };

	vec_sort(&numbers, compare_ints);
	assert_false(text_list_has(&words, "one"));
	for (int i = 9; i >= 0; i--)
		vec_push(&arena, &numbers, i);
	vec_push(&arena, &words, "one");
	vec_push(&arena, &words, "two");
	vec_sort(&numbers, compare_ints);
	for (int i = 0; i < 10; i++)
		assert_int_equal(numbers.items[i], i);
	assert_true(text_list_has(&words, "two"));
	assert_false(text_list_has(&words, "tw"));
}

static void storage_moves_only_when_full(void **state)
{
	auto_arena struct arena arena;
	VEC(int) v = { 0 };

	arena_init(&arena);
	vec_push(&arena, &v, 1);
	int *first = v.items;
	while (v.count < v.capacity)
		vec_push(&arena, &v, 2);
	assert_ptr_equal(v.items, first);
	vec_push(&arena, &v, 3);
	assert_ptr_not_equal(v.items, first);
	assert_true(v.capacity > v.count);
}

static void copies_have_their_own_texts(void **state)
{
	auto_arena struct arena arena = { 0 };
	char word[] = "word";
	const char *words[] = { word, NULL };
	struct text_pair pairs[] = { { word, NULL }, { "key", word } };
	const text_list none = { 0 }, one = { words, 1, 1 };
	const pair_list two = { pairs, 2, 2 };

	text_list empty = text_list_copy(&arena, &none), texts = text_list_copy(&arena, &one);
	pair_list copied = pair_list_copy(&arena, &two);
	word[0] = '?';
	assert_int_equal(empty.count, 0);
	assert_null(empty.items[0]);
	assert_int_equal(texts.count, 1);
	assert_string_equal(texts.items[0], "word");
	assert_null(texts.items[1]);
	assert_int_equal(copied.count, 2);
	assert_string_equal(copied.items[0].key, "word");
	assert_null(copied.items[0].value);
	assert_string_equal(copied.items[1].value, "word");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushed_items_stay_in_order),
		cmocka_unit_test(items_are_sorted_and_texts_found),
		cmocka_unit_test(storage_moves_only_when_full),
		cmocka_unit_test(copies_have_their_own_texts),
	};

	return cmocka_run_group_tests_name("vec", tests, NULL, NULL);
}
