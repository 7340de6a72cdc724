#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "base/path.h"
#include "layers/parts.h"

#define REPAIR "carrel env verify --repair"

int store_fail(struct error *err, const char *what, const char *name)
{
	int reason = errno;

	fail_errno(err, "layers: %s '%s'", what, name);
	if (reason == EROFS || reason == EACCES || reason == EPERM)
		error_hint(err, "CARREL_HOME must be writable for its owner");
	else if (reason == ENOSPC || reason == EDQUOT)
		error_hint(err, "free disk space, e.g. with carrel env prune");
	return -1;
}

int layer_store_open(const struct home *home, struct layer_store *store, struct error *err)
{
	int dir;

	if (home_open_directory(home, "layers", &dir, err) < 0)
		return -1;
	*store = (struct layer_store){ .home = home, .dir = dir };
	return 0;
}

void layer_store_done(struct layer_store *store)
{
	if (store->home)
		fd_close(&store->dir);
	store->home = NULL;
}

static int take_lock(const struct layer_store *store, int how, int *fd, struct error *err)
{
	auto_close int lock = -1;

	home_enter(store->home);
	/* Not for writing: so it opens in a read-only store, too. */
	lock = openat(store->dir, ".lock", O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	home_leave(store->home);
	if (lock < 0)
		return store_fail(err, "open", ".lock");
	while (flock(lock, how) < 0) {
		if (errno == EWOULDBLOCK)
			return fail(err, ERR_CONFLICT, "layers: in use by another carrel");
		if (errno != EINTR)
			return store_fail(err, "lock", ".lock");
	}
	*fd = take_fd(&lock);
	return 0;
}

int layer_store_lock(const struct layer_store *store, bool alone, int *fd, struct error *err)
{
	return take_lock(store, alone ? LOCK_EX : LOCK_SH, fd, err);
}

int layer_store_try_lock(const struct layer_store *store, int *fd, struct error *err)
{
	return take_lock(store, LOCK_EX | LOCK_NB, fd, err);
}

bool layer_id_is_valid(const char *id)
{
	return strlen(id) == LAYER_ID_LEN && strspn(id, "0123456789abcdef") == LAYER_ID_LEN;
}

int store_check(const struct layer_store *store, const char *id, struct error *err)
{
	static const struct {
		const char *name;
		mode_t type;
	} parts[] = { { "manifest", S_IFREG }, { "tree", S_IFDIR } };

	if (!layer_id_is_valid(id))
		return fail(err, ERR_NOT_FOUND, "'%s' is not the id of a layer", id);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		char path[LAYER_ID_LEN + 16];
		struct stat st;

		str_format(path, sizeof path, "%s/%s", id, parts[i].name);
		if (fstatat(store->dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno != ENOENT && errno != ENOTDIR)
				return store_fail(err, "look at", path);
			st.st_mode = 0;
		}
		if ((st.st_mode & S_IFMT) != parts[i].type)
			return fail_hint(err, ERR_NOT_FOUND, REPAIR,
				"layer '%s' is missing, or has no %s", id, parts[i].name);
	}
	return 0;
}

int layer_check(const struct layer_store *store, const char *id, struct error *err)
{
	return layers_check(store, &id, 1, err);
}

int layers_check(
	const struct layer_store *store, const char *const *ids, size_t count, struct error *err)
{
	int failed = 0;

	home_enter(store->home);
	for (size_t i = 0; i < count && !failed; i++)
		failed = store_check(store, ids[i], err);
	home_leave(store->home);
	return failed;
}

/* -- keys -- */

void store_key_name(const char *key, char name[2 * SHA256_LEN + 1])
{
	unsigned char digest[SHA256_LEN];
	struct sha256 hash;

	sha256_init(&hash);
	sha256_add(&hash, key, strlen(key));
	sha256_end(&hash, digest);
	sha256_hex(digest, name);
}

int store_find(const struct layer_store *store, const char *key, char id[LAYER_ID_LEN + 1],
	struct error *err)
{
	char name[2 * SHA256_LEN + 1], path[sizeof KEYS + sizeof name], target[LAYER_ID_LEN + 2];

