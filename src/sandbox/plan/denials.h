/* denials.h -- paths inside a sandbox that its programs may not read, write or remove: file rules
 * of a policy as mounts. Pure.
 * 1. They hold for what is there when the sandbox starts, and for every program in it. A path that
 * doesn't exist then, or that a link is part of, is passed over: what is judged is judged still.
 * 2. A pattern stands for what it matches then. One that matches more than PLAN_MATCHES_MAX files,
 * in too many directories, or among too many or too deep ones, is passed over as a whole, and the
 * sandbox's parent logs it.
 * 3. Directories above such a path, up to the tree that it lies in, can't be renamed or removed. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

#define PLAN_DENIALS_MAX 128
#define PLAN_MATCHES_MAX 1000 /* of one pattern: more of them are judged only */

enum plan_denied {
	DENIED_READ,   /* an unreadable, empty file or directory lies over it */
	DENIED_WRITE,  /* it and what lies below are read-only */
	DENIED_DELETE, /* it can't be renamed or removed */
	DENIED_COUNT
};
struct plan_denial {
	const char *path; /* absolute and normal; a pattern: with * or ? in it */
	enum plan_denied what;
};
typedef VEC(struct plan_denial) plan_denials;

/* "read", "write", "delete". */
extern const char *const plan_denied_names[DENIED_COUNT];
/* As one text, for a message: "read:/workspace/.env". */
const char *denial_print(const struct plan_denial *denial, struct arena *arena);
/* ERR_INVALID: not such a text, or a path that nothing can be mounted at. `path` points into
 * text. */
int denial_parse(const char *text, struct plan_denial *denial, struct error *err);
int denial_check(const struct plan_denial *denial, struct error *err);

bool denial_is_pattern(const struct plan_denial *denial);

/* What deny rules of the stack for files become. A rule that names a path, a directory and all
 * below it, or a pattern below the workspace becomes a denial; of a pattern for any directory of
 * the system, its part below the workspace. The others (another pattern, a path of /proc, /dev or
 * /sys, the removal of what lies in a directory that may be written to) are only judged: their
 * texts are added to `judged`, unless that is NULL. */
struct policy_stack;
void denials_of(const struct policy_stack *stack, struct arena *arena, plan_denials *denials,
	text_list *judged);
