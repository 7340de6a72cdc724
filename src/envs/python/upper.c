#include "envs/upper.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "base/walk.h"
#include "format/packages/requirements.h"
#include "format/packages/wheel_record.h"

#define CACHE "__pycache__"
#define METADATA ".dist-info"

struct settling {
	const struct layer_store *layers;
	int upper;
	const struct upper_change *change;
	struct arena *arena;
	struct map forced;  /* names */
	struct map parents; /* directories that something was taken out of */
	/* The directory that was looked at last; fd -1: there is none at that path. */
	char parent[MANIFEST_PATH_MAX + 1];
	int parent_fd;
};

/* ---- looking into the upper ---- */

/* The directory of `path`, or -1; *name is its last component. */
static int parent_of(struct settling *s, const char *path, const char **name)
{
	size_t len = path_parent(path).len;
	*name = path_basename(path);
	if (s->parent_fd != -2 && strlen(s->parent) == len && !memcmp(s->parent, path, len))
		return s->parent_fd;
	/* Below a directory that isn't there, nothing is. */
	size_t known = strlen(s->parent);
	if (s->parent_fd == -1 && known && len > known && path[known] == '/' &&
		!memcmp(s->parent, path, known))
		return -1;
	if (s->parent_fd >= 0)
		close(s->parent_fd);
	memcpy(s->parent, path, len);
	s->parent[len] = 0;
	s->parent_fd = upper_open(s->upper, (struct str){ path, len });
	return s->parent_fd;
}

static void forget_parent(struct settling *s)
{
	if (s->parent_fd >= 0)
		close(s->parent_fd);
	s->parent_fd = -2;
	s->parent[0] = 0;
}

static void note_parent(struct settling *s, const char *path)
{
	if (strchr(path, '/'))
		map_set(&s->parents, path_parent(path), s);
}

static int take_out(struct settling *s, int dir, const char *name, const char *path, mode_t mode,
	struct error *err)
{
	note_parent(s, path);
	if (S_ISDIR(mode)) {
		forget_parent(s);
		auto_close int above = upper_open(s->upper, path_parent(path));
		return above < 0 ? 0 : path_remove_tree(above, path_basename(path), err);
	}
	if (unlinkat(dir, name, 0) && errno != ENOENT)
		return fail_errno(err, "remove '%s' from the changes of an environment", path);
	return 0;
}

/* ---- layers that are new ---- */

/* Whether the upper has all of the layer's files, unchanged; bytecode says nothing. */
static bool is_copied(struct settling *s, const struct manifest *manifest)
{
	for (size_t i = 0; i < manifest->entries.count; i++) {
		const struct manifest_entry *entry = &manifest->entries.items[i];
		const char *name;
		struct stat st;
		if (entry->kind == MANIFEST_DIRECTORY || strstr(entry->path, "/" CACHE "/"))
			continue;
		int dir = parent_of(s, entry->path, &name);
		if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
			!upper_is_same(dir, name, &st, entry))
			return false;
	}
	return true;
}

/* A directory made in an overlay is opaque, whoever made it. */
static int show_entry(struct settling *s, const struct manifest_entry *entry, struct error *err)
{
	const char *name;
	struct stat st;
	int dir = parent_of(s, entry->path, &name);
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (entry->kind != MANIFEST_DIRECTORY || !S_ISDIR(st.st_mode))
		return take_out(s, dir, name, entry->path, st.st_mode, err);
	auto_close int fd = upper_open_directory(dir, name);
	if (fd >= 0)
		fremovexattr(fd, UPPER_OPAQUE);
	note_parent(s, arena_printf(s->arena, "%s/.", entry->path));
	return 0;
}

static int show_layer(struct settling *s, const char *id, struct error *err)
{
	struct manifest manifest = { 0 };
	bool is_new = !text_list_has(&s->change->before, id);
	if (!is_new && !s->change->forced.count)
		return 0;
	if (layer_read(s->layers, id, s->arena, &manifest, err))
		return -1;
	const char *name = requirement_normalize_name(s->arena, str_from(manifest.name));
	if (!map_get(&s->forced, str_from(name)) && (!is_new || !is_copied(s, &manifest)))
		return 0;
	for (size_t i = 0; i < manifest.entries.count; i++)
		if (show_entry(s, &manifest.entries.items[i], err))
			return -1;
	return 0;
}

