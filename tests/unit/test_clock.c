/* Times: RFC 3339 for every instant, durations that never go back. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "unit.h"

static void known_instants_are_written_as_in_the_standard(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ -1, "1969-12-31T23:59:59.999Z" },
		{ 951782400000, "2000-02-29T00:00:00.000Z" },
		{ 951868799999, "2000-02-29T23:59:59.999Z" },
		{ 951868800000, "2000-03-01T00:00:00.000Z" },
		{ 4107542400000, "2100-03-01T00:00:00.000Z" },
		{ 4107542399999, "2100-02-28T23:59:59.999Z" },
		{ 1794718252123, "2026-11-15T04:50:52.123Z" },
		{ 253402300799999, "9999-12-31T23:59:59.999Z" },
	};
	char out[32];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		clock_format(out, cases[i].ms);
		assert_string_equal(out, cases[i].text);
	}
}

static void dates_agree_with_the_c_library_over_centuries(void **state)
{
	char ours[32], theirs[64];

	/* Steps of 1,000,003 s pass every month, hour and minute; years 1600 to 2400. */
	for (int64_t at = -11676096000; at < 13569465600; at += 1000003) {
		time_t seconds = (time_t)at;
		struct tm tm;

		assert_non_null(gmtime_r(&seconds, &tm));
		strftime(theirs, sizeof theirs, "%Y-%m-%dT%H:%M:%S.007Z", &tm);
		clock_format(ours, at * 1000 + 7);
		assert_string_equal(ours, theirs);
	}
}

static void dates_of_http_agree_with_the_c_library(void **state)
{
	char ours[40], theirs[64];

	for (int64_t at = -11676096000; at < 13569465600; at += 1000003) {
		time_t seconds = (time_t)at;
		struct tm tm;

		assert_non_null(gmtime_r(&seconds, &tm));
		strftime(theirs, sizeof theirs, "%a, %d %b %Y %H:%M:%S GMT", &tm);
		clock_format_http(ours, at * 1000 + 999);
		assert_string_equal(ours, theirs);
	}
}

static void the_ends_of_time_fit(void **state)
{
	char out[32], date[40];

	clock_format(out, INT64_MAX);
	assert_string_equal(out, "292278994-08-17T07:12:55.807Z");
	clock_format(out, INT64_MIN);
	assert_string_equal(out, "-292275055-05-16T16:47:04.192Z");
	clock_format_http(date, INT64_MAX);
	assert_string_equal(date, "Sun, 17 Aug 292278994 07:12:55 GMT");
}

static void now_is_now(void **state)
{
	char before[32], now[32], after[32];
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	clock_format(before, (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
	clock_format_now(now);
	clock_gettime(CLOCK_REALTIME, &ts);
	clock_format(after, (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
	assert_true(strcmp(before, now) <= 0);
	assert_true(strcmp(now, after) <= 0);
}

static void monotonic_time_is_the_kernels_in_nanoseconds(void **state)
{
	struct timespec ts;
	uint64_t before = clock_monotonic_ns();

	clock_gettime(CLOCK_MONOTONIC, &ts);
	uint64_t kernel = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	uint64_t after = clock_monotonic_ns();
	assert_true(before <= kernel && kernel <= after);
	uint64_t ms = clock_monotonic_ms(), last = clock_monotonic_ns();
	assert_in_range(ms, after / 1000000, last / 1000000);
}

static void cpu_time_is_what_the_kernel_charges(void **state)
{
	struct rusage usage;
	uint64_t before = clock_process_cpu_us();

	/* Work until it shows; a clock that stands still would never end this, and meson ends the
	 * test. */
	while (clock_process_cpu_us() < before + 2000)
		;
	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	uint64_t charged = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
			   (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	uint64_t used = clock_process_cpu_us();
	/* rusage rounds each part down to a tick at worst. */
	assert_true(used >= before + 2000);
	assert_in_range(used, charged > 20000 ? charged - 20000 : 0, charged + 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_instants_are_written_as_in_the_standard),
		cmocka_unit_test(dates_agree_with_the_c_library_over_centuries),
		cmocka_unit_test(dates_of_http_agree_with_the_c_library),
		cmocka_unit_test(the_ends_of_time_fit),
		cmocka_unit_test(now_is_now),
		cmocka_unit_test(monotonic_time_is_the_kernels_in_nanoseconds),
		cmocka_unit_test(cpu_time_is_what_the_kernel_charges),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
