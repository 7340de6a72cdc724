#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/path.h"
#include "base/walk.h"
#include "trees/stacks/internal.h"

#define CHUNK ((size_t)256 << 10)

struct copying {
	struct snapshot_copy *done;
	struct arena arena;
	struct map links; /* device and inode -> struct first_name, of files with several names */
	struct buf path;
	int root; /* of the copy */
	unsigned depth;
	char *chunk; /* CHUNK bytes, when it is needed */
};
struct first_name {
	const char *path;
};

static int fail_at(const struct copying *copying, const char *what, struct error *err)
{
	return fail_errno(err, "%s '%s'", what, copying->path.data);
}

/* Without copy_file_range: between two file systems of different types. */
static ssize_t move_chunk(struct copying *copying, int from, int to, off_t at, size_t len)
{
	size_t want = len < CHUNK ? len : CHUNK;
	if (!copying->chunk)
		copying->chunk = arena_alloc(&copying->arena, CHUNK);
	ssize_t got = pread(from, copying->chunk, want, at);
	for (ssize_t put = 0; put < got;) {
		ssize_t now = pwrite(to, copying->chunk + put, (size_t)(got - put), at + put);
		if (now < 0 && errno != EINTR)
			return -1;
		put += now < 0 ? 0 : now;
	}
	return got;
}

static int copy_range(struct copying *copying, int from, int to, off_t at, off_t end)
{
	bool is_refused = false;
	while (at < end) {
		off_t in = at, out = at;
		size_t len = (size_t)(end - at) < SSIZE_MAX ? (size_t)(end - at) : SSIZE_MAX;
		ssize_t moved = is_refused ? move_chunk(copying, from, to, at, len)
					   : copy_file_range(from, &in, to, &out, len, 0);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0 && !is_refused &&
			(errno == EXDEV || errno == EINVAL || errno == ENOSYS ||
				errno == EOPNOTSUPP)) {
			is_refused = true;
			continue;
		}
		if (moved < 0)
			return -1;
		if (moved == 0) /* it became shorter meanwhile */
			return 0;
		at += moved;
		copying->done->bytes += (uint64_t)moved;
	}
	return 0;
}

static int copy_content(struct copying *copying, int from, int to, off_t size)
{
	off_t at = 0;
	while (at < size && (at = lseek(from, at, SEEK_DATA)) >= 0 && at < size) {
		off_t end = lseek(from, at, SEEK_HOLE);
		if (end < 0 || end > size)
			end = size;
		if (copy_range(copying, from, to, at, end))
			return -1;
		at = end;
	}
	/* ENXIO: there is no data after `at`. */
	if (at < 0 && errno != ENXIO)
		return -1;
	return fault_fails("snapshots.copy") ? -1 : ftruncate(to, size);
}

static int copy_file(struct copying *copying, int from, const char *name, int to,
	const char *to_name, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	attribute_list list;
	struct stat st;
	auto_close int in = -1;
	if (stack_open_file(from, name, &in, &st, err))
		return err && err->code == ERR_NOT_FOUND ? 0 : -1;
	uint64_t id[2] = { st.st_dev, st.st_ino };
	const struct str key = { (const char *)id, sizeof id };
	struct first_name *first = st.st_nlink > 1 ? map_get(&copying->links, key) : NULL;
	if (first)
		return linkat(copying->root, first->path, to, to_name, 0)
			       ? fail_at(copying, "link", err)
			       : 0;
	auto_close int out = openat(to, to_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return fail_at(copying, "create", err);
	if (copy_content(copying, in, out, st.st_size))
		return fail_at(copying, "copy", err);
	if (attributes_read(in, true, &arena, &list, err) || attributes_write(out, &list, err))
		return error_context(err, "'%s'", copying->path.data);
	if (mode_set(out, st.st_mode) ||
		futimens(out, (struct timespec[]){ st.st_atim, st.st_mtim }))
		return fail_at(copying, "set mode and times of", err);
	copying->done->files++;
	if (st.st_nlink > 1) {
		first = arena_alloc(&copying->arena, sizeof *first);
		first->path = arena_text(&copying->arena, copying->path.data);
		map_set(&copying->links, key, first);
	}
	return 0;
}

static int copy_link(struct copying *copying, int from, const char *name, int to,
	const char *to_name, struct error *err)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(from, name, target, sizeof target - 1);
	if (len < 0)
		return errno == ENOENT || errno == EINVAL ? 0 : fail_at(copying, "read link", err);
	target[len] = 0;
	return symlinkat(target, to, to_name) ? fail_at(copying, "create link", err) : 0;
}

