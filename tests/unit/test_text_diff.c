/* Unified diffs: applied to the old text by `git apply` they give the new one. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/buf.h"
#include "trees/stacks/snapshots.h"
#include "unit.h"

static unsigned long seed = 7;

static unsigned pick(unsigned most)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(seed >> 33) % most;
}

static struct str next_line(struct str *rest)
{
	const char *end = memchr(rest->data, '\n', rest->len);
	struct str line = { rest->data, end ? (size_t)(end - rest->data) + 1 : rest->len };
	rest->data += line.len;
	rest->len -= line.len;
	return line;
}

/* Applies hunks to `before`, checking every line and number that they name. */
static void apply(struct str before, struct str hunks, struct buf *out)
{
	size_t at = 0;
	struct str line = next_line(&hunks);
	while (line.len) {
		size_t old_first, new_first, old_count = 1, new_count = 1;
		char head[128];
		assert_true(line.len < sizeof head);
		memcpy(head, line.data, line.len);
		head[line.len] = 0;
		if (sscanf(head, "@@ -%zu,%zu +%zu,%zu @@", &old_first, &old_count, &new_first,
			    &new_count) != 4) {
			old_count = new_count = 1;
			if (sscanf(head, "@@ -%zu +%zu,%zu @@", &old_first, &new_first,
				    &new_count) != 3 &&
				sscanf(head, "@@ -%zu,%zu +%zu @@", &old_first, &old_count,
					&new_first) != 3)
				assert_int_equal(
					sscanf(head, "@@ -%zu +%zu @@", &old_first, &new_first), 2);
		}
		for (; at + 1 < old_first + !old_count; at++) {
			struct str same = next_line(&before);
			buf_append(out, same.data, same.len);
		}
		for (line = next_line(&hunks); line.len && line.data[0] != '@';
			line = next_line(&hunks)) {
			struct str text = { line.data + 1, line.len - 1 };
			if (str_starts_with(hunks, "\\ No newline")) {
				text.len--;
				next_line(&hunks);
			}
			if (line.data[0] != '+') {
				assert_true(str_equal(next_line(&before), text));
				at++;
				old_count--;
			}
			if (line.data[0] != '-') {
				buf_append(out, text.data, text.len);
				new_count--;
			}
		}
		assert_int_equal(old_count, 0);
		assert_int_equal(new_count, 0);
	}
	buf_append(out, before.data, before.len);
}

static void check(struct str before, struct str after)
{
	auto_buf struct buf hunks = buf_empty(BUF_MAX_DEFAULT);
	auto_buf struct buf got = buf_empty(BUF_MAX_DEFAULT);
	snapshot_text_diff(before, after, &hunks);
	apply(before, (struct str){ hunks.data, hunks.len }, &got);
	assert_true(str_equal((struct str){ got.data, got.len }, after));
}

static void random_text(struct buf *out, unsigned lines, unsigned kinds)
{
	for (unsigned i = 0; i < lines; i++)
		buf_printf(out, "line %u\n", pick(kinds));
	if (lines && pick(4) == 0)
		out->data[--out->len] = 0;
}

static void test_hunks_turn_the_old_text_into_the_new_one(void **state)
{
	for (int round = 0; round < 2000; round++) {
		auto_buf struct buf a = buf_empty(1 << 20), b = buf_empty(1 << 20);
		unsigned kinds = 1 + pick(30);
		random_text(&a, pick(60), kinds);
		random_text(&b, pick(60), kinds);
		check((struct str){ a.data, a.len }, (struct str){ b.data, b.len });
	}
}

static void test_few_edits_in_a_long_text_are_found(void **state)
{
	auto_buf struct buf a = buf_empty(1 << 22), b = buf_empty(1 << 22);
	auto_buf struct buf hunks = buf_empty(1 << 22);
	for (int i = 0; i < 50000; i++) {
		buf_printf(&a, "%d\n", i);
		if (i == 10)
			buf_text(&b, "ten\n");
		else if (i != 40000)
			buf_printf(&b, "%d\n", i);
	}
	snapshot_text_diff((struct str){ a.data, a.len }, (struct str){ b.data, b.len }, &hunks);
	assert_string_equal(hunks.data, "@@ -8,7 +8,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
					"@@ -39998,7 +39998,6 @@\n 39997\n 39998\n 39999\n-40000\n "
					"40001\n 40002\n 40003\n");
}

static void test_texts_without_a_common_line_are_replaced_in_bounded_time(void **state)
{
	auto_buf struct buf a = buf_empty(1 << 22), b = buf_empty(1 << 22);
	for (int i = 0; i < 100000; i++) {
		buf_printf(&a, "a%d\n", i);
		buf_printf(&b, "b%d\n", i);
	}
	check((struct str){ a.data, a.len }, (struct str){ b.data, b.len });
}

static void test_the_end_of_a_text_without_a_newline_is_named(void **state)
{
	auto_buf struct buf hunks = buf_empty(1 << 16);
	snapshot_text_diff(STR("a"), STR("a\n"), &hunks);
	assert_string_equal(hunks.data, "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
	buf_clear(&hunks);
	snapshot_text_diff(STR(""), STR("x\n"), &hunks);
	assert_string_equal(hunks.data, "@@ -0,0 +1 @@\n+x\n");
	buf_clear(&hunks);
	snapshot_text_diff(STR("x\n"), STR("x\n"), &hunks);
	assert_int_equal(hunks.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hunks_turn_the_old_text_into_the_new_one),
		cmocka_unit_test(test_few_edits_in_a_long_text_are_found),
		cmocka_unit_test(test_texts_without_a_common_line_are_replaced_in_bounded_time),
		cmocka_unit_test(test_the_end_of_a_text_without_a_newline_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
