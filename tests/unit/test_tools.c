/* uv, the index's hosts and the base of environments, with a stand-in for the sandbox and an index
 * on loopback. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "envs/python/base.h"
#include "envs/python/hosts.h"
#include "envs/python/interpreter.h"
#include "envs/python/known.h"
#include "envs/python/uv.h"
#include "stand_in.h"
#include "trees/layers/stage.h"
#include "trees/layers/store.h"
#include "unit.h"

static char root[64];
static struct arena arena;
static struct home home;
static struct stand_in stand_in;
static struct runner runner;
static struct interpreter python;
static struct index_set indexes;
static struct error err;
static pid_t server;

static const char *below(const char *name)
{
	return arena_printf(&arena, "%s/%s", root, name);
}

static void put(const char *name, const char *content, mode_t mode)
{
	const char *path = below(name);

	for (const char *slash = path + 1; (slash = strchr(slash, '/')); slash++)
		mkdir(arena_bytes(&arena, path, (size_t)(slash - path)), 0755);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, content, strlen(content)), (ssize_t)strlen(content));
}

static int set_up(void **state)
{
	bool is_default;

	if (access("/usr/bin/python3", X_OK) < 0)
		skip();
	str_copy(root, sizeof root, "/tmp/test_tools.XXXXXX");
	assert_non_null(mkdtemp(root));
	arena_init(&arena);
	err = (struct error){ 0 };
	setenv("PATH", below("bin"), 1);
	assert_int_equal(home_open(below("home"), &arena, &home, &err), 0);
	stand_in = (struct stand_in){ .arena = &arena };
	runner = (struct runner){ .ctx = &stand_in, .run = stand_in_run };
	indexes = (struct index_set){ 0 };
	server = 0;
	interpreter_choose(&home, NULL, NULL, &arena, &python, &is_default, &err);
	assert_int_equal(interpreter_look(&home, &runner, &python, &arena, &err), 0);
	stand_in.runs = 0;
	return 0;
}

static int tear_down(void **state)
{
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	home_done(&home);
	assert_int_equal(path_remove_tree(tmp, path_basename(root), NULL), 0);
	arena_done(&arena);
	return 0;
}

/* Serves <root>/www on a port of loopback; indexes.index is its address. */
static void serve(void)
{
	static const char script[] =
		"import http.server, os, sys\n"
		"class H(http.server.SimpleHTTPRequestHandler):\n"
		"    def log_message(self, *a): pass\n"
		"    extensions_map = {'': 'text/html', '.json': 'application/json'}\n"
		"s = http.server.HTTPServer(('127.0.0.1', 0), H)\n"
		"os.write(1, b'%d\\n' % s.server_port)\n"
		"s.serve_forever()\n";
	int fds[2];
	char port[16] = "";

	put("www/simple/x", "", 0644);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], 1);
		if (chdir(below("www")) == 0)
			execl("/usr/bin/python3", "python3", "-I", "-c", script, NULL);
		_exit(127);
	}
	close(fds[1]);
	ssize_t len = read(fds[0], port, sizeof port - 1);
	close(fds[0]);
	assert_true(len > 1);
	port[len - 1] = '\0';
	indexes.index = arena_printf(&arena, "http://127.0.0.1:%s/simple", port);
}

static void the_hosts_of_files_are_asked_of_the_index_once(void **state)
{
	file_hosts hosts = { 0 };

	serve();
	put("www/simple/pip/index.html",
		"<a href='http://Files.Example:8080/p/pip-1.tar.gz#sha256=aa'>x</a>"
		"<a href='https://other.example/pip-2.tar.gz'>x</a>"
		"<a href='https://other.example/pip-3.tar.gz'>x</a>"
		"<a href='../../own/pip-4.tar.gz'>x</a><a href='ftp://no.example/x'>x</a>"
		"<a href='https://bad_host:99999/x'>x</a><a href='javascript:x'>x</a>",
		0644);
	assert_int_equal(
		index_file_hosts(&home, &runner, &indexes, &python, NULL, &arena, &hosts, &err), 0);
	assert_true(stand_in.had_network);
	assert_int_equal(hosts.count, 2);
	assert_string_equal(hosts.items[0].host, "files.example");
	assert_int_equal(hosts.items[0].port, 8080);
	assert_string_equal(hosts.items[1].host, "other.example");
	assert_int_equal(hosts.items[1].port, 443);
	assert_int_equal(
		index_file_hosts(&home, &runner, &indexes, &python, NULL, &arena, &hosts, &err), 0);
	assert_int_equal(stand_in.runs, 1);
	assert_int_equal(hosts.count, 2);
}

