/* Arenas: zeroed, aligned, apart from each other. */
#include <malloc.h>
#include <string.h>
#include "base/arena.h"
#include "unit.h"

static void memory_is_zeroed_aligned_and_not_shared(void **state)
{
	auto_arena struct arena a;
	unsigned char *pieces[600];

	arena_init(&a);
	for (size_t i = 0; i < 600; i++) {
		size_t size = i * 7 % 300;

		pieces[i] = arena_alloc(&a, size);
		assert_int_equal((uintptr_t)pieces[i] % 16, 0);
		for (size_t at = 0; at < size; at++)
			assert_int_equal(pieces[i][at], 0);
		memset(pieces[i], (int)(i % 255 + 1), size);
	}
	for (size_t i = 0; i < 600; i++) {
		for (size_t at = 0; at < i * 7 % 300; at++)
			assert_int_equal(pieces[i][at], i % 255 + 1);
	}
}

static void big_allocations_do_not_end_small_ones(void **state)
{
	auto_arena struct arena a;

	arena_init(&a);
	char *small = arena_text(&a, "small");
	char *big = arena_alloc(&a, 1 << 20);
	memset(big, 'b', 1 << 20);
	char *next = arena_text(&a, "next");
	assert_string_equal(small, "small");
	assert_string_equal(next, "next");
	assert_int_equal(big[(1 << 20) - 1], 'b');
}

static void nothing_is_still_a_place(void **state)
{
	auto_arena struct arena a;

	arena_init(&a);
	assert_non_null(arena_alloc(&a, 0));
	assert_non_null(arena_array(&a, 0, 100));
	assert_string_equal(arena_bytes(&a, NULL, 0), "");
}

static void copies_are_exact_and_terminated(void **state)
{
	auto_arena struct arena a;

	arena_init(&a);
	assert_memory_equal(arena_bytes(&a, "a\0bcd", 3), "a\0b\0", 4);
	assert_string_equal(arena_printf(&a, "%s-%d", "x", 42), "x-42");
	assert_string_equal(arena_printf(&a, "%s", ""), "");
}

static void a_size_that_overflows_aborts(void **state)
{
	auto_arena struct arena a;

	arena_init(&a);
	assert_aborts(arena_array(&a, SIZE_MAX / 2, 3));
	assert_aborts(arena_alloc(&a, SIZE_MAX));
	assert_aborts(arena_bytes(&a, "", SIZE_MAX));
}

static void an_arena_can_be_emptied_and_used_again(void **state)
{
	struct arena a;

	arena_init(&a);
	arena_done(&a);
	arena_text(&a, "x");
	arena_done(&a);
	assert_null(a.blocks);
	assert_string_equal(arena_text(&a, "y"), "y");
	arena_done(&a);
}

/* A daemon has one for each workspace. */
static void a_few_texts_take_little(void **state)
{
	auto_arena struct arena a;

	arena_init(&a);
	size_t before = mallinfo2().uordblks;
	for (int i = 0; i < 10; i++)
		arena_text(&a, "a text of forty characters, about that");
	assert_true(mallinfo2().uordblks - before <= 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_aligned_and_not_shared),
		cmocka_unit_test(big_allocations_do_not_end_small_ones),
		cmocka_unit_test(nothing_is_still_a_place),
		cmocka_unit_test(copies_are_exact_and_terminated),
		cmocka_unit_test(a_size_that_overflows_aborts),
		cmocka_unit_test(an_arena_can_be_emptied_and_used_again),
		cmocka_unit_test(a_few_texts_take_little),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
