/* Percent-encoding, queries, authorities, server-sent events. */
#include <string.h>
#include "format/http/sse.h"
#include "format/http/uri.h"
#include "unit.h"

static void what_is_encoded_decodes_to_itself(void **state)
{
	auto_arena struct arena arena;
	char all[255];
	struct str out;

	arena_init(&arena);
	for (int i = 0; i < 255; i++)
		all[i] = (char)(i + 1);
	for (int keep = 0; keep < 2; keep++) {
		const char *text = uri_encode(&arena, (struct str){ all, sizeof all }, keep);
		assert_true(uri_decode(&arena, str_from(text), keep, &out));
		assert_true(str_equal(out, (struct str){ all, sizeof all }));
	}
	assert_string_equal(uri_encode(&arena, STR("a b/c+~"), true), "a%20b/c%2B~");
	assert_string_equal(uri_encode(&arena, STR("a/b"), false), "a%2Fb");
}

static void malformed_encoding_and_nul_are_refused(void **state)
{
	static const char *const bad[] = { "%", "%4", "a%", "%4g", "%g4", "%%41", "%00", "a%00b",
		"%+1" };
	auto_arena struct arena arena;
	struct str out;

	arena_init(&arena);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (uri_decode(&arena, str_from(bad[i]), false, &out))
			fail_msg("taken: %s", bad[i]);
	assert_false(uri_decode(&arena, (struct str){ "a\0b", 3 }, false, &out));
	assert_true(uri_decode(&arena, STR("a+b%2bc"), false, &out));
	assert_true(str_is(out, "a+b+c"));
	assert_true(uri_decode(&arena, STR("a+b%2bc"), true, &out));
	assert_true(str_is(out, "a b+c"));
}

static void a_query_is_its_parameters(void **state)
{
	struct str rest = STR("a=1&b&&c=x=y&=z"), name, value;
	static const char *const expected[][2] = { { "a", "1" }, { "b", "" }, { "c", "x=y" },
		{ "", "z" } };

	for (size_t i = 0; i < 4; i++) {
		assert_true(uri_next_parameter(&rest, &name, &value));
		assert_true(str_is(name, expected[i][0]));
		assert_true(str_is(value, expected[i][1]));
	}
	assert_false(uri_next_parameter(&rest, &name, &value));
}

static void a_host_is_a_name_or_an_address_and_a_port(void **state)
{
	static const char *const good[] = { "", "localhost", "localhost:80", "a.b-c_d", "[::1]",
		"[::1]:8080", "127.0.0.1:1", "h:" };
	static const char *const bad[] = { "a b", "a,b", "a@b", "a/b", "a:b", "a:123456", "[::1",
		"[]", "[::1]x", "[::1]:x", "[g]", "a\tb", "a:1:2", "\xc3\xa9" };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (!uri_is_authority(str_from(good[i])))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (uri_is_authority(str_from(bad[i])))
			fail_msg("taken: %s", bad[i]);
	assert_false(uri_is_authority((struct str){ "a\0b", 3 }));
	assert_false(uri_is_authority((struct str){ "[1\0:]", 5 }));
}

static void events_come_out_as_they_went_in(void **state)
{
	const char *text =
		": hello\n\nevent: stdout\nid: 7\ndata: one\ndata:  two\n\ndata: three\r\n\r\n"
		"event: nothing\n\nretry: 9\ndata\n\ndata: cut";

	for (size_t step = 1; step <= strlen(text); step++) {
		struct str in = str_from(text);
		auto_buf struct buf seen;
		struct sse sse;

		buf_init(&seen, 1000);
		sse_init(&sse);
		for (size_t at = 0; at < in.len; at += step) {
			sse_add(&sse, (struct str){ in.data + at,
					      in.len - at < step ? in.len - at : step });
			while (sse_next(&sse, NULL) == 1)
				buf_printf(&seen, "%s/%s/%s;", sse.event, sse.id, sse.data.data);
		}
		assert_string_equal(seen.data, "stdout/7/one\n two;message/7/three;message/7/;");
		sse_done(&sse);
	}
}

static void an_id_counts_when_its_event_is_whole(void **state)
{
	static const struct {
		const char *text, *id;
	} steps[] = { { "id: 5\n\n", "5" }, { "id: 6\ndata: x\n", "5" }, { "\n", "6" },
		{ "id: 7\nevent: cut", "6" } };
	struct sse sse;

	sse_init(&sse);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		sse_add(&sse, str_from(steps[i].text));
		while (sse_next(&sse, NULL) == 1)
			;
		assert_string_equal(sse.id, steps[i].id);
	}
	sse_done(&sse);
}

static void an_event_has_a_maximum(void **state)
{
	struct sse sse;
	struct error err;
	static char junk[1 << 20];
	int status = 0;

	memset(junk, 'a', sizeof junk);
	sse_init(&sse);
	for (int i = 0; i < 17 && status == 0; i++) {
		sse_add(&sse, (struct str){ junk, sizeof junk });
		status = sse_next(&sse, &err);
	}
	assert_int_equal(status, -1);
	assert_int_equal(err.code, ERR_LIMIT);
	sse_done(&sse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_encoded_decodes_to_itself),
		cmocka_unit_test(malformed_encoding_and_nul_are_refused),
		cmocka_unit_test(a_query_is_its_parameters),
		cmocka_unit_test(a_host_is_a_name_or_an_address_and_a_port),
		cmocka_unit_test(events_come_out_as_they_went_in),
		cmocka_unit_test(an_id_counts_when_its_event_is_whole),
		cmocka_unit_test(an_event_has_a_maximum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
