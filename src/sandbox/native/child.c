/* The child of a start: it is PID 1 of the new namespaces, builds its own root, locks itself in and
 * becomes carrel-init. What it does is in `steps` at the end, in order; each step fails with an
 * error that names it. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/trace.h"
#include "linux/capability.h"
#include "linux/mount.h"
#include "linux/namespace.h"
#include "linux/netns.h"
#include "linux/overlay.h"
#include "linux/pty.h"
#include "sandbox/native/child.h"
#include "sandbox/native/point.h"
#include "sandbox/native/root.h"
#include "sandbox/native/weak.h"
#include "sandbox/plan/programs.h"

/* A path of the sandbox, relative to its root. */
#define BELOW_ROOT(path) (&(path)[1])
static int wait_for_maps(struct sandbox_child *child, struct error *err)
{
	int none[SETUP_FD_MAX];
	if (child->plan->privileged)
		child_wait_for_parent(child, SETUP_GO, none);
	return 0;
}

/* This thread alone (worker.h). */
static int become_inside(const struct plan *plan, struct error *err)
{
	if (syscall(SYS_setresgid, plan->inside_gid, plan->inside_gid, plan->inside_gid) ||
		syscall(SYS_setresuid, plan->inside_uid, plan->inside_uid, plan->inside_uid))
		return fail_errno(err, "become uid %u", plan->inside_uid);
	return 0;
}

static int take_identity(struct sandbox_child *child, struct error *err)
{
	const struct plan *plan = child->plan;
	struct namespace_ids ids = { plan->inside_uid, plan->outside_uid, plan->inside_gid,
		plan->outside_gid };
	return plan->privileged ? become_inside(plan, err)
				: namespace_write_maps(0, &ids, true, err);
}

/* Closes the launcher's other descriptors: locks and sockets whose closing other processes wait
 * for, and possibly more than the limit of descriptors allows. */
static int close_others(struct sandbox_child *child, struct error *err)
{
	const struct start *start = child->start;
	size_t count = 0, trees = child->plan->mounts.count;
	if (start->listener < 0)
		return 0;
	int *kept = arena_array(&child->start->arena, trees + 4, sizeof *kept);
	const int own[] = { start->socket, start->listener, start->parent, start->init_image };
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		kept[count++] = own[i];
	for (size_t i = 0; i < trees; i++)
		kept[count++] = start->trees[i];
	if (fd_close_others(kept, (int)count))
		return fail_errno(err, "close the launcher's descriptors");
	return 0;
}

static int name_host(struct sandbox_child *child, struct error *err)
{
	/* No setsid here: carrel-init starts a session for each command, and is deaf to terminals
	 * itself. */
	if (sethostname(child->plan->hostname, strlen(child->plan->hostname)))
		return fail_errno(err, "set the host name");
	return 0;
}

static int make_network(void *ctx, struct error *err)
{
	struct sandbox_child *child = ctx;
	if (netns_leave_for_new(&child->netns, err))
		return -1;
	return plan_network_has_names(&child->plan->network) ? netns_add_ranges(err) : 0;
}

static bool makes_network(const struct sandbox_child *child)
{
	return child->plan->namespaces & NAMESPACE_NET && child->start->netns < 0;
}

static int begin_network(struct sandbox_child *child, struct error *err)
{
	if (!makes_network(child))
		return 0;
	if (worker_start(&child->worker, err))
		return -1;
	child->network = worker_do(&child->worker, make_network, child);
	return 0;
}

static int enter_network(struct sandbox_child *child, struct error *err)
{
	if (makes_network(child)) {
		if (worker_finish(&child->worker, child->network, err) ||
			netns_enter(child->netns, err))
			return -1;
		fd_close(&child->netns);
	}
	return 0;
}

/* Before anything of the sandbox's own runs, so that no process of it can have these ports. */
static int open_listeners(struct sandbox_child *child, struct error *err)
{
	static int (*const open_one[])(uint16_t port, int *fd, struct error *err) = {
		[LISTENER_PROXY] = netns_listen,
		[LISTENER_RESOLVER] = netns_bind,
		[LISTENER_RESOLVER_TCP] = netns_listen,
		[LISTENER_NAMES] = netns_listen_all,
	};
	const struct plan_network *network = &child->plan->network;
	for (size_t i = 0; i < network->listeners.count; i++) {
		const struct plan_listener *one = &network->listeners.items[i];
		if (open_one[one->kind](one->port, &child->report[SETUP_LISTENER + i], err))
			return -1;
	}
	return 0;
}

