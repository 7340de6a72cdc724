#include "snapshots/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/id.h"
#include "base/path.h"
#include "base/walk.h"
#include "snapshots/snapshots.h"

#define JOURNAL "journal"
#define JOURNAL_MAX ((size_t)256 << 20)
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* One step that can be undone: what was at `path` is old/<number> (for D, M, T), what comes there
 * is new/<number> (for A, M, T). */
struct step {
	char change;
	const char *path;
};
typedef VEC(struct step) step_list;

struct applying {
	const struct apply *asked;
	const apply_items *items;
	struct arena arena;
	char stage_name[sizeof APPLY_STAGE + ID_LEN];
	int stage, old, new;
	step_list steps;
};

static const char *number(char out[24], size_t n)
{
	snprintf(out, 24, "%zu", n);
	return out;
}

/* The directory that holds `path`, below the target. -1 with errno. */
static int open_parent(int target, const char *path)
{
	char parent[PATH_MAX];
	size_t len = (size_t)(path_basename(path) - path);
	if (len >= sizeof parent) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(parent, path, len);
	parent[len ? len - 1 : 0] = 0;
	return path_open_inside(target, parent, O_RDONLY | O_DIRECTORY);
}

static int conflict(
	const struct apply *apply, const char *path, const char *what, struct error *err)
{
	fail(err, ERR_CONFLICT, "'%s' in '%s' %s", path, apply->name, what);
	return error_hint(err, "nothing was changed in '%s'", apply->name);
}

/* ---- before anything moves ---- */

static bool is_after(const struct timespec *time, const struct timespec *since)
{
	return time->tv_sec > since->tv_sec ||
	       (time->tv_sec == since->tv_sec && time->tv_nsec > since->tv_nsec);
}

static bool is_added(const struct applying *a, const char *path)
{
	for (size_t i = 0; i < a->items->count; i++)
		if (!strcmp(a->items->items[i].path, path))
			return a->items->items[i].is_directory;
	return false;
}

/* A directory that is to go may hold only what goes with it. */
static int check_emptied(const struct applying *a, const struct apply_item *item, struct error *err)
{
	const struct apply *apply = a->asked;
	auto_close int dir = path_open_inside(apply->target, item->path, O_RDONLY | O_DIRECTORY);
	auto_walk DIR *walk = dir < 0 ? NULL : walk_open(dir, ".");
	struct dirent *entry;
	size_t len = strlen(item->path);
	while ((entry = walk_next(walk))) {
		bool is_known = false;
		for (size_t i = 0; i < a->items->count && !is_known; i++) {
			const struct apply_item *other = &a->items->items[i];
			is_known = !strncmp(other->path, item->path, len) &&
				   other->path[len] == '/' &&
				   !strcmp(other->path + len + 1, entry->d_name);
		}
		if (!is_known)
			return conflict(apply, item->path,
				"can't be removed: it holds files that stay", err);
	}
	return dir < 0 || errno ? conflict(apply, item->path, "can't be read", err) : 0;
}

static int check_item(const struct applying *a, const struct apply_item *item, struct error *err)
{
	const struct apply *apply = a->asked;
	const char *name = path_basename(item->path);
	struct stat st;
	auto_close int parent = open_parent(apply->target, item->path);
	if (parent < 0) {
		const char *path = arena_printf((struct arena *)&a->arena, "%.*s",
			(int)(name - item->path ? name - item->path - 1 : 0), item->path);
		if (item->change == SNAPSHOT_ADDED && is_added(a, path))
			return 0;
		return conflict(apply, item->path, "has no directory to be in any more", err);
	}
	bool is_there = !fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW);
	if (!is_there && errno != ENOENT)
		return fail_errno(err, "look at '%s'", item->path);
	if (is_there != (item->change != SNAPSHOT_ADDED))
		return conflict(apply, item->path,
			is_there ? "was made meanwhile" : "was removed meanwhile", err);
	if (!is_there)
		return 0;
	if (S_ISDIR(st.st_mode) != item->was_directory)
		return conflict(apply, item->path, "has become another type of file", err);
	/* The time of a directory changes with every name in it. */
	if (!S_ISDIR(st.st_mode) && is_after(&st.st_ctim, &apply->since))
		return conflict(apply, item->path, "changed meanwhile", err);
	if (item->was_directory && !item->is_directory)
		return check_emptied(a, item, err);
	return 0;
}

