#include "sandbox/native/base.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "linux/mount.h"
#include "linux/namespace.h"
#include "linux/pidfd.h"
#include "sandbox/native/root.h"
#include "sandbox/native/start.h"

#define PROC "proc"

static int open_trees(const struct plan *plan, int *trees, struct error *err)
{
	/* Or what is mounted here would appear on the host. */
	struct mount_change alone = { .propagation = MS_PRIVATE, .recursive = true };
	if (mount_change(AT_FDCWD, "/", &alone, err))
		return -1;
	for (size_t i = 0; i < plan->mounts.count; i++)
		trees[i] = -1;
	struct start_idmap none = { .userns = -1 };
	return sources_open(plan, false, &none, trees, err);
}

/* The kernel allows a new mount of /proc only where a complete one is mounted already. This one
 * belongs to a pid namespace that has no processes once its maker has exited. */
static int attach_proc(int root, struct error *err)
{
	static const char *const none[] = { NULL };
	auto_close int proc = -1;
	unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	if (mount_make("proc", none, attributes, &proc, err))
		return -1;
	return mount_attach(proc, root, PROC, err);
}

static int fill_root(const struct plan *plan, int root, int *trees, struct error *err)
{
	return root_make_points(root, plan, err) || root_make_files(root, plan, err) ||
			       root_attach_system(root, plan, trees, err) || attach_proc(root, err)
		       ? -1
		       : 0;
}

static int build(const struct plan *plan, int *trees, int *mounts, struct error *err)
{
	auto_close int root = -1;
	umask(0);
	if (open_trees(plan, trees, err) ||
		root_make_tmpfs(65536, 256, 0755, MOUNT_ATTR_NOSUID, &root, err) ||
		mount_attach(root, AT_FDCWD, "/usr", err) || fill_root(plan, root, trees, err) ||
		mount_pivot(root, err) || mount_drop_old_root(err))
		return -1;
	return base_open_own(mounts, err);
}

static _Noreturn void become_maker(const struct plan *plan, int *trees, int socket)
{
	struct setup_message message = { .magic = SETUP_MAGIC, .type = SETUP_DESCRIPTORS };
	int mounts = -1;
	if (build(plan, trees, &mounts, &message.error))
		message.type = SETUP_FAILED;
	setup_send(socket, &message, &mounts, 1);
	_exit(0);
}

int base_open_own(int *fd, struct error *err)
{
	int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (own < 0)
		return fail_errno(err, "open '/proc/self/ns/mnt'");
	*fd = own;
	return 0;
}

static int receive(int socket, int *mounts, struct error *err)
{
	struct setup_message message = { 0 };
	int fds[SETUP_FD_MAX];
	int got = setup_receive(socket, true, &message, fds);
	*mounts = take_fd(&fds[0]);
	setup_close(fds);
	if (got == 1 && message.type == SETUP_FAILED) {
		*err = message.error;
		return -1;
	}
	if (got != 1 || *mounts < 0)
		return fail(err, ERR_FAILED, "the process that made it has ended");
	return 0;
}

static void note(const struct plan *plan, struct base *base)
{
	struct stat st;
	for (size_t i = 0; i < plan->mounts.count; i++) {
		const struct plan_mount *mount = &plan->mounts.items[i];
		if (root_is_target(mount))
			vec_push(&base->arena, &base->targets,
				arena_text(&base->arena, mount->target));
		if (!root_is_system(mount))
			continue;
		const char *source = path_normalize(
			&base->arena, mount->source, mount->beneath ? mount->beneath : ".");
		if (!lstat(source, &st))
			vec_push(&base->arena, &base->sources,
				(struct base_source){ source, st.st_dev, st.st_ino });
	}
}

int base_make(const struct plan *plan, struct base *base, struct error *err)
{
	int sockets[2], status;
	pid_t pid;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return fail_errno(err, "make a socket pair");
	auto_close int ours = sockets[0], theirs = sockets[1], pidfd = -1;
	*base = (struct base)BASE_NONE;
	arena_init(&base->arena);
	base->has_names = plan_network_has_names(&plan->network);
	int *trees = arena_array(&base->arena, plan->mounts.count, sizeof *trees);
	note(plan, base);
	if (namespace_clone(CLONE_NEWNS | CLONE_NEWPID, -1, &pidfd, &pid, err))
		return -1;
	if (pid == 0)
		become_maker(plan, trees, theirs);
	fd_close(&theirs);
	int failed = receive(ours, &base->mounts, err);
	pidfd_reap(pidfd, true, &status, NULL, NULL);
	return failed ? error_context(err, "make a base for sandboxes") : 0;
}

void base_done(struct base *base)
{
	fd_close(&base->mounts);
	arena_done(&base->arena);
	base->sources.count = base->targets.count = 0;
}

static bool has_target(const struct base *base, const char *target)
{
	for (size_t i = 0; i < base->targets.count; i++)
		if (!strcmp(base->targets.items[i], target))
			return true;
	return false;
}

bool base_has_root_for(const struct base *base, const struct plan *plan)
{
	if (plan_has_root_view(plan) || base->has_names != plan_network_has_names(&plan->network))
		return false;
	for (size_t i = 0; i < plan->mounts.count; i++)
		if (root_is_target(&plan->mounts.items[i]) &&
			!has_target(base, plan->mounts.items[i].target))
			return false;
	/* Who counts memory by file systems must find all of it at the root. */
	return base->mounts >= 0 && plan->limiter != LIMITER_WATCHDOG;
}

bool base_is_current(const struct base *base)
{
	struct stat st;
	for (size_t i = 0; i < base->sources.count; i++) {
		const struct base_source *source = &base->sources.items[i];
		if (lstat(source->path, &st) || st.st_dev != source->device ||
			st.st_ino != source->inode)
			return false;
	}
	return true;
}
