#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "trees/layers/damage.h"
#include "trees/layers/internal.h"

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

int layer_store_make_empty(const struct layer_store *store, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	static const char *const lowest[] = { LAYER_EMPTY, LAYER_ROOT, LAYER_ROOT "/.cache",
		LAYER_ROOT "/dev", LAYER_ROOT "/etc", LAYER_ROOT "/proc", LAYER_ROOT "/run",
		LAYER_ROOT "/sys", LAYER_ROOT "/tmp", LAYER_ROOT "/usr", LAYER_ROOT "/var",
		LAYER_ROOT_PYTHON, LAYER_ROOT_PYTHON "/env", LAYER_ROOT_NODE,
		LAYER_ROOT_NODE "/node_modules", LAYER_ROOT_NODE "/opt" };
	static const char *const of_host[] = { LAYER_ROOT "/bin", LAYER_ROOT "/sbin",
		LAYER_ROOT "/lib", LAYER_ROOT "/lib32", LAYER_ROOT "/lib64", LAYER_ROOT "/libx32" };
	for (size_t i = 0; i < sizeof lowest / sizeof *lowest; i++)
		if (mkdirat(store->dir, lowest[i], 0755) < 0 && errno != EEXIST)
			return store_fail(err, "make", lowest[i]);
	/* What else a host has is made in the workspace. */
	for (size_t i = 0; i < sizeof of_host / sizeof *of_host; i++)
		if (!access(of_host[i] + strlen(LAYER_ROOT), F_OK) &&
			mkdirat(store->dir, of_host[i], 0755) < 0 && errno != EEXIST)
			return store_fail(err, "make", of_host[i]);
	return 0;
}

static int take_lock(const struct layer_store *store, int how, int *fd, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	/* Not for writing: so it opens in a read-only store, too. */
	auto_close int lock =
		openat(store->dir, ".lock", O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
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

static int check(const struct layer_store *store, const char *id, bool has_marks, struct error *err)
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
	if (has_marks && damage_is_marked(store->dir, id))
		return fail_hint(err, ERR_NOT_FOUND, REPAIR, "layer '%s' is damaged", id);
	return 0;
}

int layer_check(const struct layer_store *store, const char *id, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	return check(store, id, damage_is_any(store->dir), err);
}

int layers_check(
	const struct layer_store *store, const char *const *ids, size_t count, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	bool has_marks = damage_is_any(store->dir);
	for (size_t i = 0; i < count; i++)
		if (check(store, ids[i], has_marks, err) < 0)
			return -1;
	return 0;
}

/* -- keys -- */

void store_key_name(const char *key, char name[2 * SHA256_LEN + 1])
{
	sha256_of(key, strlen(key), name);
}

int layer_find(const struct layer_store *store, const char *key, char id[LAYER_ID_LEN + 1],
	struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	char name[2 * SHA256_LEN + 1], path[sizeof KEYS + sizeof name], target[LAYER_ID_LEN + 2];
	store_key_name(key, name);
	str_format(path, sizeof path, KEYS "/%s", name);
	ssize_t len = readlinkat(store->dir, path, target, sizeof target);
	if (len < 0 && errno != ENOENT && errno != EINVAL && errno != ENOTDIR)
		return store_fail(err, "read", path);
	if (len == LAYER_ID_LEN) {
		target[len] = '\0';
		/* Ignore a dangling key: its layer was quarantined. */
		if (layer_check(store, target, err) == 0) {
			memcpy(id, target, LAYER_ID_LEN + 1);
			return 0;
		}
		if (err->code != ERR_NOT_FOUND)
			return -1;
	}
	return fail(err, ERR_NOT_FOUND, "no layer for '%s' yet", key);
}

/* -- manifests -- */

int layer_read(const struct layer_store *store, const char *id, struct arena *arena,
	struct manifest *manifest, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	char path[LAYER_ID_LEN + 16], hex[2 * SHA256_LEN + 1];
	struct str text = { 0 };
	if (!layer_id_is_valid(id))
		return fail(err, ERR_NOT_FOUND, "'%s' is not the id of a layer", id);
	str_format(path, sizeof path, "%s/manifest", id);
	auto_close int fd = path_open_nolinks(store->dir, path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return fail_hint(err, ERR_NOT_FOUND, REPAIR, "layer '%s' isn't there", id);
	if (fd < 0)
		return store_fail(err, "open", path);
	if (file_read(fd, MANIFEST_MAX, arena, &text) < 0)
		return errno == EFBIG || errno == EINVAL
			       ? fail_hint(err, ERR_CORRUPT, REPAIR,
					 "layer '%s': its manifest has an invalid size", id)
			       : store_fail(err, "read", path);
	sha256_of(text.data, text.len, hex);
	if (strcmp(hex, id) != 0)
		return fail_hint(
			err, ERR_CORRUPT, REPAIR, "layer '%s': its manifest was changed", id);
	if (manifest_parse(text, arena, manifest, err) < 0) {
		error_context(err, "layer '%s'", id);
		return error_hint(err, REPAIR);
	}
	return 0;
}

/* -- all of them -- */

int layers_list(
	const struct layer_store *store, struct arena *arena, text_list *ids, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	text_list names = { 0 }, found = { 0 };
	if (file_names(store->dir, ".", arena, &names) < 0)
		return store_fail(err, "read", "layers");
	for (size_t i = 0; i < names.count; i++)
		if (layer_id_is_valid(names.items[i]))
			vec_push(arena, &found, names.items[i]);
	*ids = found;
	return 0;
}

int layer_measure(
	const struct layer_store *store, const char *id, uint64_t *bytes, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	uint64_t inodes;
	if (!layer_id_is_valid(id))
		return fail(err, ERR_NOT_FOUND, "'%s' is not the id of a layer", id);
	auto_close int dir = fd_open_directory(store->dir, id);
	if (dir < 0)
		return store_fail(err, "open", id);
	return path_measure_tree(dir, bytes, &inodes, err);
}