static void another_project_is_asked_for_where_pip_is_not(void **state)
{
	file_hosts hosts = { 0 };
	const char *const projects[] = { "My.Own_pkg", NULL };

	serve();
	put("www/simple/my-own-pkg/index.html", "<a href='https://files.example/x-1.whl'>x</a>",
		0644);
	assert_int_equal(
		index_file_hosts(&home, &runner, &indexes, &python, NULL, &arena, &hosts, &err), 0);
	assert_int_equal(hosts.count, 0);
	assert_int_equal(
		index_file_hosts(&home, &runner, &indexes, &python, projects, &arena, &hosts, &err),
		0);
	assert_int_equal(hosts.count, 1);
}

static void plain_http_counts_for_a_plain_http_index_only(void **state)
{
	static const char said[] =
		"page pip\nhost http files.example 80\nhost https ok.example 443\n"
		"host https UPPER 443\nhost https a 0\nhost https a\n";
	const char *urls[] = { "https://index.example/simple", "http://index.example/simple" };
	char identity[KNOWN_IDENTITY_LEN + 1];

	for (size_t i = 0; i < 2; i++) {
		file_hosts hosts = { 0 };
		struct index_set set = { .index = urls[i] };
		known_identity_of_text(arena_printf(&arena, "hosts of %s", urls[i]), identity);
		known_write(&home, "tools", identity, str_from(said), &err);
		assert_int_equal(
			index_file_hosts(&home, &runner, &set, &python, NULL, &arena, &hosts, &err),
			0);
		assert_int_equal(hosts.count, 1 + i);
	}
	assert_int_equal(stand_in.runs, 0);
}

static void an_index_that_does_not_answer_is_named(void **state)
{
	file_hosts hosts = { 0 };
	struct index_set set = { .index = "https://index.example/simple" };

	stand_in.refuse = "hosts";
	assert_int_equal(
		index_file_hosts(&home, &runner, &set, &python, NULL, &arena, &hosts, &err), -1);
	assert_non_null(strstr(err.text, "index.example"));
	assert_int_equal(hosts.count, 0);
}

