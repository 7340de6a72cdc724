/* probe_proc.c -- /proc and control groups. See probe.h. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "probe.h"

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

/* One may be in the list, read-only, below files of ours: that it can't be reached is another
 * probe's claim. */
static outcome no_cgroup_can_be_seen(void)
{
	char data[65536];
	const char *other = " / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 ";
	if (read_file("/proc/self/mountinfo", data, sizeof(data)) <= 0)
		return not_so("no /proc/self/mountinfo");
	char *listed = strstr(data, other);
	if (listed && !strstr(listed, " /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - tmpfs "))
		return not_so("a cgroup file system isn't covered");
	if (listed)
		memset(listed, ' ', strlen(other));
	return strstr(data, " - cgroup") ? not_so("a cgroup file system is mounted") : NULL;
}

static outcome cgroup_path_is_hidden(void)
{
	char data[8192];
	if (read_file("/proc/self/cgroup", data, sizeof(data)) <= 0)
		return NULL;
	return strstr(data, "carrel") ? not_so("/proc/self/cgroup: %s", data) : NULL;
}

/* clang-format off */
static const struct probe probes[] = {
	DOES(proc_is_masked),
	DOES(proc_masks_cannot_be_written),
	DOES(proc_sys_cannot_be_written),
	DOES(proc_irq_bus_fs_cannot_be_written),
	DOES(no_cgroup_can_be_seen),
	DOES(cgroup_path_is_hidden),
};
/* clang-format on */
const struct probe_list proc_probes = LIST(probes);
