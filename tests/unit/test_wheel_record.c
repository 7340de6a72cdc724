/* RECORD: paths, hashes and sizes as they are written, and no line that is half of one. */
/* security: packages */
#include <string.h>
#include "format/packages/wheel_record.h"
#include "arena_fixture.h"

/* Of the empty text. */
#define EMPTY "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"

static wheel_record_list parse(struct str text)
{
	struct error err;
	wheel_record_list list = { 0 };

	if (wheel_record_parse(text, &arena, &list, &err) < 0)
		fail_msg("%.*s: %s", (int)text.len, text.data, err.text);
	return list;
}

static void assert_corrupt(struct str text, const char *message)
{
	struct error err = { 0 };
	wheel_record_list list = { 0 };

	if (wheel_record_parse(text, &arena, &list, &err) == 0)
		fail_msg("'%.*s' is taken", (int)text.len, text.data);
	assert_int_equal(err.code, ERR_CORRUPT);
	assert_int_equal(list.count, 0);
	if (!strstr(err.text, message))
		fail_msg("'%.*s': %s", (int)text.len, text.data, err.text);
}

static void assert_text(struct str s, const char *text)
{
	assert_true(str_is(s, text));
}

static void paths_hashes_and_sizes_are_read(void **state)
{
	wheel_record_list list = parse(STR("../../../bin/pip,sha256=" EMPTY ",234\n"
					   "a/__init__.py,sha256=" EMPTY ",0\r\n"
					   "\r\n\n"
					   "a.dist-info/RECORD,,\n"
					   "a/x.py,md5=abc,18446744073709551615\n"
					   "a/y.py,sha256=" EMPTY "=,"));
	unsigned char digest[SHA256_LEN];
	struct sha256 hash;

	sha256_init(&hash);
	sha256_end(&hash, digest);
	assert_int_equal(list.count, 5);
	assert_string_equal(list.items[0].path, "../../../bin/pip");
	assert_true(list.items[0].has_sha256 && list.items[0].has_size);
	assert_memory_equal(list.items[0].sha256, digest, SHA256_LEN);
	assert_int_equal(list.items[0].size, 234);
	assert_text(list.items[0].line, "../../../bin/pip,sha256=" EMPTY ",234\n");
	assert_text(list.items[1].line, "a/__init__.py,sha256=" EMPTY ",0\r\n");
	assert_true(list.items[1].has_size);
	assert_false(list.items[2].has_sha256 || list.items[2].has_size);
	assert_text(list.items[2].line, "a.dist-info/RECORD,,\n");
	assert_false(list.items[3].has_sha256);
	assert_true(list.items[3].size == UINT64_MAX);
	assert_true(list.items[4].has_sha256 && !list.items[4].has_size);
	assert_int_equal(parse(STR("")).count, 0);
	assert_string_equal(parse(STR("a,,\r")).items[0].path, "a");
}

static void quoted_fields_hold_anything(void **state)
{
	wheel_record_list list =
		parse(STR("\"a,b \"\"c\"\"\nd.py\",\"sha256=" EMPTY "\",\"7\"\r\nx,,\n"
			  "\"\"\"\",,\n"));

	assert_int_equal(list.count, 3);
	assert_string_equal(list.items[0].path, "a,b \"c\"\nd.py");
	assert_true(list.items[0].has_sha256);
	assert_int_equal(list.items[0].size, 7);
	assert_text(list.items[1].line, "x,,\n");
	assert_string_equal(list.items[2].path, "\"");
}

static void half_lines_are_corrupt(void **state)
{
	assert_corrupt(STR("a"), "line 1 of RECORD: it isn't path,hash,size");
	assert_corrupt(STR("a,"), "it isn't path,hash,size");
	assert_corrupt(STR("x,,\na,b\nc,,\n"), "line 2 of RECORD: it isn't path,hash,size");
	assert_corrupt(STR("\"x\n\",,\na,,,\n"), "line 3 of RECORD: it isn't path,hash,size");
	assert_corrupt(STR(",,\n"), "its path is empty");
	assert_corrupt(STR("\"\",,\n"), "its path is empty");
	assert_corrupt(STR("a\0b,,\n"), "a NUL in it");
	assert_corrupt(STR("a,sha256,\n"), "its hash isn't algorithm=digest");
	assert_corrupt(STR("a,sha256=,\n"), "its sha256 isn't 43 digits");
	assert_corrupt(STR("a,sha256=x" EMPTY ",\n"), "its sha256 isn't 43 digits");
	assert_corrupt(STR("a,sha256=+7DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,\n"),
		"its sha256 isn't 43 digits");
	assert_corrupt(STR("a,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFV,\n"),
		"its sha256 isn't 43 digits");
	assert_corrupt(STR("a,,x\n"), "its size isn't a number");
	assert_corrupt(STR("a,,-1\n"), "its size isn't a number");
	assert_corrupt(STR("a,,18446744073709551616\n"), "its size isn't a number");
	assert_corrupt(STR("a\"b,,\n"), "its quotes are wrong");
	assert_corrupt(STR("\"a,,\n"), "its quotes are wrong");
	assert_corrupt(STR("\"a\"b,,\n"), "its quotes are wrong");
	assert_corrupt(STR("\"a\"\"\n"), "its quotes are wrong");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(paths_hashes_and_sizes_are_read),
		TEST(quoted_fields_hold_anything),
		TEST(half_lines_are_corrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