static void a_host_is_read_with_its_port_or_without(void **state)
{
	struct file_host host;
	const char *wrong[] = { "", ":443", "a:", "a:0", "a:65536", "a b", "a/b", "https://a",
		"a:1:2", "[::1", "[::1]x" };

	assert_int_equal(file_host_parse("Files.example", &arena, &host, &err), 0);
	assert_string_equal(host.host, "files.example");
	assert_int_equal(host.port, 443);
	assert_int_equal(file_host_parse("a:8080", &arena, &host, &err), 0);
	assert_int_equal(host.port, 8080);
	assert_int_equal(file_host_parse("[::1]:80", &arena, &host, &err), 0);
	assert_string_equal(host.host, "::1");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(file_host_parse(wrong[i], &arena, &host, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

static void a_uv_of_another_version_is_passed_over_and_asked_once(void **state)
{
	struct uv uv;

	/* An ELF file that says nothing of a version. */
	put("bin/x", "", 0644);
	assert_int_equal(symlink("/bin/true", below("bin/uv")), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(uv_find_here(&home, &runner, &arena, &uv, &err), -1);
		assert_int_equal(err.code, ERR_NOT_FOUND);
	}
	assert_int_equal(stand_in.runs, 1);
	assert_false(stand_in.had_network);
}

static void a_uv_that_had_no_time_to_answer_is_asked_again(void **state)
{
	struct uv uv;

	put("bin/x", "", 0644);
	assert_int_equal(symlink("/bin/true", below("bin/uv")), 0);
	stand_in.is_canceled = true;
	assert_int_equal(uv_find_here(&home, &runner, &arena, &uv, &err), -1);
	assert_int_equal(err.code, ERR_CANCELED);
	stand_in.is_canceled = false;
	assert_int_equal(uv_find_here(&home, &runner, &arena, &uv, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(stand_in.runs, 2);
}

static void a_uv_that_cannot_be_fetched_is_an_error_with_a_way_out(void **state)
{
	struct uv uv;

	serve();
	assert_int_equal(uv_find(&home, &runner, &indexes, &python, &arena, &uv, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "no index has a file of 'uv'"));
	assert_non_null(strstr(err.hint, UV_VERSION));
	/* What it gets isn't what its hash says: nothing is installed. */
	put("www/simple/uv/index.html",
		"<a href='uv.whl#sha256="
		"2c9bdc4a872b60a93c5f26c0791089ea11585a4f9d3b3c017d78eb8487505e25'>x</a>"
		"<a href='uv.whl#sha256="
		"a90f5d95716ab83091f0f73a8e7ec64e557abf2a28537fcd719b2ac88e6f725a'>x</a>",
		0644);
	put("www/simple/uv/uv.whl", "something else", 0644);
	assert_int_equal(uv_find(&home, &runner, &indexes, &python, &arena, &uv, &err), -1);
	assert_non_null(strstr(err.text, "hash mismatch"));
	assert_int_equal(access(below("home/tools/uv-" UV_VERSION), F_OK), -1);
}

static void the_default_index_is_what_pip_says(void **state)
{
	const char *url = NULL, *again = NULL;

	if (uv_default_index(&home, &runner, &python, &arena, &url, &err) < 0) {
		assert_int_equal(err.code, ERR_UNAVAILABLE); /* a host without pip */
		return;
	}
	assert_true(strncmp(url, "https://", 8) == 0);
	int runs = stand_in.runs;
	assert_int_equal(uv_default_index(&home, &runner, &python, &arena, &again, &err), 0);
	assert_string_equal(url, again);
	assert_int_equal(stand_in.runs, runs);
}

/* Runs bin/python of a tree and gives what it printed. */
static const char *run_tree(const char *tree, const char *code)
{
	auto_buf struct buf out, errors;
	struct job_result result;
	const char *const argv[] = { arena_printf(&arena, "%s/bin/python", tree), "-c", code,
		NULL };
	struct job job = { .argv = argv };

	buf_init(&out, 1 << 20);
	buf_init(&errors, 1 << 20);
	assert_int_equal(stand_in_run(&stand_in, &job, &out, &errors, &result, &err), 0);
	assert_int_equal(result.exit_code, 0);
	return arena_bytes(&arena, out.data, out.len);
}

static void the_base_is_a_virtual_environment(void **state)
{
	static const char code[] = "import sys, sysconfig, site\n"
				   "print(sys.prefix, sys.base_prefix)\n"
				   "print(sysconfig.get_path('purelib'))\n"
				   "print(sysconfig.get_path('scripts'))\n"
				   "print(site.getsitepackages()[0] in sys.path)\n"
				   "print(any('dist-packages' in p for p in sys.path))\n";
	assert_string_not_equal(interpreter_base_key(&arena, &python, false),
		interpreter_base_key(&arena, &python, true));
	for (int with_system = 0; with_system < 2; with_system++) {
		const char *tree = arena_printf(&arena, "%s/base%d", home.path, with_system);
		assert_int_equal(mkdir(tree, 0755), 0);
		auto_close int dir = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_int_equal(interpreter_base_tree(dir, &python, with_system, &err), 0);
		const char *said = run_tree(tree, code);
		assert_true(str_starts_with(str_from(said),
			arena_printf(&arena, "%s %s\n%s/lib/python%s/site-packages\n%s/bin\nTrue\n",
				tree, python.prefix, tree, python.minor, tree)));
		if (access("/usr/lib/python3/dist-packages", F_OK) == 0)
			assert_non_null(
				strstr(said, with_system ? "\nTrue\nTrue\n" : "\nTrue\nFalse\n"));
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_hosts_of_files_are_asked_of_the_index_once),
		CASE(another_project_is_asked_for_where_pip_is_not),
		CASE(plain_http_counts_for_a_plain_http_index_only),
		CASE(an_index_that_does_not_answer_is_named),
		CASE(a_host_is_read_with_its_port_or_without),
		CASE(a_uv_of_another_version_is_passed_over_and_asked_once),
		CASE(a_uv_that_had_no_time_to_answer_is_asked_again),
		CASE(a_uv_that_cannot_be_fetched_is_an_error_with_a_way_out),
		CASE(the_default_index_is_what_pip_says),
		CASE(the_base_is_a_virtual_environment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
