/* Interpreters: found by version wherever they are, asked once, and never a shim or somebody's
 * home. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "envs/python/interpreter.h"
#include "linux/home.h"
#include "stand_in.h"
#include "unit.h"

static char root[64];
static struct arena arena;
static struct home home;
static struct stand_in stand_in;
static struct runner runner;
static struct error err;

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

static void put_elf(const char *name)
{
	put(name, "\177ELF and so on", 0755);
}

static int set_up(void **state)
{
	str_copy(root, sizeof root, "/tmp/test_interpreter.XXXXXX");
	assert_non_null(mkdtemp(root));
	arena_init(&arena);
	err = (struct error){ 0 };
	setenv("HOME", below("person"), 1);
	setenv("PYENV_ROOT", below("pyenv"), 1);
	setenv("PATH", below("path/bin"), 1);
	unsetenv("XDG_DATA_HOME");
	unsetenv("UV_PYTHON_INSTALL_DIR");
	mkdir(below("home"), 0700);
	home = (struct home){ .path = below("home"), .uid = getuid(), .gid = getgid() };
	home.dir = open(home.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(home.dir >= 0);
	stand_in = (struct stand_in){ .arena = &arena };
	runner = (struct runner){ .ctx = &stand_in, .run = stand_in_run };
	return 0;
}

static int tear_down(void **state)
{
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	close(home.dir);
	assert_int_equal(path_remove_tree(tmp, path_basename(root), NULL), 0);
	arena_done(&arena);
	return 0;
}

static const struct interpreter *find_path(const interpreter_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].path, path) == 0)
			return &list->items[i];
	return NULL;
}

static void put_fakes(void)
{
	put_elf("pyenv/versions/3.71.2/bin/python3.71");
	put_elf("pyenv/versions/3.71.10/bin/python3.71");
	put_elf("pyenv/versions/3.7.16/bin/python3.7");
	put_elf("pyenv/versions/2.7.18/bin/python2.7");
	put("pyenv/shims/python3.73", "#!/bin/sh\nexec pyenv\n", 0755);
	put_elf("person/.local/share/uv/python/cpython-3.72.4-linux-x86_64-gnu/bin/python3.72");
	put_elf("home/pythons/cpython-3.74.0-linux-x86_64-gnu/bin/python3.74");
	put_elf("elsewhere/bin/python3.77");
	assert_int_equal(symlink(below("elsewhere"), below("home/pythons/3.77.0")), 0);
	put_elf("path/bin/python3.75");
	put("path/bin/python3.76", "\177ELF", 0644);
	put("path/bin/python3-config", "\177ELF", 0755);
	put("path/bin/python3.73", "#!/bin/sh\n", 0755);
	assert_int_equal(symlink("python3.75", below("path/bin/python3")), 0);
}

static void each_is_found_once_and_shims_are_not(void **state)
{
	interpreter_list list;
	int fakes = 0;

	put_fakes();
	interpreters_find(&home, &arena, &list);
	for (size_t i = 0; i < list.count; i++)
		fakes += strncmp(list.items[i].path, root, strlen(root)) == 0;
	assert_int_equal(fakes, 5);
	const struct interpreter *it =
		find_path(&list, below("pyenv/versions/3.71.10/bin/python3.71"));
	assert_non_null(it);
	assert_string_equal(it->version, "3.71.10");
	assert_string_equal(it->minor, "3.71");
	assert_null(it->tag);
	/* The newest of pyenv's comes first. */
	assert_true(it < find_path(&list, below("pyenv/versions/3.71.2/bin/python3.71")));
	assert_non_null(find_path(
		&list, below("person/.local/share/uv/python/cpython-3.72.4-linux-x86_64-gnu/"
			     "bin/python3.72")));
	assert_non_null(find_path(
		&list, below("home/pythons/cpython-3.74.0-linux-x86_64-gnu/bin/python3.74")));
	it = find_path(&list, below("path/bin/python3.75"));
	assert_non_null(it);
	assert_string_equal(it->version, "3.75");
}

