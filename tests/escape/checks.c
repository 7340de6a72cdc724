/* checks.c -- the probes that take more than one call. See probe.c. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "probe.h"

outcome not_so(const char *fmt, ...)
{
	static char text[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return text;
}

/* Reads a small file. -1 with errno. */
static ssize_t read_file(const char *path, char *data, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	size_t len = 0;
	ssize_t got = 0;
	while (len < size - 1 && (got = read(fd, data + len, size - 1 - len)) > 0)
		len += (size_t)got;
	close(fd);
	data[len] = '\0';
	return got < 0 ? -1 : (ssize_t)len;
}

/* The value of a line "key:\tvalue" in /proc/self/status. */
static const char *status_value(const char *key)
{
	static char data[8192];
	char start[64];
	snprintf(start, sizeof(start), "\n%s:\t", key);
	if (read_file("/proc/self/status", data, sizeof(data)) <= 0)
		return "?";
	char *line = strstr(data, start);
	if (!line)
		return "?";
	line += strlen(start);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static bool answers(long result, int error)
{
	return result == -1 && errno == error;
}

/* --- identity ----------------------------------------------------------------------------- */

static outcome uid_is_not_root(void)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;
	getresuid(&r, &e, &s);
	getresgid(&rg, &eg, &sg);
	if (!r || !e || !s || !rg || !eg || !sg)
		return not_so("uids %u %u %u, gids %u %u %u", r, e, s, rg, eg, sg);
	return NULL;
}

static outcome uid_cannot_be_changed(void)
{
	if (setuid(0) == 0 || setresuid(0, 0, 0) == 0 || setgid(0) == 0 || setresgid(0, 0, 0) == 0)
		return not_so("became root");
	if (setuid(12345) == 0 || setgid(12345) == 0)
		return not_so("became 12345");
	return NULL;
}

static outcome setgroups_is_denied(void)
{
	char data[64];
	gid_t groups[] = { 0, 4 };
	if (syscall(SYS_setgroups, 0, NULL) == 0 || syscall(SYS_setgroups, 2, groups) == 0)
		return not_so("setgroups worked");
	if (read_file("/proc/self/setgroups", data, sizeof(data)) > 0 &&
		strcmp(data, "deny\n") != 0)
		return not_so("/proc/self/setgroups is %s", data);
	return NULL;
}

static outcome id_maps_are_closed(void)
{
	static const char *const files[] = { "uid_map", "gid_map", "setgroups", "projid_map" };
	for (size_t i = 0; i < LENGTH(files); i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/self/%s", files[i]);
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, i == 2 ? "allow" : "0 0 1\n", 5 + (i != 2)) > 0)
			return not_so("%s could be written", path);
	}
	return NULL;
}

static outcome capability_sets_are_empty(void)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	for (size_t i = 0; i < LENGTH(sets); i++)
		if (strcmp(status_value(sets[i]), "0000000000000000") != 0)
			return not_so("%s is %s", sets[i], status_value(sets[i]));
	return NULL;
}

static outcome no_new_privs_is_set(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? NULL : not_so("not set");
}

static outcome two_filters_are_loaded(void)
{
	const char *count = status_value("Seccomp_filters");
	if (strtol(count, NULL, 10) < 2)
		return not_so("Seccomp_filters: %s", count);
	return NULL;
}

static outcome landlock_is_on(void)
{
	/* A process can be under 16 rulesets; whoever can add that many is under none yet. */
	uint64_t handled = 1 << 9; /* MAKE_SOCK */
	int added = 0;
	for (; added < 16; added++) {
		int ruleset = (int)syscall(444, &handled, sizeof(handled), 0);
		if (ruleset < 0)
			return not_so("landlock_create_ruleset: %s", strerror(errno));
		long result = syscall(446, ruleset, 0);
		close(ruleset);
		if (result != 0)
			break;
	}
	return added < 16 && errno == E2BIG ? NULL : not_so("%d rulesets added", added);
}

/* --- PID 1 and other processes ------------------------------------------------------------- */

