/* Plans are pure: options and facts in, JSON out, compared with files in tests/golden.
 * CARREL_GOLDEN=write makes them anew; read the diff before you commit it. */
/* security: sandbox */
#include "sandbox/plan/plan.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "base/str.h"
#include "unit.h"

static const char *const command[] = { "python3", "-c", "print(1)", NULL };

struct fixture {
	struct arena arena;
	struct plan_options options;
	struct plan_facts facts;
	struct plan plan;
	struct error err;
};

static void add_host(struct fixture *f)
{
	static const struct plan_host_path paths[] = {
		{ "/bin", PATH_LINK, "usr/bin" },
		{ "/etc/alternatives", PATH_DIRECTORY, NULL },
		{ "/etc/ld.so.cache", PATH_FILE, NULL },
		{ "/etc/localtime", PATH_LINK, "/usr/share/zoneinfo/Etc/UTC" },
		{ "/lib64", PATH_LINK, "usr/lib64" },
		{ "/usr", PATH_DIRECTORY, NULL },
	};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		vec_push(&f->arena, &f->facts.host_paths, paths[i]);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	arena_init(&f->arena);
	f->options.argv = (char *const *)command;
	f->options.interactive = true;
	f->facts = (struct plan_facts){ .outside_uid = 1001,
		.outside_gid = 1001,
		.landlock_abi = 7,
		.limiter = LIMITER_WATCHDOG,
		.umask = 022,
		.streams = { STREAM_NULL, STREAM_PIPE, STREAM_PIPE } };
	add_host(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	arena_done(&f->arena);
	free(f);
	return 0;
}

static void as_root(struct fixture *f)
{
	f->facts.privileged = true;
	f->facts.outside_uid = f->facts.outside_gid = 1879048192;
	f->facts.limiter = LIMITER_CGROUP_V1;
	if (!f->options.home)
		f->options.home = "/var/lib/carrel";
}

static void add_bind(struct fixture *f, const char *text, enum plan_path_kind kind)
{
	struct plan_bind bind = { .kind = kind, .owner_uid = 33, .owner_gid = 33 };
	assert_int_equal(plan_parse_bind(text, &f->arena, &bind, &f->err), 0);
	vec_push(&f->arena, &f->options.binds, bind);
}

static int build(struct fixture *f)
{
	return plan_build(&f->options, &f->facts, &f->arena, &f->plan, &f->err);
}

static void assert_golden(struct fixture *f, const char *name)
{
	char path[512], expected[65536];
	auto_buf struct buf text;
	buf_init(&text, BUF_MAX_DEFAULT);
	assert_int_equal(build(f), 0);
	plan_print(&f->plan, &text);
	str_format(path, sizeof path, "%s/%s.json", getenv("CARREL_GOLDEN_DIR"), name);
	const char *mode = getenv("CARREL_GOLDEN");
	if (mode && !strcmp(mode, "write")) {
		auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		assert_int_equal(fd_write_full(fd, text.data, text.len), (ssize_t)text.len);
		return;
	}
	assert_true(fd_read_file(AT_FDCWD, path, expected, sizeof expected) > 0);
	assert_string_equal(text.data, expected);
}

static void assert_refused(struct fixture *f, enum error_code code, const char *named)
{
	assert_int_equal(build(f), -1);
	assert_int_equal(f->err.code, code);
	assert_non_null(strstr(f->err.text, named));
}

static void a_plain_users_plan_is_golden(void **state)
{
	assert_golden(*state, "user");
}

static void roots_plan_with_everything_is_golden(void **state)
{
	struct fixture *f = *state;
	static struct plan_bind dir = { .source = "/srv/project",
		.kind = PATH_DIRECTORY,
		.owner_uid = 1000,
		.owner_gid = 100 };
	static const struct plan_host_path protect[] = {
		{ ".git", PATH_DIRECTORY, NULL },
		{ ".git/hooks", PATH_DIRECTORY, NULL },
		{ ".git/config", PATH_FILE, NULL },
		{ ".envrc", PATH_FILE, NULL },
	};
	as_root(f);
	f->options.dir = &dir;
	for (size_t i = 0; i < sizeof protect / sizeof *protect; i++)
		vec_push(&f->arena, &f->facts.protect, protect[i]);
	add_bind(f, "/data/deep:/data/a/b", PATH_DIRECTORY);
	add_bind(f, "/data/set:/data:ro", PATH_DIRECTORY);
	add_bind(f, "/etc/motd:/opt/motd:ro", PATH_FILE);
	vec_push(&f->arena, &f->options.env, "A=1");
	vec_push(&f->arena, &f->options.env, "HOME=/tmp");
	f->options.cwd = "/data";
	f->options.captured = true;
	f->options.limits = (struct limits){ .memory_bytes = 512 << 20,
		.disk_bytes = 1 << 30,
		.tmp_bytes = 1 << 20,
		.pids = 10,
		.fds = 100,
		.millicpus = 1500,
		.cpu_time_ms = 30000,
		.timeout_ms = 60000 };
	assert_golden(f, "root");
}

static void a_terminals_plan_is_golden(void **state)
{
	struct fixture *f = *state;
	f->options.tty = true;
	f->facts.term = "xterm-256color";
	for (int i = 0; i < 3; i++)
		f->facts.streams[i] = STREAM_TERMINAL;
	assert_golden(f, "tty");
}

static void a_file_is_relayed_and_a_pipe_handed_in(void **state)
{
	struct fixture *f = *state;
	f->facts.streams[0] = STREAM_OTHER;
	assert_int_equal(build(f), 0);
	assert_int_equal(f->plan.streams[0], STREAM_RELAYED);
	assert_int_equal(f->plan.streams[1], STREAM_HANDED);
	assert_int_equal(f->plan.streams[2], STREAM_HANDED);
}

static void no_terminal_of_the_host_is_handed_in(void **state)
{
	struct fixture *f = *state;
	f->facts.term = "xterm";
	for (unsigned mix = 1; mix < 8; mix++) {
		for (int i = 0; i < 3; i++)
			f->facts.streams[i] = mix >> i & 1 ? STREAM_TERMINAL : STREAM_PIPE;
		assert_int_equal(build(f), 0);
		assert_true(f->plan.tty && f->plan.mirrors);
		for (int i = 0; i < 3; i++)
			assert_int_equal(
				f->plan.streams[i], mix >> i & 1 ? STREAM_TTY : STREAM_HANDED);
		f->options.tty = f->options.interactive = true;
		assert_int_equal(build(f), 0);
		assert_true(f->plan.tty && !f->plan.mirrors);
		f->options.tty = false;
	}
}

static void output_that_is_counted_is_relayed(void **state)
{
	struct fixture *f = *state;
	f->options.limits.output_bytes = 10;
	assert_int_equal(build(f), 0);
	assert_int_equal(f->plan.streams[0], STREAM_HANDED);
	assert_int_equal(f->plan.streams[1], STREAM_RELAYED);
	assert_int_equal(f->plan.streams[2], STREAM_RELAYED);
}

static void a_tmpfs_stays_below_the_memory_limit_unless_given(void **state)
{
	struct fixture *f = *state;
	f->options.limits.memory_bytes = 64 << 20;
	assert_int_equal(build(f), 0);
	assert_int_equal(f->plan.limits.disk_bytes, 32 << 20);
	assert_int_equal(f->plan.limits.tmp_bytes, 32 << 20);
	f->options.limits.disk_bytes = 128 << 20;
	memset(&f->plan, 0, sizeof f->plan);
	assert_int_equal(build(f), 0);
	assert_int_equal(f->plan.limits.disk_bytes, 128 << 20);
}

static void setgid_bits_exist_only_where_no_host_directory_is_writable(void **state)
{
	struct fixture *f = *state;
	struct plan_bind bind = { .source = "/data", .target = "/data", .kind = PATH_DIRECTORY };
	assert_int_equal(build(f), 0);
	assert_true(f->plan.setgid);
	bind.read_only = true;
	vec_push(&f->arena, &f->options.binds, bind);
	memset(&f->plan, 0, sizeof f->plan);
	assert_int_equal(build(f), 0);
	assert_true(f->plan.setgid);
	f->options.binds.items[0].read_only = false;
	memset(&f->plan, 0, sizeof f->plan);
	assert_int_equal(build(f), 0);
	assert_false(f->plan.setgid);
}

static void a_daemons_workspace_has_setgid_bits_unless_its_group_is_root(void **state)
{
	struct fixture *f = *state;
	struct plan_bind dir = { .source = "/home/u/work",
		.kind = PATH_DIRECTORY,
		.owner_uid = 1000,
		.owner_gid = 1000 };
	f->options.dir = &dir;
	assert_int_equal(build(f), 0);
	assert_false(f->plan.setgid);
	f->options.warm = true;
	f->options.argv = NULL;
	memset(&f->plan, 0, sizeof f->plan);
	assert_int_equal(build(f), 0);
	assert_true(f->plan.setgid);
	dir.owner_gid = 0;
	memset(&f->plan, 0, sizeof f->plan);
	assert_int_equal(build(f), 0);
	assert_false(f->plan.setgid);
}

static void nobody_is_root_inside_or_outside(void **state)
{
	struct fixture *f = *state;
	as_root(f);
	f->facts.outside_uid = 0;
	assert_refused(f, ERR_INVALID, "root outside");
	f->facts.outside_uid = 1;
	assert_int_equal(build(f), 0);
	f->plan.inside_uid = 0;
	assert_int_equal(plan_check(&f->plan, &f->err), -1);
}

static void two_mounts_on_one_place_are_a_conflict(void **state)
{
	struct fixture *f = *state;
	add_bind(f, "/a:/data", PATH_DIRECTORY);
	add_bind(f, "/b:/data", PATH_DIRECTORY);
	assert_refused(f, ERR_CONFLICT, "/data");
}

static void a_bind_cannot_hide_what_is_ours(void **state)
{
	static const char *const targets[] = { "/usr", "/etc", "/tmp", "/workspace" };
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		struct fixture *f = *state;
		char text[64];
		f->options.binds.count = 0;
		str_format(text, sizeof text, "/a:%s", targets[i]);
		add_bind(f, text, PATH_DIRECTORY);
		assert_refused(f, ERR_CONFLICT, targets[i]);
	}
}

