/* marks.c -- the marks of overlays in a tree that was a plain directory: in workspaces of earlier
 * versions a command could set them itself, and a forged one would be obeyed. They are removed
 * once, before the first overlay is mounted on such a tree; `work` beside it says that it was done.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "core/internal.h"
#include "core/waits.h"

#define MARK_PREFIX "user.overlay."
#define NAMES_MAX 65536 /* the kernel's own limit of a list of names */
#define DEPTH_MAX 2048	/* PATH_MAX / 2: no path names more; fits into the stack of a fiber */

struct sweep {
	struct fiber *fiber;
	int upper;
	bool is_done;
	struct error err;
};

/* All of `name` in the working directory. An attribute is removed by those who may write, which the
 * owner gives himself for the moment. */
static int remove_marks(const char *name, mode_t mode, struct error *err)
{
	static char names[NAMES_MAX];
	ssize_t len = llistxattr(name, names, sizeof names);
	if (len < 0)
		return errno == ENOTSUP ? 0 : fail_errno(err, "list the attributes of '%s'", name);
	bool is_opened = false;
	int failed = 0;
	for (ssize_t at = 0; !failed && at < len; at += (ssize_t)strlen(names + at) + 1) {
		if (strncmp(names + at, MARK_PREFIX, sizeof MARK_PREFIX - 1))
			continue;
		if (!is_opened && fchmodat(AT_FDCWD, name, (mode & 07777) | 0700, 0))
			failed = fail_errno(err, "change the mode of '%s'", name);
		is_opened = true;
		if (!failed && lremovexattr(name, names + at) && errno != ENODATA)
			failed = fail_errno(err, "remove '%s' of '%s'", names + at, name);
	}
	if (is_opened && fchmodat(AT_FDCWD, name, mode & 07777, 0) && !failed)
		failed = fail_errno(err, "change the mode of '%s'", name);
	return failed;
}

static int sweep_directory(int fd, int depth, struct error *err);

static int sweep_entry(int dir, const char *name, int depth, struct error *err)
{
	struct stat st;
	if (fchdir(dir))
		return fail_errno(err, "enter the directory of '%s'", name);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return fail_errno(err, "look at '%s'", name);
	if (S_ISLNK(st.st_mode)) /* has no such attributes */
		return 0;
	if (remove_marks(name, st.st_mode, err) || !S_ISDIR(st.st_mode))
		return err->code ? -1 : 0;
	bool is_closed = (st.st_mode & 0500) != 0500;
	if (is_closed && fchmodat(dir, name, (st.st_mode & 07777) | 0700, 0))
		return fail_errno(err, "change the mode of '%s'", name);
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int failed =
		fd < 0 ? fail_errno(err, "open '%s'", name) : sweep_directory(fd, depth + 1, err);
	if (is_closed && fchmodat(dir, name, st.st_mode & 07777, 0) && !failed)
		failed = fail_errno(err, "change the mode of '%s'", name);
	return failed;
}

/* Takes fd. */
static int sweep_directory(int fd, int depth, struct error *err)
{
	auto_walk DIR *walk = walk_from(fd);
	struct dirent *entry;
	if (!walk)
		return fail_errno(err, "read a directory");
	if (depth > DEPTH_MAX)
		return fail(err, ERR_LIMIT, "deeper than %d directories", DEPTH_MAX);
	while ((entry = walk_next(walk)))
		if (sweep_entry(dirfd(walk), entry->d_name, depth, err))
			return -1;
	return errno ? fail_errno(err, "read a directory") : 0;
}

/* In a child: a tree can be large. */
static uint64_t find(void *ctx)
{
	struct sweep *sweep = ctx;
	struct stat st;
	sweep->err = (struct error){ 0 };
	if (fstat(sweep->upper, &st) || fchdir(sweep->upper))
		fail_errno(&sweep->err, "enter 'upper'");
	else if (!remove_marks(".", st.st_mode, &sweep->err))
		sweep_directory(openat(sweep->upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0,
			&sweep->err);
	return sweep->err.code == ERR_NONE;
}

static void on_swept(void *ctx, bool ok, uint64_t value)
{
	struct sweep *sweep = ctx;
	if (!ok)
		fail(&sweep->err, ERR_FAILED, "the process that looks for marks has ended");
	sweep->is_done = ok && value;
	fiber_continue(sweep->fiber, NULL);
}

int marks_sweep(struct fiber *fiber, struct core_workspace *w, struct error *err)
{
	struct sweep sweep = { .fiber = fiber };
	char path[ID_LEN + 16];
	struct error none;
	str_format(path, sizeof path, "%s/upper", w->model.id);
	auto_close int upper =
		path_open_nolinks(w->core->workspaces, path, O_RDONLY | O_DIRECTORY, 0);
	if (upper < 0)
		return fail_errno(err, "open '%s'", path);
	sweep.upper = upper;
	struct measure child = { .loop = w->core->loop,
		.find = find,
		.found = on_swept,
		.ctx = &sweep,
		.keep = { upper, w->core->workspaces },
		.keep_count = 2,
		.detail = &sweep.err,
		.detail_len = sizeof sweep.err };
	measure_start(&child);
	fiber_wait(fiber, &none);
	str_format(path, sizeof path, "%s/work", w->model.id);
	fault_point("core_marks");
	if (sweep.is_done && mkdirat(w->core->workspaces, path, 0755) && errno != EEXIST)
		fail_errno(&sweep.err, "make '%s'", path);
	if (!sweep.err.code)
		return 0;
	*err = sweep.err;
	return error_context(err, "prepare the files of workspace '%s'", w->model.name);
}
