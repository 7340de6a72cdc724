#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/walk.h"
#include "trees/pack/tree.h"

#define ENTRIES_MAX 1000000
#define SYNCED_SINGLY                                                                              \
	256	    /* files: with more, the whole file system is, which waits for others, too */
#define BLOCK 4096u /* what a file takes on disk is a number of these */

static int unpack_failed(const struct tree_unpack *unpack, struct error *err)
{
	return fail_errno(err, "unpack '%s'", unpack->place.path);
}

static int charge(struct tree_unpack *unpack, uint64_t bytes, struct error *err)
{
	unpack->is_over = bytes > unpack->limit - unpack->bytes;
	if (unpack->is_over && unpack->room)
		return fail(err, ERR_LIMIT, "the archive doesn't fit in %s, at '%s'", unpack->room,
			unpack->place.path);
	if (unpack->is_over)
		return fail_hint(err, ERR_LIMIT,
			"remove files, or raise the disk limit of the workspace",
			"the archive doesn't fit in the workspace's disk limit, at '%s'",
			unpack->place.path);
	unpack->bytes += bytes;
	return 0;
}

/* -- places in the stage -- */

/* A time outside the range of the file system leaves the present time. */
static void set_time(int fd, struct timespec modified)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, modified };
	(void)!futimens(fd, times);
}

static void leave(struct tree_unpack *unpack, size_t depth)
{
	while (unpack->depth > depth) {
		struct tree_level *level = &unpack->levels[--unpack->depth];
		set_time(level->fd, level->modified);
		fd_close(&level->fd);
	}
}

/* Opens directory `name` in dir, creating it if missing. */
static int enter(struct tree_unpack *unpack, int dir, const char *name, int *fd, struct error *err)
{
	int opened = fd_open_directory(dir, name);
	if (opened < 0 && errno == ENOENT) {
		if (charge(unpack, BLOCK, err) < 0)
			return -1;
		if (mkdirat(dir, name, 0755) == 0)
			opened = fd_open_directory(dir, name);
	}
	if (opened < 0 && (errno == ELOOP || errno == ENOTDIR))
		return fail(err, ERR_DENIED,
			"'%s' in the archive is below '%s', which is not a directory in the "
			"archive",
			unpack->place.path, name);
	if (opened < 0)
		return unpack_failed(unpack, err);
	*fd = opened;
	return 0;
}

/* The directory that holds the entry at hand, and its name there. *dir is in `levels`. */
static int reach(struct tree_unpack *unpack, int *dir, const char **name, struct error *err)
{
	const char *path = unpack->place.path, *slash;
	size_t depth = 0;
	struct stat st;
	for (; (slash = strchr(path, '/')); path = slash + 1, depth++) {
		struct tree_level *level = &unpack->levels[depth];
		size_t len = (size_t)(slash - path);
		if (depth < unpack->depth && strncmp(level->name, path, len) == 0 &&
			level->name[len] == '\0')
			continue;
		leave(unpack, depth);
		str_format(level->name, sizeof level->name, "%.*s", (int)len, path);
		if (enter(unpack, depth ? level[-1].fd : unpack->stage, level->name, &level->fd,
			    err) < 0)
			return -1;
		unpack->depth = depth + 1;
		if (fstat(level->fd, &st) < 0)
			return unpack_failed(unpack, err);
		level->modified = st.st_mtim;
	}
	leave(unpack, depth);
	*dir = depth ? unpack->levels[depth - 1].fd : unpack->stage;
	*name = path;
	return 0;
}

/* An entry of that name came before: it goes, but for a directory. */
static int make_way(struct tree_unpack *unpack, int dir, const char *name, struct error *err)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno == EISDIR || errno == EPERM)
		return fail(err, ERR_INVALID, "'%s' is also a directory in the archive",
			unpack->place.path);
	return unpack_failed(unpack, err);
}

/* -- entries -- */

