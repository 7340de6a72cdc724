#include "services/backoff.h"

uint64_t backoff_next_ms(unsigned *ends, uint64_t healthy_ms)
{
	uint64_t delay_ms = BACKOFF_FIRST_MS;
	/* One that serves for a while is worth its start: what ends it may be its clients. */
	uint64_t most_ms = healthy_ms ? BACKOFF_SERVED_MS : BACKOFF_MOST_MS;
	if (healthy_ms >= BACKOFF_HEALTHY_MS)
		*ends = 0;
	for (unsigned i = 0; i < *ends && delay_ms < most_ms; i++)
		delay_ms *= 2;
	(*ends)++;
	return delay_ms < most_ms ? delay_ms : most_ms;
}
