#include "linux/home_image.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/walk.h"
#include "linux/child.h"
#include "linux/loop_device.h"

static const struct file_system {
	const char *name, *program, *package;
	const char *arguments[10]; /* without the program and the image */
	const char *options;	   /* of the mount. Freed blocks are freed in the image, too. */
	off_t magic_at;
	const char *magic;
} file_systems[HOME_IMAGE_FS_COUNT] = {
	[HOME_IMAGE_BTRFS] = { "btrfs", "mkfs.btrfs", "btrfs-progs", { "-q", "-f", NULL },
		"discard=async", 0x10040, "_BHRfS_M" },
	[HOME_IMAGE_EXT4] = { "ext4", "mke2fs", "e2fsprogs",
		{ "-q", "-F", "-t", "ext4", "-O", "quota,project", "-E", "quotatype=prjquota",
			NULL },
		"prjquota,discard", 0x438, "\x53\xef" },
};

const char *home_image_fs_name(enum home_image_fs fs)
{
	return file_systems[fs].name;
}

static bool is_mounted(const char *path)
{
	struct statx stat;
	return !statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &stat) &&
	       stat.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static bool is_roots_alone(const struct stat *st)
{
	return st->st_uid == 0 && !(st->st_mode & 022);
}

static int check_image(const char *image, int fd, int parent, struct error *err)
{
	struct stat st, above;
	if (fstat(fd, &st) || fstat(parent, &above))
		return fail_errno(err, "look at '%s'", image);
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || !is_roots_alone(&st) ||
		!is_roots_alone(&above))
		return fail_hint(err, ERR_DENIED,
			"the image and its directory must belong to root and be writable only by "
			"root",
			"'%s' is not mounted: users other than root could have written it", image);
	return 0;
}

static int find_type(int fd, const char *image, const struct file_system **found, struct error *err)
{
	for (size_t i = 0; i < HOME_IMAGE_FS_COUNT; i++) {
		const struct file_system *fs = &file_systems[i];
		char bytes[8];
		size_t len = strlen(fs->magic);
		if (pread(fd, bytes, len, fs->magic_at) == (ssize_t)len &&
			!memcmp(bytes, fs->magic, len)) {
			*found = fs;
			return 0;
		}
	}
	return fail_hint(err, ERR_CORRUPT,
		"restore it from a backup, or move it away to start with an empty home",
		"'%s' contains neither btrfs nor ext4", image);
}

/* The loop device keeps the open file that it is given, and with it a lock: it gets one of its own.
 */
