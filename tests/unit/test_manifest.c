/* Manifests: one text for one tree, and nothing else parses. */
#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "trees/layers/manifest.h"
#include "arena_fixture.h"

#define HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HEAD "carrel-layer 1\nkind python-wheel\nname requests\nversion 2.31.0\n"
#define FILE_LINE(path) "f 644 1 " HASH " " path "\n"

static void an_entry_of_each_kind_prints_sorted_and_escaped(void **state)
{
	struct manifest m = { .kind = "python-wheel", .name = "requests", .version = "2.31.0" };
	auto_buf struct buf out;

	buf_init(&out, MANIFEST_MAX);
	vec_push(&arena, &m.entries,
		(struct manifest_entry){
			.kind = MANIFEST_LINK, .path = "lib64", .target = "li b" });
	vec_push(&arena, &m.entries,
		(struct manifest_entry){
			.kind = MANIFEST_FILE, .mode = 0755, .path = "lib/a%\n\x7f\xff" });
	vec_push(&arena, &m.entries,
		(struct manifest_entry){ .kind = MANIFEST_DIRECTORY, .mode = 0755, .path = "lib" });
	manifest_print(&m, &out);
	assert_string_equal(out.data,
		HEAD "d 755 lib\n"
		     "f 755 0 0000000000000000000000000000000000000000000000000000000000000000 "
		     "lib/a%25%0A%7F\xff\n"
		     "l 4 li%20b lib64\n");
	struct manifest again = { 0 };
	struct error err = { 0 };
	assert_int_equal(
		manifest_parse((struct str){ out.data, out.len }, &arena, &again, &err), 0);
	assert_int_equal(again.entries.count, 3);
	assert_string_equal(again.entries.items[1].path, "lib/a%\n\x7f\xff");
	assert_string_equal(again.entries.items[2].target, "li b");
	assert_int_equal(again.entries.items[2].mode, 0);
	assert_string_equal(again.name, "requests");
}

static void what_parses_prints_to_the_same_bytes(void **state)
{
	static const char *const texts[] = {
		HEAD,
		"carrel-layer 1\nkind python\nname base\nversion \n",
		HEAD "d 755 a\n" FILE_LINE("a-b") FILE_LINE("a/b"),
		HEAD "d 755 a\nd 755 a/b\nd 755 a/b/c\nl 1 / a/b/c/d\n",
		HEAD "f 755 9223372036854775807 " HASH " ...\n",
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		auto_buf struct buf out;
		struct manifest m = { 0 };
		struct error err = { 0 };

		buf_init(&out, MANIFEST_MAX);
		if (manifest_parse(str_from(texts[i]), &arena, &m, &err))
			fail_msg("%zu: %s", i, err.text);
		manifest_print(&m, &out);
		assert_string_equal(out.data, texts[i]);
	}
}

