/* What a start is before and just after the clone, in the parent: the same for a sandbox that runs
 * one command and for one that stays. */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/trace.h"
#include "linux/child.h"
#include "linux/fd_message.h"
#include "linux/memfd.h"
#include "linux/mount.h"
#include "linux/namespace.h"
#include "linux/netns.h"
#include "sandbox/init/image.h"
#include "sandbox/native/start.h"

/* Those of the plan that a child is born with. A network namespace may be at hand, and one of
 * control groups is made in the group: the child does both. */
static uint64_t clone_flags(const struct plan *plan)
{
	static const struct {
		enum plan_namespace kind;
		uint64_t flag;
	} rows[] = { { NAMESPACE_USER, CLONE_NEWUSER }, { NAMESPACE_MOUNT, CLONE_NEWNS },
		{ NAMESPACE_PID, CLONE_NEWPID }, { NAMESPACE_IPC, CLONE_NEWIPC },
		{ NAMESPACE_UTS, CLONE_NEWUTS } };
	uint64_t flags = 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		flags |= plan->namespaces & rows[i].kind ? rows[i].flag : 0;
	return flags;
}

/* A sealed copy (memfd), at no path of the host. */
int start_open_image(int *image, struct error *err)
{
	auto_close int fd = memfd_create_program("carrel-init");
	if (fd < 0)
		return fail_errno(err, "make a memfd for carrel-init");
	if (fd_write_full(fd, init_image, init_image_len) != (ssize_t)init_image_len) {
		fail_errno(err, "write carrel-init into its memfd");
		return err->sys_errno == EFBIG ? error_hint(err, "ulimit -f shows the file size "
								 "limit of this shell; raise it")
					       : -1;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		return fail_errno(err, "seal the memfd of carrel-init");
	*image = take_fd(&fd);
	return 0;
}

void start_init(struct start *start, const struct plan *plan, const struct cgroup_host *cgroups,
	struct cgroup *group)
{
	*start = (struct start){ .plan = plan,
		.cgroups = cgroups,
		.cgroup = group,
		.socket = -1,
		.listener = -1,
		.parent = -1,
		.netns = -1,
		.own_netns = -1,
		.idmap = { .userns = -1 },
		.mounts = -1,
		.own_mounts = -1,
		.init_image = -1 };
	arena_init(&start->arena);
}

void start_want_cgroup(const struct plan *plan, struct cgroup_want *want)
{
	*want = (struct cgroup_want){
		.memory_bytes = plan->limits.memory_bytes,
		.millicpus = plan->limits.millicpus,
		.pids = plan->limits.pids + 1,
		.count_cpu = plan->limits.cpu_time_ms != 0 || plan->warm,
	};
}

static int make_cgroup(const struct start *start, struct error *err)
{
	struct cgroup_want want;
	start_want_cgroup(start->plan, &want);
	return cgroup_create(start->cgroups, &want, start->cgroup, err);
}

/* ---- sources ----
 * Opening what a sandbox will see of the host. As root the parent does it for what the user named,
 * since the child's outside uid can't walk into a 0700 directory; a plain user's child does it
 * itself, before anything is covered. */

/* The map for files of that mount's owner: the one at hand, or a new one, which is then at hand. */
static int find_map(const struct plan *plan, const struct plan_mount *mount,
	struct start_idmap *idmap, struct error *err)
{
	if (idmap->userns >= 0 && idmap->owner_uid == mount->owner_uid &&
		idmap->owner_gid == mount->owner_gid)
		return 0;
	int userns;
	if (namespace_make_idmap(mount->owner_uid, mount->owner_gid, plan->outside_uid,
		    plan->outside_gid, &userns, err))
		return -1;
	start_idmap_done(idmap);
	*idmap = (struct start_idmap){ userns, mount->owner_uid, mount->owner_gid, false };
	return 0;
}

void start_idmap_done(struct start_idmap *idmap)
{
	if (!idmap->is_borrowed)
		fd_close(&idmap->userns);
	idmap->userns = -1;
}

static int map_owner(const struct plan *plan, const struct plan_mount *mount,
	struct start_idmap *idmap, int tree, struct error *err)
{
	if (find_map(plan, mount, idmap, err))
		return -1;
	struct mount_change change = {
		.set = MOUNT_ATTR_IDMAP, .idmap = idmap->userns, .recursive = true
	};
	if (mount_change(tree, "", &change, err)) {
		fail_errno_code(err, ERR_UNAVAILABLE,
			"'%s': its file system can't be mounted idmapped for the sandbox's user",
			mount->source);
		return error_hint(err,
			"use a directory on ext4, xfs, btrfs or tmpfs, or run carrel as its owner");
	}
	return 0;
}

int source_open(const struct plan_mount *mount, int *fd, struct error *err)
{
	auto_close int path = open(mount->source, O_PATH | O_CLOEXEC);
	if (path < 0)
		return fail_errno(err, "open '%s'", mount->source);
	if (!mount->beneath) {
		*fd = take_fd(&path);
		return 0;
	}
	auto_close int below = path_open_nolinks(path, mount->beneath, O_PATH | O_CLOEXEC, 0);
	if (below < 0)
		return fail_errno(err, "open '%s' in '%s'", mount->beneath, mount->source);
	*fd = take_fd(&below);
	return 0;
}

static int clone_source(const struct plan_mount *mount, int *tree, struct error *err)
{
	auto_close int path = -1;
	bool is_descriptor = !strncmp(mount->source, PLAN_DESCRIPTORS, sizeof PLAN_DESCRIPTORS - 1);
	if (!mount->beneath && !is_descriptor) /* one call less for each directory of the system */
		return mount_clone(AT_FDCWD, mount->source, tree, err);
	return source_open(mount, &path, err) ? -1 : mount_clone(path, "", tree, err);
}

int sources_open(const struct plan *plan, bool user, struct start_idmap *idmap, int *trees,
	struct error *err)
{
	for (size_t i = 0; i < plan->mounts.count; i++) {
		const struct plan_mount *mount = &plan->mounts.items[i];
		if (mount->kind != MOUNT_BIND || !!(mount->flags & MOUNT_USER) != user)
			continue;
		if (clone_source(mount, &trees[i], err))
			return -1;
		/* Before anything is mounted in it: a clone of a shared mount is its peer, and what
		 * is mounted here would appear on the host, and stay. */
		struct mount_change alone = { .propagation = MS_PRIVATE, .recursive = true };
		if (user && mount_change(trees[i], "", &alone, err))
			return -1;
		if (mount->idmap && map_owner(plan, mount, idmap, trees[i], err))
			return -1;
	}
	return 0;
}

/* ---- the start ---- */

/* What root must do before the clone, because the child can't: lose its groups (setgroups is denied
 * inside), and lift hard limits that are lower than the plan's. */
static int prepare_root(const struct plan *plan, struct error *err)
{
	if (!plan->privileged)
		return 0;
	if (setgroups(0, NULL))
		return fail_errno(err, "drop supplementary groups");
	for (size_t i = 0; i < plan->rlimits.count; i++) {
		const struct plan_rlimit *limit = &plan->rlimits.items[i];
		struct rlimit now;
		if (getrlimit((unsigned)limit->resource, &now) || now.rlim_max >= limit->value)
			continue;
		now.rlim_max = limit->value;
		if (setrlimit((unsigned)limit->resource, &now))
			return fail_errno(err, "raise the hard limit '%s' to %llu", limit->name,
				(unsigned long long)limit->value);
	}
	return 0;
}

int start_prepare(struct start *start, struct error *err)
{
	const struct plan *plan = start->plan;
	start->trees = arena_array(&start->arena, plan->mounts.count, sizeof *start->trees);
	for (size_t i = 0; i < plan->mounts.count; i++)
		start->trees[i] = -1;
	if (prepare_root(plan, err) ||
		(plan->privileged && sources_open(plan, true, &start->idmap, start->trees, err)))
		return -1;
	bool is_missing = plan->limiter == LIMITER_CGROUP_V2 && !start->cgroup->dir_count;
	return is_missing ? make_cgroup(start, err) : 0;
}

/* A child is born where its parent is: in a network namespace and among mounts that are ready, when
 * there are such. */
static int enter(int netns, int mounts)
{
	return (netns >= 0 && setns(netns, CLONE_NEWNET)) ||
			       (mounts >= 0 && setns(mounts, CLONE_NEWNS))
		       ? -1
		       : 0;
}

static int clone_there(const struct start *start, int *pidfd, pid_t *pid, struct error *err)
{
	bool has_netns = start->netns >= 0, has_mounts = start->mounts >= 0;
	*pid = -1;
	int failed = enter(start->netns, start->mounts)
			     ? fail_errno(err, "enter the namespaces of a sandbox")
			     : 0;
	/* The child has no rights in a network namespace that isn't its own. */
	if (!failed && has_netns && plan_network_has_names(&start->plan->network))
		failed = netns_add_ranges(err);
	uint64_t flags = clone_flags(start->plan);
	int group = start->cgroup->clone_into;
	if (!failed)
		failed = flags || group >= 0 ? namespace_clone(flags, group, pidfd, pid, err)
					     : namespace_fork(pidfd, pid, err);
	/* A process that can't return to its own namespaces must not go on: it would act on the
	 * wrong sandbox. */
	if (*pid && enter(has_netns ? start->own_netns : -1, has_mounts ? start->own_mounts : -1))
		abort();
	return failed;
}

int start_clone(struct start *start, int *setup, int *pidfd, pid_t *pid, struct error *err)
{
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return fail_errno(err, "make a socket pair");
	auto_close int ours = sockets[0];
	auto_close int theirs = sockets[1];
	start->socket = theirs;
	trace_step("parent: prepared");
	if (clone_there(start, pidfd, pid, err))
		return -1;
	if (*pid == 0) {
		close(ours);
		child_main(start);
	}
	trace_step("parent: cloned");
	start->socket = -1;
	*setup = take_fd(&ours);
	return 0;
}

int start_find(pid_t pid, const char *measured, int fds[START_FD_MAX], struct error *err)
{
	/* View root: the workspace is its root; what is to be measured of the sandbox's own lies
	 * below /tmp. */
	bool is_root = !strcmp(measured, PLAN_ROOT);
	const char *const names[START_FD_MAX] = { "proc", is_root ? "tmp" : ".",
		is_root ? "." : measured + 1 };
	char path[48];
	str_format(path, sizeof path, "/proc/%d/root", (int)pid);
	auto_close int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0) {
		/* Only an exiting process has no root. */
		bool is_exiting = errno == ENOENT || errno == ESRCH;
		fail_errno(err, "open '%s'", path);
		return is_exiting ? 1 : -1;
	}
	for (int i = 0; i < START_FD_MAX; i++) {
		fds[i] = openat(root, names[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fds[i] >= 0)
			continue;
		fail_errno(err, "open '%s/%s'", path, names[i]);
		while (i)
			fd_close(&fds[--i]);
		return -1;
	}
	return 0;
}

int start_end_signal(const struct plan *plan)
{
	return plan_has_pids(plan) ? SIGKILL : SIGTERM;
}

int start_abandon(const struct plan *plan, pid_t pid, int setup, struct error *err)
{
	struct setup_message message = { 0 };
	int fds[SETUP_FD_MAX];
	struct child child = { pid, -1, -1 };
	kill(pid, start_end_signal(plan));
	child_wait(&child);
	int got = setup_receive(setup, false, &message, fds);
	setup_close(fds);
	if (got == 1 && message.type == SETUP_FAILED) {
		*err = message.error;
		return error_adopt(err);
	}
	/* Killed from outside before it had all of what it waits for. */
	if (err->sys_errno == EPIPE || err->sys_errno == ECONNRESET)
		return fail(err, ERR_CANCELED, "the sandbox was killed while it started");
	return -1;
}

/* The child works already, and waits for each only where it needs it. */
int start_let_go(const struct start *start, int setup, pid_t pid, struct error *err)
{
	const struct plan *plan = start->plan;
	struct cgroup *group = start->cgroup;
	struct namespace_ids ids = { plan->inside_uid, plan->outside_uid, plan->inside_gid,
		plan->outside_gid };
	struct setup_message go = { .magic = SETUP_MAGIC, .type = SETUP_GO };
	struct setup_message enter = { .magic = SETUP_MAGIC, .type = SETUP_CGROUP };
	bool has_maps = plan->privileged && plan->namespaces & NAMESPACE_USER;
	fault_point("sandbox_let_go");
	if (has_maps && namespace_write_maps(pid, &ids, true, err))
		return -1;
	if (has_maps && setup_send(setup, &go, NULL, 0))
		return fail_errno(err, "start the sandbox");
	if (plan->limiter != LIMITER_CGROUP_V1)
		return 0;
	if (!group->dir_count && make_cgroup(start, err))
		return -1;
	if (setup_send(setup, &enter, group->enter, group->dir_count))
		return fail_errno(err, "start the sandbox");
	return 0;
}

void start_done(struct start *start)
{
	for (size_t i = 0; start->trees && i < start->plan->mounts.count; i++)
		fd_close(&start->trees[i]);
	start->trees = NULL;
	start_idmap_done(&start->idmap);
	arena_done(&start->arena);
}

int setup_send(int socket, struct setup_message *message, const int *fds, int count)
{
	int packed[SETUP_FD_MAX], packed_count = 0;
	message->present = 0;
	for (int i = 0; i < count; i++) {
		if (fds[i] < 0)
			continue;
		message->present |= 1u << i;
		packed[packed_count++] = fds[i];
	}
	struct iovec part = { message, sizeof *message };
	ssize_t sent = fd_message_send(socket, &part, 1, packed, packed_count, 0);
	return sent == (ssize_t)sizeof *message ? 0 : -1;
}

int setup_receive(int socket, bool wait, struct setup_message *message, int fds[SETUP_FD_MAX])
{
	struct fd_message came;
	for (int i = 0; i < SETUP_FD_MAX; i++)
		fds[i] = -1;
	ssize_t got;
	/* A peer that died with unread packets leaves one ECONNRESET in front of what it said. */
	do
		got = fd_message_receive(
			socket, message, sizeof *message, wait ? 0 : MSG_DONTWAIT, &came);
	while (got < 0 && errno == ECONNRESET);
	if (got <= 0)
		return got == 0 ? 0 : -1;
	int taken = 0;
	bool is_whole = got == (ssize_t)sizeof *message;
	for (int i = 0; i < SETUP_FD_MAX; i++)
		if (is_whole && message->present & 1u << i && taken < came.fd_count)
			fds[i] = came.fds[taken++];
	fd_message_close(&came, taken);
	if (!is_whole || message->magic != SETUP_MAGIC) {
		errno = EPROTO;
		return -1;
	}
	return 1;
}

void setup_close(int fds[SETUP_FD_MAX])
{
	for (int i = 0; i < SETUP_FD_MAX; i++)
		fd_close(&fds[i]);
}
