/* What a sandbox's root holds before anything is mounted in it. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "linux/mount.h"
#include "sandbox/native/root.h"

int root_make_tmpfs(uint64_t bytes, uint64_t inodes, unsigned mode, uint64_t attributes, int *tree,
	struct error *err)
{
	char size[24], count[24], octal[8];
	str_format(size, sizeof size, "%llu", (unsigned long long)bytes);
	str_format(count, sizeof count, "%llu", (unsigned long long)inodes);
	str_format(octal, sizeof octal, "%o", mode);
	const char *const options[] = { "size", size, "nr_inodes", count, "mode", octal, NULL };
	return mount_make("tmpfs", options, (unsigned)attributes, tree, err);
}

static int make_node(int root, const struct plan_node *node)
{
	const char *path = node->path + 1;
	if (node->kind == NODE_DIRECTORY)
		return mkdirat(root, path, node->mode);
	if (node->kind == NODE_LINK)
		return symlinkat(node->text, root, path);
	if (!node->text) /* a mount point: one call instead of two */
		return mknodat(root, path, S_IFREG | node->mode, 0);
	auto_close int fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, node->mode);
	if (fd < 0)
		return -1;
	size_t len = strlen(node->text);
	return fd_write_full(fd, node->text, len) == (ssize_t)len ? 0 : -1;
}

/* As make_node, but makes the directories above it when they are missing. */
static int make_node_deep(int root, const struct plan_node *node, struct error *err)
{
	if (!make_node(root, node) || (errno == EEXIST && node->kind == NODE_DIRECTORY))
		return 0;
	int first = errno;
	const char *slash = strrchr(node->path, '/');
	if (first == ENOENT && slash != node->path) {
		char parent[4096];
		auto_close int dir = -1;
		str_format(parent, sizeof parent, "%.*s", (int)(slash - node->path - 1),
			node->path + 1);
		if (path_make_directories(root, parent, 0755, &dir, err))
			return -1;
		if (!make_node(root, node))
			return 0;
		first = errno;
	}
	errno = first;
	return fail_errno(err, "make '%s' in the sandbox", node->path);
}

bool root_is_system(const struct plan_mount *mount)
{
	return mount->kind == MOUNT_BIND && !(mount->flags & MOUNT_USER);
}

int root_make_target(int root, const struct plan_mount *mount, struct error *err)
{
	struct plan_node node = { mount->source_kind == PATH_FILE ? NODE_FILE : NODE_DIRECTORY,
		mount->target, NULL,
		mount->mode			  ? mount->mode
		: mount->source_kind == PATH_FILE ? 0644
						  : 0755 };
	return make_node_deep(root, &node, err);
}

/* A directory that holds views and no mount point. */
static bool is_for_views(const struct plan_node *node)
{
	return path_is_beneath(node->path, PLAN_SYS) && strcmp(node->path, PLAN_SYS) != 0;
}

static bool is_early(const struct plan_node *node)
{
	return node->kind == NODE_DIRECTORY && !is_for_views(node);
}

int root_make_points(int root, const struct plan *plan, struct error *err)
{
	static const struct plan_node own[] = {
		{ NODE_DIRECTORY, "/dev", NULL, 0755 },
		{ NODE_DIRECTORY, PLAN_WORKSPACE, NULL, 0755 },
		{ NODE_DIRECTORY, PLAN_WORKSPACE "/" ROOT_MASK, NULL, 0 },
		{ NODE_FILE, PLAN_WORKSPACE "/" ROOT_MASK_FILE, NULL, 0 },
	};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (make_node_deep(root, &own[i], err))
			return -1;
	for (size_t i = 0; i < plan->nodes.count; i++)
		if (is_early(&plan->nodes.items[i]) &&
			make_node_deep(root, &plan->nodes.items[i], err))
			return -1;
	for (size_t i = 0; i < plan->mounts.count; i++) {
		const struct plan_mount *mount = &plan->mounts.items[i];
		if (root_is_target(mount) && root_make_target(root, mount, err))
			return -1;
	}
	return 0;
}

int root_make_files(int root, const struct plan *plan, struct error *err)
{
	for (size_t i = 0; i < plan->nodes.count; i++)
		if (!is_early(&plan->nodes.items[i]) &&
			make_node_deep(root, &plan->nodes.items[i], err))
			return -1;
	return 0;
}

void root_view_name(const char *path, char name[ROOT_VIEW_LEN])
{
	str_format(name, ROOT_VIEW_LEN, "/.view-%s", path_basename(path));
}

int root_make_views(int root, int hidden, const struct plan *plan, struct error *err)
{
	for (size_t i = 0; i < plan->views.count; i++) {
		const struct plan_view *view = &plan->views.items[i];
		char name[ROOT_VIEW_LEN];
		bool is_of_sys = path_is_beneath(view->path, PLAN_SYS);
		struct plan_node node = { NODE_FILE, view->path, view->text, 0444 };
		if (!is_of_sys) {
			root_view_name(view->path, name);
			node.path = name;
		}
		if (make_node_deep(is_of_sys ? root : hidden, &node, err))
			return -1;
	}
	return 0;
}

static int attach_some(
	int root, const struct plan *plan, int *trees, bool devices, struct error *err)
{
	for (size_t i = 0; i < plan->mounts.count; i++) {
		const struct plan_mount *mount = &plan->mounts.items[i];
		if (!root_is_system(mount) || !(mount->flags & MOUNT_NODEV) != devices)
			continue;
		if (mount_attach(trees[i], root, mount->target + 1, err))
			return -1;
		/* Now: the limit of descriptors may be lower than there are mounts. */
		fd_close(&trees[i]);
	}
	return 0;
}

/* What is the host's is made read-only by one call, and the root around it; then the devices, which
 * are read-only but still devices: their names can't be touched, they can be written to. */
int root_attach_system(int root, const struct plan *plan, int *trees, struct error *err)
{
	struct mount_change shut = {
		.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .recursive = true
	};
	struct mount_change shut_devices = { .set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID,
		.recursive = true };
	return attach_some(root, plan, trees, false, err) || mount_change(root, "", &shut, err) ||
			       attach_some(root, plan, trees, true, err) ||
			       mount_change(root, "", &shut_devices, err)
		       ? -1
		       : 0;
}
