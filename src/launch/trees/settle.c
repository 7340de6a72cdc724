/* The verb that brings the upper of an environment in line (envs/upper.h) where frozen layers lie
 * below it: what they hold of a package hides the layers of the new environment. That is copied
 * into the upper, and what the package hasn't any more gets a whiteout there; frozen layers never
 * change, since snapshots and forks have them too. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "envs/kind.h"
#include "envs/node/units.h"
#include "format/packages/node_package.h"
#include "format/packages/requirements.h"
#include "format/packages/wheel_record.h"
#include "launch/trees/tree_job.h"
#include "trees/stacks/snapshots.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define CACHE "__pycache__"
#define COMMANDS ".bin"

struct settling {
	struct tree_job *job;
	struct home home;
	struct layer_store layers;
	struct upper_change change;
	struct map forced;
	int upper;
	int *fds; /* the upper, the frozen layers, those of the new environment */
	size_t frozen, count;
	struct stack_dir stack; /* of them */
	struct stack_dir below; /* of the frozen ones */
	struct map emptied;	/* directories that something was hidden in */
};

/* ---- paths ---- */

static struct str directory_of(const char *path)
{
	const char *base = path_basename(path);
	return (struct str){ path, base > path ? (size_t)(base - path) - 1 : 0 };
}

/* The directory `path` of a stack; stack_done follows. */
static int enter(
	const struct stack_dir *root, struct str path, struct stack_dir *dir, struct error *err)
{
	struct str piece;
	int failed = stack_enter(root, ".", dir, err);
	while (!failed && str_next(&path, '/', &piece)) {
		char name[NAME_MAX + 1];
		struct stack_dir child;
		if (!str_format(name, sizeof name, "%.*s", (int)piece.len, piece.data))
			return fail(err, ERR_LIMIT, "the name of a file is too long");
		failed = stack_enter(dir, name, &child, err);
		child.is_cut |= dir->is_cut;
		stack_done(dir);
		*dir = child;
	}
	return failed;
}

static int look(const struct stack_dir *root, const char *path, struct stack_entry *entry,
	struct stack_dir *parent, struct error *err)
{
	return enter(root, directory_of(path), parent, err) ||
			       stack_look(parent, path_basename(path), entry, err)
		       ? -1
		       : 0;
}

static bool is_in_after(const struct settling *s, const char *path)
{
	struct stat st;
	for (size_t i = 1 + s->frozen; i < s->count; i++)
		if (!fstatat(s->fds[i], path, &st, AT_SYMLINK_NOFOLLOW))
			return true;
	return false;
}

/* 1: a frozen layer shows something there that the new environment hasn't. */
static int is_outdated(const struct settling *s, const char *path, struct error *err)
{
	struct stack_entry entry;
	auto_stack struct stack_dir parent = { 0 };
	if (is_in_after(s, path))
		return 0;
	if (look(&s->stack, path, &entry, &parent, err))
		return -1;
	return entry.is_there && entry.layer >= 1 && entry.layer <= s->frozen;
}

static bool is_frozen(void *ctx, const char *path)
{
	const struct settling *s = ctx;
	struct stack_entry entry;
	struct error ignored;
	auto_stack struct stack_dir parent = { 0 };
	return !look(&s->below, path, &entry, &parent, &ignored) && entry.is_there;
}

/* Opens the directory `path` of the upper, with those above it. 1: a command has put something
 * else there. */
static int make_directory(const struct settling *s, struct str path, int *fd, struct error *err)
{
	auto_close int dir = fcntl(s->upper, F_DUPFD_CLOEXEC, 3);
	struct str piece;
	while (dir >= 0 && str_next(&path, '/', &piece)) {
		char name[NAME_MAX + 1];
		str_format(name, sizeof name, "%.*s", (int)piece.len, piece.data);
		bool is_new = !mkdirat(dir, name, 0755);
		if (!is_new && errno != EEXIST)
			return fail_errno(err, "make '%s' in the changes of an environment", name);
		int next = openat(dir, name, DIRECTORY);
		if (next < 0 && (errno == ENOTDIR || errno == ELOOP))
			return 1;
		if (next >= 0 && is_new)
			fchmod(next, 0755);
		fd_close(&dir);
		dir = next;
	}
	if (dir < 0)
		return fail_errno(err, "open the changes of an environment");
	*fd = take_fd(&dir);
	return 0;
}

