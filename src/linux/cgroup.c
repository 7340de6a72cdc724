#include "linux/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "format/text/procfs.h"
#include "linux/cgroup_internal.h"

#define CGROUP1_MAGIC 0x27e0eb
#define CGROUP2_MAGIC 0x63677270
#define FIRST_NAMESPACE 0xeffffffb /* PROC_CGROUP_INIT_INO */

/* Finding a place */

typedef void add_line(struct cgroup_places *places, struct str line);

/* Feeds the file to `add` by lines, until the end or until all is known, a little at a time: a host
 * may have thousands of mounts, and the kernel writes each line anew (1.4 us) for every reader. */
static int read_lines(const char *path, add_line *add, struct cgroup_places *places, bool until_all)
{
	char text[8192];
	size_t len = 0, step = 1024;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	for (;;) {
		size_t room = sizeof text - len;
		ssize_t got = read(fd, text + len, room < step ? room : step);
		struct str rest, line;
		if (got <= 0)
			return (int)got;
		len += (size_t)got;
		rest = (struct str){ text, len };
		while (memchr(rest.data, '\n', rest.len) && str_next(&rest, '\n', &line))
			add(places, line);
		if (until_all && cgroup_has_all(places))
			return 0;
		/* A line longer than the buffer has no cgroup mount worth finding. */
		len = rest.len < sizeof text ? rest.len : 0;
		memmove(text, rest.data, len);
	}
}

void cgroup_set_why(struct cgroup_host *host, const char *path)
{
	const char *reason = errno == EROFS			 ? "is mounted read-only"
			     : errno == EACCES || errno == EPERM ? "is not writable for this user"
								 : "can't be opened";
	str_format(host->why, sizeof host->why, "the control group '%s' %s", path, reason);
}

/* Paths in /proc/self/cgroup begin at the root of the cgroup namespace. */
static bool is_in_first_namespace(void)
{
	struct stat st;
	return !stat("/proc/self/ns/cgroup", &st) && st.st_ino == FIRST_NAMESPACE;
}

/* Where nearly every host has them mounted, from the root of the hierarchy (inode 1) on. Three
 * times quicker than mountinfo, and says the same. */
static void try_usual_places(struct cgroup_places *places)
{
	const struct {
		struct cgroup_place *place;
		const char *point, *file;
		unsigned long type;
	} usual[] = {
		{ &places->memory, "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
			CGROUP1_MAGIC },
		{ &places->cpu, "/sys/fs/cgroup/cpu", "cpu.shares", CGROUP1_MAGIC },
		{ &places->cpuacct, "/sys/fs/cgroup/cpuacct", "cpuacct.usage", CGROUP1_MAGIC },
		{ &places->unified, "/sys/fs/cgroup", "cgroup.procs", CGROUP2_MAGIC },
	};
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
		struct statfs fs;
		struct stat st;
		bool is_needed = usual[i].type == CGROUP1_MAGIC || !places->memory.is_known;
		if (!is_needed || !usual[i].place->is_known)
			continue;
		auto_close int dir = open(usual[i].point, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dir >= 0 && !fstat(dir, &st) && st.st_ino == 1 && !fstatfs(dir, &fs) &&
			(unsigned long)fs.f_type == usual[i].type &&
			!faccessat(dir, usual[i].file, F_OK, 0))
			cgroup_set_mount(usual[i].place, str_from("/"), str_from(usual[i].point));
	}
}

static int find_places(struct cgroup_places *places)
{
	if (read_lines("/proc/self/cgroup", cgroup_add_own, places, false) < 0)
		return -1;
	if (is_in_first_namespace())
		try_usual_places(places);
	if (cgroup_has_all(places))
		return 0;
	return read_lines("/proc/self/mountinfo", cgroup_add_mount, places, true);
}

static void choose_v1(const struct cgroup_place *place, char out[CGROUP_PATH_MAX])
{
	if (place->is_inside && access(place->own, W_OK) == 0)
		str_copy(out, CGROUP_PATH_MAX, place->own);
}

void cgroup_probe(struct cgroup_host *host)
{
	struct cgroup_places places = { 0 };
	const struct cgroup_place *place = &places.unified;
	*host = (struct cgroup_host){ .version = CGROUP_NONE };
	int failed = find_places(&places);
	host->has_unified = places.unified.is_known;
	if (failed) {
		str_copy(host->why, sizeof host->why, "/proc can't be read");
		return;
	}
	/* A hybrid host has both: memory is where it counts. */
	if (places.memory.is_known)
		place = &places.memory;
	if (!place->is_known) {
		str_copy(host->why, sizeof host->why, "the kernel has no control groups");
	} else if (!place->is_mounted) {
		str_copy(host->why, sizeof host->why, "no control groups are mounted here");
		str_copy(host->hint, sizeof host->hint,
			"mount them: mount -t cgroup2 none /sys/fs/cgroup");
	} else if (!place->is_inside) {
		str_format(host->why, sizeof host->why,
			"the control group '%s' of this process is not below the mounted hierarchy",
			place->own);
	} else if (place == &places.unified) {
		cgroup_v2_choose(place, host);
	} else {
		choose_v1(&places.memory, host->memory);
		if (!host->memory[0]) {
			cgroup_set_why(host, place->own);
			return;
		}
		host->version = CGROUP_V1;
		choose_v1(&places.cpu, host->cpu);
		choose_v1(&places.cpuacct, host->cpuacct);
	}
}