static int open_sources(struct sandbox_child *child, struct error *err)
{
	struct start *start = child->start;
	if (!start->has_root && sources_open(child->plan, false, &start->idmap, start->trees, err))
		return -1;
	return child->plan->privileged
		       ? 0
		       : sources_open(child->plan, true, &start->idmap, start->trees, err);
}

/* A tree must be attached before anything can be mounted in it. /usr is there on every host, its
 * own tree has been opened, and this namespace's old root goes away whole. */
static int make_own_root(struct sandbox_child *child, int tmpfs, struct error *err)
{
	child->root = tmpfs;
	return mount_attach(tmpfs, AT_FDCWD, "/usr", err) ||
			       root_make_points(tmpfs, child->plan, err)
		       ? -1
		       : 0;
}

/* The root is there: only what can be written to is our own. It is attached where the first of its
 * directories will cover it. */
static int take_base_root(struct sandbox_child *child, int tmpfs, struct error *err)
{
	const struct plan *plan = child->plan;
	child->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (child->root < 0)
		return fail_errno(err, "open '/'");
	bool is_attached = false;
	for (size_t i = 0; i < plan->mounts.count; i++) {
		const struct plan_mount *mount = &plan->mounts.items[i];
		if (mount->kind != MOUNT_SCRATCH)
			continue;
		if (!is_attached &&
			mount_attach(tmpfs, child->root, BELOW_ROOT(mount->target), err))
			return -1;
		is_attached = true;
		if (root_make_target(tmpfs, mount, err))
			return -1;
	}
	return 0;
}

