/* base/file.c: files and directories as a whole. */
#include "base/file.h"

#include "path_fixture.h"
#include "unit.h"

static struct arena arena;

static int set_up_arena(void **state)
{
	arena_init(&arena);
	return set_up(state);
}

static int tear_down_arena(void **state)
{
	arena_done(&arena);
	return tear_down(state);
}

static void a_file_is_read_whole_or_refused(void **state)
{
	struct str text = STR("before");

	put_file(in, "f", "text");
	assert_int_equal(symlinkat("f", in, "link"), 0);
	assert_int_equal(file_read_at(in, "f", 4, &arena, &text), 0);
	assert_true(str_is(text, "text"));
	assert_int_equal(file_read_at(in, "f", 3, &arena, &text), -1);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(file_read_at(in, ".", 4, &arena, &text), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(file_read_at(in, "link", 4, &arena, &text), -1);
	assert_int_equal(errno, ELOOP);
	assert_true(str_is(text, "text"));
}

static void a_replaced_file_leaves_no_other_name(void **state)
{
	text_list names = { 0 };
	struct str text;

	assert_int_equal(file_replace(in, "f", 0600, STR("one"), false), 0);
	assert_int_equal(file_replace(in, "f", 0600, STR("two"), true), 0);
	put_dir(in, "d");
	assert_int_equal(file_replace(in, "d", 0600, STR("three"), false), -1);
	assert_int_equal(errno, EISDIR);
	assert_int_equal(file_create(in, "f", 0600, STR("four")), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(file_read_at(in, "f", 9, &arena, &text), 0);
	assert_true(str_is(text, "two"));
	assert_int_equal(file_names(in, ".", &arena, &names), 0);
	assert_int_equal(names.count, 2);
}

static void names_are_sorted_and_links_are_not_followed(void **state)
{
	text_list names = { 0 };

	put_dir(in, "d");
	assert_int_equal(symlinkat("d", in, "link"), 0);
	assert_int_equal(file_names(in, "link", &arena, &names), -1);
	assert_int_equal(file_names(in, "none", &arena, &names), -1);
	assert_int_equal(errno, ENOENT);
	put_file(in, "d/b", "");
	put_file(in, "d/.a", "");
	put_file(in, "d/c", "");
	assert_int_equal(file_names(in, "d", &arena, &names), 0);
	assert_int_equal(names.count, 3);
	assert_string_equal(names.items[0], ".a");
	assert_string_equal(names.items[2], "c");
}

static void a_file_is_hashed_to_its_end(void **state)
{
	size_t len = (600 << 10) + 1;
	char *data = arena_alloc(&arena, len), hex[2 * SHA256_LEN + 1], wanted[sizeof hex];
	unsigned char digest[SHA256_LEN];
	uint64_t size = 0;

	assert_int_equal(file_create(in, "f", 0600, (struct str){ data, len }), 0);
	auto_close int fd = openat(in, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(file_hash(fd, digest, &size), 0);
	assert_int_equal(size, len);
	sha256_hex(digest, hex);
	sha256_of(data, len, wanted);
	assert_string_equal(hex, wanted);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, set_up_arena, tear_down_arena)
	const struct CMUnitTest tests[] = {
		test(a_file_is_read_whole_or_refused),
		test(a_replaced_file_leaves_no_other_name),
		test(names_are_sorted_and_links_are_not_followed),
		test(a_file_is_hashed_to_its_end),
	};

	return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
