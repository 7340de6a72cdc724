/* Mounts of workspaces as text: what is encoded is decoded, and nothing else is. */
/* security: files */
#include <string.h>
#include "sandbox/plan/grants.h"
#include "unit.h"

static void what_is_encoded_is_decoded(void **state)
{
	const struct grant given[] = { { GRANT_DIR, "/home/a", "/workspace", false, 1, 2 },
		{ GRANT_BIND, "/data/x y", "/mnt/x", true, 3, 4 },
		{ GRANT_TREE, "skills", "/workspace/skills", false, 0, 0 } };
	struct grant read[GRANTS_MAX];
	struct error err;
	size_t count;
	auto_buf struct buf text = buf_empty(GRANTS_BYTES_MAX);
	grants_encode(given, 3, &text);
	assert_int_equal(grants_decode((struct str){ text.data, text.len }, read, &count, &err), 0);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(read[i].kind, given[i].kind);
		assert_string_equal(read[i].source, given[i].source);
		assert_string_equal(read[i].target, given[i].target);
		assert_int_equal(read[i].read_only, given[i].read_only);
		assert_int_equal(read[i].device, given[i].device);
		assert_int_equal(read[i].inode, given[i].inode);
	}
}

static void hostile_lists_are_refused(void **state)
{
	static const struct grant bad[] = { { GRANT_BIND, "/", "/x", false, 0, 0 },
		{ GRANT_BIND, "relative", "/x", false, 0, 0 },
		{ GRANT_BIND, "/a/../b", "/x", false, 0, 0 },
		{ GRANT_BIND, "/a", "/proc/1", false, 0, 0 },
		{ GRANT_BIND, "/a", "/workspace", false, 0, 0 },
		{ GRANT_BIND, "/a", "/", false, 0, 0 }, { GRANT_DIR, "/a", "/x", false, 0, 0 },
		{ GRANT_DIR, "/a", "/workspace", true, 0, 0 },
		{ GRANT_TREE, "../x", "/x", false, 0, 0 },
		{ GRANT_TREE, "a/b", "/x", false, 0, 0 } };
	struct grant read[GRANTS_MAX];
	struct error err;
	size_t count;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		auto_buf struct buf text = buf_empty(GRANTS_BYTES_MAX);
		grants_encode(&bad[i], 1, &text);
		struct str all = { text.data, text.len };
		assert_int_equal(grants_decode(all, read, &count, &err), -1);
		assert_int_equal(err.code, ERR_CORRUPT);
	}
	const char cut[] = "bind\0/a\0/x\0ro\0";
	assert_int_equal(
		grants_decode((struct str){ cut, sizeof cut - 1 }, read, &count, &err), -1);
	assert_int_equal(grants_decode(STR("bind"), read, &count, &err), -1);
}

static void trees_are_named_plainly(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct grant grant;
	struct error err;
	assert_int_equal(grant_parse_tree("skills:/workspace/s:ro", &arena, &grant, &err), 0);
	assert_string_equal(grant.source, "skills");
	assert_true(grant.read_only);
	assert_int_equal(grant_parse_tree("Skills:/s", &arena, &grant, &err), -1);
	assert_int_equal(grant_parse_tree("skills", &arena, &grant, &err), -1);
	assert_int_equal(grant_parse_tree("skills:relative", &arena, &grant, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_encoded_is_decoded),
		cmocka_unit_test(hostile_lists_are_refused),
		cmocka_unit_test(trees_are_named_plainly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
