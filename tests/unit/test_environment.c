/* Environments as data: names, times, and meta.json there and back. */
#include <string.h>
#include "base/clock.h"
#include "format/text/json_read.h"
#include "model/nouns/environment.h"
#include "unit.h"

#define HASH_A "a3f5b8c0d2e1f4a7b6c5d4e3f2a1b0c9a3f5b8c0d2e1f4a7b6c5d4e3f2a1b0c9"
#define HASH_B "00000000000000000000000000000000000000000000000000000000000000ff"
#define TIME "2026-11-15T04:50:52.123Z"

static void names_are_safe_as_files(void **state)
{
	static const char *const good[] = { "a", "vivid-commenter@1.0.0", "A_b.c-9", "_x", "@x",
		"9" };
	static const char *const bad[] = { "", ".", "..", ".a", "-a", "a/b", "a b", "a\n", "a:b",
		"\xc3\xa9", "a~" };
	char text[200];

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_true(env_package_id_is_valid(good[i]));
		assert_true(env_name_is_valid(good[i]));
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_false(env_package_id_is_valid(bad[i]));
		assert_false(env_name_is_valid(bad[i]));
	}
	memset(text, 'a', sizeof text);
	text[100] = '\0';
	assert_true(env_package_id_is_valid(text));
	text[100] = 'a';
	text[101] = '\0';
	assert_false(env_package_id_is_valid(text));
	text[101] = 'a';
	text[160] = '\0';
	assert_true(env_name_is_valid(text));
	text[160] = 'a';
	text[161] = '\0';
	assert_false(env_name_is_valid(text));
}

static void names_say_package_requirements_and_python(void **state)
{
	auto_arena struct arena arena = { 0 };
	char longest[101];

	assert_string_equal(env_name_make(&arena, "vivid-commenter@1.0.0", HASH_A, NULL),
		"vivid-commenter@1.0.0_a3f5b8c");
	assert_string_equal(env_name_make(&arena, "x", NULL, NULL), "x_no-deps");
	assert_string_equal(env_name_make(&arena, "x", "no-deps", NULL), "x_no-deps");
	assert_string_equal(env_name_make(&arena, "x", HASH_A, "3.12"), "x_a3f5b8c-py3.12");
	assert_string_equal(env_name_make(&arena, "x", NULL, "3.9"), "x_no-deps-py3.9");
	memset(longest, 'a', 100);
	longest[100] = '\0';
	assert_true(env_name_is_valid(env_name_make(&arena, longest, HASH_A, "3.14t")));
}

static void times_are_read_as_the_clock_writes_them(void **state)
{
	/* Every day of 1,600 years, and odd hours. */
	for (int64_t ms = -62167219200000; ms < -62167219200000 + 1600 * 31557600000ll;
		ms += 86400000 + 3723004) {
		int64_t back = 0;
		char text[32];

		clock_format(text, ms);
		assert_true(env_time_parse(text, &back));
		assert_true(back == ms);
	}
	int64_t at = 0;
	assert_true(env_time_parse("9999-12-31T23:59:59.999Z", &at));
	assert_true(at == 253402300799999);
	assert_true(env_time_parse("2024-02-29T00:00:00.000Z", &at));
}

static void other_text_is_not_a_time(void **state)
{
	static const char *const bad[] = { "", "2026", "2026-11-15T04:50:52Z",
		"2026-11-15 04:50:52.123Z", "2026-11-15T04:50:52.123z", "2026-11-15T04:50:52,123Z",
		"2026-13-15T04:50:52.123Z", "2026-00-15T04:50:52.123Z", "2026-11-31T04:50:52.123Z",
		"2026-11-00T04:50:52.123Z", "2023-02-29T00:00:00.000Z", "2100-02-29T00:00:00.000Z",
		"2026-11-15T24:50:52.123Z", "2026-11-15T04:60:52.123Z", "2026-11-15T04:50:60.123Z",
		"2026-11-15T04:50:52.12-Z", "+026-11-15T04:50:52.123Z", "2026-11-15T04:50:52.123ZZ",
		"2026-11-15T04:50:52.123+" };
	int64_t at = 77;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (env_time_parse(bad[i], &at))
			fail_msg("'%s' is a time", bad[i]);
	}
	assert_int_equal(at, 77);
}

