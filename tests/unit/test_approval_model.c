/* model/nouns/approval.c: the bytes that were asked for, what is kept to run them, times and
 * quoting. */
/* security: authority */
#include "policy/approval.h"

#include <string.h>
#include "unit.h"

static struct error err;

static struct approval describe(struct arena *arena, const struct exec_spec *spec)
{
	struct approval approval = { .id = "aaaaaaaaaaaaaaaaaaaa", .exec = "bbbbbbbbbbbbbbbbbbbb" };
	assert_int_equal(approval_describe(&approval, spec, true, arena, &err), 0);
	return approval;
}

/* As core does over a restart: through the document of the store. */
static struct approval store(struct arena *arena, const struct approval *approval)
{
	struct approval read = *approval;
	auto_buf struct buf document = buf_empty(BUF_MAX_DEFAULT);
	record_print_kept(&approval_record, approval, &document);
	struct str text = { arena_bytes(arena, document.data, document.len), document.len };
	if (record_read_kept(&approval_record, text, arena, &read, &err))
		fail_msg("%s", err.text);
	return read;
}

static void bytes_that_are_not_utf8_run_as_they_were_shown(void **state)
{
	auto_arena struct arena arena = { 0 };
	const char *argv[] = { "printf", "\xff\xfe", "plain", NULL };
	struct exec_spec spec = { .argv = { argv, 3, 3 }, .cwd = "/workspace/\xc3" }, back;
	struct approval approval = describe(&arena, &spec);
	assert_int_equal(approval.encoding, APPROVAL_BASE64);
	assert_string_equal(approval.argv.items[1], "//4=");
	approval = store(&arena, &approval);
	assert_int_equal(approval_read_spec(&approval, &arena, &back, &err), 0);
	assert_int_equal(back.argv.count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(back.argv.items[i], argv[i]);
	assert_null(back.argv.items[3]);
	assert_string_equal(back.cwd, spec.cwd);
	assert_true(back.background);
}

static void what_else_an_exec_needs_survives(void **state)
{
	auto_arena struct arena arena = { 0 };
	const char *argv[] = { "/bin/sh", "-c", "docker build .", NULL };
	struct text_pair env[] = { { "A", "1" }, { "B", "" } };
	struct exec_spec spec = { .argv = { argv, 3, 3 },
		.command = argv[2],
		.env = { env, 2, 2 },
		.stdin_text = { "a\0b", 3 },
		.has_stdin_text = true,
		.timeout_ms = 5,
		.output_bytes = 77,
		.background = true };
	struct exec_spec back;
	struct approval approval = describe(&arena, &spec);
	assert_int_equal(approval.encoding, APPROVAL_BASE64); /* of the NUL in stdin */
	assert_string_equal(approval.command, "ZG9ja2VyIGJ1aWxkIC4=");
	assert_string_equal(approval.input, "YQBi");
	assert_string_equal(approval.env.items[0].value, "MQ==");
	assert_int_equal(approval.argv.count, 0);
	approval = store(&arena, &approval);
	assert_string_equal(approval.input, "YQBi");
	assert_int_equal(approval.env.count, 2);
	assert_int_equal(approval_read_spec(&approval, &arena, &back, &err), 0);
	assert_string_equal(back.argv.items[2], "docker build .");
	assert_string_equal(back.id, "bbbbbbbbbbbbbbbbbbbb");
	assert_int_equal(back.env.count, 2);
	assert_string_equal(back.env.items[1].key, "B");
	assert_int_equal(back.stdin_text.len, 3);
	assert_memory_equal(back.stdin_text.data, "a\0b", 3);
	assert_int_equal(back.timeout_ms, 5);
	assert_int_equal(back.output_bytes, 77);
}

static void a_command_that_is_too_long_is_refused(void **state)
{
	auto_arena struct arena arena = { 0 };
	char *word = arena_alloc(&arena, APPROVAL_BYTES_MAX + 1);
	memset(word, 'a', APPROVAL_BYTES_MAX);
	const char *argv[] = { word, NULL };
	struct exec_spec spec = { .argv = { argv, 1, 1 } };
	struct approval approval = { 0 };
	assert_int_equal(approval_describe(&approval, &spec, false, &arena, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	word[1] = 0;
	spec.stdin_text = (struct str){ word, APPROVAL_BYTES_MAX + 1 };
	assert_int_equal(approval_describe(&approval, &spec, true, &arena, &err), -1);
	assert_int_equal(approval_describe(&approval, &spec, false, &arena, &err), -1);
}

static void steps_that_asked_are_kept_first(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct policy_verdict verdict = { .decision = POLICY_ASK };
	for (int i = 0; i < 3 * APPROVAL_STEPS_MAX; i++)
		vec_push(&arena, &verdict.trail,
			(struct policy_step){ .subject = i == 150 ? "asked" : "allowed",
				.decision = i == 150 ? POLICY_ASK : POLICY_ALLOW });
	struct approval approval = { 0 };
	policy_fill_approval(&approval, &verdict, &arena);
	assert_true(approval.trail_is_cut);
	assert_non_null(strstr(approval.trail, "\"subject\":\"asked\""));
	assert_non_null(strstr(approval.trail, "\"decision\":\"ask\""));
}

static void rules_are_suggested_only_for_all_that_was_asked(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct policy_step steps[] = { { .subject = "ls", .decision = POLICY_ALLOW, .rule = "x" },
		{ .subject = "docker build .",
			.decision = POLICY_ASK,
			.suggestion = "shell(docker build:*)" },
		{ .subject = "$x", .decision = POLICY_ASK } };
	struct policy_verdict verdict = { POLICY_ASK, { steps, 2, 3 } };
	struct approval approval = { 0 }, partly = { 0 }, ruled = { 0 };
	policy_fill_approval(&approval, &verdict, &arena);
	assert_int_equal(approval.suggested.count, 1);
	assert_string_equal(approval.suggested.items[0], "shell(docker build:*)");
	assert_null(approval.always_refused);
	verdict.trail.count = 3;
	policy_fill_approval(&partly, &verdict, &arena);
	assert_int_equal(partly.suggested.count, 0);
	assert_string_equal(partly.always_refused, "no rule can say '$x'");
	steps[1].rule = "shell(docker:*)";
	policy_fill_approval(&ruled, &verdict, &arena);
	assert_string_equal(ruled.always_refused, "the rule 'shell(docker:*)' asks each time");
}

static void a_clock_that_is_set_neither_expires_nor_keeps(void **state)
{
	const struct approval a = { .created_ms = 1000000,
		.expires_ms = 1060000,
		.ttl_ms = 60000,
		.began_ms = 500,
		.boot = "one" };
	/* The same boot: the wall clock doesn't count. */
	assert_int_equal(approval_left_ms(&a, "one", 99000000, 10500), 50000);
	assert_int_equal(approval_left_ms(&a, "one", 0, 10500), 50000);
	assert_int_equal(approval_left_ms(&a, "one", 1010000, 60500), 0);
	/* Another boot, or one that isn't known: the wall clock, up to the whole time. */
	assert_int_equal(approval_left_ms(&a, "two", 1010000, 10), 50000);
	assert_int_equal(approval_left_ms(&a, "two", 99000000, 10500), 0);
	assert_int_equal(approval_left_ms(&a, "two", 0, 10500), 60000);
	assert_int_equal(approval_left_ms(&a, "", 1010000, 10500), 50000);
}

static void words_are_shown_without_tricks(void **state)
{
	static const struct {
		const char *words[3];
		const char *shown;
	} rows[] = {
		{ { "ls", "-l", "/a_b.c" }, "ls -l /a_b.c" },
		{ { "echo", "a b", "it's" }, "echo 'a b' 'it'\\''s'" },
		{ { "echo", "", "$x" }, "echo '' '$x'" },
		{ { "x", "a\nb", "a\033[2J" }, "x $'a\\nb' $'a\\x1b[2J'" },
		{ { "x", "\u202egpj", "\xff" }, "x $'\\xe2\\x80\\xaegpj' $'\\xff'" },
		{ { "x", "a\u200bb", "\xc2\x9b" }, "x $'a\\xe2\\x80\\x8bb' $'\\xc2\\x9b'" },
		{ { "x", "grün", "日本" }, "x 'grün' '日本'" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
		approval_print_words(rows[i].words, 3, &out);
		assert_string_equal(out.data, rows[i].shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_that_are_not_utf8_run_as_they_were_shown),
		cmocka_unit_test(what_else_an_exec_needs_survives),
		cmocka_unit_test(a_command_that_is_too_long_is_refused),
		cmocka_unit_test(steps_that_asked_are_kept_first),
		cmocka_unit_test(rules_are_suggested_only_for_all_that_was_asked),
		cmocka_unit_test(a_clock_that_is_set_neither_expires_nor_keeps),
		cmocka_unit_test(words_are_shown_without_tricks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
