/* isolation.h -- what carries a plan out and keeps it, behind one interface: an isolation backend.
 * 1. A backend starts carrel-init as the first process of the sandbox, with the listening socket
 * that it is given, and sets every layer of the plan before, or fails and names the layer.
 * 2. Commands are run by that carrel-init (sandbox/native/init_client.h): the same for every
 * backend. What can be seen of a sandbox, its /proc, mounts and terminals, a backend opens by its
 * own means; what it doesn't have is -1, and sandbox/native/view.h says that it is unknown.
 * 3. Nothing here waits for the child. It is the caller's to reap, and dies with the caller
 * (PDEATHSIG). */
#pragma once
#include "linux/cgroup.h"
#include "sandbox/native/held.h"
#include "sandbox/native/sandbox.h"
#include "sandbox/plan/launch.h"
#include "sandbox/plan/plan.h"

/* What all starts of one caller share. */
struct warm_host {
	const struct cgroup_host *cgroups;
	int init_image; /* start_open_image */
	int self;	/* pidfd of the caller */
	int own_netns;	/* of the caller, when network namespaces are handed in */
	int own_mounts; /* of the caller, when `mounts` is there */
	int mounts;	/* of base.h, made of the system's paths of these plans; or -1 */
};
/* A plan that stays (plan.warm): a sandbox whose carrel-init listens for masters. */
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
struct isolation {
	const char *name; /* as plan.isolation has it */
	/* What the control group of this plan is to be; the caller makes it, or takes it from a
	 * pool. */
	void (*prepare)(const struct plan *plan, struct cgroup_want *want);
	/* Begins a start, and returns while the child works. *setup: watch it for reading; yours to
	 * close. On failure no child is left. */
	int (*start)(const struct warm_host *host, const struct warm_start *start, pid_t *pid,
		int *setup, struct error *err);
	/* Takes what the child says. 1: it is up, and `seen` (yours; -1: none, as are its counters)
	 * is what core gets of it; 0: nothing yet; -1: it failed and is ending. ERR_CANCELED: it
	 * was killed from outside, the start itself didn't fail. */
	int (*receive)(int setup, int seen[LAUNCH_FD_MAX], struct error *err);
	/* The same again, of a sandbox that is up: `pid` is its carrel-init, a child that hasn't
	 * been reaped. */
	int (*find)(pid_t pid, int seen[LAUNCH_FD_MAX], struct error *err);
	/* What held.h needs to count what its processes hold of the disk; look->proc is yours.
	 * counts_workspace: /workspace belongs to its disk limit. */
	int (*measure)(pid_t pid, bool counts_workspace, struct held_look *look, struct error *err);
	/* Kills the sandbox; it has ended when `pid` exits. */
	void (*end)(pid_t pid);
	/* One command in a sandbox of its own, as sandbox_run. */
	int (*run)(const struct plan *plan, const struct cgroup_host *cgroups,
		struct sandbox_io *io, struct result *result, struct error *err);
};
/* ERR_UNAVAILABLE: this version has no backend of that name. */
int isolation_find(const char *name, const struct isolation **isolation, struct error *err);
/* By the backend that the plan names. */
int isolation_run(const struct plan *plan, const struct cgroup_host *cgroups, struct sandbox_io *io,
	struct result *result, struct error *err);
/* A sealed copy of carrel-init (memfd) that is at no path of the host; yours to close. */
int start_open_image(int *image, struct error *err);