/* Before the workspace covers them. */
static int open_hidden(struct sandbox_child *child, struct error *err)
{
	const char *name = BELOW_ROOT(PLAN_WORKSPACE);
	auto_close int masks = openat(child->root, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (child->scratch != child->root && mkdirat(child->scratch, name, 0755))
		return fail_errno(err, "make '%s'", PLAN_WORKSPACE);
	child->hidden = openat(child->scratch, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	child->mask = openat(masks, ROOT_MASK, O_PATH | O_CLOEXEC);
	child->mask_file = openat(masks, ROOT_MASK_FILE, O_PATH | O_CLOEXEC);
	if (child->hidden < 0 || child->mask < 0 || child->mask_file < 0)
		return fail_errno(err, "list the paths to mask");
	if (!child->plan->judged)
		return 0;
	child->programs = openat(
		child->scratch, BELOW_ROOT(PLAN_PROGRAMS), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return child->programs < 0 ? fail_errno(err, "open '%s'", PLAN_PROGRAMS) : 0;
}

static int make_root(struct sandbox_child *child, struct error *err)
{
	bool has_root = child->start->has_root; /* and its devices */
	unsigned attributes = MOUNT_ATTR_NOSUID | (has_root ? MOUNT_ATTR_NODEV : 0);
	if (root_make_tmpfs(child->plan->root_bytes, child->plan->root_inodes, 0755, attributes,
		    &child->scratch, err))
		return -1;
	umask(0);
	int failed = has_root ? take_base_root(child, child->scratch, err)
			      : make_own_root(child, child->scratch, err);
	return failed || open_hidden(child, err) ? -1 : 0;
}

static int make_files(void *ctx, struct error *err)
{
	struct sandbox_child *child = ctx;
	if (child->plan->privileged && become_inside(child->plan, err))
		return -1;
	if (!child->start->has_root && root_make_files(child->root, child->plan, err))
		return -1;
	return root_make_views(child->scratch, child->hidden, child->plan, err);
}

int child_finish_files(struct sandbox_child *child, struct error *err)
{
	if (child->has_files)
		return 0;
	child->has_files = true;
	return worker_finish(&child->worker, child->files, err);
}

static int attach_system(struct sandbox_child *child, struct error *err)
{
	/* Files are made in it until seal_mounts. */
	struct mount_change open = { .clear = MOUNT_ATTR_RDONLY };
	bool has_root = child->start->has_root;
	if (!has_root && (root_attach_system(child->root, child->plan, child->start->trees, err) ||
				 mount_change(child->root, "", &open, err)))
		return -1;
	child->files = worker_do(&child->worker, make_files, child);
	return has_root ? child_finish_files(child, err) : 0;
}

uint64_t child_attributes(unsigned flags)
{
	return MOUNT_ATTR_NOSUID | (flags & MOUNT_RO ? MOUNT_ATTR_RDONLY : 0) |
	       (flags & MOUNT_NODEV ? MOUNT_ATTR_NODEV : 0) |
	       (flags & MOUNT_NOEXEC ? MOUNT_ATTR_NOEXEC : 0);
}

/* The outer /proc must not be covered anywhere, or the kernel refuses a new one. */
static int open_proc(const struct plan_mount *mount, int *tree, struct error *err)
{
	static const char *const none[] = { NULL };
	if (!mount_make("proc", none, child_attributes(mount->flags), tree, err))
		return 0;
	if (err->sys_errno == EPERM)
		error_hint(err, "parts of /proc are covered by other mounts, as in a container: "
				"carrel doctor shows what to change");
	return -1;
}

#define TERMINALS_MAX "128" /* the kernel has 4,096 for everybody */

/* A terminal made from outside belongs to the sandbox's user all the same. */
static int open_devpts(
	struct sandbox_child *child, const struct plan_mount *mount, int *tree, struct error *err)
{
	char uid[16], gid[16];
	str_format(uid, sizeof uid, "%u", child->plan->inside_uid);
	str_format(gid, sizeof gid, "%u", child->plan->inside_gid);
	const char *const options[] = { "mode", "0620", "ptmxmode", "0666", "uid", uid, "gid", gid,
		"max", TERMINALS_MAX, NULL };
	return mount_make("devpts", options, child_attributes(mount->flags), tree, err);
}

/* A directory of the tmpfs that holds what is our own. */
static int open_scratch(
	struct sandbox_child *child, const struct plan_mount *mount, int *tree, struct error *err)
{
	if (mount_clone(child->scratch, BELOW_ROOT(mount->target), tree, err))
		return -1;
	struct mount_change change = { .set = child_attributes(mount->flags),
		.clear = mount->flags & MOUNT_RO ? 0 : MOUNT_ATTR_RDONLY };
	return mount_change(*tree, "", &change, err);
}

/* The parts are mounted already, below the working directory. */
static int make_overlay(const struct plan_mount *mount, int *tree, struct error *err)
{
	char upper[64], work[64];
	bool is_throwaway = !mount->tree->upper;
	const char *parts = BELOW_ROOT(mount->upper);
	str_format(upper, sizeof upper, "%s/upper", parts);
	str_format(work, sizeof work, "%s/work", parts);
	const struct overlay overlay = { .layers = BELOW_ROOT(PLAN_LAYERS),
		.lowers = mount->tree->lowers.items,
		.lower_count = mount->tree->lowers.count,
		.upper = upper,
		.work = work,
		.is_throwaway = is_throwaway,
		.scratch = BELOW_ROOT(PLAN_UPPER "/scratch") };
	if (is_throwaway && (mkdir(parts, 0755) || mkdir(upper, 0755) || mkdir(work, 0755)))
		return fail_errno(err, "make the upper of '%s'", mount->target);
	return overlay_make(&overlay, (unsigned)child_attributes(mount->flags), tree, err);
}

/* The lowest layer is what makes an environment one: no package takes a name from it. */
static int make_packages(
	const struct plan_mount *mount, struct arena *arena, int *tree, struct error *err)
{
	const text_list *all = &mount->tree->lowers;
	size_t from = mount->tree->frozen, last = all->count - 1;
	struct mount_change shut = { .set = child_attributes(mount->flags) };
	if (from == last)
		return mount_clone(AT_FDCWD,
			       arena_printf(
				       arena, "%s/%s", BELOW_ROOT(PLAN_LAYERS), all->items[last]),
			       tree, err) ||
				       mount_change(*tree, "", &shut, err)
			       ? -1
			       : 0;
	text_list lowers = { 0 };
	vec_push(arena, &lowers, all->items[last]);
	for (size_t i = from; i < last; i++)
		vec_push(arena, &lowers, all->items[i]);
	const struct overlay overlay = { .layers = BELOW_ROOT(PLAN_LAYERS),
		.lowers = lowers.items,
		.lower_count = lowers.count,
		.scratch = BELOW_ROOT(PLAN_UPPER "/scratch") };
	return overlay_make(&overlay, (unsigned)shut.set, tree, err);
}

/* Parts of overlays that are made already go: where other parts come, and before the workspace
 * covers their names. */
static int make_way(struct sandbox_child *child, const struct plan_mount *mount, struct error *err)
{
	static const char *const places[] = { PLAN_LAYERS, PLAN_UPPER };
	bool is_workspace = !strcmp(mount->target, child->plan->workspace->target);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		bool is_here = !strcmp(mount->target, places[i]);
		if (child->is_staged[i] && (is_here || is_workspace) &&
			(fchdir(child->root) || umount2(BELOW_ROOT(places[i]), MNT_DETACH)))
			return fail_errno(err, "unmount '%s'", places[i]);
		child->is_staged[i] = is_here || (child->is_staged[i] && !is_workspace);
	}
	return 0;
}

/* In the new root, so that no path of the host is in the mount's options, and a link that a home's
 * owner put in the place of a layer or of the upper leads nowhere else. */
static int open_overlay(
	struct sandbox_child *child, const struct plan_mount *mount, int *tree, struct error *err)
{
	auto_close int old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (old < 0 || fchdir(child->root) || chroot("."))
		return fail_errno(err, "enter the new root");
	int failed = mount->kind == MOUNT_OVERLAY
			     ? make_overlay(mount, tree, err)
			     : make_packages(mount, &child->start->arena, tree, err);
	if (!failed && (fchdir(old) || chroot(".")))
		failed = fail_errno(err, "leave the new root");
	return failed;
}

static int open_tree_of(struct sandbox_child *child, size_t index, int *tree, struct error *err)
{
	const struct plan_mount *mount = &child->plan->mounts.items[index];
	switch (mount->kind) {
	case MOUNT_TMPFS:
		return root_make_tmpfs(mount->size_bytes, mount->inodes, mount->mode,
			child_attributes(mount->flags), tree, err);
	case MOUNT_PROC:
		return open_proc(mount, tree, err);
	case MOUNT_DEVPTS:
		return open_devpts(child, mount, tree, err);
	case MOUNT_SCRATCH:
	case MOUNT_VIEWS:
		return open_scratch(child, mount, tree, err);
	case MOUNT_OVERLAY:
	case MOUNT_PACKAGES:
		return open_overlay(child, mount, tree, err);
	case MOUNT_AGAIN:
		return mount_clone(child->root, BELOW_ROOT(mount->source), tree, err);
	case MOUNT_BIND:
		break;
	}
	*tree = take_fd(&child->start->trees[index]);
	struct mount_change change = { .set = child_attributes(mount->flags), .recursive = true };
	return mount->flags & MOUNT_USER ? mount_change(*tree, "", &change, err) : 0;
}

/* Below a directory of the host or a shared tree, where nothing is created. */
static bool is_in_users(const struct plan *plan, const struct plan_mount *mount)
{
	for (const struct plan_mount *m = plan->mounts.items; m < mount; m++)
		if (m->kind == MOUNT_BIND && m->flags & MOUNT_USER && !(m->flags & MOUNT_STAGING) &&
			path_is_beneath(mount->target, m->target))
			return true;
	return false;
}

static int open_point(
	struct sandbox_child *child, const struct plan_mount *mount, int *at, struct error *err)
{
	const char *path = BELOW_ROOT(mount->target);
	if (mount->make_target)
		return point_open(child->root, path, mount->source_kind != PATH_FILE, at, err);
	*at = path_open_nolinks(child->root, path, O_PATH | O_CLOEXEC, 0);
	if (*at >= 0)
		return 0;
	fail_errno(err, "mount point '%s'", mount->target);
	return error_hint(err, "%s",
		is_in_users(child->plan, mount)
			? "create it on the host first: carrel creates no mount points in "
			  "your directories and in shared trees"
			: "choose a path outside the system's directories, which are read-only");
}

/* Where earlier sandboxes wrote, they may have left links: none is followed. */
static int attach(
	struct sandbox_child *child, const struct plan_mount *mount, int tree, struct error *err)
{
	if (!strcmp(mount->target, PLAN_ROOT))
		return mount_attach(tree, child->root, BELOW_ROOT(PLAN_WORKSPACE), err) ||
				       child_take_workspace_root(child, tree, err)
			       ? -1
			       : 0;
	if (mount->in_root)
		return mount_attach(tree, child->root, mount->target + 1, err);
	auto_close int at = -1;
	if (open_point(child, mount, &at, err))
		return -1;
	if (mount_attach(tree, at, "", err))
		return error_context(err, "'%s'", mount->target);
	return 0;
}

static int attach_others(struct sandbox_child *child, struct error *err)
{
	for (size_t i = 0; i < child->plan->mounts.count; i++) {
		const struct plan_mount *mount = &child->plan->mounts.items[i];
		/* Views lie in a root of our own already; it is read-only. */
		if (root_is_system(mount) ||
			(mount->kind == MOUNT_VIEWS && !child->start->has_root))
			continue;
		/* Files of the root are made by paths: none may lead into the user's trees. */
		if (mount->flags & MOUNT_USER && child_finish_files(child, err))
			return -1;
		auto_close int tree = -1;
		if (open_tree_of(child, i, &tree, err) || make_way(child, mount, err) ||
			attach(child, mount, tree, err))
			return -1;
		if (mount->kind == MOUNT_PROC)
			child->report[SETUP_PROC] = take_fd(&tree);
		else if (!strcmp(mount->target, child->plan->measured))
			child->report[SETUP_WORKSPACE] = take_fd(&tree);
		else if (mount->kind == MOUNT_TMPFS && !(mount->flags & MOUNT_RO) && !mount->tree)
			child->report[SETUP_UPPER] = take_fd(&tree);
	}
	return 0;
}

static int drop_old_root(void *ctx, struct error *err)
{
	return mount_drop_old_root(err);
}

static int enter_root(struct sandbox_child *child, struct error *err)
{
	if (child->start->has_root)
		return chdir("/") ? fail_errno(err, "enter '/'") : 0;
	if (child->start->mounts >= 0)
		return mount_cover_root(child->root, err);
	if (mount_pivot(child->root, err))
		return -1;
	if (plan_has_root_view(child->plan)) /* the masks lie in our own root, which goes with it */
		return 0;
	child->old_root = worker_do(&child->worker, drop_old_root, child);
	return 0;
}

static bool has_old_root(const struct sandbox_child *child)
{
	return !child->start->has_root && child->start->mounts < 0 &&
	       !plan_has_root_view(child->plan);
}

/* The workspace can be written to; of /proc nothing, which Landlock's rule for / would allow. */
static int seal_root_view(struct sandbox_child *child, struct error *err)
{
	struct mount_change shut = { .set = MOUNT_ATTR_RDONLY };
	if (child->start->mounts < 0 && mount_drop_old_root(err))
		return -1;
	return mount_change(child->report[SETUP_PROC], "", &shut, err);
}

/* Everything gets its last attributes at once. */
static int seal_mounts(struct sandbox_child *child, struct error *err)
{
	if (has_old_root(child)) /* the last moment for it: Landlock refuses to unmount */
		worker_begin(&child->worker, child->old_root);
	struct mount_change shut = { .set = MOUNT_ATTR_RDONLY };
	struct mount_change all = {
		.set = MOUNT_ATTR_NOSUID, .propagation = MS_PRIVATE, .recursive = true
	};
	int failed = plan_has_root_view(child->plan) ? seal_root_view(child, err)
						     : mount_change(child->root, "", &shut, err);
	return failed || mount_change(child->root, "", &all, err) ? -1 : 0;
}

static int open_terminal(struct sandbox_child *child, struct error *err)
{
	if (!child->plan->tty)
		return 0;
	auto_close int pts = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return pty_open(
		pts, &child->report[SETUP_PTY_MASTER], &child->report[SETUP_PTY_SLAVE], err);
}

/* A JVM looks for control groups in the list of mounts, then for files at the place it finds there.
 * So the cgroup2 of our own namespace is mounted, and the views cover it: nothing of it can be
 * reached. Where the kernel refuses it, programs look at the files alone. */
static int list_cgroup(struct sandbox_child *child, struct error *err)
{
	static const char *const none[] = { NULL };
	struct mount_change shut = { .set = child_attributes(
					     MOUNT_RO | MOUNT_NODEV | MOUNT_NOEXEC) };
	struct error ignored;
	auto_close int views = -1, groups = -1;
	if (!child->plan->has_unified ||
		mount_make("cgroup2", none, (unsigned)shut.set, &groups, &ignored))
		return 0;
	return mount_clone(AT_FDCWD, PLAN_CGROUP, &views, err) ||
			       mount_change(views, "", &shut, err) ||
			       mount_attach(groups, AT_FDCWD, PLAN_CGROUP, err) ||
			       mount_attach(views, AT_FDCWD, PLAN_CGROUP, err)
		       ? -1
		       : 0;
}

static int drop_capabilities(struct sandbox_child *child, struct error *err)
{
	if (strcmp(child->plan->capabilities, "none") != 0)
		return fail(err, ERR_UNAVAILABLE, "unknown set '%s'", child->plan->capabilities);
	return capability_drop_all(err);
}

/* The kernel takes its time to drop the old root: waited for as late as can be. */
static int finish_work(struct sandbox_child *child, struct error *err)
{
	if (has_old_root(child) && worker_finish(&child->worker, child->old_root, err))
		return -1;
	return worker_end(&child->worker, err);
}

static const struct child_step steps[] = {
	{ "descriptors", close_others },
	{ "host name", name_host },
	{ "network", begin_network },
	{ "mount", open_sources },
	{ "maps", wait_for_maps },
	{ "identity", take_identity },
	{ "root", make_root },
	{ "system mounts", attach_system },
	{ "other mounts", attach_others },
	{ "pivot_root", enter_root },
	{ "network", enter_network },
	{ "/proc", child_narrow_proc },
	{ "listeners", open_listeners },
	{ "programs", child_make_programs },
	{ "links of the system", child_cover_links },
	{ "denied paths", child_deny_paths },
	{ "mount attributes", seal_mounts },
	{ "terminal", open_terminal },
	{ "cgroup", child_join_cgroup },
	{ "view of the cgroup", list_cgroup },
	{ "limits", child_set_rlimits },
	{ "no_new_privs", child_no_new_privileges },
	{ "landlock", child_restrict_paths },
	{ "capabilities", drop_capabilities },
	{ "old root", finish_work },
	{ "parent-death signal", child_die_with_supervisor },
	{ "seccomp", child_filter_calls },
	{ "report", child_report },
	{ "init", child_become_init },
	{ NULL, NULL },
};

_Noreturn void child_do(struct start *start, const struct child_step *steps_of)
{
	struct sandbox_child child = { .start = start,
		.plan = start->plan,
		.root = -1,
		.scratch = -1,
		.hidden = -1,
		.netns = -1,
		.mask = -1,
		.mask_file = -1,
		.programs = -1 };
	struct setup_message message = { .magic = SETUP_MAGIC, .type = SETUP_FAILED };
	for (int i = 0; i < SETUP_FD_MAX; i++)
		child.report[i] = -1;
	for (const struct child_step *step = steps_of; step->run; step++) {
		if (step->run(&child, &message.error)) {
			/* A missing path is the user's error; any other error concerns the sandbox.
			 */
			if (message.error.code != ERR_NOT_FOUND)
				error_context(&message.error, "sandbox: %s", step->name);
			setup_send(start->socket, &message, NULL, 0);
			_exit(125);
		}
		trace_step(step->name);
	}
	_exit(125);
}

_Noreturn void child_main(struct start *start)
{
	trace_step("child: born");
	if (!plan_has_pids(start->plan))
		weak_main(start);
	child_do(start, steps);
}
