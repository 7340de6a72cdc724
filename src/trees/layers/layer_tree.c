#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/path.h"
#include "trees/layers/internal.h"

#define DEPTH_MAX 128 /* of directories in a layer; path_measure_tree holds more open */
#define OPEN_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

const struct timespec tree_times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = LAYER_MTIME } };

/* -- one inode -- */

const char *tree_judge(const struct stat *st, uid_t uid, dev_t dev)
{
	static const struct {
		mode_t type;
		const char *name;
	} others[] = { { S_IFIFO, "is a fifo" }, { S_IFSOCK, "is a socket" },
		{ S_IFCHR, "is a character device" }, { S_IFBLK, "is a block device" } };
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if ((st->st_mode & S_IFMT) == others[i].type)
			return others[i].name;
	if (st->st_dev != dev)
		return "is on another file system";
	return st->st_uid == uid ? NULL : "belongs to another user";
}

/* A mark of overlayfs would hide or redirect what lies in other layers; an access list or a
 * capability gives rights that the mode doesn't show. What the system itself labels (SELinux) is
 * its own business. */
static bool is_meaningful(const char *name)
{
	return strncmp(name, "security.", 9) != 0 || strcmp(name, "security.capability") == 0;
}

const char *tree_judge_attributes(int fd, bool clear)
{
	char names[4096];
	ssize_t len = flistxattr(fd, names, sizeof names);
	if (len < 0)
		return errno == ENOTSUP ? NULL : "has attributes that can't be listed";
	for (char *name = names; name < names + len; name += strlen(name) + 1) {
		if (!is_meaningful(name))
			continue;
		if (strncmp(name, "user.overlay.", 13) == 0 ||
			strncmp(name, "trusted.overlay.", 16) == 0)
			return "has a mark of overlayfs";
		if (!clear || fremovexattr(fd, name) < 0)
			return "has extended attributes";
	}
	return NULL;
}

/* By descriptor: a name would be followed. */
static int change_mode(int dir, const char *name, mode_t mode)
{
	auto_close int fd = path_open_nolinks(dir, name, O_PATH | O_NOFOLLOW, 0);
	char link[32];
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (S_ISLNK(st.st_mode)) {
		errno = ELOOP;
		return -1;
	}
	str_format(link, sizeof link, "/proc/self/fd/%d", fd);
	return chmod(link, mode);
}

static int open_again(int dir, const char *path, int flags, mode_t mode)
{
	int fd = path_open_nolinks(dir, path, flags, 0);
	if (fd < 0 && errno == EACCES && mode && change_mode(dir, path, mode) == 0)
		fd = path_open_nolinks(dir, path, flags, 0);
	return fd;
}

int tree_open_file(int dir, const char *path, mode_t mode)
{
	return open_again(dir, path, OPEN_FILE, mode);
}

int tree_open_directory(int dir, const char *path, mode_t mode)
{
	return open_again(dir, path, OPEN_DIRECTORY, mode);
}

/* -- links -- */

/* Whether a link at `path` in a layer of `kind` may lead to `target`: see store.h. */
static bool link_is_allowed(const char *kind, const char *path, const char *target)
{
	if (!path_is_absolute(target))
		return path_link_stays(path, target);
	return path_is_normal(target) &&
	       (path_is_beneath(target, "/env") || path_is_beneath(target, "/usr") ||
		       strcmp(kind, LAYER_KIND_BASE) == 0);
}

/* -- directories -- */

static int add_entry(struct tree_walk *walk, struct tree_entry entry, struct error *err)
{
	if (walk->is_draft && entry.wrong)
		return fail(
			err, ERR_DENIED, "'%s' %s", entry.path[0] ? entry.path : ".", entry.wrong);
	if (walk->entries.count > MANIFEST_ENTRIES_MAX)
		return fail(err, ERR_LIMIT, "more than %d files", MANIFEST_ENTRIES_MAX);
	vec_push(walk->arena, &walk->entries, entry);
	return 0;
}

static int read_link(struct tree_walk *walk, int dir, const char *name, struct tree_entry *entry,
	struct error *err)
{
	char target[MANIFEST_TARGET_MAX + 1];
	ssize_t len = readlinkat(dir, name, target, sizeof target);
	if (len < 0)
		return fail_errno(err, "read the link '%s'", entry->path);
	if ((size_t)len == sizeof target)
		return fail(err, ERR_LIMIT, "the target of link '%s' is too long", entry->path);
	entry->target = arena_bytes(walk->arena, target, (size_t)len);
	if (!walk->is_draft)
		return 0;
	if (!link_is_allowed(walk->kind, entry->path, entry->target)) {
		/* Both are the attacker's, and may be long: the path is what must be seen. */
		return fail(err, ERR_DENIED, "'%.200s' is a link to '%.200s', outside of its layer",
			entry->path, entry->target);
	}
	if (utimensat(dir, name, tree_times, AT_SYMLINK_NOFOLLOW) < 0)
		return store_fail(err, "set the time of", entry->path);
	return 0;
}

