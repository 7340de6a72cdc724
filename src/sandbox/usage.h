/* usage.h -- what a sandbox uses, read from its own /proc, for hosts where no control group counts
 * it.
 * 1. Every process of the sandbox is seen, since its /proc lists its pid namespace and nothing
 * else.
 * 2. usage_memory_bound never says less than is used, but for memfds, which only their descriptors
 * show; usage_memory says what is used (shared pages once), at a price: it is asked only when the
 * bound and what memfds could add to it are over the limit.
 * 3. Not seen at all: buffers of unix sockets, a memfd under way in a socket, one of a process that
 * isn't dumpable, and pages of shared mappings that were dropped from the page tables. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

#define USAGE_TMPFS 3 /* root, workspace, upper of the environment */

struct usage {
	int proc;		/* the sandbox's /proc */
	int tmpfs[USAGE_TMPFS]; /* its own tmpfs trees, or -1 */
	uint64_t shm_device; /* of the kernel's internal tmpfs: SysV and anonymous shared memory */
	uint64_t sysv_bytes; /* as carrel-init last said */
	int processes;	     /* seen by the last usage_memory_bound, init among them */
	uint64_t departed_cpu_ms; /* of processes that have been seen and are gone */
	struct usage_seen *seen;
	int seen_count;
};

int usage_init(struct usage *usage, int proc, const int tmpfs[USAGE_TMPFS], struct error *err);
void usage_done(struct usage *usage);
/* What it looks through. */
#define USAGE_FDS (1 + USAGE_TMPFS)
void usage_descriptors(const struct usage *usage, int fds[USAGE_FDS]);
/* Calls fn for every process in `proc`, a sandbox's /proc. */
void usage_each_process(int proc, void (*fn)(void *ctx, int proc, int pid), void *ctx);
/* *least is what is used for certain, because one process has it for itself. */
uint64_t usage_memory_bound(struct usage *usage, uint64_t *least);
uint64_t usage_memory(struct usage *usage);
/* All shared memory of this machine (tmpfs, SysV, memfds): no sandbox has more in memfds. */
uint64_t usage_shared_everywhere(void);
/* Memory of the buffers of all TCP and UDP sockets of this machine: no sandbox has more in them. */
uint64_t usage_sockets_everywhere(void);
/* Bytes that wait in the TCP and UDP sockets of the sandbox. As dear as it has many. */
uint64_t usage_socket_bytes(const struct usage *usage);
/* Summed cpu time of all processes, the ended ones included as far as they were seen or waited for.
 */
uint64_t usage_cpu_ms(struct usage *usage);
/* The largest peak of resident memory among the processes that live now, in kB. */
uint64_t usage_peak_kb(struct usage *usage);
/* Bytes and inodes still free in the tmpfs at `tree`; false when it can't be asked. */
bool usage_tmpfs_is_full(int tree);
