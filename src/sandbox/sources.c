/* Opening what a sandbox will see of the host. As root the parent does it for what the user named,
 * since the child's outside uid can't walk into a 0700 directory; a plain user's child does it
 * itself, before anything is covered. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "linux/mount.h"
#include "linux/namespace.h"
#include "sandbox/start.h"

/* The map for files of that mount's owner: the one at hand, or a new one, which is then at hand. */
static int find_map(const struct plan *plan, const struct plan_mount *mount,
	struct start_idmap *idmap, struct error *err)
{
	if (idmap->userns >= 0 && idmap->owner_uid == mount->owner_uid &&
		idmap->owner_gid == mount->owner_gid)
		return 0;
	int userns;
	if (namespace_make_idmap(mount->owner_uid, mount->owner_gid, plan->outside_uid,
		    plan->outside_gid, &userns, err))
		return -1;
	start_idmap_done(idmap);
	*idmap = (struct start_idmap){ userns, mount->owner_uid, mount->owner_gid, false };
	return 0;
}

void start_idmap_done(struct start_idmap *idmap)
{
	if (!idmap->is_borrowed)
		fd_close(&idmap->userns);
	idmap->userns = -1;
}

static int map_owner(const struct plan *plan, const struct plan_mount *mount,
	struct start_idmap *idmap, int tree, struct error *err)
{
	if (find_map(plan, mount, idmap, err))
		return -1;
	struct mount_change change = {
		.set = MOUNT_ATTR_IDMAP, .idmap = idmap->userns, .recursive = true
	};
	if (mount_change(tree, "", &change, err)) {
		fail_errno_code(err, ERR_UNAVAILABLE,
			"'%s': its file system can't be mounted idmapped for the sandbox's user",
			mount->source);
		return error_hint(err,
			"use a directory on ext4, xfs, btrfs or tmpfs, or run carrel as its owner");
	}
	return 0;
}

int source_open(const struct plan_mount *mount, int *fd, struct error *err)
{
	auto_close int path = open(mount->source, O_PATH | O_CLOEXEC);
	if (path < 0)
		return fail_errno(err, "open '%s'", mount->source);
	if (!mount->beneath) {
		*fd = take_fd(&path);
		return 0;
	}
	auto_close int below = path_open_nolinks(path, mount->beneath, O_PATH | O_CLOEXEC, 0);
	if (below < 0)
		return fail_errno(err, "open '%s' in '%s'", mount->beneath, mount->source);
	*fd = take_fd(&below);
	return 0;
}

static int clone_source(const struct plan_mount *mount, int *tree, struct error *err)
{
	auto_close int path = -1;
	if (!mount->beneath) /* one call less for each directory of the system */
		return mount_clone(AT_FDCWD, mount->source, tree, err);
	return source_open(mount, &path, err) ? -1 : mount_clone(path, "", tree, err);
}

int sources_open(const struct plan *plan, bool user, struct start_idmap *idmap, int *trees,
	struct error *err)
{
	for (size_t i = 0; i < plan->mounts.count; i++) {
		const struct plan_mount *mount = &plan->mounts.items[i];
		if (mount->kind != MOUNT_BIND || !!(mount->flags & MOUNT_USER) != user)
			continue;
		if (clone_source(mount, &trees[i], err))
			return -1;
		/* Before anything is mounted in it: a clone of a shared mount is its peer, and what
		 * is mounted here would appear on the host, and stay. */
		struct mount_change alone = { .propagation = MS_PRIVATE, .recursive = true };
		if (user && mount_change(trees[i], "", &alone, err))
			return -1;
		if (mount->idmap && map_owner(plan, mount, idmap, trees[i], err))
			return -1;
	}
	return 0;
}