static void a_mount_point_in_a_directory_of_the_users_is_not_made(void **state)
{
	struct fixture *f = *state;
	static struct plan_bind dir = { .source = "/srv/project", .kind = PATH_DIRECTORY };
	f->options.dir = &dir;
	add_bind(f, "/a:/workspace/data", PATH_DIRECTORY);
	add_bind(f, "/a:/data", PATH_DIRECTORY);
	assert_int_equal(build(f), 0);
	int seen = 0;
	for (size_t i = 0; i < f->plan.mounts.count; i++) {
		const struct plan_mount *mount = &f->plan.mounts.items[i];
		if (!strcmp(mount->target, "/workspace/data"))
			seen += !mount->make_target;
		if (!strcmp(mount->target, "/data"))
			seen += mount->make_target;
	}
	assert_int_equal(seen, 2);
}

static int count_hidden(struct fixture *f, const char *target)
{
	int seen = 0;
	assert_int_equal(build(f), 0);
	for (size_t i = 0; i < f->plan.mounts.count; i++) {
		const struct plan_mount *mount = &f->plan.mounts.items[i];
		if (mount->kind != MOUNT_TMPFS || !(mount->flags & MOUNT_RO))
			continue;
		assert_false(mount->make_target);
		seen += !strcmp(mount->target, target) ? 1 : 100;
	}
	return seen;
}

