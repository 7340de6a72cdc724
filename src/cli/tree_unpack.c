#include "cli/tree_unpack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "base/str.h"

/* While it is unpacked, everything can be reached and written by us alone. */
#define STAGE_MODE 0700

int unpack_begin(struct unpack *unpack, int place, struct error *err)
{
	char id[ID_LEN + 1];
	*unpack = (struct unpack){ .place = place, .stage = -1, .file = -1, .root_mode = 0755 };
	arena_init(&unpack->arena);
	tar_reader_init(&unpack->reader);
	id_make(id);
	str_format(unpack->stage_name, sizeof unpack->stage_name, ".carrel-cp-%s", id);
	if (mkdirat(place, unpack->stage_name, STAGE_MODE)) {
		fail_errno(err, "make a directory to unpack in");
		unpack->stage_name[0] = 0;
		return -1;
	}
	unpack->stage =
		openat(place, unpack->stage_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return unpack->stage < 0 ? fail_errno(err, "open '%s'", unpack->stage_name) : 0;
}

static void leave_out(struct unpack *unpack, const struct tar_entry *entry)
{
	if (!unpack->left_out++)
		unpack->first_left_out =
			arena_printf(&unpack->arena, "special file '%s'", entry->name);
}

static void note_outward(struct unpack *unpack, const struct tar_entry *entry)
{
	if (!unpack->outward++)
		unpack->first_outward =
			arena_printf(&unpack->arena, "'%s' to '%s'", entry->name, entry->link);
}

/* A workspace's link to its environment. */
static bool is_venv(const struct unpack *unpack, const char *name, const char *link)
{
	return unpack->is_workspace && !strcmp(name, ".venv") && !strcmp(link, "/env");
}

/* The directory of `name`, made where it isn't there; *base is its last component. */
static int open_parent(
	struct unpack *unpack, const char *name, int *fd, const char **base, struct error *err)
{
	const char *slash = strrchr(name, '/');
	*base = slash ? slash + 1 : name;
	if (!slash) {
		*fd = fcntl(unpack->stage, F_DUPFD_CLOEXEC, 3);
		return *fd < 0 ? fail_errno(err, "unpack '%s'", name) : 0;
	}
	const char *parent = arena_bytes(&unpack->arena, name, (size_t)(slash - name));
	return path_make_directories(unpack->stage, parent, STAGE_MODE, fd, err);
}

/* Of names that come twice the last one counts. A directory stays what it is. */
static int clear_name(int parent, const char *base, struct error *err)
{
	if (unlinkat(parent, base, 0) && errno != ENOENT)
		return fail_errno(err, "replace '%s'", base);
	return 0;
}

static int add_file(struct unpack *unpack, const char *name, struct error *err)
{
	auto_close int parent = -1;
	const char *base;
	if (open_parent(unpack, name, &parent, &base, err) || clear_name(parent, base, err))
		return -1;
	unpack->file =
		openat(parent, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	unpack->written = unpack->reader.entry;
	unpack->written.name = name;
	return unpack->file < 0 ? fail_errno(err, "make '%s'", name) : 0;
}

static int add_link(
	struct unpack *unpack, const char *name, const struct tar_entry *entry, struct error *err)
{
	auto_close int parent = -1;
	const char *base;
	if (!entry->link || !entry->link[0])
		return fail(err, ERR_CORRUPT, "link '%s' in the archive has no target", name);
	if (is_venv(unpack, name, entry->link))
		return 0;
	if (!tar_link_stays(name, entry->link))
		note_outward(unpack, entry);
	if (open_parent(unpack, name, &parent, &base, err) || clear_name(parent, base, err))
		return -1;
	return symlinkat(entry->link, parent, base) ? fail_errno(err, "make link '%s'", name) : 0;
}

/* To a file that is unpacked already, found without following anything. */
static int add_hard_link(
	struct unpack *unpack, const char *name, const struct tar_entry *entry, struct error *err)
{
	auto_close int parent = -1, target = -1;
	const char *base, *clean = entry->link ? tar_clean_name(&unpack->arena, entry->link) : NULL;
	struct stat st;
	char path[32];
	if (!clean)
		return fail(err, ERR_DENIED, "link '%s' in the archive points outside of it", name);
	target = path_open_nolinks(unpack->stage, clean, O_PATH | O_NOFOLLOW, 0);
	if (target < 0 || fstat(target, &st) || !S_ISREG(st.st_mode))
		return fail(err, ERR_CORRUPT,
			"link '%s' in the archive points to '%s', which is not a file in the "
			"archive",
			name, clean);
	if (!strcmp(name, clean))
		return 0;
	if (open_parent(unpack, name, &parent, &base, err) || clear_name(parent, base, err))
		return -1;
	str_format(path, sizeof path, "/proc/self/fd/%d", target);
	return linkat(AT_FDCWD, path, parent, base, AT_SYMLINK_FOLLOW)
		       ? fail_errno(err, "make link '%s'", name)
		       : 0;
}

static int add_directory(
	struct unpack *unpack, const char *name, const struct tar_entry *entry, struct error *err)
{
	auto_close int fd = -1;
	if (name[0] && path_make_directories(unpack->stage, name, STAGE_MODE, &fd, err))
		return -1;
	/* Their own modes come last: one that is read-only would keep out what is in it. */
	vec_push(&unpack->arena, &unpack->directories,
		(struct unpack_directory){ name, entry->mode, entry->modified_s });
	return 0;
}

static int add_entry(struct unpack *unpack, struct error *err)
{
	const struct tar_entry *entry = &unpack->reader.entry;
	const char *name = tar_clean_name(&unpack->arena, entry->name);
	if (!name)
		return fail(err, ERR_DENIED, "the path '%s' in the archive points outside of it",
			entry->name);
	if (++unpack->entries > UNPACK_ENTRIES_MAX)
		return fail(
			err, ERR_LIMIT, "the archive has more than %d entries", UNPACK_ENTRIES_MAX);
	if (!name[0] && entry->kind != TAR_DIRECTORY)
		return fail(err, ERR_CORRUPT, "the archive has a file without a name");
	switch (entry->kind) {
	case TAR_FILE:
		return add_file(unpack, name, err);
	case TAR_DIRECTORY:
		return add_directory(unpack, name, entry, err);
	case TAR_SYMLINK:
		return add_link(unpack, name, entry, err);
	case TAR_HARDLINK:
		return add_hard_link(unpack, name, entry, err);
	default:
		leave_out(unpack, entry);
		return 0;
	}
}

static int write_at(int fd, struct str data, uint64_t offset, struct error *err)
{
	while (data.len) {
		ssize_t wrote = pwrite(fd, data.data, data.len, (off_t)offset);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return fail_errno(err, "write");
		data = (struct str){ data.data + wrote, data.len - (size_t)wrote };
		offset += (uint64_t)wrote;
	}
	return 0;
}

static void set_time(int fd, int64_t modified_s)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = modified_s } };
	/* A time this file system can't hold is no reason to keep the file back. */
	(void)futimens(fd, times);
}