/* Hides what the frozen layers show there. */
static int hide(struct settling *s, const char *path, struct error *err)
{
	auto_close int dir = -1;
	int made = make_directory(s, directory_of(path), &dir, err);
	if (made)
		return made < 0 ? -1 : 0;
	if (path_remove_tree(dir, path_basename(path), err) ||
		stack_make_whiteout(dir, path_basename(path)))
		return fail_errno(err, "hide '%s' of a frozen layer", path);
	map_set(&s->emptied, directory_of(path), s);
	return 0;
}

/* Copies an entry of a layer into the upper, which has none of that name. */
static int copy_in(const struct settling *s, int tree, const char *path, struct error *err)
{
	struct snapshot_copy done = { 0 };
	auto_close int to = -1;
	struct str above = directory_of(path);
	int made = make_directory(s, above, &to, err);
	if (made)
		return made < 0 ? -1 : 0;
	auto_close int from = upper_open(tree, above);
	if (from < 0)
		return fail(err, ERR_CORRUPT, "'%s' of a layer is missing", path);
	const char *name = path_basename(path);
	return snapshot_copy_entry(from, name, to, name, &done, err);
}

static int open_tree_of(const struct settling *s, const char *id, int *fd, struct error *err)
{
	return tree_open_part(s->job, id, "tree", fd, err) || *fd < 0
		       ? (*fd < 0 ? fail(err, ERR_CORRUPT, "layer '%s' has no files", id) : -1)
		       : 0;
}

static bool is_new(const struct settling *s, const char *id)
{
	for (size_t i = 0; i < s->change.before.count; i++)
		if (!strcmp(s->change.before.items[i], id))
			return false;
	return true;
}

/* ---- Python ---- */

static int show_entry(
	const struct settling *s, int tree, const struct manifest_entry *entry, struct error *err)
{
	struct stack_entry seen;
	auto_stack struct stack_dir parent = { 0 };
	if (look(&s->stack, entry->path, &seen, &parent, err))
		return -1;
	bool is_shown = seen.is_there &&
			(seen.layer > s->frozen ||
				(entry->kind == MANIFEST_DIRECTORY && S_ISDIR(seen.st.st_mode)));
	if (is_shown || (seen.dir >= 0 && seen.layer == 0)) /* or a command's own */
		return 0;
	if (entry->kind != MANIFEST_DIRECTORY)
		return copy_in(s, tree, entry->path, err);
	auto_close int made = -1;
	return make_directory(s, str_from(entry->path), &made, err) < 0 ? -1 : 0;
}

static int show_layers(const struct settling *s, struct error *err)
{
	for (size_t i = 0; i < s->change.after.count; i++) {
		const char *id = s->change.after.items[i];
		auto_arena struct arena arena = { 0 };
		struct manifest manifest = { 0 };
		auto_close int tree = -1;
		if (layer_read(&s->layers, id, &arena, &manifest, err))
			return -1;
		const char *name = requirement_normalize_name(&arena, str_from(manifest.name));
		if (!is_new(s, id) && !map_get(&s->forced, str_from(name)))
			continue;
		if (open_tree_of(s, id, &tree, err))
			return -1;
		for (size_t k = 0; k < manifest.entries.count; k++)
			if (show_entry(s, tree, &manifest.entries.items[k], err))
				return -1;
	}
	return 0;
}

