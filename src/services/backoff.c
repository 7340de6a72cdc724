#include "services/backoff.h"

uint64_t backoff_next_ms(unsigned *ends, uint64_t healthy_ms)
{
	uint64_t delay_ms = BACKOFF_FIRST_MS;
	if (healthy_ms >= BACKOFF_HEALTHY_MS)
		*ends = 0;
	for (unsigned i = 0; i < *ends && delay_ms < BACKOFF_MOST_MS; i++)
		delay_ms *= 2;
	(*ends)++;
	return delay_ms < BACKOFF_MOST_MS ? delay_ms : BACKOFF_MOST_MS;
}
