#include "proc/role_root.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "linux/mount.h"

#define ROOT_BYTES "262144"
#define ROOT_INODES "512"
#define TREES_MAX 24

/* What the dynamic linker, locales and character sets lie in; devices that libraries open. */
static const struct role_path always[] = {
	{ "/usr", ROLE_READ | ROLE_EXECUTE },
	{ "/lib", ROLE_READ | ROLE_EXECUTE },
	{ "/lib64", ROLE_READ | ROLE_EXECUTE },
	{ "/lib32", ROLE_READ | ROLE_EXECUTE },
	{ "/etc/ld.so.cache", ROLE_READ },
};
static const char *const devices[] = { "/dev/null", "/dev/urandom" };

/* One thing that the root will hold. */
struct tree {
	const char *path;
	char link[256]; /* where it is a link to, or "" */
	bool is_file;
	int fd;
};
struct trees {
	struct tree items[TREES_MAX];
	size_t count;
};

/* Follows no link at the end of path: what is one on the host is one in the root as well. */
static int add_tree(
	struct trees *trees, const char *path, uint64_t attributes, bool follow, struct error *err)
{
	struct stat st;
	if (trees->count == TREES_MAX)
		return fail(err, ERR_LIMIT, "too many paths for the root of a role");
	struct tree *tree = &trees->items[trees->count];
	*tree = (struct tree){ .path = path, .fd = -1 };
	if (follow ? stat(path, &st) : lstat(path, &st))
		return errno == ENOENT ? 0 : fail_errno(err, "look at '%s'", path);
	if (S_ISLNK(st.st_mode)) {
		if (readlink(path, tree->link, sizeof tree->link - 1) < 0)
			return fail_errno(err, "read the link '%s'", path);
		trees->count++;
		return 0;
	}
	tree->is_file = !S_ISDIR(st.st_mode);
	auto_close int at = open(path, O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
	if (at < 0)
		return fail_errno(err, "open '%s'", path);
	const struct mount_change change = { .set = attributes, .recursive = true };
	if (mount_clone(at, "", &tree->fd, err) || mount_change(tree->fd, "", &change, err))
		return error_context(err, "'%s'", path);
	trees->count++;
	return 0;
}

static uint64_t attributes_of(unsigned access)
{
	return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
	       (access & ROLE_WRITE ? 0 : MOUNT_ATTR_RDONLY) |
	       (access & ROLE_EXECUTE ? 0 : MOUNT_ATTR_NOEXEC);
}

static int open_trees(const struct role_start *start, struct trees *trees, struct error *err)
{
	for (size_t i = 0; i < sizeof always / sizeof *always; i++)
		if (add_tree(trees, always[i].path, attributes_of(always[i].access), false, err))
			return -1;
	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
		if (add_tree(trees, devices[i], MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, false, err))
			return -1;
	for (size_t i = 0; i < start->root_count; i++)
		if (add_tree(trees, start->root[i].path, attributes_of(start->root[i].access), true,
			    err))
			return -1;
	return 0;
}

/* A home below /usr has its directory already, on a tree that can't be written. */
static int make_target(int root, const char *path, bool is_file, struct error *err)
{
	char parent[4096];
	struct stat st;
	auto_close int dir = -1;
	if (!fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	str_format(parent, sizeof parent, "%.*s", (int)(path_basename(path) - path), path);
	if (is_file && parent[0] && path_make_directories(root, parent, 0755, &dir, err))
		return -1;
	if (is_file) {
		auto_close int made = openat(
			root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
		return made < 0 ? fail_errno(err, "make '/%s' in the root of a role", path) : 0;
	}
	return path_make_directories(root, path, 0755, &dir, err);
}

static int place(int root, struct tree *tree, struct error *err)
{
	const char *path = tree->path + 1;
	if (tree->link[0])
		return symlinkat(tree->link, root, path) ? fail_errno(err, "link '/%s'", path) : 0;
	if (make_target(root, path, tree->is_file, err))
		return -1;
	return mount_attach(tree->fd, root, path, err);
}

static int place_program(int root, const char *name, int tree, struct error *err)
{
	char path[512];
	if (!str_format(path, sizeof path, "%s/%s", &ROLE_PROGRAM_DIR[1], name))
		return fail(err, ERR_LIMIT, "the name of role '%s' is too long", name);
	return make_target(root, path, true, err) || mount_attach(tree, root, path, err) ? -1 : 0;
}

static int place_proc(int root, struct error *err)
{
	static const char *const none[] = { NULL };
	auto_close int tree = -1;
	if (!mount_make("proc", none, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
		    &tree, err))
		return make_target(root, "proc", false, err) ||
				       mount_attach(tree, root, "proc", err)
			       ? -1
			       : 0;
	if (err->sys_errno == EPERM)
		error_hint(err, "parts of /proc are covered by other mounts, as in a container: "
				"carrel doctor shows what to change");
	return -1;
}

static int fill(const struct role_start *start, struct trees *trees, struct error *err)
{
	static const char *const options[] = { "size", ROOT_BYTES, "nr_inodes", ROOT_INODES, "mode",
		"0755", NULL };
	const struct mount_change shut = { .set = MOUNT_ATTR_RDONLY };
	auto_close int root = -1, program = -1;
	struct trees own = { 0 };
	if (add_tree(&own, start->program, attributes_of(ROLE_READ | ROLE_EXECUTE), true, err))
		return -1;
	if (!own.count)
		return fail(err, ERR_NOT_FOUND, "'%s' isn't there", start->program);
	program = own.items[0].fd;
	if (mount_make("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &root, err))
		return -1;
	/* A tree must be attached before anything can be mounted in it; /usr is on every host, and
	 * has been opened. */
	if (mount_attach(root, AT_FDCWD, "/usr", err))
		return -1;
	umask(022);
	for (size_t i = 0; i < trees->count; i++)
		if (place(root, &trees->items[i], err))
			return -1;
	if (place_program(root, start->argv[0], program, err) || place_proc(root, err) ||
		mount_change(root, "", &shut, err))
		return -1;
	return mount_pivot(root, err) || mount_drop_old_root(err) ? -1 : 0;
}

int role_enter_root(const struct role_start *start, struct error *err)
{
	const struct mount_change own = { .propagation = MS_PRIVATE, .recursive = true };
	struct trees trees = { 0 };
	if (mount_change(AT_FDCWD, "/", &own, err))
		return -1;
	int result = open_trees(start, &trees, err) || fill(start, &trees, err) ? -1 : 0;
	for (size_t i = 0; i < trees.count; i++)
		fd_close(&trees.items[i].fd);
	return result;
}
