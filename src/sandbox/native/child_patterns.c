/* The files that denied patterns match when the sandbox starts (sandbox/plan/denials.h). The tree
 * is an earlier command's: it is walked by descriptors, and no link is followed. All patterns that
 * begin in one directory share a walk, and all walks share what may be spent: the child has no
 * limit of memory or time yet. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "policy/policy.h"
#include "sandbox/native/child.h"

#define DEPTH_MAX 64
#define ENTRIES_MAX 200000
#define STEPS_MAX ((size_t)200 << 20) /* of comparing names with patterns */
#define MOUNTS_MAX 10000	      /* of all patterns: matches, and directories above them */
#define PATTERN_MOUNTS_MAX 4000

struct pattern {
	const struct plan_denial *denial;
	const char *glob;
	bool is_tree;	/* it stands for all below the directories that it matches */
	size_t levels;	/* of directories in which it can match */
	size_t covered; /* it covers the directory of this path's length as a whole; 0: none */
	plan_denials matches;
	size_t mounts;
	const char *excess; /* why it can't be enforced, or NULL */
};

struct scan {
	struct arena *arena;
	VEC(struct pattern) patterns;
	size_t top_len;		       /* of the directory in which they begin */
	size_t entries, steps, mounts; /* what is left for this start */
	char path[PATH_MAX];
};

static int scan_directory(
	struct scan *scan, int dir, size_t len, unsigned depth, struct error *err);

/* Whether the pattern can match an entry at this depth, of the directory that the walk is in. */
static bool is_wanted(const struct pattern *pattern, unsigned depth)
{
	return !pattern->excess && !pattern->covered && pattern->levels > depth;
}

static bool is_any_wanted(const struct scan *scan, unsigned depth)
{
	for (size_t i = 0; i < scan->patterns.count; i++)
		if (is_wanted(&scan->patterns.items[i], depth))
			return true;
	return false;
}

static void give_up(struct scan *scan, unsigned depth, const char *why)
{
	for (size_t i = 0; i < scan->patterns.count; i++)
		if (is_wanted(&scan->patterns.items[i], depth))
			scan->patterns.items[i].excess = why;
}

/* Directories above `path` that aren't above the match before it: a walk meets each only once. */
static size_t count_parents(const struct pattern *pattern, const char *path, size_t top_len)
{
	size_t at = top_len + 1, count = 0;
	if (pattern->matches.count) {
		const char *last = pattern->matches.items[pattern->matches.count - 1].path;
		for (at = 0; path[at] && path[at] == last[at];)
			at++;
	}
	for (; path[at]; at++)
		count += path[at] == '/';
	return count;
}

static void add_match(struct scan *scan, struct pattern *pattern, size_t len)
{
	const char *path = arena_bytes(scan->arena, scan->path, len);
	pattern->mounts += 1 + count_parents(pattern, path, scan->top_len);
	vec_push(scan->arena, &pattern->matches,
		(struct plan_denial){ path, pattern->denial->what });
	if (pattern->matches.count > PLAN_MATCHES_MAX)
		pattern->excess = "it matches more than 1000 files";
	else if (pattern->mounts > PATTERN_MOUNTS_MAX)
		pattern->excess = "what it matches lies in too many directories";
}

/* Compares what lies at scan->path with all patterns. */
static void compare(struct scan *scan, size_t len, unsigned depth, bool is_directory)
{
	for (size_t i = 0; i < scan->patterns.count; i++) {
		struct pattern *pattern = &scan->patterns.items[i];
		bool is_kept = pattern->denial->what == DENIED_DELETE;
		/* A directory is covered with all below it, where the pattern means that; or
		 * kept. */
		bool is_meant = is_directory ? pattern->is_tree || is_kept : !pattern->is_tree;
		if (!is_meant || !is_wanted(pattern, depth))
			continue;
		bool is_match = glob_matches(
			&pattern->glob[scan->top_len], &scan->path[scan->top_len], &scan->steps);
		if (!scan->steps) {
			give_up(scan, depth, "its names take too long to compare");
			return;
		}
		if (is_match)
			add_match(scan, pattern, len);
		/* What lies below is hidden with it, or read-only. */
		if (is_match && is_directory && !is_kept)
			pattern->covered = len;
	}
}

static int scan_below(struct scan *scan, int dir, size_t len, unsigned depth, struct error *err)
{
	const char *name = strrchr(scan->path, '/') + 1;
	auto_close int below =
		openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (below < 0)
		return errno == ENOENT ? 0 : fail_errno(err, "open '%s'", scan->path);
	return scan_directory(scan, below, len, depth, err);
}

/* `len` is that of the path of dir. */
static int scan_entry(
	struct scan *scan, int dir, size_t len, const char *name, unsigned depth, struct error *err)
{
	size_t whole = len + 1 + strlen(name);
	int failed = 0;
	struct stat st;
	/* Nothing could be mounted there. */
	if (!str_format(&scan->path[len], sizeof scan->path - len, "/%s", name)) {
		give_up(scan, depth, "a path is longer than 4095 bytes");
		return 0;
	}
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : fail_errno(err, "look at '%s'", scan->path);
	bool is_directory = S_ISDIR(st.st_mode);
	compare(scan, whole, depth, is_directory);
	if (is_directory && is_any_wanted(scan, depth + 1))
		failed = scan_below(scan, dir, whole, depth + 1, err);
	for (size_t i = 0; i < scan->patterns.count; i++)
		if (scan->patterns.items[i].covered == whole)
			scan->patterns.items[i].covered = 0;
	return failed;
}

