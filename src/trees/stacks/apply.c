#include "trees/stacks/apply.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/id.h"
#include "base/map.h"
#include "base/path.h"
#include "base/walk.h"
#include "trees/stacks/snapshots.h"

#define JOURNAL "journal"
#define JOURNAL_MAX ((size_t)256 << 20)

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
	struct map paths; /* of the items -> item */
	char stage_name[sizeof APPLY_STAGE + ID_LEN];
	int stage, old, new;
	step_list steps;
	bool is_stuck; /* the stage holds what could not be put back */
};

static const char *number(char out[24], size_t n)
{
	snprintf(out, 24, "%zu", n);
	return out;
}

int apply_open_directory(int root, struct str path)
{
	struct str name;
	auto_close int at = fd_open_directory(root, ".");
	char one[NAME_MAX + 1];
	while (at >= 0 && str_next(&path, '/', &name)) {
		if (!str_format(one, sizeof one, "%.*s", (int)name.len, name.data)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		int next = path_open_entry(at, one);
		fd_close(&at);
		at = next;
	}
	return take_fd(&at);
}

int apply_open_parent(int root, const char *path)
{
	return apply_open_directory(root, path_parent(path));
}

void apply_wait_for_tick(struct timespec *since)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, since);
	do {
		const struct timespec pause = { 0, 500000 };
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (now.tv_sec < since->tv_sec ||
		 (now.tv_sec == since->tv_sec && now.tv_nsec <= since->tv_nsec));
}

static int conflict(
	const struct apply *apply, const char *path, const char *what, struct error *err)
{
	fail(err, ERR_CONFLICT, "'%s' in '%s' %s", path, apply->name, what);
	return error_hint(err, "nothing was changed in '%s'", apply->name);
}

/* ---- before anything moves ---- */

/* A directory whose mode alone changed stays where it is. */
static bool is_mode_only(const struct apply_item *item)
{
	return item->change == SNAPSHOT_MODIFIED && item->was_directory && item->is_directory;
}

static bool is_after(const struct timespec *time, const struct timespec *since)
{
	return time->tv_sec > since->tv_sec ||
	       (time->tv_sec == since->tv_sec && time->tv_nsec > since->tv_nsec);
}

/* A directory that is to go may hold only what goes with it. */
static int check_emptied(const struct applying *a, const struct apply_item *item, struct error *err)
{
	const struct apply *apply = a->asked;
	auto_close int dir = apply_open_directory(apply->target, str_from(item->path));
	auto_walk DIR *walk = dir < 0 ? NULL : walk_open(dir, ".");
	auto_buf struct buf path = buf_empty(2 * PATH_MAX);
	struct dirent *entry;
	while ((entry = walk_next(walk))) {
		buf_clear(&path);
		buf_printf(&path, "%s/%s", item->path, entry->d_name);
		if (!map_get(&a->paths, buf_str(&path)))
			return conflict(apply, item->path,
				"can't be removed: it holds files that stay", err);
	}
	return dir < 0 || errno ? conflict(apply, item->path, "can't be read", err) : 0;
}

/* Only its mode is set, which only its owner may. */
static int check_mode_only(const struct applying *a, const struct apply_item *item,
	const struct stat *st, struct error *err)
{
	return geteuid() && st->st_uid != geteuid()
		       ? conflict(a->asked, item->path, "belongs to another user", err)
		       : 0;
}

