#include "envs/python/split.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "envs/python/archives.h"
#include "envs/python/bytecode.h"
#include "envs/python/rivals.h"
#include "format/packages/wheel_record.h"
#include "format/packages/requirements.h"

#define INSIDE "/env"

/* Several packages have files in it: it is taken apart, not moved. */
static struct split_package shared;

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

/* Of bytecode: "a/__pycache__/b.cpython-311.pyc" -> "a/b.py", or NULL. */
static const char *source_of(struct arena *arena, const char *path)
{
	const char *name = path_basename(path);
	int above = (int)(name - path) - (int)strlen("__pycache__/");
	char source[NAME_MAX + 1];
	return bytecode_source_name(name, source, sizeof source)
		       ? arena_printf(arena, "%.*s%s", above, path, source)
		       : NULL;
}

/* What uv and signers put beside RECORD and what RECORD's rules don't list. */
static const char *const dropped[] = { "uv_cache.json", "direct_url.json", "RECORD.jws",
	"RECORD.p7s" };

static bool is_dropped(const char *path)
{
	const char *name = path_basename(path);
	static const char end[] = ".dist-info/";
	size_t above = (size_t)(name - path), len = sizeof end - 1;
	if (above < len || strncmp(name - len, end, len) != 0)
		return false;
	for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
		if (strcmp(name, dropped[i]) == 0)
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

/* Writes RECORD without the lines of what isn't kept. */
static int write_record(int info, const wheel_record_list *lines, struct error *err)
{
	auto_buf struct buf text = buf_empty(WHEEL_RECORD_MAX);
	for (size_t i = 0; i < lines->count; i++) {
		struct str line = lines->items[i].line;
		if (!is_dropped(lines->items[i].path) && !is_bytecode(lines->items[i].path))
			buf_append(&text, line.data, line.len);
	}
	/* A new file: the old one may have other names. */
	if (file_replace(info, "RECORD", 0644, buf_str(&text), false) < 0)
		return fail_errno(err, "write RECORD");
	return 0;
}

static int drop_files(int info, struct error *err)
{
	for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
		if (unlinkat(info, dropped[i], 0) < 0 && errno != ENOENT)
			return fail_errno(err, "remove '%s'", dropped[i]);
	}
	return 0;
}

static int read_record(struct split *split, int site, const char *info_name,
	struct split_package *package, struct error *err)
{
	auto_close int info = fd_open_directory(site, info_name);
	wheel_record_list lines = { 0 };
	bool is_changed = false;
	struct str text;
	if (info < 0)
		return fail_errno(err, "open '%s'", info_name);
	package->info = info_name;
	if (file_read_at(info, "RECORD", WHEEL_RECORD_MAX, split->arena, &text) < 0)
		return fail_errno_code(
			err, ERR_CORRUPT, "%s==%s: read RECORD", package->name, package->version);
	if (wheel_record_parse(text, split->arena, &lines, err) < 0)
		return error_context(err, "%s==%s: RECORD", package->name, package->version);
	for (size_t i = 0; i < lines.count; i++) {
		const struct wheel_record *line = &lines.items[i];
		if (claim(split, package, line, err) < 0)
			return -1;
		is_changed |= is_dropped(line->path) || is_bytecode(line->path);
	}
	if (drop_files(info, err) < 0)
		return error_context(err, "%s==%s", package->name, package->version);
	return is_changed ? write_record(info, &lines, err) : 0;
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
	auto_close int site = path_open_nolinks(root, split->site, O_RDONLY | O_DIRECTORY, 0);
	text_list names = { 0 };
	if (site < 0 || file_names(site, ".", split->arena, &names) < 0)
		return fail_errno(err, "read directory '%s'", split->site);
	for (size_t i = 0; i < names.count; i++) {
		struct split_package *package;
		if (!ends_with(names.items[i], ".dist-info"))
			continue;
		package = package_of(split, names.items[i]);
		if (!package)
			return fail(err, ERR_DENIED, "'%s' was installed but not asked for",
				names.items[i]);
		if (package->files.live > 0)
			return fail(err, ERR_DENIED, "%s==%s: it has two dist-info directories",
				package->name, package->version);
		if (read_record(split, site, names.items[i], package, err) < 0)
			return -1;
	}
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

/* Dot files at the top (depth 0) are uv's and ours. */
static int each_bytecode(int parent, const char *dir_name, int depth, struct arena *arena,
	bytecode_fn *visit, struct error *err)
{
	auto_close int dir = fd_open_directory(parent, dir_name);
	bool is_cache = strcmp(dir_name, "__pycache__") == 0;
	text_list names = { 0 };
	if (depth > PATH_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "'%s' is nested too deeply", dir_name);
	if (dir < 0 || file_names(dir, ".", arena, &names) < 0)
		return fail_errno(err, "read directory '%s'", dir_name);
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		struct stat st;
		if (depth == 0 && name[0] == '.')
			continue;
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return fail_errno(err, "look at '%s'", name);
		if (S_ISDIR(st.st_mode) &&
			each_bytecode(dir, name, depth + 1, arena, visit, err) < 0)
			return -1;
		if (is_cache && !S_ISDIR(st.st_mode) && ends_with(name, ".pyc") &&
			visit(dir, name, st.st_mode, parent, err) < 0)
			return -1;
	}
	return 0;
}

static int drop_bytecode(int cache, const char *name, mode_t mode, int parent, struct error *err)
{
	return unlinkat(cache, name, 0) < 0 ? fail_errno(err, "remove '%s'", name) : 0;
}

int split_drop_bytecode(int stage, const char *root, struct error *err)
{
	auto_arena struct arena arena;
	arena_init(&arena);
	return each_bytecode(stage, root, 0, &arena, drop_bytecode, err);
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
	if (each_bytecode(dir, name, depth + 1, split->arena, fit_bytecode, err) < 0)
		return -1;
	return move_entry(split, dir, name, path, owner, err);
}

static int take_directory(struct split *split, int dir, const char *name, const char *path,
	int depth, struct error *err)
{
	auto_close int own = fd_open_directory(dir, name);
	text_list names = { 0 };
	if (depth > PATH_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "'%s' is nested too deeply", path);
	if (own < 0 || file_names(own, ".", split->arena, &names) < 0)
		return fail_errno(err, "read directory '%s'", path);
	/* Bytecode first: it is compared with its source, which is still there then. */
	if (take_entry(split, own, dir, "__pycache__", path, depth, err) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (take_entry(split, own, dir, names.items[i], path, depth, err) < 0)
			return -1;
	}
	return 0;
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
