#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/path.h"
#include "envs/python/split.h"
#include "unit.h"

#define SITE "lib/python3.11/site-packages"
static const char *const own[] = { "pyvenv.cfg", "lib64", "bin/python", "bin/python3", NULL };

/* Of the texts "a" and "b". */
#define HASH_A "sha256=ypeBEsobvcr6wjGzmiPcTaeG7_gUfE5yuYB3ha_uSLs"
#define HASH_B "sha256=PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0"

struct fixture {
	char dir[32];
	int stage;
	struct arena arena;
	struct split split;
	struct error err;
};

static void put(struct fixture *f, const char *path, const void *data, size_t len)
{
	char full[512], *slash;
	auto_close int made = -1;

	str_format(full, sizeof full, "root/%s", path);
	slash = strrchr(full, '/');
	*slash = '\0';
	assert_int_equal(path_make_directories(f->stage, full, 0755, &made, &f->err), 0);
	auto_close int fd = openat(made, slash + 1, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, data, len), len);
}

static void put_text(struct fixture *f, const char *path, const char *text)
{
	put(f, path, text, strlen(text));
}

/* Bytecode made from a source of `source_size` bytes; flags 0: of the timestamp kind. */
static void put_bytecode(struct fixture *f, const char *path, unsigned char source_size, int flags)
{
	unsigned char data[20] = { 0xa7, 0x0d, '\r', '\n', (unsigned char)flags, 0, 0, 0, 9, 9, 9,
		9, source_size };

	put(f, path, data, sizeof data);
}

static void want(struct fixture *f, const char *name, const char *version)
{
	struct split_package package = { .name = name,
		.version = version,
		.draft = arena_printf(&f->arena, "drafts/%zu", f->split.packages.count) };

	vec_push(&f->arena, &f->split.packages, package);
}