static outcome init_cannot_be_looked_into(void)
{
	static const char *const files[] = { "mem", "environ", "maps", "smaps", "auxv", "io",
		"stack", "syscall", "pagemap", "personality", "map_files", "fdinfo", "fd",
		"root/etc", "cwd/." };
	static const char *const links[] = { "exe", "root", "cwd", "fd/0", "fd/3", "ns/user",
		"ns/mnt" };
	char path[64], target[256], byte;
	for (size_t i = 0; i < LENGTH(files); i++) {
		snprintf(path, sizeof(path), "/proc/1/%s", files[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		/* Some are opened by anybody and refuse, or are empty, when read. */
		struct stat st;
		if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
			return not_so("%s could be opened", path);
		if (read(fd, &byte, 1) > 0)
			return not_so("%s could be read", path);
		close(fd);
	}
	for (size_t i = 0; i < LENGTH(links); i++) {
		snprintf(path, sizeof(path), "/proc/1/%s", links[i]);
		if (readlink(path, target, sizeof(target)) >= 0)
			return not_so("%s could be read", path);
	}
	return NULL;
}

static outcome init_cannot_be_written(void)
{
	static const char *const files[] = { "mem", "oom_score_adj", "comm", "clear_refs",
		"timerslack_ns", "uid_map", "setgroups", "coredump_filter", "attr/current" };
	char path[64];
	for (size_t i = 0; i < LENGTH(files); i++) {
		snprintf(path, sizeof(path), "/proc/1/%s", files[i]);
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, "0", 1) > 0)
			return not_so("%s could be written", path);
	}
	return NULL;
}

static outcome init_has_no_host_path(void)
{
	char data[4096];
	ssize_t len = read_file("/proc/1/cmdline", data, sizeof(data));
	if (len > 0 && memchr(data, '/', (size_t)len))
		return not_so("/proc/1/cmdline: %s", data);
	return NULL;
}

static outcome init_cannot_be_killed(void)
{
	for (int s = 1; s <= 64; s++) {
		if (s == SIGKILL || s == SIGSTOP || s == SIGCONT || s == SIGCHLD || s == 32 ||
			s == 33)
			continue;
		kill(1, s);
	}
	kill(1, SIGSTOP);
	kill(1, SIGKILL);
	poll(NULL, 0, 50);
	char data[1024];
	if (read_file("/proc/1/stat", data, sizeof(data)) <= 0)
		return not_so("PID 1 is gone");
	const char *state = strrchr(data, ')');
	if (!state || strchr("TtZX", state[2]))
		return not_so("PID 1 is in state %s", state ? state + 2 : "?");
	return NULL;
}

static outcome no_process_of_the_host_is_seen(void)
{
	DIR *proc = opendir("/proc");
	if (!proc)
		return not_so("no /proc");
	int count = 0;
	for (struct dirent *entry; (entry = readdir(proc));)
		count += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
	closedir(proc);
	/* init, a shell, this program, the child that asks. */
	return count <= 5 ? NULL : not_so("%d processes", count);
}

static outcome only_standard_descriptors_are_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	if (!dir)
		return not_so("no /proc/self/fd");
	/* 3 is the pipe of this program's answer. */
	for (struct dirent *entry; (entry = readdir(dir));) {
		long fd = strtol(entry->d_name, NULL, 10);
		char target[256] = "", path[64];
		if (fd <= 3 || fd == dirfd(dir))
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%ld", fd);
		if (readlink(path, target, sizeof(target) - 1) >= 0)
			return not_so("%ld is %s", fd, target);
	}
	closedir(dir);
	return NULL;
}

static outcome real_time_scheduling_is_refused(void)
{
	struct sched_param param = { 1 };
	struct rlimit nice;
	if (sched_setscheduler(0, SCHED_FIFO, &param) == 0 ||
		sched_setscheduler(0, SCHED_RR, &param) == 0)
		return not_so("a real-time class was given");
	if (getrlimit(RLIMIT_NICE, &nice) == 0 && nice.rlim_max > 20)
		return not_so("RLIMIT_NICE is %lu", (unsigned long)nice.rlim_max);
	return NULL;
}

