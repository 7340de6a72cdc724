/* slot.h -- an outside uid of its own for every sandbox that root starts.
 * 1. A slot is a byte of $CARREL_HOME/run/uids, locked by the open file description: the kernel
 * frees it when the last process that holds it is gone, however it went.
 * 2. The range is 1879048192 + 65536, or the upper half of what this process's user namespace has
 * when that isn't in it. */
#pragma once
#include "base/error.h"

struct slot_range {
	uint32_t first, count; /* count 0: no free uid */
};
/* From the text of /proc/self/uid_map. Pure. */
struct slot_range slot_range_from(const char *uid_map);
/* Locks a free slot. *fd holds it, yours to close. ERR_LIMIT: all are taken. */
int slot_take(const char *home, struct slot_range range, uint32_t *uid, int *fd, struct error *err);

/* Many slots of one process, held by one descriptor. */
struct slots {
	int fd;
	struct slot_range range;
	uint64_t *used; /* one bit a slot */
	uint32_t first_free;
};
#define SLOTS_NONE                                                                                 \
	{                                                                                          \
		.fd = -1                                                                           \
	}
int slots_open(const char *home, struct slot_range range, struct slots *slots, struct error *err);
void slots_done(struct slots *slots); /* all of them are free then */
/* The lowest that is free: slots side by side are one lock for the kernel. ERR_LIMIT. */
int slots_take(struct slots *slots, uint32_t *uid, struct error *err);
/* In place of what slots_open opened: the descriptor of a process that this one was by an execve;
 * its locks are ours. */
void slots_take_over(struct slots *slots, int fd);
void slots_keep(struct slots *slots, uint32_t uid); /* it is one of those */
/* Call it when no process has that uid any more. */
void slots_give(struct slots *slots, uint32_t uid);
