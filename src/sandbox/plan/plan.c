#include "sandbox/plan/plan.h"

#include <sys/resource.h>
#include "base/path.h"
#include "sandbox/plan/grants.h"
#include "sandbox/plan/programs.h"

/* What tools on the host execute or obey when they next open this directory. */
const char *const plan_protected_names[] = {
	".git",
	".git/hooks",
	".git/config",
	".git/commondir",
	".git/modules",
	".git/worktrees",
	".claude",
	".codex",
	".cursor",
	".vscode",
	".mcp.json",
	".envrc",
	NULL,
};

static const char *const proc_masks[] = {
	"/proc/kcore",
	"/proc/kmsg",
	"/proc/keys",
	"/proc/key-users",
	"/proc/timer_list",
	"/proc/sched_debug",
	"/proc/interrupts",
	"/proc/scsi",
	"/proc/acpi",
	"/proc/kallsyms",
	"/proc/slabinfo",
	"/proc/vmallocinfo",
	"/proc/pagetypeinfo",
	"/proc/kpagecount",
	"/proc/kpageflags",
	"/proc/kpagecgroup",
	"/proc/latency_stats",
	"/proc/sysrq-trigger",
	"/proc/mtrr",
	"/proc/cmdline",
	"/proc/modules",
	"/proc/iomem",
};
static const char *const proc_read_only[] = { "/proc/sys", "/proc/bus", "/proc/irq", "/proc/fs" };
static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
	"/dev/urandom", "/dev/tty" };

#define PASSWD "/etc/passwd"
#define PASSWD_TEXT(home)                                                                          \
	"root:x:0:0:root:/:/usr/sbin/nologin\n"                                                    \
	"agent:x:1000:1000:agent:" home ":/bin/sh\n"                                               \
	"nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"

#define NSSWITCH "/etc/nsswitch.conf"
#define NSSWITCH_TEXT(hosts) "passwd: files\ngroup: files\nhosts: " hosts "\n"

static const struct plan_node own_nodes[] = {
	{ NODE_DIRECTORY, "/etc", NULL, 0755 },
	{ NODE_DIRECTORY, "/run", NULL, 0755 },
	/* One by one: to find out what is missing above a file costs more. */
	{ NODE_DIRECTORY, PLAN_SYS, NULL, 0755 },
	{ NODE_DIRECTORY, PLAN_SYS "/devices", NULL, 0755 },
	{ NODE_DIRECTORY, PLAN_SYS "/devices/system", NULL, 0755 },
	{ NODE_DIRECTORY, PLAN_SYS "/devices/system/cpu", NULL, 0755 },
	{ NODE_DIRECTORY, PLAN_SYS "/fs", NULL, 0755 },
	{ NODE_DIRECTORY, PLAN_CGROUP, NULL, 0755 },
	{ NODE_DIRECTORY, PLAN_CGROUP "/cpu", NULL, 0755 },
	{ NODE_DIRECTORY, PLAN_CGROUP "/memory", NULL, 0755 },
	{ NODE_DIRECTORY, "/var", NULL, 0755 },
	{ NODE_LINK, "/var/tmp", "../tmp", 0 },
	{ NODE_FILE, PASSWD, PASSWD_TEXT(PLAN_WORKSPACE), 0644 },
	{ NODE_FILE, "/etc/group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n", 0644 },
	{ NODE_FILE, "/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost\n",
		0644 },
	{ NODE_FILE, "/etc/hostname", "sandbox\n", 0644 },
	{ NODE_FILE, NSSWITCH, NSSWITCH_TEXT("files"), 0644 },
	/* Not the host's file: a minimal host lacks it, and a file is cheaper than a mount. */
	{ NODE_FILE, "/etc/protocols",
		"ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nipv6 41 IPv6\nipv6-icmp 58 "
		"IPv6-ICMP\n",
		0644 },
	{ NODE_FILE, "/etc/services",
		"echo 7/tcp\ndiscard 9/tcp\nftp 21/tcp\nssh 22/tcp\ntelnet 23/tcp\nsmtp 25/tcp "
		"mail\n"
		"domain 53/tcp\ndomain 53/udp\nhttp 80/tcp www\npop3 110/tcp\nntp 123/udp\nimap2 "
		"143/tcp imap\n"
		"ldap 389/tcp\nhttps 443/tcp\nhttps 443/udp\nsubmission 587/tcp\nldaps "
		"636/tcp\nimaps 993/tcp\n"
		"pop3s 995/tcp\nmysql 3306/tcp\npostgresql 5432/tcp postgres\nredis 6379/tcp\n"
		"http-alt 8080/tcp webcache\n",
		0644 },
	{ NODE_LINK, "/etc/mtab", "../proc/self/mounts", 0 },
	{ NODE_LINK, "/dev/fd", "/proc/self/fd", 0 },
	{ NODE_LINK, "/dev/stdin", "/proc/self/fd/0", 0 },
	{ NODE_LINK, "/dev/stdout", "/proc/self/fd/1", 0 },
	{ NODE_LINK, "/dev/stderr", "/proc/self/fd/2", 0 },
	{ NODE_LINK, "/dev/ptmx", "pts/ptmx", 0 },
};

