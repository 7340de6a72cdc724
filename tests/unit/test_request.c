#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/path.h"
#include "envs/python/internal.h"
#include "unit.h"

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B64 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

struct fixture {
	struct arena arena;
	char dir[64];
	struct home home;
	struct env_store store;
	struct env_request request;
	struct env_wanted wanted;
	struct build_problem problem;
	struct error err;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	arena_init(&f->arena);
	str_copy(f->dir, sizeof f->dir, "/tmp/unit-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(
		home_open(arena_printf(&f->arena, "%s/home", f->dir), &f->arena, &f->home, &f->err),
		0);
	assert_int_equal(env_store_open(&f->home, &f->arena, &f->store, &f->err), 0);
	f->request.package_id = "agent@1.0";
	f->request.index.index = "https://index.example/simple";
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	auto_close int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

	env_store_done(&f->store);
	home_done(&f->home);
	assert_int_equal(path_remove_tree(tmp, f->dir + 5, &f->err), 0);
	arena_done(&f->arena);
	free(f);
	return 0;
}

static void write_requirements(struct fixture *f, const char *text)
{
	const char *path = arena_printf(&f->arena, "%s/requirements.txt", f->dir);
	f->request.requirement_files.count = 0;
	vec_push(&f->arena, &f->request.requirement_files, path);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), strlen(text));
}

static int prepare(struct fixture *f)
{
	return env_request_prepare(
		&f->store, &f->request, &f->arena, &f->wanted, &f->problem, &f->err);
}

static void ask(struct fixture *f, const char *spec)
{
	vec_push(&f->arena, &f->request.pip, spec);
}

static void refused(
	struct fixture *f, enum build_failure failure, const char *package, const char *says)
{
	assert_int_equal(prepare(f), -1);
	assert_int_equal(f->problem.failure, failure);
	if (package)
		assert_string_equal(f->problem.package, package);
	if (!strstr(f->err.text, says))
		fail_msg("'%s' doesn't say '%s'", f->err.text, says);
}

static void names_come_from_the_bytes(void **state)
{
	struct fixture *f = *state;

	write_requirements(f, "six\n");
	assert_int_equal(prepare(f), 0);
	assert_string_equal(f->wanted.requirements_sha256,
		"fe2547fe2604b445e70fc9d819062960552f9145bdb043b51986e478a4806a2b");
	assert_int_equal(strncmp(f->wanted.name, "agent@1.0_", 10), 0);
	assert_int_equal(strncmp(f->wanted.name + 10, f->wanted.requirements_sha256, 7), 0);
}

static void specs_are_sorted(void **state)
{
	struct fixture *f = *state;
	const char *first;

	ask(f, "six");
	ask(f, "idna>=3");
	assert_int_equal(prepare(f), 0);
	assert_int_equal(f->wanted.text.len, strlen("idna>=3\nsix"));
	assert_memory_equal(f->wanted.text.data, "idna>=3\nsix", f->wanted.text.len);
	first = f->wanted.name;
	f->request.pip.items[0] = "idna>=3";
	f->request.pip.items[1] = "six";
	assert_int_equal(prepare(f), 0);
	assert_string_equal(f->wanted.name, first);
}

static void nothing_is_no_deps(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(prepare(f), 0);
	assert_string_equal(f->wanted.requirements_sha256, "no-deps");
	assert_int_equal(strncmp(f->wanted.name, "agent@1.0_no-deps", 17), 0);
}

static void what_isnt_a_package_is_denied_with_its_line(void **state)
{
	static const char *const lines[] = { "six @ https://x.example/six.whl", "./six", "-e ../x",
		"-i https://x.example", "--extra-index-url https://x.example" };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		write_requirements(f, arena_printf(&f->arena, "idna\n\n%s\n", lines[i]));
		refused(f, BUILD_DENIED, NULL, "line 3");
		assert_true(f->err.hint[0] != '\0');
	}
}

static void mistakes_name_their_line(void **state)
{
	struct fixture *f = *state;

	write_requirements(f, "idna\nthis is ! nothing\n");
	refused(f, BUILD_INVALID, NULL, "line 2");
	write_requirements(f, "idna\xff\n");
	refused(f, BUILD_INVALID, NULL, "UTF-8");
	f->request.requirement_files.items[0] = "/nonexistent/requirements.txt";
	refused(f, BUILD_INVALID, NULL, "/nonexistent/requirements.txt");
	ask(f, "six");
	f->request.requirement_files.count = 0;
	f->request.pip.items[0] = "six\nidna";
	refused(f, BUILD_INVALID, NULL, "one line");
	f->request.package_id = "../x";
	refused(f, BUILD_INVALID, NULL, "'../x'");
}

