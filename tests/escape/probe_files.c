/* probe_files.c -- setuid files, devices, and what is in the tree. See probe.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "probe.h"

/* Whatever a call answers: what counts is that no file with one of these bits is there. */
static outcome try_modes(const int *modes, size_t count, mode_t bits)
{
	for (size_t i = 0; i < count; i++) {
		long mode = modes[i] | (long)(i % 2 ? HIGH : 0);
		char name[32];
		struct stat st;
		snprintf(name, sizeof(name), "s%zu", i);
#ifdef SYS_open
		syscall(SYS_open, name, O_CREAT | O_WRONLY, mode);
		syscall(SYS_creat, name, mode);
		syscall(SYS_chmod, name, mode);
		syscall(SYS_mknod, name, mode, 0);
#endif
		syscall(SYS_openat, AT_FDCWD, name, O_CREAT | O_WRONLY, mode);
		syscall(437, AT_FDCWD, name,
			(uint64_t[]){ O_CREAT | O_WRONLY, modes[i] & 07777, 0 }, 24);
		syscall(SYS_mknodat, AT_FDCWD, name, mode, 0);
		int fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0755);
		if (fd < 0)
			return not_so("no file could be made here: %s", strerror(errno));
		syscall(SYS_fchmod, fd, mode);
		syscall(SYS_fchmodat, AT_FDCWD, name, mode);
		syscall(452, AT_FDCWD, name, mode, 0);
		if (fstat(fd, &st) != 0 || st.st_mode & bits)
			return not_so("%s has mode %o", name, st.st_mode);
		unlink(name);
		close(fd);
	}
	return NULL;
}

static outcome no_setuid_file_was_made(void)
{
	static const int modes[] = { 04755, 06755, 0104755, 04000 };
	return try_modes(modes, LENGTH(modes), 04000);
}

static outcome no_setgid_file_was_made(void)
{
	static const int modes[] = { 02755, 06755, 0102755, 02000 };
	return try_modes(modes, LENGTH(modes), 06000);
}

static outcome no_setuid_file_by_tmpfile(void)
{
	for (int high = 0; high < 2; high++) {
		long fd = syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_RDWR | (high ? HIGH : 0),
			06755 | (high ? HIGH : 0));
		if (!answers(fd, EPERM))
			return not_so("openat(O_TMPFILE, 06755): %ld, %s", fd, strerror(errno));
	}
	return NULL;
}

static outcome no_device_can_be_made(void)
{
	static const char *const places[] = { ".", "/tmp", "/dev/shm", "/dev", "/.cache" };
	static const struct {
		mode_t mode;
		dev_t device;
	} devices[] = { { S_IFCHR, 0x0101 }, { S_IFBLK, 0x0800 }, { S_IFCHR, 0 }, { S_IFBLK, 0 } };
	for (size_t p = 0; p < LENGTH(places); p++)
		for (size_t i = 0; i < 2 * LENGTH(devices); i++) {
			char path[64];
			snprintf(path, sizeof(path), "%s/device", places[p]);
			long mode = devices[i / 2].mode | 0666 | (long)(i % 2 ? HIGH : 0);
			long result =
				syscall(SYS_mknodat, AT_FDCWD, path, mode, devices[i / 2].device);
			if (!answers(result, EPERM))
				return not_so("mknodat %s %lo: %s", path, mode, strerror(errno));
		}
	return NULL;
}

