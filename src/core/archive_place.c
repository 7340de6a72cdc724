#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/archive_parts.h"
#include "format/archived.h"

struct place {
	bool moves; /* false: only looks whether it could be done */
	struct buf path;
};

static void close_walk(DIR **walk)
{
	if (*walk)
		closedir(*walk);
}
#define auto_walk __attribute__((cleanup(close_walk)))

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
	/* What the unpacking process should have seen to. */
	if ((!S_ISREG(mine.st_mode) && !S_ISDIR(mine.st_mode) && !S_ISLNK(mine.st_mode)) ||
		mine.st_mode & (S_ISUID | S_ISGID))
		return fail(err, ERR_DENIED,
			"'%s' in the archive has a type or mode that is not allowed",
			place->path.data);
	bool is_there = to >= 0 && fstatat(to, name, &there, AT_SYMLINK_NOFOLLOW) == 0;
	if (!is_there && to >= 0 && errno != ENOENT)
		return fail_errno(err, "look at '%s'", place->path.data);
	if (is_there && S_ISDIR(mine.st_mode) != S_ISDIR(there.st_mode))
		return fail_hint(err, ERR_CONFLICT, "remove it first, or unpack elsewhere",
			"'%s' is a %s in the archive and a %s in the workspace", place->path.data,
			files_type(mine.st_mode), files_type(there.st_mode));
	/* A directory that is new there comes as a whole: but it is looked at, too. */
	if (!S_ISDIR(mine.st_mode) || (!is_there && place->moves))
		return move(place, from, to, name, err);
	auto_close int source = files_open_at(from, name, O_RDONLY | O_DIRECTORY);
	auto_close int target = is_there ? files_open_at(to, name, O_RDONLY | O_DIRECTORY) : -1;
	if (source < 0 || (is_there && target < 0))
		return fail_errno(err, "open '%s'", place->path.data);
	if (is_there && place->moves && fchmod(target, mine.st_mode & 0777) < 0)
		return fail_errno(err, "change the mode of '%s'", place->path.data);
	if (merge(place, source, target, depth + 1, err) < 0)
		return -1;
	if (is_there && place->moves)
		(void)!futimens(target, times);
	return 0;
}

/* Everything in `from` goes to the same name in `to`; -1: there is no such directory yet. */
static int merge(struct place *place, int from, int to, int depth, struct error *err)
{
	int own = fcntl(from, F_DUPFD_CLOEXEC, 0);
	auto_walk DIR *walk = own < 0 ? NULL : fdopendir(own);
	size_t len = place->path.len;
	struct dirent *entry;

	if (!walk)
		return fail_errno(err, "open '%s'", place->path.data);
	if (depth > ARCHIVED_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "'%s' is nested too deeply", place->path.data);
	rewinddir(walk);
	for (errno = 0; (entry = readdir(walk)); errno = 0) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		buf_printf(&place->path, "%s%s", len ? "/" : "", entry->d_name);
		if (merge_entry(place, from, to, entry->d_name, depth, err) < 0)
			return -1;
		place->path.len = len;
		place->path.data[len] = '\0';
	}
	if (errno)
		return fail_errno(err, "read directory '%s'", place->path.data);
	if (place->moves && fsync(to) < 0)
		return fail_errno(err, "write directory '%s' to disk", place->path.data);
	return 0;
}

int archive_place(void *ctx, const int *fds, uint64_t *value, struct error *err)
{
	struct place place = { 0 };

	buf_init(&place.path, (size_t)1 << 20);
	for (int round = 0; round < 2; round++) {
		place.moves = round == 1;
		if (merge(&place, fds[0], fds[1], 0, err) < 0)
			return -1;
	}
	/* Directories that were there already are left, empty. */
	return path_remove_tree(fds[2], ctx, err);
}
