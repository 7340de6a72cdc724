#include "envs/python/archives.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"

#define CACHE ".cache"
#define ARCHIVES "archive-v" /* with a number: archive-v0/<id>/<what the wheel holds> */

static void list(int dir, const char *path, struct arena *arena, text_list *out)
{
	auto_walk DIR *walk = walk_from(path_open_nolinks(dir, path, O_RDONLY | O_DIRECTORY, 0));
	for (struct dirent *entry; (entry = walk_next(walk));) {
		if (entry->d_name[0] != '.')
			vec_push(arena, out, arena_text(arena, entry->d_name));
	}
}

/* The package that the archive is the wheel of, by its dist-info directory. */
static struct split_package *find_package(struct split *split, int archive)
{
	struct stat st;
	for (size_t i = 0; i < split->packages.count; i++) {
		struct split_package *package = &split->packages.items[i];
		if (!package->archive && package->info &&
			fstatat(archive, package->info, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISDIR(st.st_mode))
			return package;
	}
	return NULL;
}

/* Skips what can't be read: the cost is a missing empty directory. */
static void find_archives(struct split *split)
{
	const char *cache = arena_printf(split->arena, "%s/" CACHE, split->root);
	text_list kinds = { 0 };
	list(split->stage, cache, split->arena, &kinds);
	for (size_t i = 0; i < kinds.count; i++) {
		const char *kind = arena_printf(split->arena, "%s/%s", cache, kinds.items[i]);
		text_list ids = { 0 };
		if (strncmp(kinds.items[i], ARCHIVES, strlen(ARCHIVES)) != 0)
			continue;
		list(split->stage, kind, split->arena, &ids);
		for (size_t k = 0; k < ids.count; k++) {
			const char *path = arena_printf(split->arena, "%s/%s", kind, ids.items[k]);
			auto_close int fd =
				path_open_nolinks(split->stage, path, O_PATH | O_DIRECTORY, 0);
			struct split_package *package = fd < 0 ? NULL : find_package(split, fd);
			if (package)
				package->archive = path;
		}
	}
	split->has_archives = true;
}

int archives_keep_directory(struct split *split, const char *path, struct error *err)
{
	size_t site = strlen(split->site);
	if (strncmp(path, split->site, site) != 0 || path[site] != '/' ||
		strcmp(path_basename(path), "__pycache__") == 0)
		return 0;
	if (!split->has_archives)
		find_archives(split);
	for (size_t i = 0; i < split->packages.count; i++) {
		const struct split_package *package = &split->packages.items[i];
		auto_close int found = -1, made = -1;
		if (!package->archive)
			continue;
		found = path_open_nolinks(split->stage,
			arena_printf(split->arena, "%s%s", package->archive, path + site),
			O_PATH | O_DIRECTORY, 0);
		if (found >= 0 &&
			path_make_directories(split->stage,
				arena_printf(split->arena, "%s/tree/%s", package->draft, path),
				0755, &made, err) < 0)
			return -1;
	}
	return 0;
}