/* ---- layers that are gone ---- */

static bool is_in_after(struct settling *s, const char *path)
{
	struct stat st;
	for (size_t i = 0; i < s->change->after.count; i++) {
		char full[LAYER_ID_LEN + sizeof "/tree/" + MANIFEST_PATH_MAX];
		str_format(full, sizeof full, "%s/tree/%s", s->change->after.items[i], path);
		if (!fstatat(s->layers->dir, full, &st, AT_SYMLINK_NOFOLLOW))
			return true;
	}
	return false;
}

/* A whiteout of something that isn't there any more would show as a device, in a directory that no
 * layer has; bytecode alone would make a package of an empty directory. */
static int drop_entry(struct settling *s, const struct manifest_entry *entry, struct error *err)
{
	const char *name;
	struct stat st;
	int dir = parent_of(s, entry->path, &name);
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (S_ISDIR(st.st_mode)) {
		note_parent(s, arena_printf(s->arena, "%s/.", entry->path));
		return 0;
	}
	bool is_bytecode = S_ISREG(st.st_mode) && strstr(entry->path, "/" CACHE "/");
	if ((!upper_is_whiteout(&st) && !is_bytecode) || is_in_after(s, entry->path) ||
		(s->change->is_frozen && s->change->is_frozen(s->change->ctx, entry->path)))
		return 0;
	return take_out(s, dir, name, entry->path, st.st_mode, err);
}

static int drop_layer(struct settling *s, const char *id, struct error *err)
{
	struct manifest manifest = { 0 };
	struct error why;
	if (text_list_has(&s->change->after, id))
		return 0;
	/* One that was collected meanwhile has left nothing worth an error. */
	if (layer_read(s->layers, id, s->arena, &manifest, &why))
		return why.code == ERR_NOT_FOUND ? 0 : (*err = why, -1);
	for (size_t i = 0; i < manifest.entries.count; i++)
		if (drop_entry(s, &manifest.entries.items[i], err))
			return -1;
	return 0;
}

/* ---- packages that commands installed ---- */

static int remove_bytecode(struct settling *s, const char *path, struct error *err)
{
	const char *base = path_basename(path);
	size_t len = strlen(base);
	if (len < 4 || strcmp(base + len - 3, ".py"))
		return 0;
	const char *cache = arena_printf(s->arena, "%.*s" CACHE, (int)(base - path), path);
	auto_walk DIR *walk = walk_from(upper_open(s->upper, str_from(cache)));
	struct dirent *entry;
	while ((entry = walk_next(walk))) {
		if (strncmp(entry->d_name, base, len - 2) || /* "name." */
			fnmatch("*.pyc", entry->d_name, 0))
			continue;
		if (unlinkat(dirfd(walk), entry->d_name, 0) && errno != ENOENT)
			return fail_errno(err, "remove '%s/%s'", cache, entry->d_name);
		note_parent(s, arena_printf(s->arena, "%s/.", cache));
	}
	return 0;
}

static int remove_recorded(
	struct settling *s, const char *site, const char *recorded, struct error *err)
{
	const char *name,
		*path = path_normalize(s->arena, arena_printf(s->arena, "/%s", site), recorded) + 1;
	struct stat st;
	if (!*path || strlen(path) > MANIFEST_PATH_MAX)
		return 0;
	int dir = parent_of(s, path, &name);
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || S_ISDIR(st.st_mode) ||
		upper_is_whiteout(&st))
		return 0;
	return take_out(s, dir, name, path, st.st_mode, err) || remove_bytecode(s, path, err) ? -1
											      : 0;
}

/* By its RECORD; one that can't be read lists nothing. */
static int remove_dist(
	struct settling *s, int packages, const char *site, const char *dist, struct error *err)
{
	wheel_record_list records = { 0 };
	struct str text = { 0 };
	struct error ignored;
	struct stat st;
	auto_close int dir = upper_open_directory(packages, dist);
	auto_close int fd =
		dir < 0 ? -1
			: openat(dir, "RECORD", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
		!file_read(fd, WHEEL_RECORD_MAX, s->arena, &text) &&
		!wheel_record_parse(text, s->arena, &records, &ignored))
		for (size_t i = 0; i < records.count; i++)
			if (remove_recorded(s, site, records.items[i].path, err))
				return -1;
	forget_parent(s);
	note_parent(s, arena_printf(s->arena, "%s/%s", site, dist));
	return path_remove_tree(packages, dist, err);
}

