/* Tables: columns as wide as their widest cell, and nothing in them that a terminal would obey. */
#include <string.h>
#include "cli/columns.h"
#include "unit.h"

static void columns_are_as_wide_as_their_cells(void **state)
{
	auto_arena struct arena arena;
	auto_buf struct buf out;
	arena_init(&arena);
	buf_init(&out, BUF_MAX_DEFAULT);
	struct columns columns = { .count = 3, .numbers = 1 << 1, .arena = &arena };
	columns_add(&columns, (const char *[]){ "NAME", "SIZE", "LABELS" });
	columns_add(&columns, (const char *[]){ "m\xc3\xbcsli", "7", "" });
	columns_add(&columns, (const char *[]){ "a-long-one", "12345", NULL });
	columns_print(&columns, &out);
	assert_string_equal(out.data, "NAME         SIZE  LABELS\n"
				      "m\xc3\xbcsli           7  -\n"
				      "a-long-one  12345  -\n");
}

static void what_a_terminal_would_obey_is_escaped(void **state)
{
	auto_arena struct arena arena;
	auto_buf struct buf out;
	arena_init(&arena);
	buf_init(&out, BUF_MAX_DEFAULT);
	struct columns columns = { .count = 2, .arena = &arena };
	columns_add(&columns, (const char *[]){ "a\033[2Jb\nc", "\xff" });
	columns_print(&columns, &out);
	assert_null(memchr(out.data, 033, out.len));
	assert_string_equal(out.data, "a\\x1b[2Jb\\x0ac  \\xff\n");
}

static void the_last_column_is_cut_to_the_terminal(void **state)
{
	auto_arena struct arena arena;
	auto_buf struct buf out;
	arena_init(&arena);
	buf_init(&out, BUF_MAX_DEFAULT);
	struct columns columns = { .count = 2, .width = 16, .arena = &arena };
	columns_add(&columns, (const char *[]){ "ID", "COMMAND" });
	columns_add(&columns, (const char *[]){ "a", "\xc3\xbc\xc3\xbc\xc3\xbc 45678901" });
	columns_add(&columns, (const char *[]){ "b", "\xc3\xbc\xc3\xbc\xc3\xbc 456789012" });
	columns_print(&columns, &out);
	assert_string_equal(out.data, "ID  COMMAND\n"
				      "a   \xc3\xbc\xc3\xbc\xc3\xbc 4567890…\n"
				      "b   \xc3\xbc\xc3\xbc\xc3\xbc 4567890…\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_their_cells),
		cmocka_unit_test(the_last_column_is_cut_to_the_terminal),
		cmocka_unit_test(what_a_terminal_would_obey_is_escaped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
