/* An environment at /env of a real sandbox: layers below, a throw-away upper on top, nothing of it
 * left in the layers; and the socket that listens inside. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "envs/builder/job_runner.h"
#include "envs/kind.h"
#include "linux/overlay.h"
#include "sandbox/native/host.h"
#include "sandbox/native/sandbox.h"
#include "unit.h"

#define OWNER 64199

struct fixture {
	struct arena arena;
	char area[64];
	const char *disk_upper;
	struct host host;
	struct plan_options options;
	struct plan_tree environment;
	struct buf out, errors;
	struct result result;
	int listener, connection, ticks;
};

static void write_file(struct fixture *f, const char *path, const char *text)
{
	const char *full = arena_printf(&f->arena, "%s/%s", f->area, path);
	int fd = open(full, O_CREAT | O_WRONLY | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	if (geteuid() == 0)
		assert_int_equal(chown(full, OWNER, OWNER), 0);
}

static void make_directory(struct fixture *f, const char *path)
{
	const char *full = arena_printf(&f->arena, "%s/%s", f->area, path);
	assert_int_equal(mkdir(full, 0755), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(full, OWNER, OWNER), 0);
}

static int setup(void **state)
{
	static const char *const directories[] = { "layers", "layers/top", "layers/top/tree",
		"layers/mid", "layers/mid/tree", "layers/mid/tree/d", "layers/low",
		"layers/low/tree", "layers/low/tree/d", "up", "up/upper", "up/work" };
	static const char *const lowers[] = { "top/tree", "mid/tree", "low/tree" };
	struct fixture *f = calloc(1, sizeof *f);
	*state = f;
	f->listener = f->connection = -1;
	arena_init(&f->arena);
	host_init(&f->host);
	buf_init(&f->out, 1 << 20);
	buf_init(&f->errors, 1 << 20);
	str_copy(f->area, sizeof f->area, "/tmp/carrel-test-env-XXXXXX");
	if (!mkdtemp(f->area) || chmod(f->area, 0755) ||
		(geteuid() == 0 && chown(f->area, OWNER, OWNER)))
		return -1;
	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
		make_directory(f, directories[i]);
	write_file(f, "layers/top/tree/a", "top\n");
	write_file(f, "layers/mid/tree/a", "hidden\n");
	write_file(f, "layers/mid/tree/d/b", "mid\n");
	write_file(f, "layers/low/tree/d/c", "low\n");
	f->environment.target = env_python.target;
	f->environment.variables = env_python.variables;
	f->environment.base = f->area;
	f->environment.layers = "layers";
	f->environment.owner_uid = geteuid() ? geteuid() : OWNER;
	f->environment.owner_gid = geteuid() ? getegid() : OWNER;
	for (size_t i = 0; i < 3; i++)
		vec_push(&f->arena, &f->environment.lowers, lowers[i]);
	/* Before Linux 6.6 a tmpfs can't be an upper: whoever mounts has one on disk made. */
	f->disk_upper = "up";
	if (!overlay_takes_tmpfs())
		f->environment.upper = f->disk_upper;
	f->options = (struct plan_options){ .home = f->area, .captured = true };
	vec_push(&f->arena, &f->options.environments, &f->environment);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct error err;
	int tmp = open("/tmp", O_PATH | O_DIRECTORY);
	int failed = path_remove_tree(tmp, path_basename(f->area), &err);
	close(tmp);
	fd_close(&f->listener);
	fd_close(&f->connection);
	host_done(&f->host);
	buf_done(&f->out);
	buf_done(&f->errors);
	arena_done(&f->arena);
	free(f);
	return failed;
}

static void keep_listener(
	void *ctx, struct loop *loop, const struct plan_listener *listener, int fd)
{
	struct fixture *f = ctx;
	f->listener = fd;
}

/* Whoever has connected hears the end of what is said to him. */
static void count_tick(void *ctx)
{
	struct fixture *f = ctx;
	struct pollfd ready = { .fd = f->listener, .events = POLLIN };
	f->ticks++;
	if (f->connection >= 0 || poll(&ready, 1, 0) != 1)
		return;
	f->connection = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
	shutdown(f->connection, SHUT_WR);
}

