/* handover.h -- a launcher that executes another program in its place (an upgrade): its children
 * stay its children, its pid and control groups stay its own, and what it knows of them goes along
 * as text in a memfd, with descriptors that stay open.
 * 1. The text has a version. A program that can't read this version refuses the check, and nothing
 * is executed.
 * 2. The check (HANDOVER_CHECK) runs the new program beside us: its options, its configuration and
 * the programs that belong to it are tried before anything is ended.
 * 3. Private to `carrel serve`: the variable is taken out of the environment when it is read. */
#pragma once
#include <sys/resource.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "base/vec.h"
#include "launch/launch.h"
#include "linux/cgroup.h"
#include "sandbox/plan/launch.h"
#include "sandbox/plan/plan.h"

#define HANDOVER_VARIABLE "CARREL_HANDOVER" /* "check", or the number of the memfd */
#define HANDOVER_CHECK "check"
#define HANDOVER_OK "handover 1\n" /* what a check prints */

struct handover_sandbox {
	char id[ID_LEN + 1];
	pid_t pid;
	const char *isolation;
	enum plan_limiter limiter;
	uint32_t uid;
	bool has_socket, has_cgroup, has_cpu;
	unsigned cgroup;
	int pins[LAUNCH_TREES_MAX]; /* indexes; -1: none */
};
struct handover {
	/* what the caller of launch_serve had */
	struct launch_listener listener;
	VEC(struct launch_listener) also;
	int lock, notify;
	/* what the launcher had */
	int slots;
	unsigned next_group;
	unsigned reloads; /* so far, this one included */
	struct cgroup_host cgroups;
	enum plan_limiter limiter;
	struct rlimit fds;
	VEC(int) pins;
	VEC(struct handover_sandbox) sandboxes;
};
/* 1: *handover is what this process has taken over; 0: nothing; -1: it can't be read. Descriptors
 * are close-on-exec again, and yours. */
int handover_take(struct arena *arena, struct handover *handover, struct error *err);
/* Whether this process was started as a check. Once. */
bool handover_is_check(void);
/* The text, and back. Pure. */
void handover_print(const struct handover *handover, struct buf *out);
int handover_parse(
	struct str text, struct arena *arena, struct handover *handover, struct error *err);
