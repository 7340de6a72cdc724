#include "trees/stacks/stack.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/walk.h"

bool stack_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

int stack_make_whiteout(int dir, const char *name)
{
	return mknodat(dir, name, S_IFCHR, makedev(0, 0));
}

bool stack_is_opaque(int dir)
{
	char value[2];
	return fgetxattr(dir, STACK_OPAQUE, value, sizeof value) == 1 && value[0] == 'y';
}

static void add_part(struct stack_dir *dir, size_t most, int fd, unsigned layer)
{
	if (!dir->parts)
		dir->parts = xzalloc(most * sizeof *dir->parts);
	dir->parts[dir->count++] = (struct stack_part){ fd, layer };
}

int stack_open(struct stack_dir *root, const int *fds, size_t count, struct error *err)
{
	*root = (struct stack_dir){ 0 };
	if (count > STACK_LAYERS_MAX)
		return fail(err, ERR_LIMIT, "more than %d layers", STACK_LAYERS_MAX);
	for (size_t i = 0; i < count; i++) {
		if (fds[i] < 0)
			continue;
		int fd = fd_open_directory(fds[i], ".");
		if (fd < 0)
			return fail_errno(err, "open layer %zu", i + 1);
		add_part(root, count, fd, (unsigned)i);
	}
	return 0;
}

void stack_done(struct stack_dir *dir)
{
	for (size_t i = 0; i < dir->count; i++)
		fd_close(&dir->parts[i].fd);
	free(dir->parts);
	*dir = (struct stack_dir){ 0 };
}

/* ENOTDIR: another process replaced a parent meanwhile. */
static bool is_absence(int code)
{
	return code == ENOENT || code == ENOTDIR || code == ELOOP;
}

int stack_look(
	const struct stack_dir *dir, const char *name, struct stack_entry *entry, struct error *err)
{
	*entry = (struct stack_entry){ .dir = -1 };
	for (size_t i = 0; i < dir->count; i++) {
		if (fstatat(dir->parts[i].fd, name, &entry->st, AT_SYMLINK_NOFOLLOW)) {
			if (is_absence(errno))
				continue;
			return fail_errno(err, "look at '%s'", name);
		}
		entry->is_cut = stack_is_whiteout(&entry->st);
		entry->is_there = !entry->is_cut;
		entry->dir = dir->parts[i].fd;
		entry->layer = dir->parts[i].layer;
		return 0;
	}
	return 0;
}

int stack_enter(
	const struct stack_dir *dir, const char *name, struct stack_dir *child, struct error *err)
{
	struct stat st;
	*child = (struct stack_dir){ 0 };
	for (size_t i = 0; i < dir->count && !child->is_cut; i++) {
		if (fstatat(dir->parts[i].fd, name, &st, AT_SYMLINK_NOFOLLOW)) {
			if (is_absence(errno))
				continue;
			return fail_errno(err, "look at '%s'", name);
		}
		if (!S_ISDIR(st.st_mode)) {
			child->is_cut = true;
			break;
		}
		int fd = fd_open_directory(dir->parts[i].fd, name);
		if (fd < 0 && is_absence(errno))
			continue;
		if (fd < 0)
			return fail_errno(err, "open directory '%s'", name);
		add_part(child, dir->count - i, fd, dir->parts[i].layer);
		child->is_cut = stack_is_opaque(fd);
	}
	return 0;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int stack_names(const struct stack_dir *dir, size_t first, size_t last, struct arena *arena,
	text_list *names, struct error *err)
{
	size_t kept = 0;
	*names = (text_list){ 0 };
	for (size_t i = first; i < last; i++) {
		auto_walk DIR *walk = walk_open(dir->parts[i].fd, ".");
		struct dirent *entry;
		while ((entry = walk_next(walk))) {
			if (names->count >= FILE_NAMES_MAX)
				return fail(err, ERR_LIMIT, "a directory has more than %d entries",
					FILE_NAMES_MAX);
			vec_push(arena, names, arena_text(arena, entry->d_name));
		}
		if (errno)
			return fail_errno(err, "list a directory");
	}
	if (!names->count)
		return 0;
	qsort(names->items, names->count, sizeof *names->items, compare_texts);
	for (size_t i = 0; i < names->count; i++)
		if (!kept || strcmp(names->items[kept - 1], names->items[i]))
			names->items[kept++] = names->items[i];
	names->count = kept;
	return 0;
}

int stack_open_file(int dir, const char *name, int *fd, struct stat *st, struct error *err)
{
	auto_close int opened =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (opened < 0 && (is_absence(errno) || errno == ENXIO))
		return fail(err, ERR_NOT_FOUND, "'%s' is not a file any more", name);
	if (opened < 0 || fstat(opened, st))
		return fail_errno(err, "open '%s'", name);
	if (!S_ISREG(st->st_mode))
		return fail(err, ERR_NOT_FOUND, "'%s' is not a file any more", name);
	*fd = take_fd(&opened);
	return 0;
}
