#include "envs/split.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "envs/archives.h"
#include "envs/bytecode.h"
#include "envs/rivals.h"
#include "format/wheel_record.h"
#include "format/requirements.h"

#define INSIDE "/env"

/* Several packages have files in it: it is taken apart, not moved. */
static struct split_package shared;

static DIR *open_walk(int dir, const char *name, struct error *err)
{
	DIR *walk = walk_open(dir, name);

	if (!walk)
		fail_errno(err, "open directory '%s'", name);
	return walk;
}

/* d_type, or what stat says where the file system doesn't tell. */
static int entry_mode(int dir, const struct dirent *entry, mode_t *mode, struct error *err)
{
	struct stat st;

	*mode = DTTOIF(entry->d_type);
	if (entry->d_type != DT_UNKNOWN)
		return 0;
	if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_errno(err, "look at '%s'", entry->d_name);
	*mode = st.st_mode & S_IFMT;
	return 0;
}

static bool is_own(const struct split *split, const char *path)
{
	for (const char *const *own = split->own; *own; own++) {
		if (strcmp(*own, path) == 0)
			return true;
	}
	return false;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* In a __pycache__ directory, not just somewhere below one. */
static bool is_bytecode(const char *path)
{
	static const char cache[] = "/__pycache__/";
	size_t before = (size_t)(path_basename(path) - path), len = sizeof cache - 1;

	if (!ends_with(path, ".pyc") || before < len - 1)
		return false;
	return before < len ? strncmp(path, cache + 1, len - 1) == 0
			    : strncmp(path + before - len, cache, len) == 0;
}

/* "a/__pycache__/b.cpython-311.pyc" -> "a/b.py", or NULL. */
static const char *source_of(struct arena *arena, const char *path)
{
	static const char cache[] = "__pycache__";
	const char *name = path_basename(path);
	size_t dir_len = (size_t)(name - path);
	char source[NAME_MAX + 1];

	if (dir_len < sizeof cache ||
		strncmp(name - sizeof cache, "__pycache__/", sizeof cache) != 0)
		return NULL;
	dir_len -= sizeof cache;
	if (dir_len > 0 && path[dir_len - 1] != '/')
		return NULL;
	if (!bytecode_source_name(name, source, sizeof source))
		return NULL;
	return arena_printf(arena, "%.*s%s", (int)dir_len, path, source);
}

/* What uv and signers put beside RECORD and what RECORD's rules don't list. */
static bool is_dropped(const char *path)
{
	static const char *const names[] = { ".dist-info/uv_cache.json",
		".dist-info/direct_url.json", ".dist-info/RECORD.jws", ".dist-info/RECORD.p7s" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (ends_with(path, names[i]))
			return true;
	}
	return false;
}

/* -- reading RECORD -- */

/* All directories above `path` have something of this package. */
static void claim_directories(struct split *split, const char *path, struct split_package *package)
{
	for (size_t len = strlen(path); len > 0;) {
		struct str dir = { path, len };
		struct split_package *before;

		while (len > 0 && path[len - 1] != '/')
			len--;
		if (len == 0)
			break;
		dir.len = --len;
		before = map_get(&split->directories, dir);
		/* Above a shared one everything is shared, above one's own is one's own. */
		if (before == package || before == &shared)
			break;
		map_set(&split->directories, dir, before ? &shared : package);
		if (!before)
			continue;
		package = &shared;
	}
}

/* In the dist-info directory of another package: whose RECORD says what goes into whose layer. Of
 * wheels that write each other's, the last one's own RECORD still tells that it did. */
static bool is_foreign_record(
	const struct split *split, const struct split_package *package, const char *path)
{
	static const char end[] = ".dist-info";
	size_t len = strlen(split->site), end_len = sizeof end - 1;
	const char *name = path + len + 1, *slash;

	if (strncmp(path, split->site, len) != 0 || path[len] != '/')
		return false;
	slash = strchrnul(name, '/');
	len = (size_t)(slash - name);
	if (len < end_len || strncmp(slash - end_len, end, end_len) != 0)
		return false;
	return strlen(package->info) != len || strncmp(package->info, name, len) != 0;
}

static int claim(struct split *split, struct split_package *package,
	const struct wheel_record *entry, struct error *err)
{
	const char *base = arena_printf(split->arena, INSIDE "/%s", split->site);
	const char *path = path_normalize(split->arena, base, entry->path);
	struct split_package *before;
	struct wheel_record *copy;

	if (!path_is_beneath(path, INSIDE) || strcmp(path, INSIDE) == 0)
		return fail(err, ERR_DENIED,
			"%s==%s: RECORD names '%s', which lies outside the environment",
			package->name, package->version, entry->path);
	path += sizeof INSIDE;
	/* The link lib64 leads to lib: one file, one name. */
	if (strncmp(path, "lib64/", 6) == 0)
		path = arena_printf(split->arena, "lib/%s", path + 6);
	if (path[0] == '.' || is_own(split, path))
		return fail(err, ERR_DENIED,
			"%s==%s: RECORD names '%s', which belongs to the environment itself",
			package->name, package->version, path);
	if (is_foreign_record(split, package, path))
		return fail(err, ERR_DENIED,
			"%s==%s: RECORD names '%s', which belongs to another package",
			package->name, package->version, path);
	/* What bytecode there is was compiled here, and goes with its source. */
	if (is_dropped(path) || is_bytecode(path))
		return 0;
	copy = arena_alloc(split->arena, sizeof *copy);
	*copy = *entry;
	copy->path = path;
	map_set(&package->files, str_from(path), copy);
	before = map_get(&split->owners, str_from(path));
	if (before && before != package) {
		before->rival = package->name;
		package->rival = before->name;
	}
	map_set(&split->owners, str_from(path), package);
	claim_directories(split, path, package);
	return 0;
}

static int read_all(int dir, const char *path, struct buf *out, struct error *err)
{
	auto_close int fd = path_open_nolinks(dir, path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_errno_code(err, ERR_CORRUPT, "open '%s'", path);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > WHEEL_RECORD_MAX)
		return fail(err, ERR_CORRUPT, "'%s' is not a RECORD", path);
	char *room = buf_reserve(out, (size_t)st.st_size + 1);
	ssize_t got = room ? fd_read_full(fd, room, (size_t)st.st_size) : -1;
	if (got < 0)
		return fail_errno(err, "read '%s'", path);
	buf_grew(out, (size_t)got);
	return 0;
}

/* Writes RECORD without the lines of what isn't kept. */
static int write_record(
	struct split *split, int info, const wheel_record_list *lines, struct error *err)
{
	auto_close int fd = -1;

	auto_buf struct buf text = buf_empty(WHEEL_RECORD_MAX);
	for (size_t i = 0; i < lines->count; i++) {
		struct str line = lines->items[i].line;

		if (!is_dropped(lines->items[i].path) && !is_bytecode(lines->items[i].path))
			buf_append(&text, line.data, line.len);
	}
	/* A new file: the old one may have other names. */
	if (unlinkat(info, "RECORD", 0) < 0)
		return fail_errno(err, "replace RECORD");
	fd = openat(info, "RECORD", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || fd_write_full(fd, text.data, text.len) < 0)
		return fail_errno(err, "write RECORD");
	return 0;
}

static int drop_files(int info, struct error *err)
{
	static const char *const names[] = { "uv_cache.json", "direct_url.json", "RECORD.jws",
		"RECORD.p7s" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (unlinkat(info, names[i], 0) < 0 && errno != ENOENT)
			return fail_errno(err, "remove '%s'", names[i]);
	}
	return 0;
}

static int read_record(struct split *split, int site, const char *info_name,
	struct split_package *package, struct error *err)
{
	auto_close int info =
		openat(site, info_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	wheel_record_list lines = { 0 };
	bool is_changed = false;

	if (info < 0)
		return fail_errno(err, "open '%s'", info_name);
	package->info = arena_text(split->arena, info_name);
	auto_buf struct buf raw = buf_empty(WHEEL_RECORD_MAX + 1);
	if (read_all(info, "RECORD", &raw, err) < 0)
		return error_context(err, "%s==%s", package->name, package->version);
	struct str kept = { arena_bytes(split->arena, raw.data, raw.len), raw.len };
	if (wheel_record_parse(kept, split->arena, &lines, err) < 0)
		return error_context(err, "%s==%s: RECORD", package->name, package->version);
	for (size_t i = 0; i < lines.count; i++) {
		const struct wheel_record *line = &lines.items[i];

		if (claim(split, package, line, err) < 0)
			return -1;
		is_changed |= is_dropped(line->path) || is_bytecode(line->path);
	}
	if (drop_files(info, err) < 0)
		return error_context(err, "%s==%s", package->name, package->version);
	return is_changed ? write_record(split, info, &lines, err) : 0;
}

/* The package that a dist-info directory is of: "zope_interface-6.1.dist-info". */
static struct split_package *package_of(struct split *split, const char *info_name)
{
	size_t len = strlen(info_name) - strlen(".dist-info");
	const char *dash = memrchr(info_name, '-', len);
	const char *name;

	if (!dash)
		return NULL;
	name = requirement_normalize_name(
		split->arena, (struct str){ info_name, (size_t)(dash - info_name) });
	for (size_t i = 0; i < split->packages.count; i++) {
		if (strcmp(split->packages.items[i].name, name) == 0)
			return &split->packages.items[i];
	}
	return NULL;
}

static int read_records(struct split *split, int root, struct error *err)
{
	auto_walk DIR *walk = open_walk(root, split->site, err);
	struct dirent *entry;

	if (!walk)
		return -1;
	while ((entry = walk_next(walk))) {
		struct split_package *package;

		if (!ends_with(entry->d_name, ".dist-info"))
			continue;
		package = package_of(split, entry->d_name);
		if (!package)
			return fail(err, ERR_DENIED, "'%s' was installed but not asked for",
				entry->d_name);
		if (package->files.live > 0)
			return fail(err, ERR_DENIED, "%s==%s: it has two dist-info directories",
				package->name, package->version);
		if (read_record(split, dirfd(walk), entry->d_name, package, err) < 0)
			return -1;
	}
	if (errno)
		return fail_errno(err, "read directory '%s'", split->site);
	for (size_t i = 0; i < split->packages.count; i++) {
		const struct split_package *package = &split->packages.items[i];

		if (package->files.live == 0)
			return fail(err, ERR_CORRUPT, "%s==%s: none of its files were installed",
				package->name, package->version);
	}
	return 0;
}

/* -- bytecode that came with the wheels -- */

/* What is done with a file *.pyc in `cache`, the __pycache__ of `parent`. */
typedef int bytecode_fn(int cache, const char *name, mode_t mode, int parent, struct error *err);

/* Dot files at the `is_top` are uv's and ours. */
static int each_bytecode(
	int dir, const char *name, int depth, bool is_top, bytecode_fn *visit, struct error *err)
{
	auto_walk DIR *walk = NULL;
	bool is_cache = strcmp(name, "__pycache__") == 0;
	struct dirent *entry;

	if (depth > PATH_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "'%s' is nested too deeply", name);
	walk = open_walk(dir, name, err);
	if (!walk)
		return -1;
	while ((entry = walk_next(walk))) {
		mode_t mode;

		if (is_top && entry->d_name[0] == '.')
			continue;
		if (entry_mode(dirfd(walk), entry, &mode, err) < 0)
			return -1;
		if (S_ISDIR(mode) &&
			each_bytecode(dirfd(walk), entry->d_name, depth + 1, false, visit, err) < 0)
			return -1;
		if (is_cache && !S_ISDIR(mode) && ends_with(entry->d_name, ".pyc") &&
			visit(dirfd(walk), entry->d_name, mode, dir, err) < 0)
			return -1;
	}
	return errno ? fail_errno(err, "read directory '%s'", name) : 0;
}

static int drop_bytecode(int cache, const char *name, mode_t mode, int parent, struct error *err)
{
	return unlinkat(cache, name, 0) < 0 ? fail_errno(err, "remove '%s'", name) : 0;
}

int split_drop_bytecode(int stage, const char *root, struct error *err)
{
	auto_close int dir = path_open_nolinks(stage, root, O_RDONLY | O_DIRECTORY, 0);

	if (dir < 0)
		return fail_errno(err, "open '%s'", root);
	return each_bytecode(dir, ".", 0, true, drop_bytecode, err);
}

/* -- moving -- */

/* Bytecode that fits its source stays, other bytecode goes. */
static int fit_bytecode(int cache, const char *name, mode_t mode, int parent, struct error *err)
{
	char source[NAME_MAX + 1];
	struct stat st;
	int fits = 0;

	if (!S_ISREG(mode))
		return 0;
	if (bytecode_source_name(name, source, sizeof source) &&
		fstatat(parent, source, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
		fits = bytecode_fit(cache, name, (uint64_t)st.st_size, err);
	if (fits < 0)
		return -1;
	if (!fits && unlinkat(cache, name, 0) < 0)
		return fail_errno(err, "remove '%s'", name);
	return 0;
}

static int move_entry(struct split *split, int dir, const char *name, const char *path,
	const struct split_package *package, struct error *err)
{
	char target[PATH_MAX];
	char *slash;

	if (!str_format(target, sizeof target, "%s/tree/%s", package->draft, path)) {
		errno = ENAMETOOLONG;
		return fail_errno(err, "move '%s'", path);
	}
	if (renameat(dir, name, split->stage, target) == 0)
		return 0;
	if (errno == ENOENT) {
		auto_close int made = -1;

		slash = strrchr(target, '/');
		*slash = '\0';
		if (path_make_directories(split->stage, target, 0755, &made, err) < 0)
			return -1;
		if (renameat(dir, name, made, slash + 1) == 0)
			return 0;
	}
	return fail_errno(err, "move '%s'", path);
}

static int take_file(struct split *split, int dir, int parent, const char *name, const char *path,
	struct error *err)
{
	struct split_package *owner = map_get(&split->owners, str_from(path));

	if (is_bytecode(path)) {
		const char *source = source_of(split->arena, path);

		owner = source ? map_get(&split->owners, str_from(source)) : NULL;
		if (fit_bytecode(dir, name, S_IFREG, parent, err) < 0)
			return -1;
		if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
	}
	if (!owner)
		return fail(err, ERR_DENIED, "'%s' was installed but no package lists it", path);
	return move_entry(split, dir, name, path, owner, err);
}

static int take_directory(struct split *split, int dir, const char *name, const char *path,
	int depth, struct error *err);

/* `name` in the directory `dir`, whose path is `above` and whose parent is `parent`. */
static int take_entry(struct split *split, int dir, int parent, const char *name, const char *above,
	int depth, struct error *err)
{
	const char *path = *above ? arena_printf(split->arena, "%s/%s", above, name)
				  : arena_text(split->arena, name);
	struct split_package *owner = map_get(&split->directories, str_from(path));
	struct stat st;

	/* Dot files at the top are uv's and ours; packages can't claim them. */
	if (is_own(split, path) || path[0] == '.')
		return 0;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail_errno(err, "look at '%s'", path);
	if (S_ISREG(st.st_mode))
		/* Bytecode's source is a directory up. */
		return take_file(split, dir, parent, name, path, err);
	if (!S_ISDIR(st.st_mode))
		return fail(err, ERR_DENIED, "'%s' is neither a file nor a directory", path);
	if (!owner || owner == &shared) {
		if (take_directory(split, dir, name, path, depth + 1, err) < 0)
			return -1;
		return owner ? 0 : archives_keep_directory(split, path, err);
	}
	/* A directory that is one package's alone is moved as it is, once its bytecode fits. */
	if (each_bytecode(dir, name, depth, false, fit_bytecode, err) < 0)
		return -1;
	return move_entry(split, dir, name, path, owner, err);
}

static int take_directory(struct split *split, int dir, const char *name, const char *path,
	int depth, struct error *err)
{
	auto_walk DIR *walk = NULL;
	struct dirent *entry;

	if (depth > PATH_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "'%s' is nested too deeply", path);
	walk = open_walk(dir, name, err);
	if (!walk)
		return -1;
	/* Bytecode first: it is compared with its source, which is still there then. */
	if (take_entry(split, dirfd(walk), dir, "__pycache__", path, depth, err) < 0)
		return -1;
	while ((entry = walk_next(walk))) {
		if (take_entry(split, dirfd(walk), dir, entry->d_name, path, depth, err) < 0)
			return -1;
	}
	return errno ? fail_errno(err, "read directory '%s'", path) : 0;
}

int split_tree(struct split *split, struct error *err)
{
	auto_close int root =
		path_open_nolinks(split->stage, split->root, O_RDONLY | O_DIRECTORY, 0);

	if (root < 0)
		return fail_errno(err, "open '%s'", split->root);
	map_init(&split->owners, split->arena);
	map_init(&split->directories, split->arena);
	for (size_t i = 0; i < split->packages.count; i++) {
		auto_close int made = -1;
		struct split_package *package = &split->packages.items[i];
		const char *tree = arena_printf(split->arena, "%s/tree", package->draft);

		map_init(&package->files, split->arena);
		package->rival = NULL;
		if (path_make_directories(split->stage, tree, 0755, &made, err) < 0)
			return -1;
	}
	/* What the tree had before stays where it is, and so do its directories. */
	for (const char *const *own = split->own; *own; own++)
		claim_directories(split, *own, &shared);
	claim_directories(split, arena_printf(split->arena, "%s/x", split->site), &shared);
	if (read_records(split, root, err) < 0 || rivals_order(split, root, err) < 0)
		return -1;
	return take_directory(split, root, ".", "", 0, err);
}

int split_seen(void *ctx, size_t draft, const char *path, const unsigned char sha256[SHA256_LEN],
	uint64_t size, struct error *err)
{
	const struct split *split = ctx;
	const struct split_package *package = &split->packages.items[draft];
	const struct wheel_record *entry = map_get(&package->files, str_from(path));
	struct arena arena;

	if (is_bytecode(path)) {
		bool has_source;

		arena_init(&arena);
		const char *source = source_of(&arena, path);
		has_source = source && map_get(&package->files, str_from(source));
		arena_done(&arena);
		if (has_source)
			return 0;
	}
	if (!entry)
		return fail(err, ERR_DENIED, "%s==%s: '%s' is not in its RECORD", package->name,
			package->version, path);
	if ((entry->has_sha256 && memcmp(entry->sha256, sha256, SHA256_LEN) != 0) ||
		(entry->has_size && entry->size != size))
		return fail(err, ERR_CORRUPT, "%s==%s: '%s' is not what its RECORD says",
			package->name, package->version, path);
	return 0;
}
