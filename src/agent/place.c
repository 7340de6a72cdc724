/* place.c -- what was unpacked goes where it belongs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/agent.h"
#include "base/buf.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "format/archived.h"

struct place {
	bool moves; /* false: only looks whether it could be done */
	struct buf path;
};

static int merge(struct place *place, int from, int to, int depth, struct error *err);

static int move(struct place *place, int from, int to, const char *name, struct error *err)
{
	if (!place->moves)
		return 0;
	fault_point("archive.place");
	if (renameat(from, name, to, name) == 0)
		return 0;
	if (errno == EISDIR || errno == ENOTDIR || errno == ENOTEMPTY || errno == EEXIST)
		return fail(err, ERR_CONFLICT, "'%s' was created while the archive was unpacked",
			place->path.data);
	return fail_errno(err, "move '%s' into place", place->path.data);
}

static int merge_entry(
	struct place *place, int from, int to, const char *name, int depth, struct error *err)
{
	struct stat mine, there;

	if (fstatat(from, name, &mine, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_errno(err, "look at '%s'", place->path.data);
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, mine.st_mtim };
	bool is_there = fstatat(to, name, &there, AT_SYMLINK_NOFOLLOW) == 0;
	if (!is_there && errno != ENOENT)
		return fail_errno(err, "look at '%s'", place->path.data);
	if (is_there && S_ISDIR(mine.st_mode) != S_ISDIR(there.st_mode))
		return fail_hint(err, ERR_CONFLICT, "remove it first, or unpack elsewhere",
			"'%s' is a %s in the archive and a %s in the workspace", place->path.data,
			path_type(mine.st_mode), path_type(there.st_mode));
	/* A directory that is new there comes as a whole. */
	if (!S_ISDIR(mine.st_mode) || !is_there)
		return move(place, from, to, name, err);
	auto_close int source = path_open_entry(from, name);
	auto_close int target = path_open_entry(to, name);
	if (source < 0 || target < 0)
		return fail_errno(err, "open '%s'", place->path.data);
	if (place->moves && fchmod(target, mine.st_mode & 0777) < 0)
		return fail_errno(err, "change the mode of '%s'", place->path.data);
	if (merge(place, source, target, depth + 1, err) < 0)
		return -1;
	if (place->moves)
		(void)!futimens(target, times);
	return 0;
}

/* Everything in `from` goes to the same name in `to`. */
static int merge(struct place *place, int from, int to, int depth, struct error *err)
{
	int own = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), failed = 0;
	DIR *walk = own < 0 ? NULL : fdopendir(own);
	size_t len = place->path.len;
	struct dirent *entry;

	if (!walk)
		return fail_errno(err, "open '%s'", place->path.data);
	if (depth > ARCHIVED_DEPTH_MAX)
		failed = fail(err, ERR_LIMIT, "'%s' is nested too deeply", place->path.data);
	for (errno = 0; !failed && (entry = readdir(walk)); errno = 0) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		buf_printf(&place->path, "%s%s", len ? "/" : "", entry->d_name);
		failed = merge_entry(place, from, to, entry->d_name, depth, err);
		place->path.len = len;
		place->path.data[len] = '\0';
	}
	if (!failed && errno)
		failed = fail_errno(err, "read directory '%s'", place->path.data);
	closedir(walk);
	if (!failed && place->moves && fsync(to) < 0)
		failed = fail_errno(err, "write directory '%s' to disk", place->path.data);
	return failed;
}

int agent_place(int from, int to, struct error *err)
{
	struct place place = { 0 };
	int failed = 0;

	buf_init(&place.path, (size_t)1 << 20);
	for (int round = 0; !failed && round < 2; round++) {
		place.moves = round == 1;
		failed = merge(&place, from, to, 0, err);
	}
	buf_done(&place.path);
	return failed;
}
