/* cgroup_internal.h -- declarations shared by the cgroup*.c files and their tests. */
#pragma once
#include "base/str.h"
#include "linux/cgroup.h"

/* Where the caller is in one hierarchy, from the texts of /proc. */
struct cgroup_place {
	bool is_known; /* the kernel has the controller in this hierarchy version */
	bool is_mounted;
	bool is_inside;		   /* the caller's own group is below what is mounted */
	bool is_top;		   /* ... and is what is mounted */
	char top[CGROUP_PATH_MAX]; /* the mount point */
	char own[CGROUP_PATH_MAX]; /* the directory of the caller's own group */
};
struct cgroup_places {
	struct cgroup_place memory, cpu, cpuacct; /* v1 */
	struct cgroup_place unified;		  /* v2 */
};
/* One line of /proc/self/cgroup, one of mountinfo (all of the first come before the second). */
void cgroup_add_own(struct cgroup_places *places, struct str line);
void cgroup_add_mount(struct cgroup_places *places, struct str line);
/* The hierarchy of `place` is mounted at `point`, from its group `root` on. */
void cgroup_set_mount(struct cgroup_place *place, struct str root, struct str point);
/* Mounts need not be read further: every controller that is known is mounted. */
bool cgroup_has_all(const struct cgroup_places *places);
/* "carrel-<pid>-<ticks>-<pid namespace>-<number>" taken apart. */
struct cgroup_maker {
	uint64_t pid, ticks, pidns;
};
bool cgroup_parse_name(struct str name, struct cgroup_maker *maker);
/* As the kernel will say it: whole pages, and no more than there are. */
uint64_t cgroup_round_memory(uint64_t bytes);
/* "<quota> <period>" in µs, the way cpu.max has it. */
void cgroup_cpu_quota(uint64_t millicpus, uint64_t *quota_us, uint64_t *period_us);

/* Chooses the directory to make v2 groups in. */
void cgroup_v2_choose(const struct cgroup_place *place, struct cgroup_host *host);
/* Sets host->why from errno of an attempt to write `path`. */
void cgroup_set_why(struct cgroup_host *host, const char *path);

/* Adds directory `name` below `parent` to the group, unless it has it; its index is *index. Makes
 * it, unless the group is one that was found. */
int cgroup_add_dir(struct cgroup *group, const char *parent, const char *controller, int *index,
	struct error *err);
/* Writes text to the file and reads it back. cgroup_try_set answers 1 when there is no such file.
 */
int cgroup_try_set(int dir, const char *file, const char *text, struct error *err);
int cgroup_set(int dir, const char *file, const char *text, struct error *err);
int cgroup_set_number(int dir, const char *file, uint64_t value, struct error *err);

/* Adds the directories that `want` needs to the group. */
int cgroup_v1_place(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err);
int cgroup_v2_place(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err);
/* Sets the limits in them. */
int cgroup_v1_limit(const struct cgroup_want *want, struct cgroup *group, struct error *err);
int cgroup_v2_limit(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err);
