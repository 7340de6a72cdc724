#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/id.h"
#include "base/map.h"
#include "base/path.h"
#include "base/str.h"
#include "base/walk.h"

#define RETRIES 16 /* of operations that fail only when another process interferes */

bool path_is_absolute(const char *path)
{
	return path[0] == '/';
}

const char *path_type(mode_t mode)
{
	static const struct {
		mode_t type;
		const char *name;
	} types[] = { { S_IFREG, "file" }, { S_IFDIR, "directory" }, { S_IFLNK, "link" },
		{ S_IFIFO, "fifo" }, { S_IFSOCK, "socket" } };
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if ((mode & S_IFMT) == types[i].type)
			return types[i].name;
	return "device";
}

static bool is_dots(struct str name)
{
	return str_is(name, ".") || str_is(name, "..");
}

bool path_is_normal(const char *path)
{
	struct str rest = str_from(path), name;
	if (rest.len == 0 || rest.len >= PATH_MAX || path[0] != '/')
		return false;
	if (rest.len == 1)
		return true;
	rest.data++;
	rest.len--;
	while (str_next(&rest, '/', &name)) {
		if (name.len == 0 || is_dots(name))
			return false;
	}
	return rest.data[-1] != '/';
}

char *path_normalize(struct arena *a, const char *base, const char *path)
{
	struct str rest = str_from(path), name;
	size_t len = path_is_absolute(path) ? 0 : strlen(base);
	char *out = arena_alloc(a, strlen(base) + rest.len + 3);
	/* out is kept without a trailing slash: the root is the empty string until the end. */
	memcpy(out, base, len);
	if (len == 1)
		len = 0;
	while (str_next(&rest, '/', &name)) {
		if (str_is(name, "..")) {
			while (len > 0 && out[--len] != '/')
				;
		} else if (name.len > 0 && !str_is(name, ".")) {
			out[len++] = '/';
			memcpy(out + len, name.data, name.len);
			len += name.len;
		}
	}
	if (len == 0)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

const char *path_basename(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

struct str path_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	return (struct str){ path, slash ? (size_t)(slash - path) : 0 };
}

bool path_is_beneath(const char *path, const char *dir)
{
	size_t len = 0;
	while (dir[len] && path[len] == dir[len])
		len++;
	if (dir[len])
		return false;
	return len == 1 || path[len] == '\0' || path[len] == '/';
}

bool path_link_stays(const char *name, const char *target)
{
	struct str rest = str_from(target), part;
	size_t above = 0;
	bool is_down = false;
	if (!target[0] || target[0] == '/')
		return false;
	for (const char *c = name; *c; c++)
		above += *c == '/';
	while (str_next(&rest, '/', &part)) {
		if (!part.len || str_is(part, "."))
			continue;
		if (!str_is(part, "..")) {
			is_down = true;
			continue;
		}
		/* A component before this ".." may be a symlink, whose parent can be anywhere. */
		if (is_down || above-- == 0)
			return false;
	}
	return true;
}

/* The kernel lets ".." pass as long as it stays beneath; we have no use for it, and a caller that
 * lets it through has not checked its input. */
static bool has_dotdot(const char *path)
{
	struct str rest = str_from(path), name;
	while (str_next(&rest, '/', &name)) {
		if (str_is(name, ".."))
			return true;
	}
	return false;
}

static int open_beneath(int dir, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (unsigned)flags | O_CLOEXEC,
		.mode = flags & (O_CREAT | __O_TMPFILE) ? mode : 0,
		.resolve = resolve | RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd, tries = 0;
	if (has_dotdot(path)) {
		errno = EXDEV;
		return -1;
	}
	/* EAGAIN: something was renamed on the way, and the kernel can't tell whether the path
	 * leads out. */
	do {
		fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
	} while (fd < 0 && (errno == EINTR || (errno == EAGAIN && ++tries < RETRIES)));
	return fd;
}

int path_open_nolinks(int dir, const char *path, int flags, mode_t mode)
{
	return open_beneath(dir, path, flags, mode, 0);
}

int path_open_inside(int dir, const char *path, int flags)
{
	return open_beneath(dir, path[0] ? path : ".", flags, 0, RESOLVE_NO_XDEV);
}

int path_make_directories(int dir, const char *path, mode_t mode, int *fd, struct error *err)
{
	struct str rest = str_from(path), name;
	auto_close int at = -1;
	if (path_is_absolute(path) || has_dotdot(path))
		return fail(err, ERR_INVALID, "'%s' is not below its directory", path);
	at = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return fail_errno(err, "open the directory of '%s'", path);
	while (str_next(&rest, '/', &name)) {
		char one[NAME_MAX + 1];
		if (name.len == 0 || is_dots(name))
			continue;
		if (!str_format(one, sizeof one, "%.*s", (int)name.len, name.data)) {
			errno = ENAMETOOLONG;
			return fail_errno(err, "make directory '%s'", path);
		}
		if (mkdirat(at, one, mode) < 0 && errno != EEXIST)
			return fail_errno(err, "make directory '%s' of '%s'", one, path);
		int next = openat(at, one, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return fail_errno(err, "open directory '%s' of '%s'", one, path);
		fd_close(&at);
		at = next;
	}
	*fd = take_fd(&at);
	return 0;
}

/* -- walking trees -- */

int path_open_entry(int dir, const char *name)
{
	auto_close int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct statx stat;
	if (fd < 0)
		return -1;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stat) < 0)
		return -1;
	if (stat.stx_attributes & STATX_ATTR_MOUNT_ROOT && !str_is(str_from(name), ".")) {
		errno = EXDEV;
		return -1;
	}
	return take_fd(&fd);
}