static void a_version_is_chosen_by_as_much_as_is_said(void **state)
{
	struct interpreter it = { 0 };
	bool is_default = true;
	const struct {
		const char *wanted, *path;
	} cases[] = {
		{ "3.71", "pyenv/versions/3.71.10/bin/python3.71" },
		{ "python3.71", "pyenv/versions/3.71.10/bin/python3.71" },
		{ "3.71.2", "pyenv/versions/3.71.2/bin/python3.71" },
		{ "3.75", "path/bin/python3.75" },
		{ "3.75.1", "path/bin/python3.75" }, /* perhaps: it has to be asked */
	};

	put_fakes();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(interpreter_choose(&home, cases[i].wanted, NULL, &arena, &it,
					 &is_default, &err),
			-1);
		assert_int_equal(err.code, ERR_UNAVAILABLE);
		assert_string_equal(it.path, below(cases[i].path));
		assert_false(is_default);
	}
	assert_int_equal(
		interpreter_choose(&home, NULL, "3.72", &arena, &it, &is_default, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_string_equal(it.minor, "3.72");
	assert_true(is_default);
	assert_int_equal(
		interpreter_choose(&home, "3.72", "3.72", &arena, &it, &is_default, &err), -1);
	assert_true(is_default);
}

static void a_version_that_is_not_there_names_those_that_are(void **state)
{
	struct interpreter it = { 0 };
	bool is_default;
	const char *absent[] = { "3.99", "3.71.3", "python3.99", "4.1" };

	put_fakes();
	for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
		assert_int_equal(
			interpreter_choose(&home, absent[i], NULL, &arena, &it, &is_default, &err),
			-1);
		assert_int_equal(err.code, ERR_NOT_FOUND);
		assert_null(it.path);
	}
	interpreter_choose(&home, "3.99", NULL, &arena, &it, &is_default, &err);
	assert_string_equal(err.text, "no Python 3.99 on this host");
	assert_non_null(strstr(err.hint, "found: "));
	assert_non_null(strstr(err.hint, "3.71.10 ("));
}

static void a_version_that_is_too_old_is_said_to_be(void **state)
{
	struct interpreter it = { 0 };
	bool is_default;
	const char *old[] = { "2", "2.7", "3.6", "3.7.16" };

	put_fakes();
	for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
		assert_int_equal(
			interpreter_choose(&home, old[i], NULL, &arena, &it, &is_default, &err),
			-1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_non_null(strstr(err.text, "too old: 3.8 is the minimum"));
	}
}

