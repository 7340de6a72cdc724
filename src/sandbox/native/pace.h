/* pace.h -- when a tree under a counted disk limit is measured again, and when its writers are
 * stopped for it. Pure.
 * 1. Looking is cheap (one statfs), measuring is not: it is done when the file system has lost half
 * of what the sandbox may still write.
 * 2. The time to the next look is the time in which the fastest writer fills half of the room. */
#pragma once

#define PACE_LEAST_MS 5
#define PACE_MOST_MS 250
#define PACE_BYTES_A_MS (2ull << 20) /* more than any disk or cache takes in a ms */

#define PACE_LOSS_LEAST (1 << 20) /* bytes: less is lost all the time, by anybody */

/* What the counters of a file system said when a tree on it was measured. A file system that keeps
 * no count of inodes (files 0) says too little. */
struct pace_counters {
	uint64_t free_bytes, free_files, files;
};
/* Less than PACE_LOSS_LEAST, and less than a 64th of the limit (0: none), was taken or freed on the
 * whole file system since. An inode counts as a block. */
bool pace_is_near(
	const struct pace_counters *before, const struct pace_counters *now, uint64_t limit_bytes);

uint64_t pace_look_ms(uint64_t room_bytes);

enum pace_due { PACE_NOT_YET, PACE_MEASURE, PACE_MEASURE_STOPPED };
/* `before` and `now`: free bytes of the file system when the room was known, and now; 0: unknown,
 * then `elapsed_ms` decides. `doubt`: of pace_doubt. PACE_MEASURE_STOPPED: the limit may be passed
 * already. */
enum pace_due pace_due(
	uint64_t room_bytes, unsigned doubt, uint64_t before, uint64_t now, uint64_t elapsed_ms);

/* How often in a row the room that was lost was taken by others, at most PACE_DOUBT_MAX. pace_due
 * multiplies the room by 2 to that power, so that a sandbox that writes nothing isn't stopped again
 * and again for its neighbours; the caller lets it run for `doubt` times as long as the last
 * measurement took. */
#define PACE_DOUBT_MAX 6
unsigned pace_doubt(unsigned doubt, uint64_t free_before, uint64_t free_now, uint64_t bytes_before,
	uint64_t bytes_now);