static void lists_count_for_normal_names(void **state)
{
	struct fixture *f = *state;

	vec_push(&f->arena, &f->store.config.blocked_packages, "evil-pkg");
	ask(f, "Evil_Pkg==1");
	refused(f, BUILD_DENIED, "evil-pkg", "blocked");
	f->store.config.blocked_packages.count = 0;
	vec_push(&f->arena, &f->store.config.allowed_packages, "six");
	refused(f, BUILD_DENIED, "evil-pkg", "allowed");
	f->request.pip.items[0] = "SIX";
	assert_int_equal(prepare(f), 0);
}

static void hashes_are_for_all_or_none(void **state)
{
	struct fixture *f = *state;

	write_requirements(f, "six==1 --hash=sha256:" A64 "\nidna==2\n");
	refused(f, BUILD_INVALID, "idna", "line 2");
	write_requirements(f, "six>=1 --hash=sha256:" A64 "\n");
	refused(f, BUILD_INVALID, "six", "exact version");
	write_requirements(f, "six==1\n");
	f->request.require_hashes = true;
	refused(f, BUILD_INVALID, "six", "hash");
	f->request.require_hashes = false;
	write_requirements(f, "--require-hashes\nsix==1\n");
	refused(f, BUILD_INVALID, "six", "line 2");
	write_requirements(f, "six==1 --hash=sha256:" A64 "\n");
	assert_int_equal(prepare(f), 0);
	assert_true(f->wanted.is_strict);
}

static struct lock_package package_with(
	struct fixture *f, const char *name, const char *first, const char *second)
{
	struct lock_package package = { .name = name, .version = "1" };

	vec_push(&f->arena, &package.hashes, first);
	vec_push(&f->arena, &package.hashes, second);
	return package;
}

static void only_given_hashes_are_kept(void **state)
{
	struct fixture *f = *state;
	lock_list lock = { 0 };

	write_requirements(f, "six==1 --hash=sha256:" B64 "\n");
	assert_int_equal(prepare(f), 0);
	vec_push(&f->arena, &lock, package_with(f, "six", "sha256:" A64, "sha256:" B64));
	assert_int_equal(policy_keep_hashes(&f->wanted.requirements, false, &lock, &f->arena,
				 &f->problem, &f->err),
		0);
	assert_int_equal(lock.items[0].hashes.count, 1);
	assert_string_equal(lock.items[0].hashes.items[0], "sha256:" B64);
	/* Nothing of the index fits. */
	lock.items[0] = package_with(f, "six", "sha256:" A64, "sha256:" A64);
	assert_int_equal(policy_keep_hashes(&f->wanted.requirements, false, &lock, &f->arena,
				 &f->problem, &f->err),
		-1);
	assert_int_equal(f->problem.failure, BUILD_HASH_MISMATCH);
	/* A dependency that has none. */
	lock.items[0] = package_with(f, "six", "sha256:" A64, "sha256:" B64);
	vec_push(&f->arena, &lock, package_with(f, "dep", "sha256:" A64, "sha256:" B64));
	assert_int_equal(policy_keep_hashes(&f->wanted.requirements, false, &lock, &f->arena,
				 &f->problem, &f->err),
		-1);
	assert_string_equal(f->problem.package, "dep");
}

static void dependencies_are_judged_too(void **state)
{
	struct fixture *f = *state;
	lock_list lock = { 0 };

	vec_push(&f->arena, &lock, package_with(f, "evil", "sha256:" A64, "sha256:" B64));
	assert_int_equal(policy_judge_lock(&f->store.config, &lock, &f->problem, &f->err), 0);
	vec_push(&f->arena, &f->store.config.blocked_packages, "evil");
	assert_int_equal(policy_judge_lock(&f->store.config, &lock, &f->problem, &f->err), -1);
	assert_string_equal(f->problem.package, "evil");
}

static void keys_differ_by_all_that_matters(void **state)
{
	struct fixture *f = *state;
	struct lock_package package = package_with(f, "six", "sha256:" A64, "sha256:" B64);
	const char *key = wheel_key(&f->arena, &package, "cpython-311", NULL);

	assert_string_not_equal(key, wheel_key(&f->arena, &package, "cpython-312", NULL));
	struct index_set one = { .index = "https://u:p@one/simple" },
			 two = { .index = "https://two/simple" };
	const char *built = wheel_key(&f->arena, &package, "cpython-311", &one);
	assert_string_not_equal(key, built);
	assert_null(strstr(built, "u:p"));
	assert_string_not_equal(built, wheel_key(&f->arena, &package, "cpython-311", &two));
	package.hashes.count = 1;
	assert_string_not_equal(key, wheel_key(&f->arena, &package, "cpython-311", NULL));
	assert_string_equal(pip_for("3.8", &f->arena)->version, "25.0.1");
	assert_string_not_equal(
		pip_for("3.9", &f->arena)->version, pip_for("3.12", &f->arena)->version);
}