/* ---- the stage ---- */

/* The name of the stage, then the steps: none before there is a stage, so that a crash leaves none
 * that nobody knows. */
static int write_journal(struct applying *a, struct error *err)
{
	auto_buf struct buf text = buf_empty(JOURNAL_MAX);
	buf_append(&text, a->stage_name, strlen(a->stage_name) + 1);
	for (size_t i = 0; i < a->steps.count; i++) {
		buf_char(&text, a->steps.items[i].change);
		buf_append(&text, a->steps.items[i].path, strlen(a->steps.items[i].path) + 1);
	}
	if (text.overflow)
		return fail(err, ERR_LIMIT, "too many changes");
	if (file_replace(
		    a->asked->journal, JOURNAL, 0600, (struct str){ text.data, text.len }, true) ||
		fsync(a->asked->journal))
		return fail_errno(err, "write a journal of changes");
	return 0;
}

static int open_stage(struct applying *a, struct error *err)
{
	char id[ID_LEN + 1];
	id_make(id);
	str_format(a->stage_name, sizeof a->stage_name, APPLY_STAGE "%s", id);
	if (write_journal(a, err))
		return -1;
	if (mkdirat(a->asked->target, a->stage_name, 0700))
		return fail_errno(err, "make a directory in '%s'", a->asked->name);
	a->stage = openat(a->asked->target, a->stage_name, DIRECTORY);
	if (a->stage < 0 || mkdirat(a->stage, "old", 0700) || mkdirat(a->stage, "new", 0700))
		return fail_errno(err, "prepare a directory in '%s'", a->asked->name);
	a->old = openat(a->stage, "old", DIRECTORY);
	a->new = openat(a->stage, "new", DIRECTORY);
	if (a->old < 0 || a->new < 0)
		return fail_errno(err, "open a directory in '%s'", a->asked->name);
	return 0;
}

/* Attributes of the overlay's own must not get into a plain directory, nor bits that a command
 * could not have set there. */
static int clean_entry(const struct applying *a, const char *name, struct error *err)
{
	struct stat st;
	if (fstatat(a->new, name, &st, AT_SYMLINK_NOFOLLOW))
		return fail_errno(err, "look at a staged file");
	if (!S_ISLNK(st.st_mode)) {
		auto_close int fd = openat(a->new, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		char names[65536];
		ssize_t len = fd < 0 ? -1 : flistxattr(fd, names, sizeof names);
		for (const char *at = names; at < names + len; at += strlen(at) + 1)
			if (!strncmp(at, "user.overlay.", 13))
				fremovexattr(fd, at);
		if (fd >= 0 && fchmod(fd, st.st_mode & 0777))
			return fail_errno(err, "set the mode of a staged file");
	}
	if (a->asked->uid != (uid_t)-1 &&
		fchownat(a->new, name, a->asked->uid, a->asked->gid, AT_SYMLINK_NOFOLLOW))
		return fail_errno(err, "set the owner of a staged file");
	return 0;
}

/* Of a directory, the directory alone: what it holds are items of their own. */
static int stage_item(
	const struct applying *a, const struct apply_item *item, size_t n, struct error *err)
{
	char name[24];
	struct snapshot_copy copied;
	struct stat st;
	number(name, n);
	auto_close int parent = open_parent(a->asked->source, item->path);
	if (parent < 0)
		return fail_errno(err, "open the directory of '%s'", item->path);
	if (fstatat(parent, path_basename(item->path), &st, AT_SYMLINK_NOFOLLOW))
		return fail_errno(err, "look at '%s'", item->path);
	if (item->is_directory != S_ISDIR(st.st_mode) ||
		(!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)))
		return fail(
			err, ERR_DENIED, "'%s' is not a file, a directory or a link", item->path);
	if (S_ISDIR(st.st_mode)) {
		if (mkdirat(a->new, name, 0700) || fchmodat(a->new, name, st.st_mode & 0777, 0))
			return fail_errno(err, "stage '%s'", item->path);
	} else if (snapshot_copy_entry(
			   parent, path_basename(item->path), a->new, name, &copied, err))
		return -1;
	return clean_entry(a, name, err);
}