static int check_item(const struct applying *a, const struct apply_item *item, struct error *err)
{
	const struct apply *apply = a->asked;
	const char *name = path_basename(item->path);
	struct stat st;
	auto_close int parent = apply_open_parent(apply->target, item->path);
	if (parent < 0) {
		const struct apply_item *above = map_get(&a->paths, path_parent(item->path));
		if (item->change == SNAPSHOT_ADDED && above && above->is_directory)
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
	return is_mode_only(item) ? check_mode_only(a, item, &st, err) : 0;
}

/* ---- the stage ---- */

/* The name of the stage, then the steps: none before there is a stage, so that a crash leaves none
 * that nobody knows. */
static int write_journal(
	int journal, const char *stage_name, const step_list *steps, struct error *err)
{
	auto_buf struct buf text = buf_empty(JOURNAL_MAX);
	buf_append(&text, stage_name, strlen(stage_name) + 1);
	for (size_t i = 0; i < steps->count; i++) {
		buf_char(&text, steps->items[i].change);
		buf_append(&text, steps->items[i].path, strlen(steps->items[i].path) + 1);
	}
	if (text.overflow)
		return fail(err, ERR_LIMIT, "too many changes");
	if (file_replace(journal, JOURNAL, 0600, buf_str(&text), true) || fsync(journal))
		return fail_errno(err, "write a journal of changes");
	return 0;
}

/* Nothing is to be undone any more: a journal that has steps would take what is missing in the
 * stage, once its removal has begun, for what got its name. */
static int reset_journal(int journal, const char *stage_name, struct error *err)
{
	const step_list none = { 0 };
	if (!write_journal(journal, stage_name, &none, err))
		return 0;
	return unlinkat(journal, JOURNAL, 0) && errno != ENOENT ? -1 : 0; /* the disk is full */
}

/* Opens the stage. Whoever may write to the target could have put another directory in its place:
 * ERR_DENIED. ERR_NOT_FOUND: there is none. */
static int open_own(int target, const char *name, int *stage, struct error *err)
{
	struct stat st;
	auto_close int fd = fd_open_directory(target, name);
	if (fd < 0 || fstat(fd, &st))
		return errno == ENOENT ? fail(err, ERR_NOT_FOUND, "there is no '%s'", name)
				       : fail_errno_code(err, ERR_DENIED, "open '%s'", name);
	if (st.st_uid != geteuid() || (st.st_mode & 07777) != 0700)
		return fail(err, ERR_DENIED, "'%s' was replaced by another directory", name);
	*stage = take_fd(&fd);
	return 0;
}

/* By descriptor: the name may lead to a directory of somebody else's. */
static int remove_stage(int target, const char *name, int stage, struct error *err)
{
	if (path_remove_tree(stage, "old", err) || path_remove_tree(stage, "new", err))
		return -1;
	return unlinkat(target, name, AT_REMOVEDIR) && errno != ENOENT
		       ? fail_errno(err, "remove '%s'", name)
		       : 0;
}

static int open_stage(struct applying *a, struct error *err)
{
	char id[ID_LEN + 1];
	id_make(id);
	str_format(a->stage_name, sizeof a->stage_name, APPLY_STAGE "%s", id);
	if (write_journal(a->asked->journal, a->stage_name, &a->steps, err))
		return -1;
	if (mkdirat(a->asked->target, a->stage_name, 0700))
		return fail_errno(err, "make a directory in '%s'", a->asked->name);
	fault_point("apply_stage_made");
	if (open_own(a->asked->target, a->stage_name, &a->stage, err))
		return error_context(err, "prepare changes of '%s'", a->asked->name);
	if (mkdirat(a->stage, "old", 0700) || mkdirat(a->stage, "new", 0700))
		return fail_errno(err, "prepare a directory in '%s'", a->asked->name);
	a->old = fd_open_directory(a->stage, "old");
	a->new = fd_open_directory(a->stage, "new");
	if (a->old < 0 || a->new < 0)
		return fail_errno(err, "open a directory in '%s'", a->asked->name);
	return 0;
}

mode_t apply_host_mode(mode_t mode, mode_t there)
{
	return mode & (0755 | (there & 022));
}

static mode_t mode_of(const struct apply *apply, const char *path, mode_t mode)
{
	struct stat st = { 0 };
	if (!apply->is_host)
		return mode & 0777;
	auto_close int parent = apply_open_parent(apply->target, path);
	if (parent < 0 || fstatat(parent, path_basename(path), &st, AT_SYMLINK_NOFOLLOW) ||
		S_ISLNK(st.st_mode))
		st.st_mode = 0;
	return apply_host_mode(mode, st.st_mode);
}

/* Attributes of the overlay's own must not get into a plain directory, nor bits that a command
 * could not have set there. */
static int clean_entry(const struct applying *a, const struct apply_item *item, const char *name,
	struct error *err)
{
	struct stat st;
	if (fstatat(a->new, name, &st, AT_SYMLINK_NOFOLLOW))
		return fail_errno(err, "look at a staged file");
	if (!S_ISLNK(st.st_mode)) {
		auto_close int fd = openat(a->new, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		/* What a directory holds comes after it: its own mode is set in the end. */
		mode_t mode = (item->has_mode ? item->mode : st.st_mode) |
			      (S_ISDIR(st.st_mode) ? S_IRWXU : 0);
		char names[65536];
		ssize_t len = fd < 0 ? -1 : flistxattr(fd, names, sizeof names);
		for (const char *at = names; at < names + len; at += strlen(at) + 1)
			if (!strncmp(at, "user.overlay.", 13))
				fremovexattr(fd, at);
		if (fd >= 0 && fchmod(fd, mode_of(a->asked, item->path, mode)))
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
	auto_close int parent = apply_open_parent(a->asked->source, item->path);
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
	} else if (!(a->asked->moves &&
			   !renameat(parent, path_basename(item->path), a->new, name)) &&
		   snapshot_copy_entry(
			   parent, path_basename(item->path), a->new, name, &copied, err))
		return -1;
	return clean_entry(a, item, name, err);
}

/* ---- moving ---- */

/* An overlay doesn't rename a directory that a lower layer has. It is empty by now: one like it is
 * kept in its place. */
static int move_away(int old, int parent, const char *name, size_t n)
{
	char to[24];
	struct stat st;
	if (!renameat(parent, name, old, number(to, n)))
		return 0;
	if (errno != EXDEV || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) ||
		!S_ISDIR(st.st_mode))
		return -1;
	return mkdirat(old, to, 0700) || fchmodat(old, to, st.st_mode & 07777, 0)
		       ? -1
		       : unlinkat(parent, name, AT_REMOVEDIR);
}

static int do_step(const struct applying *a, size_t n, struct error *err)
{
	const struct step *step = &a->steps.items[n];
	const char *name = path_basename(step->path);
	char number_text[24];
	auto_close int parent = apply_open_parent(a->asked->target, step->path);
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

/* Whichever part of it was done. false: it could not be undone. */
static bool undo_step(int target, int old, int new, const struct step *step, size_t n)
{
	const char *name = path_basename(step->path);
	char text[24];
	struct stat st;
	number(text, n);
	/* What was staged isn't there any more: it has got its name. */
	bool has_come = step->change != SNAPSHOT_DELETED &&
			fstatat(new, text, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
	bool is_away =
		step->change != SNAPSHOT_ADDED && !fstatat(old, text, &st, AT_SYMLINK_NOFOLLOW);
	if (!has_come && !is_away)
		return true;
	auto_close int parent = apply_open_parent(target, step->path);
	if (parent < 0)
		return false;
	if (has_come && renameat(parent, name, new, text))
		return false;
	return !is_away || !renameat(old, text, parent, name);
}

static bool undo(int target, int old, int new, const step_list *steps, size_t count)
{
	bool is_undone = true;
	for (size_t i = count; i-- > 0;)
		is_undone &= undo_step(target, old, new, &steps->items[i], i);
	return is_undone;
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
	return write_journal(a->asked->journal, a->stage_name, &a->steps, err);
}

static int carry_out(struct applying *a, struct error *err)
{
	for (size_t i = 0; i < a->items->count; i++)
		if (check_item(a, &a->items->items[i], err))
			return -1;
	for (size_t i = 0; i < a->steps.count; i++)
		if (do_step(a, i, err)) {
			a->is_stuck = !undo(a->asked->target, a->old, a->new, &a->steps, i + 1);
			return a->is_stuck
				       ? fail(err, ERR_FAILED,
						 "the changes of '%s' could be neither made nor "
						 "undone: files that were replaced are in '%s'",
						 a->asked->name, a->stage_name)
				       : error_context(err, "nothing was changed in '%s'",
						 a->asked->name);
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
		const struct apply_item *item = &items->items[i];
		struct stat st = { .st_mode = item->mode };
		if (!item->is_directory)
			continue;
		auto_close int from = apply_open_directory(apply->source, str_from(item->path));
		if (!item->has_mode && (from < 0 || fstat(from, &st)))
			return fail_errno(err, "look at '%s'", item->path);
		if (!is_mode_only(item) && (st.st_mode & S_IRWXU) == S_IRWXU)
			continue;
		auto_close int to = apply_open_directory(apply->target, str_from(item->path));
		if (to < 0 || fchmod(to, mode_of(apply, item->path, st.st_mode)))
			return fail_errno(err, "set the mode of '%s'", item->path);
	}
	return 0;
}

int apply_changes(const struct apply *apply, const apply_items *items, struct error *err)
{
	struct applying a = { .asked = apply, .stage = -1, .old = -1, .new = -1 };
	struct error ignored;
	apply_items moved = { 0 };
	arena_init(&a.arena);
	map_init(&a.paths, &a.arena);
	for (size_t i = 0; i < items->count; i++) {
		map_set(&a.paths, str_from(items->items[i].path), &items->items[i]);
		if (!is_mode_only(&items->items[i]))
			vec_push(&a.arena, &moved, items->items[i]);
	}
	a.items = &moved;
	int failed = 0;
	for (size_t i = 0; i < items->count && !failed; i++)
		failed = check_item(&a, &items->items[i], err);
	if (!failed && moved.count) {
		failed = open_stage(&a, err) || stage_all(&a, err) || carry_out(&a, err);
		if (failed && !a.is_stuck)
			a.is_stuck = reset_journal(apply->journal, a.stage_name, &ignored) != 0;
		if (a.stage >= 0 && !a.is_stuck)
			remove_stage(apply->target, a.stage_name, a.stage, &ignored);
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
	auto_close int stage = -1;
	int failed = open_own(target, stage_name, &stage, err);
	if (failed && err->code == ERR_NOT_FOUND)
		failed = 0;
	auto_close int old = stage < 0 ? -1 : fd_open_directory(stage, "old");
	auto_close int new = stage < 0 ? -1 : fd_open_directory(stage, "new");
	if (old >= 0 && new >= 0 && !undo(target, old, new, &steps, steps.count))
		return fail(err, ERR_FAILED,
			"changes of '%s' that were begun can't be undone: files that were replaced "
			"are in '%s'",
			name, stage_name);
	fault_point("apply_undone");
	if (stage >= 0 && (reset_journal(journal, stage_name, err) ||
				  remove_stage(target, stage_name, stage, err)))
		return error_context(err, "undo what was left in '%s'", name);
	if (fsync(target) || unlinkat(journal, JOURNAL, 0))
		return fail_errno(err, "undo what was left in '%s'", name);
	return failed ? error_context(err, "undo what was left in '%s'", name) : 0;
}
