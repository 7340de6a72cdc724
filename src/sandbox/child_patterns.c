/* The files that a denied pattern matches when the sandbox starts (plan/denials.h). The tree is an
 * earlier command's: it is walked by descriptors, and no link is followed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "model/policy/policy.h"
#include "sandbox/child.h"

#define DEPTH_MAX 64
#define ENTRIES_MAX 200000
#define STEPS_MAX ((size_t)200 << 20) /* of comparing names with the pattern */

struct scan {
	struct arena *arena;
	const char *glob;
	enum plan_denied what;
	bool is_tree; /* the pattern stands for all below the directories that it matches */
	plan_denials *found;
	size_t matches, entries, steps;
	const char *excess; /* why it can't be enforced, or NULL */
};

static int scan_directory(
	struct scan *scan, int dir, const char *path, unsigned depth, struct error *err);

static int scan_entry(struct scan *scan, int dir, const char *path, const char *name,
	unsigned depth, struct error *err)
{
	const char *whole = arena_printf(scan->arena, "%s/%s", path, name);
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : fail_errno(err, "look at '%s'", whole);
	bool is_directory = S_ISDIR(st.st_mode);
	/* A directory is covered with all below it, where the pattern means that; or kept. */
	bool is_meant =
		is_directory ? scan->is_tree || scan->what == DENIED_DELETE : !scan->is_tree;
	bool is_match = is_meant && glob_matches(scan->glob, whole, &scan->steps);
	if (!scan->steps)
		scan->excess = "its names take too long to compare";
	if (is_match) {
		if (scan->matches++ == PLAN_MATCHES_MAX) {
			scan->excess = "it matches more than 1000 files";
			return 0;
		}
		vec_push(scan->arena, scan->found, (struct plan_denial){ whole, scan->what });
		/* What lies below is hidden with it, or read-only. */
		if (scan->what != DENIED_DELETE)
			return 0;
	}
	if (!is_directory)
		return 0;
	auto_close int below =
		openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (below < 0)
		return errno == ENOENT ? 0 : fail_errno(err, "open '%s'", whole);
	return scan_directory(scan, below, whole, depth + 1, err);
}

static int scan_directory(
	struct scan *scan, int dir, const char *path, unsigned depth, struct error *err)
{
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3), failed = 0;
	DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	if (!stream) {
		fd_close(&copy);
		return fail_errno(err, "read '%s'", path);
	}
	if (depth > DEPTH_MAX)
		scan->excess = "the directories are nested deeper than 64";
	while (!failed && !scan->excess && (errno = 0, entry = readdir(stream))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (scan->entries++ == ENTRIES_MAX)
			scan->excess = "there are more than 200000 files";
		else
			failed = scan_entry(scan, dir, path, entry->d_name, depth, err);
	}
	if (!failed && !scan->excess && errno)
		failed = fail_errno(err, "read '%s'", path);
	closedir(stream);
	return failed;
}

int child_find_matches(struct sandbox_child *child, int root, const struct plan_denial *denial,
	plan_denials *found, struct error *err)
{
	struct arena *arena = &child->start->arena;
	size_t len = strlen(denial->path), count = found->count;
	bool is_tree = len > 3 && !strcmp(denial->path + len - 3, "/**");
	struct scan scan = { .arena = arena,
		.glob = is_tree ? arena_bytes(arena, denial->path, len - 3) : denial->path,
		.what = denial->what,
		.is_tree = is_tree,
		.found = found,
		.steps = STEPS_MAX };
	size_t fixed = strcspn(scan.glob, "*?");

	while (scan.glob[fixed] != '/')
		fixed--;
	const char *top = arena_bytes(arena, scan.glob, fixed);
	auto_close int dir =
		path_open_nolinks(root, &top[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (dir < 0 && errno == ELOOP)
		scan.excess = "a link is part of its path";
	else if (dir < 0)
		return fail_errno(err, "open '%s'", top);
	if (dir >= 0 && scan_directory(&scan, dir, top, 0, err))
		return -1;
	if (scan.excess) {
		found->count = count;
		/* The start goes on, and this process has no other reader than its parent's log. */
		dprintf(STDERR_FILENO,
			"carrel: warning: the rule against '%s:%s' is only judged here: %s\n",
			plan_denied_names[denial->what], denial->path, scan.excess);
	}
	return 0;
}