/* ---- moving ---- */

static int move_away(int old, int parent, const char *name, size_t n)
{
	char to[24];
	return renameat(parent, name, old, number(to, n));
}

static int do_step(const struct applying *a, size_t n, struct error *err)
{
	const struct step *step = &a->steps.items[n];
	const char *name = path_basename(step->path);
	char number_text[24];
	auto_close int parent = open_parent(a->asked->target, step->path);
	if (parent < 0)
		return fail_errno(err, "open the directory of '%s'", step->path);
	if (step->change != SNAPSHOT_ADDED && move_away(a->old, parent, name, n))
		return fail_errno(err, "replace '%s'", step->path);
	fault_point("apply_moved_away");
	if (step->change != SNAPSHOT_DELETED &&
		renameat(a->new, number(number_text, n), parent, name))
		return fail_errno(err, "put '%s' in its place", step->path);
	fault_point("apply_moved");
	return 0;
}

/* Whichever part of it was done. */
static void undo_step(int target, int old, int new, const struct step *step, size_t n)
{
	const char *name = path_basename(step->path);
	char text[24];
	struct stat st;
	number(text, n);
	auto_close int parent = open_parent(target, step->path);
	if (parent < 0)
		return;
	/* What was staged isn't there any more: it has got its name. */
	bool has_come = step->change != SNAPSHOT_DELETED &&
			fstatat(new, text, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
	if (has_come)
		renameat(parent, name, new, text);
	if (step->change != SNAPSHOT_ADDED && !fstatat(old, text, &st, AT_SYMLINK_NOFOLLOW))
		renameat(old, text, parent, name);
}

static void undo(int target, int old, int new, const step_list *steps, size_t count)
{
	for (size_t i = count; i-- > 0;)
		undo_step(target, old, new, &steps->items[i], i);
}

/* Removals go from the deepest path up, before what is new comes from the top down: a file can
 * take the place of a directory. */
static void order_steps(struct applying *a)
{
	const apply_items *items = a->items;
	for (size_t i = items->count; i-- > 0;) {
		const struct apply_item *item = &items->items[i];
		if (item->change == SNAPSHOT_DELETED || item->change == SNAPSHOT_TYPE)
			vec_push(&a->arena, &a->steps,
				(struct step){ SNAPSHOT_DELETED, item->path });
	}
	for (size_t i = 0; i < items->count; i++) {
		const struct apply_item *item = &items->items[i];
		if (item->change == SNAPSHOT_DELETED)
			continue;
		vec_push(&a->arena, &a->steps,
			(struct step){
				item->change == SNAPSHOT_TYPE ? SNAPSHOT_ADDED : item->change,
				item->path });
	}
}

/* A directory whose mode alone changed stays where it is. */
static bool is_mode_only(const struct apply_item *item)
{
	return item->change == SNAPSHOT_MODIFIED && item->was_directory && item->is_directory;
}

static int stage_all(struct applying *a, struct error *err)
{
	size_t n = 0;
	order_steps(a);
	while (n < a->steps.count && a->steps.items[n].change == SNAPSHOT_DELETED)
		n++;
	for (size_t i = 0; i < a->items->count; i++) {
		const struct apply_item *item = &a->items->items[i];
		if (item->change == SNAPSHOT_DELETED)
			continue;
		if (stage_item(a, item, n++, err))
			return -1;
	}
	fault_point("apply_staged");
	if (syncfs(a->stage))
		return fail_errno(err, "write the staged files to disk");
	return write_journal(a, err);
}

static int carry_out(struct applying *a, struct error *err)
{
	for (size_t i = 0; i < a->items->count; i++)
		if (check_item(a, &a->items->items[i], err))
			return -1;
	for (size_t i = 0; i < a->steps.count; i++)
		if (do_step(a, i, err)) {
			undo(a->asked->target, a->old, a->new, &a->steps, i + 1);
			return error_context(err, "nothing was changed in '%s'", a->asked->name);
		}
	fault_point("apply_done");
	/* From here on it is applied: what is left are files that were replaced. */
	if (fsync(a->asked->target) || unlinkat(a->asked->journal, JOURNAL, 0))
		return fail_errno(err, "complete the changes of '%s'", a->asked->name);
	return 0;
}

/* Modes of directories last: one without write permission would be in the way. */
static int set_modes(const struct apply *apply, const apply_items *items, struct error *err)
{
	for (size_t i = items->count; i-- > 0;) {
		struct stat st;
		if (!is_mode_only(&items->items[i]))
			continue;
		auto_close int from = path_open_inside(
			apply->source, items->items[i].path, O_RDONLY | O_DIRECTORY);
		auto_close int to = path_open_inside(
			apply->target, items->items[i].path, O_RDONLY | O_DIRECTORY);
		if (from < 0 || to < 0 || fstat(from, &st) || fchmod(to, st.st_mode & 0777))
			return fail_errno(err, "set the mode of '%s'", items->items[i].path);
	}
	return 0;
}

int apply_changes(const struct apply *apply, const apply_items *items, struct error *err)
{
	struct applying a = { .asked = apply, .stage = -1, .old = -1, .new = -1 };
	struct error ignored;
	apply_items moved = { 0 };
	arena_init(&a.arena);
	for (size_t i = 0; i < items->count; i++)
		if (!is_mode_only(&items->items[i]))
			vec_push(&a.arena, &moved, items->items[i]);
	a.items = &moved;
	int failed = 0;
	for (size_t i = 0; i < items->count && !failed; i++)
		failed = check_item(&a, &items->items[i], err);
	if (!failed && moved.count) {
		failed = open_stage(&a, err) || stage_all(&a, err) || carry_out(&a, err);
		if (a.stage_name[0])
			path_remove_tree(apply->target, a.stage_name, &ignored);
	}
	if (!failed)
		failed = set_modes(apply, items, err);
	fd_close(&a.old);
	fd_close(&a.new);
	fd_close(&a.stage);
	arena_done(&a.arena);
	return failed ? -1 : 0;
}

/* ---- after a crash ---- */

/* The name of a stage, then the steps. */
static int read_journal(
	int journal, struct arena *arena, const char **stage, step_list *steps, struct error *err)
{
	struct str text, name;
	if (file_read_at(journal, JOURNAL, JOURNAL_MAX, arena, &text))
		return errno == ENOENT ? 0 : fail_errno(err, "read a journal of changes");
	if (!str_cut(text, 0, &name, &text) || !str_starts_with(name, APPLY_STAGE) ||
		!id_is_valid(name.data + strlen(APPLY_STAGE)))
		return fail(err, ERR_CORRUPT, "a journal of changes is damaged");
	while (text.len > 1) {
		size_t len = strnlen(text.data + 1, text.len - 1);
		if (len == text.len - 1 || !len)
			return fail(err, ERR_CORRUPT, "a journal of changes is damaged");
		vec_push(arena, steps, (struct step){ text.data[0], text.data + 1 });
		text.data += len + 2;
		text.len -= len + 2;
	}
	*stage = name.data;
	return 0;
}

int apply_recover(int target, int journal, const char *name, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	step_list steps = { 0 };
	const char *stage_name = NULL;
	if (read_journal(journal, &arena, &stage_name, &steps, err))
		return error_context(err, "undo what was left in '%s'", name);
	if (!stage_name)
		return 0;
	auto_close int stage = openat(target, stage_name, DIRECTORY);
	auto_close int old = stage < 0 ? -1 : openat(stage, "old", DIRECTORY);
	auto_close int new = stage < 0 ? -1 : openat(stage, "new", DIRECTORY);
	if (old >= 0 && new >= 0)
		undo(target, old, new, &steps, steps.count);
	if (path_remove_tree(target, stage_name, err) || fsync(target) ||
		unlinkat(journal, JOURNAL, 0))
		return error_context(err, "undo what was left in '%s'", name);
	return 0;
}