static void write_project(struct fixture *f, const char *file, const char *text)
{
	const char *path = arena_printf(&f->arena, "%s/%s", f->dir, file);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(fd_write_full(fd, text, strlen(text)), strlen(text));
}

static const char *digest_now(struct fixture *f)
{
	assert_int_equal(wanted_look_at_projects(&f->wanted, &f->arena, &f->err), 0);
	assert_int_equal(f->wanted.projects.count, 1);
	return f->wanted.projects.items[0].digest;
}

static void projects_are_known_by_what_describes_them(void **state)
{
	struct fixture *f = *state;

	f->wanted.request = &f->request;
	f->wanted.python.minor = "3.11";
	vec_push(&f->arena, &f->request.editables, f->dir);
	assert_null(digest_now(f));
	assert_non_null(editable_key(&f->wanted, &f->arena));
	write_project(f, "pyproject.toml", "[tool.linter]\nx = '[project]'\n");
	assert_null(digest_now(f));
	write_project(f, "pyproject.toml", " [project] # mine\nname = 'x'\n");
	const char *first = digest_now(f);
	assert_non_null(first);
	assert_null(editable_key(&f->wanted, &f->arena));
	assert_string_equal(first, digest_now(f));
	write_project(f, "module.py", "x = 1\n");
	assert_string_equal(first, digest_now(f));
	write_project(f, "setup.cfg", "\xff");
	assert_string_not_equal(first, digest_now(f));
	write_project(f, "pyproject.toml", "\xff");
	assert_int_equal(wanted_look_at_projects(&f->wanted, &f->arena, &f->err), -1);
	assert_non_null(strstr(f->err.text, "pyproject.toml"));
}

static void locks_are_kept_and_found(void **state)
{
	static const char text[] = "six==1 \\\n    --hash=sha256:" A64 "\n";
	struct fixture *f = *state;
	lock_list lock = { 0 };
	struct str found;

	assert_int_equal(lock_load(&f->store, A64, &f->arena, &lock, &found, &f->err), 0);
	assert_int_equal(
		lock_keep(&f->store, A64, (struct str){ text, sizeof text - 1 }, &f->err), 0);
	assert_int_equal(lock_load(&f->store, A64, &f->arena, &lock, &found, &f->err), 1);
	assert_int_equal(lock.count, 1);
	assert_int_equal(lock_keep(&f->store, A64, STR("half a li"), &f->err), 0);
	assert_int_equal(lock_load(&f->store, A64, &f->arena, &lock, &found, &f->err), 0);
}

static void complete(struct fixture *f)
{
	assert_int_equal(prepare(f), 0);
	f->wanted.python = (struct interpreter){
		.path = "/usr/bin/python3", .version = "3.12.1", .tag = "cpython-312"
	};
	wanted_complete(&f->store, &f->wanted, &f->arena);
}

/* Options are lines of the text, in the form of comments. */
static void comments_that_look_like_options_are_not_taken_for_them(void **state)
{
	struct fixture *f = *state;

	write_requirements(f, "six\n# constraint: six<1.16\n");
	complete(f);
	struct env_wanted commented = f->wanted;
	f->request.requirement_files.count = 0;
	ask(f, "six");
	vec_push(&f->arena, &f->request.constraint_lines, "six<1.16");
	complete(f);
	assert_true(str_equal(f->wanted.text, commented.text));
	assert_string_not_equal(f->wanted.lock_key, commented.lock_key);
	assert_string_not_equal(f->wanted.fingerprint, commented.fingerprint);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_come_from_the_bytes),
		TEST(specs_are_sorted),
		TEST(nothing_is_no_deps),
		TEST(what_isnt_a_package_is_denied_with_its_line),
		TEST(mistakes_name_their_line),
		TEST(lists_count_for_normal_names),
		TEST(hashes_are_for_all_or_none),
		TEST(only_given_hashes_are_kept),
		TEST(dependencies_are_judged_too),
		TEST(keys_differ_by_all_that_matters),
		TEST(projects_are_known_by_what_describes_them),
		TEST(locks_are_kept_and_found),
		TEST(comments_that_look_like_options_are_not_taken_for_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