static void sh(struct fixture *f, const char *script)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", arena_text(&f->arena, script), NULL };
	struct error err = { 0 };
	struct plan plan;
	struct sandbox_io io = { &f->out, &f->errors, keep_listener, count_tick, f };
	buf_clear(&f->out);
	buf_clear(&f->errors);
	f->options.argv = argv;
	host_done(&f->host);
	host_init(&f->host);
	if (host_look(&f->host, NULL, NULL, &f->arena, &err) ||
		plan_build(&f->options, &f->host.facts, &f->arena, &plan, &err) ||
		sandbox_run(&plan, &f->host.cgroups, &io, &f->result, &err))
		fail_msg("%s", err.text);
}

static void layers_are_one_tree_and_the_topmost_wins(void **state)
{
	struct fixture *f = *state;
	sh(f, "cat /env/a /env/d/b /env/d/c; ls -A / | grep '^\\.env'; stat -c %u:%g /env/a "
	      "/env/d; echo $VIRTUAL_ENV");
	assert_string_equal(f->out.data, "top\nmid\nlow\n1000:1000\n1000:1000\n/env\n");
	assert_string_equal(f->errors.data, "");
}

static void what_is_changed_inside_is_gone_afterwards(void **state)
{
	struct fixture *f = *state;
	const char *changes =
		"cd /env && echo x >a && rm d/b && echo y >>d/c && mkdir n && rm -r d && "
		"mkdir d && ls d && mv a b && chmod 700 n && cat b";
	const char *look = "cd /env && cat a d/b d/c && ls";
	if (!overlay_takes_tmpfs())
		skip();
	for (int i = 0; i < 2; i++) {
		sh(f, changes);
		assert_string_equal(f->errors.data, "");
		assert_string_equal(f->out.data, "x\n");
		sh(f, look);
		assert_string_equal(f->out.data, "top\nmid\nlow\na\nd\n");
	}
}

static void an_upper_on_disk_keeps_the_changes(void **state)
{
	struct fixture *f = *state;
	f->environment.upper = f->disk_upper;
	sh(f, "cd /env && echo x >a && rm d/b && rm -r d && mkdir d && echo z >d/z");
	assert_string_equal(f->errors.data, "");
	sh(f, "cd /env && cat a && ls d");
	assert_string_equal(f->out.data, "x\nz\n");
	struct stat st;
	assert_int_equal(stat(arena_printf(&f->arena, "%s/up/upper/d/z", f->area), &st), 0);
	assert_int_equal(st.st_uid, f->environment.owner_uid);
	if (!overlay_takes_tmpfs())
		return;
	f->environment.upper = NULL;
	sh(f, "cat /env/a /env/d/b");
	assert_string_equal(f->out.data, "top\nmid\n");
}

static struct plan_tree add_other(struct fixture *f)
{
	struct plan_tree other = f->environment;
	make_directory(f, "layers/own");
	make_directory(f, "layers/own/tree");
	write_file(f, "layers/own/tree/a", "own\n");
	other.target = "/node";
	other.variables = NULL;
	other.lowers = (text_list){ 0 };
	vec_push(&f->arena, &other.lowers, "own/tree");
	vec_push(&f->arena, &other.lowers, "low/tree");
	return other;
}

/* Of two environments each has its own layers and its own changes. */
static void several_environments_are_trees_of_their_own(void **state)
{
	struct fixture *f = *state;
	struct plan_tree other = add_other(f);
	const char *script = "cat /env/a /node/a /node/d/c; echo x >/env/a; echo y >/node/a; "
			     "rm /node/d/c; cat /env/a /node/a /env/d/c; "
			     "cut -d' ' -f5 /proc/self/mountinfo | grep -c /workspace/; "
			     "ls -A /workspace";
	const char *expected = "top\nown\nlow\nx\ny\nlow\n0\n";
	vec_push(&f->arena, &f->options.environments, &other);
	if (overlay_takes_tmpfs()) {
		sh(f, script);
		assert_string_equal(f->out.data, expected);
	}
	make_directory(f, "up2");
	make_directory(f, "up2/upper");
	make_directory(f, "up2/work");
	f->environment.upper = "up";
	other.upper = "up2";
	sh(f, script);
	assert_string_equal(f->out.data, expected);
	sh(f, "cat /env/a /node/a");
	assert_string_equal(f->out.data, "x\ny\n");
	if (!overlay_takes_tmpfs())
		return;
	f->environment.upper = NULL; /* one that stays, after one that doesn't */
	sh(f, "cat /env/a /node/a");
	assert_string_equal(f->out.data, "top\ny\n");
}

