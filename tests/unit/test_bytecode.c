#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/str.h"
#include "envs/python/bytecode.h"
#include "trees/layers/store.h"
#include "unit.h"

static void time_is_set_in_a_timestamped_head_only(void **state)
{
	unsigned char head[] = { 0xa7, 0x0d, '\r', '\n', 0, 0, 0, 0, 1, 2, 3, 4, 0x10, 0x27, 0, 0 };
	unsigned char copy[sizeof head];

	memcpy(copy, head, sizeof head);
	assert_false(bytecode_set_time(copy, 5, 9999));
	assert_memory_equal(copy, head, sizeof head);
	assert_true(bytecode_set_time(copy, 0x01020304, 10000));
	assert_int_equal(copy[8], 4);
	assert_int_equal(copy[11], 1);
	/* The field is modulo 2^32. */
	assert_true(bytecode_set_time(copy, 1, 10000 + (1ull << 32)));
	/* Checked and unchecked hash, and something else. */
	memcpy(copy, head, sizeof head);
	copy[4] = 1;
	assert_false(bytecode_set_time(copy, 5, 10000));
	copy[4] = 3;
	assert_false(bytecode_set_time(copy, 5, 10000));
	memcpy(copy, head, sizeof head);
	copy[2] = 'x';
	assert_false(bytecode_set_time(copy, 5, 10000));
}

static void source_names_are_found(void **state)
{
	static const struct {
		const char *pyc, *source;
	} rows[] = {
		{ "api.cpython-311.pyc", "api.py" },
		{ "api.cpython-311.opt-1.pyc", "api.py" },
		{ "a.b.cpython-311.pyc", "a.b.py" },
		{ "__init__.pypy39.pyc", "__init__.py" },
		{ "api.pyc", NULL },
		{ "api.py", NULL },
		{ ".cpython-311.pyc", NULL },
		{ ".pyc", NULL },
		{ "x.opt-1.pyc", NULL },
	};
	char out[256], tiny[5];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool found = bytecode_source_name(rows[i].pyc, out, sizeof out);
		assert_int_equal(found, rows[i].source != NULL);
		if (found)
			assert_string_equal(out, rows[i].source);
	}
	assert_false(bytecode_source_name("api.cpython-311.pyc", tiny, sizeof tiny));
}

/* Runs a line of Python in `dir`; its exit code. */
static int run_python(const char *dir, const char *code)
{
	pid_t child = fork();
	int status = 0;

	assert_true(child >= 0);
	if (child == 0) {
		unsetenv("PYTHONDONTWRITEBYTECODE");
		unsetenv("PYTHONPYCACHEPREFIX");
		if (chdir(dir) == 0)
			execl("/usr/bin/python3", "python3", "-c", code, (char *)NULL);
		_exit(99);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void python_takes_what_was_fitted_and_writes_nothing(void **state)
{
	char dir[] = "/tmp/unit-XXXXXX", path[128];
	struct stat before, after, source;
	struct error err = { 0 };

	if (access("/usr/bin/python3", X_OK) < 0)
		skip();
	assert_non_null(mkdtemp(dir));
	assert_int_equal(run_python(dir, "import py_compile\n"
					 "open('m.py','w').write('x = 41 + 1\\n')\n"
					 "py_compile.compile('m.py', 'made.pyc')\n"
					 "import os, importlib.util as u\n"
					 "os.mkdir('__pycache__')\n"
					 "os.rename('made.pyc', u.cache_from_source('m.py'))\n"
					 "os.symlink(u.cache_from_source('m.py'), 'link')\n"),
		0);
	str_format(path, sizeof path, "%s/m.py", dir);
	struct timespec times[2] = { { .tv_sec = LAYER_MTIME }, { .tv_sec = LAYER_MTIME } };
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(stat(path, &source), 0);
	str_format(path, sizeof path, "%s/link", dir);
	char target[128], real[300];
	ssize_t len = readlink(path, target, sizeof target - 1);
	assert_true(len > 0);
	target[len] = '\0';
	str_format(real, sizeof real, "%s/%s", dir, target);
	str_format(path, sizeof path, "%s/__pycache__", dir);
	auto_close int cache = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *name = strrchr(target, '/') + 1;

	assert_int_equal(bytecode_fit(cache, name, (uint64_t)source.st_size + 1, &err), 0);
	assert_int_equal(bytecode_fit(cache, name, (uint64_t)source.st_size, &err), 1);
	assert_int_equal(bytecode_fit(cache, "nothing.pyc", 1, &err), -1);
	assert_int_equal(stat(real, &before), 0);
	/* The loader says where the code came from: a stale file would be written again. */
	assert_int_equal(run_python(dir, "import sys; sys.path.insert(0, '')\n"
					 "import importlib._bootstrap_external as b\n"
					 "def no(*a, **k): raise SystemExit(7)\n"
					 "b.SourceLoader.source_to_code = no\n"
					 "import m; raise SystemExit(0 if m.x == 42 else 8)\n"),
		0);
	assert_int_equal(stat(real, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	/* And the probe can fail: without the time it is compiled again. */
	str_format(path, sizeof path, "%s/m.py", dir);
	times[0].tv_sec = times[1].tv_sec = LAYER_MTIME + 1;
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(run_python(dir, "import sys; sys.path.insert(0, '')\n"
					 "import importlib._bootstrap_external as b\n"
					 "def no(*a, **k): raise SystemExit(7)\n"
					 "b.SourceLoader.source_to_code = no\n"
					 "import m\n"),
		7);
	unlink(real);
	str_format(path, sizeof path, "%s/__pycache__", dir);
	rmdir(path);
	str_format(path, sizeof path, "%s/m.py", dir);
	unlink(path);
	str_format(path, sizeof path, "%s/link", dir);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_is_set_in_a_timestamped_head_only),
		cmocka_unit_test(source_names_are_found),
		cmocka_unit_test(python_takes_what_was_fitted_and_writes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
