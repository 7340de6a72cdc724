#include "sandbox/sample.h"

#include <signal.h>
#include "base/clock.h"
#include "sandbox/init_client.h"

#define COST_SHARE 10	   /* a look that used n ms of cpu is followed by n * 10 ms of rest */
#define MEMFDS_MS 1000	   /* how long memfds may stay uncounted where they could matter */
#define SAVED_MOST_MS 50   /* cpu share: what may be used at once */
#define PAUSE_SLACK_MS 200 /* cpu time that stopping everything may take to show */

static uint64_t find_memory(void *ctx)
{
	struct sample *sample = ctx;
	return usage_memory(sample->usage);
}

static void on_memory(void *ctx, bool ok, uint64_t bytes)
{
	struct sample *sample = ctx;
	uint64_t now = clock_monotonic_ms();
	sample->exact_after_ms = now + (now - sample->memory_began_ms) * COST_SHARE;
	sample->exact_until_ms = now + MEMFDS_MS;
	sample->hidden_bytes = ok && bytes > sample->bound_bytes ? bytes - sample->bound_bytes : 0;
	if (ok && bytes > sample->memory_bytes)
		sample->hit(sample->ctx, REASON_MEMORY_LIMIT);
}

static int64_t most_saved_us(const struct sample *sample)
{
	return (int64_t)(SAVED_MOST_MS * sample->millicpus);
}

void sample_begin(struct sample *sample)
{
	sample->memory = (struct measure){
		.loop = sample->loop, .find = find_memory, .found = on_memory, .ctx = sample
	};
	sample->shared_bytes = usage_shared_everywhere();
	sample->share_ms = clock_monotonic_ms();
	sample->saved_us = most_saved_us(sample);
}

/* Could it be over the limit? `bound` holds all but memfds. */
static bool may_be_over(
	const struct sample *sample, uint64_t bound, uint64_t shared, uint64_t now_ms)
{
	if (bound > sample->memory_bytes)
		return true;
	if (bound + shared <= sample->memory_bytes)
		return false;
	uint64_t grown = shared > sample->shared_bytes ? shared - sample->shared_bytes : 0;
	return bound + sample->hidden_bytes + grown > sample->memory_bytes ||
	       now_ms >= sample->exact_until_ms;
}

bool sample_is_memory_over(struct sample *sample)
{
	uint64_t least, bound = usage_memory_bound(sample->usage, &least);
	if (least > sample->memory_bytes)
		return true;
	/* What waits in sockets belongs to no process, and adds to what processes have. */
	if (least + usage_sockets_everywhere() > sample->memory_bytes &&
		least + usage_socket_bytes(sample->usage) > sample->memory_bytes)
		return true;
	uint64_t now = clock_monotonic_ms(), shared = usage_shared_everywhere();
	if (!sample->memory.is_running && now >= sample->exact_after_ms &&
		may_be_over(sample, bound, shared, now)) {
		sample->memory_began_ms = now;
		sample->bound_bytes = bound;
		sample->shared_bytes = shared;
		usage_descriptors(sample->usage, sample->memory.keep);
		sample->memory.keep_count = USAGE_FDS;
		measure_start(&sample->memory);
	}
	return false;
}

static void on_resume(struct loop *loop, void *ctx)
{
	struct sample *sample = ctx;
	struct error err;
	sample->resume = NULL;
	sample->is_paused = false;
	init_client_signal(sample->init_socket, 0, SIGCONT, &err);
}

/* Earned by time, spent by use. */
static void keep_book(struct sample *sample, uint64_t cpu_ms)
{
	uint64_t now_ms = clock_monotonic_ms();
	int64_t most_us = most_saved_us(sample);
	sample->saved_us += (int64_t)((now_ms - sample->share_ms) * sample->millicpus);
	if (cpu_ms > sample->share_cpu_ms)
		sample->saved_us -= (int64_t)((cpu_ms - sample->share_cpu_ms) * 1000);
	if (sample->saved_us > most_us)
		sample->saved_us = most_us;
	sample->share_ms = now_ms;
	sample->share_cpu_ms = cpu_ms;
}

void sample_hold_share(struct sample *sample, uint64_t cpu_ms)
{
	struct error err;
	keep_book(sample, cpu_ms);
	if (sample->is_paused) {
		/* What continues itself while it is stopped has chosen another limit. */
		if (cpu_ms > sample->paused_at_cpu_ms + PAUSE_SLACK_MS)
			sample->hit(sample->ctx, REASON_CPU_LIMIT);
		return;
	}
	if (sample->saved_us >= 0)
		return;
	if (init_client_signal(sample->init_socket, 0, SIGSTOP, &err))
		return; /* init is ending: so is everything else */
	sample->is_paused = true;
	sample->paused_at_cpu_ms = cpu_ms;
	sample->resume = loop_after(sample->loop,
		(uint64_t)-sample->saved_us / sample->millicpus + 1, on_resume, sample);
}

uint64_t sample_rest_ms(uint64_t cost_us, unsigned count)
{
	uint64_t rest_ms = cost_us * count * COST_SHARE / 1000;
	return rest_ms > SAMPLE_MS ? rest_ms : SAMPLE_MS;
}

void sample_end(struct sample *sample)
{
	loop_cancel(sample->loop, sample->resume);
	sample->resume = NULL;
	measure_stop(&sample->memory);
}