static int remove_dists(struct settling *s, const char *site, struct error *err)
{
	text_list found = { 0 };
	auto_walk DIR *walk = walk_from(upper_open(s->upper, str_from(site)));
	struct dirent *entry;
	while ((entry = walk_next(walk))) {
		struct str name = str_from(entry->d_name), rest;
		struct stat st;
		if (fnmatch("*.dist-info", entry->d_name, 0) || !str_cut(name, '-', &name, &rest) ||
			!requirement_name_is_valid(name) ||
			!map_get(
				&s->forced, str_from(requirement_normalize_name(s->arena, name))) ||
			fstatat(dirfd(walk), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
			!S_ISDIR(st.st_mode))
			continue;
		vec_push(s->arena, &found, (const char *)arena_text(s->arena, entry->d_name));
	}
	for (size_t i = 0; i < found.count; i++)
		if (remove_dist(s, dirfd(walk), site, found.items[i], err))
			return -1;
	return 0;
}

static int remove_forced(struct settling *s, struct error *err)
{
	text_list sites = { 0 };
	struct dirent *entry;
	auto_walk DIR *walk = walk_from(upper_open(s->upper, STR("lib")));
	while (s->change->forced.count && (entry = walk_next(walk)))
		if (!fnmatch("python3*", entry->d_name, 0))
			vec_push(s->arena, &sites,
				(const char *)arena_printf(
					s->arena, "lib/%s/site-packages", entry->d_name));
	for (size_t i = 0; i < sites.count; i++)
		if (remove_dists(s, sites.items[i], err))
			return -1;
	return 0;
}

/* An empty directory goes, and those above it; one that isn't empty stays. */
static void remove_empty(struct settling *s)
{
	text_list paths = { 0 };
	forget_parent(s);
	for (size_t i = 0; i < s->parents.count; i++)
		vec_push(s->arena, &paths,
			(const char *)arena_bytes(s->arena, s->parents.entries[i].key.data,
				s->parents.entries[i].key.len));
	text_list_sort(&paths);
	for (size_t i = paths.count; i-- > 0;) {
		char *path = arena_text(s->arena, paths.items[i]), *slash;
		for (; path && *path; path = slash ? path : NULL) {
			slash = strrchr(path, '/');
			auto_close int above = upper_open(
				s->upper, (struct str){ path, slash ? (size_t)(slash - path) : 0 });
			if (above < 0 || unlinkat(above, slash ? slash + 1 : path, AT_REMOVEDIR))
				break;
			if (slash)
				*slash = 0;
		}
	}
}

int python_upper_settle(const struct layer_store *layers, int upper,
	const struct upper_change *change, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct settling s = {
		.layers = layers, .upper = upper, .change = change, .arena = &arena, .parent_fd = -2
	};
	int failed = 0;
	map_init(&s.forced, &arena);
	map_init(&s.parents, &arena);
	for (size_t i = 0; i < change->forced.count; i++)
		map_set(&s.forced, str_from(change->forced.items[i]), &s);
	failed = remove_forced(&s, err);
	for (size_t i = 0; !failed && i < change->after.count; i++)
		failed = show_layer(&s, change->after.items[i], err);
	for (size_t i = 0; !failed && i < change->before.count; i++)
		failed = drop_layer(&s, change->before.items[i], err);
	remove_empty(&s);
	return failed ? -1 : 0;
}

/* ---- a package as its layer has it ---- */

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
	size_t len = strlen(package);
	auto_close int dir = upper_open_shown(upper, path_parent(path), err);
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
		if (upper_remove(upper, entry->path, err))
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

int python_upper_restore(
	int upper, const struct manifest *manifest, const char *package, struct error *err)
{
	if (!is_layer_of(manifest, package))
		return 0;
	return restore_layer(upper, manifest, err) ? -1 : 1;
}
