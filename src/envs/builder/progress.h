/* progress.h -- how far a build is: one line that is redrawn on a terminal, a line a phase
 * elsewhere.
 */
#pragma once
#include "base/buf.h"

enum progress_kind { PROGRESS_NONE, PROGRESS_LINES, PROGRESS_BAR };
struct progress {
	enum progress_kind kind;
	int fd;
	uint64_t shown_ms;     /* when it was drawn last; 0: nothing is on the line */
	uint64_t rate_from_ms; /* since when, and from where, the rate is counted */
	uint64_t rate_from_bytes;
	double rate; /* bytes a second */
	char phase[32];
	uint64_t unpacked, unpacked_limit; /* 0: not shown */
	uint64_t unpacked_reported;	   /* LINES: shown by the last line */
};
void progress_init(struct progress *progress, enum progress_kind kind, int fd);
/* BAR when fd is a terminal that can redraw a line, else LINES. */
enum progress_kind progress_kind_for(int fd);
/* To be called often; draws at most ten times a second, and each new phase at once. */
void progress_show(struct progress *progress, const char *phase, uint64_t done, uint64_t total,
	uint64_t bytes);
/* The same for things of another kind: "3/20 cells". */
void progress_show_count(struct progress *progress, const char *phase, uint64_t done,
	uint64_t total, const char *unit);
/* How many bytes were unpacked of how many that may be: shown from the next draw on; where lines
 * are printed, one for each GiB. */
void progress_unpacked(struct progress *progress, uint64_t bytes, uint64_t limit);
/* The same for a transfer: so many bytes of total (0: not known). */
void progress_show_bytes(
	struct progress *progress, const char *phase, uint64_t bytes, uint64_t total);
/* A line that stays, above the one that is redrawn. */
void progress_say(struct progress *progress, const char *text);
/* Takes the line away until the next draw; for good. */
void progress_clear(struct progress *progress);
void progress_finish(struct progress *progress);
/* The line, at most `width` columns. Pure. */
void progress_print(struct buf *out, const char *phase, uint64_t done, uint64_t total,
	uint64_t bytes, double rate, unsigned width);
/* ", 2.1G of 12G unpacked", or nothing. Pure. */
void progress_print_unpacked(struct buf *out, uint64_t bytes, uint64_t limit);
void progress_print_bytes(struct buf *out, const char *phase, uint64_t bytes, uint64_t total,
	double rate, unsigned width);