static void what_is_hidden_is_covered_in_what_lies_above_it(void **state)
{
	struct fixture *f = *state;
	static struct plan_bind dir = { .source = "/home", .kind = PATH_DIRECTORY };
	f->options.home = "/home/me/carrel";
	add_bind(f, "/home/me/carrel:/own:ro", PATH_DIRECTORY); /* it was named itself */
	add_bind(f, "/home/me/car:/car", PATH_DIRECTORY);
	assert_int_equal(count_hidden(f, ""), 0);
	f->options.dir = &dir;
	assert_int_equal(count_hidden(f, "/workspace/me/carrel"), 1);
	f->options.dir = NULL;
	add_bind(f, "/home/me:/host:ro", PATH_DIRECTORY);
	assert_int_equal(count_hidden(f, "/host/carrel"), 1);
	as_root(f);
	assert_int_equal(count_hidden(f, ""), 0);
}

static struct plan_mount *find_mount(struct fixture *f, const char *target)
{
	for (size_t i = 0; i < f->plan.mounts.count; i++)
		if (!strcmp(f->plan.mounts.items[i].target, target))
			return &f->plan.mounts.items[i];
	fail_msg("nothing is mounted at %s", target);
	return NULL;
}

static bool has_variable(const struct fixture *f, const char *entry)
{
	for (size_t i = 0; i < f->plan.env.count; i++)
		if (!strcmp(f->plan.env.items[i], entry))
			return true;
	return false;
}

