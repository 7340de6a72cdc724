/* dir.c -- the blob store in a directory: an object is a file at its key.
 *	.new/<id>	being written, locked by the process that writes it
 * Write, fsync, rename (or link, for only_new), fsync the directories. Links are never followed:
 *the directory may be shared with others. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "base/walk.h"
#include "blob/internal.h"

#define NEW_DIRECTORY ".new"
#define BUFFER_BYTES (256 << 10)

struct dir_store {
	int root;
};

static int dir_open(const struct blob_settings *settings, int home, void **state, struct error *err)
{
	const char *path = settings->url.path ? settings->url.path : BLOB_DIRECTORY;
	int at = settings->url.path ? AT_FDCWD : home;
	if (mkdirat(at, path, 0700) && errno != EEXIST)
		return fail_errno(err, "make directory '%s'", path);
	auto_close int root = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return fail_errno(err, "open directory '%s'", path);
	if (mkdirat(root, NEW_DIRECTORY, 0700) && errno != EEXIST)
		return fail_errno(err, "make directory '%s/" NEW_DIRECTORY "'", path);
	struct dir_store *store = xzalloc(sizeof *store);
	store->root = take_fd(&root);
	*state = store;
	return 0;
}

static void dir_close(void *state)
{
	struct dir_store *store = state;
	close(store->root);
	free(store);
}

/* Files of writers that were killed: nobody holds their lock. */
static void sweep(const struct dir_store *store)
{
	auto_walk DIR *walk = walk_open(store->root, NEW_DIRECTORY);
	struct dirent *entry;
	while ((entry = walk_next(walk))) {
		auto_close int fd = openat(
			dirfd(walk), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
			unlinkat(dirfd(walk), entry->d_name, 0);
	}
}

/* Copies at most `len` bytes and counts them in *info. */
static int dir_blob_copy(int from, int to, uint64_t len, struct blob_info *info, struct error *err)
{
	auto_free char *buffer = xzalloc(BUFFER_BYTES);
	struct sha256 hash;
	sha256_init(&hash);
	while (len) {
		ssize_t got = read(from, buffer, len < BUFFER_BYTES ? (size_t)len : BUFFER_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_errno(err, "read");
		if (!got)
			break;
		if (fault_fails("blob_write") || fd_write_full(to, buffer, (size_t)got) != got)
			return fail_errno(err, "write");
		sha256_add(&hash, buffer, (size_t)got);
		info->size += (uint64_t)got;
		len -= (uint64_t)got;
	}
	sha256_end_hex(&hash, info->sha256);
	return 0;
}

static int sync_directory(int dir)
{
	auto_close int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || fsync(fd) ? -1 : 0;
}

/* The directory of a key, O_PATH, made and on disk. *name: its last component. */
static int make_parent(const struct dir_store *store, const char *key, int *parent,
	const char **name, struct error *err)
{
	char path[BLOB_KEY_MAX + 1];
	const char *slash = strrchr(key, '/');
	*name = path_basename(key);
	if (!slash) {
		*parent = fcntl(store->root, F_DUPFD_CLOEXEC, 0);
		return *parent < 0 ? fail_errno(err, "duplicate a descriptor") : 0;
	}
	str_format(path, sizeof path, "%.*s", (int)(slash - key), key);
	*parent = path_open_nolinks(store->root, path, O_PATH | O_DIRECTORY, 0);
	if (*parent >= 0)
		return 0;
	if (path_make_directories(store->root, path, 0700, parent, err))
		return -1;
	/* New directories: their names are on disk before the object's is. */
	for (char *end = path + strlen(path); end; end = strrchr(path, '/')) {
		*end = 0;
		auto_close int above = path_open_nolinks(
			store->root, path[0] ? path : ".", O_RDONLY | O_DIRECTORY, 0);
		if (above < 0 || fsync(above))
			return fail_errno(err, "sync directory '%s'", path);
	}
	return fsync(store->root) ? fail_errno(err, "sync the directory of the blob store") : 0;
}

static int dir_blob_publish(const struct dir_store *store, const char *temporary, const char *key,
	bool only_new, struct error *err)
{
	auto_close int parent = -1;
	const char *name;
	if (make_parent(store, key, &parent, &name, err))
		return -1;
	fault_point("blob_publish");
	if (only_new) {
		if (linkat(store->root, temporary, parent, name, 0))
			return errno == EEXIST ? blob_exists(key, err)
					       : fail_errno(err, "link '%s'", key);
		unlinkat(store->root, temporary, 0);
	} else if (renameat(store->root, temporary, parent, name)) {
		return fail_errno(err, "rename to '%s'", key);
	}
	fault_point("blob_published");
	return sync_directory(parent) ? fail_errno(err, "sync the directory of '%s'", key) : 0;
}

static int write_whole(const struct dir_store *store, const char *temporary, int fd,
	const char *key, const struct blob_put *put, struct blob_info *info, struct error *err)
{
	if (dir_blob_copy(put->from, fd, UINT64_MAX, info, err) ||
		blob_may_end(key, put, info, err))
		return -1;
	fault_point("blob_written");
	if (fault_fails("blob_sync") || fsync(fd))
		return fail_errno(err, "sync '%s'", temporary);
	return dir_blob_publish(store, temporary, key, put->only_new, err);
}

/* A new file, locked. A sweep that saw it before the lock has removed it: then another one. */
static int make_temporary(
	const struct dir_store *store, char *temporary, size_t size, int *made, struct error *err)
{
	char id[ID_LEN + 1];
	struct stat st;
	for (;;) {
		id_make(id);
		str_format(temporary, size, NEW_DIRECTORY "/%s", id);
		auto_close int fd = openat(store->root, temporary,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 || flock(fd, LOCK_EX) || fstat(fd, &st))
			return fail_errno(err, "make file '%s'", temporary);
		if (st.st_nlink) {
			*made = take_fd(&fd);
			return 0;
		}
	}
}

static int dir_put(void *state, const char *key, const struct blob_put *put, struct blob_info *info,
	struct error *err)
{
	const struct dir_store *store = state;
	char temporary[sizeof NEW_DIRECTORY + ID_LEN + 1];
	auto_close int fd = -1;
	sweep(store);
	if (make_temporary(store, temporary, sizeof temporary, &fd, err))
		return -1;
	if (!write_whole(store, temporary, fd, key, put, info, err))
		return 0;
	unlinkat(store->root, temporary, 0);
	return -1;
}

static int open_object(
	const struct dir_store *store, const char *key, struct stat *st, int *fd, struct error *err)
{
	auto_close int file = path_open_nolinks(store->root, key, O_RDONLY | O_NONBLOCK, 0);
	if (file < 0 && (errno == ENOENT || errno == ENOTDIR))
		return blob_not_found(key, err);
	if (file < 0 || fstat(file, st))
		return fail_errno(err, "open object '%s'", key);
	if (!S_ISREG(st->st_mode))
		return blob_not_found(key, err);
	*fd = take_fd(&file);
	return 0;
}

static int dir_get(void *state, const char *key, const struct blob_get *get, struct blob_info *info,
	struct error *err)
{
	auto_close int fd = -1;
	struct stat st;
	if (open_object(state, key, &st, &fd, err))
		return -1;
	uint64_t size = (uint64_t)st.st_size;
	uint64_t start = get->offset < size ? get->offset : size;
	uint64_t len = get->len < size - start ? get->len : size - start;
	if (lseek(fd, (off_t)start, SEEK_SET) < 0)
		return fail_errno(err, "seek");
	if (dir_blob_copy(fd, get->to, len, info, err))
		return -1;
	info->modified_s = st.st_mtim.tv_sec;
	return info->size == len ? 0 : fail(err, ERR_CORRUPT, "it ends too early");
}

static int dir_head(void *state, const char *key, struct blob_info *info, struct error *err)
{
	auto_close int fd = -1;
	struct stat st;
	if (open_object(state, key, &st, &fd, err))
		return -1;
	*info = (struct blob_info){ .size = (uint64_t)st.st_size, .modified_s = st.st_mtim.tv_sec };
	return 0;
}

/* ---- list ---- */

struct listing {
	const char *prefix;
	struct arena *arena;
	blob_rows *rows;
	struct error *err;
};

/* One of them begins with the other. */
static bool may_lead_to(const char *path, const char *prefix)
{
	size_t path_len = strlen(path), len = strlen(prefix);
	return !strncmp(path, prefix, path_len < len ? path_len : len);
}

static int list_directory(const struct listing *listing, int at, const char *path);

static int list_entry(const struct listing *listing, int dir, const char *name, const char *key)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : fail_errno(listing->err, "stat '%s'", key);
	if (S_ISDIR(st.st_mode)) {
		auto_close int below = path_open_entry(dir, name);
		if (below < 0)
			return errno == ENOENT ? 0 : fail_errno(listing->err, "open '%s'", key);
		return list_directory(listing, take_fd(&below), key);
	}
	if (!S_ISREG(st.st_mode) || strncmp(key, listing->prefix, strlen(listing->prefix)) != 0)
		return 0;
	if (listing->rows->count == BLOB_ROWS_MAX)
		return fail(listing->err, ERR_LIMIT, "more than %d objects", BLOB_ROWS_MAX);
	struct blob_row row = { key, (uint64_t)st.st_size, st.st_mtim.tv_sec };
	vec_push(listing->arena, listing->rows, row);
	return 0;
}

/* Takes `at`. Skips files whose names are not valid keys: another program made them. */
static int list_directory(const struct listing *listing, int at, const char *path)
{
	auto_walk DIR *walk = walk_from(at);
	struct dirent *entry;
	if (!walk)
		return fail_errno(listing->err, "read directory '%s'", path);
	while ((entry = walk_next(walk))) {
		const char *key = arena_printf(
			listing->arena, "%s%s%s", path, path[0] ? "/" : "", entry->d_name);
		if (blob_key_is_valid(key) && may_lead_to(key, listing->prefix) &&
			list_entry(listing, dirfd(walk), entry->d_name, key))
			return -1;
	}
	return errno ? fail_errno(listing->err, "read directory '%s'", path) : 0;
}

static int dir_list(
	void *state, const char *prefix, struct arena *arena, blob_rows *rows, struct error *err)
{
	const struct dir_store *store = state;
	struct listing listing = { prefix, arena, rows, err };
	int root = openat(store->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return fail_errno(err, "open the directory of the blob store");
	return list_directory(&listing, root, "");
}

static int dir_remove(void *state, const char *key, struct error *err)
{
	const struct dir_store *store = state;
	char path[BLOB_KEY_MAX + 1];
	const char *slash = strrchr(key, '/');
	str_format(path, sizeof path, "%.*s", slash ? (int)(slash - key) : 1, slash ? key : ".");
	auto_close int parent = path_open_nolinks(store->root, path, O_RDONLY | O_DIRECTORY, 0);
	if (parent < 0)
		return errno == ENOENT ? 0 : fail_errno(err, "open '%s'", path);
	if (unlinkat(parent, path_basename(key), 0) && errno != ENOENT)
		return fail_errno(err, "unlink");
	return fsync(parent) ? fail_errno(err, "sync directory '%s'", path) : 0;
}

const struct blob_backend blob_dir_backend = { dir_open, dir_close, dir_put, dir_get, dir_head,
	dir_list, dir_remove };