static int begin_file(struct tree_unpack *unpack, struct error *err)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const char *name;
	int dir;
	if (reach(unpack, &dir, &name, err) < 0)
		return -1;
	int fd = openat(dir, name, flags, 0600);
	if (fd < 0 && errno == EEXIST) {
		if (make_way(unpack, dir, name, err) < 0)
			return -1;
		fd = openat(dir, name, flags, 0600);
	}
	unpack->file = fd;
	if (fd < 0 || fchmod(fd, unpack->place.mode) < 0)
		return unpack_failed(unpack, err);
	unpack->file_blocks = 0;
	unpack->file_size = unpack->reader.entry.size;
	unpack->file_modified_s = unpack->reader.entry.modified_s;
	return 0;
}

static int write_data(struct tree_unpack *unpack, struct str data, struct error *err)
{
	uint64_t at = unpack->reader.offset;
	/* In whole blocks, as far as they were not begun before. */
	uint64_t end = (at + data.len + BLOCK - 1) / BLOCK, *blocks = &unpack->file_blocks;
	uint64_t first = at / BLOCK > *blocks ? at / BLOCK : *blocks;
	if (end > first && charge(unpack, (end - first) * BLOCK, err) < 0)
		return -1;
	*blocks = end > *blocks ? end : *blocks;
	while (data.len > 0) {
		ssize_t done = fault_fails("archive.write")
				       ? -1
				       : pwrite(unpack->file, data.data, data.len, (off_t)at);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return unpack_failed(unpack, err);
		data = (struct str){ data.data + done, data.len - (size_t)done };
		at += (uint64_t)done;
	}
	return 0;
}

/* The file that was begun is whole. */
static int end_file(struct tree_unpack *unpack, struct error *err)
{
	auto_close int fd = take_fd(&unpack->file);
	if (fd < 0)
		return 0;
	/* It may end with a hole. */
	if (unpack->file_size > unpack->file_blocks * BLOCK &&
		ftruncate(fd, (off_t)unpack->file_size) < 0)
		return unpack_failed(unpack, err);
	set_time(fd, (struct timespec){ .tv_sec = unpack->file_modified_s });
	if (++unpack->files <= SYNCED_SINGLY && unpack->is_upload && fsync(fd) < 0)
		return unpack_failed(unpack, err);
	return 0;
}

static int unpack_directory(struct tree_unpack *unpack, struct error *err)
{
	unsigned mode = unpack->place.mode;
	const char *name;
	struct stat st;
	int dir;
	if (!unpack->place.path[0])
		return 0;
	if (reach(unpack, &dir, &name, err) < 0)
		return -1;
	auto_close int fd = -1;
	if (enter(unpack, dir, name, &fd, err) < 0)
		return -1;
	/* What couldn't be written to couldn't be moved, either. */
	if (fchmod(fd, mode | 0700) < 0 || fstat(fd, &st) < 0)
		return unpack_failed(unpack, err);
	if (!unpack->is_upload && (mode & 0700) != 0700)
		vec_push(&unpack->arena, &unpack->locked,
			(struct tree_locked){
				arena_text(&unpack->arena, unpack->place.path), mode, st.st_ino });
	set_time(fd, (struct timespec){ .tv_sec = unpack->reader.entry.modified_s });
	return 0;
}

static int unpack_link(struct tree_unpack *unpack, struct error *err)
{
	const char *name;
	int dir;
	if (!path_link_stays(unpack->place.path, unpack->place.target) && !unpack->outward.count++)
		str_format(unpack->outward.first, sizeof unpack->outward.first, "'%s' to '%s'",
			unpack->place.path, unpack->place.target);
	if (reach(unpack, &dir, &name, err) < 0 || make_way(unpack, dir, name, err) < 0)
		return -1;
	return symlinkat(unpack->place.target, dir, name) < 0 ? unpack_failed(unpack, err) : 0;
}

/* The directory of `path` in the stage, found without following a link, and the name there. -1:
 * none. By hand: the agent has no openat2. */
