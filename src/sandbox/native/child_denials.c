/* The child's denied paths (sandbox/plan/denials.h), when everything is mounted. Earlier commands
 * may have left links in the workspace: a path that one is part of is denied where it leads, if
 * that is in a tree of the workspace's own; so no link makes a part of the system disappear. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/map.h"
#include "base/path.h"
#include "base/str.h"
#include "linux/mount.h"
#include "sandbox/native/child.h"

/* The mount of the plan that the path lies in; NULL: the sandbox's own root. */
static const struct plan_mount *mount_of(const struct plan *plan, const char *path)
{
	const struct plan_mount *found = NULL;
	for (size_t i = 0; i < plan->mounts.count; i++) {
		const struct plan_mount *mount = &plan->mounts.items[i];
		if (!(mount->flags & MOUNT_STAGING) && path_is_beneath(path, mount->target) &&
			(!found || strlen(mount->target) >= strlen(found->target)))
			found = mount;
	}
	return found;
}

static bool is_writable(const struct plan_mount *mount)
{
	return mount && !(mount->flags & MOUNT_RO) && mount->kind != MOUNT_VIEWS &&
	       (mount->kind != MOUNT_BIND || mount->flags & MOUNT_USER);
}

/* -1 with errno as open's. */
static int open_path(int root, const char *path)
{
	return path_open_nolinks(root, &path[1], O_PATH | O_CLOEXEC, 0);
}

static bool is_missing(void)
{
	return errno == ENOENT || errno == ENOTDIR;
}

/* Where a path with links leads, within this root; "": nowhere. */
static int resolve(int root, const char *path, char real[PATH_MAX], struct error *err)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	char name[64];
	auto_close int at = (int)syscall(SYS_openat2, root, &path[1], &how, sizeof how);
	real[0] = '\0';
	if (at < 0)
		return is_missing() || errno == ELOOP ? 0 : fail_errno(err, "follow '%s'", path);
	str_format(name, sizeof name, "/proc/self/fd/%d", at);
	ssize_t len = readlink(name, real, PATH_MAX - 1);
	if (len < 0)
		return fail_errno(err, "follow '%s'", path);
	real[len] = '\0';
	return 0;
}

int child_pin(int root, const char *path, uint64_t attributes, struct error *err)
{
	struct mount_change change = { .set = attributes, .recursive = true };
	auto_close int tree = -1, at = open_path(root, path);
	if (at < 0)
		return fail_errno(err, "open '%s'", path);
	if (mount_clone(at, "", &tree, err) ||
		(attributes && mount_change(tree, "", &change, err)) ||
		mount_attach(tree, at, "", err))
		return error_context(err, "'%s'", path);
	return 0;
}

static int hide(struct sandbox_child *child, int root, const char *path, const struct stat *st,
	struct error *err)
{
	int mask = S_ISDIR(st->st_mode) ? child->mask : child->mask_file;
	struct mount_change shut = { .set = child_attributes(MOUNT_RO | MOUNT_NODEV) };
	struct stat wanted, seen;
	auto_close int tree = -1, at = open_path(root, path);
	if (at < 0 || fstat(mask, &wanted))
		return fail_errno(err, "open '%s'", path);
	if (mount_clone(mask, "", &tree, err) || mount_change(tree, "", &shut, err) ||
		mount_attach(tree, at, "", err))
		return error_context(err, "hide '%s'", path);
	/* Verify the mask: a silent failure here would expose the file. */
	auto_close int covered = open_path(root, path);
	if (covered < 0 || fstat(covered, &seen))
		return fail_errno(err, "check what hides '%s'", path);
	if (seen.st_dev != wanted.st_dev || seen.st_ino != wanted.st_ino)
		return fail(err, ERR_FAILED, "'%s' could not be hidden", path);
	return 0;
}

/* The directories between the tree that the path lies in and itself. */
static int pin_parents(struct sandbox_child *child, int root, const char *path,
	const struct plan_mount *mount, struct map *pinned, struct error *err)
{
	struct arena *arena = &child->start->arena;
	size_t top = strlen(mount->target);
	for (size_t i = top > 1 ? top + 1 : 1; path[i]; i++) {
		if (path[i] != '/')
			continue;
		const char *parent = arena_bytes(arena, path, i);
		if (map_get(pinned, str_from(parent)))
			continue;
		if (child_pin(root, parent, 0, err))
			return -1;
		map_set(pinned, str_from(parent), (void *)(uintptr_t)parent);
	}
	return 0;
}