	store_key_name(key, name);
	str_format(path, sizeof path, KEYS "/%s", name);
	ssize_t len = readlinkat(store->dir, path, target, sizeof target);
	if (len < 0 && errno != ENOENT && errno != EINVAL && errno != ENOTDIR)
		return store_fail(err, "read", path);
	if (len == LAYER_ID_LEN) {
		target[len] = '\0';
		/* A key that leads nowhere is none: its layer was set aside. */
		if (store_check(store, target, err) == 0) {
			memcpy(id, target, LAYER_ID_LEN + 1);
			return 0;
		}
		if (err->code != ERR_NOT_FOUND)
			return -1;
	}
	return fail(err, ERR_NOT_FOUND, "no layer for '%s' yet", key);
}

int layer_find(const struct layer_store *store, const char *key, char id[LAYER_ID_LEN + 1],
	struct error *err)
{
	struct error mine = { 0 };

	home_enter(store->home);
	int failed = store_find(store, key, id, &mine);
	home_leave(store->home);
	if (failed && err)
		*err = mine;
	return failed;
}

/* -- manifests -- */

static int read_text(const struct layer_store *store, const char *id, struct arena *arena,
	struct str *text, struct error *err)
{
	char path[LAYER_ID_LEN + 16];
	struct stat st;

	str_format(path, sizeof path, "%s/manifest", id);
	auto_close int fd = path_open_nolinks(store->dir, path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return fail_hint(err, ERR_NOT_FOUND, REPAIR, "layer '%s' isn't there", id);
	if (fd < 0 || fstat(fd, &st) < 0)
		return store_fail(err, "open", path);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > MANIFEST_MAX)
		return fail_hint(err, ERR_CORRUPT, REPAIR,
			"layer '%s': its manifest has an invalid size", id);
	char *data = arena_alloc(arena, (size_t)st.st_size + 1);
	ssize_t got = fd_read_full(fd, data, (size_t)st.st_size);
	if (got < 0)
		return store_fail(err, "read", path);
	*text = (struct str){ data, (size_t)got };
	return 0;
}

int store_read(const struct layer_store *store, const char *id, struct arena *arena,
	struct manifest *manifest, struct error *err)
{
	unsigned char digest[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1];
	struct sha256 hash;
	struct str text = { 0 };

	if (!layer_id_is_valid(id))
		return fail(err, ERR_NOT_FOUND, "'%s' is not the id of a layer", id);
	if (read_text(store, id, arena, &text, err) < 0)
		return -1;
	sha256_init(&hash);
	sha256_add(&hash, text.data, text.len);
	sha256_end(&hash, digest);
	sha256_hex(digest, hex);
	if (strcmp(hex, id) != 0)
		return fail_hint(
			err, ERR_CORRUPT, REPAIR, "layer '%s': its manifest was changed", id);
	if (manifest_parse(text, arena, manifest, err) < 0) {
		error_context(err, "layer '%s'", id);
		return error_hint(err, REPAIR);
	}
	return 0;
}

int layer_read(const struct layer_store *store, const char *id, struct arena *arena,
	struct manifest *manifest, struct error *err)
{
	home_enter(store->home);
	int failed = store_read(store, id, arena, manifest, err);
	home_leave(store->home);
	return failed;
}

/* -- all of them -- */

static int compare_ids(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int list(
	const struct layer_store *store, struct arena *arena, text_list *ids, struct error *err)
{
	auto_directory DIR *dir =
		directory_read(openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	text_list found = { 0 };
	const char *name;

	if (!dir)
		return store_fail(err, "open", "layers");
	while ((name = directory_next(dir)))
		if (layer_id_is_valid(name))
			vec_push(arena, &found, arena_text(arena, name));
	if (errno)
		return store_fail(err, "read", "layers");
	if (found.count > 1)
		qsort(found.items, found.count, sizeof *found.items, compare_ids);
	*ids = found;
	return 0;
}

int layers_list(
	const struct layer_store *store, struct arena *arena, text_list *ids, struct error *err)
{
	home_enter(store->home);
	int failed = list(store, arena, ids, err);
	home_leave(store->home);
	return failed;
}

static int measure(
	const struct layer_store *store, const char *id, uint64_t *bytes, struct error *err)
{
	uint64_t inodes;

	if (!layer_id_is_valid(id))
		return fail(err, ERR_NOT_FOUND, "'%s' is not the id of a layer", id);
	auto_close int dir =
		openat(store->dir, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return store_fail(err, "open", id);
	return path_measure_tree(dir, bytes, &inodes, err);
}

int layer_measure(
	const struct layer_store *store, const char *id, uint64_t *bytes, struct error *err)
{
	home_enter(store->home);
	int failed = measure(store, id, bytes, err);
	home_leave(store->home);
	return failed;
}