static void an_environment_is_mounted_where_its_kind_says(void **state)
{
	struct fixture *f = *state;
	static const char *const variables[] = { "NODE_PATH=/node", "B=1", NULL };
	struct plan_tree environment = {
		.target = "/node", .variables = variables, .base = "/srv/home", .layers = "layers"
	};
	vec_push(&f->arena, &environment.lowers, "any/tree");
	vec_push(&f->arena, &f->options.environments, &environment);
	assert_int_equal(build(f), 0);
	assert_int_equal(find_mount(f, "/node")->kind, MOUNT_OVERLAY);
	assert_true(has_variable(f, "NODE_PATH=/node") && has_variable(f, "B=1"));
	assert_false(has_variable(f, "VIRTUAL_ENV=/env"));
}

static size_t index_of(struct fixture *f, const char *target)
{
	return (size_t)(find_mount(f, target) - f->plan.mounts.items);
}

static bool is_in(const text_list *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (!strcmp(names->items[i], name))
			return true;
	return false;
}

static void in_view_root_the_workspace_comes_after_what_covers_it(void **state)
{
	struct fixture *f = *state;
	struct plan_tree python = { .target = "/env", .base = "/srv/home", .layers = "layers" };
	struct plan_tree workspace = python;
	static const struct plan_bind binds[] = {
		{ .source = "/srv/a", .target = "/etc/a", .kind = PATH_FILE },
		{ .source = "/srv/b", .target = "/data/b", .kind = PATH_DIRECTORY },
		{ .source = "/srv/c", .target = "/opt/carrel/trees/c", .kind = PATH_DIRECTORY },
	};
	vec_push(&f->arena, &python.lowers, "a/tree");
	vec_push(&f->arena, &workspace.lowers, "b/tree");
	vec_push(&f->arena, &f->options.environments, &python);
	for (size_t i = 0; i < 3; i++)
		vec_push(&f->arena, &f->options.binds, binds[i]);
	f->options.workspace = &workspace;
	f->options.view = VIEW_ROOT;
	assert_int_equal(build(f), 0);
	assert_true(plan_has_root_view(&f->plan));
	size_t root = index_of(f, "/");
	assert_true(index_of(f, "/etc/a") < root && index_of(f, "/env") < root &&
		    index_of(f, "/opt/carrel/trees/c") < root && index_of(f, "/data/b") > root);
	assert_true(is_in(&f->plan.covers, "etc") && is_in(&f->plan.covers, "proc") &&
		    is_in(&f->plan.covers, "env") && is_in(&f->plan.covers, "opt"));
	assert_false(is_in(&f->plan.covers, "data") || is_in(&f->plan.covers, "workspace"));
	assert_true(has_variable(f, "HOME=/"));
	assert_string_equal(f->plan.cwd, "/");
	assert_string_equal(f->plan.measured, "/");
}

