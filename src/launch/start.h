/* start.h -- one start: a message of core's becomes a plan, the plan a child; and what was taken
 * for it is given back in the end. Private to this room. */
#pragma once
#include "launch/parts.h"
#include "sandbox/isolation.h"

/* What the control group of a sandbox tells core, as descriptors; -1: it doesn't. */
struct start_counters {
	int oom, oom_count, cpu, sockets;
};

/* What a sandbox holds besides its process. No descriptor, once it is up. */
struct start_parts {
	const struct isolation *isolation; /* what carries it out; NULL: it hasn't begun */
	enum plan_limiter limiter;
	struct pin *environments[LAUNCH_TREES_MAX]; /* or NULL */
	uint32_t uid;				    /* outside, of the slots; 0: none was taken */
	bool has_socket;
	bool has_cgroup, has_cpu; /* a group; with a cpu quota */
	unsigned cgroup;	  /* its number */
	struct start_counters counters;
};

/* Begins one: *pid is the child, *setup to be heard by parts->isolation. On failure `parts` says
 * what is there all the same: start_give_back follows in any case. */
int start_begin(struct launcher *launcher, const struct launch_packet *packet, const int *fds,
	struct start_parts *parts, pid_t *pid, int *setup, struct error *err);
/* Its last process is gone. */
void start_give_back(struct launcher *launcher, const char *id, struct start_parts *parts);
/* Of its control group, for core: those that were opened while it started, or new ones. They are
 * the caller's from here on. */
int start_open_counters(struct launcher *launcher, struct start_parts *parts,
	struct start_counters *counters, struct error *err);
