/* metrics.h -- counters and histograms since the start of core. doors/rest/metrics.c has a table
 * with name, help text and labels of each, and prints them. */
#pragma once
#include "model/nouns/result.h"

#define METRICS_BUCKETS 16
struct histogram {
	uint64_t counts[METRICS_BUCKETS + 1]; /* the last: over all bounds */
	uint64_t count;
	double sum_s;
};
extern const double metrics_bounds_s[METRICS_BUCKETS]; /* 0.0005 … 60 */
struct metrics {
	uint64_t creates, create_failures, removes, sandbox_starts, sandbox_start_failures,
		released, expired, suspended, resumed;
	uint64_t execs[REASON_COUNT], exec_failures; /* failures: never started */
	uint64_t egress_opened, egress_refused, egress_failed, egress_bytes_in, egress_bytes_out;
	uint64_t output_bytes, file_read_bytes, file_written_bytes;
	struct histogram create_seconds, sandbox_start_seconds, exec_seconds /* whole */,
		exec_overhead_seconds /* request to spawn sent */, store_commit_seconds;
	uint64_t started_ms; /* Unix time */
};
void histogram_add(struct histogram *h, double seconds);
