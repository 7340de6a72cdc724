#include "sandbox/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "format/procfs.h"

#define SLOT_FIRST 1879048192u
#define SLOT_COUNT 65536u
#define HOME_OWNER 64199 /* when there is no user `carrel` */

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
	/* The upper half, less its last two ids, which are often nobody's. */
	uint64_t half = largest.count / 2;
	if (half < 4)
		return (struct slot_range){ 0, 0 };
	uint64_t count = half - 2 < SLOT_COUNT ? half - 2 : SLOT_COUNT;
	return (struct slot_range){ (uint32_t)(largest.inside + half), (uint32_t)count };
}

/* The uid and gid of `carrel` in /etc/passwd. Read by hand: a static program has no name service.
 */
static void find_owner(uid_t *uid, gid_t *gid)
{
	char text[65536];
	*uid = *gid = HOME_OWNER;
	ssize_t len = fd_read_file(AT_FDCWD, "/etc/passwd", text, sizeof text);
	struct str rest = { text, len > 0 ? (size_t)len : 0 }, line, field;
	while (str_next(&rest, '\n', &line)) {
		uint64_t ids[2];
		if (!str_starts_with(line, "carrel:"))
			continue;
		str_next(&line, ':', &field);
		str_next(&line, ':', &field);
		for (int i = 0; i < 2; i++)
			if (!str_next(&line, ':', &field) || !str_to_u64(field, &ids[i]) ||
				ids[i] > UINT32_MAX)
				return;
		*uid = (uid_t)ids[0];
		*gid = (gid_t)ids[1];
		return;
	}
}

/* Opens `name` in dir, making it (a directory or the file) for the home's owner when it isn't
 * there. */
static int open_owned(int dir, const char *name, bool is_directory, int *fd, struct error *err)
{
	int flags = is_directory ? O_RDONLY | O_DIRECTORY : O_RDWR;
	*fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
	if (*fd >= 0)
		return 0;
	if (errno != ENOENT)
		return fail_errno(err, "open '%s'", name);
	int making =
		is_directory
			? mkdirat(dir, name, 0700)
			: (*fd = openat(dir, name, flags | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	if (making < 0 && errno != EEXIST)
		return fail_errno(err, "make '%s'", name);
	if (*fd < 0)
		*fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0)
		return fail_errno(err, "open '%s'", name);
	if (making < 0) /* another carrel was faster, and gives it away */
		return 0;
	uid_t uid;
	gid_t gid;
	find_owner(&uid, &gid);
	if (fchown(*fd, uid, gid)) {
		fd_close(fd);
		return fail_errno(err, "give '%s' to uid %u", name, uid);
	}
	return 0;
}

/* /var/lib is there or is made as ever; the home itself and what is in it belong to its owner. */
static int open_uids(const char *home, int *fd, struct error *err)
{
	char parent[4096];
	const char *name = path_basename(home);
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), above = -1, dir = -1,
		       run = -1;
	if (!path_is_normal(home) || !name[0])
		return fail(
			err, ERR_INVALID, "CARREL_HOME '%s' is not an absolute, plain path", home);
	str_format(parent, sizeof parent, "%.*s", (int)(name - home), home);
	above = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (above < 0 && path_make_directories(root, parent + 1, 0755, &above, err))
		return -1;
	return open_owned(above, name, true, &dir, err) ||
			       open_owned(dir, "run", true, &run, err) ||
			       open_owned(run, "uids", false, fd, err)
		       ? -1
		       : 0;
}

int slot_take(const char *home, struct slot_range range, uint32_t *uid, int *fd, struct error *err)
{
	char path[4200];
	auto_close int uids = -1;
	if (!str_format(path, sizeof path, "%s/run/uids", home))
		return fail(err, ERR_INVALID, "CARREL_HOME '%s' is too long", home);
	uids = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (uids < 0 && open_uids(home, &uids, err)) {
		error_context(err, "CARREL_HOME '%s'", home);
		return error_hint(err, "set CARREL_HOME to a directory that can be written");
	}
	/* Begun at a different place by each process, the first try is nearly always free. */
	uint32_t start = (uint32_t)getpid() % range.count;
	for (uint32_t i = 0; i < range.count; i++) {
		uint32_t slot = (start + i) % range.count;
		struct flock lock = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1
		};
		if (!fcntl(uids, F_OFD_SETLK, &lock)) {
			*uid = range.first + slot;
			*fd = take_fd(&uids);
			return 0;
		}
		if (errno != EAGAIN && errno != EACCES)
			return fail_errno(err, "lock a uid in '%s'", path);
	}
	return fail(err, ERR_LIMIT, "all %u sandbox uids are in use", range.count);
}