#define OWN_ENV                                                                                    \
	"USER=agent", "LOGNAME=agent", "SHELL=/bin/sh", "LANG=C.UTF-8", "TMPDIR=/tmp",             \
		"XDG_CACHE_HOME=/.cache", NULL

const char *const *plan_own_env(enum workspace_view view)
{
	static const char *const variables[VIEW_COUNT][10] = {
		[VIEW_WORKSPACE] = { "PATH=/env/bin:/workspace/node_modules/.bin:" PLAN_SYSTEM_PATH,
			"HOME=/workspace", OWN_ENV },
		[VIEW_ROOT] = { "PATH=/.venv/bin:/node_modules/.bin:" PLAN_SYSTEM_PATH, "HOME=/",
			"UV_CACHE_DIR=/.cache/uv", OWN_ENV },
	};
	return variables[view];
}

bool plan_has_root_view(const struct plan *plan)
{
	return !strcmp(plan->workspace->target, PLAN_ROOT);
}

#define HIDDEN_BYTES 4096 /* the least that is a size */
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* One inode a page is more than any tree of real files needs, and bounds what empty files cost in
 * memory. */
static uint64_t inodes_for(uint64_t bytes)
{
	uint64_t inodes = bytes / 4096;
	return inodes < 1024 ? 1024 : inodes;
}

static uint64_t tmpfs_default(uint64_t memory)
{
	return least_of(LIMIT_DISK_DEFAULT, memory / 2);
}

struct builder {
	const struct plan_options *options;
	const struct plan_facts *facts;
	struct arena *arena;
	struct plan plan;
};

static int fill_limits(struct builder *b, struct error *err)
{
	struct limits *limits = &b->plan.limits;
	*limits = b->options->limits;
	if (limits_fill(limits, err))
		return -1;
	/* A tmpfs counts as memory: one larger than the memory limit would end in an OOM kill, not
	 * in "no space left on device". */
	if (!b->options->limits.disk_bytes)
		limits->disk_bytes = b->plan.workspace->upper || b->options->stage
					     ? 0
					     : tmpfs_default(limits->memory_bytes);
	if (!limits->output_bytes && b->options->captured)
		limits->output_bytes = LIMIT_OUTPUT_CAPTURED_DEFAULT;
	b->plan.measured = b->options->stage ? PLAN_ENV : b->plan.workspace->target;
	b->plan.counted_disk =
		(b->plan.workspace->upper || b->options->stage) && limits->disk_bytes;
	b->plan.root_bytes =
		b->plan.limits.tmp_bytes + (256 << 10); /* for our own nodes and views */
	b->plan.root_inodes = inodes_for(b->plan.limits.tmp_bytes) + 256;
	if (b->options->judged) {
		b->plan.root_bytes += 1 << 20;
		b->plan.root_inodes += 2 * PLAN_PROGRAMS_MAX;
	}
	return 0;
}

static void add_rlimits(struct builder *b)
{
	const struct limits *limits = &b->plan.limits;
	/* carrel-init is a task of the sandbox too, but not the user's. */
	const struct plan_rlimit always[] = {
		/* One byte, which no core fits in. Zero would still feed a core handler of the host
		 * (`|` in core_pattern), which runs as root; one is the value that keeps it out. */
		{ RLIMIT_CORE, "core", 1 },
		{ RLIMIT_RTPRIO, "rtprio", 0 },
		{ RLIMIT_NICE, "nice", 0 },
		{ RLIMIT_NOFILE, "nofile", limits->fds },
		{ RLIMIT_NPROC, "nproc", limits->pids + 1 },
	};
	for (size_t i = 0; i < COUNT(always); i++)
		vec_push(b->arena, &b->plan.rlimits, always[i]);
	/* A backstop for each process; guard counts the sum. Not in a warm sandbox, where it would
	 * limit carrel-init, too. */
	if (limits->cpu_time_ms && !b->plan.warm)
		vec_push(b->arena, &b->plan.rlimits,
			(struct plan_rlimit){ RLIMIT_CPU, "cpu", limits->cpu_time_ms / 1000 + 2 });
	/* No RLIMIT_DATA, not even where a watchdog counts memory: it counts what is mapped, and
	 * sanitizers map terabytes of shadow that they never touch (docs/design/0006). */
	/* No RLIMIT_FSIZE: it can't tell places apart, and only one of them has the disk limit
	 * (docs/design/0071). */
}