static void other_spellings_and_other_trees_are_refused_by_line(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "manifest: its last line has no end" },
		{ "carrel-layer 1", "manifest: its last line has no end" },
		{ "carrel-layer 2\n", "line 1: " },
		{ "carrel-layer 1\nkind a\n", "line 3: the header ends" },
		{ "carrel-layer 1\nkind A\nname b\nversion 1\n", "line 2: " },
		{ "carrel-layer 1\nkind \nname b\nversion 1\n", "line 2: " },
		{ "carrel-layer 1\nkind a\nname b/c\nversion 1\n", "line 3: " },
		{ "carrel-layer 1\nkind a\nname b\nversion 1 2\n", "line 4: " },
		{ "carrel-layer 1\nname b\nkind a\nversion 1\n", "line 2: not kind" },
		{ HEAD "\n", "line 5: an entry" },
		{ HEAD "x 755 a\n", "line 5: an entry" },
		{ HEAD "d 0755 a\n", "line 5: a bad mode" },
		{ HEAD "d 644 a\n", "line 5: a bad mode" },
		{ HEAD "f 600 1 " HASH " a\n", "line 5: a bad mode" },
		{ HEAD "f 4755 1 " HASH " a\n", "line 5: a bad mode" },
		{ HEAD "f 644 01 " HASH " a\n", "line 5: a bad number" },
		{ HEAD "f 644 -1 " HASH " a\n", "line 5: a bad number" },
		{ HEAD "f 644 9223372036854775808 " HASH " a\n", "line 5: a bad number" },
		{ HEAD "f 644 1 E" HASH " a\n", "line 5: a bad hash" },
		{ HEAD "f 644 1 abc a\n", "line 5: a bad hash" },
		{ HEAD "d 755 \n", "line 5: an empty" },
		{ HEAD "d 755\n", "line 5: an empty" },
		{ HEAD "d 755  a\n", "line 5: a byte that must" },
		{ HEAD "d 755 a \n", "line 5: a byte that must" },
		{ HEAD "d 755 a\r\n", "line 5: a byte that must" },
		{ HEAD "d 755 a%0a\n", "line 5: a bad escape" },
		{ HEAD "d 755 a%0\n", "line 5: a bad escape" },
		{ HEAD "d 755 a%41\n", "line 5: an escape that" },
		{ HEAD "d 755 a%00\n", "line 5: an escape that" },
		{ HEAD "d 755 /a\n", "line 5: a path that isn't plain" },
		{ HEAD "d 755 a/\n", "line 5: a path that isn't plain" },
		{ HEAD "d 755 .\n", "line 5: a path that isn't plain" },
		{ HEAD "d 755 ..\n", "line 5: a path that isn't plain" },
		{ HEAD "d 755 a\nd 755 a/..\n", "line 6: a path that isn't plain" },
		{ HEAD "d 755 b\nd 755 a\n", "line 6: a path out of order" },
		{ HEAD "d 755 a\nd 755 a\n", "line 6: a path out of order" },
		{ HEAD "d 755 a/b\n", "line 5: a path in a directory" },
		{ HEAD "l 1 x a\nd 755 a/b\n", "line 6: a path in a directory" },
		{ HEAD FILE_LINE("a") FILE_LINE("a/b"), "line 6: a path in a directory" },
		{ HEAD "l 2 x a\n", "line 5: a link target of another length" },
		{ HEAD "l 0  a\n", "line 5: an empty" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct manifest m = { 0 };
		struct error err = { 0 };

		if (manifest_parse(str_from(cases[i].text), &arena, &m, &err) != -1 ||
			err.code != ERR_CORRUPT || !strstr(err.text, cases[i].error))
			fail_msg("%zu: %s", i, err.text);
		assert_null(m.kind);
	}
}

static void a_path_is_as_long_as_it_may_be_and_no_longer(void **state)
{
	auto_buf struct buf text;

	buf_init(&text, MANIFEST_MAX);
	for (size_t more = 0; more < 2; more++) {
		struct manifest m = { 0 };
		struct error err = { 0 };

		buf_clear(&text);
		buf_text(&text, HEAD "d 755 ");
		for (size_t i = 0; i < MANIFEST_PATH_MAX + more; i++)
			buf_text(&text, "%01");
		buf_char(&text, '\n');
		assert_int_equal(
			manifest_parse((struct str){ text.data, text.len }, &arena, &m, &err),
			more ? -1 : 0);
	}
}

static void names_are_judged(void **state)
{
	assert_true(manifest_is_named("python-wheel", "Foo.bar_baz-1", "1!2.0+cu118"));
	assert_true(manifest_is_named("python", "base", ""));
	assert_false(manifest_is_named("", "base", ""));
	assert_false(manifest_is_named("python", "", ""));
	assert_false(manifest_is_named("python", "a\nb", ""));
	assert_false(manifest_is_named("python", "a", "1\n"));
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(an_entry_of_each_kind_prints_sorted_and_escaped),
		test(what_parses_prints_to_the_same_bytes),
		test(other_spellings_and_other_trees_are_refused_by_line),
		test(a_path_is_as_long_as_it_may_be_and_no_longer),
		test(names_are_judged),
	};

	return cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
}
