/* probe_process.c -- PID 1, other processes, namespaces, what a process has been given. See
 * probe.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "probe.h"

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

static outcome init_cannot_be_limited(void)
{
	static const int resources[] = { RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_AS, RLIMIT_CPU,
		RLIMIT_STACK, RLIMIT_FSIZE, RLIMIT_CORE };
	for (size_t i = 0; i < 2 * LENGTH(resources); i++) {
		struct rlimit limit;
		unsigned long init = 1 | (i % 2 ? HIGH : 0);
		/* To what it is, so that a sandbox without this wall stays as it was. */
		getrlimit(resources[i / 2], &limit);
		if (!answers(syscall(SYS_prlimit64, init, resources[i / 2], &limit, NULL), EPERM))
			return not_so("its limit %d could be set", resources[i / 2]);
	}
	return NULL;
}

/* Each call asks for a value that the kernel would grant. */
static outcome init_keeps_its_priority(void)
{
	struct sched_param none = { 0 };
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} idle = { .size = sizeof(idle), .policy = 5 /* SCHED_IDLE */ };
	unsigned long all_cpus[16];
	memset(all_cpus, 0xff, sizeof(all_cpus));
	for (int i = 0; i < 2; i++) {
		unsigned long high = i ? HIGH : 0, init = 1 | high;
		const int lowest = 7; /* IOPRIO_CLASS_BE, level 7 */
		const struct {
			const char *name;
			long result;
		} calls[] = {
			{ "setpriority", syscall(SYS_setpriority, PRIO_PROCESS | high, init, 19) },
			{ "its group's", syscall(SYS_setpriority, PRIO_PGRP | high, init, 19) },
			{ "its user's", syscall(SYS_setpriority, PRIO_USER | high, 0, 19) },
			{ "ioprio_set", syscall(SYS_ioprio_set, 1 | high, init, 2 << 13 | lowest) },
			{ "group I/O", syscall(SYS_ioprio_set, 2 | high, init, 2 << 13 | lowest) },
			{ "user I/O", syscall(SYS_ioprio_set, 3 | high, getuid(), 2 << 13) },
			{ "scheduler", syscall(SYS_sched_setscheduler, init, 3, &none) },
			{ "sched_setparam", syscall(SYS_sched_setparam, init, &none) },
			{ "sched_setattr", syscall(SYS_sched_setattr, init, &idle, 0) },
			{ "affinity",
				syscall(SYS_sched_setaffinity, init, sizeof(all_cpus), all_cpus) },
		};
		for (size_t c = 0; c < LENGTH(calls); c++)
			if (calls[c].result >= 0)
				return not_so("%s could be set", calls[c].name);
	}
	if (getpriority(PRIO_PROCESS, 1) != getpriority(PRIO_PROCESS, 0))
		return not_so("its priority is %d", getpriority(PRIO_PROCESS, 1));
	return NULL;
}

static outcome own_priority_can_be_lowered(void)
{
	cpu_set_t cpus;
	int nice = getpriority(PRIO_PROCESS, 0);
	if (setpriority(PRIO_PROCESS, 0, nice) || setpriority(PRIO_PROCESS, (id_t)getpid(), nice) ||
		setpriority(PRIO_PGRP, 0, nice))
		return not_so("setpriority: %s", strerror(errno));
	if (sched_getaffinity(0, sizeof(cpus), &cpus) || sched_setaffinity(0, sizeof(cpus), &cpus))
		return not_so("sched_setaffinity: %s", strerror(errno));
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

/* clang-format off */
static const struct probe probes[] = {
	DOES(init_cannot_be_looked_into),
	DOES(init_cannot_be_written),
	DOES(init_has_no_host_path),
	DOES(init_cannot_be_limited),
	DOES(init_keeps_its_priority),
	DOES(own_priority_can_be_lowered),
	DOES(init_cannot_be_killed),
	DOES(no_process_of_the_host_is_seen),
	DOES(only_standard_descriptors_are_open),
	DOES(real_time_scheduling_is_refused),
	DOES(no_core_is_dumped),
	DOES(clone_makes_no_namespace),
};
/* clang-format on */
const struct probe_list process_probes = LIST(probes);
