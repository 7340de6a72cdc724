#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "linux/cgroup_internal.h"

#define MAIN_GROUP "carrel.main"
#define DELEGATE_HINT "systemd-run --user --scope -p Delegate=yes carrel ..."

/* systemd marks what it gives away with Delegate=yes. */
static bool is_delegated(const char *dir)
{
	char value[8];
	return getxattr(dir, "trusted.delegate", value, sizeof value) > 0 ||
	       getxattr(dir, "user.delegate", value, sizeof value) > 0;
}

/* The own group; its parent when a carrel moved us into MAIN_GROUP; the top for root in a group
 * that another program manages (a login session, a service). */
static void choose_base(const struct cgroup_place *place, char base[CGROUP_PATH_MAX])
{
	const char *name = strrchr(place->own, '/');
	str_copy(base, CGROUP_PATH_MAX, place->own);
	if (place->is_top)
		return;
	if (name && strcmp(name + 1, MAIN_GROUP) == 0)
		base[name - place->own] = '\0';
	else if (geteuid() == 0 && !is_delegated(place->own))
		str_copy(base, CGROUP_PATH_MAX, place->top);
}

static bool has_controller(struct str list, const char *controller)
{
	struct str piece;
	while (str_next(&list, ' ', &piece))
		if (str_is(piece, controller))
			return true;
	return false;
}

void cgroup_v2_choose(const struct cgroup_place *place, struct cgroup_host *host)
{
	static const char *const needed[] = { ".", "cgroup.procs", "cgroup.subtree_control" };
	char base[CGROUP_PATH_MAX], text[256];
	choose_base(place, base);
	auto_close int dir = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; dir >= 0 && i < 3; i++)
		if (faccessat(dir, needed[i], W_OK, 0) < 0)
			fd_close(&dir);
	if (dir < 0) {
		cgroup_set_why(host, base);
		if (errno == EACCES)
			str_copy(host->hint, sizeof host->hint, DELEGATE_HINT);
		return;
	}
	ssize_t len = fd_read_file(dir, "cgroup.controllers", text, sizeof text);
	struct str list = str_trim((struct str){ text, len < 0 ? 0 : (size_t)len });
	if (!has_controller(list, "memory")) {
		str_format(host->why, sizeof host->why,
			"the control group '%s' has no memory controller", base);
		return;
	}
	host->version = CGROUP_V2;
	str_copy(host->unified, sizeof host->unified, base);
	str_copy(host->memory, sizeof host->memory, base);
	str_copy(host->cpuacct, sizeof host->cpuacct, base);
	if (has_controller(list, "cpu"))
		str_copy(host->cpu, sizeof host->cpu, base);
	host->pids = has_controller(list, "pids");
}

/* Moves all processes of the group at `base` into its child MAIN_GROUP. */
static int move_processes(int base, const char *path, struct error *err)
{
	if (mkdirat(base, MAIN_GROUP, 0755) < 0 && errno != EEXIST)
		return fail_errno(err, "make control group '%s/%s'", path, MAIN_GROUP);
	auto_close int to = openat(base, MAIN_GROUP "/cgroup.procs", O_WRONLY | O_CLOEXEC);
	auto_close int from = openat(base, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	if (to < 0 || from < 0)
		return fail_errno(
			err, "open cgroup.procs of '%s' and of its '%s'", path, MAIN_GROUP);
	/* One buffer at a time, whole lines only: the caller comes back when there were more. */
	char text[4096];
	ssize_t len = read(from, text, sizeof text);
	const char *end = len > 0 ? memrchr(text, '\n', (size_t)len) : NULL;
	struct str rest = { text, end ? (size_t)(end - text) : 0 }, line;
	while (str_next(&rest, '\n', &line)) {
		/* "0" is a process of another pid namespace, ESRCH one that has ended. */
		if (str_is(line, "0"))
			continue;
		if (write(to, line.data, line.len) < 0 && errno != ESRCH)
			return fail_errno(err, "move process %.*s into control group '%s/%s'",
				(int)line.len, line.data, path, MAIN_GROUP);
	}
	return 0;
}

static int enable(const char *path, const char *controller, struct error *err)
{
	auto_close int base = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char text[32];
	if (base < 0)
		return fail_errno(err, "open control group '%s'", path);
	str_format(text, sizeof text, "+%s", controller);
	/* Processes that fork while they are moved have to be moved again. */
	for (int tries = 0; tries < 20; tries++) {
		if (fd_write_file(base, "cgroup.subtree_control", text) == 0)
			return 0;
		if (errno != EBUSY)
			break;
		if (move_processes(base, path, err) < 0)
			return -1;
		errno = EBUSY;
	}
	return fail_errno_code(err, ERR_UNAVAILABLE, "enable controller '%s' in control group '%s'",
		controller, path);
}

/* A missing file means that its controller isn't enabled yet for groups below the base. */
static int set(const struct cgroup *group, const char *controller, const char *file,
	const char *text, struct error *err)
{
	int result = cgroup_try_set(group->dirs[0], file, text, err);
	if (result <= 0)
		return result;
	if (enable(group->parents[0], controller, err) < 0)
		return -1;
	return cgroup_set(group->dirs[0], file, text, err);
}

static int limit_memory(const struct cgroup *group, uint64_t bytes, struct error *err)
{
	char text[24];
	str_format(text, sizeof text, "%llu", (unsigned long long)cgroup_round_memory(bytes));
	if (set(group, "memory", "memory.max", text, err) < 0 ||
		cgroup_set(group->dirs[0], "memory.oom.group", "1", err) < 0)
		return -1;
	/* Not there when the kernel doesn't count swap. */
	return cgroup_try_set(group->dirs[0], "memory.swap.max", "0", err) < 0 ? -1 : 0;
}

int cgroup_v2_place(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err)
{
	if (want->millicpus && !host->cpu[0])
		return fail(err, ERR_UNAVAILABLE, "the control group '%s' has no cpu controller",
			host->memory);
	if (cgroup_add_dir(group, host->memory, "memory", &group->memory, err) < 0)
		return -1;
	if (want->millicpus)
		group->cpu = 0;
	group->cpuacct = 0;
	group->clone_into = group->dirs[0];
	return 0;
}

int cgroup_v2_limit(const struct cgroup_host *host, const struct cgroup_want *want,
	struct cgroup *group, struct error *err)
{
	uint64_t quota_us, period_us;
	char text[64];
	if (want->memory_bytes && limit_memory(group, want->memory_bytes, err) < 0)
		return -1;
	if (want->millicpus) {
		cgroup_cpu_quota(want->millicpus, &quota_us, &period_us);
		str_format(text, sizeof text, "%llu %llu", (unsigned long long)quota_us,
			(unsigned long long)period_us);
		if (set(group, "cpu", "cpu.max", text, err) < 0)
			return -1;
	}
	if (want->pids && host->pids) {
		str_format(text, sizeof text, "%llu", (unsigned long long)want->pids);
		if (set(group, "pids", "pids.max", text, err) < 0)
			return -1;
	}
	return 0;
}