static outcome no_core_is_dumped(void)
{
	struct rlimit core, zero = { 0, 0 };
	getrlimit(RLIMIT_CORE, &core);
	if (core.rlim_max > 1)
		return not_so("RLIMIT_CORE is %lu", (unsigned long)core.rlim_max);
	/* 1 keeps the host's handler out; then it must stay 1. */
	rlim_t was = core.rlim_max;
	setrlimit(RLIMIT_CORE, &zero);
	syscall(SYS_prlimit64, 0, RLIMIT_CORE | HIGH, &zero, NULL);
#ifdef SYS_setrlimit
	syscall(SYS_setrlimit, RLIMIT_CORE, &zero);
#endif
	getrlimit(RLIMIT_CORE, &core);
	return core.rlim_max == was ? NULL : not_so("RLIMIT_CORE could be changed");
}

/* --- namespaces ---------------------------------------------------------------------------- */

static outcome clone_makes_no_namespace(void)
{
	static const struct {
		const char *name;
		unsigned long flag;
	} flags[] = { { "NEWNS", CLONE_NEWNS }, { "NEWCGROUP", CLONE_NEWCGROUP },
		{ "NEWUTS", CLONE_NEWUTS }, { "NEWIPC", CLONE_NEWIPC },
		{ "NEWUSER", CLONE_NEWUSER }, { "NEWPID", CLONE_NEWPID },
		{ "NEWNET", CLONE_NEWNET }, { "all", 0x7e020000 } };
	for (size_t i = 0; i < 2 * LENGTH(flags); i++) {
		unsigned long flag = flags[i / 2].flag | SIGCHLD | (i % 2 ? HIGH : 0);
		long pid = syscall(SYS_clone, flag, 0, 0, 0, 0);
		if (pid == 0)
			_exit(0);
		if (!answers(pid, EPERM))
			return not_so("CLONE_%s%s: %ld, %s", flags[i / 2].name,
				i % 2 ? " high" : "", pid, strerror(errno));
	}
	return NULL;
}

/* --- setuid, devices ------------------------------------------------------------------------ */

