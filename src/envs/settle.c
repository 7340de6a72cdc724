#include "envs/settle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "trees/stacks/snapshots.h"

#define UNSHADOW(id, name) [ENV_KIND_##id] = env_##name##_unshadow,
static env_unshadow_fn *const unshadow[ENV_KINDS] = { ENV_KIND_LIST(UNSHADOW) };

int settle_enter(
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

int settle_look(const struct stack_dir *root, const char *path, struct stack_entry *entry,
	struct stack_dir *parent, struct error *err)
{
	return settle_enter(root, path_parent(path), parent, err) ||
			       stack_look(parent, path_basename(path), entry, err)
		       ? -1
		       : 0;
}

bool settle_is_in_after(const struct settling *s, const char *path)
{
	struct stat st;
	for (size_t i = 1 + s->frozen; i < s->count; i++)
		if (!fstatat(s->fds[i], path, &st, AT_SYMLINK_NOFOLLOW))
			return true;
	return false;
}

int settle_is_outdated(const struct settling *s, const char *path, struct error *err)
{
	struct stack_entry entry;
	auto_stack struct stack_dir parent = { 0 };
	if (settle_is_in_after(s, path))
		return 0;
	if (settle_look(&s->stack, path, &entry, &parent, err))
		return -1;
	return entry.is_there && entry.layer >= 1 && entry.layer <= s->frozen;
}

bool settle_is_frozen(void *ctx, const char *path)
{
	const struct settling *s = ctx;
	struct stack_entry entry;
	struct error ignored;
	auto_stack struct stack_dir parent = { 0 };
	return !settle_look(&s->below, path, &entry, &parent, &ignored) && entry.is_there;
}

int settle_make_directory(const struct settling *s, struct str path, int *fd, struct error *err)
{
	auto_close int dir = fcntl(s->upper, F_DUPFD_CLOEXEC, 3);
	struct str piece;
	while (dir >= 0 && str_next(&path, '/', &piece)) {
		char name[NAME_MAX + 1];
		str_format(name, sizeof name, "%.*s", (int)piece.len, piece.data);
		bool is_new = !mkdirat(dir, name, 0755);
		if (!is_new && errno != EEXIST)
			return fail_errno(err, "make '%s' in the changes of an environment", name);
		int next = fd_open_directory(dir, name);
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

int settle_hide(struct settling *s, const char *path, struct error *err)
{
	auto_close int dir = -1;
	int made = settle_make_directory(s, path_parent(path), &dir, err);
	if (made)
		return made < 0 ? -1 : 0;
	if (path_remove_tree(dir, path_basename(path), err) ||
		stack_make_whiteout(dir, path_basename(path)))
		return fail_errno(err, "hide '%s' of a frozen layer", path);
	map_set(&s->emptied, path_parent(path), s);
	return 0;
}

int settle_copy_in(const struct settling *s, int tree, const char *path, struct error *err)
{
	struct snapshot_copy done = { 0 };
	auto_close int to = -1;
	struct str above = path_parent(path);
	int made = settle_make_directory(s, above, &to, err);
	if (made)
		return made < 0 ? -1 : 0;
	auto_close int from = upper_open(tree, above);
	if (from < 0)
		return fail(err, ERR_CORRUPT, "'%s' of a layer is missing", path);
	const char *name = path_basename(path);
	return snapshot_copy_entry(from, name, to, name, &done, err);
}

int env_settle(const struct env_kind *kind, struct settling *s, struct error *err)
{
	struct upper_change change = *s->change;
	change.is_frozen = settle_is_frozen;
	change.ctx = s;
	map_init(&s->forced, s->arena);
	map_init(&s->emptied, s->arena);
	for (size_t i = 0; i < change.forced.count; i++)
		map_set(&s->forced, str_from(change.forced.items[i]), s);
	int failed = stack_open(&s->below, s->fds + 1, s->frozen, err) ||
		     stack_open(&s->stack, s->fds, s->count, err) ||
		     kind->settle(s->layers, s->upper, &change, err) ||
		     unshadow[kind->row - env_kind_rows](s, err);
	stack_done(&s->stack);
	stack_done(&s->below);
	return failed ? -1 : 0;
}
