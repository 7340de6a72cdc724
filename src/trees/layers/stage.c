#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "trees/layers/internal.h"
#include "trees/layers/stage.h"

#define STAGES "stage"
#define TRIES 16

int directory_make_locked(int dir, const char *name, int *fd)
{
	struct stat st;
	if (mkdirat(dir, name, 0700) < 0)
		return -1;
	fault_point("layers.stage_lock");
	auto_close int made = fd_open_directory(dir, name);
	if (made < 0)
		return errno == ENOENT ? 0 : -1;
	if (flock(made, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -1;
	if (fstat(made, &st) < 0)
		return -1;
	if (!st.st_nlink)
		return 0;
	*fd = take_fd(&made);
	return 1;
}

int layer_stage_make(const struct layer_store *store, struct arena *arena,
	struct layer_stage *stage, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_close int stages = -1;
	char id[ID_LEN + 1];
	int made = 0, fd = -1;
	if (home_open_directory(home, STAGES, &stages, err) < 0)
		return -1;
	for (int tries = 0; made == 0 && tries < TRIES; tries++) {
		id_make(id);
		made = fault_fails("layers.stage") ? -1 : directory_make_locked(stages, id, &fd);
	}
	if (made < 0)
		return store_fail(err, "make stage", id);
	if (made == 0)
		return fail(err, ERR_CONFLICT, "stages are removed while they are created");
	*stage = (struct layer_stage){
		.path = arena_printf(arena, "%s/" STAGES "/%s", home->path, id), .fd = fd
	};
	return 0;
}

int layer_stage_done(const struct layer_store *store, struct layer_stage *stage, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_close int stages = -1, lock = -1;
	if (!stage->path)
		return 0;
	const char *name = path_basename(stage->path);
	lock = stage->fd;
	*stage = LAYER_STAGE_NONE;
	if (home_open_directory(home, STAGES, &stages, err) < 0)
		return -1;
	return path_remove_tree(stages, name, err);
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

int layer_stages_sweep(const struct layer_store *store, uint64_t *count, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_arena struct arena arena = { 0 };
	auto_close int stages = -1;
	text_list names = { 0 };
	uint64_t total = 0;
	if (home_open_directory(home, STAGES, &stages, err) < 0)
		return -1;
	if (file_names(stages, ".", &arena, &names) < 0)
		return store_fail(err, "read", STAGES);
	for (size_t i = 0; i < names.count; i++) {
		int swept =
			id_is_valid(names.items[i]) ? sweep_one(stages, names.items[i], err) : 0;
		if (swept < 0)
			return -1;
		total += (uint64_t)swept;
	}
	if (count)
		*count = total;
	return 0;
}