static int open_staged_parent(const struct tree_unpack *unpack, const char *path, const char **name)
{
	auto_close int at = openat(unpack->stage, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *slash;
	char one[NAME_MAX + 1];
	for (; at >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		str_format(one, sizeof one, "%.*s", (int)(slash - path), path);
		int next = openat(at, one, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		fd_close(&at);
		at = next;
	}
	*name = path;
	return take_fd(&at);
}

/* Not by its path: whoever can write to the directory around the stage may have replaced a
 * directory of the stage by a link since it was looked at. */
static int unpack_hard_link(struct tree_unpack *unpack, struct error *err)
{
	const char *target = unpack->place.target, *old, *name;
	auto_close int from = open_staged_parent(unpack, target, &old);
	struct stat st;
	int dir;
	if (from < 0 || fstatat(from, old, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return fail(err, ERR_DENIED,
			"'%s' in the archive is a hard link to '%s', which is not an earlier file "
			"in the archive",
			unpack->place.path, target);
	if (reach(unpack, &dir, &name, err) < 0 || make_way(unpack, dir, name, err) < 0)
		return -1;
	return linkat(from, old, dir, name, 0) < 0 ? unpack_failed(unpack, err) : 0;
}

static int judge(struct tree_unpack *unpack, const struct tar_entry *entry, struct error *err)
{
	const struct buf *attributes = &unpack->reader.attributes;
	struct tar_entry judged = *entry;
	if (!unpack->is_upload && !unpack->is_strict) {
		judged.mode &= 0777;
		return archived_judge(&judged, PATH_DEPTH_MAX, &unpack->place, err);
	}
	for (size_t at = 0; at < attributes->len; at += strlen(attributes->data + at) + 1)
		if (archived_judge_attribute(entry->name, attributes->data + at, err) < 0)
			return -1;
	return archived_judge(&judged, unpack->is_strict ? PATH_DEPTH_MAX : ARCHIVED_DEPTH_MAX,
		&unpack->place, err);
}

static bool is_own_link(const struct tree_unpack *unpack)
{
	return unpack->own_name && strcmp(unpack->place.path, unpack->own_name) == 0 &&
	       strcmp(unpack->place.target, unpack->own_link) == 0;
}

static int unpack_entry(struct tree_unpack *unpack, struct error *err)
{
	const struct tar_entry *entry = &unpack->reader.entry;
	struct tree_note *left_out = &unpack->left_out;
	if (++unpack->entries > ENTRIES_MAX)
		return fail(err, ERR_LIMIT, "the archive has more than %d entries", ENTRIES_MAX);
	if (entry->kind == TAR_OTHER && !unpack->is_upload && !unpack->is_strict) {
		if (!left_out->count++)
			str_format(left_out->first, sizeof left_out->first, "special file '%s'",
				entry->name);
		return 0;
	}
	if (judge(unpack, entry, err) < 0)
		return -1;
	switch (entry->kind) {
	case TAR_FILE:
		return begin_file(unpack, err);
	case TAR_DIRECTORY:
		return unpack_directory(unpack, err);
	case TAR_SYMLINK:
		return is_own_link(unpack) ? 0 : unpack_link(unpack, err);
	default:
		return unpack_hard_link(unpack, err);
	}
}

/* -- the archive -- */

void tree_unpack_init(struct tree_unpack *unpack, int stage)
{
	*unpack = (struct tree_unpack){ .stage = stage, .limit = UINT64_MAX, .file = -1 };
	tar_reader_init(&unpack->reader);
	arena_init(&unpack->arena);
}

int tree_unpack_add(struct tree_unpack *unpack, struct str input, struct error *err)
{
	struct str data;
	int step;
	do {
		step = tar_read(&unpack->reader, &input, &data, err);
		if (step < 0)
			return -1;
		if (step == TAR_ENTRY &&
			(end_file(unpack, err) < 0 || unpack_entry(unpack, err) < 0))
			return -1;
		if (step == TAR_DATA && unpack->file >= 0 && write_data(unpack, data, err) < 0)
			return -1;
	} while (step == TAR_ENTRY || step == TAR_DATA);
	return 0;
}

int tree_unpack_end(struct tree_unpack *unpack, struct error *err)
{
	if (tar_reader_finish(&unpack->reader, err) < 0 || end_file(unpack, err) < 0)
		return -1;
	leave(unpack, 0);
	if (unpack->is_upload && unpack->files > SYNCED_SINGLY && syncfs(unpack->stage) < 0)
		return fail_errno(err, "write the archive's files to disk");
	return 0;
}

void tree_unpack_done(struct tree_unpack *unpack)
{
	leave(unpack, 0);
	fd_close(&unpack->file);
	tar_reader_done(&unpack->reader);
	arena_done(&unpack->arena);
}

/* -- the place -- */

struct place {
	bool is_upload;
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
	bool is_there = fstatat(to, name, &there, AT_SYMLINK_NOFOLLOW) == 0;
	if (!is_there && errno != ENOENT)
		return fail_errno(err, "look at '%s'", place->path.data);
	if (is_there && S_ISDIR(mine.st_mode) != S_ISDIR(there.st_mode))
		return fail_hint(err, ERR_CONFLICT, "move or remove it first",
			"'%s' already exists and is a %s; in the archive it is a %s",
			place->path.data, path_type(there.st_mode), path_type(mine.st_mode));
	/* A directory that is new there comes as a whole. */
	if (!S_ISDIR(mine.st_mode) || !is_there)
		return move(place, from, to, name, err);
	auto_close int source = path_open_entry(from, name);
	auto_close int target = path_open_entry(to, name);
	if (source < 0 || target < 0)
		return fail_errno(err, "open '%s'", place->path.data);
	bool is_set = place->moves && place->is_upload;
	if (is_set && fchmod(target, mine.st_mode & 0777) < 0)
		return fail_errno(err, "change the mode of '%s'", place->path.data);
	if (merge(place, source, target, depth + 1, err) < 0)
		return -1;
	if (is_set)
		set_time(target, mine.st_mtim);
	return 0;
}

/* Everything in `from` goes to the same name in `to`. */
static int merge(struct place *place, int from, int to, int depth, struct error *err)
{
	auto_walk DIR *walk = walk_open(from, ".");
	size_t len = place->path.len;
	struct dirent *entry;
	if (!walk)
		return fail_errno(err, "open '%s'", place->path.data);
	if (depth > PATH_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "'%s' is nested too deeply", place->path.data);
	while ((entry = walk_next(walk))) {
		buf_printf(&place->path, "%s%s", len ? "/" : "", entry->d_name);
		if (merge_entry(place, from, to, entry->d_name, depth, err) < 0)
			return -1;
		place->path.len = len;
		place->path.data[len] = '\0';
	}
	if (errno)
		return fail_errno(err, "read directory '%s'", place->path.data);
	if (place->moves && place->is_upload && fsync(to) < 0)
		return fail_errno(err, "write directory '%s' to disk", place->path.data);
	return 0;
}

/* Set modes of directories last, inner ones first: without permissions on a directory its files
 * couldn't be created. */
static int lock_directories(const struct tree_unpack *unpack, int root, struct error *err)
{
	struct stat st;
	for (size_t i = unpack->locked.count; i-- > 0;) {
		const struct tree_locked *locked = &unpack->locked.items[i];
		auto_close int fd =
			path_open_nolinks(root, locked->path, O_RDONLY | O_DIRECTORY, 0);
		/* A directory that existed before keeps its mode. */
		if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != locked->inode)
			continue;
		if (fchmod(fd, locked->mode) < 0)
			return fail_errno(err, "set the mode of '%s'", locked->path);
	}
	return 0;
}

int tree_unpack_place(struct tree_unpack *unpack, int target, struct error *err)
{
	struct place place = { .is_upload = unpack->is_upload };
	int failed = 0;
	buf_init(&place.path, (size_t)1 << 20);
	for (int round = 0; target != unpack->stage && !failed && round < 2; round++) {
		place.moves = round == 1;
		failed = merge(&place, unpack->stage, target, 0, err);
	}
	buf_done(&place.path);
	return failed ? -1 : lock_directories(unpack, target, err);
}
