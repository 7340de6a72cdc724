#include "sandbox/native/held.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/path.h"
#include "base/str.h"
#include "base/walk.h"
#include "format/text/procfs.h"
#include "sandbox/native/usage.h"

#define LOOKS_MAX (1 << 20) /* descriptors of all threads; the rest counts as hidden */
#define INIT_PID 1

struct count {
	struct held *held;
	const struct held_place *places;
	size_t place_count;
	struct arena arena;
	struct map seen; /* device and inode of files that were counted */
	uint64_t looks;
	uid_t self;
};

static bool is_gone(int error)
{
	return error == ENOENT || error == ESRCH;
}

static bool is_counted_place(const struct count *count, uint64_t device, uint64_t mount)
{
	for (size_t i = 0; i < count->place_count; i++) {
		const struct held_place *place = &count->places[i];
		if (place->device == device && (!place->mount || place->mount == mount))
			return true;
	}
	return false;
}

/* Where the mount isn't known, the file's path says through which it was opened. */
static bool is_counted_path(const struct count *count, uint64_t device, const char *path)
{
	for (size_t i = 0; i < count->place_count; i++) {
		const struct held_place *place = &count->places[i];
		if (place->device == device &&
			(!place->mount || path_is_beneath(path, place->inside)))
			return true;
	}
	return false;
}

/* Follows links: names in fd/ and map_files/ are links to the files. */
static int look_up(int dir, const char *name, struct statx *file)
{
	return statx(dir, name, *name ? 0 : AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, file);
}

static uint64_t device_of(const struct statx *file)
{
	return makedev(file->stx_dev_major, file->stx_dev_minor);
}

bool held_find_place(int dir, const char *name, const char *inside, struct held_place *place)
{
	struct statx file;
	if (look_up(dir, name, &file))
		return false;
	*place = (struct held_place){ device_of(&file), inside ? file.stx_mnt_id : 0, inside };
	return true;
}

/* Whether it was before; from now on it is. */
static bool is_seen(struct count *count, uint64_t device, uint64_t inode)
{
	uint64_t key[2] = { device, inode };
	return map_set(&count->seen, (struct str){ (const char *)key, sizeof key }, count);
}

/* Root's sandboxes have uids of their own, a plain user's have that user's uid: a deleted file that
 * belongs to the system's owner was deleted by another process. */
static bool is_sandboxes_own(const struct count *count, const struct statx *file)
{
	return count->self ? file->stx_uid == count->self : file->stx_uid != 0;
}

static void add_deleted(struct count *count, const struct statx *file)
{
	if (file->stx_nlink || !is_counted_place(count, device_of(file), file->stx_mnt_id) ||
		!is_sandboxes_own(count, file) || is_seen(count, device_of(file), file->stx_ino))
		return;
	uint64_t bytes = file->stx_blocks * 512;
	count->held->bytes += bytes > PATH_INODE_CHARGE ? bytes : PATH_INODE_CHARGE;
}

/* Descriptors that were sent into this socket and not yet received. */
static void add_in_flight(struct count *count, int task, const char *fd)
{
	char path[64], text[1024];
	uint64_t files;
	str_format(path, sizeof path, "fdinfo/%s", fd);
	ssize_t len = fd_read_file(task, path, text, sizeof text);
	if (len > 0 && procfs_find_number((struct str){ text, (size_t)len }, "scm_fds:", &files))
		count->held->hidden += files;
}

static void add_descriptors(struct count *count, int task)
{
	auto_walk DIR *list = walk_open(task, "fd");
	if (!list) {
		count->held->hidden += !is_gone(errno);
		return;
	}
	struct dirent *entry;
	while ((entry = walk_next(list))) {
		struct statx file;
		if (++count->looks > LOOKS_MAX) {
			count->held->hidden++;
			break;
		}
		if (look_up(dirfd(list), entry->d_name, &file))
			continue;
		if (S_ISSOCK(file.stx_mode))
			add_in_flight(count, task, entry->d_name);
		else
			add_deleted(count, &file);
	}
}