static outcome no_setuid_file_was_made(void)
{
	/* Whatever a call answered: what counts is that no such file is there. */
	static const int modes[] = { 04755, 02755, 06755, 0104755, 04000 };
	for (size_t i = 0; i < LENGTH(modes); i++) {
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
		if (fstat(fd, &st) != 0 || st.st_mode & 06000)
			return not_so("%s has mode %o", name, st.st_mode);
		unlink(name);
		close(fd);
	}
	return NULL;
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

/* --- files ----------------------------------------------------------------------------------- */

static outcome system_trees_are_read_only(void)
{
	static const char *const places[] = { "/", "/usr", "/usr/bin", "/usr/lib", "/bin", "/lib",
		"/sbin", "/etc", "/etc/ssl", "/proc", "/dev", "/sys", "/root", "/home", "/run",
		"/var", "/opt", "/srv", "/mnt", "/boot", "/media", "/env" };
	for (size_t i = 0; i < LENGTH(places); i++) {
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
		"/var/run/docker.sock", "/run/systemd", "/run/dbus/system_bus_socket", "/var/lib",
		"/var/log", "/boot/vmlinuz", "/etc/ssl/private", "/etc/kubernetes",
		"/var/run/secrets" };
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

/* /var/tmp may lead to /tmp. */
static outcome directory_is_empty_or_absent(const char *path)
{
	DIR *dir = opendir(path);
	if (!dir)
		return NULL;
	for (struct dirent *entry; (entry = readdir(dir));)
		if (entry->d_name[0] != '.' &&
			(entry->d_type != DT_LNK || strcmp(entry->d_name, "tmp") != 0))
			return not_so("%s/%s", path, entry->d_name);
	closedir(dir);
	return NULL;
}

static outcome sys_is_not_mounted(void)
{
	return directory_is_empty_or_absent("/sys");
}

static outcome host_directories_are_not_there(void)
{
	static const char *const places[] = { "/root", "/home", "/run", "/var", "/mnt", "/media",
		"/srv", "/boot", "/opt" };
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

/* --- /proc ------------------------------------------------------------------------------------ */

static outcome proc_is_masked(void)
{
	static const char *const files[] = { "kcore", "kmsg", "keys", "key-users", "timer_list",
		"sched_debug", "interrupts", "kallsyms", "slabinfo", "vmallocinfo", "pagetypeinfo",
		"kpagecount", "kpageflags", "kpagecgroup", "latency_stats", "mtrr", "cmdline",
		"modules", "iomem" };
	char path[64], data[64];
	for (size_t i = 0; i < LENGTH(files); i++) {
		snprintf(path, sizeof(path), "/proc/%s", files[i]);
		if (read_file(path, data, sizeof(data)) > 0)
			return not_so("%s can be read", path);
	}
	static const char *const directories[] = { "/proc/scsi", "/proc/acpi" };
	outcome out = NULL;
	for (size_t i = 0; i < LENGTH(directories) && !out; i++)
		out = directory_is_empty_or_absent(directories[i]);
	return out;
}

static outcome proc_masks_cannot_be_written(void)
{
	static const char *const files[] = { "sysrq-trigger", "kcore", "kmsg", "mtrr", "timer_list",
		"keys" };
	char path[64];
	for (size_t i = 0; i < LENGTH(files); i++) {
		snprintf(path, sizeof(path), "/proc/%s", files[i]);
		if (open(path, O_WRONLY | O_CLOEXEC) >= 0)
			return not_so("%s can be opened for writing", path);
	}
	return NULL;
}

static outcome proc_sys_cannot_be_written(void)
{
	static const char *const files[] = { "kernel/hostname", "kernel/domainname",
		"kernel/core_pattern", "kernel/modprobe", "kernel/msgmax", "kernel/shmmax",
		"kernel/sem", "kernel/ns_last_pid", "kernel/randomize_va_space",
		"kernel/yama/ptrace_scope", "net/ipv4/ip_forward", "net/ipv4/ping_group_range",
		"net/core/somaxconn", "net/ipv4/ip_unprivileged_port_start",
		"user/max_user_namespaces", "vm/overcommit_memory", "vm/drop_caches", "fs/file-max",
		"fs/mqueue/msg_max", "fs/binfmt_misc/register" };
	char path[80];
	for (size_t i = 0; i < LENGTH(files); i++) {
		snprintf(path, sizeof(path), "/proc/sys/%s", files[i]);
		if (open(path, O_WRONLY | O_CLOEXEC) >= 0)
			return not_so("%s can be opened for writing", path);
		if (chmod(path, 0666) == 0)
			return not_so("%s can be changed", path);
	}
	return NULL;
}

static outcome proc_irq_bus_fs_cannot_be_written(void)
{
	static const char *const files[] = { "/proc/irq/default_smp_affinity",
		"/proc/irq/0/smp_affinity", "/proc/bus/pci/00/00.0", "/proc/fs/ext4",
		"/proc/fs/nfsd", "/proc/fs/jbd2" };
	for (size_t i = 0; i < LENGTH(files); i++)
		if (open(files[i], O_WRONLY | O_CLOEXEC) >= 0)
			return not_so("%s can be opened for writing", files[i]);
	return NULL;
}

static outcome no_cgroup_is_mounted(void)
{
	char data[65536];
	if (read_file("/proc/self/mountinfo", data, sizeof(data)) <= 0)
		return not_so("no /proc/self/mountinfo");
	return strstr(data, " - cgroup") ? not_so("a cgroup file system is mounted") : NULL;
}

static outcome cgroup_path_is_hidden(void)
{
	char data[8192];
	if (read_file("/proc/self/cgroup", data, sizeof(data)) <= 0)
		return NULL;
	return strstr(data, "carrel") ? not_so("/proc/self/cgroup: %s", data) : NULL;
}

/* --- terminals, sockets, foreign calls ----------------------------------------------------------
 */

static outcome nothing_can_be_typed_into_a_terminal(void)
{
	static const unsigned long requests[] = { TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS,
		TIOCEXCL };
	int master = posix_openpt(O_RDWR | O_CLOEXEC);
	char name[64], code[4] = "\x02x";
	setsid();
	if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
		ptsname_r(master, name, sizeof(name)) != 0)
		return not_so("no pseudo-terminal: %s", strerror(errno));
	int slave = open(name, O_RDWR);
	if (slave < 0 || (ioctl(slave, TIOCSCTTY, 0) != 0 && errno != EPERM))
		return not_so("no controlling terminal: %s", strerror(errno));
	for (size_t i = 0; i < 2 * LENGTH(requests); i++) {
		long result = syscall(SYS_ioctl, slave, requests[i / 2] | (i % 2 ? HIGH : 0), code);
		if (!answers(result, EPERM))
			return not_so("ioctl %#lx%s: %ld, %s", requests[i / 2],
				i % 2 ? " high" : "", result, strerror(errno));
	}
	return NULL;
}

static outcome own_terminal_takes_no_input(void)
{
	/* With -t standard input is the terminal; without one there is nothing to try. */
	for (int fd = 0; fd < 3; fd++)
		if (isatty(fd) && !answers(syscall(SYS_ioctl, fd, TIOCSTI | HIGH, "x"), EPERM))
			return not_so("TIOCSTI on %d: %s", fd, strerror(errno));
	return NULL;
}

static outcome other_ioctls_do_not_exist(void)
{
	static const unsigned long requests[] = { 0x40086602 /* FS_IOC_SETFLAGS */,
		0x401c5820 /* FSSETXATTR */, 0x5000940e /* btrfs: subvolume */,
		0x50009401 /* snapshot */, 0x50009417 /* snapshot v2 */, 0xc0045877 /* FIFREEZE */,
		0x4b4e /* KDSKBMODE */, 0x5606 /* VT_ACTIVATE */, 0xb701 /* NS_GET_USERNS */,
		0xb702 /* NS_GET_PARENT */, 0x800c6613 /* fscrypt */, 0x40806685 /* fs-verity */,
		0x4c00 /* loop */, 0xf501 /* f2fs */, 0xc018aa3f /* userfaultfd */,
		0xc0502100 /* seccomp */ };
	int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < 2 * LENGTH(requests); i++)
		if (!answers(syscall(SYS_ioctl, fd, requests[i / 2] | (i % 2 ? HIGH : 0), NULL),
			    ENOTTY))
			return not_so("ioctl %#lx: %s", requests[i / 2], strerror(errno));
	return NULL;
}

static outcome other_socket_families_are_closed(void)
{
	for (unsigned long family = 0; family < 64; family++)
		for (int type = 1; type <= 6; type++) {
			if (family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
				family == AF_NETLINK)
				continue;
			for (int high = 0; high < 2; high++)
				if (!answers(syscall(SYS_socket, family | (high ? HIGH : 0), type,
						     0),
					    EAFNOSUPPORT))
					return not_so("family %lu type %d: %s", family, type,
						strerror(errno));
		}
	return NULL;
}

static outcome other_netlink_protocols_are_closed(void)
{
	for (unsigned long protocol = 1; protocol < 32; protocol++)
		for (int high = 0; high < 2; high++)
			if (!answers(syscall(SYS_socket, AF_NETLINK | (high ? HIGH : 0), SOCK_RAW,
					     protocol | (high ? HIGH : 0)),
				    EPROTONOSUPPORT))
				return not_so("protocol %lu: %s", protocol, strerror(errno));
	return NULL;
}

static outcome other_internet_protocols_are_closed(void)
{
	static const struct {
		int type, protocol;
	} tries[] = { { SOCK_STREAM, 132 }, { SOCK_SEQPACKET, 132 }, { SOCK_STREAM, 262 },
		{ 6, 33 }, { 6, 0 }, { SOCK_DGRAM, 136 }, { SOCK_DGRAM, 115 }, { SOCK_RAW, 0 },
		{ SOCK_RAW, 1 }, { SOCK_RAW, 255 }, { SOCK_RAW, 6 }, { SOCK_PACKET, 0 },
		{ SOCK_STREAM, 256 } };
	for (size_t i = 0; i < LENGTH(tries); i++)
		for (int family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET)
			for (int high = 0; high < 2; high++)
				if (syscall(SYS_socket, family, tries[i].type | (high ? HIGH : 0),
					    tries[i].protocol | (high ? HIGH : 0)) >= 0)
					return not_so("family %d type %d protocol %d", family,
						tries[i].type, tries[i].protocol);
	return NULL;
}

static outcome only_loopback_is_there(void)
{
	char data[4096];
	struct sockaddr_in away = {
		.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = { htonl(0x01010101) }
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&away, sizeof(away)) == 0 ||
		errno != ENETUNREACH)
		return not_so("1.1.1.1: %s", strerror(errno));
	if (read_file("/proc/net/dev", data, sizeof(data)) <= 0)
		return not_so("no /proc/net/dev");
	int lines = 0;
	for (const char *at = data; (at = strchr(at, '\n')); at++)
		lines++;
	return lines <= 3 ? NULL : not_so("more than lo: %s", data);
}

