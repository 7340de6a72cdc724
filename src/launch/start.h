/* start.h -- one start: a message of core's becomes a plan, the plan a child; and what was taken
 * for it is given back in the end. Private to this room. */
#pragma once
#include "launch/parts.h"

/* What a sandbox holds besides its process. No descriptor. */
struct start_parts {
	enum plan_limiter limiter;
	struct pin *environment;
	uint32_t uid; /* outside, of the slots; 0: none was taken */
	bool has_socket;
	bool has_cgroup, has_cpu; /* a group; with a cpu quota */
	unsigned cgroup;	  /* its number */
};

/* Begins one: *pid is the child, *setup to be heard by warm_hear. On failure `parts` says what is
 * there all the same: start_dead and start_clean follow in any case. */
int start_begin(struct launcher *launcher, const struct launch_message *head,
	const char *environment, struct start_parts *parts, pid_t *pid, int *setup,
	struct error *err);
/* Its last process is gone: the name of its socket, its uid and its environment are given back. */
void start_dead(struct launcher *launcher, const char *id, struct start_parts *parts);
/* And its control groups. ERR_CONFLICT: busy, try again. */
int start_clean(struct launcher *launcher, struct start_parts *parts, struct error *err);
/* Of its control group, for core; -1 where there is none. */
int start_open_counters(struct launcher *launcher, const struct start_parts *parts, int *oom,
	int *oom_count, int *cpu, struct error *err);
