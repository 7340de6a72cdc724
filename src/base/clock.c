#include <time.h>
#include "base/clock.h"

uint64_t clock_monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ms(void)
{
	return clock_monotonic_ns() / 1000000u;
}

uint64_t clock_process_cpu_us(void)
{
	struct timespec used;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000u + (uint64_t)used.tv_nsec / 1000u;
}

struct moment {
	long long year;
	int month, day, weekday; /* month: from 1; weekday: from Sunday, 0 */
	int hours, minutes, seconds, ms;
};

/* Not gmtime_r: it reads the host's time zone files first. */
static struct moment split(int64_t unix_ms)
{
	int64_t ms = unix_ms % 86400000, days = unix_ms / 86400000;
	if (ms < 0) {
		ms += 86400000;
		days--;
	}
	/* Years are counted from March, so that the leap day is the last one of its year, and eras
	 * of 400 years (146,097 days) from 0000-03-01, which is 719,468 days before 1970-01-01. */
	int64_t since = days + 719468;
	int64_t era = (since >= 0 ? since : since - 146096) / 146097;
	int64_t day_of_era = since - era * 146097;
	int64_t year_of_era =
		(day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	int64_t day_of_year =
		day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t month_from_march = (5 * day_of_year + 2) / 153;
	int day = (int)(day_of_year - (153 * month_from_march + 2) / 5 + 1);
	int month = (int)(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
	long long year = era * 400 + year_of_era + (month <= 2);
	return (struct moment){ .year = year,
		.month = month,
		.day = day,
		.weekday = (int)((days % 7 + 11) % 7), /* 1970-01-01 was a Thursday */
		.hours = (int)(ms / 3600000),
		.minutes = (int)(ms / 60000 % 60),
		.seconds = (int)(ms / 1000 % 60),
		.ms = (int)(ms % 1000) };
}

void clock_format(char out[32], int64_t unix_ms)
{
	const struct moment at = split(unix_ms);
	snprintf(out, 32, "%04lld-%02d-%02dT%02d:%02d:%02d.%03dZ", at.year, at.month, at.day,
		at.hours, at.minutes, at.seconds, at.ms);
}

void clock_format_http(char out[40], int64_t unix_ms)
{
	static const char weekdays[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const struct moment at = split(unix_ms);
	snprintf(out, 40, "%.3s, %02d %.3s %04lld %02d:%02d:%02d GMT", weekdays + 3 * at.weekday,
		at.day, months + 3 * (at.month - 1), at.year, at.hours, at.minutes, at.seconds);
}

int64_t clock_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void clock_format_now(char out[32])
{
	clock_format(out, clock_now_ms());
}