static int open_again(const char *image, int fd, int *again, struct error *err)
{
	struct stat st, other;
	auto_close int made = open(image, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (made < 0 || fstat(fd, &st) || fstat(made, &other))
		return fail_errno(err, "open '%s'", image);
	if (st.st_dev != other.st_dev || st.st_ino != other.st_ino)
		return fail(err, ERR_CONFLICT, "'%s' was replaced while it was opened", image);
	*again = take_fd(&made);
	return 0;
}

static int mount_image(const char *path, const char *image, int fd, struct error *err)
{
	char device_path[LOOP_PATH_LEN];
	auto_close int device = -1, again = -1;
	const struct file_system *fs;
	if (find_type(fd, image, &fs, err) || open_again(image, fd, &again, err) ||
		loop_attach(again, device_path, &device, err))
		return error_context(err, "mount the home's image");
	if (!mount(device_path, path, fs->name, MS_NOSUID | MS_NODEV, fs->options))
		return 0;
	bool is_damaged = errno == EINVAL || errno == EUCLEAN || errno == EIO;
	fail_errno_code(err, is_damaged ? ERR_CORRUPT : ERR_UNAVAILABLE, "mount '%s' (%s) on '%s'",
		image, fs->name, path);
	return error_hint(err,
		is_damaged ? "dmesg shows the reason; check the image with btrfs check or fsck.ext4"
			   : "run it as root of the host, outside of containers");
}

static int open_parent(const char *path, int *fd, struct error *err)
{
	char parent[4096];
	const char *name = path_basename(path);
	str_format(
		parent, sizeof parent, "%.*s", name - path > 1 ? (int)(name - path) - 1 : 1, path);
	*fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *fd < 0 ? fail_errno(err, "open '%s'", parent) : 0;
}

static int fail_missing(const char *path, const char *image, struct error *err)
{
	return fail_hint(err, ERR_NOT_FOUND,
		"put the image back, or remove the file " HOME_IMAGE_MARK
		" in the home to start with an empty home",
		"the image '%s' of the home '%s' is missing", image, path);
}

static int write_mark(const char *path, const char *image, struct error *err)
{
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int fd =
		dir < 0 ? -1
			: openat(dir, HOME_IMAGE_MARK,
				  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_full(fd, image, strlen(image)) < 0 || fsync(fd) || fsync(dir))
		return fail_errno(err, "write '%s/" HOME_IMAGE_MARK "'", path);
	return 0;
}

int home_image_ensure(const char *path, struct error *err)
{
	char image[4096], mark[4096];
	auto_close int parent = -1;
	if (geteuid() || !str_format(image, sizeof image, "%s.img", path) ||
		!str_format(mark, sizeof mark, "%s/" HOME_IMAGE_MARK, path))
		return 0;
	auto_close int fd = open(image, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
		return fail_errno(err, "open '%s'", image);
	if (is_mounted(path))
		return 0;
	if (fd < 0)
		return access(mark, F_OK) ? 0 : fail_missing(path, image, err);
	if (open_parent(path, &parent, err) || check_image(image, fd, parent, err))
		return -1;
	/* One at a time: the second finds it mounted. */
	if (flock(fd, LOCK_EX))
		return fail_errno(err, "lock '%s'", image);
	if (is_mounted(path))
		return 0;
	if (mkdir(path, 0700) && errno != EEXIST)
		return fail_errno(err, "make '%s'", path);
	if (access(mark, F_OK) && write_mark(path, image, err))
		return -1;
	return mount_image(path, image, fd, err);
}

static bool is_empty(const char *path)
{
	auto_walk DIR *list = opendir(path);
	return list ? !walk_next(list) : errno == ENOENT;
}

static int check_home(const char *path, const char *image, struct error *err)
{
	char mark[4096];
	str_format(mark, sizeof mark, "%s/" HOME_IMAGE_MARK, path);
	if (!access(image, F_OK))
		return fail_hint(err, ERR_CONFLICT, "carrel doctor shows the home",
			"the home '%s' has an image already: '%s'", path, image);
	if (!access(mark, F_OK))
		return fail_missing(path, image, err);
	if (is_mounted(path))
		return fail_hint(err, ERR_CONFLICT, "umount it first, or name another home",
			"something else is mounted on '%s'", path);
	if (!is_empty(path))
		return fail_hint(err, ERR_CONFLICT,
			"stop its daemon (carrel serve --stop), move its content away, and copy it "
			"back "
			"(cp -a) when the image is made",
			"the home '%s' is not empty", path);
	return 0;
}

static int find_program(const struct file_system *fs, char path[64], struct error *err)
{
	static const char *const places[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin" };
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		str_format(path, 64, "%s/%s", places[i], fs->program);
		if (!access(path, X_OK))
			return 0;
	}
	return fail_hint(err, ERR_UNAVAILABLE,
		"install its package: on Debian and Ubuntu btrfs-progs (btrfs) or e2fsprogs (ext4)",
		"'%s' (package %s) is not installed", fs->program, fs->package);
}

static int run_mkfs(const struct file_system *fs, const char *image, struct error *err)
{
	const char *argv[16] = { fs->program };
	char program[64];
	struct child child;
	int count = 1;
	if (find_program(fs, program, err))
		return -1;
	for (int i = 0; fs->arguments[i]; i++)
		argv[count++] = fs->arguments[i];
	argv[count] = image;
	if (child_fork(&child, 0, 0, err))
		return error_context(err, "run '%s'", program);
	if (child.pid == 0) {
		child_leave_streams(STDERR_FILENO);
		execve(program, (char *const *)argv,
			(char *[]){ (char[]){ "PATH=/usr/sbin:/usr/bin:/sbin:/bin" }, NULL });
		_exit(127);
	}
	int status = child_wait(&child);
	if (status)
		return fail(err, ERR_FAILED, "'%s' failed (wait status 0x%x)", program,
			(unsigned)status);
	return 0;
}

/* In the file system that was just mounted. */
static int prepare_tree(const char *path, const struct file_system *fs, uid_t uid, gid_t gid,
	enum quota_mechanism *mechanism, struct error *err)
{
	static const char trial_name[] = ".quota", found[] = "lost+found";
	struct btrfs_ioctl_quota_ctl_args quota = { .cmd = BTRFS_QUOTA_CTL_ENABLE };
	char why[QUOTA_WHY_LEN] = "";
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "open '%s'", path);
	if (fs == &file_systems[HOME_IMAGE_BTRFS] && ioctl(dir, BTRFS_IOC_QUOTA_CTL, &quota))
		return fail_errno(err, "enable the quotas of btrfs");
	/* It would be a directory of root's in a home that is another uid's; fsck makes it again.
	 */
	unlinkat(dir, found, AT_REMOVEDIR);
	if (mkdirat(dir, trial_name, 0700))
		return fail_errno(err, "make a directory in '%s'", path);
	auto_close int trial = openat(dir, trial_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*mechanism = trial < 0 ? QUOTA_COUNTED : quota_probe(trial, why);
	unlinkat(dir, trial_name, AT_REMOVEDIR);
	if (*mechanism == QUOTA_COUNTED)
		return fail_hint(err, ERR_UNAVAILABLE, "carrel home init --fs btrfs",
			"this kernel keeps no quotas on %s (%s)", fs->name, why);
	if (fchown(dir, uid, gid) || fchmod(dir, 0700) || syncfs(dir))
		return fail_errno(err, "give '%s' to uid %u", path, uid);
	return 0;
}

/* What the child that prepares the file system says. */
struct prepared {
	int failed;
	enum quota_mechanism mechanism;
	struct error err;
};

/* In a mount namespace of its own: when this process or its parent is killed, neither the mount nor
 * the loop device stays. */
static int home_image_prepare(const char *path, const char *image, int fd,
	const struct file_system *fs, uid_t uid, gid_t gid, struct prepared *out)
{
	struct error *err = &out->err;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return fail_errno(err, "make a mount namespace");
	if (mount_image(path, image, fd, err)) {
		/* A kernel without quotas refuses the option. */
		if (fs == &file_systems[HOME_IMAGE_EXT4])
			error_hint(err, "carrel home init --fs btrfs: this kernel may keep no "
					"project quotas on ext4");
		return -1;
	}
	fault_point("home_image_mounted");
	if (prepare_tree(path, fs, uid, gid, &out->mechanism, err))
		return -1;
	return umount2(path, 0) ? fail_errno(err, "umount '%s'", path) : 0;
}

static int prepare_in_child(const char *path, const char *image, int fd,
	const struct file_system *fs, uid_t uid, gid_t gid, enum quota_mechanism *mechanism,
	struct error *err)
{
	struct prepared out = { .failed = -1 };
	struct child child;
	if (child_fork(&child, CHILD_PIPE, 0, err))
		return -1;
	if (child.pid == 0) {
		out.failed = home_image_prepare(path, image, fd, fs, uid, gid, &out);
		(void)!write(child.pipe, &out, sizeof out);
		_exit(0);
	}
	bool is_whole = fd_read_full(child.pipe, &out, sizeof out) == sizeof out;
	child_wait(&child);
	if (!is_whole)
		return fail(err, ERR_FAILED, "the process that prepares '%s' died", image);
	*mechanism = out.mechanism;
	if (out.failed)
		*err = out.err;
	return out.failed;
}

static int home_image_build(const char *path, const char *image, const char *new_image, int fd,
	const struct file_system *fs, uid_t uid, gid_t gid, enum quota_mechanism *mechanism,
	struct error *err)
{
	auto_close int parent = -1;
	if (run_mkfs(fs, new_image, err) || open_parent(path, &parent, err) ||
		prepare_in_child(path, new_image, fd, fs, uid, gid, mechanism, err))
		return -1;
	fault_point("home_image_prepared");
	if (fsync(fd) || rename(new_image, image) || fsync(parent))
		return fail_errno(err, "name '%s'", image);
	fault_point("home_image_named");
	return 0;
}

/* The process that had the lock may have finished meanwhile: then this file has become the image
 * of a home that is in use, and emptying it would destroy that. */
static int lock_new(const char *new_image, int fd, struct error *err)
{
	struct stat st, named;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return fail(err, ERR_CONFLICT, "another process is making '%s'", new_image);
	if (fstat(fd, &st) || lstat(new_image, &named) || st.st_dev != named.st_dev ||
		st.st_ino != named.st_ino)
		return fail(err, ERR_CONFLICT, "another process has made '%s'", new_image);
	return 0;
}

int home_image_make(const char *path, uint64_t size_bytes, enum home_image_fs fs, uid_t uid,
	gid_t gid, struct arena *arena, const char **image, enum quota_mechanism *mechanism,
	struct error *err)
{
	auto_close int parent = -1;
	struct stat st;
	*image = arena_printf(arena, "%s.img", path);
	const char *new_image = arena_printf(arena, "%s.img.new", path);
	if (check_home(path, *image, err) || open_parent(path, &parent, err))
		return -1;
	if (fstat(parent, &st) || !is_roots_alone(&st))
		return fail_hint(err, ERR_DENIED,
			"set CARREL_HOME to a path in a directory of root's",
			"the directory of '%s' is writable for users other than root", path);
	bool is_new_home = !mkdir(path, 0700);
	if (!is_new_home && errno != EEXIST)
		return fail_errno(err, "make '%s'", path);
	auto_close int fd = open(new_image, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(err, "make '%s'", new_image);
	if (lock_new(new_image, fd, err))
		return -1;
	/* What a crash has left is emptied first. */
	int failed = ftruncate(fd, 0) || ftruncate(fd, (off_t)size_bytes)
			     ? fail_errno(err, "make '%s'", new_image)
			     : home_image_build(path, *image, new_image, fd, &file_systems[fs], uid,
				       gid, mechanism, err);
	if (failed) {
		unlink(new_image);
		if (is_new_home)
			rmdir(path);
		return -1;
	}
	fd_close(&fd);
	return home_image_ensure(path, err);
}
