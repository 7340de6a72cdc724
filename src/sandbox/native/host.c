#include "sandbox/native/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "linux/capability.h"
#include "linux/landlock.h"
#include "linux/pty.h"
#include "sandbox/native/slot.h"
#include "sandbox/native/usage.h"
#include "sandbox/plan/system.h"

#define CPUS_MAX 65536

void host_init(struct host *host)
{
	*host = (struct host){ .slot = -1 };
}

void host_done(struct host *host)
{
	fd_close(&host->slot);
}

static enum plan_path_kind kind_of(mode_t mode)
{
	return S_ISDIR(mode) ? PATH_DIRECTORY : S_ISLNK(mode) ? PATH_LINK : PATH_FILE;
}

/* Where it is a file, a directory or a link. `mode`: its type, or 0 where that isn't known. */
static void add_path(struct host *host, const char *path, mode_t mode, struct arena *arena)
{
	struct stat st;
	char link[PATH_MAX];
	if (!mode && !lstat(path, &st))
		mode = st.st_mode;
	if (!S_ISDIR(mode) && !S_ISREG(mode) && !S_ISLNK(mode))
		return;
	struct plan_host_path found = { path, kind_of(mode), NULL, 1 };
	if (found.kind == PATH_LINK) {
		ssize_t len = readlink(path, link, sizeof link);
		if (len <= 0 || (size_t)len >= sizeof link)
			return;
		found.link = arena_bytes(arena, link, (size_t)len);
	}
	vec_push(arena, &host->facts.host_paths, found);
}

static int compare_paths(const void *a, const void *b)
{
	const struct plan_host_path *x = a, *y = b;
	return strcmp(x->path, y->path);
}

/* The existing names of `place`, sorted, so that the plan is the same each time. A directory that
 * can't be listed has none. */
static void look_at_place(
	struct host *host, const struct plan_system_place *place, struct arena *arena)
{
	size_t first = host->facts.host_paths.count;
	/* Not by readdir, which takes memory for each directory and a small piece at a time. */
	_Alignas(struct dirent) char list[16384];
	auto_close int dir = open(place->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long len;
	while (dir >= 0 && (len = syscall(SYS_getdents64, dir, list, sizeof list)) > 0)
		for (long at = 0; at < len;) {
			const struct dirent *entry = (const struct dirent *)(list + at);
			if (plan_system_place_has(place, entry->d_name))
				add_path(host,
					arena_printf(
						arena, "%s/%s", place->directory, entry->d_name),
					DTTOIF(entry->d_type), arena);
			at += entry->d_reclen;
		}
	qsort(host->facts.host_paths.items + first, host->facts.host_paths.count - first,
		sizeof *host->facts.host_paths.items, compare_paths);
}

static void look_at_system(struct host *host, struct arena *arena)
{
	for (const char *const *path = plan_system_paths; *path; path++)
		add_path(host, *path, 0, arena);
	for (const struct plan_system_place *place = plan_system_places; place->directory; place++)
		look_at_place(host, place, arena);
}

int host_look_at_protected(
	const char *path, struct arena *arena, plan_host_paths *found, struct error *err)
{
	auto_close int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "open '%s'", path);
	for (const char *const *name = plan_protected_names; *name; name++) {
		struct stat st;
		auto_close int fd =
			path_open_nolinks(dir, *name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
		/* A link or a file above it: that one is found itself, and judged. */
		if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENOTDIR))
			continue;
		if (fd < 0 || fstat(fd, &st))
			return fail_errno(err, "look at '%s/%s'", path, *name);
		vec_push(arena, found,
			(struct plan_host_path){
				*name, kind_of(st.st_mode), NULL, (unsigned)st.st_nlink });
	}
	return 0;
}

static bool is_listed(const plan_host_paths *paths, const char *name)
{
	for (size_t i = 0; i < paths->count; i++)
		if (!strcmp(paths->items[i].path, name))
			return true;
	return false;
}

int host_find_new(const struct host *host, const char *path, struct arena *arena, text_list *names,
	struct error *err)
{
	plan_host_paths now = { 0 };
	if (host_look_at_protected(path, arena, &now, err))
		return -1;
	const char *above = NULL; /* what lies in something new is not said again */
	for (size_t i = 0; i < now.count; i++) {
		const char *name = now.items[i].path;
		if (is_listed(&host->facts.protect, name) ||
			(above && path_is_beneath(name, above)))
			continue;
		vec_push(arena, names, name);
		above = name;
	}
	return 0;
}

static enum plan_stream_kind stream_kind(int fd)
{
	struct stat st;
	if (fstat(fd, &st))
		return STREAM_OTHER;
	if (S_ISFIFO(st.st_mode))
		return STREAM_PIPE;
	if (!S_ISCHR(st.st_mode))
		return STREAM_OTHER;
	if (st.st_rdev == makedev(1, 3))
		return STREAM_NULL;
	return isatty(fd) ? STREAM_TERMINAL : STREAM_OTHER;
}

