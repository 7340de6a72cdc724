#include "unit.h"

#include "base/buf.h"
#include "model/nouns/pushed.h"

#define ID "0123456789abcdefghij"
#define CONTENT "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbccccccccccccccccdddddddddddddddd"

static struct snapshot example(const char *tag)
{
	return (struct snapshot){ .id = ID,
		.workspace = "vutsrqponmlkjihgfedc",
		.workspace_name = "demo",
		.version = 3,
		.tag = tag,
		.python = "3.12",
		.content_id = CONTENT };
}

static void keys_name_what_they_are_of(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct pushed_row row;
	struct snapshot plain = example(NULL), tagged = example("good.one-2");

	assert_string_equal(pushed_key(&plain, &arena), "workspace-snapshots/demo/v3." ID ".json");
	assert_true(pushed_key_read(pushed_key(&plain, &arena), &arena, &row));
	assert_null(row.tag);
	assert_true(pushed_key_read(pushed_key(&tagged, &arena), &arena, &row));
	assert_string_equal(row.workspace, "demo");
	assert_string_equal(row.id, ID);
	assert_string_equal(row.tag, "good.one-2");
	assert_int_equal(row.version, 3);
	assert_true(pushed_is_named(&row, "3") && pushed_is_named(&row, ID) &&
		    pushed_is_named(&row, "good.one-2"));
	assert_false(pushed_is_named(&row, "good") || pushed_is_named(&row, "4") ||
		     pushed_is_named(&row, ""));
}

static void other_keys_are_passed_over(void **state)
{
	static const char *const bad[] = { "", "archives/a", "workspace-snapshots/demo",
		"workspace-snapshots/demo/v3.json", "workspace-snapshots/demo/v." ID ".json",
		"workspace-snapshots/demo/3." ID ".json", "workspace-snapshots/demo/v3." ID,
		"workspace-snapshots/demo/v3." ID "x.json",
		"workspace-snapshots/demo/v3." ID "..json",
		"workspace-snapshots/demo/v3." ID ".1x.json",
		"workspace-snapshots/Demo/v3." ID ".json",
		"workspace-snapshots/demo/x/v3." ID ".json",
		"workspace-snapshots/demo/v3.0123456789ABCDEFGHIJ.json" };
	auto_arena struct arena arena = { 0 };
	struct pushed_row row;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(pushed_key_read(bad[i], &arena, &row));
}

static void a_manifest_is_read_as_it_was_printed(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf text = buf_empty(PUSHED_MANIFEST_MAX);
	struct snapshot read, s = example("good");
	pushed_layers layers = { 0 }, found;
	struct error err;

	vec_push(&arena, &layers, ((struct pushed_layer){ CONTENT, 42 }));
	pushed_print(&s, &layers, &text);
	const char *key = pushed_key(&s, &arena);
	assert_int_equal(
		pushed_read((struct str){ text.data, text.len }, key, &arena, &read, &found, &err),
		0);
	assert_string_equal(read.id, s.id);
	assert_string_equal(read.workspace, s.workspace);
	assert_string_equal(read.workspace_name, "demo");
	assert_string_equal(read.tag, "good");
	assert_string_equal(read.python, "3.12");
	assert_string_equal(read.content_id, CONTENT);
	assert_int_equal(read.version, 3);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.items[0].size_bytes, 42);
	for (size_t len = 0; len < text.len; len++)
		assert_int_equal(pushed_read((struct str){ text.data, len }, key, &arena, &read,
					 &found, &err),
			-1);
}

static void a_manifest_is_the_one_of_its_key(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf text = buf_empty(PUSHED_MANIFEST_MAX);
	struct snapshot read, s = example("good"), other = s;
	pushed_layers layers = { 0 }, found;
	struct error err;

	other.version++;
	pushed_print(&other, &layers, &text);
	assert_int_equal(pushed_read((struct str){ text.data, text.len }, pushed_key(&s, &arena),
				 &arena, &read, &found, &err),
		-1);
	assert_int_equal(err.code, ERR_INVALID);
}

/* A change that was undone and done again: an overlay of the same directory twice can't be mounted.
 */
static void a_layer_that_comes_again_is_taken_once(void **state)
{
	static const char other[] =
		"0000000000000000000000000000000000000000000000000000000000000000";
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf text = buf_empty(PUSHED_MANIFEST_MAX);
	struct snapshot read, s = example(NULL);
	pushed_layers layers = { 0 }, found;
	struct error err;

	for (size_t i = 0; i < 4; i++)
		vec_push(&arena, &layers, ((struct pushed_layer){ i % 2 ? other : CONTENT, i }));
	pushed_print(&s, &layers, &text);
	assert_int_equal(pushed_read((struct str){ text.data, text.len }, pushed_key(&s, &arena),
				 &arena, &read, &found, &err),
		0);
	assert_int_equal(found.count, 2);
	assert_string_equal(found.items[0].content_id, CONTENT);
	assert_string_equal(found.items[1].content_id, other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_name_what_they_are_of),
		cmocka_unit_test(other_keys_are_passed_over),
		cmocka_unit_test(a_manifest_is_read_as_it_was_printed),
		cmocka_unit_test(a_manifest_is_the_one_of_its_key),
		cmocka_unit_test(a_layer_that_comes_again_is_taken_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