static void add_mount(struct builder *b, struct plan_mount mount)
{
	if (mount.source_kind == PATH_ABSENT) /* it has no source, or a tree */
		mount.source_kind = PATH_DIRECTORY;
	vec_push(b->arena, &b->plan.mounts, mount);
}

/* Whether the user shows something else at `path`, or in place of a directory around it. Only for
 * what is optional: /etc itself and the program trees stay. */
static bool is_replaced(const struct builder *b, const char *path)
{
	for (size_t i = 0; i < b->options->binds.count; i++) {
		const char *target = b->options->binds.items[i].target;
		bool is_optional = !strncmp(target, "/etc/", 5) || !strncmp(target, "/var/", 5);
		if (is_optional && path_is_beneath(path, target))
			return true;
	}
	return false;
}

static void add_system(struct builder *b)
{
	bool is_root = plan_has_root_view(&b->plan);
	bool has_names = plan_network_has_names(&b->plan.network);
	for (size_t i = 0; i < COUNT(own_nodes); i++) {
		struct plan_node node = own_nodes[i];
		if (is_root && !strcmp(node.path, PASSWD))
			node.text = PASSWD_TEXT(PLAN_ROOT);
		if (has_names && !strcmp(node.path, NSSWITCH))
			node.text = NSSWITCH_TEXT("files dns");
		vec_push(b->arena, &b->plan.nodes, node);
	}
	if (has_names)
		vec_push(b->arena, &b->plan.nodes,
			(struct plan_node){
				NODE_FILE, "/etc/resolv.conf", "nameserver 127.0.0.1\n", 0644 });
	for (size_t i = 0; i < b->facts->host_paths.count; i++) {
		const struct plan_host_path *path = &b->facts->host_paths.items[i];
		if (is_replaced(b, path->path))
			continue;
		if (path->kind == PATH_LINK)
			vec_push(b->arena, &b->plan.nodes,
				(struct plan_node){ NODE_LINK, path->path, path->link, 0 });
		else
			add_mount(b, (struct plan_mount){ .kind = MOUNT_BIND,
					     .source = path->source ? "/" : path->path,
					     .beneath = path->source ? path->source + 1 : NULL,
					     .target = path->path,
					     .flags = MOUNT_RO | MOUNT_NODEV,
					     .source_kind = path->kind });
	}
}

static void add_bind(
	struct builder *b, const struct plan_bind *bind, const char *target, unsigned flags)
{
	const char *source = bind->source, *beneath = bind->beneath;
	size_t home_len = b->plan.home ? strlen(b->plan.home) : 0;
	if (home_len && !beneath && path_is_beneath(source, b->plan.home) && source[home_len]) {
		beneath = source + home_len + 1;
		source = b->plan.home;
	}
	add_mount(b, (struct plan_mount){ .kind = MOUNT_BIND,
			     .source = source,
			     .beneath = beneath,
			     .target = target,
			     .flags = flags | MOUNT_NODEV | MOUNT_USER,
			     .source_kind = bind->kind,
			     .idmap = b->plan.privileged,
			     .owner_uid = bind->owner_uid,
			     .owner_gid = bind->owner_gid });
}