#ifdef __x86_64__
static outcome i386_calls_end_the_process(void)
{
	pid_t child = fork();
	if (child == 0) {
		long result = 20; /* getpid */
		__asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	/* SIGSEGV where the kernel has no i386 calls at all. */
	if (!WIFSIGNALED(status) || (WTERMSIG(status) != SIGSYS && WTERMSIG(status) != SIGSEGV))
		return not_so("wait status %#x", status);
	return NULL;
}

static outcome x32_calls_do_not_exist(void)
{
	static const int numbers[] = { SYS_getpid, SYS_open, SYS_chmod, SYS_mount, SYS_clone, 512,
		519, 520, 534, 545 };
	for (size_t i = 0; i < LENGTH(numbers); i++)
		if (!answers(syscall(0x40000000 | numbers[i], 0, 06755, 06755), ENOSYS))
			return not_so("call %d: %s", numbers[i], strerror(errno));
	return NULL;
}
#endif

static outcome unknown_calls_do_not_exist(void)
{
	for (long number = 463; number < 600; number++)
		if (!answers(syscall(number, 0, 0, 0, 0, 0, 0), ENOSYS))
			return not_so("call %ld: %s", number, strerror(errno));
	return NULL;
}

static outcome seccomp_gives_no_listener(void)
{
	static uint64_t allow = 0x7fff000000000006; /* return allow */
	struct {
		unsigned short len;
		void *code;
	} program = { 1, &allow };
	for (int high = 0; high < 2; high++)
		if (!answers(syscall(SYS_seccomp, 1, 8 | (high ? HIGH : 0), &program), EPERM))
			return not_so("SECCOMP_FILTER_FLAG_NEW_LISTENER: %s", strerror(errno));
	return syscall(SYS_seccomp, 1, 0, &program) == 0
		       ? NULL
		       : not_so("own filter: %s", strerror(errno));
}

/* --- what must work --------------------------------------------------------------------------- */

static outcome works_memfd_exec(void)
{
	char data[65536];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
	    to = memfd_create("x", MFD_CLOEXEC);
	/* Where no control group counts it there is no memfd at all. */
	if (to < 0 && errno == ENOSYS)
		return NULL;
	for (ssize_t len; (len = read(from, data, sizeof(data))) > 0;)
		if (write(to, data, (size_t)len) != len)
			return not_so("memfd: %s", strerror(errno));
	pid_t child = fork();
	if (child == 0) {
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 1);
		syscall(SYS_execveat, to, "", (char *[]){ (char *)"probe", (char *)"--list", NULL },
			NULL, AT_EMPTY_PATH);
		_exit(1);
	}
	int status = -1;
	waitpid(child, &status, 0);
	return status == 0 ? NULL : not_so("wait status %#x", status);
}

