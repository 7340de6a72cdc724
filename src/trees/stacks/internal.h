/* internal.h -- what the files of this room share. Private to it. */
#pragma once
#include "trees/stacks/snapshots.h"

#define ATTRIBUTE_LIST_MAX 65536
#define ATTRIBUTE_VALUE_MAX 65536

struct attribute {
	const char *name;
	struct str value;
};
typedef VEC(struct attribute) attribute_list;
/* The attributes of `fd` that are part of a tree (invariant 3 of snapshots.h), sorted by name. Only
 * user.*: others are the system's. */
int attributes_read(
	int fd, bool with_opaque, struct arena *arena, attribute_list *list, struct error *err);
int attributes_write(int fd, const attribute_list *list, struct error *err);
bool attributes_equal(const attribute_list *a, const attribute_list *b);
/* fchmod, without the setuid and setgid bits where the caller may not set these. */
int mode_set(int fd, mode_t mode);
/* Gives the directory `to` the mode, the times and the attributes of `from`; with_opaque: also its
 * opaque mark. */
int directory_dress(int from, int to, bool with_opaque, struct error *err);

/* A path that grows and shrinks with a walk. */
size_t path_push(struct buf *path, const char *name); /* its length before, for path_pop */
void path_pop(struct buf *path, size_t len);
