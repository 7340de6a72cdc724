/* Links of the system's programs that lead to what others write: `awk` is /etc/alternatives/awk on
 * Debian, and names in /usr/bin are links to directories of /opt. Where such a path is mounted by
 * the user, or lies in a workspace that is the root, the name would mean a file that no rule is
 * about, so it is made a link to nothing. Links are read as text: what they lead to may be made
 * later. */
#include <fcntl.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/walk.h"
#include "linux/mount.h"
#include "sandbox/native/child.h"
#include "sandbox/plan/programs.h"

#define LINKS_MAX 40   /* as in the kernel */
#define NOTHING "none" /* in child->programs: a link to nothing */
#define NOWHERE PLAN_PROGRAMS "/nothing"

static const char *const directories[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
	"/usr/bin", "/sbin", "/bin" };

/* ---- what others write ---- */

static bool is_user_s(const struct plan_mount *mount)
{
	return mount->flags & MOUNT_USER;
}

/* Another tree. A bind that shows a path of the host under the same path changes nothing. */
static bool is_foreign(const struct plan_mount *mount)
{
	return is_user_s(mount) && mount->kind == MOUNT_BIND &&
	       strcmp(mount->source, mount->target) != 0;
}

static bool is_related(const char *path, const char *other)
{
	return path_is_beneath(path, other) || path_is_beneath(other, path);
}

/* In a workspace that is the root: of the system, or a directory above a part of it. */
static bool is_of_system(const struct plan *plan, const char *path)
{
	static const char *const trees[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
		"/libx32" };
	for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
		if (is_related(path, trees[i]))
			return true;
	for (size_t i = 0; i < plan->mounts.count; i++) {
		const struct plan_mount *mount = &plan->mounts.items[i];
		bool is_workspace = is_user_s(mount) || !strcmp(mount->target, PLAN_ROOT);
		if (!is_workspace && is_related(path, mount->target))
			return true;
	}
	return false;
}

static bool is_written(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->mounts.count; i++)
		if (is_foreign(&plan->mounts.items[i]) &&
			path_is_beneath(path, plan->mounts.items[i].target))
			return true;
	return plan_has_root_view(plan) && !is_of_system(plan, path);
}

/* Whether the way to `path` goes through what others write. */
static bool leads_astray(const struct plan *plan, struct arena *arena, int root, const char *path)
{
	struct str rest = str_from(path), name;
	const char *done = "";
	int links = 0;
	while (links < LINKS_MAX && str_next(&rest, '/', &name)) {
		char leads[PATH_MAX];
		if (!name.len)
			continue;
		const char *next = path_normalize(
			arena, *done ? done : "/", arena_bytes(arena, name.data, name.len));
		if (is_written(plan, next))
			return true;
		ssize_t len = next[1] ? readlinkat(root, next + 1, leads, sizeof leads) : -1;
		if (len < 0 || len == sizeof leads) {
			done = next;
			continue;
		}
		links++;
		if (leads[0] == '/')
			done = "";
		rest = str_from(arena_printf(
			arena, "%.*s/%.*s", (int)len, leads, (int)rest.len, rest.data));
	}
	return false;
}

/* ---- they lead nowhere ---- */

static int cover(struct sandbox_child *child, int dir, const char *name, struct error *err)
{
	auto_close int tree = -1;
	auto_close int at = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0)
		return fail_errno(err, "open the link '%s'", name);
	if (symlinkat(NOWHERE, child->programs, NOTHING) && errno != EEXIST)
		return fail_errno(err, "make '%s'", NOTHING);
	return mount_clone(child->programs, NOTHING, &tree, err) || mount_attach(tree, at, "", err)
		       ? error_context(err, "the link '%s' of the system", name)
		       : 0;
}

static int cover_links(struct sandbox_child *child, int root, const char *path, struct error *err)
{
	struct arena *arena = &child->start->arena;
	auto_walk DIR *walk = walk_from(openat(root, path + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;
	while ((entry = walk_next(walk)))
		if ((entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) &&
			leads_astray(child->plan, arena, root,
				arena_printf(arena, "%s/%s", path, entry->d_name)) &&
			cover(child, dirfd(walk), entry->d_name, err))
			return -1;
	return 0;
}

static bool has_written(const struct plan *plan)
{
	for (size_t i = 0; i < plan->mounts.count; i++)
		if (is_foreign(&plan->mounts.items[i]) &&
			!path_is_beneath(plan->mounts.items[i].target, PLAN_WORKSPACE))
			return true;
	return plan_has_root_view(plan);
}

int child_cover_links(struct sandbox_child *child, struct error *err)
{
	if (!child->plan->judged || !has_written(child->plan))
		return 0;
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return fail_errno(err, "open '/'");
	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
		if (cover_links(child, root, directories[i], err))
			return -1;
	return 0;
}