static void view_root_makes_nothing_in_a_directory_of_the_user(void **state)
{
	struct fixture *f = *state;
	struct plan_bind dir = { .source = "/srv/dir", .kind = PATH_DIRECTORY };
	f->options.dir = &dir;
	f->options.view = VIEW_ROOT;
	assert_refused(f, ERR_INVALID, "--view root");
}

static void several_trees_are_golden(void **state)
{
	struct fixture *f = *state;
	struct plan_tree python = { .target = "/env", .base = "/srv/home", .layers = "layers" };
	struct plan_tree node = python, workspace = python, other = python;
	node.target = "/node";
	other.target = "/other";
	other.upper = "workspaces/w/env";
	vec_push(&f->arena, &python.lowers, "a/tree");
	vec_push(&f->arena, &python.lowers, "b/tree");
	vec_push(&f->arena, &node.lowers, "c/tree");
	vec_push(&f->arena, &other.lowers, "d/tree");
	vec_push(&f->arena, &workspace.lowers, "e/tree");
	vec_push(&f->arena, &workspace.lowers, "a/tree");
	vec_push(&f->arena, &f->options.environments, &other);
	vec_push(&f->arena, &f->options.environments, &python);
	vec_push(&f->arena, &f->options.environments, &node);
	f->options.workspace = &workspace;
	const struct plan_network forward = { .forward = true };
	f->options.network = &forward;
	assert_golden(f, "trees");
	workspace.upper = "workspaces/w";
	f->options.limits.disk_bytes = 1 << 30;
	assert_refused(f, ERR_UNAVAILABLE, "it has layers");
	workspace.lowers.count = 0;
	assert_refused(f, ERR_LIMIT, "0 layers");
}

static void a_plan_with_a_list_is_golden(void **state)
{
	static const char *const registries[] = { "PIP_INDEX_URL=https://example.com/simple" };
	struct fixture *f = *state;
	struct plan_network network = { .mode = NETWORK_LIST };
	text_list variables = { 0 };
	vec_push(&f->arena, &variables, registries[0]);
	vec_push(&f->arena, &network.allow, "example.com");
	vec_push(&f->arena, &network.allow, "*.example.org:8443");
	vec_push(&f->arena, &network.allow, "example.net:443");
	vec_push(&f->arena, &network.deny, "bad.example.org");
	plan_network_ports(&network.allow, &f->arena, &network);
	f->options.network = &network;
	f->options.registries = &variables;
	assert_golden(f, "network");
}

static void the_ports_of_names_are_bounded_and_each_is_there_once(void **state)
{
	static const char *const entries[] = { "a:80", "a:443", "a:3128", "a:53", "a", "a:1", "a:1",
		"[2001:db8::1]:2", "2001:db8::1", "b:70000", "b:0", "c:3", "d:4", "e:5" };
	struct fixture *f = *state;
	struct plan_network network = { .mode = NETWORK_OPEN };
	text_list allow = { 0 };
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
		vec_push(&f->arena, &allow, entries[i]);
	plan_network_ports(&allow, &f->arena, &network);
	assert_int_equal(network.ports.count, PLAN_PORTS_MAX);
	for (uint16_t i = 0; i < PLAN_PORTS_MAX; i++)
		assert_int_equal(network.ports.items[i], i + 1);
	f->options.network = &network;
	assert_int_equal(build(f), 0);
	assert_int_equal(f->plan.network.listeners.count, PLAN_LISTENERS_MAX);
	vec_push(&f->arena, &network.ports, 6);
	assert_refused(f, ERR_LIMIT, "5 ports");
	network.ports.count = 1;
	network.mode = NETWORK_NONE;
	assert_refused(f, ERR_INVALID, "listeners");
	network.forward = true;
	assert_refused(f, ERR_INVALID, "listeners");
}

