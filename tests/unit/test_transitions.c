/* States of sandboxes and execs: every pair is tried. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/execs/internal.h"
#include "unit.h"

/* Whether fn(ctx, to) aborts. */
static bool aborts(void (*fn)(void *ctx, int to), void *ctx, int to)
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		fn(ctx, to);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	else
		assert_int_equal(WTERMSIG(status), SIGABRT);
	return WIFSIGNALED(status);
}

static void move_sandbox(void *ctx, int to)
{
	sandbox_move(ctx, (enum sandbox_state)to);
}

static void test_a_sandbox_moves_along_its_life_and_no_other_way(void **state)
{
	static const bool may[SANDBOX_STATE_COUNT][SANDBOX_STATE_COUNT] = {
		/* to: none, starting, up, ending */
		[SANDBOX_NONE] = { false, true, true, true },
		[SANDBOX_STARTING] = { true, false, true, true },
		[SANDBOX_UP] = { false, false, false, true },
		[SANDBOX_ENDING] = { true, false, false, false },
	};
	for (int from = 0; from < SANDBOX_STATE_COUNT; from++)
		for (int to = 0; to < SANDBOX_STATE_COUNT; to++) {
			struct core_sandbox sandbox = { .state = (enum sandbox_state)from };
			assert_int_equal(aborts(move_sandbox, &sandbox, to), !may[from][to]);
			if (!may[from][to])
				continue;
			sandbox_move(&sandbox, (enum sandbox_state)to);
			assert_int_equal(sandbox.state, to);
		}
}

static void move_exec(void *ctx, int to)
{
	exec_move(ctx, (enum exec_stage)to);
}

static void test_an_exec_moves_forward_and_shows_it(void **state)
{
	static const enum exec_state shown[STAGE_COUNT] = { EXEC_WAITING, EXEC_STARTING,
		EXEC_STARTING, EXEC_RUNNING, EXEC_RUNNING, EXEC_ENDED };
	static const bool may[STAGE_COUNT][STAGE_COUNT] = {
		/* to: asked, waiting, starting, running, ending, ended */
		[STAGE_ASKED] = { false, true, false, false, false, true },
		[STAGE_WAITING] = { true, false, true, true, false, true },
		[STAGE_STARTING] = { false, false, false, true, false, true },
		[STAGE_RUNNING] = { false, false, false, false, true, true },
		[STAGE_ENDING] = { false, false, false, false, false, true },
		[STAGE_ENDED] = { false },
	};
	for (int from = 0; from < STAGE_COUNT; from++)
		for (int to = 0; to < STAGE_COUNT; to++) {
			struct core_exec e = { .stage = (enum exec_stage)from };
			assert_int_equal(aborts(move_exec, &e, to), !may[from][to]);
			if (!may[from][to])
				continue;
			exec_move(&e, (enum exec_stage)to);
			assert_int_equal(e.stage, to);
			assert_int_equal(e.record.state, shown[to]);
			assert_int_equal(
				exec_is_sent(&e), to == STAGE_STARTING || to == STAGE_RUNNING);
			assert_int_equal(
				exec_has_exited(&e), to == STAGE_ENDING || to == STAGE_ENDED);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_exec_moves_forward_and_shows_it),
		cmocka_unit_test(test_a_sandbox_moves_along_its_life_and_no_other_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
