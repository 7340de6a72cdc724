/* Which program a name runs where a policy judges commands: the names that no package takes, what
 * can't be attached, and the plan of such a sandbox. */
/* security: policy */
#include "sandbox/plan/programs.h"
#include <string.h>
#include "sandbox/plan/plan.h"
#include "unit.h"

static void names_of_interpreters_are_known(void **state)
{
	static const struct {
		const char *name;
		enum program_name is;
	} names[] = {
		{ "python", PROGRAM_PYTHON },
		{ "python3", PROGRAM_PYTHON },
		{ "python3.12", PROGRAM_PYTHON },
		{ "python-config", PROGRAM_ANY },
		{ "pip", PROGRAM_PIP },
		{ "pip3.12", PROGRAM_PIP },
		{ "pipx", PROGRAM_ANY },
		{ "sh", PROGRAM_RESERVED },
		{ "bash", PROGRAM_RESERVED },
		{ "env", PROGRAM_RESERVED },
		{ "node", PROGRAM_RESERVED },
		{ "npx", PROGRAM_RESERVED },
		{ "perl5.38", PROGRAM_RESERVED },
		{ "pypy3", PROGRAM_RESERVED },
		{ "ls", PROGRAM_ANY },
		{ "shellcheck", PROGRAM_ANY },
		{ "", PROGRAM_ANY },
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (program_name_of(names[i].name) != names[i].is)
			fail_msg("'%s'", names[i].name);
}

static void nothing_is_attached_over_programs(void **state)
{
	static const char *const refused[] = { "/usr", "/usr/local/bin", "/bin", "/lib64/x", "/env",
		"/env/bin", "/opt", "/opt/carrel", "/opt/carrel/node", "/opt/carrel/trees", "/run",
		"/run/programs/first", "/run/layers", "/etc", "/etc/ld.so.preload", "/proc/x", "/",
		"x", "/a/../usr" };
	static const char *const taken[] = { "/data", "/workspace/a", "/libs", "/usrs", "/opt/a",
		"/etc/a", "/run/secrets", "/opt/carrel/trees/a", "/environment" };
	struct error err;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (!plan_check_attached(refused[i], &err) || err.code != ERR_INVALID)
			fail_msg("'%s'", refused[i]);
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		if (plan_check_attached(taken[i], &err))
			fail_msg("'%s': %s", taken[i], err.text);
}

struct fixture {
	struct arena arena;
	struct plan_options options;
	struct plan_facts facts;
	struct plan_tree python;
	struct plan plan;
	struct error err;
};

static int setup(void **state)
{
	static const char *const variables[] = { "PATH=/other", NULL };
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	arena_init(&f->arena);
	f->facts = (struct plan_facts){ .outside_uid = 1001,
		.outside_gid = 1001,
		.landlock_abi = 7,
		.limiter = LIMITER_WATCHDOG };
	f->python = (struct plan_tree){ .target = "/env",
		.base = "/srv/home",
		.layers = "layers",
		.variables = variables,
		.programs = "bin",
		.has_interpreter = true };
	vec_push(&f->arena, &f->python.lowers, "a/tree");
	vec_push(&f->arena, &f->options.environments, &f->python);
	f->options.warm = f->options.judged = true;
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

static int build(struct fixture *f)
{
	return plan_build(&f->options, &f->facts, &f->arena, &f->plan, &f->err);
}

static const struct plan_mount *find_mount(const struct fixture *f, const char *target)
{
	for (size_t i = 0; i < f->plan.mounts.count; i++)
		if (!strcmp(f->plan.mounts.items[i].target, target))
			return &f->plan.mounts.items[i];
	return NULL;
}

static void no_directory_of_the_path_is_writable(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(build(f), 0);
	assert_true(f->plan.judged);
	const char *path = NULL;
	for (size_t i = 0; i < f->plan.env.count; i++)
		if (!strncmp(f->plan.env.items[i], "PATH=", 5))
			path = f->plan.env.items[i];
	assert_string_equal(
		path, "PATH=/run/programs/first:/usr/local/bin:/usr/bin:/bin:/run/programs/last");
	assert_true(find_mount(f, PLAN_PROGRAMS)->flags & MOUNT_RO);
	const struct plan_mount *packages = find_mount(f, PLAN_PACKAGES "/env");
	assert_true(packages->kind == MOUNT_PACKAGES && packages->flags & MOUNT_RO);
	assert_ptr_equal(packages - 1, find_mount(f, "/env"));
	for (size_t i = 0; i < f->plan.rules.count; i++)
		if (f->plan.rules.items[i].access & ACCESS_WRITE)
			assert_int_not_equal(strncmp(f->plan.rules.items[i].path, "/run", 4), 0);
}

static void without_a_policy_there_are_no_such_directories(void **state)
{
	struct fixture *f = *state;
	f->options.judged = false;
	assert_int_equal(build(f), 0);
	assert_null(find_mount(f, PLAN_PROGRAMS));
	assert_null(find_mount(f, PLAN_PACKAGES "/env"));
	assert_false(f->plan.judged);
}

static void only_frozen_layers_are_no_packages(void **state)
{
	struct fixture *f = *state;
	f->python.frozen = 1;
	assert_int_equal(build(f), -1);
	assert_int_equal(f->err.code, ERR_INVALID);
}

static void an_older_attachment_over_programs_is_refused(void **state)
{
	struct fixture *f = *state;
	struct plan_bind bind = { .source = "/srv/a", .target = "/opt/carrel/node" };
	bind.kind = PATH_DIRECTORY;
	vec_push(&f->arena, &f->options.binds, bind);
	assert_int_equal(build(f), -1);
	assert_non_null(strstr(f->err.text, "holds programs"));
	f->options.binds.items[0].is_environment = f->options.binds.items[0].is_tool = true;
	assert_int_equal(build(f), 0);
	assert_string_equal(f->plan.tools.items[0], "/opt/carrel/node/bin");
	f->options.judged = f->options.binds.items[0].is_environment = false;
	assert_int_equal(build(f), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_interpreters_are_known),
		cmocka_unit_test(nothing_is_attached_over_programs),
		TEST(no_directory_of_the_path_is_writable),
		TEST(without_a_policy_there_are_no_such_directories),
		TEST(only_frozen_layers_are_no_packages),
		TEST(an_older_attachment_over_programs_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
