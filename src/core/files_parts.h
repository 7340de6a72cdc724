/* files_parts.h -- what files*.c and archive*.c share. Private to them. */
#pragma once
#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>
#include "core/files.h"
#include "core/internal.h"

/* ---- files.c ---- */
/* The beginning of every verb here: may it be done? Then the workspace is in use. */
int files_enter(
	const struct request *request, enum verb verb, struct core_workspace *w, struct error *err);

/* ---- files_path.c: names to places ---- */

/* Something in the tree, or where it would be. */
struct files_place {
	int dir;		 /* of the directory that holds it; of itself, for the root */
	char name[NAME_MAX + 1]; /* in dir; "": the root */
	bool is_there;
	struct stat st; /* what it is, itself and not what it leads to */
};
enum files_how {
	FILES_FOLLOW = 1, /* the last component, too, when it is a link */
	FILES_MAKE = 2,	  /* directories above it that aren't there */
};
/* Outputs are yours; files_leave closes. Absent is success as long as its directory is there. */
int files_locate(struct core_workspace *w, const char *path, unsigned how,
	struct files_place *place, struct error *err);
/* The same, ERR_NOT_FOUND when it isn't there. */
int files_locate_known(struct core_workspace *w, const char *path, unsigned how,
	struct files_place *place, struct error *err);
void files_leave(struct files_place *place);
#define auto_place __attribute__((cleanup(files_leave)))
#define FILES_NOWHERE                                                                              \
	{                                                                                          \
		.dir = -1                                                                          \
	}
/* `name` in dir, following nothing, crossing no mount, never waiting for a fifo. "" is dir itself.
 * A descriptor, or -1 with errno. */
int files_open_at(int dir, const char *name, int flags);
/* As files_open_at, of the very thing that was looked at. */
int files_open_place(
	const struct files_place *place, const char *path, int flags, int *fd, struct error *err);
/* What a mode's file type is called. */
const char *files_type(mode_t mode);

/* ---- files_in.c: workspaces/<id>/.in ---- */

/* Opens it, making it when it isn't there. */
int files_open_in(struct core_workspace *w, int *fd, struct error *err);
/* `name` in `in` goes: by a child when it is a directory with something in it. */
void files_discard(struct loop *loop, int in, const char *name);
/* A directory that was the tree's: its bytes count no more when they are freed. 1: `done` (or NULL)
 * is called then. 0: no process could be started for it; files_sweep removes it at the next start.
 */
int files_discard_known(
	struct core_workspace *w, int in, const char *name, files_freed_fn *done, void *ctx);
void files_charge(struct core_workspace *w, int64_t bytes);
int files_over_limit(const struct core_workspace *w, struct error *err);

/* ---- files_child.c: what takes long ---- */

/* In the child, with the job's `keep` at their new numbers; *value is for done. */
#define FILES_KEEP_MAX 4
typedef int files_work(void *ctx, const int *fds, uint64_t *value, struct error *err);
typedef void files_worked_fn(void *ctx, uint64_t value, const struct error *err);
struct files_child;
struct files_job {
	const char *what; /* "unpack the archive" */
	const char *name; /* of the process, or NULL: as ours */
	files_work *work;
	void *work_ctx;
	int keep[FILES_KEEP_MAX]; /* the descriptors it has */
	int keep_count;
	/* Which of them, by bits, are directories that it may look into, or change, by names. */
	unsigned readable, writable;
	uint64_t file_bytes_max; /* of one file; 0: any */
	bool needs_locale;	 /* libarchive converts names by it */
	bool stays;		 /* for as long as we do: neither time nor memory is limited */
	files_worked_fn *done;	 /* NULL: nobody waits */
	void *ctx;
};
/* Forks; done is called from the loop when the child has ended. Descriptors stay the caller's. */
int files_child_start(struct loop *loop, const struct files_job *job, struct files_child **child,
	struct error *err);
/* It has ended, or is ended now: calls done. */
void files_child_end(struct files_child *child);
/* Kills it; done isn't called. */
void files_child_kill(struct files_child *child);