/* NULL with errno. */
static DIR *open_walk(int dir, const char *name)
{
	return walk_from(path_open_entry(dir, name));
}

#define MOVES_MAX (1 << 20)

struct removal {
	int top; /* of the tree's root, where directories that are too deep are moved */
	int moves;
};

/* Not by name, which would follow a link. */
int path_grant_access(int dir, const char *name)
{
	auto_close int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char path[32];
	if (fd < 0)
		return -1;
	str_format(path, sizeof path, "/proc/self/fd/%d", fd);
	/* Not chmod, which is another call: children that are locked in have this one only. */
	return fchmodat(AT_FDCWD, path, S_IRWXU, 0);
}

static int move_up(struct removal *r, int dir, const char *name, struct error *err)
{
	char id[ID_LEN + 1];
	if (r->moves++ == MOVES_MAX)
		return fail(err, ERR_LIMIT, "remove '%s': too many levels of directories", name);
	id_make(id);
	if (renameat(dir, name, r->top, id) == 0 || errno == ENOENT)
		return 0;
	/* Moving a directory rewrites its "..", which needs write permission on it. */
	if (errno == EACCES && path_grant_access(dir, name) == 0 &&
		renameat(dir, name, r->top, id) == 0)
		return 0;
	return fail_errno(err, "move '%s' up", name);
}

static int remove_entry(struct removal *r, int dir, const char *name, int depth, struct error *err);

