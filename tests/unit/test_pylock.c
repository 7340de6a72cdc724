/* pylock.c: what uv writes is read, and printed so that uv reads it. */
#include "format/packages/pylock.h"
#include "unit.h"

#define HASH_A "361ca0950cc7082f53fa69e9328409f40a62c61e57e0a47e1825a08078a58a53"
#define HASH_B "f072f4d804ea359e4eaf198b1af7a8b0943881a87f31bb764f8bf219bb9419e0"
static const char written_by_uv[] =
	"lock-version = \"1.0\"\ncreated-by = \"uv\"\nrequires-python = \">=3.11.2\"\n\n"
	"[[packages]]\nname = \"pydantic-core\"\nversion = \"2.50.4\"\nindex = "
	"\"https://index.example/simple\"\n"
	"sdist = { url = \"https://files.example/p.tar.gz\", hashes = { sha256 = \"" HASH_B
	"\" } }\n"
	"wheels = [\n    { url = \"https://files.example/a/p-1.whl\", upload-time = "
	"2026-11-05T09:11:52Z, "
	"size = 12, hashes = { sha256 = \"" HASH_B "\" } },\n"
	"    { url = \"https://files.example/a/p-2.whl\", hashes = { sha256 = \"" HASH_A
	"\" } },\n]\n\n"
	"[[packages]]\nname = \"annotated_doc\"\nversion = \"0.0.6\"\nmarker = \"python_version > "
	"'3'\"\n"
	"wheels = [{ url = \"https://files.example/d.whl\", hashes = { sha256 = \"" HASH_A
	"\" } }]\n";

static void what_uv_wrote_is_read(void **state)
{
	auto_arena struct arena arena;
	struct error err = { 0 };
	pylock_list list = { 0 };
	arena_init(&arena);
	if (pylock_parse(str_from(written_by_uv), &arena, &list, &err))
		fail_msg("%s", err.text);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.items[0].name, "annotated-doc");
	assert_string_equal(list.items[0].version, "0.0.6");
	assert_string_equal(list.items[0].files.items[0].url, "https://files.example/d.whl");
	assert_int_equal(list.items[1].files.count, 2);
	assert_string_equal(list.items[1].files.items[1].sha256, HASH_A);
	assert_ptr_equal(pylock_find(&list, "pydantic-core"), &list.items[1]);
	assert_null(pylock_find(&list, "pip"));
}

static void as_a_lock_it_has_the_hashes_alone(void **state)
{
	auto_arena struct arena arena;
	auto_buf struct buf text;
	struct error err = { 0 };
	pylock_list list = { 0 };
	lock_list packages = { 0 };
	arena_init(&arena);
	buf_init(&text, 65536);
	assert_int_equal(pylock_parse(str_from(written_by_uv), &arena, &list, &err), 0);
	pylock_to_lock(&list, &arena, &packages);
	lock_print(&packages, &text);
	assert_string_equal(text.data, "annotated-doc==0.0.6 \\\n    --hash=sha256:" HASH_A "\n"
				       "pydantic-core==2.50.4 \\\n    --hash=sha256:" HASH_A
				       " \\\n    --hash=sha256:" HASH_B "\n");
}

static void what_is_printed_is_read_again(void **state)
{
	auto_arena struct arena arena;
	auto_buf struct buf first, second;
	struct error err = { 0 };
	pylock_list list = { 0 };
	arena_init(&arena);
	buf_init(&first, 65536);
	buf_init(&second, 65536);
	assert_int_equal(pylock_parse(str_from(written_by_uv), &arena, &list, &err), 0);
	pylock_print(&list, &first);
	assert_int_equal(
		pylock_parse((struct str){ first.data, first.len }, &arena, &list, &err), 0);
	pylock_print(&list, &second);
	assert_string_equal(first.data, second.data);
}

static void what_is_not_of_an_index_is_refused(void **state)
{
	static const char *const texts[] = {
		"[[packages]]\nname = \"a\"\nversion = \"1\"\n",
		"[[packages]]\nname = \"a\"\nwheels = [{ url = \"https://h/a.whl\", hashes = { "
		"sha256 = \"" HASH_A "\" } }]\n",
		"[[packages]]\nname = \"a b\"\nversion = \"1\"\n",
		"[[packages]]\nname = \"a\"\nversion = \"1 \\\"2\"\n",
		"[[packages]]\nname = \"a\"\nversion = \"1\"\nwheels = [{ url = "
		"\"https://h/a.whl\" }]\n",
		"[[packages]]\nname = \"a\"\nversion = \"1\"\nwheels = [{ url = \"file:///a.whl\", "
		"hashes = { "
		"sha256 = \"" HASH_A "\" } }]\n",
		"[[packages]]\nname = \"a\"\nversion = \"1\"\nwheels = [{ url = "
		"\"https://h/a\\\"b.whl\", "
		"hashes = { sha256 = \"" HASH_A "\" } }]\n",
		"[[packages]]\nname = \"a\"\nversion = \"1\"\nwheels = [{ path = \"a.whl\", hashes "
		"= { sha256 = "
		"\"" HASH_A "\" } }]\n",
		"[[packages]]\nname = \"a\"\nversion = \"1\"\nwheels = [{ url = "
		"\"https://h/a.whl\", hashes = { "
		"sha256 = \"short\" } }]\n",
		"[[packages]]\nname = \"a\"\nversion = \"1\"\narchive = { url = "
		"\"https://h/a.whl\" }\n",
		"[[packages]]\nname = \"a\"\nversion = \"1\"\nvcs = { type = \"git\" }\n",
		"[[packages]]\nname = \"a\"\nversion = \"1\"\ndirectory = { path = \".\" }\n",
		"name = [",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		auto_arena struct arena arena;
		struct error err = { 0 };
		pylock_list list = { 0 };
		arena_init(&arena);
		if (!pylock_parse(str_from(texts[i]), &arena, &list, &err))
			fail_msg("was taken: %s", texts[i]);
		assert_int_equal(err.code, ERR_CORRUPT);
		assert_int_equal(list.count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_uv_wrote_is_read),
		cmocka_unit_test(as_a_lock_it_has_the_hashes_alone),
		cmocka_unit_test(what_is_printed_is_read_again),
		cmocka_unit_test(what_is_not_of_an_index_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