/* Making a group */

void cgroup_init(struct cgroup *group)
{
	*group = (struct cgroup){ .clone_into = -1, .memory = -1, .cpu = -1, .cpuacct = -1 };
	for (int i = 0; i < CGROUP_DIRS_MAX; i++)
		group->dirs[i] = group->enter[i] = -1;
}

void cgroup_done(struct cgroup *group)
{
	for (int i = 0; i < CGROUP_DIRS_MAX; i++) {
		fd_close(&group->dirs[i]);
		fd_close(&group->enter[i]);
	}
	group->clone_into = -1;
}

/* When the process began, in ticks. false when there is none. */
static bool start_ticks(const char *pid, uint64_t *ticks)
{
	char path[48], text[1024];
	struct procfs_stat stat;
	str_format(path, sizeof path, "/proc/%s/stat", pid);
	ssize_t len = fd_read_file(AT_FDCWD, path, text, sizeof text);
	if (len < 0 || !procfs_parse_stat((struct str){ text, (size_t)len }, &stat))
		return false;
	*ticks = stat.start_ticks;
	return true;
}

int cgroup_add_dir(struct cgroup *group, const char *parent, const char *controller, int *index,
	struct error *err)
{
	char path[CGROUP_PATH_MAX + sizeof group->name + 1];
	int i = 0;
	if (!parent[0])
		return fail(
			err, ERR_UNAVAILABLE, "the %s controller is not writable here", controller);
	while (i < group->dir_count && strcmp(group->parents[i], parent) != 0)
		i++;
	if (i == group->dir_count) {
		str_format(path, sizeof path, "%s/%s", parent, group->name);
		if (!group->is_found && mkdir(path, 0755) < 0)
			return errno == EACCES || errno == EPERM || errno == EROFS ||
					       errno == ENOENT
				       ? fail_errno_code(err, ERR_UNAVAILABLE,
						 "make control group '%s'", path)
				       : fail_errno(err, "make control group '%s'", path);
		str_copy(group->parents[i], CGROUP_PATH_MAX, parent);
		group->dir_count++;
		group->dirs[i] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (group->dirs[i] < 0)
			return fail_errno(err, "open control group '%s'", path);
	}
	*index = i;
	return 0;
}

