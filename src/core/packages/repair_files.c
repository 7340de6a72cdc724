/* repair_files.c -- the files of a package are those of its layer again: what a command has put on
 * top of them in the upper of its environment is removed. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "core/packages/checkup.h"
#include "envs/kind.h"

#define OPAQUE "user.overlay.opaque"
#define METADATA ".dist-info"

/* Opens the directory `path` of the upper, as far as it is one: what hides the layers on the way,
 * a deleted or replaced directory or an opaque mark, is removed. -1: nothing lies there. */
static int open_upper(int upper, const char *path, struct error *err)
{
	struct str rest = str_from(path), part;
	char name[NAME_MAX + 1];
	auto_close int at = fcntl(upper, F_DUPFD_CLOEXEC, 3);
	while (at >= 0 && str_next(&rest, '/', &part)) {
		struct stat st;
		if (!str_format(name, sizeof name, "%.*s", (int)part.len, part.data) ||
			fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
			return -1;
		if (!S_ISDIR(st.st_mode)) {
			path_remove_tree(at, name, err);
			return -1;
		}
		int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next >= 0)
			fremovexattr(next, OPAQUE);
		fd_close(&at);
		at = next;
	}
	return take_fd(&at);
}

static int remove_from_upper(int upper, const char *path, struct error *err)
{
	char parent[MANIFEST_PATH_MAX + 1];
	const char *name = path_basename(path);
	str_format(parent, sizeof parent, "%.*s", (int)(name - path), path);
	auto_close int dir = open_upper(upper, parent, err);
	return dir < 0 ? 0 : path_remove_tree(dir, name, err);
}

static bool is_metadata(const char *name)
{
	size_t len = strlen(name), end = strlen(METADATA);
	return len > end && !strcmp(name + len - end, METADATA);
}

static bool has_entry(const struct manifest *manifest, struct str dir, const char *name)
{
	for (size_t i = 0; i < manifest->entries.count; i++) {
		const char *path = manifest->entries.items[i].path;
		if (strlen(path) == dir.len + 1 + strlen(name) &&
			!strncmp(path, dir.data, dir.len) && path[dir.len] == '/' &&
			!strcmp(path + dir.len + 1, name))
			return true;
	}
	return false;
}

/* A directory that is the package's alone: it goes as a whole, with what was added to it. */
static bool is_own_directory(const struct manifest *manifest, const struct manifest_entry *entry)
{
	struct str path = str_from(entry->path);
	return entry->kind == MANIFEST_DIRECTORY &&
	       (is_metadata(entry->path) || has_entry(manifest, path, "__init__.py"));
}

/* Another version of it, which a command installed over it. */
static int remove_other_metadata(
	int upper, const char *path, const char *package, struct error *err)
{
	char parent[MANIFEST_PATH_MAX + 1];
	size_t len = strlen(package);
	str_format(parent, sizeof parent, "%.*s", (int)(path_basename(path) - path), path);
	auto_close int dir = open_upper(upper, parent, err);
	auto_walk DIR *list = dir < 0 ? NULL : walk_open(dir, ".");
	struct dirent *entry;
	while ((entry = walk_next(list))) {
		char name[NAME_MAX + 1];
		size_t i = 0;
		for (; entry->d_name[i] && i < NAME_MAX; i++)
			name[i] = (char)(strchr("_.", entry->d_name[i]) ? '-'
					 : entry->d_name[i] >= 'A' && entry->d_name[i] <= 'Z'
						 ? entry->d_name[i] + 32
						 : entry->d_name[i]);
		name[i] = 0;
		if (strncmp(name, package, len) == 0 && name[len] == '-' && name[len + 1] >= '0' &&
			name[len + 1] <= '9' && is_metadata(entry->d_name) &&
			path_remove_tree(dir, entry->d_name, err))
			return -1;
	}
	return 0;
}

static int restore_layer(int upper, const struct manifest *manifest, struct error *err)
{
	const char *done = NULL; /* the directory that went as a whole */
	for (size_t i = 0; i < manifest->entries.count; i++) {
		const struct manifest_entry *entry = &manifest->entries.items[i];
		size_t len = done ? strlen(done) : 0;
		if (done && !strncmp(entry->path, done, len) && entry->path[len] == '/')
			continue;
		bool is_own = is_own_directory(manifest, entry);
		if (entry->kind == MANIFEST_DIRECTORY && !is_own)
			continue;
		if (is_own)
			done = entry->path;
		if (is_own && is_metadata(entry->path) &&
			remove_other_metadata(upper, entry->path, manifest->name, err))
			return -1;
		if (remove_from_upper(upper, entry->path, err))
			return -1;
	}
	return 0;
}

static bool is_layer_of(const struct manifest *manifest, const char *package)
{
	if (!strcmp(package, LAYER_KIND_BASE))
		return !strcmp(manifest->kind, LAYER_KIND_BASE);
	return strcmp(manifest->kind, LAYER_KIND_BASE) && !strcasecmp(manifest->name, package);
}

static const struct env_meta *meta_of(const struct core_workspace *w, const struct env_kind *kind)
{
	for (size_t slot = 0; slot < WORKSPACE_ENVIRONMENTS; slot++)
		if (environment_kind(w, slot) == kind)
			return environment_pinned(w, slot);
	return NULL;
}

static bool has_path(const struct manifest *manifest, const char *path)
{
	for (size_t i = 0; i < manifest->entries.count; i++)
		if (!strcmp(manifest->entries.items[i].path, path))
			return true;
	return false;
}

int repair_restore(const struct core_workspace *w, const struct env_kind *kind, const char *package,
	struct error *err)
{
	const struct core *core = w->core;
	const struct env_meta *meta = meta_of(w, kind);
	auto_arena struct arena arena = { 0 };
	char path[ID_LEN + 32];
	int found = 0;
	str_format(path, sizeof path, "%s/%s/upper", w->model.id, kind->upper);
	auto_close int upper = path_open_nolinks(core->workspaces, path, O_RDONLY | O_DIRECTORY, 0);
	if (upper < 0)
		return fail_errno(err, "open '%s'", path);
	for (size_t i = 0; meta && i < meta->layers.count; i++) {
		struct manifest manifest;
		if (layer_read(&core->envs.layers, meta->layers.items[i], &arena, &manifest, err))
			return -1;
		/* A layer of Node holds whole packages, each in a directory of its name. */
		bool is_node = kind == &env_node;
		if (is_node ? !has_path(&manifest, package) : !is_layer_of(&manifest, package))
			continue;
		if (is_node ? remove_from_upper(upper, package, err)
			    : restore_layer(upper, &manifest, err))
			return -1;
		found = 1;
	}
	return found;
}
