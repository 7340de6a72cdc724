/* clock.h -- time. Durations come from the monotonic clock only. */
#pragma once
uint64_t clock_monotonic_ns(void);
uint64_t clock_monotonic_ms(void);
uint64_t clock_process_cpu_us(void); /* cpu time this process has used */
/* RFC 3339 in UTC with milliseconds: "2026-11-15T04:50:52.123Z"; out needs 32 bytes. */
void clock_format_now(char out[32]);
void clock_format(char out[32], int64_t unix_ms);
/* A date of HTTP: "Sun, 15 Nov 2026 04:50:52 GMT"; out needs 40 bytes. */
void clock_format_http(char out[40], int64_t unix_ms);
int64_t clock_now_ms(void); /* since 1970, for comparison with times that were written down */
