/* Locks: uv's text there and back to the same bytes, and nothing less than pinned and hashed. */
/* security: packages */
#include <string.h>
#include "format/packages/lock.h"
#include "arena_fixture.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define A "sha256:" HEX64 "a"
#define B "sha256:" HEX64 "b"

static void assert_corrupt(const char *text, const char *message)
{
	struct error err = { 0 };
	lock_list list = { 0 };

	if (lock_parse(str_from(text), &arena, &list, &err) == 0)
		fail_msg("'%s' is taken", text);
	assert_int_equal(err.code, ERR_CORRUPT);
	assert_int_equal(list.count, 0);
	if (!strstr(err.text, message))
		fail_msg("'%s': %s", text, err.text);
}

static void what_uv_writes_comes_back_the_same(void **state)
{
	static const char text[] = "colorama==0.4.6 ; sys_platform == 'win32' \\\n"
				   "    --hash=" A " \\\n"
				   "    --hash=" B "\n"
				   "pydantic==2.9.0rc1 \\\n    --hash=" A "\n"
				   "pydantic-core==1!2.23.2+x.1 \\\n    --hash=" B "\n";
	struct error err;
	auto_buf struct buf out;
	lock_list list;

	buf_init(&out, BUF_MAX_DEFAULT);
	assert_int_equal(lock_parse(str_from(text), &arena, &list, &err), 0);
	assert_int_equal(list.count, 3);
	assert_string_equal(list.items[0].name, "colorama");
	assert_string_equal(list.items[0].version, "0.4.6");
	assert_string_equal(list.items[0].marker, "sys_platform == 'win32'");
	assert_int_equal(list.items[0].hashes.count, 2);
	assert_string_equal(list.items[0].hashes.items[0], A);
	assert_null(list.items[1].marker);
	assert_string_equal(list.items[2].version, "1!2.23.2+x.1");
	lock_print(&list, &out);
	assert_string_equal(out.data, text);
}

static void what_was_built_is_marked(void **state)
{
	static const char text[] =
		"# built b\na==1 \\\n    --hash=" A "\nb==1 \\\n    --hash=" B "\n";
	struct error err;
	auto_buf struct buf out;
	lock_list list;

	buf_init(&out, BUF_MAX_DEFAULT);
	assert_int_equal(lock_parse(str_from(text), &arena, &list, &err), 0);
	assert_false(list.items[0].is_built);
	assert_true(list.items[1].is_built);
	lock_print(&list, &out);
	assert_string_equal(out.data, text);
	assert_int_equal(lock_parse(STR("# built c\n# built \n#built a\na==1 --hash=" A), &arena,
				 &list, &err),
		0);
	assert_false(list.items[0].is_built);
}

static void packages_marked_first_keep_their_order(void **state)
{
	static const char text[] = "# built b\n# first c\n# first b\n"
				   "c==1 \\\n    --hash=" A "\nb==1 \\\n    --hash=" B "\n"
				   "a==1 \\\n    --hash=" A "\nd==1 \\\n    --hash=" A "\n";
	auto_buf struct buf out;
	struct error err;
	lock_list list;

	buf_init(&out, BUF_MAX_DEFAULT);
	assert_int_equal(lock_parse(str_from(text), &arena, &list, &err), 0);
	assert_int_equal(list.count, 4);
	assert_string_equal(list.items[0].name, "c");
	assert_string_equal(list.items[1].name, "b");
	assert_true(list.items[1].is_built && list.items[1].is_first);
	assert_string_equal(list.items[2].name, "a");
	assert_false(list.items[2].is_first);
	lock_print(&list, &out);
	assert_string_equal(out.data, text);
	/* Twice, and one that isn't there. */
	assert_int_equal(lock_parse(STR("# first b\n# first b\n# first x\na==1 --hash=" A
					"\nb==1 --hash=" B),
				 &arena, &list, &err),
		0);
	assert_string_equal(list.items[0].name, "b");
	assert_string_equal(list.items[1].name, "a");
}

static void packages_and_hashes_are_sorted_once_each(void **state)
{
	struct error err;
	auto_buf struct buf out;
	lock_list list;

	buf_init(&out, BUF_MAX_DEFAULT);
	assert_int_equal(lock_parse(STR("# by hand\nb==1 --hash=" B " --hash=" A " --hash=" B
					"\n\na==2 --hash=" A "\n"),
				 &arena, &list, &err),
		0);
	lock_print(&list, &out);
	assert_string_equal(out.data,
		"a==2 \\\n    --hash=" A "\nb==1 \\\n    --hash=" A " \\\n    --hash=" B "\n");
	assert_int_equal(lock_parse(STR(""), &arena, &list, &err), 0);
	assert_int_equal(list.count, 0);
}

static void what_is_not_pinned_and_hashed_is_corrupt(void **state)
{
	assert_corrupt("a==1\n", "line 1: a==1 has no sha256 hash");
	assert_corrupt("a==1 --hash=sha512:" HEX64 "0" HEX64 "0", "has no sha256 hash");
	assert_corrupt("\na>=1 --hash=" A, "line 2: 'a>=1");
	assert_corrupt("a --hash=" A, "is not name==version");
	assert_corrupt("a===1 --hash=" A, "is not name==version");
	assert_corrupt("a==1.* --hash=" A, "is not name==version");
	assert_corrupt("A==1 --hash=" A, "is not name==version");
	assert_corrupt("a[x]==1 --hash=" A, "is not name==version");
	assert_corrupt("a== 1 --hash=" A, "is not name==version");
	assert_corrupt("a==1, --hash=" A, "is not name==version");
	assert_corrupt("--pre", "is not name==version");
	assert_corrupt("./a --hash=" A, "is not name==version");
	assert_corrupt("a @ https://index.example/a --hash=" A, "is not name==version");
	assert_corrupt("a==1 --hash=" A "\na==2 --hash=" A, "package 'a' is listed twice");
	assert_corrupt("a==1 --hash=" A "\n<html>", "line 2: ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_uv_writes_comes_back_the_same),
		TEST(what_was_built_is_marked),
		TEST(packages_marked_first_keep_their_order),
		TEST(packages_and_hashes_are_sorted_once_each),
		TEST(what_is_not_pinned_and_hashed_is_corrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
