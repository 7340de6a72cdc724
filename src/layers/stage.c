#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/id.h"
#include "base/path.h"
#include "layers/parts.h"
#include "layers/stage.h"

#define STAGES "stage"
#define OPEN_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define TRIES 16

/* 1: *lock is its lock. 0: somebody swept it between its making and its locking. */
static int make_locked(int stages, const char *id, int *fd, int *lock, struct error *err)
{
	struct stat st;

	if (fault_fails("layers.stage") || mkdirat(stages, id, 0700) < 0)
		return store_fail(err, "make stage", id);
	fault_point("layers.stage_lock");
	auto_close int held = openat(stages, id, OPEN_DIRECTORY);
	if (held < 0)
		return errno == ENOENT ? 0 : store_fail(err, "open stage", id);
	if (flock(held, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : store_fail(err, "lock stage", id);
	if (fstat(held, &st) < 0)
		return store_fail(err, "look at stage", id);
	auto_close int dir = st.st_nlink ? openat(stages, id, OPEN_DIRECTORY) : -1;
	if (!st.st_nlink)
		return 0;
	if (dir < 0)
		return store_fail(err, "open stage", id);
	*fd = take_fd(&dir);
	*lock = take_fd(&held);
	return 1;
}

int layer_stage_make(const struct layer_store *store, struct arena *arena,
	struct layer_stage *stage, struct error *err)
{
	auto_close int stages = -1;
	char id[ID_LEN + 1];
	int made = 0, fd = -1, lock = -1;

	if (home_open_directory(store->home, STAGES, &stages, err) < 0)
		return -1;
	home_enter(store->home);
	for (int tries = 0; made == 0 && tries < TRIES; tries++) {
		id_make(id);
		made = make_locked(stages, id, &fd, &lock, err);
	}
	home_leave(store->home);
	if (made < 0)
		return -1;
	if (made == 0)
		return fail(err, ERR_CONFLICT, "stages are removed while they are created");
	*stage = (struct layer_stage){ .path = arena_printf(
					       arena, "%s/" STAGES "/%s", store->home->path, id),
		.fd = fd,
		.lock = lock };
	return 0;
}

int layer_stage_done(const struct layer_store *store, struct layer_stage *stage, struct error *err)
{
	auto_close int stages = -1;
	int failed = 0;

	if (!stage->path)
		return 0;
	fd_close(&stage->fd);
	failed = home_open_directory(store->home, STAGES, &stages, err);
	if (!failed) {
		home_enter(store->home);
		failed = path_remove_tree(stages, path_basename(stage->path), err);
		home_leave(store->home);
	}
	fd_close(&stage->lock);
	stage->path = NULL;
	return failed;
}

/* 1: it was removed; 0: its maker lives. */
static int sweep_one(int stages, const char *id, struct error *err)
{
	/* A build can have taken its own rights away. */
	auto_close int held = tree_open_directory(stages, id, S_IRWXU);

	if (held < 0 && errno == ENOENT)
		return 0;
	if (held < 0)
		return store_fail(err, "open stage", id);
	if (flock(held, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : store_fail(err, "lock stage", id);
	fault_point("layers.sweep");
	return path_remove_tree(stages, id, err) < 0 ? -1 : 1;
}

static int sweep(int stages, uint64_t *count, struct error *err)
{
	auto_directory DIR *dir = directory_read(openat(stages, ".", OPEN_DIRECTORY));
	const char *name;

	if (!dir)
		return store_fail(err, "open", STAGES);
	while ((name = directory_next(dir))) {
		if (!id_is_valid(name))
			continue;
		int swept = sweep_one(stages, name, err);

		if (swept < 0)
			return -1;
		*count += (uint64_t)swept;
	}
	return errno ? store_fail(err, "read", STAGES) : 0;
}

int layer_stages_sweep(const struct layer_store *store, uint64_t *count, struct error *err)
{
	auto_close int stages = -1;
	uint64_t swept = 0;

	if (home_open_directory(store->home, STAGES, &stages, err) < 0)
		return -1;
	home_enter(store->home);
	int failed = sweep(stages, &swept, err);
	home_leave(store->home);
	if (!failed && count)
		*count = swept;
	return failed;
}
