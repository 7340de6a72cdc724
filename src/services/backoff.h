/* backoff.h -- how long to wait before a process that ended is started again. Pure. */
#pragma once

#define BACKOFF_FIRST_MS 500
#define BACKOFF_MOST_MS 60000
#define BACKOFF_SERVED_MS 5000	 /* maximum for a process that had been healthy */
#define BACKOFF_HEALTHY_MS 60000 /* after this time its next end is the first again */

/* It has ended, or is to be ended, after it was healthy for so long. *ends counts how often it has
 * in a row: 0 at first, and this adds one. */
uint64_t backoff_next_ms(unsigned *ends, uint64_t healthy_ms);