/* What every sandbox has of its own. */
static void add_own(struct builder *b)
{
	static const struct plan_mount mounts[] = {
		{ .kind = MOUNT_DEVPTS, .target = "/dev/pts", .flags = MOUNT_NOEXEC },
		{ .kind = MOUNT_PROC, .target = "/proc", .flags = MOUNT_NODEV | MOUNT_NOEXEC },
		{ .kind = MOUNT_VIEWS,
			.target = PLAN_SYS,
			.flags = MOUNT_RO | MOUNT_NODEV | MOUNT_NOEXEC },
		{ .kind = MOUNT_SCRATCH, .target = "/tmp", .flags = MOUNT_NODEV, .mode = 01777 },
		{ .kind = MOUNT_SCRATCH, .target = PLAN_CACHE, .flags = MOUNT_NODEV, .mode = 0700 },
		{ .kind = MOUNT_SCRATCH,
			.target = "/dev/shm",
			.flags = MOUNT_NODEV,
			.mode = 01777 },
	};
	for (size_t i = 0; i < COUNT(devices); i++)
		add_mount(b, (struct plan_mount){ .kind = MOUNT_BIND,
				     .source = devices[i],
				     .target = devices[i],
				     .flags = MOUNT_RO,
				     .source_kind = PATH_FILE });
	for (size_t i = 0; i < COUNT(mounts); i++)
		if (b->options->cache && !strcmp(mounts[i].target, PLAN_CACHE))
			add_bind(b, b->options->cache, PLAN_CACHE, 0);
		else
			add_mount(b, mounts[i]);
	if (b->options->judged)
		add_mount(b, (struct plan_mount){ .kind = MOUNT_SCRATCH,
				     .target = PLAN_PROGRAMS,
				     .flags = MOUNT_RO | MOUNT_NODEV,
				     .mode = 0755 });
	for (size_t i = 0; i < COUNT(proc_masks); i++)
		vec_push(b->arena, &b->plan.masks, proc_masks[i]);
	for (size_t i = 0; i < COUNT(proc_read_only); i++)
		vec_push(b->arena, &b->plan.read_only, proc_read_only[i]);
	plan_add_views(b->facts, b->arena, &b->plan);
}

/* A bind alone doesn't protect .git/hooks: `mv .git x` would free the name. So .git is bound on
 * itself first, which makes it busy; what is below comes read-only on top. */
static int add_protection(struct builder *b, struct error *err)
{
	for (size_t i = 0; i < b->facts->protect.count; i++) {
		const struct plan_host_path *name = &b->facts->protect.items[i];
		bool is_linked = name->links > 1 && name->kind == PATH_FILE;
		if (is_linked || name->kind == PATH_LINK)
			return fail_hint(err, ERR_UNAVAILABLE,
				"--writable-config runs the command without this protection",
				"'%s/%s' %s and can't be made read-only", b->options->dir->source,
				name->path,
				is_linked ? "has other names (hard links)" : "is a symbolic link");
		struct plan_bind bind = *b->options->dir;
		bind.kind = name->kind;
		bool is_git = !strcmp(name->path, ".git") && name->kind == PATH_DIRECTORY;
		add_bind(b, &bind, arena_printf(b->arena, PLAN_WORKSPACE "/%s", name->path),
			is_git ? 0 : MOUNT_RO);
		struct plan_mount *mount = &b->plan.mounts.items[b->plan.mounts.count - 1];
		mount->beneath =
			mount->beneath ? arena_printf(b->arena, "%s/%s", mount->beneath, name->path)
				       : name->path;
	}
	return 0;
}

static void add_tmpfs(struct builder *b, const char *target, uint64_t bytes, unsigned flags)
{
	add_mount(b, (struct plan_mount){ .kind = MOUNT_TMPFS,
			     .target = target,
			     .flags = MOUNT_NODEV | flags,
			     .source_kind = PATH_DIRECTORY,
			     .size_bytes = bytes,
			     .inodes = inodes_for(bytes),
			     .mode = 0755 });
}

/* The layers come first, where the overlay finds them; as does what is at `upper`. */
static void add_overlay(struct builder *b, const struct plan_tree *tree, const char *upper)
{
	struct plan_bind part = { .source = tree->base,
		.beneath = tree->layers,
		.owner_uid = tree->owner_uid,
		.owner_gid = tree->owner_gid };
	add_bind(b, &part, PLAN_LAYERS, MOUNT_RO | MOUNT_STAGING);
	part.beneath = tree->upper;
	if (tree->upper)
		add_bind(b, &part, PLAN_UPPER, MOUNT_STAGING);
	add_mount(b, (struct plan_mount){ .kind = MOUNT_OVERLAY,
			     .target = tree->target,
			     .flags = MOUNT_NODEV,
			     .source_kind = PATH_DIRECTORY,
			     .tree = tree,
			     .upper = upper });
	if (b->options->judged && tree->programs)
		add_mount(b,
			(struct plan_mount){ .kind = MOUNT_PACKAGES,
				.target = arena_printf(b->arena, PLAN_PACKAGES "%s", tree->target),
				.flags = MOUNT_RO | MOUNT_NODEV,
				.source_kind = PATH_DIRECTORY,
				.tree = tree });
}

