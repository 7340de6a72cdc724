/* Stages: there while their maker lives, gone with him, whatever was left in them. */
#include <sys/file.h>
#include "layers_fixture.h"

static size_t sweep(void)
{
	uint64_t count = 0;

	assert_ok(layer_stages_sweep(&store, &count, &err));
	return (size_t)count;
}

static void a_stage_is_its_owners_alone(void **state)
{
	struct stat st, by_path;

	assert_int_equal(fstat(stage.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_uid, home.uid);
	assert_int_equal(stat(stage.path, &by_path), 0);
	assert_int_equal(st.st_ino, by_path.st_ino);
}

static void a_stage_whose_maker_lives_is_not_swept(void **state)
{
	struct layer_stage other;

	assert_ok(layer_stage_make(&store, &arena, &other, &err));
	assert_string_not_equal(other.path, stage.path);
	assert_int_equal(sweep(), 0);
	const char *path = other.path;
	assert_ok(layer_stage_done(&store, &other, &err));
	assert_int_equal(access(path, F_OK), -1);
	assert_ok(layer_stage_done(&store, &other, &err));
	assert_int_equal(access(stage.path, F_OK), 0);
}

static void a_stage_whose_maker_was_killed_is_swept_with_all_in_it(void **state)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		struct layer_stage mine;

		if (layer_stage_make(&store, &arena, &mine, &err) < 0)
			_exit(1);
		stage.fd = mine.fd;
		put_tree("d", "text");
		put_link("/etc", "link");
		home_enter(&home);
		mkfifoat(stage.fd, "pipe", 0600);
		home_leave(&home);
		set_mode("d/tree", 0000);
		set_mode(".", 0000);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(sweep(), 1);
	assert_int_equal(sweep(), 0);
	assert_int_equal(access(stage.path, F_OK), 0);
	assert_int_equal(access("/etc/passwd", F_OK), 0);
}

static void what_is_no_stage_is_left_alone(void **state)
{
	const char *path = arena_printf(&arena, "%s/stage/notes", home.path);

	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(sweep(), 0);
	assert_int_equal(access(path, F_OK), 0);
}

static void stages_are_made_while_others_sweep(void **state)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		for (int i = 0; i < 200; i++)
			if (layer_stages_sweep(&store, NULL, &err) < 0)
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < 200; i++) {
		struct layer_stage mine;

		assert_ok(layer_stage_make(&store, &arena, &mine, &err));
		assert_int_equal(access(mine.path, F_OK), 0);
		assert_int_equal(mkdirat(mine.fd, "x", 0700), 0);
		assert_ok(layer_stage_done(&store, &mine, &err));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(a_stage_is_its_owners_alone),
		test(a_stage_whose_maker_lives_is_not_swept),
		test(a_stage_whose_maker_was_killed_is_swept_with_all_in_it),
		test(what_is_no_stage_is_left_alone),
		test(stages_are_made_while_others_sweep),
	};

	return cmocka_run_group_tests_name("stage", tests, NULL, NULL);
}
