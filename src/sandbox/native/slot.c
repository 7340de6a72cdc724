#include "sandbox/native/slot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"
#include "format/text/procfs.h"
#include "linux/home.h"

#define SLOT_FIRST 1879048192u
#define SLOT_COUNT 65536u

struct slot_range slot_range_from(const char *uid_map)
{
	struct str rest = str_from(uid_map);
	struct procfs_id_range range, largest = { 0, 0, 0 };
	while (procfs_next_id_range(&rest, &range)) {
		if (range.inside <= SLOT_FIRST &&
			range.inside + range.count >= (uint64_t)SLOT_FIRST + SLOT_COUNT)
			return (struct slot_range){ SLOT_FIRST, SLOT_COUNT };
		if (range.count > largest.count)
			largest = range;
	}
	/* The upper half, less its last two ids: 65534 is often the user nobody. */
	uint64_t half = largest.count / 2;
	if (half < 4)
		return (struct slot_range){ 0, 0 };
	uint64_t count = half - 2 < SLOT_COUNT ? half - 2 : SLOT_COUNT;
	return (struct slot_range){ (uint32_t)(largest.inside + half), (uint32_t)count };
}

/* Makes the file of slots in the home. */
static int open_uids(const char *path, int *fd, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_close int run = -1;
	struct home home;
	if (home_open(path, &arena, &home, err))
		return -1;
	int failed = home_open_directory(&home, "run", &run, err);
	if (!failed) {
		home_enter(&home);
		*fd = openat(run, "uids", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (*fd < 0)
			failed = fail_errno(err, "make '%s/run/uids'", path);
		home_leave(&home);
	}
	home_done(&home);
	return failed;
}

static int open_file(const char *home, int *fd, struct error *err)
{
	char path[4200];
	if (!str_format(path, sizeof path, "%s/run/uids", home))
		return fail(err, ERR_INVALID, "CARREL_HOME '%s' is too long", home);
	*fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0 && open_uids(home, fd, err))
		return err->hint[0] ? -1
				    : error_hint(err,
					      "set CARREL_HOME to a directory that can be written");
	return 0;
}

/* 1: locked; 0: another process holds it. */
static int try_lock(int fd, uint32_t slot, short type, struct error *err)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1 };
	if (!fcntl(fd, F_OFD_SETLK, &lock))
		return 1;
	if (errno == EAGAIN || errno == EACCES)
		return 0;
	return fail_errno(err, "lock uid %u of run/uids", slot);
}

/* Locks the first free slot from `start` on; those of `used` (one bit a slot, or NULL) are ours
 * already. */
static int lock_free(int fd, struct slot_range range, uint32_t start, const uint64_t *used,
	uint32_t *slot, struct error *err)
{
	for (uint32_t i = 0; i < range.count; i++) {
		uint32_t next = (start + i) % range.count;
		if (used && used[next / 64] >> next % 64 & 1)
			continue;
		int locked = try_lock(fd, next, F_WRLCK, err);
		if (locked < 0)
			return -1;
		if (!locked)
			continue;
		*slot = next;
		return 0;
	}
	return fail(err, ERR_LIMIT, "all %u sandbox uids are in use", range.count);
}

int slot_take(const char *home, struct slot_range range, uint32_t *uid, int *fd, struct error *err)
{
	auto_close int uids = -1;
	/* Begun at a different place by each process, the first try is nearly always free. */
	uint32_t slot, start = (uint32_t)getpid() % range.count;
	if (open_file(home, &uids, err) || lock_free(uids, range, start, NULL, &slot, err))
		return -1;
	*uid = range.first + slot;
	*fd = take_fd(&uids);
	return 0;
}

int slots_open(const char *home, struct slot_range range, struct slots *slots, struct error *err)
{
	auto_close int fd = -1;
	if (open_file(home, &fd, err))
		return -1;
	*slots = (struct slots){ .range = range,
		.used = calloc((size_t)range.count / 64 + 1, sizeof *slots->used) };
	if (!slots->used)
		abort();
	slots->fd = take_fd(&fd);
	return 0;
}

void slots_done(struct slots *slots)
{
	fd_close(&slots->fd);
	free(slots->used);
	slots->used = NULL;
}

int slots_take(struct slots *slots, uint32_t *uid, struct error *err)
{
	uint32_t slot;
	if (lock_free(slots->fd, slots->range, slots->first_free, slots->used, &slot, err))
		return -1;
	slots->used[slot / 64] |= 1ull << slot % 64;
	slots->first_free = slot + 1;
	*uid = slots->range.first + slot;
	return 0;
}

void slots_give(struct slots *slots, uint32_t uid)
{
	uint32_t slot = uid - slots->range.first;
	struct error ignored; /* what can't be unlocked is free when we end */
	slots->used[slot / 64] &= ~(1ull << slot % 64);
	try_lock(slots->fd, slot, F_UNLCK, &ignored);
	if (slot < slots->first_free)
		slots->first_free = slot;
}

void slots_take_over(struct slots *slots, int fd)
{
	fd_close(&slots->fd);
	slots->fd = fd;
}

void slots_keep(struct slots *slots, uint32_t uid)
{
	uint32_t slot = uid - slots->range.first;
	if (slot < slots->range.count)
		slots->used[slot / 64] |= 1ull << slot % 64;
}
