/* The child's PLAN_PROGRAMS (sandbox/plan/programs.h), when everything is mounted: what a name
 * runs. It is made of trees that nothing inside can write, and can't be written either. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "base/str.h"
#include "base/walk.h"
#include "linux/mount.h"
#include "sandbox/native/child.h"
#include "sandbox/native/point.h"
#include "sandbox/plan/programs.h"

/* As `-m pip`, but not from the working directory, where a pip.py may have been written. */
#define RUN_PIP                                                                                    \
	"import sys; sys.path[:] = [p for p in sys.path if p]; import runpy; "                     \
	"runpy.run_module(\"pip\", run_name=\"__main__\", alter_sys=True)"

struct programs {
	struct sandbox_child *child;
	int root, first, last; /* directories */
	size_t count;	       /* of names */
};

static int count_name(struct programs *p, struct error *err)
{
	if (++p->count > PLAN_PROGRAMS_MAX)
		return fail(err, ERR_LIMIT, "the environments have more than %d programs",
			PLAN_PROGRAMS_MAX);
	return 0;
}

/* The first of a name stays. */
static int add_link(
	struct programs *p, int to, const char *dir, const char *name, struct error *err)
{
	char path[4096];
	str_format(path, sizeof path, "%s/%s", dir, name);
	if (count_name(p, err))
		return -1;
	return symlinkat(path, to, name) && errno != EEXIST ? fail_errno(err, "link to '%s'", path)
							    : 0;
}

/* Python finds its environment by the path that it is started by, pip by its Python. */
static int add_script(struct programs *p, const char *name, const char *runs, struct error *err)
{
	char text[512];
	str_format(text, sizeof text, "#!/bin/sh\nexec %s \"$@\"\n", runs);
	if (count_name(p, err))
		return -1;
	return file_create(p->first, name, 0555, str_from(text))
		       ? fail_errno(err, "make '%s'", name)
		       : 0;
}

static int make_directory(int dir, const char *name, int *fd, struct error *err)
{
	if (mkdirat(dir, name, 0755))
		return fail_errno(err, "make '%s'", name);
	*fd = fd_open_directory(dir, name);
	return *fd < 0 ? fail_errno(err, "open '%s'", name) : 0;
}

/* ---- the environments' own ---- */

/* A bind of a layer, or of the host: nothing inside writes it. */
static int add_tools(struct programs *p, const char *dir, struct error *err)
{
	auto_walk DIR *walk = walk_from(
		path_open_nolinks(p->root, dir + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
	struct dirent *entry;
	while ((entry = walk_next(walk)))
		if (add_link(p, p->first, dir, entry->d_name, err))
			return -1;
	return 0;
}

/* Mounts the link of the layer over what is at that name in the environment, where nothing can be
 * renamed or removed then. */
static int keep_link(int from, int dir, const char *name, struct error *err)
{
	char leads[4096] = "";
	struct mount_change shut = { .set = child_attributes(MOUNT_RO | MOUNT_NODEV) };
	struct stat st;
	auto_close int tree = -1, at = -1;
	if (readlinkat(from, name, leads, sizeof leads - 1) < 0)
		return fail_errno(err, "read the link '%s' of an environment", name);
	if (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode) &&
		point_move_aside(dir, name))
		return fail_errno(err, "move the directory '%s' away", name);
	if (symlinkat(leads, dir, name) && errno != EEXIST)
		return fail_errno(err, "make '%s'", name);
	at = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0)
		return fail_errno(err, "open '%s'", name);
	return mount_clone(from, name, &tree, err) || mount_change(tree, "", &shut, err) ||
			       mount_attach(tree, at, "", err)
		       ? error_context(err, "the interpreter '%s'", name)
		       : 0;
}

static int add_interpreter(
	struct programs *p, const char *bin, int from, const char *name, struct error *err)
{
	char path[4096];
	auto_close int dir =
		path_open_nolinks(p->root, bin + 1, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir < 0)
		return fail_errno(err, "open '%s'", bin);
	str_format(path, sizeof path, "%s/%s", bin, name);
	return keep_link(from, dir, name, err) || add_script(p, name, path, err) ? -1 : 0;
}

/* ---- packages' ---- */

/* Its path stays within the layers, whatever links lead to it. */
static bool is_program(int from, const char *name)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
	struct stat st;
	auto_close int fd = (int)syscall(SYS_openat2, from, name, &how, sizeof how);
	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_mode & 0111;
}

static int add_package_program(struct programs *p, const struct plan_mount *mount, const char *dir,
	int from, const char *name, struct error *err)
{
	const struct plan_tree *tree = mount->tree;
	struct arena *arena = &p->child->start->arena;
	switch (tree->has_interpreter ? program_name_of(name) : PROGRAM_ANY) {
	case PROGRAM_PYTHON:
		return add_interpreter(p,
			arena_printf(arena, "%s/%s", tree->target, tree->programs), from, name,
			err);
	case PROGRAM_PIP:
		return add_script(p, name,
			arena_printf(arena, "%s/%s/python -c '" RUN_PIP "'", tree->target,
				tree->programs),
			err);
	default:
		return program_name_of(name) != PROGRAM_ANY || !is_program(from, name)
			       ? 0
			       : add_link(p, p->last, dir, name, err);
	}
}

/* A mount point can't be renamed. A writable one may contain links. */
static int hold_directory(struct programs *p, const struct plan_tree *tree, struct error *err)
{
	const char *bin =
		arena_printf(&p->child->start->arena, "%s/%s", tree->target, tree->programs);
	auto_close int made = -1;
	return point_open(p->root, bin + 1, true, &made, err) || child_pin(p->root, bin, 0, err)
		       ? -1
		       : 0;
}

static int add_packages(struct programs *p, const struct plan_mount *mount, struct error *err)
{
	const struct plan_tree *tree = mount->tree;
	const char *dir =
		arena_printf(&p->child->start->arena, "%s/%s", mount->target, tree->programs);
	auto_close int from =
		path_open_nolinks(p->root, dir + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (from < 0)
		return errno == ENOENT ? 0 : fail_errno(err, "open '%s'", dir);
	if (tree->has_interpreter && hold_directory(p, tree, err))
		return -1;
	auto_walk DIR *walk = walk_open(from, ".");
	struct dirent *entry;
	while ((entry = walk_next(walk)))
		if (add_package_program(p, mount, dir, from, entry->d_name, err))
			return -1;
	return 0;
}

int child_make_programs(struct sandbox_child *child, struct error *err)
{
	const struct plan *plan = child->plan;
	if (!plan->judged)
		return 0;
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), first = -1, last = -1;
	if (root < 0)
		return fail_errno(err, "open '/'");
	if (make_directory(child->programs, "first", &first, err) ||
		make_directory(child->programs, "last", &last, err))
		return -1;
	struct programs p = { child, root, first, last, 0 };
	for (size_t i = 0; i < plan->tools.count; i++)
		if (add_tools(&p, plan->tools.items[i], err))
			return -1;
	for (size_t i = 0; i < plan->mounts.count; i++)
		if (plan->mounts.items[i].kind == MOUNT_PACKAGES &&
			add_packages(&p, &plan->mounts.items[i], err))
			return -1;
	return 0;
}
