/* How far a build is, as progress reports show it: packages unpacked so far, and their bytes. */
#include <fcntl.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "envs/python/progress.h"

#define UNPACKED_MAX 100000
#define MEASURE_MS 1000

static uint64_t count_all(const struct making *making)
{
	return making->packages.count > 0 ? making->packages.count : 1;
}

static uint64_t count_done(const struct making *making, uint64_t done)
{
	uint64_t all = count_all(making);
	uint64_t missing = making->to_install < all ? making->to_install : all;
	return all - missing + (done < missing ? done : missing);
}

static size_t count_entries(int dir, const char *name)
{
	size_t count = 0;
	auto_walk DIR *walk = walk_open(dir, name);
	for (struct dirent *entry; count < UNPACKED_MAX && (entry = walk_next(walk));)
		count += entry->d_name[0] != '.';
	return count;
}

/* Wheels that uv has unpacked so far: its cache has a directory for each. */
static uint64_t count_unpacked(int root)
{
	size_t count = 0;
	auto_walk DIR *walk = walk_open(root, STAGE_CACHE);
	for (struct dirent *entry; (entry = walk_next(walk));)
		if (strncmp(entry->d_name, "archive-v", 9) == 0)
			count += count_entries(dirfd(walk), entry->d_name);
	return count;
}

static uint64_t count_installed(void *ctx)
{
	struct making *making = ctx;
	uint64_t count = 0;
	home_enter(making->store->home);
	auto_close int root = fd_open_directory(making->stage.fd, STAGE_ROOT);
	if (root >= 0)
		count = count_unpacked(root);
	home_leave(making->store->home);
	return count_done(making, count);
}

/* Walks all files, for at most a tenth of the time. */
static uint64_t measure_unpacked(void *ctx, uint64_t *limit)
{
	struct making *making = ctx;
	uint64_t now = clock_monotonic_ms(), bytes, inodes;
	*limit = making->store->config.max_install_bytes;
	if (making->measured_ms && now - making->measured_ms < MEASURE_MS + 10 * making->measure_ms)
		return making->unpacked_bytes;
	home_enter(making->store->home);
	auto_close int root = fd_open_directory(making->stage.fd, STAGE_ROOT);
	if (root >= 0 && path_measure_tree(root, &bytes, &inodes, NULL) == 0)
		making->unpacked_bytes = bytes;
	home_leave(making->store->home);
	making->measured_ms = clock_monotonic_ms();
	making->measure_ms = making->measured_ms - now;
	return making->unpacked_bytes;
}

void making_show(struct making *making, const char *phase, uint64_t done, uint64_t total)
{
	struct env_progress *progress = making->builder->progress;
	const struct build_network *network = making->builder->network;
	if (!progress || !progress->show)
		return;
	bool is_installing = strcmp(phase, "installing_deps") == 0;
	progress->count = is_installing ? count_installed : NULL;
	progress->unpacked = is_installing ? measure_unpacked : NULL;
	progress->count_ctx = making;
	progress->show(progress->ctx, phase, done, total, network->bytes(network->ctx));
}

void making_show_packages(struct making *making, const char *phase, uint64_t done)
{
	making_show(making, phase, count_done(making, done), count_all(making));
}