static int scan_directory(struct scan *scan, int dir, size_t len, unsigned depth, struct error *err)
{
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3), failed = 0;
	DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;
	if (!stream) {
		fd_close(&copy);
		return fail_errno(err, "read '%s'", scan->path);
	}
	if (depth > DEPTH_MAX)
		give_up(scan, depth, "the directories are nested deeper than 64");
	errno = 0;
	while (!failed && is_any_wanted(scan, depth) && (entry = readdir(stream))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!scan->entries)
			give_up(scan, depth, "there are more than 200000 files");
		else
			failed = scan_entry(scan, dir, len, entry->d_name, depth, err);
		scan->entries -= scan->entries > 0;
		errno = 0;
	}
	scan->path[len] = '\0';
	if (!failed && errno)
		failed = fail_errno(err, "read '%s'", scan->path);
	closedir(stream);
	return failed;
}

/* ---- patterns ---- */

/* The length of the directory in which a pattern begins. */
static size_t length_of_top(const char *glob)
{
	size_t fixed = strcspn(glob, "*?");
	while (glob[fixed] != '/')
		fixed--;
	return fixed;
}

static void add_pattern(struct scan *scan, const struct plan_denial *denial)
{
	size_t len = strlen(denial->path);
	bool is_tree = len > 3 && !strcmp(denial->path + len - 3, "/**");
	const char *glob = is_tree ? arena_bytes(scan->arena, denial->path, len - 3) : denial->path;
	struct pattern pattern = { .denial = denial, .glob = glob, .is_tree = is_tree };
	for (const char *at = &glob[scan->top_len]; *at; at++)
		pattern.levels += *at == '/';
	if (strstr(&glob[scan->top_len], "**"))
		pattern.levels = SIZE_MAX;
	vec_push(scan->arena, &scan->patterns, pattern);
}

/* Walks the directory in which the patterns of `scan` begin. */
static int scan_top(struct scan *scan, int root, struct error *err)
{
	auto_close int dir =
		path_open_nolinks(root, &scan->path[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (dir < 0 && errno == ELOOP) {
		give_up(scan, 0, "a link is part of its path");
		return 0;
	}
	if (dir < 0)
		return fail_errno(err, "open '%s'", scan->path);
	return scan_directory(scan, dir, scan->top_len, 0, err);
}

static void use_matches(struct scan *scan, struct pattern *pattern, plan_denials *found)
{
	if (!pattern->excess && pattern->mounts > scan->mounts)
		pattern->excess = "the rules match too many files together";
	if (pattern->excess) {
		/* The start goes on, and this process has no other reader than its parent's log. */
		dprintf(STDERR_FILENO,
			"carrel: warning: the rule against '%s:%s' is only judged here: %s\n",
			plan_denied_names[pattern->denial->what], pattern->denial->path,
			pattern->excess);
		return;
	}
	scan->mounts -= pattern->mounts;
	for (size_t i = 0; i < pattern->matches.count; i++)
		vec_push(scan->arena, found, pattern->matches.items[i]);
}

/* Whether `one` begins in the directory that `other` begins in. */
static bool is_beside(const struct plan_denial *one, const struct plan_denial *other)
{
	size_t len = length_of_top(other->path);
	return denial_is_pattern(one) && length_of_top(one->path) == len &&
	       !memcmp(one->path, other->path, len);
}

int child_find_matches(
	struct sandbox_child *child, int root, plan_denials *found, struct error *err)
{
	const plan_denials *denials = &child->plan->denials;
	struct scan scan = { .arena = &child->start->arena,
		.entries = ENTRIES_MAX,
		.steps = STEPS_MAX,
		.mounts = MOUNTS_MAX };
	for (size_t i = 0; i < denials->count; i++) {
		const struct plan_denial *first = &denials->items[i];
		bool is_done = !denial_is_pattern(first);
		for (size_t k = 0; k < i && !is_done; k++)
			is_done = is_beside(&denials->items[k], first);
		if (is_done)
			continue;
		scan.patterns.count = 0;
		scan.top_len = length_of_top(first->path);
		for (size_t k = i; k < denials->count; k++)
			if (is_beside(&denials->items[k], first))
				add_pattern(&scan, &denials->items[k]);
		if (!str_copy(scan.path, sizeof scan.path,
			    arena_bytes(scan.arena, first->path, scan.top_len)))
			return fail(err, ERR_LIMIT, "a path of more than 4095 bytes");
		if (scan_top(&scan, root, err))
			return -1;
		for (size_t k = 0; k < scan.patterns.count; k++)
			use_matches(&scan, &scan.patterns.items[k], found);
	}
	return 0;
}
