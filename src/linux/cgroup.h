/* cgroup.h -- one control group a sandbox, on v1, v2 and hybrid hosts.
 * 1. A group is named carrel-<pid>-<start ticks>-<pid namespace>-<number> after the process that
 *    made it, so that a later carrel can tell that its maker is gone and remove it: one of the same
 *    pid namespace, as nobody else can.
 * 2. Every value written is read back; a controller that is asked for and can't be had is an error,
 *    never "no limit".
 * 3. No pid is ever written into a v1 cgroup.procs: the child writes "0" into `tasks`
 *    (cgroup_enter). On v2 the child is born inside (clone_into).
 * 4. The memory directory is made first and removed last: where there is none, nothing was left. */
#pragma once
#include "base/error.h"

enum cgroup_version { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

struct cgroup_want {	       /* 0: not asked for */
	uint64_t memory_bytes; /* swap is always 0 */
	uint64_t millicpus;
	uint64_t pids;	 /* v2, where the controller is there; RLIMIT_NPROC holds it everywhere */
	bool count_cpu;	 /* summed cpu time must be readable (cpuacct, cpu.stat) */
	unsigned number; /* tells the groups of one process apart */
};

#define CGROUP_PATH_MAX 512
/* What this host lets the caller use. Found by reading /proc/self/cgroup and mountinfo and by
 * trying, never by version. Other than CGROUP_NONE: memory can be limited; the rest may be "". */
struct cgroup_host {
	enum cgroup_version version;  /* CGROUP_NONE: nothing to use; the watchdog takes over */
	char memory[CGROUP_PATH_MAX]; /* the directory to make groups in, per controller, or "" */
	char cpu[CGROUP_PATH_MAX];
	char cpuacct[CGROUP_PATH_MAX]; /* v2: cpu.stat, which every group has */
	char unified[CGROUP_PATH_MAX]; /* v2: the one directory for all of them */
	bool pids;		       /* v2 */
	bool has_unified;	       /* cgroup2 is in use: this process has a place in it */
	char why[768];		       /* CGROUP_NONE: why, in words for doctor */
	char hint[160];		       /* CGROUP_NONE: what the user can do about it, or "" */
};
void cgroup_probe(struct cgroup_host *host);

#define CGROUP_DIRS_MAX 3
struct cgroup {
	enum cgroup_version version;
	char name[64];
	int dir_count;
	char parents[CGROUP_DIRS_MAX][CGROUP_PATH_MAX];
	int dirs[CGROUP_DIRS_MAX];  /* O_PATH of each group; memory first */
	int enter[CGROUP_DIRS_MAX]; /* v1: `tasks`, open for writing */
	int clone_into; /* v2: descriptor for CLONE_INTO_CGROUP (not a new one), else -1 */
	int memory, cpu, cpuacct; /* indexes into dirs, -1 when not there */
	bool is_found;		  /* by cgroup_find */
};
void cgroup_init(struct cgroup *group);
/* Makes the group(s) and sets the limits. ERR_UNAVAILABLE: a needed controller isn't writable.
 * Nothing is left behind on failure. v2: may move the processes of the caller's own, delegated
 * group into its child `carrel.main`, because a group with controllers can't have processes itself.
 */
int cgroup_create(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err);
/* Changes the limits of an empty group; its memory limit may not grow. `want` includes all that it
 * was made with. */
int cgroup_change(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err);
/* A group that this process made with `want` (its number, and which limits are not 0, count):
 * opened again, to be watched, not to be entered. ERR_NOT_FOUND. */
int cgroup_find(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err);
/* In a child that was born before the group was made: takes over the `tasks` of a v1 group (-1:
 * none). */
void cgroup_adopt(struct cgroup *group, const int *tasks, int count);
/* In the child, v1: puts the calling task in. async-signal-safe. -1 with errno. */
int cgroup_enter(const struct cgroup *group);
/* A descriptor, yours to close, that becomes readable when something happened to the group's
 * memory; the caller then asks cgroup_oom_kills. *events is POLLIN (v1's eventfd) or POLLPRI (v2's
 * memory.events). */
int cgroup_watch_oom(const struct cgroup *group, int *fd, short *events, struct error *err);
/* OOM kills so far. `watch`: the descriptor of cgroup_watch_oom, which is armed again, or -1. */
int cgroup_oom_kills(const struct cgroup *group, int watch, uint64_t *count, struct error *err);
/* Memory of the buffers of its sockets, where the kernel counts it beside all other memory (v1); 0
 * elsewhere. */
int cgroup_socket_bytes(const struct cgroup *group, uint64_t *bytes, struct error *err);
/* The file that cgroup_socket_bytes reads, yours to close; -1: the kernel doesn't count them so. */
int cgroup_open_sockets(const struct cgroup *group);
/* Opens the files of counters, yours to close: one with a line `oom_kill N`; v1: one with
 * nanoseconds of cpu time, v2: one with a line `usage_usec N` (-1: not counted in this group). */
int cgroup_open_counters(const struct cgroup *group, int *oom, int *cpu, struct error *err);
int cgroup_cpu_us(const struct cgroup *group, uint64_t *us, struct error *err);
/* Stops everything in the group, or lets it go on: v2 alone, where every group has a freezer.
 * ERR_UNAVAILABLE: this group has none. What is stopped can be killed. */
int cgroup_freeze(const struct cgroup *group, bool freeze, struct error *err);
/* Removes the directories; call it when the last process is gone (waits up to 0.1 s for one that is
 * just leaving). Idempotent. */
int cgroup_remove(struct cgroup *group, struct error *err);
/* The same without waiting, of the group that this process made with that number: ERR_CONFLICT when
 * something is still in it. */
int cgroup_try_remove(const struct cgroup_host *host, unsigned number, struct error *err);
void cgroup_done(struct cgroup *group); /* closes descriptors only */
/* Removes groups whose maker is gone. Returns how many of them something is still in: for a later
 * sweep. Never touches one whose maker lives. */
int cgroup_sweep(const struct cgroup_host *host);
