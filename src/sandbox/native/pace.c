#include "sandbox/native/pace.h"

#define NEAR_SHARE 64 /* of a limit: changes below that are not worth a walk */
#define BLOCK_BYTES 4096

uint64_t pace_look_ms(uint64_t room_bytes)
{
	uint64_t ms = room_bytes / 2 / PACE_BYTES_A_MS;
	return ms < PACE_LEAST_MS ? PACE_LEAST_MS : ms > PACE_MOST_MS ? PACE_MOST_MS : ms;
}

enum pace_due pace_due(
	uint64_t room_bytes, unsigned doubt, uint64_t before, uint64_t now, uint64_t elapsed_ms)
{
	if (!before || !now)
		return elapsed_ms >= pace_look_ms(room_bytes) ? PACE_MEASURE : PACE_NOT_YET;
	uint64_t lost = before > now ? before - now : 0;
	uint64_t room = room_bytes > UINT64_MAX >> doubt ? UINT64_MAX : room_bytes << doubt;
	if (room < PACE_LOSS_LEAST)
		room = PACE_LOSS_LEAST;
	return lost >= room ? PACE_MEASURE_STOPPED : lost >= room / 2 ? PACE_MEASURE : PACE_NOT_YET;
}

unsigned pace_doubt(unsigned doubt, uint64_t free_before, uint64_t free_now, uint64_t bytes_before,
	uint64_t bytes_now)
{
	uint64_t lost = free_before > free_now ? free_before - free_now : 0;
	uint64_t grown = bytes_now > bytes_before ? bytes_now - bytes_before : 0;
	if (grown >= lost / 4)
		return 0;
	return doubt < PACE_DOUBT_MAX ? doubt + 1 : doubt;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

bool pace_is_near(
	const struct pace_counters *before, const struct pace_counters *now, uint64_t limit_bytes)
{
	uint64_t most = limit_bytes && limit_bytes / NEAR_SHARE < PACE_LOSS_LEAST
				? limit_bytes / NEAR_SHARE
				: PACE_LOSS_LEAST;
	uint64_t inodes = distance(before->free_files, now->free_files);
	return before->files && now->files && inodes < most / BLOCK_BYTES &&
	       distance(before->free_bytes, now->free_bytes) + inodes * BLOCK_BYTES < most;
}