static int hide_bytecode(struct settling *s, const char *path, struct error *err)
{
	struct arena *arena = s->job->arena;
	const char *base = path_basename(path);
	size_t len = strlen(base);
	text_list names = { 0 };
	if (len < 4 || strcmp(base + len - 3, ".py"))
		return 0;
	const char *cache = arena_printf(arena, "%.*s" CACHE, (int)(base - path), path);
	auto_stack struct stack_dir dir = { 0 };
	if (enter(&s->stack, str_from(cache), &dir, err) ||
		stack_names(&dir, 0, dir.count, arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *found = arena_printf(arena, "%s/%s", cache, names.items[i]);
		int shown = strncmp(names.items[i], base, len - 2) ? 0 : is_outdated(s, found, err);
		if (shown < 0 || (shown && hide(s, found, err)))
			return -1;
	}
	return 0;
}

/* What the RECORD of a frozen package lists, and itself. */
static int hide_dist(struct settling *s, const struct stack_dir *site, const char *at,
	const char *dist, struct error *err)
{
	struct arena *arena = s->job->arena;
	auto_stack struct stack_dir dir = { 0 };
	wheel_record_list records = { 0 };
	struct stack_entry record;
	struct str text = { 0 };
	struct stat st;
	struct error ignored;
	auto_close int fd = -1;
	if (stack_enter(site, dist, &dir, err) || stack_look(&dir, "RECORD", &record, err))
		return -1;
	if (record.is_there && S_ISREG(record.st.st_mode) &&
		!stack_open_file(record.dir, "RECORD", &fd, &st, &ignored) &&
		!file_read(fd, WHEEL_RECORD_MAX, arena, &text) &&
		wheel_record_parse(text, arena, &records, &ignored))
		records.count = 0;
	for (size_t i = 0; i < records.count; i++) {
		const char *path = path_normalize(arena, arena_printf(arena, "/%s", at),
					   records.items[i].path) +
				   1;
		if (!*path || strlen(path) > MANIFEST_PATH_MAX)
			continue;
		int shown = is_outdated(s, path, err);
		if (shown < 0 || (shown && (hide(s, path, err) || hide_bytecode(s, path, err))))
			return -1;
	}
	const char *own = arena_printf(arena, "%s/%s", at, dist);
	int shown = is_outdated(s, own, err);
	return shown < 0 || (shown && hide(s, own, err)) ? -1 : 0;
}

/* Packages of the frozen layers that give way: in another version, or none at all. */
static int hide_dists(struct settling *s, const char *at, struct error *err)
{
	struct arena *arena = s->job->arena;
	auto_stack struct stack_dir site = { 0 };
	text_list names = { 0 };
	if (enter(&s->stack, str_from(at), &site, err) ||
		stack_names(&site, 0, site.count, arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		struct str name = str_from(names.items[i]), rest;
		if (fnmatch("*.dist-info", names.items[i], 0) ||
			!str_cut(name, '-', &name, &rest) || !requirement_name_is_valid(name) ||
			!map_get(&s->forced, str_from(requirement_normalize_name(arena, name))) ||
			is_in_after(s, arena_printf(arena, "%s/%s", at, names.items[i])))
			continue;
		if (hide_dist(s, &site, at, names.items[i], err))
			return -1;
	}
	return 0;
}

/* Python takes an empty directory for a package: one that shows nothing any more goes, and those
 * above it. */
static int hide_emptied(struct settling *s, struct error *err)
{
	struct arena *arena = s->job->arena;
	for (size_t i = 0; i < s->emptied.count; i++) { /* hide() adds those above */
		const struct str path = s->emptied.entries[i].key;
		auto_stack struct stack_dir dir = { 0 };
		text_list names = { 0 };
		bool is_empty = true;
		if (!path.len || enter(&s->stack, path, &dir, err) ||
			stack_names(&dir, 0, dir.count, arena, &names, err)) {
			if (path.len)
				return -1;
			continue;
		}
		for (size_t k = 0; k < names.count && is_empty; k++) {
			struct stack_entry entry;
			if (stack_look(&dir, names.items[k], &entry, err))
				return -1;
			is_empty = !entry.is_there;
		}
		const char *text = arena_bytes(arena, path.data, path.len);
		if (is_empty && dir.count && is_frozen(s, text) && hide(s, text, err))
			return -1;
	}
	return 0;
}

static int unshadow_python(struct settling *s, struct error *err)
{
	struct arena *arena = s->job->arena;
	auto_stack struct stack_dir lib = { 0 };
	text_list names = { 0 };
	if (enter(&s->stack, STR("lib"), &lib, err) ||
		stack_names(&lib, 0, lib.count, arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (!fnmatch("python3*", names.items[i], 0) &&
			hide_dists(s, arena_printf(arena, "lib/%s/site-packages", names.items[i]),
				err))
			return -1;
	return hide_emptied(s, err) || show_layers(s, err) ? -1 : 0;
}

/* ---- Node ---- */

/* A package that the frozen layers have, or have deleted, is copied whole: its directory in the
 * upper hides theirs. */
static int show_unit(
	const struct settling *s, int tree, const struct node_unit *unit, struct error *err)
{
	struct stack_entry seen;
	auto_stack struct stack_dir parent = { 0 };
	auto_stack struct stack_dir own = { 0 };
	auto_close int dir = -1;
	if (look(&s->stack, unit->path, &seen, &parent, err))
		return -1;
	if (seen.dir >= 0 && seen.layer == 0) /* a command's own, or copied before */
		return 0;
	if (seen.is_there && seen.layer > s->frozen)
		return 0;
	if (unit->entries.items[0]->kind != MANIFEST_DIRECTORY)
		return copy_in(s, tree, unit->path, err);
	int made = make_directory(s, str_from(unit->path), &dir, err);
	if (made)
		return made < 0 ? -1 : 0;
	if (fsetxattr(dir, UPPER_OPAQUE, "y", 1, 0))
		return fail_errno(err, "hide '%s' of a frozen layer", unit->path);
	for (size_t i = 1; i < unit->entries.count; i++) {
		const struct manifest_entry *entry = unit->entries.items[i];
		auto_close int below = -1;
		if (entry->kind == MANIFEST_DIRECTORY
				? make_directory(s, str_from(entry->path), &below, err) < 0
				: copy_in(s, tree, entry->path, err))
			return -1;
	}
	return 0;
}

/* Commands of packages that are gone. */
static int hide_commands(struct settling *s, struct error *err)
{
	struct arena *arena = s->job->arena;
	auto_stack struct stack_dir commands = { 0 };
	text_list names = { 0 };
	if (stack_enter(&s->below, COMMANDS, &commands, err) ||
		stack_names(&commands, 0, commands.count, arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		struct manifest_entry link = { .kind = MANIFEST_LINK };
		struct node_unit unit = { .path = arena_printf(
						  arena, COMMANDS "/%s", names.items[i]) };
		struct stack_entry seen;
		char target[PATH_MAX];
		if (stack_look(&commands, names.items[i], &seen, err))
			return -1;
		ssize_t len = seen.is_there ? readlinkat(seen.dir, names.items[i], target,
						      sizeof target - 1)
					    : -1;
		if (len < 0)
			continue;
		target[len] = 0;
		link.target = target;
		vec_push(arena, &unit.entries, (const struct manifest_entry *)&link);
		int shown = map_get(&s->forced, str_from(node_unit_package(&unit, arena)))
				    ? is_outdated(s, unit.path, err)
				    : 0;
		if (shown < 0 || (shown && hide(s, unit.path, err)))
			return -1;
	}
	return 0;
}

static int read_units(
	const struct settling *s, const text_list *ids, struct map *units, struct error *err)
{
	map_init(units, s->job->arena);
	for (size_t i = 0; i < ids->count; i++)
		if (node_units_read(&s->layers, ids->items[i], s->job->arena, units, err) &&
			err->code != ERR_NOT_FOUND)
			return -1;
	return 0;
}

static int unshadow_node(struct settling *s, struct error *err)
{
	struct map before, after;
	const struct node_unit *unit;
	if (read_units(s, &s->change.before, &before, err) ||
		read_units(s, &s->change.after, &after, err) || hide_commands(s, err))
		return -1;
	for (size_t i = 0; i < s->change.forced.count; i++) {
		const char *name = s->change.forced.items[i];
		if (!node_name_is_valid(name) || map_get(&after, str_from(name)))
			continue;
		int shown = is_outdated(s, name, err);
		if (shown < 0 || (shown && hide(s, name, err)))
			return -1;
	}
	for (size_t at = 0; (unit = map_next(&after, &at));) {
		const char *package = node_unit_package(unit, s->job->arena);
		bool is_wanted = map_get(&s->forced, str_from(package)) ||
				 !node_units_equal(unit, map_get(&before, str_from(unit->path)));
		/* An environment of Node is one layer. */
		if (is_wanted && show_unit(s, s->fds[s->count - 1], unit, err))
			return -1;
	}
	return 0;
}

/* ---- the verb ---- */

static int read_list(const struct tree_job *job, const char *key, bool are_layers, text_list *list,
	struct error *err)
{
	const struct json_value *value = job->options ? json_member(job->options, key) : NULL;
	for (value = value ? value->first : NULL; value; value = value->next) {
		bool is_text = value->kind == JSON_STRING &&
			       strlen(value->string.data) == value->string.len;
		if (!is_text || (are_layers && !layer_id_is_valid(value->string.data)))
			return fail(err, ERR_INVALID, "'%s' has something else than names", key);
		vec_push(job->arena, list, (const char *)value->string.data);
	}
	return 0;
}

static int open_upper(const struct tree_job *job, const char *target, const char *part, int *fd,
	struct error *err)
{
	const char *path = arena_printf(job->arena, "%s/%s/upper", target, part);
	if (!strncmp(target, "snap-", 5)) {
		path = arena_printf(job->arena, "%s/%s", target, part);
		if (mkdirat(job->layers, path, 0755) && errno != EEXIST)
			return fail_errno(err, "make '%s'", path);
		return tree_open_part(job, target, part, fd, err);
	}
	*fd = path_open_nolinks(job->workspaces, path, O_RDONLY | O_DIRECTORY, 0);
	return *fd < 0 && errno != ENOENT ? fail_errno(err, "open '%s'", path) : 0;
}

static int open_stacks(
	struct settling *s, const text_list *frozen, const char *part, struct error *err)
{
	const text_list *after = &s->change.after;
	s->frozen = frozen->count;
	s->count = 1 + frozen->count + after->count;
	s->fds = arena_array(s->job->arena, s->count, sizeof *s->fds);
	for (size_t i = 0; i < s->count; i++)
		s->fds[i] = -1;
	s->fds[0] = fcntl(s->upper, F_DUPFD_CLOEXEC, 3);
	for (size_t i = 0; i < frozen->count; i++)
		if (tree_open_part(s->job, frozen->items[i], part, &s->fds[1 + i], err))
			return -1;
	for (size_t i = 0; i < after->count; i++)
		if (open_tree_of(s, after->items[i], &s->fds[1 + frozen->count + i], err))
			return -1;
	return stack_open(&s->below, s->fds + 1, frozen->count, err) ||
			       stack_open(&s->stack, s->fds, s->count, err)
		       ? -1
		       : 0;
}

/* KIND, a workspace or the frozen layer that was copied of it, the frozen layers below; options
 * {"before", "after": ids of layers, "forced": names of packages}. */
int tree_settle(struct tree_job *job, struct error *err)
{
	struct settling s = { .job = job, .upper = -1 };
	const char *name, *target;
	if (tree_take_name(job, &name, err) || tree_take_name(job, &target, err))
		return -1;
	text_list frozen = tree_take_list(job);
	const struct env_kind *kind = env_kind_find(name);
	if (!kind || read_list(job, "before", true, &s.change.before, err) ||
		read_list(job, "after", true, &s.change.after, err) ||
		read_list(job, "forced", false, &s.change.forced, err))
		return kind ? -1 : fail(err, ERR_INVALID, "unknown kind '%s'", name);
	auto_close int upper = -1;
	if (open_upper(job, target, kind->upper, &upper, err))
		return -1;
	if (upper < 0) /* nothing was changed */
		return 0;
	s.upper = upper;
	s.layers = (struct layer_store){ &s.home, job->layers };
	s.change.is_frozen = is_frozen;
	s.change.ctx = &s;
	map_init(&s.forced, job->arena);
	map_init(&s.emptied, job->arena);
	for (size_t i = 0; i < s.change.forced.count; i++)
		map_set(&s.forced, str_from(s.change.forced.items[i]), &s);
	int failed = open_stacks(&s, &frozen, kind->upper, err) ||
		     kind->settle(&s.layers, upper, &s.change, err) ||
		     (kind == &env_node ? unshadow_node : unshadow_python)(&s, err);
	fault_point("tree_settled");
	stack_done(&s.stack);
	stack_done(&s.below);
	for (size_t i = 0; i < s.count; i++)
		fd_close(&s.fds[i]);
	if (!failed && syncfs(upper))
		failed = fail_errno(err, "write the changes of an environment to disk");
	return failed ? -1 : 0;
}