static void *thread_main(void *arg)
{
	*(int *)arg = 1;
	return arg;
}

static outcome works_threads(void)
{
	int ran = 0;
	pthread_t thread;
	int error = pthread_create(&thread, NULL, thread_main, &ran);
	if (error != 0 || pthread_join(thread, NULL) != 0 || !ran)
		return not_so("pthread_create: %s", strerror(error));
	return NULL;
}

static outcome works_loopback(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(here);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    client = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(server, (struct sockaddr *)&here, len) != 0 || listen(server, 1) != 0 ||
		getsockname(server, (struct sockaddr *)&here, &len) != 0 ||
		connect(client, (struct sockaddr *)&here, len) != 0)
		return not_so("%s", strerror(errno));
	return NULL;
}

static outcome works_sockets(void)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0 ||
		socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) < 0 ||
		socket(AF_INET6, SOCK_DGRAM, IPPROTO_UDP) < 0 ||
		socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) < 0)
		return not_so("%s", strerror(errno));
	return NULL;
}

static outcome works_modes(void)
{
	if (mkfifo("fifo", 0600) != 0 || mkdir("d", 01777) != 0 || chmod("d", 0700) != 0)
		return not_so("%s", strerror(errno));
	int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || fchmod(fd, 0755) != 0 || ioctl(fd, FIONREAD, &(int){ 0 }) != 0)
		return not_so("O_TMPFILE: %s", strerror(errno));
	/* Without O_CREAT the mode means nothing. */
	if (syscall(SYS_openat, AT_FDCWD, "fifo", O_RDONLY | O_NONBLOCK, 06755) < 0)
		return not_so("openat: %s", strerror(errno));
	return rmdir("d") || unlink("fifo") ? not_so("%s", strerror(errno)) : NULL;
}