static struct env_meta sample(struct arena *arena)
{
	struct env_meta meta = {
		.name = "vivid-commenter@1.0.0_a3f5b8c",
		.package_id = "vivid-commenter@1.0.0",
		.requirements_sha256 = HASH_A,
		.created_at = "2025-10-01T01:00:00.000Z",
		.last_used_at = TIME,
		.use_count = 7,
		.size_bytes = 84000000,
		.python_version = "3.11.5",
		.python = "/usr/bin/python3.11",
		.fingerprint = "f00d",
		.build_seconds = 12.345,
	};

	vec_push(arena, &meta.packages, (struct text_pair){ "fastapi", "0.109.0" });
	vec_push(arena, &meta.packages, (struct text_pair){ "grpcio", "1.73.1" });
	vec_push(arena, &meta.layers, HASH_B);
	vec_push(arena, &meta.layers, HASH_A);
	vec_push(arena, &meta.editables, "/srv/a \"b\"\n\xc3\xa9");
	vec_push(arena, &meta.indexes, "pypi");
	return meta;
}

static void meta_is_printed_as_agreed(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out;
	struct env_meta meta = sample(&arena);

	buf_init(&out, 10000);
	env_meta_print(&meta, &out);
	assert_string_equal(out.data, "{\n"
				      "  \"last_used_at\": \"" TIME "\",\n"
				      "  \"use_count\":                7,\n"
				      "  \"package_id\": \"vivid-commenter@1.0.0\",\n"
				      "  \"requirements_sha256\": \"" HASH_A "\",\n"
				      "  \"created_at\": \"2025-10-01T01:00:00.000Z\",\n"
				      "  \"python_version\": \"3.11.5\",\n"
				      "  \"installed_packages\": {\n"
				      "    \"fastapi\": \"0.109.0\",\n"
				      "    \"grpcio\": \"1.73.1\"\n"
				      "  },\n"
				      "  \"size\": 84000000,\n"
				      "  \"name\": \"vivid-commenter@1.0.0_a3f5b8c\",\n"
				      "  \"python\": \"/usr/bin/python3.11\",\n"
				      "  \"python_prefix\": null,\n"
				      "  \"fingerprint\": \"f00d\",\n"
				      "  \"system_site_packages\": false,\n"
				      "  \"build_seconds\": 12.345,\n"
				      "  \"layers\": [\n"
				      "    \"" HASH_B "\",\n"
				      "    \"" HASH_A "\"\n"
				      "  ],\n"
				      "  \"editables\": [\n"
				      "    \"/srv/a \\\"b\\\"\\n\xc3\xa9\"\n"
				      "  ],\n"
				      "  \"indexes\": [\n"
				      "    \"pypi\"\n"
				      "  ]\n"
				      "}\n");
}

