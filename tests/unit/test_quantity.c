/* Quantities: what people type, exactly, and nothing that only looks like it. */
#include <string.h>
#include "format/text/quantity.h"
#include "unit.h"

struct good {
	const char *text;
	uint64_t value;
};
typedef int parse_function(const char *text, uint64_t *value, struct error *err);

static void assert_all_good(parse_function *parse, const struct good *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct error err = { .text = "none" };
		uint64_t value = 77;

		if (parse(cases[i].text, &value, &err) < 0)
			fail_msg("'%s': %s", cases[i].text, err.text);
		if (value != cases[i].value)
			fail_msg("'%s' is %llu", cases[i].text, (unsigned long long)value);
	}
}

static void assert_all_bad(parse_function *parse, const char *const *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct error err = { 0 };
		uint64_t value = 77;

		if (parse(cases[i], &value, &err) == 0)
			fail_msg("'%s' is %llu", cases[i], (unsigned long long)value);
		assert_int_equal(err.code, ERR_INVALID);
		assert_int_equal(value, 77);
	}
}
#define GOOD(parse, ...)                                                                           \
	assert_all_good(parse, (const struct good[]){ __VA_ARGS__ },                               \
		sizeof((const struct good[]){ __VA_ARGS__ }) / sizeof(struct good))
#define BAD(parse, ...)                                                                            \
	assert_all_bad(parse, (const char *const[]){ __VA_ARGS__ },                                \
		sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void sizes_are_powers_of_1024_in_any_spelling(void **state)
{
	GOOD(quantity_parse_size, { "0", 0 }, { "1048576", 1048576 }, { "512K", 512 << 10 },
		{ "512M", 512 << 20 }, { "1G", 1 << 30 }, { "2T", 2ull << 40 },
		{ "512MB", 512 << 20 }, { "512MiB", 512 << 20 }, { "512mib", 512 << 20 },
		{ "1.5G", 3ull << 29 }, { "1.5g", 3ull << 29 }, { ".5K", 512 }, { "0.1K", 102 },
		{ "100B", 100 }, { "007", 7 }, { "7E", 7ull << 60 }, { "1.999999999K", 2047 },
		{ "9223372036854775807", INT64_MAX }, { "0G", 0 }, { "0.0G", 0 });
}

static void other_text_is_not_a_size(void **state)
{
	BAD(quantity_parse_size, "", " ", "G", "-1", "+1", "1 G", " 1G", "1G ", "12X", "1GG", "1iB",
		"1Ki", "0x10", "1e3", "1..5G", "1.G", ".", "1.5", "1.5B", "0.0001K", "1,5G",
		"1.0000000001G", "8E", "9223372036854775808", "18446744073709551616",
		"99999999999999999999999", "9007199254740993K", "16777216T", "inf", "1G\n",
		"\xd9\xa1");
}

static void durations_have_units_and_bare_ones_are_seconds(void **state)
{
	GOOD(quantity_parse_duration, { "0", 0 }, { "300", 300000 }, { "300s", 300000 },
		{ "1500ms", 1500 }, { "5m", 300000 }, { "2h", 7200000 }, { "7d", 604800000 },
		{ "1.5s", 1500 }, { "0.001", 1 }, { ".5m", 30000 }, { "1.0009s", 1000 },
		{ "36525d", 3155760000000 });
}

static void other_text_is_not_a_duration(void **state)
{
	BAD(quantity_parse_duration, "", "s", "-1s", "1 s", "5M", "5min", "1S", "1h30m", "1.5ms",
		"0.0001s", "36525.1d", "36526d", "99999999999999999999d", "9223372036854775807d",
		"1s ", "NaN");
}

static int parse_1_to_4096(const char *text, uint64_t *value, struct error *err)
{
	return quantity_parse_count(text, 1, 4096, value, err);
}

static void counts_are_whole_and_in_range(void **state)
{
	uint64_t value;

	GOOD(parse_1_to_4096, { "1", 1 }, { "4096", 4096 }, { "0256", 256 });
	BAD(parse_1_to_4096, "", "0", "4097", "-1", "1.0", "1k", " 1", "18446744073709551617");
	assert_int_equal(
		quantity_parse_count("18446744073709551615", 0, UINT64_MAX, &value, NULL), 0);
	assert_true(value == UINT64_MAX);
}

static void cpus_are_thousandths(void **state)
{
	GOOD(quantity_parse_cpus, { "0.5", 500 }, { "2", 2000 }, { "1.25", 1250 }, { "0.01", 10 },
		{ ".5", 500 }, { "4096", 4096000 }, { "0.0155", 15 }, { "1.000000000", 1000 });
	BAD(quantity_parse_cpus, "", "0", "0.009", "0.0099999", "4096.001", "4097", "-1", "1cpu",
		"1 ", "1.", "18446744073709551616");
}

static void errors_repeat_what_was_typed_and_what_is_allowed(void **state)
{
	struct error err;
	uint64_t value;

	quantity_parse_size("12X", &value, &err);
	assert_string_equal(err.text, "'12X' is not a size; try 512M or 1G");
	quantity_parse_count("0", 1, 10, &value, &err);
	assert_string_equal(err.text, "'0' is not a whole number from 1 to 10");
	quantity_parse_duration("1\n", &value, &err);
	assert_non_null(strstr(err.text, "'1\\x0a' is not a duration; try"));
	quantity_parse_cpus("many", &value, &err);
	assert_non_null(strstr(err.text, "0.01 to 4096"));
}

static void sizes_for_people_are_short_and_rounded(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = { { 0, "0" }, { 900, "900" }, { 1023, "1023" }, { 1024, "1.0K" },
		{ 1536, "1.5K" }, { 17 << 10, "17K" }, { 10188, "9.9K" }, { 10189, "10K" },
		{ 1023 << 10, "1023K" }, { (1024 << 10) - 512, "1.0M" }, { 512 << 20, "512M" },
		{ 1 << 30, "1.0G" }, { 1ull << 40, "1.0T" }, { 1ull << 50, "1.0P" },
		{ INT64_MAX, "8.0E" }, { UINT64_MAX, "16E" } };
	char out[16];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		quantity_format_size(out, cases[i].bytes);
		assert_string_equal(out, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_powers_of_1024_in_any_spelling),
		cmocka_unit_test(other_text_is_not_a_size),
		cmocka_unit_test(durations_have_units_and_bare_ones_are_seconds),
		cmocka_unit_test(other_text_is_not_a_duration),
		cmocka_unit_test(counts_are_whole_and_in_range),
		cmocka_unit_test(cpus_are_thousandths),
		cmocka_unit_test(errors_repeat_what_was_typed_and_what_is_allowed),
		cmocka_unit_test(sizes_for_people_are_short_and_rounded),
	};

	return cmocka_run_group_tests_name("quantity", tests, NULL, NULL);
}