/* One terminal inside stands for one outside. Of two, it is the one for output; the other is
 * relayed through a pipe. */
static void look_at_streams(enum plan_stream_kind streams[3])
{
	static const int order[3] = { 1, 2, 0 };
	unsigned device = 0, other;
	for (int i = 0; i < 3; i++) {
		int fd = order[i];
		streams[fd] = stream_kind(fd);
		if (streams[fd] != STREAM_TERMINAL)
			continue;
		if (pty_get_device(fd, &other) || (device && other != device))
			streams[fd] = STREAM_OTHER;
		else
			device = other;
	}
}

static bool is_same(int a, int b)
{
	struct stat x, y;
	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Root with all it needs takes a uid of its own; everybody else, and a "root" of a namespace with
 * one id, uses theirs. */
static int look_at_identity(struct host *host, const char *home, struct error *err)
{
	struct plan_facts *facts = &host->facts;
	struct slot_range range = { 0, 0 };
	facts->outside_uid = geteuid();
	facts->outside_gid = getegid();
	if (facts->outside_uid != 0)
		return 0;
	char map[4096];
	if (fd_read_file(AT_FDCWD, "/proc/self/uid_map", map, sizeof map) < 0)
		return fail_errno(err, "read '/proc/self/uid_map'");
	range = slot_range_from(map);
	if (!range.count && host->is_weak)
		return fail_hint(err, ERR_UNAVAILABLE, "run it as a user that isn't root",
			"root has no other uid to run the command as in this user namespace");
	if (!range.count)
		return 0;
	if ((!host->is_weak && !capability_is_effective(CAPABILITY_SYS_ADMIN)) ||
		!capability_is_effective(CAPABILITY_SETUID) ||
		!capability_is_effective(CAPABILITY_SETGID))
		return fail_hint(err, ERR_UNAVAILABLE,
			"run it as another user, or give this container CAP_SYS_ADMIN",
			"root lacks %sCAP_SETUID or CAP_SETGID here",
			host->is_weak ? "" : "CAP_SYS_ADMIN, ");
	facts->privileged = true;
	facts->outside_uid = range.first;
	if (home && slot_take(home, range, &facts->outside_uid, &host->slot, err))
		return -1;
	facts->outside_gid = facts->outside_uid;
	return 0;
}

/* The highest number that a cpu can have ("0-63"), and one. */
static unsigned count_possible_cpus(void)
{
	char text[256];
	uint64_t last = 0;
	ssize_t len = fd_read_file(AT_FDCWD, "/sys/devices/system/cpu/possible", text, sizeof text);
	struct str rest = str_trim((struct str){ text, len > 0 ? (size_t)len : 0 }), part;
	while (str_next(&rest, '-', &part))
		if (!str_to_u64(part, &last) || last >= CPUS_MAX)
			return 0;
	return len > 0 ? (unsigned)last + 1 : 0;
}

static void look_at_resources(struct plan_facts *facts)
{
	struct sysinfo info;
	long usable = sysconf(_SC_NPROCESSORS_ONLN);
	facts->usable_cpus = usable > 0 ? (unsigned)usable : 1;
	facts->cpus = count_possible_cpus();
	if (facts->cpus < facts->usable_cpus)
		facts->cpus = facts->usable_cpus;
	facts->memory_bytes = sysinfo(&info) ? 0 : (uint64_t)info.totalram * info.mem_unit;
}

int host_look(struct host *host, const char *home, const char *dir, struct arena *arena,
	struct error *err)
{
	static const enum plan_limiter limiters[] = {
		[CGROUP_NONE] = LIMITER_WATCHDOG,
		[CGROUP_V1] = LIMITER_CGROUP_V1,
		[CGROUP_V2] = LIMITER_CGROUP_V2,
	};
	look_at_system(host, arena);
	if (look_at_identity(host, home, err) ||
		(dir && host_look_at_protected(dir, arena, &host->facts.protect, err)))
		return -1;
	cgroup_probe(&host->cgroups);
	host->facts.limiter = limiters[host->cgroups.version];
	host->facts.has_unified = host->cgroups.has_unified;
	host->facts.landlock_abi = landlock_abi();
	look_at_streams(host->facts.streams);
	host->facts.same_output = is_same(1, 2);
	host->facts.umask = umask(022);
	umask(host->facts.umask);
	look_at_resources(&host->facts);
	const char *term = getenv("TERM");
	host->facts.term = arena_text(arena, term);
	return 0;
}

/* File systems that are the kernel's own face: through them a sandbox would reach the host's
 * processes and devices. */
static bool is_kernels_own(const char *path)
{
	static const unsigned long kinds[] = { 0x9fa0 /* proc */, 0x62656572 /* sysfs */,
		0x27e0eb /* cgroup */, 0x63677270 /* cgroup2 */, 0x64626720 /* debugfs */,
		0x74726163 /* tracefs */, 0xcafe4a11 /* bpf */, 0x73636673 /* securityfs */,
		0x1cd1 /* devpts */, 0x19800202 /* mqueue */, 0x62656570 /* configfs */ };
	struct statfs fs;
	if (path_is_beneath(path, "/dev"))
		return true;
	if (statfs(path, &fs))
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if ((unsigned long)fs.f_type == kinds[i])
			return true;
	return false;
}

/* What can be mounted in a sandbox: a file or a directory, and not of the kernel. `what`: the
 * option that named it `given`. */
static int look_at_real(
	const char *what, const char *given, const char *real, struct stat *st, struct error *err)
{
	if (is_kernels_own(real))
		return fail(err, ERR_INVALID,
			"%s '%s' is a file system of the kernel and can't be mounted in a sandbox",
			what, given);
	if (stat(real, st))
		return fail_errno(err, "%s '%s'", what, given);
	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return fail(
			err, ERR_INVALID, "%s '%s' is neither a file nor a directory", what, given);
	return 0;
}

int host_look_at_source(
	struct plan_bind *bind, const char *option, struct arena *arena, struct error *err)
{
	struct stat st;
	char real[PATH_MAX];
	if (!realpath(bind->source, real))
		return fail_errno(err, "%s '%s'", option, bind->source);
	if (!strcmp(real, "/"))
		return fail_hint(err, ERR_INVALID, "choose a directory below it",
			"%s '%s' would show all files of the host", option, bind->source);
	if (look_at_real(option, bind->source, real, &st, err))
		return -1;
	/* Root's sandbox sees it through its owner's eyes; a plain user's through the user's own.
	 */
	int wanted = R_OK | (S_ISDIR(st.st_mode) ? X_OK : 0);
	if (faccessat(AT_FDCWD, real, wanted, AT_EACCESS))
		return fail_errno(err, "%s '%s'", option, bind->source);
	bind->source = arena_text(arena, real);
	bind->kind = kind_of(st.st_mode);
	bind->owner_uid = st.st_uid;
	bind->owner_gid = st.st_gid;
	return 0;
}

/* What lies below `path` is shown with it. */
static void drop_below(plan_host_paths *paths, const char *path)
{
	size_t kept = 0;
	for (size_t i = 0; i < paths->count; i++)
		if (!path_is_beneath(paths->items[i].path, path))
			paths->items[kept++] = paths->items[i];
	paths->count = kept;
}

static bool is_shown(const plan_host_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++)
		if (path_is_beneath(path, paths->items[i].path))
			return true;
	return false;
}

