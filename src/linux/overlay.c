#include "linux/overlay.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "linux/mount.h"

#define OPTIONS_MAX 4095 /* of mount(2): a page */

static int set(int fs, const char *key, const char *value, struct error *err)
{
	if (fsconfig(fs, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, key, value, 0))
		return fail_errno(
			err, "set %s%s%s of an overlay", key, value ? "=" : "", value ? value : "");
	return 0;
}

/* Before lowerdir+ there was one list of all names, cut off at a page: links make them short. */
static int make_by_list(
	const struct overlay *overlay, unsigned attributes, int *tree, struct error *err)
{
	char link[32], target[4096];
	auto_close int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_buf struct buf options = buf_empty(OPTIONS_MAX);
	if (here < 0 || mkdir(overlay->scratch, 0700) || chdir(overlay->scratch))
		return fail_errno(err, "enter '%s'", overlay->scratch);
	buf_text(&options, "userxattr");
	if (overlay->is_throwaway)
		buf_text(&options, ",volatile");
	if (overlay->upper)
		buf_printf(&options, ",upperdir=../../../%s,workdir=../../../%s", overlay->upper,
			overlay->work);
	buf_text(&options, ",lowerdir=");
	int failed = 0;
	for (size_t i = 0; !failed && i < overlay->lower_count; i++) {
		str_format(link, sizeof link, "%zu", i);
		str_format(target, sizeof target, "../../../%s/%s", overlay->layers,
			overlay->lowers[i]);
		buf_printf(&options, "%s%s", i ? ":" : "", link);
		if (symlink(target, link))
			failed = fail_errno(err, "make a link to layer '%s'", overlay->lowers[i]);
	}
	if (!failed && options.overflow)
		failed = fail(err, ERR_UNAVAILABLE, "%zu layers are too many for this kernel",
			overlay->lower_count);
	if (!failed && (mkdir("m", 0700) || mount("overlay", "m", "overlay", 0, options.data)))
		failed = fail_errno(err, "mount %zu layers", overlay->lower_count);
	if (!failed) {
		struct mount_change change = { .set = attributes };
		failed = mount_clone(AT_FDCWD, "m", tree, err) ||
			 mount_change(*tree, "", &change, err);
		umount2("m", MNT_DETACH);
	}
	rmdir("m");
	for (size_t i = 0; i < overlay->lower_count; i++) {
		str_format(link, sizeof link, "%zu", i);
		unlink(link);
	}
	if ((fchdir(here) || rmdir(overlay->scratch)) && !failed)
		failed = fail_errno(err, "remove '%s'", overlay->scratch);
	return failed ? -1 : 0;
}

/* The kernel's own directory below `work`, of mode 0000, keeps a file for whiteouts, also when the
 * overlay is gone: without this, `rm -rf` of a plain user can't remove a home. The kernel doesn't
 * need the mode, and nothing else depends on it. */
static void let_owner_remove(const struct overlay *overlay)
{
	char path[4096];
	str_format(path, sizeof path, "%s/work", overlay->work);
	(void)!chmod(path, 0700);
}

static int make(const struct overlay *overlay, unsigned attributes, int *tree, struct error *err)
{
	char path[4096];
	auto_close int fs = fsopen("overlay", FSOPEN_CLOEXEC);
	if (fs < 0) {
		fail_errno(err, "make an overlay file system");
		return error_hint(err, "the kernel's overlay module is missing: modprobe overlay");
	}
	for (size_t i = 0; i < overlay->lower_count; i++) {
		str_format(path, sizeof path, "%s/%s", overlay->layers, overlay->lowers[i]);
		if (fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir+", path, 0))
			return fail_errno(err, "add layer '%s'", overlay->lowers[i]);
	}
	if ((overlay->upper && (set(fs, "upperdir", overlay->upper, err) ||
				       set(fs, "workdir", overlay->work, err))) ||
		set(fs, "userxattr", NULL, err) ||
		(overlay->is_throwaway && set(fs, "volatile", NULL, err)))
		return -1;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0)) {
		/* An older kernel takes every option and complains at the end. */
		if (errno == EINVAL)
			return make_by_list(overlay, attributes, tree, err);
		return fail_errno(err, "mount %zu layers", overlay->lower_count);
	}
	int fd = fsmount(fs, FSMOUNT_CLOEXEC, attributes);
	if (fd < 0)
		return fail_errno(err, "mount %zu layers", overlay->lower_count);
	*tree = fd;
	return 0;
}

int overlay_make(const struct overlay *overlay, unsigned attributes, int *tree, struct error *err)
{
	if (make(overlay, attributes, tree, err))
		return -1;
	if (overlay->upper && !overlay->is_throwaway)
		let_owner_remove(overlay);
	return 0;
}

bool overlay_takes_tmpfs(void)
{
	auto_close int fd = memfd_create("carrel", MFD_CLOEXEC);
	return fd >= 0 && !fsetxattr(fd, "user.overlay.test", "y", 1, 0);
}
