/* files.h -- files of a workspace, by descriptor beneath its root; it needn't run.
 * 1. The root is workspaces/<id>/upper, what a sandbox sees as /workspace. `path` is relative to it
 * ("" is the root itself); a leading "/workspace" or "/" is taken off. No "..", no NUL.
 * 2. Nothing on the way leads out: openat2 beneath, no magic links, no mount points (NO_XDEV).
 * Links are followed as long as they stay inside (an absolute one to /workspace/x is inside: it is
 * looked up as x); the last component of remove, move, and stat isn't followed. Fifos, sockets and
 * devices are never opened (ERR_INVALID, named), only listed, moved and removed.
 * 3. Writing replaces atomically: a temporary file in workspaces/<id>/.in, which no sandbox sees,
 * synced, renamed into place. Modes keep no setuid or setgid bit.
 * 4. A write under way holds the workspace. What was written is on the disk; what was made, moved
 * or removed is as soon as the file system sees to it, and the loop doesn't wait for that. Errors,
 * of all of them: ERR_INVALID (a path that can't be one, or what can't be done to such a thing),
 * ERR_NOT_FOUND, ERR_DENIED (it leads out, or its mode forbids it), ERR_CONFLICT. */
#pragma once
#include "base/arena.h"
#include "base/vec.h"
#include "core/core.h"
#include "format/json.h"

struct file_info {
	const char *name; /* last component; of the root: "workspace" */
	const char *type; /* "file", "directory", "link", "fifo", "socket", "device" */
	uint64_t size;
	int64_t modified_ms;
	unsigned mode;	  /* permission bits */
	const char *link; /* target, or NULL */
};
/* {"name","type","size","mode","modified_at","link"}; mode as "0644", bytes that aren't UTF-8 as
 * U+FFFD, and of a name that has such {"name_base64"} as well: it couldn't be asked for otherwise.
 */
void file_print(struct json *j, const char *key, const struct file_info *info);

core_verb int files_stat(const struct request *request, struct core_workspace *w, const char *path,
	struct arena *arena, struct file_info *info, struct error *err);
/* Sorted by the bytes of the names; at most `limit` after `cursor` (NULL: from the start); *next
 * NULL or the cursor for more: a name, with % and what isn't UTF-8 as %XX. A directory of more than
 * 100,000 entries is ERR_LIMIT. */
#define FILES_ENTRIES_MAX 100000
typedef VEC(struct file_info) file_infos;
core_verb int files_list(const struct request *request, struct core_workspace *w, const char *path,
	const char *cursor, size_t limit, struct arena *arena, file_infos *infos, const char **next,
	struct error *err);
/* A regular file for reading, and what it is. *fd is yours. */
core_verb int files_open(const struct request *request, struct core_workspace *w, const char *path,
	struct arena *arena, int *fd, struct file_info *info, struct error *err);

struct file_write; /* one that is being written */
/* mode 0: that of the file it replaces, else 0644. */
enum {
	WRITE_PARENTS = 1, /* mkdir -p before */
	WRITE_NEW = 2,	   /* replaces nothing: ERR_CONFLICT, now or when it gets its name */
};
core_verb int files_begin_write(const struct request *request, struct core_workspace *w,
	const char *path, unsigned mode, unsigned how, struct file_write **write,
	struct error *err);
/* ERR_DISK_FULL; ERR_LIMIT: the workspace's disk limit. */
int files_write(struct file_write *write, const void *data, size_t len, struct error *err);
/* Synced and renamed, by a child; done is called from the loop: it has its name now. created: there
 * was none before. */
typedef void files_written_fn(void *ctx, bool created, const struct error *err);
void files_finish_write(struct file_write *write, files_written_fn *done, void *ctx);
void files_abort_write(struct file_write *write); /* NULL: nothing */

/* With the directories above it; one that is there is success. */
core_verb int files_mkdir(const struct request *request, struct core_workspace *w, const char *path,
	bool *created, struct error *err);
/* Within the workspace; replaces a file, never a directory that isn't empty (ERR_CONFLICT). */
core_verb int files_move(const struct request *request, struct core_workspace *w, const char *from,
	const char *to, struct error *err);
/* recursive: a directory with all below it; else ERR_CONFLICT when it isn't empty. The root itself
 * is ERR_INVALID. 0: its bytes are free. 1: its name is gone, and a child frees the bytes: `done`
 * (or NULL) is called from the loop when they are free. */
typedef void files_freed_fn(void *ctx);
core_verb int files_remove(const struct request *request, struct core_workspace *w,
	const char *path, bool recursive, files_freed_fn *done, void *ctx, struct error *err);
/* At start, before anything of the above: what a crash left in .in goes. */
void files_sweep(struct core_workspace *w);
/* Bytes that may still be written before the workspace's limit, as far as it is counted and was
 * measured; UINT64_MAX: a quota keeps it, or nothing does. */
uint64_t files_room(const struct core_workspace *w);
