#include "sandbox/native/isolation.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include "base/fd.h"
#include "sandbox/native/start.h"
#include "sandbox/native/weak.h"

#define LOOK (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int native_start(const struct warm_host *host, const struct warm_start *given, pid_t *pid,
	int *setup, struct error *err)
{
	struct start start;
	auto_close int ours = -1;
	auto_close int pidfd = -1;
	pid_t child;
	start_init(&start, given->plan, host->cgroups, given->cgroup);
	start.listener = given->listener;
	start.netns = given->netns;
	start.idmap = (struct start_idmap){ given->idmap, given->owner_uid, given->owner_gid,
		.is_borrowed = given->idmap >= 0 };
	start.own_netns = host->own_netns;
	start.mounts = host->mounts;
	start.own_mounts = host->own_mounts;
	start.has_root = given->has_root;
	start.parent = host->self;
	start.init_image = host->init_image;
	int failed = start_prepare(&start, err) || start_clone(&start, &ours, &pidfd, &child, err);
	if (!failed && start_let_go(&start, ours, child, err))
		failed = start_abandon(given->plan, child, ours, err);
	start_done(&start);
	if (failed)
		return -1;
	*pid = child;
	*setup = take_fd(&ours);
	return 0;
}

static void see_nothing(int seen[LAUNCH_FD_MAX])
{
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		seen[i] = -1;
}

static bool is_tmpfs(int fd)
{
	struct statfs fs;
	return fd >= 0 && !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC;
}

/* View root: the workspace is the root, and the tmpfs is mounted below it. */
static int open_scratch(int root)
{
	auto_close int tmp = openat(root, is_tmpfs(root) ? "." : "tmp", LOOK);
	return is_tmpfs(tmp) ? take_fd(&tmp) : -1;
}

/* Below mount points, which processes inside can't change; /env of view root may be theirs. */
static void see(const int fds[START_FD_MAX], int seen[LAUNCH_FD_MAX])
{
	see_nothing(seen);
	seen[LAUNCH_FD_PROC] = fds[START_PROC];
	seen[LAUNCH_FD_WORKSPACE] = fds[START_WORKSPACE];
	seen[LAUNCH_FD_TERMINALS] = openat(fds[START_ROOT], "dev/pts", LOOK);
	seen[LAUNCH_FD_ENVIRONMENT] = openat(fds[START_ROOT], &PLAN_ENV[1], LOOK);
	seen[LAUNCH_FD_SCRATCH] = open_scratch(fds[START_ROOT]);
}

static int native_receive(int setup, int seen[LAUNCH_FD_MAX], struct error *err)
{
	_Static_assert((int)START_PROC == SETUP_PROC && (int)START_ROOT == SETUP_ROOT &&
			       (int)START_WORKSPACE == SETUP_WORKSPACE,
		"the same places");
	struct setup_message message = { 0 };
	int came[SETUP_FD_MAX];
	int got = setup_receive(setup, false, &message, came);
	if (got < 0 && errno == EAGAIN)
		return 0;
	bool is_up = got == 1 && message.type == SETUP_DESCRIPTORS;
	if (is_up) {
		see(came, seen);
		came[SETUP_PROC] = came[SETUP_WORKSPACE] = -1;
	}
	setup_close(came);
	if (is_up)
		return 1;
	if (got == 1 && message.type == SETUP_FAILED) {
		*err = message.error;
		return error_adopt(err);
	}
	if (got == 0)
		return fail(err, ERR_CANCELED, "the sandbox was killed while it started");
	return fail_errno(err, "receive from the sandbox");
}

static int find(pid_t pid, int fds[START_FD_MAX], struct error *err)
{
	int failed = start_find(pid, PLAN_WORKSPACE, fds, err);
	if (failed >= 0)
		return failed;
	/* With view root there is no such directory, or one of the workspace's own. */
	failed = start_find(pid, PLAN_ROOT, fds, err);
	if (failed)
		return failed;
	auto_close int tmp = take_fd(&fds[START_ROOT]);
	fds[START_ROOT] = fcntl(fds[START_WORKSPACE], F_DUPFD_CLOEXEC, 3);
	return fds[START_ROOT] < 0 ? fail_errno(err, "keep the root open") : 0;
}

static int native_find(pid_t pid, int seen[LAUNCH_FD_MAX], struct error *err)
{
	int fds[START_FD_MAX];
	int failed = find(pid, fds, err);
	if (failed)
		return failed;
	see(fds, seen);
	fd_close(&fds[START_ROOT]);
	return 0;
}

static void add_place(struct held_look *look, int dir, const char *name, const char *inside)
{
	if (held_find_place(dir, name, inside, &look->places[look->place_count]))
		look->place_count++;
}

/* The writable trees that its disk limit is about, not what it shows of the host, which may be of
 * the file system of the cache. The others are overlays. */
static int native_measure(
	pid_t pid, bool counts_workspace, struct held_look *look, struct error *err)
{
	int fds[START_FD_MAX];
	struct stat st;
	if (find(pid, fds, err))
		return -1;
	*look = (struct held_look){ .proc = fds[START_PROC] };
	auto_close int root = fds[START_ROOT];
	auto_close int workspace = fds[START_WORKSPACE];
	add_place(look, root, PLAN_CACHE + 1, PLAN_CACHE);
	if (counts_workspace)
		add_place(look, workspace, "", NULL);
	if (!fstatat(root, &PLAN_ENV[1], &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode))
		add_place(look, root, &PLAN_ENV[1], NULL);
	return 0;
}

/* carrel-init is PID 1 of its namespace: the kernel takes the rest along. */
static void native_end(pid_t pid)
{
	kill(pid, SIGKILL);
}

/* Nothing that stays: a workspace is mounts. */
static int weak_start(const struct warm_host *host, const struct warm_start *given, pid_t *pid,
	int *setup, struct error *err)
{
	return fail(err, ERR_UNAVAILABLE, "--isolation landlock is for carrel run alone");
}

static const struct isolation backends[] = {
	{ "native", start_want_cgroup, native_start, native_receive, native_find, native_measure,
		native_end, sandbox_run },
	{ PLAN_ISOLATION_LANDLOCK, start_want_cgroup, weak_start, native_receive, native_find,
		native_measure, native_end, weak_run },
};

int isolation_find(const char *name, const struct isolation **isolation, struct error *err)
{
	for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
		if (!strcmp(backends[i].name, name)) {
			*isolation = &backends[i];
			return 0;
		}
	return fail_hint(err, ERR_UNAVAILABLE, "leave it out, or use --isolation native",
		"--isolation %s is not available in this version", name);
}

int isolation_run(const struct plan *plan, const struct cgroup_host *cgroups, struct sandbox_io *io,
	struct result *result, struct error *err)
{
	const struct isolation *isolation = NULL;
	if (isolation_find(plan->isolation, &isolation, err))
		return -1;
	return isolation->run(plan, cgroups, io, result, err);
}
