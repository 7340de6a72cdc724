/* One start: a message of core's becomes a plan, the plan a child; and the release of what was
 * taken for it. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "envs/builder/environment.h"
#include "envs/kind.h"
#include "launch/internal.h"
#include "linux/unix_address.h"
#include "model/nouns/part.h"

#define BACKLOG 4 /* masters of one init: a core, and one that replaces it */

/* ---- environments that sandboxes use ---- */

static struct pin *find_pin(const struct launcher *launcher, const struct stat *st)
{
	for (struct pin *known = launcher->pins; known; known = known->next)
		if (known->device == st->st_dev && known->inode == st->st_ino)
			return known;
	return NULL;
}

/* `fd` came from core and stays the caller's. ERR_DENIED: not a file of the home's owner. */
static int pin_take(struct launcher *launcher, int fd, struct pin **pin, struct error *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return fail_errno(err, "look at meta.json of an environment");
	if (!S_ISREG(st.st_mode) || st.st_uid != launcher->home->uid)
		return fail(err, ERR_DENIED,
			"meta.json of an environment does not belong to the home's owner");
	struct pin *found = find_pin(launcher, &st);
	if (found) {
		found->users++;
		*pin = found;
		return 0;
	}
	auto_close int held = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (held < 0)
		return fail_errno(err, "keep meta.json of an environment open");
	struct pin *made = xzalloc(sizeof *made);
	*made = (struct pin){ take_fd(&held), st.st_dev, st.st_ino, 1, launcher->pins };
	launcher->pins = *pin = made;
	return 0;
}

struct pin *pin_take_over(struct launcher *launcher, int fd)
{
	struct stat st = { 0 };
	struct pin *made = xzalloc(sizeof *made);
	fstat(fd, &st);
	*made = (struct pin){ fd, st.st_dev, st.st_ino, 0, launcher->pins };
	return launcher->pins = made;
}

static void pin_release(struct launcher *launcher, struct pin *pin)
{
	if (!pin || --pin->users)
		return;
	struct pin **at = &launcher->pins;
	while (*at != pin)
		at = &(*at)->next;
	*at = pin->next;
	fd_close(&pin->fd);
	free(pin);
}

/* ---- what it is about ---- */

struct start_trees {
	struct launcher *launcher;
	struct arena *arena;
	const char *upper; /* the directory of the workspace, below the home */
	struct plan_tree workspace;
	struct environment_mount environments[LAUNCH_TREES_MAX];
	size_t count; /* of them */
};