static int empty_directory(
	struct removal *r, int dir, const char *name, int depth, struct error *err)
{
	auto_walk DIR *walk = open_walk(dir, name);
	struct dirent *entry;
	struct stat st;
	if (!walk && errno == EACCES && path_grant_access(dir, name) == 0)
		walk = open_walk(dir, name);
	/* Gone or replaced meanwhile: the caller looks again. */
	if (!walk && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	if (!walk)
		return fail_errno(err, "open directory '%s'", name);
	int fd = dirfd(walk);
	/* Without w or x nothing in it can be removed. If this fails, the removal below says why.
	 */
	if (fstat(fd, &st) == 0 && (st.st_mode & S_IRWXU) != S_IRWXU)
		(void)!fchmod(fd, S_IRWXU);
	if (depth == 0)
		r->top = fd;
	while ((entry = walk_next(walk))) {
		if (remove_entry(r, fd, entry->d_name, depth + 1, err) < 0)
			return -1;
	}
	return errno ? fail_errno(err, "read directory '%s'", name) : 0;
}

static int remove_entry(struct removal *r, int dir, const char *name, int depth, struct error *err)
{
	int moves = r->moves;
	/* Several rounds: directories that were moved up and files made meanwhile remain. */
	for (int tries = 0; tries < RETRIES; tries++) {
		if (unlinkat(dir, name, 0) == 0)
			return 0;
		if (errno == EISDIR && unlinkat(dir, name, AT_REMOVEDIR) == 0)
			return 0;
		if (errno == ENOENT)
			return 0;
		if (errno == ENOTDIR)
			continue;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return fail_errno(err, "remove '%s'", name);
		if (depth == PATH_DEPTH_MAX)
			return move_up(r, dir, name, err);
		if (empty_directory(r, dir, name, depth, err) < 0)
			return -1;
		if (r->moves > moves) {
			moves = r->moves;
			tries = 0;
		}
	}
	return fail(err, ERR_CONFLICT, "remove '%s': another process keeps writing to it", name);
}

int path_remove_tree(int dir, const char *name, struct error *err)
{
	struct removal r = { .top = -1 };
	if (name[0] == '\0' || strchr(name, '/') || is_dots(str_from(name)))
		return fail(
			err, ERR_INVALID, "'%s' is not the name of a file in a directory", name);
	return remove_entry(&r, dir, name, 0, err);
}

struct measure {
	uint64_t least; /* bytes that an inode counts at least */
	uint64_t bytes, inodes;
	struct arena arena;
	struct map links; /* inodes with more than one name that were counted */
};

static void count_inode(struct measure *m, const struct statx *stat)
{
	if (stat->stx_nlink > 1 && !S_ISDIR(stat->stx_mode)) {
		/* With the device: in an overlay the files of one tree can have several. */
		uint64_t id[3] = { stat->stx_ino, stat->stx_dev_major, stat->stx_dev_minor };
		if (map_set(&m->links, (struct str){ (char *)id, sizeof id }, m))
			return;
	}
	uint64_t bytes = stat->stx_blocks * 512;
	m->bytes += bytes > m->least ? bytes : m->least;
	m->inodes++;
}

static bool is_vanished(int sys_errno)
{
	return sys_errno == ENOENT || sys_errno == ENOTDIR || sys_errno == ELOOP ||
	       sys_errno == EXDEV || sys_errno == ESTALE;
}

static int measure_directory(
	struct measure *m, int dir, const char *name, int depth, struct error *err)
{
	auto_walk DIR *walk = NULL;
	struct dirent *entry;
	if (depth > PATH_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "measure '%s': deeper than %d directories", name,
			PATH_DEPTH_MAX);
	walk = open_walk(dir, name);
	if (!walk)
		return is_vanished(errno) ? 0 : fail_errno(err, "measure '%s'", name);
	int fd = dirfd(walk);
	while ((entry = walk_next(walk))) {
		struct statx stat;
		if (statx(fd, entry->d_name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
			    STATX_BASIC_STATS, &stat) < 0) {
			if (is_vanished(errno))
				continue;
			return fail_errno(err, "measure '%s'", entry->d_name);
		}
		if (stat.stx_attributes & STATX_ATTR_MOUNT_ROOT)
			continue;
		count_inode(m, &stat);
		if (S_ISDIR(stat.stx_mode) &&
			measure_directory(m, fd, entry->d_name, depth + 1, err) < 0)
			return -1;
	}
	return errno && errno != ENOENT ? fail_errno(err, "read directory '%s'", name) : 0;
}

static int measure_tree(
	int dir, uint64_t least, uint64_t *bytes, uint64_t *inodes, struct error *err)
{
	struct measure m = { .least = least };
	struct statx stat;
	if (statx(dir, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stat) < 0)
		return fail_errno(err, "measure a directory");
	arena_init(&m.arena);
	map_init(&m.links, &m.arena);
	count_inode(&m, &stat);
	int failed = measure_directory(&m, dir, ".", 0, err);
	arena_done(&m.arena);
	if (failed)
		return -1;
	*bytes = m.bytes;
	*inodes = m.inodes;
	return 0;
}

int path_measure_tree(int dir, uint64_t *bytes, uint64_t *inodes, struct error *err)
{
	return measure_tree(dir, 0, bytes, inodes, err);
}

int path_charge_tree(int dir, uint64_t *bytes, struct error *err)
{
	uint64_t inodes;
	return measure_tree(dir, PATH_INODE_CHARGE, bytes, &inodes, err);
}
