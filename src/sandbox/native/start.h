/* start.h -- what parent and child of a start share. Private to this room. */
#pragma once
#include "base/arena.h"
#include "linux/cgroup.h"
#include "sandbox/native/isolation.h"
#include "sandbox/plan/plan.h"

/* One packet from the child before it becomes carrel-init: descriptors, or why it failed. The magic
 * differs from init's, so that neither can be taken for the other. */
#define SETUP_MAGIC 0x43525331u
enum setup_type {
	SETUP_GO = 1,	   /* from the parent: root has written the child's maps */
	SETUP_CGROUP,	   /* from the parent, v1: the `tasks` of the groups, to enter */
	SETUP_DESCRIPTORS, /* cold: only of what start_find doesn't find */
	SETUP_FAILED
};
enum setup_fd {
	SETUP_PROC,
	SETUP_ROOT,
	SETUP_WORKSPACE, /* the mount that the disk limit is about */
	SETUP_UPPER,	 /* another tmpfs: the upper of environments, or a build's workspace */
	SETUP_PTY_MASTER,
	SETUP_PTY_SLAVE,
	SETUP_OBSERVER, /* reports of linux/observe.h */
	SETUP_LISTENER, /* cold: the first; of plan.network.listeners, in order */
	SETUP_FD_MAX = SETUP_LISTENER + PLAN_LISTENERS_MAX
};
struct setup_message {
	uint32_t magic, type;
	uint32_t present; /* bit i: the packet has a descriptor for place i */
	struct error error;
};

/* A user namespace for idmapped mounts, from one owner on disk to the sandbox's user outside. Made
 * once for all mounts of one owner: making one waits for a process to come and go. */
struct start_idmap {
	int userns; /* -1: none */
	uint32_t owner_uid, owner_gid;
	bool is_borrowed; /* not closed here */
};
void start_idmap_done(struct start_idmap *idmap);

struct start {
	const struct plan *plan;
	const struct cgroup_host *cgroups;
	struct cgroup *cgroup; /* made when it isn't, and the plan wants one */
	int socket;	       /* the child's end of the setup socket */
	int listener;	       /* warm: what carrel-init listens on. -1: it gets the setup socket */
	int parent;	/* warm: pidfd of the parent. -1: its end of the socket shows it lives */
	int netns;	/* prepared network namespace (lo up, ports open). -1: make one */
	int own_netns;	/* then: the parent's own */
	int mounts;	/* a mount namespace of base.h to be born in. -1: the parent's own */
	int own_mounts; /* then: the parent's own */
	bool has_root;	/* what is at the root there is the plan's, too */
	struct start_idmap idmap; /* a prepared id map, or none yet */
	int init_image;		  /* sealed memfd */
	bool *is_up; /* memory that parent and child share, or NULL: set before carrel-init is
		      * executed
		      */
	int *trees;  /* per mount of the plan: opened by the parent, or -1 */
	struct arena arena;
};
void start_init(struct start *start, const struct plan *plan, const struct cgroup_host *cgroups,
	struct cgroup *group);
void start_done(struct start *start); /* closes the trees; the rest is the caller's */
/* The control group of a plan, as to its limits. */
void start_want_cgroup(const struct plan *plan, struct cgroup_want *want);
/* Opens what the parent must open. */
int start_prepare(struct start *start, struct error *err);
/* Clones. The child doesn't return; *setup (this end of the socket) and *pidfd are yours. */
int start_clone(struct start *start, int *setup, int *pidfd, pid_t *pid, struct error *err);
enum start_fd { START_PROC, START_ROOT, START_WORKSPACE, START_FD_MAX };
/* Descriptors (O_PATH, yours) of a sandbox that is up: its /proc, its root, and as its workspace
 * `measured` (a mount point of its root, which processes inside can't change). `pid` is its PID 1,
 * a child that hasn't been reaped. Returns 1, with an error set, when that process is exiting. */
int start_find(pid_t pid, const char *measured, int fds[START_FD_MAX], struct error *err);
/* What the child needs of us before it can go on. */
int start_let_go(const struct start *start, int setup, pid_t pid, struct error *err);
/* What ends the sandbox when it is sent to the child: of a pid namespace the kernel kills the rest,
 * a guardian (weak.h) does that itself. */
int start_end_signal(const struct plan *plan);
/* Ends and reaps the child after *err. -1; *err becomes its own reason, if it failed by itself
 * before; ERR_CANCELED: it was killed from outside, the caller may start another. */
int start_abandon(const struct plan *plan, pid_t pid, int setup, struct error *err);

/* The child's whole life after clone; doesn't return. */
_Noreturn void child_main(struct start *start);
/* Opens the source of a bind, O_PATH. With `beneath` no link below mount->source is followed: an
 * earlier sandbox, or the owner of the home, may have placed one there. */
int source_open(const struct plan_mount *mount, int *fd, struct error *err);
/* Opens the sources of the plan's binds (those of the user when `user`, else the system's) into
 * trees[]; idmaps them when the plan says so. */
int sources_open(const struct plan *plan, bool user, struct start_idmap *idmap, int *trees,
	struct error *err);

/* Sends one setup message with those of `count` descriptors that aren't -1. -1 with errno. */
int setup_send(int socket, struct setup_message *message, const int *fds, int count);
/* Takes one, without waiting unless `wait`: 1, 0 at end of file, -1 with errno (EAGAIN: nothing
 * yet). fds not sent are -1; the others are yours. */
int setup_receive(int socket, bool wait, struct setup_message *message, int fds[SETUP_FD_MAX]);
void setup_close(int fds[SETUP_FD_MAX]);