int cgroup_try_set(int dir, const char *file, const char *text, struct error *err)
{
	char now[64];
	auto_close int fd = openat(dir, file, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 1 : fail_errno(err, "open control group file '%s'", file);
	if (write(fd, text, strlen(text)) < 0)
		return fail_errno(err, "write '%s' to control group file '%s'", text, file);
	ssize_t len = pread(fd, now, sizeof now - 1, 0);
	if (len < 0)
		return fail_errno(err, "read control group file '%s'", file);
	if (!str_is(str_trim((struct str){ now, (size_t)len }), text))
		return fail(err, ERR_FAILED,
			"control group file '%s' reads '%.*s' after '%s' was written", file,
			(int)str_trim((struct str){ now, (size_t)len }).len, now, text);
	return 0;
}

int cgroup_set(int dir, const char *file, const char *text, struct error *err)
{
	int result = cgroup_try_set(dir, file, text, err);
	if (result > 0)
		return fail(err, ERR_UNAVAILABLE, "the control group has no file '%s'", file);
	return result;
}

int cgroup_set_number(int dir, const char *file, uint64_t value, struct error *err)
{
	char text[24];
	str_format(text, sizeof text, "%llu", (unsigned long long)value);
	return cgroup_set(dir, file, text, err);
}

static int place(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err)
{
	return host->version == CGROUP_V1 ? cgroup_v1_place(host, want, group, err)
					  : cgroup_v2_place(host, want, group, err);
}

static int limit(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err)
{
	return host->version == CGROUP_V1 ? cgroup_v1_limit(want, group, err)
					  : cgroup_v2_limit(host, want, group, err);
}

/* The inode of this pid namespace, within which pids are valid. 0: unknown. */
static uint64_t own_pidns(void)
{
	struct stat st;
	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

static int name_group(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err)
{
	uint64_t ticks;
	cgroup_init(group);
	if (host->version == CGROUP_NONE)
		return fail(err, ERR_UNAVAILABLE, "%s", host->why);
	if (!start_ticks("self", &ticks))
		return fail(err, ERR_UNAVAILABLE, "/proc/self/stat can't be read");
	str_format(group->name, sizeof group->name, "carrel-%d-%llu-%llu-%u", (int)getpid(),
		(unsigned long long)ticks, (unsigned long long)own_pidns(), want->number);
	group->version = host->version;
	return 0;
}

int cgroup_create(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err)
{
	if (name_group(host, want, group, err) < 0)
		return -1;
	if (place(host, want, group, err) == 0 && limit(host, want, group, err) == 0)
		return 0;
	cgroup_remove(group, NULL);
	cgroup_done(group);
	cgroup_init(group);
	return -1;
}

int cgroup_change(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err)
{
	return place(host, want, group, err) || limit(host, want, group, err) ? -1 : 0;
}

int cgroup_find(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err)
{
	if (name_group(host, want, group, err) < 0)
		return -1;
	group->is_found = true;
	if (place(host, want, group, err) == 0)
		return 0;
	cgroup_done(group);
	cgroup_init(group);
	return -1;
}

void cgroup_adopt(struct cgroup *group, const int *tasks, int count)
{
	cgroup_init(group);
	group->version = CGROUP_V1;
	for (int i = 0; i < count && tasks[i] >= 0 && i < CGROUP_DIRS_MAX; i++)
		group->enter[group->dir_count++] = tasks[i];
}

int cgroup_enter(const struct cgroup *group)
{
	for (int i = 0; i < group->dir_count; i++)
		if (group->enter[i] >= 0 && write(group->enter[i], "0", 1) < 0)
			return -1;
	return 0;
}

/* What a group has counted */

int cgroup_watch_oom(const struct cgroup *group, int *fd, short *events, struct error *err)
{
	int dir = group->dirs[group->memory];
	char text[32];
	if (group->version == CGROUP_V2) {
		auto_close int file = openat(dir, "memory.events", O_RDONLY | O_CLOEXEC);
		uint64_t kills;
		/* News is what comes after the last read. */
		if (file < 0)
			return fail_errno(err, "open control group file 'memory.events'");
		if (cgroup_oom_kills(group, file, &kills, err) < 0)
			return -1;
		*fd = take_fd(&file);
		*events = POLLPRI;
		return 0;
	}
	auto_close int news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	auto_close int file = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	if (news < 0 || file < 0)
		return fail_errno(err, "open control group file 'memory.oom_control'");
	str_format(text, sizeof text, "%d %d", news, file);
	if (fd_write_file(dir, "cgroup.event_control", text) < 0)
		return fail_errno(err, "write control group file 'cgroup.event_control'");
	*fd = take_fd(&news);
	*events = POLLIN;
	return 0;
}

struct counter {
	const char *file, *key;
};

static int read_counter(
	int dir, int open_file, const struct counter *counter, uint64_t *value, struct error *err)
{
	char text[4096];
	ssize_t len = open_file >= 0 ? pread(open_file, text, sizeof text, 0)
				     : fd_read_file(dir, counter->file, text, sizeof text);
	if (len < 0)
		return fail_errno(err, "read control group file '%s'", counter->file);
	if (!procfs_find_number((struct str){ text, (size_t)len }, counter->key, value))
		return fail(err, ERR_UNAVAILABLE, "control group file '%s' has no number '%s'",
			counter->file, counter->key ? counter->key : "");
	return 0;
}

int cgroup_oom_kills(const struct cgroup *group, int watch, uint64_t *count, struct error *err)
{
	static const struct counter v1 = { "memory.oom_control", "oom_kill" };
	static const struct counter v2 = { "memory.events", "oom_kill" };
	int dir = group->dirs[group->memory];
	uint64_t drained;
	if (group->version == CGROUP_V2)
		return read_counter(dir, watch, &v2, count, err);
	if (watch >= 0 && read(watch, &drained, sizeof drained) < 0 && errno != EAGAIN)
		return fail_errno(err, "read the memory events");
	return read_counter(dir, -1, &v1, count, err);
}

int cgroup_cpu_us(const struct cgroup *group, uint64_t *us, struct error *err)
{
	static const struct counter v1 = { "cpuacct.usage", NULL };
	static const struct counter v2 = { "cpu.stat", "usage_usec" };
	uint64_t ns = 0;
	if (group->cpuacct < 0)
		return fail(err, ERR_UNAVAILABLE, "the control group does not count cpu time");
	if (group->version == CGROUP_V2)
		return read_counter(group->dirs[group->cpuacct], -1, &v2, us, err);
	if (read_counter(group->dirs[group->cpuacct], -1, &v1, &ns, err) < 0)
		return -1;
	*us = ns / 1000;
	return 0;
}

int cgroup_freeze(const struct cgroup *group, bool freeze, struct error *err)
{
	if (group->version != CGROUP_V2)
		return fail(err, ERR_UNAVAILABLE, "the control group has no freezer");
	return cgroup_set(group->dirs[group->memory], "cgroup.freeze", freeze ? "1" : "0", err);
}

#define SOCKET_BYTES "memory.kmem.tcp.usage_in_bytes"

int cgroup_open_sockets(const struct cgroup *group)
{
	if (group->version != CGROUP_V1 || group->memory < 0)
		return -1;
	return openat(group->dirs[group->memory], SOCKET_BYTES, O_RDONLY | O_CLOEXEC);
}

int cgroup_socket_bytes(const struct cgroup *group, uint64_t *bytes, struct error *err)
{
	static const struct counter sockets = { SOCKET_BYTES, NULL };
	auto_close int file = cgroup_open_sockets(group);
	*bytes = 0;
	return file < 0 ? 0 : read_counter(-1, file, &sockets, bytes, err);
}

int cgroup_open_counters(const struct cgroup *group, int *oom, int *cpu, struct error *err)
{
	bool is_v2 = group->version == CGROUP_V2;
	const char *kills = is_v2 ? "memory.events" : "memory.oom_control";
	const char *usage = is_v2 ? "cpu.stat" : "cpuacct.usage";
	auto_close int oom_fd = openat(group->dirs[group->memory], kills, O_RDONLY | O_CLOEXEC);
	auto_close int cpu_fd = -1;
	if (oom_fd < 0)
		return fail_errno(err, "open control group file '%s'", kills);
	if (group->cpuacct >= 0) {
		cpu_fd = openat(group->dirs[group->cpuacct], usage, O_RDONLY | O_CLOEXEC);
		if (cpu_fd < 0)
			return fail_errno(err, "open control group file '%s'", usage);
	}
	*oom = take_fd(&oom_fd);
	*cpu = take_fd(&cpu_fd);
	return 0;
}

/* Removing groups */

/* A task that is just leaving keeps its group busy for a moment. */
static int remove_dir(const char *parent, const char *name, int waits)
{
	char path[CGROUP_PATH_MAX + 80];
	struct timespec pause = { .tv_nsec = 100000 };
	str_format(path, sizeof path, "%s/%s", parent, name);
	while (rmdir(path) < 0 && errno != ENOENT) {
		if (errno != EBUSY || waits-- == 0)
			return -1;
		nanosleep(&pause, NULL);
		pause.tv_nsec *= 2;
	}
	return 0;
}

int cgroup_remove(struct cgroup *group, struct error *err)
{
	const int waits = 10;
	for (int i = group->dir_count - 1; i >= 0; i--)
		if (remove_dir(group->parents[i], group->name, waits) < 0)
			return fail_errno(err, "remove control group '%s/%s'", group->parents[i],
				group->name);
	return 0;
}

static bool maker_is_gone(struct str name)
{
	struct cgroup_maker maker;
	uint64_t now;
	char text[24];
	if (!cgroup_parse_name(name, &maker) || maker.pidns != own_pidns())
		return false;
	str_format(text, sizeof text, "%llu", (unsigned long long)maker.pid);
	errno = 0;
	if (start_ticks(text, &now))
		return now != maker.ticks;
	/* The process doesn't exist; other errors, such as EMFILE, don't mean that. */
	return errno == ENOENT || errno == ESRCH;
}

static bool remove_left(const struct cgroup_host *host, const char *name)
{
	const char *parents[] = { host->cpuacct, host->cpu, host->memory };
	for (int i = 0; i < 3; i++)
		if (parents[i][0] && remove_dir(parents[i], name, 0) < 0)
			return false;
	return true;
}

int cgroup_try_remove(const struct cgroup_host *host, unsigned number, struct error *err)
{
	struct cgroup_want want = { .number = number };
	struct cgroup group;
	if (name_group(host, &want, &group, err) < 0)
		return -1;
	if (!remove_left(host, group.name))
		return fail_errno(err, "remove control group '%s'", group.name);
	return 0;
}

int cgroup_sweep(const struct cgroup_host *host)
{
	_Alignas(struct dirent64) char entries[8192];
	long len;
	int busy = 0;
	if (host->version == CGROUP_NONE)
		return 0;
	auto_close int dir = open(host->memory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while ((len = syscall(SYS_getdents64, dir, entries, sizeof entries)) > 0)
		for (long at = 0; at < len;) {
			const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
			at += entry->d_reclen;
			if (entry->d_type == DT_DIR && maker_is_gone(str_from(entry->d_name)) &&
				!remove_left(host, entry->d_name))
				busy += errno == EBUSY;
		}
	return busy;
}
