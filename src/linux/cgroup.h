/* cgroup.h -- one control group a sandbox, on v1, v2 and hybrid hosts.
 * 1. A group is named carrel-<pid>-<start ticks> after the process that made it, so that a later carrel can tell that its
 *    maker is gone and remove it.
 * 2. Every value written is read back; a controller that is asked for and can't be had is an error, never "no limit".
 * 3. No pid is ever written into a v1 cgroup.procs: the child writes "0" into `tasks` (cgroup_enter). On v2 the child is
 *    born inside (clone_into). */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

enum cgroup_version { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

struct cgroup_want {			/* 0: not asked for */
	uint64_t memory_bytes;
	uint64_t millicpus;
	uint64_t pids;			/* v2 only; RLIMIT_NPROC holds it everywhere */
	bool count_cpu;			/* summed cpu time must be readable (cpuacct, cpu.stat) */
};

/* What this host lets the caller use. Found by reading /proc/self/cgroup and mountinfo and by trying, never by version. */
struct cgroup_host {
	enum cgroup_version version;	/* CGROUP_NONE: nothing writable; the watchdog takes over */
	char memory[512], cpu[512], cpuacct[512];	/* v1: the directory to make groups in, per controller, or "" */
	char unified[512];		/* v2 */
	char why[256];			/* CGROUP_NONE: why, in words for doctor */
};
void cgroup_probe(struct cgroup_host *host);

#define CGROUP_DIRS_MAX 3
struct cgroup {
	enum cgroup_version version;
	char name[64];
	int dir_count;
	char parents[CGROUP_DIRS_MAX][512];
	int dirs[CGROUP_DIRS_MAX];	/* O_PATH of each group; memory first */
	int enter[CGROUP_DIRS_MAX];	/* v1: `tasks`, open for writing */
	int clone_into;			/* v2: descriptor for CLONE_INTO_CGROUP, else -1 */
	int memory, cpu;		/* indexes into dirs, -1 when not there */
	int cpuacct;
};
void cgroup_init(struct cgroup *group);
/* Makes the group(s) and sets the limits. ERR_UNAVAILABLE: a needed controller isn't writable. Nothing is left behind on
 * failure. */
int cgroup_create(const struct cgroup_host *host, const struct cgroup_want *want, struct cgroup *group, struct error *err);
/* In the child, v1: puts the calling task in. async-signal-safe. -1 with errno. */
int cgroup_enter(const struct cgroup *group);
/* A descriptor that becomes readable (POLLIN on v1's eventfd, POLLPRI on v2's memory.events) when the group hits OOM; the
 * caller then asks cgroup_oom_kills. *events is POLLIN or POLLPRI. */
int cgroup_watch_oom(const struct cgroup *group, int *fd, short *events, struct error *err);
int cgroup_oom_kills(const struct cgroup *group, uint64_t *count, struct error *err);
int cgroup_cpu_us(const struct cgroup *group, uint64_t *us, struct error *err);
/* Peak memory in bytes; false when the kernel doesn't say. */
bool cgroup_memory_peak(const struct cgroup *group, uint64_t *bytes);
/* Removes the directories; call it when the last process is gone (retries EBUSY for a moment). Idempotent. */
int cgroup_remove(struct cgroup *group, struct error *err);
void cgroup_done(struct cgroup *group);	/* closes descriptors only */
/* Removes groups whose maker is gone. Returns how many. Never touches one whose maker lives. */
int cgroup_sweep(const struct cgroup_host *host);
