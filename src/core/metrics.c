#include "core/metrics.h"

const double metrics_bounds_s[METRICS_BUCKETS] = { 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025,
	0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 60 };

void histogram_add(struct histogram *h, double seconds)
{
	int at = 0;
	while (at < METRICS_BUCKETS && seconds > metrics_bounds_s[at])
		at++;
	h->counts[at]++;
	h->count++;
	h->sum_s += seconds;
}