static void assert_same(const struct env_meta *a, const struct env_meta *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->package_id, b->package_id);
	assert_string_equal(a->requirements_sha256, b->requirements_sha256);
	assert_string_equal(a->created_at, b->created_at);
	assert_string_equal(a->last_used_at, b->last_used_at);
	assert_true(a->use_count == b->use_count && a->size_bytes == b->size_bytes);
	assert_string_equal(a->python_version, b->python_version);
	assert_string_equal(a->python, b->python);
	assert_int_equal(a->python_prefix != NULL, b->python_prefix != NULL);
	if (a->python_prefix)
		assert_string_equal(a->python_prefix, b->python_prefix);
	assert_string_equal(a->fingerprint, b->fingerprint);
	assert_int_equal(a->system_site_packages, b->system_site_packages);
	assert_int_equal(a->has_notes, b->has_notes);
	assert_true(a->build_seconds == b->build_seconds);
	assert_int_equal(a->packages.count, b->packages.count);
	for (size_t i = 0; i < a->packages.count; i++) {
		assert_string_equal(a->packages.items[i].key, b->packages.items[i].key);
		assert_string_equal(a->packages.items[i].value, b->packages.items[i].value);
	}
	assert_int_equal(a->layers.count, b->layers.count);
	for (size_t i = 0; i < a->layers.count; i++)
		assert_string_equal(a->layers.items[i], b->layers.items[i]);
	assert_int_equal(a->editables.count, b->editables.count);
	for (size_t i = 0; i < a->editables.count; i++)
		assert_string_equal(a->editables.items[i], b->editables.items[i]);
	assert_int_equal(a->indexes.count, b->indexes.count);
	for (size_t i = 0; i < a->indexes.count; i++)
		assert_string_equal(a->indexes.items[i], b->indexes.items[i]);
}

static void assert_round_trip(const struct env_meta *meta)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out, again;
	struct env_meta parsed;
	struct error err = { 0 };

	buf_init(&out, 100000);
	buf_init(&again, 100000);
	env_meta_print(meta, &out);
	if (env_meta_parse((struct str){ out.data, out.len }, &arena, &parsed, &err) < 0)
		fail_msg("%s", err.text);
	assert_same(meta, &parsed);
	env_meta_print(&parsed, &again);
	assert_string_equal(out.data, again.data);
}

static void meta_comes_back_as_it_was(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct env_meta meta = sample(&arena);

	assert_round_trip(&meta);
	meta.python_prefix = "/opt/python";
	meta.system_site_packages = true;
	meta.has_notes = true;
	meta.use_count = 1000000000000;
	meta.size_bytes = INT64_MAX;
	meta.build_seconds = 0;
	meta.requirements_sha256 = "no-deps";
	meta.packages.count = meta.layers.count = meta.editables.count = meta.indexes.count = 0;
	assert_round_trip(&meta);
}

static void a_use_is_written_in_place(void **state)
{
	static const uint64_t counts[] = { 0, 1, 99999, 1000000000000, 999999999999999 };
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out;
	struct env_meta meta = sample(&arena), parsed;
	char use[ENV_META_USE_LEN + 1];

	buf_init(&out, 10000);
	env_meta_print(&meta, &out);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		env_meta_print_use("2031-01-02T03:04:05.006Z", counts[i], use);
		assert_int_equal(strlen(use), ENV_META_USE_LEN);
		memcpy(out.data, use, ENV_META_USE_LEN);
		assert_int_equal(
			env_meta_parse((struct str){ out.data, out.len }, &arena, &parsed, NULL),
			0);
		meta.use_count = counts[i];
		meta.last_used_at = "2031-01-02T03:04:05.006Z";
		assert_same(&meta, &parsed);
	}
	/* More than there is room for stays at the most. */
	env_meta_print_use(TIME, UINT64_MAX, use);
	assert_int_equal(strlen(use), ENV_META_USE_LEN);
	assert_non_null(strstr(use, " 999999999999999,"));
	assert_aborts(env_meta_print_use("2031-01-02T03:04:05Z", 1, use));
	assert_aborts(env_meta_print_use("", 1, use));
}

/* meta.json of the sample with the first `from` replaced. */
static void assert_corrupt(const char *from, const char *to, const char *expected)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out, changed;
	struct env_meta meta = sample(&arena), untouched = { .name = "untouched" };
	struct error err = { 0 };

	buf_init(&out, 10000);
	buf_init(&changed, 10000);
	env_meta_print(&meta, &out);
	const char *at = strstr(out.data, from);
	assert_non_null(at);
	buf_append(&changed, out.data, (size_t)(at - out.data));
	buf_text(&changed, to);
	buf_text(&changed, at + strlen(from));
	struct str text = { changed.data, changed.len };
	if (env_meta_parse(text, &arena, &untouched, &err) == 0)
		fail_msg("'%s' for '%s' was read", to, from);
	assert_string_equal(untouched.name, "untouched");
	assert_int_equal(err.code, ERR_CORRUPT);
	assert_string_equal(err.text, expected);
}