/* Layers below the workspace: what is changed lies in its upper, or is gone. */
static void a_workspace_of_layers_is_one_tree(void **state)
{
	struct fixture *f = *state;
	struct plan_tree workspace = f->environment;
	const char *script = "cat a d/b d/c; echo x >a; rm d/b; echo z >z; mkdir n; cat a z; "
			     "ls d; stat -c %u:%g a d/c; cat /env/a; ls -Ad .[a-z]*; "
			     "grep -c carrel-test /proc/self/mountinfo";
	const char *expected = "top\nmid\nlow\nx\nz\nc\n1000:1000\n1000:1000\ntop\n0\n";
	workspace.variables = NULL;
	f->options.workspace = &workspace;
	if (overlay_takes_tmpfs()) {
		f->options.limits.disk_bytes = 4 << 20;
		sh(f, script);
		assert_string_equal(f->out.data, expected);
		sh(f, "head -c 6000000 /dev/zero >zeros; exit 1");
		assert_int_equal(f->result.reason, REASON_DISK_LIMIT);
		f->options.limits.disk_bytes = 0;
	}
	workspace.upper = f->disk_upper;
	f->environment.upper = "up2";
	make_directory(f, "up2");
	make_directory(f, "up2/upper");
	make_directory(f, "up2/work");
	sh(f, script);
	assert_string_equal(f->out.data, expected);
	sh(f, "cat a z; ls d");
	assert_string_equal(f->out.data, "x\nz\nc\n");
	struct stat st;
	assert_int_equal(stat(arena_printf(&f->arena, "%s/up/upper/z", f->area), &st), 0);
	assert_int_equal(st.st_uid, f->environment.owner_uid);
	assert_int_equal(stat(arena_printf(&f->arena, "%s/layers/mid/tree/d/b", f->area), &st), 0);
}

/* Neither the layers nor the upper have a name inside, and no path of the host shows. */
static void the_parts_are_out_of_reach(void **state)
{
	struct fixture *f = *state;
	sh(f, "cat /proc/self/mountinfo /proc/self/mounts | grep -c carrel-test; ls -d /.env; "
	      "grep -c ' /env ' /proc/self/mountinfo");
	assert_string_equal(f->out.data, "0\n1\n");
}

/* The owner of a home could put a link there: whoever mounts for him follows none. */
static void parts_behind_a_link_are_not_mounted(void **state)
{
	struct fixture *f = *state;
	char *const argv[] = { (char *)"true", NULL };
	struct error err = { 0 };
	struct plan plan;
	struct sandbox_io io = { &f->out, &f->errors, keep_listener, NULL, f };
	assert_int_equal(symlink("layers", arena_printf(&f->arena, "%s/link", f->area)), 0);
	f->environment.layers = "link";
	f->options.argv = argv;
	assert_int_equal(host_look(&f->host, NULL, NULL, &f->arena, &err), 0);
	assert_int_equal(plan_build(&f->options, &f->host.facts, &f->arena, &plan, &err), 0);
	assert_int_equal(sandbox_run(&plan, &f->host.cgroups, &io, &f->result, &err), -1);
	assert_non_null(strstr(err.text, "'link'"));
}

/* Not even one that takes a layer's place after it was looked at. */
static void a_layer_or_an_upper_that_is_a_link_leads_nowhere(void **state)
{
	static const char *const parts[] = { "layers/mid/tree", "up/upper" };
	struct fixture *f = *state;
	char *const argv[] = { (char *)"true", NULL };
	struct error err = { 0 };
	struct plan plan;
	struct sandbox_io io = { &f->out, &f->errors, keep_listener, NULL, f };
	f->environment.upper = f->disk_upper;
	f->options.argv = argv;
	assert_int_equal(host_look(&f->host, NULL, NULL, &f->arena, &err), 0);
	make_directory(f, "secret");
	for (size_t i = 0; i < 2; i++) {
		const char *part = arena_printf(&f->arena, "%s/%s", f->area, parts[i]);
		const char *aside = arena_printf(&f->arena, "%s.aside", part);
		assert_int_equal(rename(part, aside), 0);
		assert_int_equal(symlink(arena_printf(&f->arena, "%s/secret", f->area), part), 0);
		assert_int_equal(
			plan_build(&f->options, &f->host.facts, &f->arena, &plan, &err), 0);
		assert_int_equal(sandbox_run(&plan, &f->host.cgroups, &io, &f->result, &err), -1);
		assert_int_equal(unlink(part), 0);
		assert_int_equal(rename(aside, part), 0);
	}
	assert_int_equal(sandbox_run(&plan, &f->host.cgroups, &io, &f->result, &err), 0);
}