static void a_plan_without_a_lock_is_refused(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(build(f), 0);
		f->plan.namespaces &= ~(i == 0 ? NAMESPACE_NET : 0u);
		f->plan.filters &= ~(i == 1 ? FILTER_SECCOMP : 0u);
		f->plan.capabilities = i == 2 ? "all" : f->plan.capabilities;
		f->plan.no_new_privs = i != 3;
		assert_int_equal(plan_check(&f->plan, &f->err), -1);
		assert_int_equal(f->err.code, ERR_INVALID);
	}
}

static void a_bind_below_the_home_follows_no_link(void **state)
{
	struct fixture *f = *state;
	static struct plan_bind stage = { .source = "/srv/home/stage/x/root",
		.kind = PATH_DIRECTORY };
	as_root(f);
	f->options.stage = &stage;
	add_bind(f, "/srv/home/workspaces/w/upper:/other", PATH_DIRECTORY);
	f->options.home = NULL;
	assert_refused(f, ERR_INVALID, "home is not known");
	f->options.home = "/srv/home";
	assert_int_equal(build(f), 0);
	const char *const targets[] = { "/env", "/other" };
	const char *const names[] = { "stage/x/root", "workspaces/w/upper" };
	for (size_t i = 0; i < 2; i++) {
		struct plan_mount *mount = find_mount(f, targets[i]);
		assert_string_equal(mount->source, "/srv/home");
		assert_string_equal(mount->beneath, names[i]);
	}
	struct plan_mount *mount = find_mount(f, "/env");
	mount->beneath = "stage/../../etc";
	assert_int_equal(plan_check(&f->plan, &f->err), -1);
	mount->source = stage.source;
	mount->beneath = NULL;
	assert_int_equal(plan_check(&f->plan, &f->err), -1);
	assert_int_equal(f->err.code, ERR_INVALID);
	assert_non_null(strstr(f->err.text, "below carrel's home"));
}

static void a_protected_name_that_is_a_link_is_refused(void **state)
{
	struct fixture *f = *state;
	static struct plan_bind dir = { .source = "/srv/project", .kind = PATH_DIRECTORY };
	f->options.dir = &dir;
	vec_push(&f->arena, &f->facts.protect,
		(struct plan_host_path){ ".claude", PATH_LINK, NULL });
	assert_refused(f, ERR_UNAVAILABLE, "/srv/project/.claude");
	f->options.writable_config = true;
	assert_int_equal(build(f), 0);
}

static void wrong_options_are_named(void **state)
{
	struct fixture *f = *state;
	static const char *const none[] = { "", NULL };
	static struct plan_bind file = { .source = "/srv/file", .kind = PATH_FILE };
	f->options.argv = (char *const *)none;
	assert_refused(f, ERR_INVALID, "no command");
	f->options.argv = (char *const *)command;
	f->options.cwd = "tmp";
	assert_refused(f, ERR_INVALID, "'tmp'");
	f->options.cwd = NULL;
	f->options.dir = &file;
	assert_refused(f, ERR_INVALID, "/srv/file");
	f->options.dir = NULL;
	f->options.tty = f->options.captured = true;
	assert_refused(f, ERR_INVALID, "-t");
	f->options.tty = f->options.captured = false;
	vec_push(&f->arena, &f->options.env, "=x");
	assert_refused(f, ERR_INVALID, "'=x'");
}