static outcome works_query_personality(void)
{
	return syscall(SYS_personality, 0xffffffff) >= 0 && syscall(SYS_personality, 0) >= 0
		       ? NULL
		       : not_so("%s", strerror(errno));
}

/* clang-format off */
#define DOES(function) { #function, function, 0, 0, 0, { 0 } }
const struct probe checks[] = {
	DOES(uid_is_not_root),
	DOES(uid_cannot_be_changed),
	DOES(setgroups_is_denied),
	DOES(id_maps_are_closed),
	DOES(capability_sets_are_empty),
	DOES(no_new_privs_is_set),
	DOES(two_filters_are_loaded),
	DOES(landlock_is_on),
	DOES(init_cannot_be_looked_into),
	DOES(init_cannot_be_written),
	DOES(init_has_no_host_path),
	DOES(init_cannot_be_killed),
	DOES(no_process_of_the_host_is_seen),
	DOES(only_standard_descriptors_are_open),
	DOES(real_time_scheduling_is_refused),
	DOES(no_core_is_dumped),
	DOES(clone_makes_no_namespace),
	DOES(no_setuid_file_was_made),
	DOES(no_setuid_file_by_tmpfile),
	DOES(no_device_can_be_made),
	DOES(no_whiteout_by_rename),
	DOES(devices_are_the_listed_ones),
	DOES(system_trees_are_read_only),
	DOES(system_files_are_read_only),
	DOES(secrets_of_the_host_are_not_there),
	DOES(sys_is_not_mounted),
	DOES(host_directories_are_not_there),
	DOES(old_root_is_gone),
	DOES(proc_is_masked),
	DOES(proc_masks_cannot_be_written),
	DOES(proc_sys_cannot_be_written),
	DOES(proc_irq_bus_fs_cannot_be_written),
	DOES(no_cgroup_is_mounted),
	DOES(cgroup_path_is_hidden),
	DOES(nothing_can_be_typed_into_a_terminal),
	DOES(own_terminal_takes_no_input),
	DOES(other_ioctls_do_not_exist),
	DOES(other_socket_families_are_closed),
	DOES(other_netlink_protocols_are_closed),
	DOES(other_internet_protocols_are_closed),
	DOES(only_loopback_is_there),
#ifdef __x86_64__
	DOES(i386_calls_end_the_process),
	DOES(x32_calls_do_not_exist),
#endif
	DOES(unknown_calls_do_not_exist),
	DOES(seccomp_gives_no_listener),
	DOES(works_memfd_exec),
	DOES(works_threads),
	DOES(works_loopback),
	DOES(works_sockets),
	DOES(works_modes),
	DOES(works_query_personality),
};
/* clang-format on */
const size_t check_count = LENGTH(checks);