static bool has(struct fixture *f, const char *path)
{
	return faccessat(f->stage, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	str_copy(f->dir, sizeof f->dir, "/tmp/unit-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->stage = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	arena_init(&f->arena);
	f->split = (struct split){
		.arena = &f->arena, .stage = f->stage, .root = "root", .site = SITE, .own = own
	};
	put_text(f, "pyvenv.cfg", "home = /usr/bin\n");
	put_text(f, ".cache/x", "uv's");
	put_text(f, ".lock", "");
	put_text(f, SITE "/a/__init__.py", "1\n");
	put_text(f, SITE "/a/sub/m.py", "12\n");
	put_bytecode(f, SITE "/a/__pycache__/__init__.cpython-311.pyc", 2, 0);
	put_text(f, SITE "/a-1.0.dist-info/RECORD",
		"a/__init__.py,,2\na/sub/m.py,,3\na-1.0.dist-info/RECORD,,\n");
	assert_int_equal(symlinkat("/usr/bin/python3", f->stage, "root/lib64"), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	auto_close int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(path_remove_tree(tmp, f->dir + 5, &f->err), 0);
	close(f->stage);
	arena_done(&f->arena);
	free(f);
	return 0;
}

static void each_package_gets_its_files(void **state)
{
	struct fixture *f = *state;

	/* A shared directory (a namespace package), a module at the top with its bytecode, a
	 * script, and a data file. */
	put_text(f, SITE "/ns/a/x.py", "xx");
	put_text(f, SITE "/ns/b/y.py", "yy");
	put_text(f, SITE "/six.py", "six");
	put_bytecode(f, SITE "/__pycache__/six.cpython-311.pyc", 3, 0);
	put_text(f, "bin/b-tool", "#!/env/bin/python3\n");
	put_text(f, "share/man/b.1", "b");
	put_text(f, SITE "/a-1.0.dist-info/RECORD",
		"a/__init__.py,,\na/sub/m.py,,\nns/a/x.py,,\na-1.0.dist-info/RECORD,,\n");
	put_text(f, SITE "/B_b-2.dist-info/RECORD",
		"ns/b/y.py,,\nsix.py,,\n../../../bin/b-tool,,\n../../../share/man/b.1,,\n"
		"B_b-2.dist-info/RECORD,,\n");
	want(f, "a", "1.0");
	want(f, "b-b", "2");
	assert_int_equal(split_tree(&f->split, &f->err), 0);
	assert_true(has(f, "drafts/0/tree/" SITE "/a/sub/m.py"));
	assert_true(has(f, "drafts/0/tree/" SITE "/a/__pycache__/__init__.cpython-311.pyc"));
	assert_true(has(f, "drafts/0/tree/" SITE "/ns/a/x.py"));
	assert_false(has(f, "drafts/0/tree/" SITE "/ns/b"));
	assert_true(has(f, "drafts/1/tree/" SITE "/ns/b/y.py"));
	assert_true(has(f, "drafts/1/tree/" SITE "/six.py"));
	assert_true(has(f, "drafts/1/tree/" SITE "/__pycache__/six.cpython-311.pyc"));
	assert_true(has(f, "drafts/1/tree/bin/b-tool"));
	assert_true(has(f, "drafts/1/tree/share/man/b.1"));
	assert_true(has(f, "drafts/1/tree/" SITE "/B_b-2.dist-info/RECORD"));
	assert_true(has(f, "root/pyvenv.cfg"));
	assert_false(has(f, "drafts/0/tree/lib64"));
	assert_null(f->split.packages.items[0].rival);
}

static void bytecode_that_doesnt_fit_is_removed(void **state)
{
	struct fixture *f = *state;

	put_bytecode(f, SITE "/a/sub/__pycache__/m.cpython-311.pyc", 99, 0);
	put_bytecode(f, SITE "/a/sub/__pycache__/m.cpython-312.pyc", 3, 1);
	put_bytecode(f, SITE "/a/sub/__pycache__/gone.cpython-311.pyc", 3, 0);
	want(f, "a", "1.0");
	assert_int_equal(split_tree(&f->split, &f->err), 0);
	assert_false(has(f, "drafts/0/tree/" SITE "/a/sub/__pycache__/m.cpython-311.pyc"));
	assert_false(has(f, "drafts/0/tree/" SITE "/a/sub/__pycache__/m.cpython-312.pyc"));
	assert_false(has(f, "drafts/0/tree/" SITE "/a/sub/__pycache__/gone.cpython-311.pyc"));
}

static void what_uv_leaves_is_removed_with_its_line(void **state)
{
	struct fixture *f = *state;
	char text[256];

	put_text(f, SITE "/a-1.0.dist-info/uv_cache.json", "{}");
	put_text(f, SITE "/a-1.0.dist-info/RECORD",
		"a/__init__.py,,2\na-1.0.dist-info/uv_cache.json,,2\n"
		"a/__pycache__/__init__.cpython-311.pyc,,\na/sub/m.py,,3\n"
		"a-1.0.dist-info/RECORD,,\n");
	want(f, "a", "1.0");
	assert_int_equal(split_tree(&f->split, &f->err), 0);
	assert_false(has(f, "drafts/0/tree/" SITE "/a-1.0.dist-info/uv_cache.json"));
	assert_true(fd_read_file(f->stage, "drafts/0/tree/" SITE "/a-1.0.dist-info/RECORD", text,
			    sizeof text) > 0);
	assert_string_equal(text, "a/__init__.py,,2\na/sub/m.py,,3\na-1.0.dist-info/RECORD,,\n");
}

static void rivals_are_marked(void **state)
{
	struct fixture *f = *state;

	put_text(f, SITE "/tests/__init__.py", "");
	put_text(f, SITE "/a-1.0.dist-info/RECORD",
		"a/__init__.py,,\na/sub/m.py,,\ntests/__init__.py,,\na-1.0.dist-info/RECORD,,\n");
	put_text(f, SITE "/b-1.dist-info/RECORD", "tests/__init__.py,,\nb-1.dist-info/RECORD,,\n");
	put_text(f, SITE "/c.py", "");
	put_text(f, SITE "/c-1.dist-info/RECORD", "c.py,,\nc-1.dist-info/RECORD,,\n");
	want(f, "a", "1.0");
	want(f, "b", "1");
	want(f, "c", "1");
	assert_int_equal(split_tree(&f->split, &f->err), 0);
	assert_string_equal(f->split.packages.items[0].rival, "b");
	assert_string_equal(f->split.packages.items[1].rival, "a");
	assert_null(f->split.packages.items[2].rival);
	assert_true(has(f, "drafts/2/tree/" SITE "/c.py"));
}

/* Both list x.py, y.py and z.py; two of these have b's content. */
static void rivals_are_ordered_by_what_the_tree_has(void **state)
{
	struct fixture *f = *state;

	put_text(f, SITE "/x.py", "b");
	put_text(f, SITE "/y.py", "b");
	put_text(f, SITE "/z.py", "a");
	put_text(f, SITE "/a-1.0.dist-info/RECORD",
		"a/__init__.py,,\na/sub/m.py,,\na-1.0.dist-info/RECORD,,\n"
		"x.py," HASH_A ",1\ny.py," HASH_A ",1\nz.py," HASH_A ",1\n");
	put_text(f, SITE "/b-1.dist-info/RECORD",
		"b-1.dist-info/RECORD,,\nx.py," HASH_B ",1\ny.py," HASH_B ",1\nz.py," HASH_B
		",1\n");
	want(f, "a", "1.0");
	want(f, "b", "1");
	assert_int_equal(split_tree(&f->split, &f->err), 0);
	assert_int_equal(f->split.order.count, 2);
	assert_int_equal(f->split.order.items[0], 1);
	assert_int_equal(f->split.order.items[1], 0);
}

static void refused(struct fixture *f, const char *record, enum error_code code, const char *named)
{
	put_text(f, SITE "/a-1.0.dist-info/RECORD", record);
	want(f, "a", "1.0");
	assert_int_equal(split_tree(&f->split, &f->err), -1);
	assert_int_equal(f->err.code, code);
	assert_non_null(strstr(f->err.text, named));
}

static void a_record_that_leaves_the_environment_is_refused(void **state)
{
	refused(*state, "../../../../etc/passwd,,\n", ERR_DENIED, "etc/passwd");
}

static void an_absolute_path_is_refused(void **state)
{
	refused(*state, "/etc/passwd,,\n", ERR_DENIED, "a==1.0: RECORD names '/etc/passwd'");
}

static void another_packages_record_is_refused(void **state)
{
	refused(*state, "a/__init__.py,,\n../../python3.11/site-packages/b-1.dist-info/RECORD,,\n",
		ERR_DENIED, "a==1.0: RECORD names '" SITE "/b-1.dist-info/RECORD'");
}

static void bytecode_that_was_brought_is_dropped(void **state)
{
	struct fixture *f = *state;

	put_bytecode(f, "share/x/__pycache__/m.cpython-311.opt-1.pyc", 2, 0);
	put_text(f, "share/x/__pycache__/kept.txt", "");
	put_text(f, "share/x/__pycache__/deep/kept.pyc", "");
	put_text(f, "share/x/kept.pyc", "");
	put_text(f, ".cache/__pycache__/kept.pyc", "");
	assert_int_equal(split_drop_bytecode(f->stage, "root", &f->err), 0);
	assert_false(has(f, "root/" SITE "/a/__pycache__/__init__.cpython-311.pyc"));
	assert_false(has(f, "root/share/x/__pycache__/m.cpython-311.opt-1.pyc"));
	assert_true(has(f, "root/share/x/__pycache__/kept.txt"));
	assert_true(has(f, "root/share/x/__pycache__/deep/kept.pyc"));
	assert_true(has(f, "root/share/x/kept.pyc"));
	assert_true(has(f, "root/.cache/__pycache__/kept.pyc"));
}

static void the_environments_own_files_are_refused(void **state)
{
	refused(*state, "../../../bin/python3,,\n", ERR_DENIED, "bin/python3");
}

static void uvs_cache_is_refused(void **state)
{
	refused(*state, "../../../.cache/x,,\n", ERR_DENIED, ".cache/x");
}

static void a_file_nobody_lists_is_refused(void **state)
{
	struct fixture *f = *state;

	put_text(f, SITE "/evil.pth", "import os");
	refused(f, "a/__init__.py,,\na/sub/m.py,,\na-1.0.dist-info/RECORD,,\n", ERR_DENIED,
		SITE "/evil.pth");
}

static void a_link_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(symlinkat("/etc", f->stage, "root/" SITE "/link"), 0);
	refused(f, "a/__init__.py,,\na/sub/m.py,,\na-1.0.dist-info/RECORD,,\n", ERR_DENIED, "link");
}

/* Names of files are removed and written there before the tree is walked. */
static void a_link_above_the_packages_is_not_followed(void **state)
{
	struct fixture *f = *state;

	put_text(f, SITE "/a-1.0.dist-info/direct_url.json", "theirs");
	assert_int_equal(renameat(f->stage, "root/lib", f->stage, "elsewhere"), 0);
	assert_int_equal(symlinkat("../elsewhere", f->stage, "root/lib"), 0);
	want(f, "a", "1.0");
	assert_int_equal(split_tree(&f->split, &f->err), -1);
	assert_true(has(f, "elsewhere/python3.11/site-packages/a-1.0.dist-info/direct_url.json"));
}

static void a_record_that_isnt_one_is_refused(void **state)
{
	refused(*state, "\"a,,\n", ERR_CORRUPT, "a==1.0: RECORD");
}

static void what_wasnt_asked_for_is_refused(void **state)
{
	struct fixture *f = *state;

	put_text(f, SITE "/b-1.dist-info/RECORD", "b-1.dist-info/RECORD,,\n");
	refused(f, "a/__init__.py,,\n", ERR_DENIED, "");
}

static void what_isnt_there_is_named(void **state)
{
	struct fixture *f = *state;

	want(f, "missing", "3");
	refused(f, "a/__init__.py,,\n", ERR_CORRUPT, "missing==3");
}

static void hashes_are_compared_with_record(void **state)
{
	struct fixture *f = *state;
	unsigned char sha[SHA256_LEN];
	struct sha256 hash;

	sha256_init(&hash);
	sha256_end(&hash, sha);
	put_text(f, SITE "/a/empty", "");
	put_text(f, SITE "/a-1.0.dist-info/RECORD",
		"a/__init__.py,,2\na/sub/m.py,,\na-1.0.dist-info/RECORD,,\n"
		"a/empty,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n");
	want(f, "a", "1.0");
	assert_int_equal(split_tree(&f->split, &f->err), 0);
	assert_int_equal(split_seen(&f->split, 0, SITE "/a/empty", sha, 0, &f->err), 0);
	assert_int_equal(split_seen(&f->split, 0, SITE "/a/__init__.py", sha, 2, &f->err), 0);
	assert_int_equal(split_seen(&f->split, 0, SITE "/a/__pycache__/__init__.cpython-311.pyc",
				 sha, 2, &f->err),
		0);
	sha[0] ^= 1;
	assert_int_equal(split_seen(&f->split, 0, SITE "/a/empty", sha, 0, &f->err), -1);
	assert_int_equal(f->err.code, ERR_CORRUPT);
	assert_non_null(strstr(f->err.text, "a==1.0: '" SITE "/a/empty'"));
	assert_int_equal(split_seen(&f->split, 0, SITE "/a/__init__.py", sha, 3, &f->err), -1);
	assert_int_equal(split_seen(&f->split, 0, SITE "/a/more", sha, 3, &f->err), -1);
	assert_int_equal(f->err.code, ERR_DENIED);
	assert_int_equal(
		split_seen(&f->split, 0, SITE "/a/__pycache__/no.cpython-311.pyc", sha, 3, &f->err),
		-1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_package_gets_its_files),
		TEST(bytecode_that_doesnt_fit_is_removed),
		TEST(what_uv_leaves_is_removed_with_its_line),
		TEST(rivals_are_marked),
		TEST(rivals_are_ordered_by_what_the_tree_has),
		TEST(a_record_that_leaves_the_environment_is_refused),
		TEST(an_absolute_path_is_refused),
		TEST(another_packages_record_is_refused),
		TEST(bytecode_that_was_brought_is_dropped),
		TEST(the_environments_own_files_are_refused),
		TEST(uvs_cache_is_refused),
		TEST(a_file_nobody_lists_is_refused),
		TEST(a_link_is_refused),
		TEST(a_link_above_the_packages_is_not_followed),
		TEST(a_record_that_isnt_one_is_refused),
		TEST(what_wasnt_asked_for_is_refused),
		TEST(what_isnt_there_is_named),
		TEST(hashes_are_compared_with_record),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
