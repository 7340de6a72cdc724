/* quantity.h -- sizes, durations and counts as people type them. Pure. Each returns 0, or -1 with
 * ERR_INVALID and a text that repeats what was typed and says what is allowed ("'12X' is not a
 * size; try 512M or 1G"). Decimals (at most nine) are rounded down; a fraction of a byte or of a
 * millisecond, and what would be rounded to 0, is an error: 0 often means "no limit". */
#pragma once
#include "base/error.h"

/* "1048576", "512K", "512M", "1G", "2T", also "512MB", "512MiB", "1.5G"; units are powers of 1024,
 * case ignored. Overflow of int64 is an error. */
int quantity_parse_size(const char *text, uint64_t *bytes, struct error *err);
/* "300", "300s", "1500ms", "5m", "2h", "7d", "1.5s"; a bare number is seconds. At most 100 years.
 */
int quantity_parse_duration(const char *text, uint64_t *ms, struct error *err);
/* Whole number in [least, most]. */
int quantity_parse_count(
	const char *text, uint64_t least, uint64_t most, uint64_t *count, struct error *err);
/* "0.5", "2", "1.25" CPUs, in thousandths; 0.01 to 4096. */
int quantity_parse_cpus(const char *text, uint64_t *millicpus, struct error *err);
/* "1.0G", "512M", "17K", "900" -- for people; out needs 16 bytes. */
void quantity_format_size(char out[16], uint64_t bytes);
