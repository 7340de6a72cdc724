/* The child's /proc: masks, views and read-only entries. */
#include <fcntl.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "linux/mount.h"
#include "linux/netns.h"
#include "sandbox/native/child.h"
#include "sandbox/native/root.h"

#define PROC "/proc"

/* The name of an entry of /proc itself; NULL: `path` is elsewhere. */
static const char *entry_of(const char *path)
{
	return path_is_beneath(path, PROC) && path[sizeof PROC - 1] ? path + sizeof PROC : NULL;
}

struct mask {	 /* an empty file or directory that is mounted over entries */
	int *fd; /* its source; after the first cover(), a read-only mount of it to clone */
	struct stat st;
	bool is_shut;
};

/* Verifies each mask: a silent failure here would expose the entry. */
static int cover(struct mask *mask, int proc, const char *name, struct error *err)
{
	struct mount_change shut = { .set = child_attributes(MOUNT_RO | MOUNT_NODEV) };
	auto_close int tree = -1;
	struct stat seen;
	if (mount_clone(*mask->fd, "", &tree, err) ||
		(!mask->is_shut && mount_change(tree, "", &shut, err)) ||
		mount_attach(tree, proc, name, err))
		return error_context(err, "mask '%s/%s'", PROC, name);
	if (fstatat(proc, name, &seen, AT_SYMLINK_NOFOLLOW))
		return fail_errno(err, "check the mask of '%s/%s'", PROC, name);
	if (seen.st_dev != mask->st.st_dev || seen.st_ino != mask->st.st_ino)
		return fail(err, ERR_FAILED, "the mask of '%s/%s' has no effect", PROC, name);
	if (mask->is_shut)
		return 0;
	fd_close(mask->fd);
	*mask->fd = take_fd(&tree);
	mask->is_shut = true;
	return 0;
}

static bool is_masked(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->masks.count; i++)
		if (!strcmp(path_basename(plan->masks.items[i]), name))
			return true;
	return false;
}

/* All masks are direct entries of /proc: reading the directory once tells which exist, and their
 * types. Trying a mount instead is slow, since a failed mount makes the kernel wait for all CPUs.
 */
static int mask_entries(struct sandbox_child *child, int proc, struct error *err)
{
	struct mask file = { .fd = &child->mask_file }, directory = { .fd = &child->mask };
	if (fstat(*file.fd, &file.st) || fstat(*directory.fd, &directory.st))
		return fail_errno(err, "list the paths to mask");
	auto_walk DIR *entries = walk_open(AT_FDCWD, PROC);
	struct dirent *entry;
	int failed = entries ? 0 : fail_errno(err, "read '%s'", PROC);
	while (!failed && (entry = walk_next(entries)))
		if (is_masked(child->plan, entry->d_name))
			failed = cover(entry->d_type == DT_DIR ? &directory : &file, proc,
				entry->d_name, err);
	return failed;
}

/* A view of an entry that this kernel doesn't have is skipped. */
static int mount_view(struct sandbox_child *child, int proc, const char *path, struct error *err)
{
	char name[ROOT_VIEW_LEN];
	auto_close int tree = -1;
	struct mount_change shut = { .set = child_attributes(
					     MOUNT_RO | MOUNT_NODEV | MOUNT_NOEXEC) };
	struct error why;
	root_view_name(path, name);
	if (mount_clone(child->hidden, name + 1, &tree, err) || mount_change(tree, "", &shut, err))
		return -1;
	if (!mount_attach(tree, proc, entry_of(path), &why) || why.code == ERR_NOT_FOUND)
		return 0;
	*err = why;
	return -1;
}

static int mount_views(struct sandbox_child *child, int proc, struct error *err)
{
	for (size_t i = 0; i < child->plan->views.count; i++) {
		const char *path = child->plan->views.items[i].path;
		if (entry_of(path) && mount_view(child, proc, path, err))
			return -1;
	}
	return 0;
}

static int make_read_only(int proc, const char *name, struct error *err)
{
	auto_close int tree = -1;
	struct error why;
	if (mount_clone(proc, name, &tree, &why)) {
		if (why.code == ERR_NOT_FOUND)
			return 0;
		*err = why;
		return -1;
	}
	struct mount_change change = { .set = MOUNT_ATTR_RDONLY, .recursive = true };
	if (mount_change(tree, "", &change, err))
		return -1;
	return mount_attach(tree, proc, name, err);
}

int child_narrow_proc(struct sandbox_child *child, struct error *err)
{
	int proc = child->report[SETUP_PROC];
	if (child->start->netns < 0 && netns_open_ports(proc, err))
		return -1;
	if (mask_entries(child, proc, err) || child_finish_files(child, err) ||
		mount_views(child, proc, err))
		return -1;
	for (size_t i = 0; i < child->plan->read_only.count; i++)
		if (make_read_only(proc, entry_of(child->plan->read_only.items[i]), err))
			return -1;
	return 0;
}