/* Those whose changes are gone afterwards share one tmpfs: one thing to bound and to count. */
static void add_environments(struct builder *b)
{
	bool has_tmpfs = false;
	if (b->options->stage)
		add_bind(b, b->options->stage, PLAN_ENV, 0);
	for (size_t i = 0; i < b->plan.environments.count; i++) {
		const struct plan_tree *tree = b->plan.environments.items[i];
		if (tree->upper)
			continue;
		if (!has_tmpfs)
			add_tmpfs(b, PLAN_UPPER, tmpfs_default(b->plan.limits.memory_bytes),
				MOUNT_STAGING);
		has_tmpfs = true;
		add_overlay(b, tree, arena_printf(b->arena, PLAN_UPPER "/%zu", i));
	}
	for (size_t i = 0; i < b->plan.environments.count; i++)
		if (b->plan.environments.items[i]->upper)
			add_overlay(b, b->plan.environments.items[i], PLAN_UPPER);
}

/* A directory of the user's stays as it is: nothing is made or covered in it. In view root the
 * first place is the one below the workspace. */
static void add_again(struct builder *b)
{
	if (b->options->dir || plan_has_root_view(&b->plan))
		return;
	for (size_t i = 0; i < b->plan.environments.count; i++) {
		const struct plan_tree *tree = b->plan.environments.items[i];
		if (tree->again)
			add_mount(b, (struct plan_mount){ .kind = MOUNT_AGAIN,
					     .source = tree->target,
					     .target = tree->again,
					     .flags = MOUNT_NODEV,
					     .source_kind = PATH_DIRECTORY });
	}
}

static const struct plan_tree *find_workspace(struct builder *b)
{
	const struct plan_bind *dir = b->options->dir;
	struct plan_tree *tree = arena_alloc(b->arena, sizeof *tree);
	if (b->options->workspace)
		*tree = *b->options->workspace;
	else if (dir)
		*tree = (struct plan_tree){ .base = dir->source,
			.upper = dir->beneath ? dir->beneath : ".",
			.owner_uid = dir->owner_uid,
			.owner_gid = dir->owner_gid };
	tree->target = plan_view_path(b->options->view);
	return tree;
}

static int add_workspace(struct builder *b, struct error *err)
{
	const struct plan_tree *tree = b->plan.workspace;
	if (b->options->workspace) {
		if (!tree->upper) {
			add_tmpfs(b, PLAN_UPPER, b->plan.limits.disk_bytes, MOUNT_STAGING);
			b->plan.mounts.items[b->plan.mounts.count - 1].tree = tree;
		}
		add_overlay(b, tree, tree->upper ? PLAN_UPPER : PLAN_UPPER "/w");
		return 0;
	}
	if (!b->options->dir) {
		add_tmpfs(b, tree->target,
			b->options->stage ? tmpfs_default(b->plan.limits.memory_bytes)
					  : b->plan.limits.disk_bytes,
			0);
		return 0;
	}
	if (plan_has_root_view(&b->plan))
		return fail(err, ERR_INVALID,
			"--view root can't be combined with --dir: carrel creates no mount points "
			"in your directories");
	if (b->options->dir->kind != PATH_DIRECTORY)
		return fail(
			err, ERR_INVALID, "--dir '%s' is not a directory", b->options->dir->source);
	add_bind(b, b->options->dir, PLAN_WORKSPACE, 0);
	if (b->options->writable_config)
		return 0;
	return add_protection(b, err);
}

/* Where a path inside really lies: /var/tmp is a link to /tmp, and a mount can't go through one. */
static const char *follow_links(struct builder *b, const char *target)
{
	for (size_t i = 0; i < b->plan.nodes.count; i++) {
		const struct plan_node *node = &b->plan.nodes.items[i];
		if (node->kind != NODE_LINK || !path_is_beneath(target, node->path) ||
			!strcmp(target, node->path))
			continue;
		size_t above = (size_t)(path_basename(node->path) - node->path);
		const char *leads = path_normalize(b->arena,
			above > 1 ? arena_bytes(b->arena, node->path, above - 1) : "/", node->text);
		return arena_printf(b->arena, "%s%s", leads, target + strlen(node->path));
	}
	return target;
}