static int check_shown(
	const char *path, const char *real, const char *home, struct stat *st, struct error *err)
{
	char own[PATH_MAX];
	if (plan_system_check_shown(path, err) || plan_system_check_shown(real, err))
		return -1;
	if (realpath(home, own) && (path_is_beneath(real, own) || path_is_beneath(own, real)))
		return fail(err, ERR_INVALID,
			"system.show: '%s' is, contains or is inside carrel's home", path);
	return look_at_real("system.show:", path, real, st, err);
}

int host_show(struct host *host, const text_list *show, const char *home, struct arena *arena,
	struct error *err)
{
	plan_host_paths *paths = &host->facts.host_paths;
	for (size_t i = 0; i < show->count; i++) {
		const char *path = show->items[i];
		char real[PATH_MAX];
		struct stat st;
		if (!realpath(path, real)) {
			fail_errno(err, "system.show: '%s'", path);
			return error_hint(err, "remove it from config.yaml, or create it");
		}
		if (check_shown(path, real, home, &st, err))
			return -1;
		if (is_shown(paths, path))
			continue;
		drop_below(paths, path);
		struct plan_host_path shown = { .path = path,
			.kind = kind_of(st.st_mode),
			.links = 1,
			.source = arena_text(arena, real) };
		vec_push(arena, paths, shown);
	}
	return 0;
}

struct task_count {
	uint32_t uid;
	uint64_t tasks;
};

static void count_tasks(void *ctx, int proc, int pid)
{
	struct task_count *count = ctx;
	struct stat st;
	char path[32];
	str_format(path, sizeof path, "%d", pid);
	if (fstatat(proc, path, &st, 0) || st.st_uid != count->uid)
		return;
	str_format(path, sizeof path, "%d/task", pid);
	/* The links of the directory are its tasks, "." and "..". */
	count->tasks += !fstatat(proc, path, &st, 0) && st.st_nlink > 2 ? st.st_nlink - 2 : 1;
}

uint64_t host_count_tasks(const struct host *host)
{
	struct task_count count = { host->facts.outside_uid, 0 };
	auto_close int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc >= 0)
		usage_each_process(proc, count_tasks, &count);
	return count.tasks;
}