/* Threads may have tables of descriptors of their own. */
static void add_open_files(void *ctx, int proc, int pid)
{
	struct count *count = ctx;
	char path[48];
	uint64_t tid;
	str_format(path, sizeof path, "%d/task", pid);
	auto_walk DIR *list = pid == INIT_PID ? NULL : walk_open(proc, path);
	struct dirent *entry;
	while ((entry = walk_next(list)))
		if (str_to_u64(str_from(entry->d_name), &tid)) {
			auto_close int task = openat(
				dirfd(list), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
			if (task >= 0)
				add_descriptors(count, task);
		}
}

/* A mapping keeps a deleted file when its last descriptor is closed. Only root of the host may
 * follow map_files. */
static void add_mapping(struct count *count, int process, const char *range, uint64_t device,
	uint64_t inode, const char *name)
{
	char path[80];
	struct statx file;
	str_format(path, sizeof path, "map_files/%s", range);
	if (!look_up(process, path, &file))
		add_deleted(count, &file);
	else if (!is_gone(errno) && is_counted_path(count, device, name) &&
		 !is_seen(count, device, inode))
		count->held->hidden++;
}

static void add_mapped_files(void *ctx, int proc, int pid)
{
	static const char deleted[] = " (deleted)\n";
	struct count *count = ctx;
	char path[48], line[20480], range[40]; /* a name may be escaped */
	if (pid == INIT_PID)
		return;
	str_format(path, sizeof path, "%d", pid);
	auto_close int process = openat(proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = process < 0 ? -1 : openat(process, "maps", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file) {
		count->held->hidden += !is_gone(errno);
		fd_close(&fd);
		return;
	}
	while (fgets(line, sizeof line, file)) {
		unsigned major_number, minor_number;
		unsigned long inode;
		int name_at = 0;
		size_t len = strlen(line);
		if (len > sizeof deleted && !strcmp(line + len - (sizeof deleted - 1), deleted) &&
			sscanf(line, "%39s %*4s %*x %x:%x %lu %n", range, &major_number,
				&minor_number, &inode, &name_at) == 4 &&
			inode)
			add_mapping(count, process, range, makedev(major_number, minor_number),
				inode, line + name_at);
	}
	fclose(file);
}

static void add_written(void *ctx, int proc, int pid)
{
	struct count *count = ctx;
	char path[48], text[512];
	uint64_t bytes;
	str_format(path, sizeof path, "%d/io", pid);
	ssize_t len = fd_read_file(proc, path, text, sizeof text);
	if (len > 0 &&
		procfs_find_number((struct str){ text, (size_t)len }, "write_bytes:", &bytes)) {
		count->held->written += bytes;
		count->held->has_written = true;
	}
}

void held_count(int proc, const struct held_place *places, size_t place_count, struct held *held)
{
	struct count count = {
		.held = held, .places = places, .place_count = place_count, .self = geteuid()
	};
	*held = (struct held){ 0 };
	arena_init(&count.arena);
	map_init(&count.seen, &count.arena);
	/* Descriptors first: what is both open and mapped has a size then. */
	usage_each_process(proc, add_open_files, &count);
	usage_each_process(proc, add_mapped_files, &count);
	usage_each_process(proc, add_written, &count);
	arena_done(&count.arena);
}

static uint64_t bytes_free_of(const struct statfs *fs)
{
	return fs->f_type == BTRFS_SUPER_MAGIC ? 0 : (uint64_t)fs->f_bfree * (uint64_t)fs->f_bsize;
}

uint64_t held_free_bytes(int dir)
{
	struct statfs fs;
	return fstatfs(dir, &fs) ? 0 : bytes_free_of(&fs);
}

uint64_t held_free_room(int dir)
{
	struct statfs fs;
	uint64_t bytes = fstatfs(dir, &fs) ? 0 : bytes_free_of(&fs);
	if (bytes && (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == TMPFS_MAGIC))
		bytes += (uint64_t)fs.f_ffree * PATH_INODE_CHARGE;
	return bytes;
}

static uint64_t difference(uint64_t more, uint64_t less)
{
	return more > less ? more - less : 0;
}

uint64_t held_hidden_bytes(const struct held_base *base, const struct held *held,
	uint64_t counted_bytes, uint64_t free_bytes)
{
	if (!held->hidden || !held->has_written || !base->free_bytes || !free_bytes)
		return 0;
	uint64_t lost = difference(difference(base->free_bytes, free_bytes),
		difference(counted_bytes, base->counted_bytes));
	uint64_t written = difference(held->written, base->written);
	return lost < written ? lost : written;
}