static void damage_is_named(void **state)
{
	static const char *const fields[] = { "last_used_at", "use_count", "package_id",
		"requirements_sha256", "created_at", "python_version", "installed_packages", "size",
		"name", "python", "python_prefix", "fingerprint", "system_site_packages",
		"build_seconds", "layers", "editables", "indexes" };
	char from[64], expected[100];

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		str_format(from, sizeof from, "\"%s\": ", fields[i]);
		str_format(expected, sizeof expected, "field '%s' is missing or wrong", fields[i]);
		assert_corrupt(from, "\"other\": ", expected);
	}
	assert_corrupt("               7", "-7", "field 'use_count' is missing or wrong");
	assert_corrupt(
		"               7", "1000000000000000", "field 'use_count' is missing or wrong");
	assert_corrupt("a3f5b8c0", "A3f5b8c0", "field 'requirements_sha256' is missing or wrong");
	assert_corrupt("\"1.73.1\"", "173", "field 'installed_packages' is missing or wrong");
	assert_corrupt("\"" HASH_B, "\"../" HASH_B, "field 'layers' is missing or wrong");
	assert_corrupt("_a3f5b8c", "/a3f5b8c", "field 'name' is missing or wrong");
	assert_corrupt("/usr/bin", "usr/bin", "field 'python' is missing or wrong");
	assert_corrupt("/srv", "srv", "field 'editables' is missing or wrong");
	assert_corrupt("\"pypi\"", "\"\\u0000\"", "field 'indexes' is missing or wrong");
	assert_corrupt("12.345", "-1", "field 'build_seconds' is missing or wrong");
	assert_corrupt("84000000", "84000000.5", "field 'size' is missing or wrong");
	assert_corrupt("3.11.5", "x", "field 'python_version' is missing or wrong");
	assert_corrupt("\n}\n", "", "line 28, column 4: ',' or '}' expected");
	assert_corrupt("\"size\"", "\"name\"", "line 13, column 3: duplicate key 'name'");
}

static void other_json_is_no_meta(void **state)
{
	static const char *const bad[] = { "", "[]", "null", "{}", "{\"name\":", "\xff" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		auto_arena struct arena arena = { 0 };
		struct env_meta meta;
		struct error err = { 0 };

		assert_int_equal(env_meta_parse(str_from(bad[i]), &arena, &meta, &err), -1);
		assert_int_equal(err.code, ERR_CORRUPT);
		assert_int_equal(env_meta_parse(str_from(bad[i]), &arena, &meta, NULL), -1);
	}
}

static void unknown_fields_are_passed_over(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out;
	struct env_meta meta = sample(&arena), parsed;

	buf_init(&out, 10000);
	env_meta_print(&meta, &out);
	out.len -= strlen("\n}\n");
	buf_text(&out, ",\n  \"later\": [1, {\"a\": null}]\n}\n");
	assert_int_equal(
		env_meta_parse((struct str){ out.data, out.len }, &arena, &parsed, NULL), 0);
	assert_same(&meta, &parsed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_safe_as_files),
		cmocka_unit_test(names_say_package_requirements_and_python),
		cmocka_unit_test(times_are_read_as_the_clock_writes_them),
		cmocka_unit_test(other_text_is_not_a_time),
		cmocka_unit_test(meta_is_printed_as_agreed),
		cmocka_unit_test(meta_comes_back_as_it_was),
		cmocka_unit_test(a_use_is_written_in_place),
		cmocka_unit_test(damage_is_named),
		cmocka_unit_test(other_json_is_no_meta),
		cmocka_unit_test(unknown_fields_are_passed_over),
	};

	return cmocka_run_group_tests_name("environment", tests, NULL, NULL);
}
