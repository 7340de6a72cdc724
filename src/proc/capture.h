/* capture.h -- another program run to its end, and the beginning of what it said. For `carrel
 * doctor` and the host's keyring: small answers, short times. */
#pragma once
#include "base/arena.h"
#include "linux/child.h"

#define CAPTURE_TEXT_MAX 2048

struct capture {
	struct child child;
	char text[CAPTURE_TEXT_MAX]; /* NUL-terminated; what goes beyond it is dropped */
	size_t len;
	int exit_code; /* 128 + n for a signal; -1: couldn't be started, or was ended at the
			  deadline */
};

/* Its path on PATH, or NULL. */
const char *capture_find(const char *name, struct arena *arena);
/* Starts the program `path` with argv and our environment. Its output `fd` (1 or 2) is kept, the
 * other streams are /dev/null. Several may run at once. capture_finish follows always. */
void capture_start(struct capture *capture, const char *path, char *const argv[], int fd);
/* Waits until it ended, or ends it and its process group at `deadline_ms` of the monotonic clock.
 */
void capture_finish(struct capture *capture, uint64_t deadline_ms);
