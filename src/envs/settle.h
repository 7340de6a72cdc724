/* settle.h -- an upper is brought in line (upper.h) where frozen layers lie below it: what they
 * hold of a package hides the layers of the new environment. That is copied into the upper, and
 * what the package hasn't any more gets a whiteout there; frozen layers never change, since
 * snapshots and forks have them too. */
#pragma once
#include "base/map.h"
#include "envs/kind.h"
#include "trees/stacks/stack.h"

struct settling {
	const struct layer_store *layers;
	const struct upper_change *change;
	struct arena *arena;
	struct map forced; /* names of change->forced */
	int upper;
	/* The upper, the frozen layers, those of the new environment in the order of change->after;
	 * -1: a layer that hasn't this tree. */
	int *fds;
	size_t frozen, count;	/* of them */
	struct stack_dir stack; /* of them */
	struct stack_dir below; /* of the frozen ones */
	struct map emptied;	/* directories that something was hidden in */
};
/* Of a kind, apart from env_kind: only jobs over trees look at frozen layers. */
typedef int env_unshadow_fn(struct settling *s, struct error *err);
#define ENV_UNSHADOW_EXTERN(id, name) extern env_unshadow_fn env_##name##_unshadow;
ENV_KIND_LIST(ENV_UNSHADOW_EXTERN)

/* Opens the stacks of fds, settles, and closes the stacks. The fds stay the caller's. */
int env_settle(const struct env_kind *kind, struct settling *s, struct error *err);

/* ---- for kinds ---- */
/* The directory `path` of a stack; stack_done follows. */
int settle_enter(
	const struct stack_dir *root, struct str path, struct stack_dir *dir, struct error *err);
/* What is at `path` of a stack, in *parent, which stack_done follows for. */
int settle_look(const struct stack_dir *root, const char *path, struct stack_entry *entry,
	struct stack_dir *parent, struct error *err);
bool settle_is_in_after(const struct settling *s, const char *path);
/* 1: a frozen layer shows something there that the new environment hasn't. */
int settle_is_outdated(const struct settling *s, const char *path, struct error *err);
bool settle_is_frozen(void *settling, const char *path);
/* Opens the directory `path` of the upper, with those above it. 1: a command has put something else
 * there. */
int settle_make_directory(const struct settling *s, struct str path, int *fd, struct error *err);
/* Hides what the frozen layers show there. */
int settle_hide(struct settling *s, const char *path, struct error *err);
/* Copies an entry of a layer into the upper, which has none of that name. */
int settle_copy_in(const struct settling *s, int tree, const char *path, struct error *err);