static void a_plan_that_stays_has_no_command_and_no_streams(void **state)
{
	struct fixture *f = *state;
	static struct plan_bind dir = {
		.source = "/home", .beneath = "workspaces/x/upper", .kind = PATH_DIRECTORY
	};
	f->options.warm = true;
	assert_refused(f, ERR_INVALID, "command");
	f->options.argv = NULL;
	f->options.dir = &dir;
	f->options.writable_config = true;
	f->options.limits.cpu_time_ms = 1000;
	f->facts.streams[0] = STREAM_TERMINAL;
	assert_int_equal(build(f), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(f->plan.streams[i], STREAM_EMPTY);
	for (size_t i = 0; i < f->plan.rules.count; i++)
		assert_non_null(f->plan.rules.items[i].path);
	/* It would end carrel-init after a long life. */
	for (size_t i = 0; i < f->plan.rlimits.count; i++)
		assert_string_not_equal(f->plan.rlimits.items[i].name, "cpu");
	const struct plan_mount *last = &f->plan.mounts.items[f->plan.mounts.count - 1];
	assert_string_equal(last->target, PLAN_WORKSPACE);
	assert_string_equal(last->beneath, "workspaces/x/upper");
	auto_buf struct buf text;
	buf_init(&text, 1 << 20);
	plan_print(&f->plan, &text);
	assert_non_null(strstr(text.data, "\"argv\": []"));
}

static void a_host_without_landlock_runs_nothing(void **state)
{
	struct fixture *f = *state;
	f->facts.landlock_abi = 0;
	assert_refused(f, ERR_UNAVAILABLE, "Landlock");
}

static void a_bind_is_taken_apart_from_the_right(void **state)
{
	struct fixture *f = *state;
	struct plan_bind bind = { 0 };
	assert_int_equal(plan_parse_bind("/a:b:/c:ro", &f->arena, &bind, &f->err), 0);
	assert_string_equal(bind.source, "/a:b");
	assert_string_equal(bind.target, "/c");
	assert_true(bind.read_only);
	assert_int_equal(plan_parse_bind("./x:/c", &f->arena, &bind, &f->err), 0);
	assert_string_equal(bind.source, "./x");
	assert_false(bind.read_only);
}

static void a_bind_that_isnt_one_is_refused(void **state)
{
	struct fixture *f = *state;
	static const char *const wrong[] = { "", ":", "/a", "/a:", ":/b", ":ro", "/a:b",
		"/a:/b/../c", "/a:/", "/a:/proc", "/a:/proc/x", "/a:/dev/null", "/a:/b/", "/a://b",
		"/a:ro" };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct plan_bind bind = { 0 };
		assert_int_equal(plan_parse_bind(wrong[i], &f->arena, &bind, &f->err), -1);
		assert_int_equal(f->err.code, ERR_INVALID);
		assert_null(bind.source);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_plain_users_plan_is_golden),
		TEST(roots_plan_with_everything_is_golden),
		TEST(a_terminals_plan_is_golden),
		TEST(a_file_is_relayed_and_a_pipe_handed_in),
		TEST(no_terminal_of_the_host_is_handed_in),
		TEST(output_that_is_counted_is_relayed),
		TEST(a_tmpfs_stays_below_the_memory_limit_unless_given),
		TEST(setgid_bits_exist_only_where_no_host_directory_is_writable),
		TEST(a_daemons_workspace_has_setgid_bits_unless_its_group_is_root),
		TEST(nobody_is_root_inside_or_outside),
		TEST(two_mounts_on_one_place_are_a_conflict),
		TEST(a_bind_cannot_hide_what_is_ours),
		TEST(a_mount_point_in_a_directory_of_the_users_is_not_made),
		TEST(what_is_hidden_is_covered_in_what_lies_above_it),
		TEST(a_bind_below_the_home_follows_no_link),
		TEST(an_environment_is_mounted_where_its_kind_says),
		TEST(in_view_root_the_workspace_comes_after_what_covers_it),
		TEST(view_root_makes_nothing_in_a_directory_of_the_user),
		TEST(several_trees_are_golden),
		TEST(a_plan_with_a_list_is_golden),
		TEST(the_ports_of_names_are_bounded_and_each_is_there_once),
		TEST(a_plan_without_a_lock_is_refused),
		TEST(a_protected_name_that_is_a_link_is_refused),
		TEST(wrong_options_are_named),
		TEST(a_plan_that_stays_has_no_command_and_no_streams),
		TEST(a_host_without_landlock_runs_nothing),
		TEST(a_bind_is_taken_apart_from_the_right),
		TEST(a_bind_that_isnt_one_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