static int copy_directory(struct copying *copying, int from, const char *name, int to,
	const char *to_name, struct error *err);

static int copy_entry(struct copying *copying, int from, const char *name, int to,
	const char *to_name, struct error *err)
{
	struct stat st;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : fail_at(copying, "look at", err);
	const struct timespec times[] = { st.st_atim, st.st_mtim };
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return copy_file(copying, from, name, to, to_name, err);
	case S_IFDIR:
		return copy_directory(copying, from, name, to, to_name, err);
	case S_IFSOCK:
		copying->done->left_out++;
		return 0;
	case S_IFIFO:
		if (mkfifoat(to, to_name, st.st_mode & 0777))
			return fail_at(copying, "create", err);
		break;
	case S_IFLNK:
		if (copy_link(copying, from, name, to, to_name, err))
			return -1;
		break;
	default:
		if (!stack_is_whiteout(&st))
			return fail(err, ERR_DENIED, "'%s' is a device", copying->path.data);
		return stack_make_whiteout(to, to_name) ? fail_at(copying, "create", err) : 0;
	}
	if (utimensat(to, to_name, times, AT_SYMLINK_NOFOLLOW) && errno != ENOENT)
		return fail_at(copying, "set the times of", err);
	return 0;
}

static int copy_entries(struct copying *copying, int from, int to, struct error *err)
{
	auto_walk DIR *walk = walk_open(from, ".");
	struct dirent *entry;
	if (copying->depth >= STACK_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "'%s' has more than %d directories below each other",
			copying->path.data, STACK_DEPTH_MAX);
	copying->depth++;
	while ((entry = walk_next(walk))) {
		size_t len = path_push(&copying->path, entry->d_name);
		if (copy_entry(copying, from, entry->d_name, to, entry->d_name, err))
			return -1;
		path_pop(&copying->path, len);
	}
	if (errno)
		return fail_at(copying, "list", err);
	copying->depth--;
	return directory_dress(from, to, true, err);
}

static int copy_directory(struct copying *copying, int from, const char *name, int to,
	const char *to_name, struct error *err)
{
	auto_close int in = fd_open_directory(from, name);
	if (in < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : fail_at(copying, "open", err);
	if (mkdirat(to, to_name, 0700))
		return fail_at(copying, "create", err);
	auto_close int out = fd_open_directory(to, to_name);
	if (out < 0)
		return fail_at(copying, "open", err);
	return copy_entries(copying, in, out, err);
}

static void begin(struct copying *copying, int root, struct snapshot_copy *done)
{
	*copying = (struct copying){ .done = done, .path = buf_empty(1 << 20), .root = root };
	*done = (struct snapshot_copy){ 0 };
	arena_init(&copying->arena);
	map_init(&copying->links, &copying->arena);
}

static void end(struct copying *copying)
{
	buf_done(&copying->path);
	arena_done(&copying->arena);
}

int snapshot_copy(int from, int to, struct snapshot_copy *done, struct error *err)
{
	struct copying copying;
	begin(&copying, to, done);
	int failed = copy_entries(&copying, from, to, err);
	end(&copying);
	return failed;
}

int snapshot_copy_entry(int from, const char *name, int to, const char *to_name,
	struct snapshot_copy *done, struct error *err)
{
	struct copying copying;
	begin(&copying, to, done);
	path_push(&copying.path, to_name);
	int failed = copy_entry(&copying, from, name, to, to_name, err);
	end(&copying);
	return failed;
}