static void what_is_no_version_is_said_to_be_none(void **state)
{
	struct interpreter it = { 0 };
	bool is_default;
	const char *wrong[] = { ">=3.12", "3.", "3..1", "", "latest", "3.12.1.4", "3.012", "3.12 ",
		"python", "3.12rc1", "99999" };

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(
			interpreter_choose(&home, wrong[i], NULL, &arena, &it, &is_default, &err),
			-1);
		assert_int_equal(err.code, ERR_INVALID);
	}
	put("x/shim", "#!/bin/sh\n", 0755);
	assert_int_equal(
		interpreter_choose(&home, below("x/shim"), NULL, &arena, &it, &is_default, &err),
		-1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(
		interpreter_choose(&home, below("x/none"), NULL, &arena, &it, &is_default, &err),
		-1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	put_elf("venv/bin/python3");
	put("venv/pyvenv.cfg", "home = /usr/bin\n", 0644);
	assert_int_equal(interpreter_choose(&home, below("venv/bin/python3"), NULL, &arena, &it,
				 &is_default, &err),
		-1);
	assert_int_equal(err.code, ERR_INVALID);
}

static void the_default_is_asked_once_and_known_then(void **state)
{
	struct interpreter it = { 0 }, again = { 0 };
	bool is_default = false;
	const char *known;

	if (access("/usr/bin/python3", X_OK) < 0)
		skip();
	assert_int_equal(interpreter_choose(&home, NULL, NULL, &arena, &it, &is_default, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_true(is_default);
	assert_int_equal(interpreter_look(&home, &runner, &it, &arena, &err), 0);
	assert_int_equal(stand_in.runs, 1);
	assert_false(stand_in.had_network);
	assert_true(it.in_usr);
	assert_string_equal(it.prefix, "/usr");
	assert_true(strncmp(it.tag, "cpython-3", 9) == 0);
	assert_int_equal(
		interpreter_choose(&home, NULL, NULL, &arena, &again, &is_default, &err), 0);
	assert_string_equal(again.tag, it.tag);
	assert_string_equal(again.version, it.version);
	assert_string_equal(again.path, it.path);
	assert_int_equal(
		interpreter_choose(&home, it.version, NULL, &arena, &again, &is_default, &err), 0);
	assert_true(is_default);
	assert_int_equal(
		interpreter_choose(&home, "3", NULL, &arena, &again, &is_default, &err), 0);
	/* What was kept is damaged: it is asked again, no more. */
	known = arena_printf(&arena, "home/pythons/.known/%s", it.identity);
	put(known, "version 3.1", 0600);
	assert_int_equal(
		interpreter_choose(&home, NULL, NULL, &arena, &again, &is_default, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(interpreter_look(&home, &runner, &again, &arena, &err), 0);
	assert_int_equal(
		interpreter_choose(&home, NULL, NULL, &arena, &again, &is_default, &err), 0);
}

static void what_answers_like_no_python_is_refused(void **state)
{
	const char *scripts[] = { "exit 2", "echo version 3.71.1", "echo hello",
		"printf 'version 3.7.1\\nimplementation x\\nmagic 1\\nabi 37\\nplatform p\\n'; "
		"echo "
		"prefix /usr",
		"printf 'version 3.71.1\\nimplementation x\\nmagic 1\\nabi 37\\nplatform p\\n'; "
		"echo "
		"prefix /root",
		"printf 'version 3.71.1\\nimplementation x y\\nmagic 1\\nabi 37\\nplatform p\\n'; "
		"echo prefix /usr" };

	put_elf("opt/it/bin/python3.71");
	put("opt/it/lib/python3.71/os.py", "", 0644);
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		struct interpreter it = { 0 };
		bool is_default;
		interpreter_choose(&home, below("opt/it/bin/python3.71"), NULL, &arena, &it,
			&is_default, &err);
		assert_non_null(it.path);
		put("opt/it/bin/python3.71", arena_printf(&arena, "#!/bin/sh\n%s\n", scripts[i]),
			0755);
		assert_int_equal(interpreter_look(&home, &runner, &it, &arena, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_null(it.tag);
		put_elf("opt/it/bin/python3.71");
	}
}

static void a_prefix_that_holds_more_than_a_python_is_never_shown(void **state)
{
	const char *bins[] = { "person/bin/python3.71", "bin/python3.71" };

	/* A home directory with a Python installed right into it, and one above it. */
	put("person/lib/python3.71/os.py", "", 0644);
	put("lib/python3.71/os.py", "", 0644);
	for (size_t i = 0; i < sizeof bins / sizeof *bins; i++) {
		struct interpreter it = { 0 };
		bool is_default;
		put_elf(bins[i]);
		interpreter_choose(&home, below(bins[i]), NULL, &arena, &it, &is_default, &err);
		assert_non_null(it.path);
		assert_int_equal(interpreter_look(&home, &runner, &it, &arena, &err), -1);
		assert_int_equal(err.code, ERR_DENIED);
		assert_int_equal(stand_in.runs, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			each_is_found_once_and_shims_are_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_version_is_chosen_by_as_much_as_is_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_version_that_is_not_there_names_those_that_are, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_version_that_is_too_old_is_said_to_be, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_is_no_version_is_said_to_be_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_default_is_asked_once_and_known_then, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_answers_like_no_python_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_prefix_that_holds_more_than_a_python_is_never_shown, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