/* The name at / that a path inside begins with. */
static const char *top_of(struct arena *arena, const char *path)
{
	return arena_bytes(arena, path + 1, strcspn(path + 1, "/"));
}

static bool is_covered(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->covers.count; i++) {
		size_t len = strlen(plan->covers.items[i]);
		if (!strncmp(path + 1, plan->covers.items[i], len) &&
			(!path[1 + len] || path[1 + len] == '/'))
			return true;
	}
	return false;
}

static void add_cover(struct builder *b, const char *path)
{
	if (!is_covered(&b->plan, path))
		vec_push(b->arena, &b->plan.covers, top_of(b->arena, path));
}

/* View root: everything until now is the sandbox's own. An environment is found where a virtual
 * environment would be; a workspace that stays has a link of its own there. */
static void add_covers(struct builder *b)
{
	if (!plan_has_root_view(&b->plan))
		return;
	for (size_t i = 0; !b->options->workspace && i < b->plan.environments.count; i++)
		if (!strcmp(b->plan.environments.items[i]->target, PLAN_ENV))
			vec_push(b->arena, &b->plan.nodes,
				(struct plan_node){ NODE_LINK, "/.venv", &PLAN_ENV[1], 0 });
	for (size_t i = 0; i < b->options->binds.count; i++)
		if (path_is_beneath(b->options->binds.items[i].target, GRANT_TREES))
			add_cover(b, GRANT_TREES);
	for (size_t i = 0; i < b->plan.nodes.count; i++)
		add_cover(b, b->plan.nodes.items[i].path);
	for (size_t i = 0; i < b->plan.mounts.count; i++)
		if (!(b->plan.mounts.items[i].flags & MOUNT_STAGING))
			add_cover(b, b->plan.mounts.items[i].target);
}

/* A workspace can be older than its settings, and than this check; `carrel run` has it here alone.
 */
static int add_tools(struct builder *b, struct error *err)
{
	for (size_t i = 0; b->plan.judged && i < b->options->binds.count; i++) {
		const struct plan_bind *bind = &b->options->binds.items[i];
		if (!bind->is_environment && plan_check_attached(bind->target, err))
			return -1;
		if (bind->is_tool)
			vec_push(b->arena, &b->plan.tools,
				arena_printf(b->arena, "%s/bin", bind->target));
	}
	return 0;
}

/* `covered`: those that are of the sandbox's own trees, else those of the workspace's. */
static void add_user_binds(struct builder *b, bool covered)
{
	/* Shorter targets first, so that a parent never hides its child. */
	size_t count = b->options->binds.count;
	const struct plan_bind **order = arena_array(b->arena, count + 1, sizeof *order);
	for (size_t i = 0; i < count; i++) {
		const struct plan_bind *bind = &b->options->binds.items[i];
		size_t at = i;
		for (; at > 0 && strlen(order[at - 1]->target) > strlen(bind->target); at--)
			order[at] = order[at - 1];
		order[at] = bind;
	}
	for (size_t i = 0; i < count; i++) {
		const char *target = follow_links(b, order[i]->target);
		if (is_covered(&b->plan, target) == covered)
			add_bind(b, order[i], target, order[i]->read_only ? MOUNT_RO : 0);
	}
}

/* Shorter paths first: what lies below a hidden directory isn't there any more. */
static void add_denials(struct builder *b)
{
	plan_denials *denials = &b->plan.denials;
	for (size_t i = 0; i < b->options->denials.count; i++) {
		struct plan_denial denial = b->options->denials.items[i];
		denial.path = follow_links(b, denial.path);
		vec_push(b->arena, denials, denial);
		size_t at = denials->count - 1;
		for (; at && strlen(denials->items[at - 1].path) > strlen(denial.path); at--)
			denials->items[at] = denials->items[at - 1];
		denials->items[at] = denial;
	}
}

/* An empty directory in place of carrel's home. Root's sandboxes have a uid that can't enter the
 * home. */
static void hide_home(struct builder *b)
{
	const char *home = b->plan.home;
	size_t count = b->plan.mounts.count;
	for (size_t i = 0; home && i < count; i++) {
		const struct plan_mount *mount = &b->plan.mounts.items[i];
		const char *shown = mount->source;
		if (!(mount->flags & MOUNT_USER))
			continue;
		if (mount->beneath)
			shown = path_normalize(b->arena, shown, mount->beneath);
		size_t len = strlen(shown);
		if (path_is_beneath(home, shown) && home[len])
			add_tmpfs(b, arena_printf(b->arena, "%s%s", mount->target, home + len),
				HIDDEN_BYTES, MOUNT_RO);
	}
}

