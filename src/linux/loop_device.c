#include "linux/loop_device.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <linux/loop.h>
#include "base/fd.h"
#include "base/str.h"
#include "base/walk.h"

#define ATTACH_TRIES 32 /* another process may take the device that was free */

static bool is_loop_name(const char *name)
{
	uint64_t number;
	return !strncmp(name, "loop", 4) && str_to_u64(str_from(name + 4), &number);
}

static bool has_file(int device, const struct stat *file)
{
	struct loop_info64 info;
	return !ioctl(device, LOOP_GET_STATUS64, &info) && info.lo_device == file->st_dev &&
	       info.lo_inode == file->st_ino && !info.lo_offset && !info.lo_sizelimit;
}

static bool find_attached(const struct stat *file, char path[LOOP_PATH_LEN], int *device)
{
	auto_walk DIR *list = walk_open(AT_FDCWD, "/dev");
	struct dirent *entry;
	bool is_found = false;
	while (!is_found && (entry = walk_next(list))) {
		if (!is_loop_name(entry->d_name) ||
			!str_format(path, LOOP_PATH_LEN, "/dev/%s", entry->d_name))
			continue;
		auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
		is_found = fd >= 0 && has_file(fd, file);
		if (is_found)
			*device = take_fd(&fd);
	}
	return is_found;
}

int loop_attach(int file, char path[LOOP_PATH_LEN], int *device, struct error *err)
{
	struct loop_config config = { .fd = (uint32_t)file,
		.info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
	struct stat st;
	if (fstat(file, &st))
		return fail_errno(err, "look at the image");
	if (find_attached(&st, path, device))
		return 0;
	auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		return fail_hint(err, ERR_UNAVAILABLE,
			"modprobe loop; a container also needs /dev/loop-control and /dev/loop*",
			"open '/dev/loop-control': %s", strerror(errno));
	for (int i = 0; i < ATTACH_TRIES; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);
		if (number < 0)
			return fail_errno(err, "find a free loop device");
		str_format(path, LOOP_PATH_LEN, "/dev/loop%d", number);
		auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return fail_errno(err, "open '%s'", path);
		if (!ioctl(fd, LOOP_CONFIGURE, &config)) {
			*device = take_fd(&fd);
			return 0;
		}
		if (errno != EBUSY)
			return fail_errno(err, "attach the image to '%s'", path);
	}
	return fail(err, ERR_UNAVAILABLE, "no loop device is free");
}