/* Checks directories that core has made, by names built here, following no link. */
static int check_directory(
	const struct launcher *launcher, const char *path, const char *what, struct error *err)
{
	struct stat st;
	home_enter(launcher->home);
	auto_close int fd =
		path_open_nolinks(launcher->home->dir, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	int failed = fd < 0 ? fail_errno(err, "open %s '%s'", what, path) : 0;
	home_leave(launcher->home);
	if (!failed && (fstat(fd, &st) || st.st_uid != launcher->home->uid))
		failed = fail(
			err, ERR_DENIED, "%s '%s' does not belong to the home's owner", what, path);
	return failed;
}

/* The directories of an overlay's upper. */
static int check_upper(struct launcher *launcher, const char *upper, const char *what,
	struct arena *arena, struct error *err)
{
	return check_directory(launcher, arena_printf(arena, "%s/upper", upper), what, err) ||
			       check_directory(
				       launcher, arena_printf(arena, "%s/work", upper), what, err)
		       ? -1
		       : 0;
}

/* Of each frozen layer that core named, the directory of this tree (`part`). What had no changes
 * when the layer was frozen has none; the layer itself must be there. */
static int list_frozen(const struct start_trees *trees, const struct launch_tree *said,
	const char *part, text_list *lowers, struct error *err)
{
	const struct launcher *launcher = trees->launcher;
	auto_leave const struct home *home = home_entered(launcher->home);
	for (size_t i = 0; i < said->layer_count && launch_layer_is_frozen(said->layers[i]); i++) {
		const char *name = arena_printf(trees->arena, "%s/%s", said->layers[i], part);
		struct stat st;
		auto_close int layer = openat(launcher->layers.dir, said->layers[i],
			O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (layer < 0 && errno == ENOENT)
			return fail(err, ERR_CORRUPT, "layer '%s' is missing", said->layers[i]);
		if (layer < 0)
			return fail_errno(err, "open layer '%s'", said->layers[i]);
		if (fstatat(layer, part, &st, AT_SYMLINK_NOFOLLOW)) {
			if (errno != ENOENT)
				return fail_errno(err, "look at layer '%s'", name);
			continue;
		}
		if (!S_ISDIR(st.st_mode) || st.st_uid != home->uid)
			return fail(err, ERR_DENIED,
				"layer '%s' is not a directory of the home's owner", name);
		vec_push(trees->arena, lowers, name);
	}
	return 0;
}

/* Above the layers of its packages lies what was frozen. */
static int add_frozen(struct start_trees *trees, const struct launch_tree *said, const char *part,
	struct plan_tree *tree, struct error *err)
{
	text_list lowers = { 0 };
	if (list_frozen(trees, said, part, &lowers, err))
		return -1;
	tree->frozen = lowers.count;
	for (size_t i = 0; i < tree->lowers.count; i++)
		vec_push(trees->arena, &lowers, tree->lowers.items[i]);
	tree->lowers = lowers;
	return 0;
}

/* What core says of it, as meta.json would: environment_mount checks it. */
static int add_environment(struct start_trees *trees, const struct launch_tree *said, int fd,
	struct plan_options *options, struct start_parts *parts, struct error *err)
{
	struct launcher *launcher = trees->launcher;
	struct arena *arena = trees->arena;
	const struct env_kind *kind = env_kind_find(said->kind);
	if (!kind)
		return fail(err, ERR_INVALID, "unknown kind of environment '%s'", said->kind);
	const char *upper = arena_printf(arena, "%s/%s", trees->upper, kind->part->directory);
	struct env_meta meta = { .name = said->name, .kind = said->kind };
	env_meta_set_interpreter(&meta, said->python[0] ? said->python : NULL);
	meta.python_prefix = said->prefix[0] ? said->prefix : NULL;
	for (size_t i = 0; i + 1 < said->tool_count; i += 2)
		vec_push(arena, &meta.tools,
			(struct text_pair){ said->tools[i], said->tools[i + 1] });
	for (size_t i = 0; i < said->editable_count; i++)
		vec_push(arena, &meta.editables, said->editables[i]);
	for (size_t i = 0; i < said->layer_count; i++)
		if (!launch_layer_is_frozen(said->layers[i]))
			vec_push(arena, &meta.layers, said->layers[i]);
	size_t index = trees->count++;
	if (check_upper(launcher, upper, "the environment's upper", arena, err) ||
		pin_take(launcher, fd, &parts->environments[index], err))
		return -1;
	struct environment_mount *mount = &trees->environments[index];
	return environment_mount(&launcher->layers, &meta, upper, arena, options, mount, err) ||
			       add_frozen(trees, said, kind->part->name, &mount->plan, err)
		       ? -1
		       : 0;
}

/* An overlay from the first start on, also without layers: in a plain directory a command could set
 * the marks of overlays itself. */
static int add_workspace(struct start_trees *trees, const struct launch_packet *packet,
	struct plan_options *options, struct error *err)
{
	const struct home *home = trees->launcher->home;
	trees->workspace = (struct plan_tree){ .base = home->path,
		.layers = "layers",
		.upper = trees->upper,
		.owner_uid = home->uid,
		.owner_gid = home->gid };
	bool is_root = plan_view_is_root(options->view);
	for (size_t i = 0; is_root && i < packet->tree_count; i++)
		if (packet->trees[i].name[0])
			vec_push(trees->arena, &trees->workspace.lowers,
				env_kind_find(packet->trees[i].kind)->root_layer);
	vec_push(trees->arena, &trees->workspace.lowers, is_root ? LAYER_ROOT : LAYER_EMPTY);
	options->workspace = &trees->workspace;
	return check_upper(trees->launcher, trees->upper, "the workspace", trees->arena, err);
}

static int add_trees(struct start_trees *trees, const struct launch_packet *packet, const int *fds,
	struct plan_options *options, struct start_parts *parts, struct error *err)
{
	for (size_t i = 0; i < packet->tree_count; i++) {
		const struct launch_tree *said = &packet->trees[i];
		if (said->name[0] ? add_environment(trees, said, *fds++, options, parts, err)
				  : add_frozen(trees, said, workspace_parts[PART_WORKSPACE].name,
					    &trees->workspace, err))
			return -1;
	}
	return 0;
}

/* A place of its own for init to listen at. The name is bound through the directory's descriptor:
 * that of a home may be longer than an address can be. */
static int open_listener(
	struct launcher *launcher, const char *id, bool *is_bound, int *listener, struct error *err)
{
	struct sockaddr_un address;
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail_errno(err, "make a socket");
	if (unix_address_in(launcher->sockets, id, &address))
		return fail_errno(err, "name 'run/sb/%s'", id);
	home_enter(launcher->home);
	unlinkat(launcher->sockets, id, 0); /* no sandbox of that id runs */
	int failed = bind(fd, (struct sockaddr *)&address, sizeof address)
			     ? fail_errno(err, "bind 'run/sb/%s'", id)
			     : 0;
	home_leave(launcher->home);
	if (failed)
		return -1;
	*is_bound = true;
	if (listen(fd, BACKLOG))
		return fail_errno(err, "listen at 'run/sb/%s'", id);
	*listener = take_fd(&fd);
	return 0;
}

/* ---- carried out ---- */

static void forget_counters(int counters[LAUNCH_FD_MAX])
{
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		counters[i] = -1;
}

static void close_counters(int counters[LAUNCH_FD_MAX])
{
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		fd_close(&counters[i]);
}

static int take_identity(struct launcher *launcher, struct start_parts *parts,
	struct plan_facts *facts, struct pool_kit *kit, struct error *err)
{
	if (!facts->privileged)
		return 0;
	if (!pool_take_kit(&launcher->pool, kit) && slots_take(&launcher->slots, &kit->uid, err))
		return -1;
	parts->uid = facts->outside_uid = facts->outside_gid = kit->uid;
	return 0;
}

static int take_cgroup(struct launcher *launcher, const struct plan *plan,
	struct start_parts *parts, struct cgroup *group, struct error *err)
{
	struct cgroup_want want;
	fault_point("launch_start_bound");
	parts->limiter = plan->limiter;
	if (plan->limiter == LIMITER_WATCHDOG)
		return 0;
	parts->isolation->prepare(plan, &want);
	if (pool_take_cgroup(&launcher->pool, &want, group, err))
		return -1;
	parts->has_cgroup = true;
	parts->has_cpu = want.millicpus != 0;
	parts->cgroup = want.number;
	return 0;
}

static int open_counters(const struct cgroup *group, int counters[LAUNCH_FD_MAX], struct error *err)
{
	short events;
	counters[LAUNCH_FD_SOCKETS] = cgroup_open_sockets(group);
	return cgroup_open_counters(group, &counters[LAUNCH_FD_OOM_COUNT], &counters[LAUNCH_FD_CPU],
		       err) || cgroup_watch_oom(group, &counters[LAUNCH_FD_OOM], &events, err)
		       ? -1
		       : 0;
}

static int start_carry_out(struct launcher *launcher, const char *id, const struct plan *plan,
	const struct pool_kit *kit, struct start_parts *parts, pid_t *pid, int *setup,
	struct error *err)
{
	struct cgroup group;
	struct error ignored; /* it is tried again, and told, when the sandbox is up */
	auto_close int listener = -1;
	cgroup_init(&group);
	int failed = isolation_find(plan->isolation, &parts->isolation, err) ||
		     open_listener(launcher, id, &parts->has_socket, &listener, err) ||
		     take_cgroup(launcher, plan, parts, &group, err);
	if (!failed) {
		const struct base *base = launcher_base(launcher, plan);
		struct warm_host host = launcher->warm;
		host.mounts = base->mounts;
		struct warm_start start = { .plan = plan,
			.listener = listener,
			.netns = kit->netns,
			.idmap = kit->idmap,
			.has_root = base_has_root_for(base, plan),
			.owner_uid = launcher->home->uid,
			.owner_gid = launcher->home->gid,
			.cgroup = &group };
		failed = parts->isolation->start(&host, &start, pid, setup, err);
	}
	/* Now, while the child works. */
	if (!failed && parts->has_cgroup && open_counters(&group, parts->counters, &ignored))
		close_counters(parts->counters);
	cgroup_done(&group);
	return failed ? -1 : 0;
}

/* Which of the two modes it is decides core, with the policy. */
static void add_ports(
	const struct launch_message *head, struct arena *arena, struct plan_network *network)
{
	uint16_t ports[PLAN_PORTS_MAX];
	size_t count = launch_unpack_ports(head->other, ports);
	for (size_t i = 0; i < count; i++)
		vec_push(arena, &network->ports, ports[i]);
}

int start_begin(struct launcher *launcher, const struct launch_packet *packet, const int *fds,
	struct start_parts *parts, pid_t *pid, int *setup, struct error *err)
{
	const struct launch_message *head = &packet->head;
	auto_arena struct arena arena = { 0 };
	forget_counters(parts->counters);
	struct start_trees trees = { .launcher = launcher,
		.arena = &arena,
		.upper = arena_printf(&arena, "workspaces/%s", head->id) };
	struct plan plan;
	struct plan_bind cache = { .source = launcher->home->path,
		.beneath = arena_printf(&arena, "%s/cache", trees.upper),
		.kind = PATH_DIRECTORY,
		.owner_uid = launcher->home->uid,
		.owner_gid = launcher->home->gid };
	struct plan_network network = { .mode = head->flags & LAUNCH_NETWORK ? NETWORK_LIST
									     : NETWORK_NONE };
	struct plan_options options = {
		.warm = true,
		.network = &network,
		.cache = &cache,
		.writable_config = true,
		.home = launcher->home->path,
		.limits = head->limits,
		.judged = head->flags & LAUNCH_JUDGED,
		.ptrace = head->flags & LAUNCH_PTRACE,
		.view = head->flags & LAUNCH_ROOT_VIEW ? VIEW_ROOT : VIEW_WORKSPACE,
	};
	add_ports(head, &arena, &network);
	for (size_t i = 0; i < packet->denial_count; i++)
		vec_push(&arena, &options.denials, packet->denials[i]);
	if (launcher_look(launcher, err) || add_workspace(&trees, packet, &options, err) ||
		check_directory(launcher, cache.beneath, "the workspace's cache", err) ||
		add_trees(&trees, packet, fds, &options, parts, err))
		return -1;
	struct plan_facts facts = launcher->host.facts;
	struct pool_kit kit = POOL_KIT_NONE;
	struct granted granted = { .count = 0 };
	int failed = grants_apply(launcher, head->id, &arena, &options, &facts, &granted, err) ||
		     take_identity(launcher, parts, &facts, &kit, err) ||
		     plan_build(&options, &facts, &arena, &plan, err) ||
		     start_carry_out(launcher, head->id, &plan, &kit, parts, pid, setup, err);
	pool_kit_done(&kit);
	grants_done(&granted);
	for (size_t i = 0; i < trees.count; i++)
		environment_unmount(&trees.environments[i]);
	return failed ? -1 : 0;
}

/* ---- release ---- */

void start_release(struct launcher *launcher, const char *id, struct start_parts *parts)
{
	if (parts->has_socket) {
		home_enter(launcher->home);
		unlinkat(launcher->sockets, id, 0);
		home_leave(launcher->home);
	}
	if (parts->uid)
		slots_give(&launcher->slots, parts->uid);
	for (size_t i = 0; i < LAUNCH_TREES_MAX; i++)
		pin_release(launcher, parts->environments[i]);
	if (parts->has_cgroup)
		pool_drop_cgroup(&launcher->pool, parts->cgroup);
	close_counters(parts->counters);
	*parts = (struct start_parts){ 0 };
	forget_counters(parts->counters);
}

int start_open_counters(struct launcher *launcher, struct start_parts *parts,
	int fds[LAUNCH_FD_MAX], struct error *err)
{
	struct cgroup_want want = {
		.number = parts->cgroup, .millicpus = parts->has_cpu, .count_cpu = true
	};
	struct cgroup group;
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		if (parts->counters[i] >= 0)
			fds[i] = parts->counters[i];
	forget_counters(parts->counters);
	if (!parts->has_cgroup || fds[LAUNCH_FD_OOM] >= 0)
		return 0;
	if (cgroup_find(&launcher->host.cgroups, &want, &group, err))
		return -1;
	int failed = open_counters(&group, fds, err);
	cgroup_done(&group);
	return failed;
}