/* The file that was begun is whole. */
static int end_file(struct unpack *unpack, struct error *err)
{
	auto_close int fd = take_fd(&unpack->file);
	const struct tar_entry *entry = &unpack->written;
	if (fd < 0)
		return 0;
	/* A hole at its end has no bytes. */
	if (ftruncate(fd, (off_t)entry->size) || fchmod(fd, entry->mode & 0777))
		return fail_errno(err, "unpack '%s'", entry->name);
	set_time(fd, entry->modified_s);
	return 0;
}

int unpack_add(struct unpack *unpack, struct str data, struct error *err)
{
	struct str piece;
	int step;
	do {
		step = tar_read(&unpack->reader, &data, &piece, err);
		if (step < 0)
			return -1;
		if (step == TAR_ENTRY && (end_file(unpack, err) || add_entry(unpack, err)))
			return -1;
		if (step == TAR_DATA && unpack->file >= 0 &&
			write_at(unpack->file, piece, unpack->reader.offset, err))
			return error_context(err, "unpack '%s'", unpack->written.name);
	} while (step == TAR_ENTRY || step == TAR_DATA);
	return 0;
}

/* What carrel makes in a workspace is about that workspace, and no use elsewhere. The directories
 * of --context stay when something is in them. */
static void remove_own(const struct unpack *unpack)
{
	static const char *const directories[] = { "scripts", "data", "repos", "output" };
	unlinkat(unpack->stage, ".workspace_configured", 0);
	if (unlinkat(unpack->stage, ".context.json", 0))
		return;
	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
		unlinkat(unpack->stage, directories[i], AT_REMOVEDIR);
}

