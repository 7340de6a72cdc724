/* stack.h -- several directories seen as one, as an overlay (mounted with userxattr) would show
 * them, without mounting it. Nothing follows a link.
 * 1. A stack is a list of directories, topmost first. A whiteout is a character device 0:0, an
 * opaque mark the attribute user.overlay.opaque. Other marks are never made (redirect_dir and
 * metacopy are refused with userxattr).
 * 2. What is looked at may change meanwhile: an entry that vanished is absent, and a file is opened
 * only as the type that was seen. */
#pragma once
#include <sys/stat.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

#define STACK_LAYERS_MAX 1024
#define STACK_DEPTH_MAX 512 /* directories below each other */
#define STACK_OPAQUE "user.overlay.opaque"

struct stack_part {
	int fd;		/* of the directory in that layer */
	unsigned layer; /* index in the list of the root; the topmost is 0 */
};
struct stack_dir {
	struct stack_part *parts; /* topmost first; an empty list is an absent directory */
	size_t count;
	bool is_cut; /* an opaque mark, a whiteout or a file hides the directories of lower layers
		      */
};
struct stack_entry {
	bool is_there;
	struct stat st;
	int dir; /* descriptor of the directory that holds it; not owned */
	unsigned layer;
	bool is_cut; /* a whiteout or an opaque mark ended the search: layers below may have the
		      * name too */
};

bool stack_is_whiteout(const struct stat *st);
/* Makes a whiteout `name`, which must not exist, in dir. -1 with errno. */
int stack_make_whiteout(int dir, const char *name);
/* `dir` has an opaque mark. */
bool stack_is_opaque(int dir);
/* The directories `fds` (-1: a layer that hasn't this tree) as one; duplicates them. stack_done
 * follows, also on failure. */
int stack_open(struct stack_dir *root, const int *fds, size_t count, struct error *err);
void stack_done(struct stack_dir *dir);
#define auto_stack __attribute__((cleanup(stack_done)))
/* What `name` is in `dir`. */
int stack_look(const struct stack_dir *dir, const char *name, struct stack_entry *entry,
	struct error *err);
/* The directory `name` in `dir`: empty when it is absent or not a directory. stack_done follows. */
int stack_enter(
	const struct stack_dir *dir, const char *name, struct stack_dir *child, struct error *err);
/* The names in the parts first … last - 1 of `dir`, whiteouts included, sorted, each once.
 * ERR_LIMIT: more than FILE_NAMES_MAX. */
int stack_names(const struct stack_dir *dir, size_t first, size_t last, struct arena *arena,
	text_list *names, struct error *err);
/* Opens the regular file `name` in dir for reading, without waiting. *st is what it is then.
 * ERR_NOT_FOUND: it isn't one any more. */
int stack_open_file(int dir, const char *name, int *fd, struct stat *st, struct error *err);
