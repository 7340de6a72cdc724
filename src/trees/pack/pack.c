#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/path.h"
#include "base/str.h"
#include "base/walk.h"
#include "trees/pack/out.h"
#include "trees/pack/tree.h"

struct pack {
	struct tree_pack *asked;
	struct buf path; /* of what is being packed */
	struct tree_out out;
	struct arena arena;
	struct map links; /* inode -> the first name of a file that has several */
};

static struct tar_entry entry_of(const struct pack *pack, enum tar_kind kind, const struct stat *st)
{
	/* Leave out mode bits that unpacking would refuse. */
	return (struct tar_entry){ .kind = kind,
		.name = pack->path.data,
		.mode = st->st_mode & 0777,
		.modified_s = st->st_mtim.tv_sec };
}

/* -- files -- */

static int pack_file(struct pack *pack, int fd, const struct stat *st, struct error *err)
{
	struct tar_entry entry = entry_of(pack, TAR_FILE, st);
	if (st->st_nlink > 1) {
		uint64_t id[2] = { st->st_dev, st->st_ino };
		struct str key = { (char *)id, sizeof id };
		entry.link = map_get(&pack->links, key);
		if (entry.link) {
			entry.kind = TAR_HARDLINK;
			return tree_out_entry(&pack->out, &entry, err);
		}
		map_set(&pack->links, key, arena_text(&pack->arena, pack->path.data));
	}
	entry.size = (uint64_t)st->st_size;
	if (tree_find_regions(fd, st, &pack->arena, &entry, err) ||
		tree_out_entry(&pack->out, &entry, err))
		return -1;
	return tree_out_content(&pack->out, fd, &entry, NULL, err);
}

static int pack_link(
	struct pack *pack, int dir, const char *name, const struct stat *st, struct error *err)
{
	char target[TAR_NAME_MAX + 1];
	struct tar_entry entry = entry_of(pack, TAR_SYMLINK, st);
	ssize_t len = readlinkat(dir, name, target, sizeof target - 1);
	if (len < 0)
		return errno == ENOENT || errno == EINVAL
			       ? 0
			       : fail_errno(err, "read link '%s'", pack->path.data);
	target[len] = '\0';
	entry.link = target;
	return tree_out_entry(&pack->out, &entry, err);
}

/* -- directories -- */

static int pack_directory(struct pack *pack, int fd, int depth, struct error *err);

static void leave_out(struct pack *pack)
{
	struct tree_note *note = &pack->asked->left_out;
	if (!note->count++)
		str_format(note->first, sizeof note->first, "'%s'", pack->path.data);
}

/* Gone, or something else by now. */
static bool is_vanished(int sys_errno)
{
	return sys_errno == ENOENT || sys_errno == ELOOP || sys_errno == ENOTDIR ||
	       sys_errno == ENXIO;
}

static int pack_entry(struct pack *pack, int dir, const char *name, int depth, struct error *err)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	struct tar_entry entry;
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return is_vanished(errno) ? 0 : fail_errno(err, "look at '%s'", pack->path.data);
	if (S_ISLNK(st.st_mode))
		return pack_link(pack, dir, name, &st, err);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		leave_out(pack);
		return 0;
	}
	/* It may become something else meanwhile: a fifo isn't waited for. */
	bool is_bounded = S_ISDIR(st.st_mode) && !pack->asked->crosses_mounts;
	auto_close int fd = is_bounded ? path_open_entry(dir, name) : openat(dir, name, flags);
	if (fd < 0 && errno == EXDEV)
		return 0; /* a mount */
	if (fd < 0)
		return is_vanished(errno) ? 0 : fail_errno(err, "open '%s'", pack->path.data);
	if (fstat(fd, &st) < 0)
		return fail_errno(err, "open '%s'", pack->path.data);
	if (S_ISREG(st.st_mode))
		return pack_file(pack, fd, &st, err);
	if (!S_ISDIR(st.st_mode)) {
		leave_out(pack);
		return 0;
	}
	entry = entry_of(pack, TAR_DIRECTORY, &st);
	if (tree_out_entry(&pack->out, &entry, err) < 0)
		return -1;
	return pack_directory(pack, take_fd(&fd), depth + 1, err);
}

/* What is in it; closes fd. */
static int pack_directory(struct pack *pack, int fd, int depth, struct error *err)
{
	auto_walk DIR *walk = walk_from(fd);
	size_t len = pack->path.len;
	struct dirent *entry;
	if (!walk)
		return fail_errno(err, "open '%s'", pack->path.data);
	if (depth > PATH_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "'%.200s...' is deeper than %d directories",
			pack->path.data, PATH_DEPTH_MAX);
	while ((entry = walk_next(walk))) {
		buf_printf(&pack->path, "%s%s", len ? "/" : "", entry->d_name);
		if (pack_entry(pack, dirfd(walk), entry->d_name, depth, err) < 0)
			return -1;
		pack->path.len = len;
		pack->path.data[len] = '\0';
	}
	return errno ? fail_errno(err, "read directory '%s'", pack->path.data) : 0;
}

int tree_pack(struct tree_pack *asked, int fd, const char *name, struct error *err)
{
	auto_close int from = fd;
	struct pack pack = { .asked = asked };
	struct stat st;
	if (fstat(from, &st) < 0)
		return fail_errno(err, "look at '%s'", name);
	arena_init(&pack.arena);
	map_init(&pack.links, &pack.arena);
	buf_init(&pack.path, (size_t)1 << 20);
	tree_out_init(&pack.out, asked->out);
	buf_text(&pack.path, S_ISDIR(st.st_mode) ? "" : name);
	int failed = S_ISDIR(st.st_mode) ? pack_directory(&pack, take_fd(&from), 0, err)
					 : pack_file(&pack, from, &st, err);
	tar_write_end(&pack.out.rest);
	if (!failed)
		failed = tree_out_flush(&pack.out, err);
	buf_done(&pack.path);
	tree_out_done(&pack.out);
	arena_done(&pack.arena);
	return failed;
}
