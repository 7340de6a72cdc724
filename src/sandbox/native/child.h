/* child.h -- what the parts of the child share: see child.c. Private to this room. */
#pragma once
#include "sandbox/native/start.h"
#include "sandbox/native/worker.h"

struct sandbox_child {
	struct start *start;
	const struct plan *plan;
	int root; /* a tmpfs: of our own, or the base's; in the end, in view root, the workspace */
	int scratch; /* the tmpfs that /tmp and others lie on; our own root is it */
	int hidden;  /* the directory of `scratch` that the workspace will cover */
	int mask, mask_file;
	int programs; /* the directory of PLAN_PROGRAMS, to be filled; -1: the plan has no programs
		       */
	int report[SETUP_FD_MAX]; /* descriptors for the supervisor */
	struct worker worker;
	size_t network, files, old_root; /* its jobs */
	bool has_files;			 /* that job is finished */
	int netns;			 /* what the first one made */
	bool is_staged[2];		 /* something is mounted at PLAN_LAYERS, at PLAN_UPPER */
};

/* Completes the files of the root and the views. */
int child_finish_files(struct sandbox_child *child, struct error *err);
/* Masks the entries of the mounted /proc that processes inside may not see or change, and mounts
 * the views of the limits over theirs. */
int child_narrow_proc(struct sandbox_child *child, struct error *err);
/* Binds it on itself: what is a mount point can't be renamed or removed. */
int child_pin(int root, const char *path, uint64_t attributes, struct error *err);
/* Fills PLAN_PROGRAMS, and keeps interpreters of environments as their layers have them. */
int child_make_programs(struct sandbox_child *child, struct error *err);
/* Where a policy holds: makes links of the system's programs that lead to what others write links
 * to nothing. */
int child_cover_links(struct sandbox_child *child, struct error *err);
/* Covers the paths that the plan denies. */
int child_deny_paths(struct sandbox_child *child, struct error *err);
/* Appends what the plan's denied patterns match. */
int child_find_matches(
	struct sandbox_child *child, int root, plan_denials *found, struct error *err);
/* View root: `workspace`, mounted in child->root, takes its place, with all that is mounted there
 * until now over it. */
int child_take_workspace_root(struct sandbox_child *child, int workspace, struct error *err);
/* MOUNT_ATTR_* of a plan's flags. */
uint64_t child_attributes(unsigned flags);

/* One step of the child: it fails with an error, to which the step's name is added. */
struct child_step {
	const char *name;
	int (*run)(struct sandbox_child *child, struct error *err);
};
/* Takes the steps in order, up to one without a function; the last becomes carrel-init. The first
 * error is sent to the supervisor. */
_Noreturn void child_do(struct start *start, const struct child_step *steps);

/* Steps of every child: see child_lock.c. */
void child_wait_for_parent(
	struct sandbox_child *child, enum setup_type type, int fds[SETUP_FD_MAX]);
int child_join_cgroup(struct sandbox_child *child, struct error *err);
int child_set_rlimits(struct sandbox_child *child, struct error *err);
int child_no_new_privileges(struct sandbox_child *child, struct error *err);
int child_restrict_paths(struct sandbox_child *child, struct error *err);
int child_die_with_supervisor(struct sandbox_child *child, struct error *err);
int child_filter_calls(struct sandbox_child *child, struct error *err);
int child_report(struct sandbox_child *child, struct error *err);
int child_become_init(struct sandbox_child *child, struct error *err);