/* Nothing is ever created in a directory of the user's. */
static void choose_targets(struct builder *b)
{
	for (size_t i = 0; i < b->plan.mounts.count; i++) {
		struct plan_mount *mount = &b->plan.mounts.items[i];
		mount->in_root = true;
		mount->make_target = strcmp(mount->target, PLAN_ROOT) != 0;
		for (size_t j = 0; j < i; j++) {
			const struct plan_mount *other = &b->plan.mounts.items[j];
			if (other->flags & MOUNT_STAGING ||
				!path_is_beneath(mount->target, other->target))
				continue;
			mount->in_root = false;
			if (other->kind == MOUNT_BIND && mount->kind != MOUNT_AGAIN)
				mount->make_target = false;
		}
	}
}

static void add_rules(struct builder *b)
{
	b->plan.landlock_abi = b->facts->landlock_abi;
	b->plan.landlock_writes = b->facts->landlock_writes;
	/* TRUNCATE is refused by the read-only mounts; granted here, the kernel needn't look for
	 * the rule that does at every open. */
	const struct plan_rule always[] = {
		{ "/", ACCESS_READ | ACCESS_EXECUTE | ACCESS_TRUNCATE },
		{ "/dev", ACCESS_READ | ACCESS_DEVICE | ACCESS_TRUNCATE },
	};
	for (size_t i = 0; i < COUNT(always); i++)
		vec_push(b->arena, &b->plan.rules, always[i]);
	for (size_t i = 0; i < b->plan.mounts.count; i++) {
		const struct plan_mount *mount = &b->plan.mounts.items[i];
		/* Says what the rule for / says, and ends the kernel's search earlier. */
		if (!strcmp(mount->target, "/usr"))
			vec_push(b->arena, &b->plan.rules,
				(struct plan_rule){ mount->target,
					ACCESS_READ | ACCESS_EXECUTE | ACCESS_TRUNCATE });
		if (mount->flags & (MOUNT_STAGING | MOUNT_RO))
			continue;
		bool is_ours = mount->kind == MOUNT_SCRATCH || mount->kind == MOUNT_TMPFS ||
			       mount->kind == MOUNT_OVERLAY || mount->kind == MOUNT_AGAIN;
		bool is_bind = mount->kind == MOUNT_BIND && mount->flags & MOUNT_USER;
		if (is_ours || is_bind)
			vec_push(b->arena, &b->plan.rules,
				(struct plan_rule){ mount->target,
					ACCESS_READ | ACCESS_EXECUTE | ACCESS_WRITE });
	}
}

static int choose_streams(struct builder *b, struct error *err)
{
	if (b->options->tty && b->options->captured)
		return fail(err, ERR_INVALID,
			"-t and -o json can't be combined: a terminal does not separate stdout and "
			"stderr");
	for (int i = 0; i < 3; i++) {
		/* A descriptor of a host file can be opened again for writing through
		 * /proc/self/fd, and a process with the terminal could read input typed for other
		 * programs. A pipe or /dev/null gives no further access. */
		enum plan_stream direct =
			b->facts->streams[i] == STREAM_OTHER ? STREAM_RELAYED : STREAM_HANDED;
		if (b->options->warm)
			b->plan.streams[i] = STREAM_EMPTY;
		else if (i == 0 &&
			 (b->options->no_input || (b->options->tty && !b->options->interactive)))
			b->plan.streams[i] = STREAM_EMPTY;
		else if (b->options->tty)
			b->plan.streams[i] = STREAM_TTY;
		else if (i > 0 && b->options->captured)
			b->plan.streams[i] = STREAM_CAPTURED;
		else if (b->facts->streams[i] == STREAM_TERMINAL)
			b->plan.streams[i] = STREAM_TTY;
		else if (i > 0 && b->plan.limits.output_bytes)
			b->plan.streams[i] = STREAM_RELAYED;
		else
			b->plan.streams[i] = direct;
		b->plan.tty |= b->plan.streams[i] == STREAM_TTY;
	}
	b->plan.mirrors = b->plan.tty && !b->options->tty;
	b->plan.merged = b->facts->same_output && b->plan.streams[1] == STREAM_RELAYED &&
			 b->plan.streams[2] == STREAM_RELAYED;
	return 0;
}