static int walk_directory(
	struct tree_walk *walk, int at, const char *path, dev_t dev, int depth, struct error *err);

static int walk_entry(struct tree_walk *walk, int dir, const char *name, const char *parent,
	dev_t dev, int depth, struct error *err)
{
	struct tree_entry entry = { 0 };
	struct stat st;
	entry.path = parent[0] ? arena_printf(walk->arena, "%s/%s", parent, name)
			       : arena_text(walk->arena, name);
	if (walk->is_draft && strlen(entry.path) > MANIFEST_PATH_MAX)
		return fail(err, ERR_LIMIT, "'%s': a path of more than %d bytes", entry.path,
			MANIFEST_PATH_MAX);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_errno(err, "look at '%s'", entry.path);
	entry.mode = st.st_mode;
	entry.uid = st.st_uid;
	entry.size = (uint64_t)st.st_size;
	entry.inode = st.st_ino;
	entry.links = st.st_nlink;
	entry.mtime = st.st_mtim;
	entry.wrong = tree_judge(&st, walk->uid, dev);
	if (!entry.wrong && S_ISLNK(st.st_mode) && read_link(walk, dir, name, &entry, err) < 0)
		return -1;
	if (entry.wrong || !S_ISDIR(st.st_mode))
		return add_entry(walk, entry, err);
	auto_close int fd = tree_open_directory(dir, name, walk->is_draft ? S_IRWXU : 0);
	if (fd < 0 && walk->is_draft)
		return store_fail(err, "open", entry.path);
	if (fd < 0)
		entry.wrong = "can't be read";
	else if (depth == DEPTH_MAX && walk->is_draft)
		return fail(
			err, ERR_LIMIT, "'%s': deeper than %d directories", entry.path, DEPTH_MAX);
	else if (depth == DEPTH_MAX)
		entry.wrong = "is too deep";
	else
		entry.wrong = tree_judge_attributes(fd, walk->is_draft);
	if (add_entry(walk, entry, err) < 0)
		return -1;
	return entry.wrong ? 0 : walk_directory(walk, fd, entry.path, dev, depth + 1, err);
}

static int walk_directory(
	struct tree_walk *walk, int dir, const char *path, dev_t dev, int depth, struct error *err)
{
	text_list names = { 0 };
	/* First: without x nothing in it can be looked at. */
	if (walk->is_draft && fchmod(dir, 0755) < 0)
		return store_fail(err, "set the mode of", path);
	if (file_names(dir, ".", walk->arena, &names) < 0)
		return fail_errno(err, "read '%s'", path);
	for (size_t i = 0; i < names.count; i++)
		if (walk_entry(walk, dir, names.items[i], path, dev, depth, err) < 0)
			return -1;
	/* After what is in it: nothing here adds or removes a name, which would change its time. */
	if (walk->is_draft && futimens(dir, tree_times) < 0)
		return store_fail(err, "set the time of", path);
	return 0;
}

/* -- hard links -- */

static int compare_inodes(const void *a, const void *b)
{
	const struct tree_entry *one = *(struct tree_entry *const *)a;
	const struct tree_entry *other = *(struct tree_entry *const *)b;
	return (one->inode > other->inode) - (one->inode < other->inode);
}

/* By a name outside of the layer its content could be changed. */
static int judge_links(struct tree_walk *walk, struct error *err)
{
	VEC(struct tree_entry *) linked = { 0 };
	for (size_t i = 1; i < walk->entries.count; i++) {
		struct tree_entry *entry = &walk->entries.items[i];
		if (!S_ISDIR(entry->mode) && entry->links != 1 && !entry->wrong)
			vec_push(walk->arena, &linked, entry);
	}
	vec_sort(&linked, compare_inodes);
	for (size_t first = 0, end; first < linked.count; first = end) {
		for (end = first; end < linked.count; end++)
			if (linked.items[end]->inode != linked.items[first]->inode)
				break;
		if (end - first == linked.items[first]->links)
			continue;
		for (size_t i = first; i < end; i++)
			linked.items[i]->wrong =
				"has another name outside of the layer (hard link)";
		if (walk->is_draft)
			return fail(err, ERR_DENIED, "'%s' %s", linked.items[first]->path,
				linked.items[first]->wrong);
	}
	return 0;
}

int tree_walk(struct tree_walk *walk, int dir, const char *name, struct error *err)
{
	auto_close int fd = tree_open_directory(dir, name, walk->is_draft ? S_IRWXU : 0);
	struct tree_entry entry = { .path = "" };
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return store_fail(err, "open", name);
	entry.mode = st.st_mode;
	entry.uid = st.st_uid;
	entry.links = st.st_nlink;
	entry.mtime = st.st_mtim;
	entry.wrong = tree_judge(&st, walk->uid, st.st_dev);
	if (!entry.wrong)
		entry.wrong = tree_judge_attributes(fd, walk->is_draft);
	if (add_entry(walk, entry, err) < 0)
		return -1;
	return walk_directory(walk, fd, "", st.st_dev, 0, err) < 0 ? -1 : judge_links(walk, err);
}