static outcome no_whiteout_by_rename(void)
{
	struct stat st;
	close(open("from", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	for (int high = 0; high < 2; high++) {
		long result = syscall(
			SYS_renameat2, AT_FDCWD, "from", AT_FDCWD, "to", 4 | (high ? HIGH : 0));
		if (!answers(result, EPERM) || (lstat("from", &st) == 0 && S_ISCHR(st.st_mode)))
			return not_so("renameat2(RENAME_WHITEOUT): %s", strerror(errno));
	}
	return NULL;
}

static outcome devices_are_the_listed_ones(void)
{
	static const char *const known[] = { ".", "..", "null", "zero", "full", "random", "urandom",
		"tty", "ptmx", "pts", "shm", "fd", "stdin", "stdout", "stderr" };
	DIR *dir = opendir("/dev");
	if (!dir)
		return not_so("no /dev");
	for (struct dirent *entry; (entry = readdir(dir));) {
		bool found = false;
		for (size_t i = 0; i < LENGTH(known); i++)
			found |= strcmp(entry->d_name, known[i]) == 0;
		if (!found)
			return not_so("/dev/%s", entry->d_name);
	}
	closedir(dir);
	return NULL;
}

static outcome system_trees_are_read_only(void)
{
	static const char *const places[] = { "/", "/usr", "/usr/bin", "/usr/lib", "/bin", "/lib",
		"/sbin", "/etc", "/etc/ssl", "/proc", "/dev", "/sys", "/root", "/home", "/run",
		"/var", "/opt", "/srv", "/mnt", "/boot", "/media", "/env" };
	char cwd[16] = "";
	bool is_root_view =
		getcwd(cwd, sizeof(cwd)) && !strcmp(cwd, "/"); /* the workspace itself */
	for (size_t i = is_root_view; i < LENGTH(places); i++) {
		char path[64];
		snprintf(path, sizeof(path), "%s/probe-was-here", places[i]);
		int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		if (fd >= 0 || mkdir(path, 0700) == 0 || symlink("x", path) == 0)
			return not_so("%s is writable", places[i]);
	}
	return NULL;
}

static outcome system_files_are_read_only(void)
{
	static const char *const files[] = { "/etc/passwd", "/etc/group", "/etc/hosts",
		"/etc/ld.so.cache", "/etc/nsswitch.conf", "/usr/bin/env", "/bin/sh" };
	for (size_t i = 0; i < LENGTH(files); i++) {
		int fd = open(files[i], O_WRONLY | O_CLOEXEC);
		if (fd >= 0 || chmod(files[i], 0777) == 0 || truncate(files[i], 0) == 0 ||
			rename(files[i], "x") == 0 || unlink(files[i]) == 0 ||
			utimensat(AT_FDCWD, files[i], NULL, 0) == 0)
			return not_so("%s can be changed", files[i]);
	}
	return NULL;
}

static outcome secrets_of_the_host_are_not_there(void)
{
	static const char *const files[] = { "/etc/shadow", "/etc/gshadow", "/etc/sudoers",
		"/etc/ssh", "/etc/machine-id", "/root/.ssh", "/root/.bashrc", "/run/docker.sock",
		"/var/run/docker.sock", "/run/systemd", "/run/dbus/system_bus_socket",
		"/var/lib/dpkg", "/var/lib/docker", "/var/lib/apt", "/var/lib/systemd", "/var/log",
		"/boot/vmlinuz", "/etc/ssl/private", "/etc/kubernetes", "/var/run/secrets" };
	char data[64];
	for (size_t i = 0; i < LENGTH(files); i++) {
		int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		if (fd >= 0 &&
			(read(fd, data, 1) > 0 || syscall(SYS_getdents64, fd, data, 0) != -1 ||
				errno == EINVAL))
			return not_so("%s can be opened", files[i]);
	}
	return NULL;
}

/* Files that say what the limits are, on a tmpfs of ours: no sysfs and no control group. */
static outcome sys_holds_files_of_ours_only(void)
{
	static const char *const places[] = { "/sys", "/sys/fs", "/sys/fs/cgroup",
		"/sys/fs/cgroup/memory", "/sys/devices/system/cpu" };
	static const char *const files[] = { "/sys/fs/cgroup/cgroup.procs",
		"/sys/fs/cgroup/../cgroup/cgroup.procs", "/sys/fs/cgroup/cgroup.subtree_control",
		"/sys/fs/cgroup/cgroup.events", "/sys/fs/cgroup/memory/cgroup.event_control",
		"/sys/fs/cgroup/memory/release_agent", "/sys/kernel", "/sys/class", "/sys/block",
		"/sys/firmware", "/sys/devices/virtual" };
	static const char *const views[] = { "/proc/meminfo", "/proc/cgroups",
		"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
		"/sys/devices/system/cpu/online" };
	struct statfs fs;
	for (size_t i = 0; i < LENGTH(places); i++)
		if (statfs(places[i], &fs) != 0 || fs.f_type != 0x01021994 /* tmpfs */)
			return not_so("%s is no tmpfs", places[i]);
	for (size_t i = 0; i < LENGTH(files); i++)
		if (access(files[i], F_OK) == 0)
			return not_so("%s is there", files[i]);
	for (size_t i = 0; i < LENGTH(views); i++)
		if (open(views[i], O_WRONLY | O_CLOEXEC) >= 0 || chmod(views[i], 0666) == 0 ||
			unlink(views[i]) == 0 || truncate(views[i], 0) == 0)
			return not_so("%s can be changed", views[i]);
	return NULL;
}

static outcome host_directories_are_not_there(void)
{
	static const char *const places[] = { "/root", "/home", "/run", "/run/programs",
		"/run/layers/env", "/run/layers/workspace/node_modules", "/var/log", "/var/spool",
		"/var/mail", "/var/backups", "/mnt", "/media", "/srv", "/boot", "/opt" };
	outcome out = NULL;
	for (size_t i = 0; i < LENGTH(places) && !out; i++)
		out = directory_is_empty_or_absent(places[i]);
	return out;
}

static outcome old_root_is_gone(void)
{
	static const char *const ways[] = { "/..", "/../../..", "/proc/self/root/..",
		"/proc/self/cwd/../../..", "/workspace/../..", "/proc/self/task/../root" };
	struct stat root, other;
	if (stat("/", &root) != 0)
		return not_so("no /");
	for (size_t i = 0; i < LENGTH(ways); i++)
		if (stat(ways[i], &other) == 0 &&
			(other.st_dev != root.st_dev || other.st_ino != root.st_ino))
			return not_so("%s isn't /", ways[i]);
	static const char *const left[] = { "/oldroot", "/.oldroot", "/old", "/old_root", "/.old",
		"/put_old" };
	for (size_t i = 0; i < LENGTH(left); i++)
		if (access(left[i], F_OK) == 0)
			return not_so("%s is there", left[i]);
	return NULL;
}

/* clang-format off */
static const struct probe probes[] = {
	DOES(no_setuid_file_was_made),
	DOES(no_setgid_file_was_made),
	DOES(no_setuid_file_by_tmpfile),
	DOES(no_device_can_be_made),
	DOES(no_whiteout_by_rename),
	DOES(devices_are_the_listed_ones),
	DOES(system_trees_are_read_only),
	DOES(system_files_are_read_only),
	DOES(secrets_of_the_host_are_not_there),
	DOES(sys_holds_files_of_ours_only),
	DOES(host_directories_are_not_there),
	DOES(old_root_is_gone),
};
/* clang-format on */
const struct probe_list files_probes = LIST(probes);