void plan_set_env(struct arena *arena, text_list *env, const char *entry)
{
	size_t name = strcspn(entry, "=") + 1, at = 0;
	while (at < env->count && strncmp(env->items[at], entry, name))
		at++;
	if (at < env->count)
		env->items[at] = entry;
	else
		vec_push(arena, env, entry);
}

static int add_env(struct builder *b, struct error *err)
{
	const char *const *own = plan_own_env(b->options->view);
	for (size_t i = 0; own[i]; i++)
		vec_push(b->arena, &b->plan.env, own[i]);
	plan_limit_env(&b->plan.limits, b->plan.ptrace, b->arena, &b->plan.env);
	plan_network_env(&b->plan.network, b->options->registries, b->arena, &b->plan.env);
	for (size_t i = 0; i < b->plan.environments.count; i++) {
		const char *const *variables = b->plan.environments.items[i]->variables;
		for (size_t j = 0; variables && variables[j]; j++)
			plan_set_env(b->arena, &b->plan.env, variables[j]);
	}
	if (b->plan.judged)
		plan_set_env(b->arena, &b->plan.env, PLAN_PROGRAMS_PATH);
	if (b->plan.tty && b->facts->term)
		vec_push(b->arena, &b->plan.env, arena_printf(b->arena, "TERM=%s", b->facts->term));
	for (size_t i = 0; i < b->options->env.count; i++) {
		const char *entry = b->options->env.items[i];
		if (entry[0] == '=' || !strchr(entry, '='))
			return fail(err, ERR_INVALID, "-e '%s' is not NAME=VALUE", entry);
		plan_set_env(b->arena, &b->plan.env, entry);
	}
	vec_push(b->arena, &b->plan.env, NULL);
	b->plan.env.count--;
	return 0;
}

/* A setgid file in a directory of the host could be executed by anybody who reaches it there. A
 * workspace of a daemon (warm) lies in carrel's home, which only its owner can enter; still, no
 * file of root's group gets the bit. */
static bool has_writable_host_directory(const struct builder *b)
{
	const struct plan_tree *workspace = b->plan.workspace;
	if (b->options->stage ||
		(workspace->upper && (!b->options->warm || workspace->owner_gid == 0)))
		return true;
	for (size_t i = 0; i < b->options->binds.count; i++)
		if (!b->options->binds.items[i].read_only)
			return true;
	return false;
}

int plan_build(const struct plan_options *options, const struct plan_facts *facts,
	struct arena *arena, struct plan *out, struct error *err)
{
	struct builder builder = { options, facts, arena, { 0 } }, *b = &builder;
	b->plan = (struct plan){
		.privileged = facts->privileged,
		.inside_uid = PLAN_UID,
		.inside_gid = PLAN_GID,
		.outside_uid = facts->outside_uid,
		.outside_gid = facts->outside_gid,
		.home = options->home,
		.hostname = "sandbox",
		.isolation = "native",
		.namespaces = NAMESPACE_ALL,
		.filters =
			FILTER_LANDLOCK | FILTER_SECCOMP | (options->observe ? FILTER_OBSERVE : 0),
		.seccomp = "default",
		.capabilities = "none",
		.no_new_privs = true,
		.network = options->network ? *options->network : (struct plan_network){ 0 },
		.workspace = find_workspace(b),
		.environments = options->environments,
		.limiter = facts->limiter,
		.judged = options->judged,
		.ptrace = options->ptrace,
		.memfd = true,
		.umask = facts->umask,
		.warm = options->warm,
		.argv = options->argv,
		.cwd = options->cwd ? options->cwd : plan_view_path(options->view),
	};
	b->plan.setgid = !has_writable_host_directory(b);
	plan_add_listeners(arena, &b->plan.network);
	if (fill_limits(b, err) || choose_streams(b, err))
		return -1;
	add_system(b);
	add_own(b);
	add_environments(b);
	add_covers(b);
	add_user_binds(b, true);
	if (add_tools(b, err) || add_workspace(b, err) || add_env(b, err))
		return -1;
	add_again(b);
	add_user_binds(b, false);
	if (!facts->privileged)
		hide_home(b);
	choose_targets(b);
	add_denials(b);
	add_rlimits(b);
	add_rules(b);
	if (plan_check(&b->plan, err))
		return -1;
	*out = b->plan;
	return 0;
}