static int set_directories(struct unpack *unpack, struct error *err)
{
	if (fchmod(unpack->stage, unpack->root_mode & 0777))
		return fail_errno(err, "set the mode of the tree");
	for (size_t i = unpack->directories.count; i-- > 0;) {
		const struct unpack_directory *d = &unpack->directories.items[i];
		auto_close int fd = path_open_nolinks(unpack->stage, d->name[0] ? d->name : ".",
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		/* A later entry may have put a file there. */
		if (fd < 0)
			continue;
		if (fchmod(fd, d->mode & 0777))
			return fail_errno(err, "set the mode of '%s'", d->name);
		set_time(fd, d->modified_s);
	}
	return 0;
}

enum kind { ABSENT, DIRECTORY, OTHER };
static enum kind kind_at(int dir, const char *name)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return ABSENT;
	return S_ISDIR(st.st_mode) ? DIRECTORY : OTHER;
}

/* A directory that changes its parent must be writable. */
static int move(int from, int to, const char *name, enum kind kind, struct error *err)
{
	struct stat st = { 0 };
	bool is_locked = kind == DIRECTORY && !fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) &&
			 !(st.st_mode & S_IWUSR);
	if (is_locked)
		(void)!fchmodat(from, name, STAGE_MODE, 0);
	if (renameat(from, name, to, name))
		return fail_errno(err, "move '%s' into place", name);
	if (is_locked)
		(void)!fchmodat(to, name, st.st_mode & 0777, 0);
	return 0;
}

static int merge(int from, int to, bool is_trial, int depth, struct error *err);

static int merge_one(
	int from, int to, const char *name, bool is_trial, int depth, struct error *err)
{
	enum kind what = kind_at(from, name), there = kind_at(to, name);
	if (there != ABSENT && (what == DIRECTORY) != (there == DIRECTORY))
		return fail_hint(err, ERR_CONFLICT, "move or remove it first",
			"'%s' already exists and is %s directory", name,
			there == DIRECTORY ? "a" : "no");
	if (what == DIRECTORY && there == DIRECTORY) {
		const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
		auto_close int inner = openat(from, name, flags), into = openat(to, name, flags);
		if (inner < 0 || into < 0)
			return fail_errno(err, "open '%s'", name);
		if (!is_trial && fchmod(inner, STAGE_MODE))
			return fail_errno(err, "open '%s'", name);
		return merge(inner, into, is_trial, depth + 1, err);
	}
	return is_trial ? 0 : move(from, to, name, what, err);
}

/* Everything in `from` into `to`. */
static int merge(int from, int to, bool is_trial, int depth, struct error *err)
{
	int failed = 0;
	const struct dirent *entry;
	if (depth > PATH_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "the tree is too deep");
	int own = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own >= 0 ? fdopendir(own) : NULL;
	if (!dir) {
		fd_close(&own);
		return fail_errno(err, "read a directory");
	}
	while (!failed && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			failed = merge_one(from, to, entry->d_name, is_trial, depth, err);
	closedir(dir);
	return failed;
}

int unpack_finish(struct unpack *unpack, const char *name, struct error *err)
{
	if (tar_reader_finish(&unpack->reader, err) || end_file(unpack, err))
		return -1;
	if (unpack->is_workspace)
		remove_own(unpack);
	if (set_directories(unpack, err))
		return -1;
	if (name && kind_at(unpack->place, name) == ABSENT) {
		if (renameat(unpack->place, unpack->stage_name, unpack->place, name))
			return fail_errno(err, "move '%s' into place", name);
		unpack->stage_name[0] = 0;
		return 0;
	}
	auto_close int into = openat(
		unpack->place, name ? name : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (into < 0 && errno == ENOTDIR)
		return fail_hint(err, ERR_CONFLICT, "move or remove it first",
			"'%s' already exists and is not a directory", name);
	if (into < 0)
		return fail_errno(err, "open '%s'", name ? name : ".");
	if (fchmod(unpack->stage, STAGE_MODE))
		return fail_errno(err, "open the unpacked tree");
	return merge(unpack->stage, into, true, 0, err) || merge(unpack->stage, into, false, 0, err)
		       ? -1
		       : 0;
}

void unpack_done(struct unpack *unpack)
{
	struct error err;
	fd_close(&unpack->file);
	fd_close(&unpack->stage);
	/* What can't be removed has a name that says what it is. */
	if (unpack->stage_name[0])
		path_remove_tree(unpack->place, unpack->stage_name, &err);
	tar_reader_done(&unpack->reader);
	arena_done(&unpack->arena);
}