/* The build is root's, and the stage's name lies in a directory of the home's owner. */
static void a_build_stage_that_became_a_link_is_neither_measured_nor_shown(void **state)
{
	struct fixture *f = *state;
	const char *const argv[] = { "cat", "/env/key", NULL };
	struct home home = { f->area, -1, f->environment.owner_uid, f->environment.owner_gid,
		false };
	struct layer_store layers = { .home = &home, .dir = -1 };
	struct jobs jobs;
	struct job_result result;
	struct error err = { 0 };
	make_directory(f, "stage");
	make_directory(f, "secret");
	make_directory(f, "secret/root");
	write_file(f, "secret/root/key", "the secret\n");
	assert_int_equal(symlink("../secret", arena_printf(&f->arena, "%s/stage/x", f->area)), 0);
	jobs_init(&jobs, &layers);
	for (uint64_t disk_bytes = 0; disk_bytes <= 1; disk_bytes++) {
		struct job job = { .argv = argv,
			.stage = arena_printf(&f->arena, "%s/stage/x/root", f->area),
			.disk_bytes = disk_bytes << 30 };
		int failed =
			jobs.runner.run(jobs.runner.ctx, &job, &f->out, &f->errors, &result, &err);
		assert_null(memmem(f->out.data, f->out.len, "secret", 6));
		assert_int_equal(failed, -1);
		assert_non_null(strstr(err.text, "'stage/x/root'"));
	}
	jobs_done(&jobs);
}

static void a_stage_is_writable_at_env_and_measured(void **state)
{
	struct fixture *f = *state;
	struct plan_bind stage = { .source = arena_printf(&f->arena, "%s/layers", f->area),
		.kind = PATH_DIRECTORY,
		.owner_uid = f->environment.owner_uid,
		.owner_gid = f->environment.owner_gid };
	f->options.environments.count = 0;
	f->options.stage = &stage;
	sh(f, "echo new >/env/new; cat /env/top/tree/a; echo hi >/workspace/x && cat /workspace/x");
	assert_string_equal(f->out.data, "top\nhi\n");
	struct stat st;
	assert_int_equal(stat(arena_printf(&f->arena, "%s/layers/new", f->area), &st), 0);
	assert_int_equal(st.st_uid, f->environment.owner_uid);
	f->options.limits.disk_bytes = 4 << 20;
	sh(f, "for i in 1 2 3 4 5 6 7 8; do head -c 2000000 /dev/zero >/env/z$i; sleep 0.3; done; "
	      "exit 1");
	assert_int_equal(f->result.reason, REASON_DISK_LIMIT);
}

static void a_socket_listens_inside_and_is_ours(void **state)
{
	struct fixture *f = *state;
	const struct plan_network forward = { .forward = true };
	f->options.environments.count = 0;
	f->options.network = &forward;
	sh(f, "python3 -c 'import socket; s = socket.create_connection((\"127.0.0.1\", 3128)); "
	      "s.sendall(b\"ping\"); s.shutdown(1); print(s.recv(1))'");
	assert_string_equal(f->out.data, "b''\n");
	assert_true(f->listener >= 0);
	assert_true(f->ticks > 0);
	char text[8] = "";
	assert_int_equal(read(f->connection, text, sizeof text), 4);
	assert_string_equal(text, "ping");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(layers_are_one_tree_and_the_topmost_wins),
		TEST(what_is_changed_inside_is_gone_afterwards),
		TEST(an_upper_on_disk_keeps_the_changes),
		TEST(several_environments_are_trees_of_their_own),
		TEST(a_workspace_of_layers_is_one_tree),
		TEST(the_parts_are_out_of_reach),
		TEST(parts_behind_a_link_are_not_mounted),
		TEST(a_layer_or_an_upper_that_is_a_link_leads_nowhere),
		TEST(a_build_stage_that_became_a_link_is_neither_measured_nor_shown),
		TEST(a_stage_is_writable_at_env_and_measured),
		TEST(a_socket_listens_inside_and_is_ours),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
