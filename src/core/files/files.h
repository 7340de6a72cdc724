/* files.h -- files of a workspace, as a command in it sees them: the work is done by a file server
 * in its sandbox (core/files/file_servers.h), which is started for it when there is none.
 * 1. `path` is relative to /workspace ("" is that itself) or absolute, as inside: /tmp/x, /env/x.
 * No
 * "..", no NUL. Links are followed as for a command; the last component of remove, move and stat
 * isn't. Where links and races lead, a command could go as well, and nowhere else.
 * 2. Only regular files on file systems that hold data are opened. Fifos, sockets and devices are
 * never opened (ERR_INVALID, named), only listed, moved and removed.
 * 3. Writing replaces atomically: a file without a name, synced, then named. Modes keep no setuid
 * or setgid bit.
 * 4. A request under way holds the workspace; it counts as a use of it, and not as something that
 * runs there. What was written is on the disk; what was made, moved or removed is as soon as the
 * file system sees to it.
 * 5. Callbacks are called once, from the loop. Errors, of all of them: ERR_INVALID (a path that
 * can't be one, or what can't be done to such a thing), ERR_NOT_FOUND, ERR_DENIED (its mode, or the
 * sandbox, forbids it), ERR_CONFLICT, ERR_UNAVAILABLE (the server could not be started, or a
 * process in the sandbox has ended it). */
#pragma once
#include "base/vec.h"
#include "core/core.h"
#include "format/text/json.h"
#include "sandbox/files/protocol.h"

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

typedef VEC(struct file_info) file_infos;
struct files_answer { /* valid until the callback returns */
	struct file_info info;
	bool created;	  /* mkdir, write: it was not there before */
	file_infos infos; /* list */
	const char *next; /* list: NULL, or the cursor for more */
	int fd;		  /* open: yours, for reading; else -1 */
};
typedef void files_fn(void *ctx, const struct files_answer *answer, const struct error *err);

enum files_verb {
	FILES_STAT,
	/* Sorted by the bytes of the names; at most `limit` after `cursor`. A directory of more
	 * than FILES_ENTRIES_MAX entries is ERR_LIMIT. */
	FILES_LIST,
	FILES_OPEN,  /* a regular file, for reading */
	FILES_MKDIR, /* with its parent directories; an existing directory is success */
	/* `to` replaces a file, never a directory that isn't empty (ERR_CONFLICT). */
	FILES_MOVE,
	/* The root itself is ERR_INVALID; not `recursive`: ERR_CONFLICT when it isn't empty. */
	FILES_REMOVE,
};
#define FILES_ENTRIES_MAX FILE_ENTRIES_MAX
struct files_request {
	enum files_verb verb;
	const char *path, *to;
	const char *cursor; /* NULL: from the start */
	size_t limit;
	bool recursive;
};
core_verb void files_do(const struct request *request, struct core_workspace *w,
	const struct files_request *what, files_fn *done, void *ctx);

struct file_write; /* an upload in progress */
enum {
	WRITE_PARENTS = 1, /* mkdir -p before */
	WRITE_NEW = 2,	   /* replaces nothing: ERR_CONFLICT, now or when it gets its name */
};
/* mode 0: that of the file it replaces, else 0644. */
typedef void files_begun_fn(void *ctx, struct file_write *write, const struct error *err);
core_verb void files_begin_write(const struct request *request, struct core_workspace *w,
	const char *path, unsigned mode, unsigned how, files_begun_fn *begun, void *ctx);
/* ERR_DISK_FULL; ERR_LIMIT: the workspace's disk limit. */
int files_write(struct file_write *write, const void *data, size_t len, struct error *err);
/* Synced, and named. */
void files_finish_write(struct file_write *write, files_fn *done, void *ctx);
void files_abort_write(struct file_write *write); /* NULL: nothing */

/* At start, before anything of the above: what a crash left of uploads goes. */
void files_sweep(struct core_workspace *w);
/* Bytes that may still be written before the workspace's limit, as far as it is counted and was
 * measured; UINT64_MAX: a quota keeps it, or nothing does. */
uint64_t files_room(const struct core_workspace *w);