/* In an overlay, names that a layer gave one file part as soon as one of them is written to. */
static int part_names(int root, const char *path, struct stat *st, struct error *err)
{
	if (st->st_nlink < 2)
		return 0;
	auto_close int fd = path_open_nolinks(root, &path[1], O_WRONLY | O_NONBLOCK | O_CLOEXEC, 0);
	auto_close int at = open_path(root, path);
	/* What can't be opened for writing, EACCES or EROFS, is as it was. */
	return at >= 0 && fstat(at, st) ? fail_errno(err, "look at '%s'", path) : 0;
}

static int deny(struct sandbox_child *child, int root, const struct plan_denial *denial,
	struct map *pinned, struct error *err);

/* Of a path with links. */
static int deny_real(struct sandbox_child *child, int root, const struct plan_denial *denial,
	struct map *pinned, struct error *err)
{
	char real[PATH_MAX];
	if (resolve(root, denial->path, real, err))
		return -1;
	struct plan_denial found = { arena_text(&child->start->arena, real), denial->what };
	const struct plan_mount *mount =
		path_is_normal(found.path) ? mount_of(child->plan, found.path) : NULL;
	if (!is_writable(mount) || !strcmp(mount->target, found.path) ||
		!strcmp(found.path, denial->path))
		return 0;
	return deny(child, root, &found, pinned, err);
}

static int deny(struct sandbox_child *child, int root, const struct plan_denial *denial,
	struct map *pinned, struct error *err)
{
	const struct plan_mount *mount = mount_of(child->plan, denial->path);
	struct stat st;
	auto_close int at = open_path(root, denial->path);
	if (at < 0 && errno == ELOOP)
		return deny_real(child, root, denial, pinned, err);
	if (at < 0) /* EACCES is an error: whoever removed the permission can restore it */
		return is_missing() ? 0 : fail_errno(err, "open '%s'", denial->path);
	if (fstat(at, &st))
		return fail_errno(err, "look at '%s'", denial->path);
	if (S_ISLNK(st.st_mode))
		return deny_real(child, root, denial, pinned, err);
	if (!is_writable(mount) && denial->what != DENIED_READ)
		return 0;
	/* By its other name it could be written to. */
	if (denial->what == DENIED_WRITE && S_ISREG(st.st_mode) &&
		part_names(root, denial->path, &st, err))
		return -1;
	if (denial->what == DENIED_WRITE && S_ISREG(st.st_mode) && st.st_nlink > 1)
		return fail_hint(err, ERR_CONFLICT,
			"remove its other names; find -samefile lists them",
			"'%s' has hard links, so that a rule against writing can't be enforced",
			denial->path);
	/* At the top of a tree there is nothing to rename. */
	if (is_writable(mount) && strcmp(mount->target, denial->path) != 0 &&
		pin_parents(child, root, denial->path, mount, pinned, err))
		return -1;
	if (denial->what == DENIED_READ)
		return hide(child, root, denial->path, &st, err);
	return child_pin(
		root, denial->path, denial->what == DENIED_WRITE ? MOUNT_ATTR_RDONLY : 0, err);
}

/* Shorter paths first: a directory is bound on itself before anything below it is covered. */
static int compare_length(const void *a, const void *b)
{
	const struct plan_denial *one = a, *other = b;
	size_t len = strlen(one->path), other_len = strlen(other->path);
	return (len > other_len) - (len < other_len);
}

int child_deny_paths(struct sandbox_child *child, struct error *err)
{
	const plan_denials *denials = &child->plan->denials;
	plan_denials all = { 0 };
	struct map pinned;
	if (!denials->count)
		return 0;
	map_init(&pinned, &child->start->arena);
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return fail_errno(err, "open '/'");
	for (size_t i = 0; i < denials->count; i++)
		if (!denial_is_pattern(&denials->items[i]))
			vec_push(&child->start->arena, &all, denials->items[i]);
	if (child_find_matches(child, root, &all, err))
		return -1;
	vec_sort(&all, compare_length);
	for (size_t i = 0; i < all.count; i++)
		if (deny(child, root, &all.items[i], &pinned, err))
			return -1;
	return 0;
}
