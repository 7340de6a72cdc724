/* warm.h -- carries out a plan that stays (plan.warm): a sandbox whose carrel-init listens for
 * masters, and nobody beside it.
 * 1. Every layer of the plan is set before carrel-init listens, or the start fails and names the
 * layer.
 * 2. Nothing here waits for the child: warm_begin returns while it works, warm_hear says how it
 * went.
 * 3. The child is the caller's to kill and to reap. It dies with the caller (PDEATHSIG). */
#pragma once
#include <sys/types.h>
#include "base/error.h"
#include "linux/cgroup.h"
#include "plan/plan.h"

/* What all starts of one caller share. */
struct warm_host {
	const struct cgroup_host *cgroups;
	int init_image; /* warm_open_image */
	int self;	/* pidfd of the caller */
	int own_netns;	/* of the caller, when network namespaces are handed in */
	int own_mounts; /* of the caller, when `mounts` is there */
	int mounts;	/* of base.h, made of the system's paths of these plans; or -1 */
};
struct warm_start {
	const struct plan *plan;
	int listener; /* listening SOCK_SEQPACKET: for carrel-init alone from here on */
	int netns;    /* ready (lo up, ports open) and never used before; -1: a new one */
	int idmap; /* user namespace for idmapped mounts of that owner; -1: made when it is needed
		    */
	bool has_root; /* base_has_root_for */
	uint32_t owner_uid, owner_gid;
	struct cgroup *cgroup; /* one made for the plan, or an empty one (cgroup_init) to fill */
};
/* As start_want_cgroup: what the control group of this plan is to be. */
void warm_want_cgroup(const struct plan *plan, struct cgroup_want *want);
int warm_open_image(int *image, struct error *err);
/* *setup: watch it for reading; yours to close. On failure no child is left. */
int warm_begin(const struct warm_host *host, const struct warm_start *start, pid_t *pid, int *setup,
	struct error *err);

enum warm_fd { WARM_PROC, WARM_ROOT, WARM_WORKSPACE, WARM_FD_MAX };
/* Takes what the child says. 1: it is up, and fds (O_PATH, yours; -1: none) are its; 0: nothing
 * yet; -1: it failed and is ending. ERR_CANCELED: it was killed, for no fault of the start. */
int warm_hear(int setup, int fds[WARM_FD_MAX], struct error *err);
/* The same descriptors again, of a sandbox that is up: `pid` is its carrel-init, a child that
 * hasn't been reaped. */
int warm_find(pid_t pid, int fds[WARM_FD_MAX], struct error *err);
