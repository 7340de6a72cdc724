/* Commands in a workspace, over a real carrel-init: captured, streamed, handed over; how they end.
 * Background ones are in test_execs_background.c. */
#include "execs_fixture.h"

static void test_a_captured_exec_has_output_errors_and_exit_status(void **state)
{
	auto_seen struct seen seen;
	struct exec_spec spec = SPEC(SHELL("printf out; printf err >&2; exit 7"));
	run_captured(&seen, &spec);
	assert_exited(&seen, 7);
	assert_string_equal(seen.out.data, "out");
	assert_string_equal(seen.errors.data, "err");
	assert_int_equal(seen.record.output_bytes, 6);
	assert_false(seen.record.result.truncated);
	assert_true(seen.record.started_ms > 0 && seen.record.ended_ms >= seen.record.started_ms);
	assert_int_equal(world->core.metrics.execs[REASON_EXITED], 1);
	/* A command that can't be found, and one that can't be run, end as in a shell. */
	auto_seen struct seen missing, denied, nowhere;
	spec = SPEC("no-such-command-here");
	run_captured(&missing, &spec);
	assert_exited(&missing, 127);
	assert_non_null(strstr(missing.errors.data, "no-such-command-here"));
	assert_non_null(strstr(missing.error, "no-such-command-here"));
	spec = SPEC("/etc/passwd");
	run_captured(&denied, &spec);
	assert_exited(&denied, 126);
	/* A directory that doesn't exist is an error of the request. */
	spec = SPEC("true");
	spec.cwd = "/no/such/directory";
	run_captured(&nowhere, &spec);
	assert_true(nowhere.has_failed);
	assert_int_equal(nowhere.err.code, ERR_INVALID);
	assert_non_null(strstr(nowhere.err.text, "/no/such/directory"));
	assert_int_equal(world->core.metrics.exec_failures, 3);
}

static void test_a_missing_command_of_carrels_own_is_an_error(void **state)
{
	auto_seen struct seen seen;
	struct exec_spec spec = SPEC("no-such-command-here");
	struct exec_listener listener = listen_with(&seen);
	struct core_exec *e;
	struct error err;
	assert_int_equal(exec_start(&request_system, &world->w, &spec, EXEC_CAPTURED, NULL,
				 &listener, &e, &err),
		0);
	run_until(&seen.ended);
	assert_true(seen.has_failed);
	assert_int_equal(seen.err.code, ERR_COMMAND_NOT_FOUND);
	assert_int_equal(seen.record.error_exit_code, 127);
}

static void test_the_environment_is_carrels_then_the_workspaces_then_the_execs(void **state)
{
	struct text_pair of_workspace[] = { { "A", "1" }, { "B", "2" }, { "LANG", "x" } };
	struct text_pair of_exec[] = { { "B", "3" }, { "C", "a=b" } };
	world->w.model.env = (pair_list){ of_workspace, 3, 0 };
	auto_seen struct seen seen, plain;
	struct exec_spec spec = SPEC(SHELL("echo $A $B $C $LANG $HOME; pwd"));
	spec.env = (pair_list){ of_exec, 2, 0 };
	spec.cwd = "/usr";
	run_captured(&seen, &spec);
	assert_exited(&seen, 0);
	assert_string_equal(seen.out.data, "1 3 a=b x /workspace\n/usr\n");
	spec.env = (pair_list){ 0 };
	run_captured(&plain, &spec);
	assert_string_equal(plain.out.data, "1 2 x /workspace\n/usr\n");
	struct error err;
	struct core_exec *e;
	struct text_pair bad[] = { { "A=B", "1" } };
	struct exec_listener listener = { .ended = on_seen_ended };
	spec.env = (pair_list){ bad, 1, 0 };
	assert_int_equal(
		exec_start(&client, &world->w, &spec, EXEC_CAPTURED, NULL, &listener, &e, &err),
		-1);
	assert_int_equal(err.code, ERR_INVALID);
}

static void test_output_larger_than_a_pipe_is_whole(void **state)
{
	auto_seen struct seen seen;
	struct exec_spec spec =
		SPEC(SHELL("head -c 3000000 /dev/zero; head -c 300000 /dev/zero >&2"));
	run_captured(&seen, &spec);
	assert_exited(&seen, 0);
	assert_int_equal(seen.out.len, 3000000);
	assert_int_equal(seen.errors.len, 300000);
}

static void test_the_pipes_of_the_next_exec_are_made_after_an_answer(void **state)
{
	const struct execs *execs = world->core.execs;
	auto_seen struct seen first, second;
	struct exec_spec spec = SPEC(SHELL("echo 1; echo 2 >&2"));
	struct stat ready[2], next;
	run_captured(&first, &spec);
	for (int i = 0; i < 2; i++) {
		/* Only what core reads doesn't block: the command shares the flags of its end. */
		assert_int_equal(fcntl(execs->outputs[i][0], F_GETFL), O_RDONLY | O_NONBLOCK);
		assert_int_equal(fcntl(execs->outputs[i][1], F_GETFL), O_WRONLY);
		assert_int_equal(fcntl(execs->outputs[i][1], F_GETFD), FD_CLOEXEC);
		assert_int_equal(fstat(execs->outputs[i][0], &ready[i]), 0);
	}
	run_captured(&second, &spec);
	assert_string_equal(second.out.data, "1\n");
	assert_string_equal(second.errors.data, "2\n");
	/* No pipe serves two commands: something that the first left could write into it. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fstat(execs->outputs[i][0], &next), 0);
		assert_true(next.st_ino != ready[0].st_ino && next.st_ino != ready[1].st_ino);
	}
}

static void test_output_past_its_cap_ends_the_exec(void **state)
{
	auto_seen struct seen seen, small;
	struct exec_spec spec = SPEC(SHELL("yes; echo not reached"));
	spec.output_bytes = 100001;
	run_captured(&seen, &spec);
	assert_reason(&seen, REASON_OUTPUT_LIMIT);
	assert_true(seen.record.result.truncated);
	assert_int_equal(seen.out.len, 100001);
	/* One that has ended before anybody looked. */
	spec = SPEC(SHELL("printf 12345; printf 6 >&2"));
	spec.output_bytes = 5;
	run_captured(&small, &spec);
	assert_reason(&small, REASON_OUTPUT_LIMIT);
	assert_true(small.record.result.truncated);
	assert_string_equal(small.out.data, "12345");
	assert_string_equal(small.errors.data, "");
	assert_int_equal(small.record.output_dropped, 1);
}

static void test_a_timeout_kills_the_whole_process_group(void **state)
{
	auto_seen struct seen seen;
	int ends[2];
	char text[16];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct exec_spec spec = SPEC(SHELL("sleep 30 & sleep 30"));
	spec.timeout_ms = 50;
	start_exec(&seen, &spec, EXEC_HANDED, (int[]){ null, ends[1], null }, false);
	close(ends[1]);
	run_until(&seen.ended);
	assert_reason(&seen, REASON_TIMEOUT);
	assert_int_equal(result_exit_code(&seen.record.result), 124);
	read_all(ends[0], text, sizeof text); /* nobody holds it any more */
	close(ends[0]);
	assert_int_equal(world->ends, 0);
}

static void test_an_exec_that_is_killed_and_does_not_end_ends_its_sandbox(void **state)
{
	auto_seen struct seen late, killed;
	struct error err;
	struct exec_spec spec = SPEC("sleep", "30");
	struct core_exec *e = start_exec(&killed, &spec, EXEC_CAPTURED, NULL, true);
	run_until(&killed.started);
	spec.timeout_ms = 100;
	start_exec(&late, &spec, EXEC_CAPTURED, NULL, true);
	run_until(&late.started);
	kill(world->init.pid, SIGSTOP); /* as if something inside held their ends */
	assert_int_equal(exec_signal(&request_system, e, SIGKILL, &err), 0);
	run_until(&killed.ended);
	run_until(&late.ended);
	assert_int_equal(world->ends, 1);
	assert_reason(&late, REASON_TIMEOUT);
	assert_reason(&killed, REASON_SIGNALED);
	assert_int_equal(killed.record.result.signal, SIGKILL);
}

static void test_what_a_command_leaves_running_keeps_nobody_waiting(void **state)
{
	auto_seen struct seen seen;
	/* Longer than run_captured waits. */
	struct exec_spec spec = SPEC(SHELL("sleep 100 & yes >&2 & echo done"));
	run_captured(&seen, &spec);
	assert_exited(&seen, 0);
	assert_string_equal(seen.out.data, "done\n");
	assert_true(seen.errors.len <= (1u << 20) + EXEC_READ_SIZE);
}

static void test_a_listener_that_goes_ends_its_exec(void **state)
{
	auto_seen struct seen seen, after;
	struct error err;
	struct exec_spec spec = SPEC("sleep", "30");
	struct core_exec *found, *e = start_exec(&seen, &spec, EXEC_CAPTURED, NULL, false);
	char id[ID_LEN + 1];
	memcpy(id, e->record.id, sizeof id);
	exec_detach(e); /* before there is a sandbox */
	assert_int_equal(exec_find(&request_system, &world->core, id, &found, &err), 0);
	UNTIL(found->record.state == EXEC_ENDED);
	assert_false(seen.ended);
	e = start_exec(&seen, &spec, EXEC_STREAMED, NULL, true);
	memcpy(id, e->record.id, sizeof id);
	run_until(&seen.started);
	exec_detach(e);
	UNTIL(!world->w.users);
	assert_false(seen.ended);
	assert_int_equal(exec_find(&request_system, &world->core, id, &found, &err), 0);
	assert_string_equal(reason_names[found->record.result.reason], "canceled");
	assert_int_equal(world->core.metrics.execs[REASON_CANCELED], 2);
	spec = SPEC("true");
	run_captured(&after, &spec);
	assert_exited(&after, 0);
}

static void test_a_stream_comes_as_it_is_written_and_waits_while_paused(void **state)
{
	auto_seen struct seen seen;
	struct exec_spec spec =
		SPEC(SHELL("echo one; read x; echo $x; head -c 200000 /dev/zero; echo end >&2"));
	spec.open_stdin = true;
	struct core_exec *e = start_exec(&seen, &spec, EXEC_STREAMED, NULL, true);
	struct error err;
	size_t taken;
	UNTIL(seen.outputs);
	assert_true(seen.started);
	assert_string_equal(seen.out.data, "one\n");
	exec_pause(e, true);
	assert_int_equal(exec_write_stdin(&request_system, e, STR("two\n"), true, &taken, &err), 0);
	assert_int_equal(taken, 4);
	run_for(100);
	assert_int_equal(seen.outputs, 1);
	exec_pause(e, false);
	UNTIL(seen.out.len >= 8 + 200000 && seen.errors.len);
	run_until(&seen.ended);
	assert_exited(&seen, 0);
	assert_string_equal(seen.errors.data, "end\n");
	assert_memory_equal(seen.out.data, "one\ntwo\n", 8);
	assert_int_equal(seen.out.len, 8 + 200000);
}

static void test_an_exec_that_ended_while_its_listener_paused_waits_for_it(void **state)
{
	auto_seen struct seen seen, gone;
	struct exec_spec spec = SPEC(SHELL("printf 123; printf 456 >&2"));
	struct core_exec *e = start_exec(&seen, &spec, EXEC_STREAMED, NULL, false);
	exec_pause(e, true);
	UNTIL(e->stage == STAGE_ENDING);
	assert_int_equal(seen.outputs, 0);
	seen.pauses = true; /* takes one piece at a time */
	exec_pause(e, false);
	assert_int_equal(seen.outputs, 0); /* not from inside the call */
	UNTIL(seen.outputs);
	run_for(20);
	assert_int_equal(seen.outputs, 1);
	assert_false(seen.ended);
	exec_pause(e, false);
	UNTIL(seen.outputs == 2);
	exec_pause(e, false);
	run_until(&seen.ended);
	assert_string_equal(seen.out.data, "123");
	assert_string_equal(seen.errors.data, "456");
	/* And one whose listener goes instead. */
	e = start_exec(&gone, &spec, EXEC_STREAMED, NULL, false);
	exec_pause(e, true);
	UNTIL(e->stage == STAGE_ENDING);
	exec_detach(e);
	assert_int_equal(world->w.users, 0);
	assert_false(gone.ended);
}

static void on_room(void *ctx)
{
	*(bool *)ctx = true;
}

static void test_stdin_is_a_text_or_fed_piece_by_piece_or_empty(void **state)
{
	auto_seen struct seen seen, empty, fed;
	size_t len = 1 << 20, taken, fed_len = 0;
	struct error err;
	char *text = test_malloc(len);
	memset(text, 'x', len);
	struct exec_spec spec = SPEC("wc", "-c");
	spec.has_stdin_text = true;
	spec.stdin_text = (struct str){ text, len };
	struct core_exec *e = start_exec(&seen, &spec, EXEC_CAPTURED, NULL, false);
	memset(text, 0, len); /* it was the caller's */
	assert_int_equal(
		exec_write_stdin(&request_system, e, STR("more"), false, &taken, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	run_until(&seen.ended);
	assert_string_equal(seen.out.data, "1048576\n");
	spec = SPEC("wc", "-c");
	run_captured(&empty, &spec);
	assert_string_equal(empty.out.data, "0\n");
	spec.open_stdin = true;
	e = start_exec(&fed, &spec, EXEC_CAPTURED, NULL, false);
	while (fed_len < len) {
		bool has_room = false;
		struct exec_writer writer = { on_room, &has_room, NULL };
		struct str rest = { text + fed_len, len - fed_len };
		assert_int_equal(exec_write_stdin(&request_system, e, rest, true, &taken, &err), 0);
		fed_len += taken;
		if (fed_len == len)
			break;
		exec_await_stdin(e, &writer);
		run_until(&has_room);
	}
	assert_int_equal(exec_write_stdin(&request_system, e, STR("x"), false, &taken, &err), -1);
	run_until(&fed.ended);
	assert_string_equal(fed.out.data, "1048576\n");
	test_free(text);
}

static void test_a_command_that_does_not_read_its_stdin_hurts_nobody(void **state)
{
	auto_seen struct seen seen, waits;
	struct error err;
	size_t taken;
	size_t len = 1 << 20;
	char *text = test_calloc(1, len);
	struct exec_spec spec = SPEC("true");
	spec.has_stdin_text = true;
	spec.stdin_text = (struct str){ text, len };
	run_captured(&seen, &spec);
	assert_exited(&seen, 0);
	/* Whoever waits for room is told when there is nobody left to read. */
	bool has_room = false;
	struct exec_writer writer = { on_room, &has_room, NULL };
	spec = SPEC("sleep", "100");
	spec.open_stdin = true;
	struct core_exec *e = start_exec(&waits, &spec, EXEC_STREAMED, NULL, true);
	run_until(&waits.started);
	assert_int_equal(exec_write_stdin(&request_system, e, (struct str){ text, len }, false,
				 &taken, &err),
		0);
	assert_true(taken < len);
	exec_await_stdin(e, &writer);
	run_for(20);
	assert_false(has_room);
	assert_int_equal(exec_signal(&request_system, e, SIGTERM, &err), 0);
	run_until(&has_room);
	run_until(&waits.ended);
	test_free(text);
}

static void test_a_terminal_is_one_and_has_a_size(void **state)
{
	auto_seen struct seen seen;
	struct error err;
	size_t taken;
	struct exec_spec spec = SPEC(SHELL("test -t 0 && test -t 2 && stty size; read x; echo "
					   "got $x $TERM; stty size; cat; printf last"));
	spec.tty = true;
	spec.rows = 33;
	spec.columns = 44;
	struct core_exec *e = start_exec(&seen, &spec, EXEC_STREAMED, NULL, true);
	UNTIL(strstr(seen.out.data, "33 44"));
	assert_int_equal(exec_resize(&request_system, e, 55, 66, &err), 0);
	assert_int_equal(
		exec_write_stdin(&request_system, e, STR("hello\n"), false, &taken, &err), 0);
	UNTIL(strstr(seen.out.data, "55 66"));
	assert_int_equal(exec_write_stdin(&request_system, e, STR(""), true, &taken, &err),
		0); /* ^D for cat */
	run_until(&seen.ended);
	assert_exited(&seen, 0);
	assert_non_null(strstr(seen.out.data, "got hello xterm-256color"));
	assert_string_equal(seen.out.data + seen.out.len - 4, "last");
	assert_int_equal(seen.errors.len, 0);
}

static void test_a_terminal_can_be_handed_out_and_hangs_up_at_the_end(void **state)
{
	auto_seen struct seen seen;
	struct exec_spec spec = SPEC(SHELL("test -t 1 && printf yes; read x; printf $x"));
	struct core_exec *e = start_exec(&seen, &spec, EXEC_HANDED_PTY, NULL, true);
	char text[256] = "";
	size_t len = 0;
	run_until(&seen.started);
	auto_close int master = fcntl(e->terminal, F_DUPFD_CLOEXEC, 3);
	assert_true(master >= 0);
	assert_int_equal(write(master, "word\n", 5), 5);
	run_until(&seen.ended);
	assert_exited(&seen, 0);
	for (ssize_t got; (got = read(master, text + len, sizeof text - 1 - len)) > 0;)
		len += (size_t)got;
	assert_int_equal(errno, EIO);
	assert_non_null(strstr(text, "yes"));
	assert_int_equal(world->core.metrics.output_bytes, 0);
}

static void test_only_pipes_and_null_are_handed_in(void **state)
{
	int ends[2], sockets[2];
	char path[96], text[64];
	struct error err;
	struct core_exec *e;
	auto_seen struct seen seen;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	str_format(path, sizeof path, "%s/file", world->dir);
	auto_close int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	auto_close int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	auto_close int directory = open("/", O_RDONLY | O_CLOEXEC);
	auto_close int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	const int bad[] = { file, sockets[0], zero, directory, terminal };
	struct exec_spec spec = SPEC("echo", "handed");
	struct exec_listener listener = listen_with(&seen);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		for (int at = 0; at < 3; at++) {
			int fds[3] = { null, ends[1], null };
			fds[at] = bad[i];
			assert_int_equal(exec_start(&client, &world->w, &spec, EXEC_HANDED, fds,
						 &listener, &e, &err),
				-1);
			assert_int_equal(err.code, ERR_DENIED);
		}
	/* They are the caller's: closed before there is a sandbox, they are there all the same. */
	start_exec(&seen, &spec, EXEC_HANDED, (int[]){ null, ends[1], null }, false);
	close(ends[1]);
	run_until(&seen.ended);
	assert_exited(&seen, 0);
	read_all(ends[0], text, sizeof text);
	assert_string_equal(text, "handed\n");
	close(ends[0]);
	close(sockets[0]);
	close(sockets[1]);
}

static void test_signals_reach_the_command(void **state)
{
	auto_seen struct seen seen;
	struct error err;
	struct exec_spec spec = SPEC(SHELL("trap 'echo caught; exit 3' USR1; echo ready; "
					   "while :; do sleep 0.01; done"));
	struct core_exec *e = start_exec(&seen, &spec, EXEC_STREAMED, NULL, true);
	assert_int_equal(exec_signal(&request_system, e, SIGUSR1, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE); /* not started yet */
	UNTIL(seen.outputs);
	assert_int_equal(exec_signal(&request_system, e, 0, &err), -1);
	assert_int_equal(exec_signal(&request_system, e, 65, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(exec_signal(&request_system, e, SIGUSR1, &err), 0);
	run_until(&seen.ended);
	assert_exited(&seen, 3);
	assert_int_equal(exec_find(&request_system, &world->core, seen.record.id, &e, &err), 0);
	assert_int_equal(exec_signal(&request_system, e, SIGUSR1, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
}

static void test_a_sandbox_that_does_not_come_is_an_error(void **state)
{
	auto_seen struct seen seen, late;
	struct exec_spec spec = SPEC("true");
	world->refuses_wake = true;
	run_captured(&seen, &spec);
	assert_true(seen.has_failed);
	assert_int_equal(seen.err.code, ERR_UNAVAILABLE);
	world->refuses_wake = false;
	/* And one that takes longer than the time its exec has. */
	spec.timeout_ms = 1;
	sandbox_move(&world->w.sandbox, SANDBOX_ENDING);
	start_exec(&late, &spec, EXEC_CAPTURED, NULL, false);
	run_until(&late.ended);
	assert_reason(&late, REASON_TIMEOUT);
	sandbox_move(&world->w.sandbox, SANDBOX_NONE);
	run_for(5);
}

static void test_there_is_room_for_256_and_a_clear_no_for_more(void **state)
{
	struct seen *seen = test_calloc(INIT_EXECS_MAX + 1, sizeof *seen);
	auto_seen struct seen first;
	struct core_exec *e[INIT_EXECS_MAX], *more;
	struct error err;
	struct exec_listener listener = listen_with(&first);
	struct exec_spec spec = SPEC("true");
	run_captured(&first, &spec); /* the sandbox is up */
	done_with(&first);
	spec = SPEC("cat");
	spec.open_stdin = true;
	for (int i = 0; i < INIT_EXECS_MAX; i++)
		e[i] = start_exec(&seen[i], &spec, EXEC_CAPTURED, NULL, false);
	listener = listen_with(&first);
	assert_int_equal(
		exec_start(&client, &world->w, &spec, EXEC_CAPTURED, NULL, &listener, &more, &err),
		-1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_true(err.hint[0]);
	size_t taken;
	for (int i = 0; i < INIT_EXECS_MAX; i++) {
		bool has_room = false;
		struct exec_writer writer = { on_room, &has_room, NULL };
		while (exec_write_stdin(&request_system, e[i], STR("x"), true, &taken, &err) == 0 &&
			!taken) {
			exec_await_stdin(e[i], &writer);
			run_until(&has_room);
			has_room = false;
		}
	}
	for (int i = 0; i < INIT_EXECS_MAX; i++) {
		run_until(&seen[i].ended);
		assert_exited(&seen[i], 0);
		assert_string_equal(seen[i].out.data, "x");
		done_with(&seen[i]);
	}
	assert_int_equal(world->w.sandbox.exec_count, 0);
	done_with(&first);
	spec = SPEC("true");
	run_captured(&first, &spec);
	assert_exited(&first, 0);
	test_free(seen);
}

static void test_a_full_socket_makes_execs_wait_and_loses_none(void **state)
{
	enum { COUNT = 250 };
	struct seen *seen = test_calloc(COUNT, sizeof *seen);
	auto_seen struct seen first, killed, other;
	struct exec_spec spec = SPEC("true");
	static char large[20000];
	run_captured(&first, &spec);
	kill(world->init.pid, SIGSTOP);
	memset(large, 'x', sizeof large - 1);
	spec = SPEC(SHELL("printf ${#1}$(cat)"), "sh", large);
	spec.has_stdin_text = true;
	for (int i = 0; i < COUNT; i++) {
		char text[8];
		str_format(text, sizeof text, ".%d", i);
		spec.stdin_text = str_from(text);
		start_exec(&seen[i], &spec, EXEC_CAPTURED, NULL, false);
		memset(text, 0, sizeof text);
	}
	assert_non_null(world->w.sandbox.connection->queue);
	/* One that waits there can be taken back, another runs out of time. */
	spec = SPEC("true");
	exec_detach(start_exec(&killed, &spec, EXEC_STREAMED, NULL, false));
	spec.timeout_ms = 1;
	start_exec(&other, &spec, EXEC_CAPTURED, NULL, false);
	run_until(&other.ended);
	assert_reason(&other, REASON_TIMEOUT);
	kill(world->init.pid, SIGCONT);
	for (int i = 0; i < COUNT; i++) {
		char text[16];
		str_format(text, sizeof text, "19999.%d", i);
		run_until(&seen[i].ended);
		assert_exited(&seen[i], 0);
		assert_string_equal(seen[i].out.data, text);
		done_with(&seen[i]);
	}
	assert_false(killed.ended);
	test_free(seen);
}

static void test_no_descriptor_left_is_an_error_and_not_the_end(void **state)
{
	auto_seen struct seen first, seen, again;
	struct error err;
	struct core_exec *e;
	struct rlimit before, low;
	struct exec_spec spec = SPEC("true");
	run_captured(&first, &spec);
	streams_close_ahead(world->core.execs);
	getrlimit(RLIMIT_NOFILE, &before);
	for (rlim_t spare = 0; spare < 4; spare++) {
		int next = dup(0);
		close(next);
		low = (struct rlimit){ (rlim_t)next + spare, before.rlim_max };
		setrlimit(RLIMIT_NOFILE, &low);
		struct exec_listener listener = listen_with(&seen);
		int failed = exec_start(
			&client, &world->w, &spec, EXEC_CAPTURED, NULL, &listener, &e, &err);
		setrlimit(RLIMIT_NOFILE, &before);
		assert_int_equal(failed, -1);
		assert_int_equal(err.code, ERR_LIMIT);
		assert_true(err.hint[0]);
		done_with(&seen);
	}
	listen_with(&seen);
	world->core.execs->fds.all = 3;
	struct exec_listener listener = listen_with(&seen);
	assert_int_equal(
		exec_start(&client, &world->w, &spec, EXEC_CAPTURED, NULL, &listener, &e, &err),
		-1);
	assert_int_equal(err.code, ERR_LIMIT);
	world->core.execs->fds.all = 1000;
	run_captured(&again, &spec);
	assert_exited(&again, 0);
}

/* Descriptors of an agent's commands count towards the share of the principal that it acts for. */
static void test_agents_share_descriptors_with_their_callers(void **state)
{
	auto_seen struct seen first, held, seen;
	auto_arena struct arena arena = { 0 };
	struct error err;
	struct core_exec *e, *more;
	struct exec_spec spec = SPEC("true");
	run_captured(&first, &spec);
	spec = SPEC("sleep", "30");
	struct exec_listener listener = listen_with(&held);
	listener.started = on_seen_started;
	assert_int_equal(exec_start(access_agent_of("a", "token one", SCOPE_ALL, &arena), &world->w,
				 &spec, EXEC_CAPTURED, NULL, &listener, &e, &err),
		0);
	run_until(&held.started);
	world->core.execs->fds.each = 2 * world->core.execs->fds.held - 1;
	spec = SPEC("true");
	listener = listen_with(&seen);
	assert_int_equal(exec_start(access_agent_of("b", "token one", SCOPE_ALL, &arena), &world->w,
				 &spec, EXEC_CAPTURED, NULL, &listener, &more, &err),
		-1);
	assert_int_equal(err.code, ERR_LIMIT);
	if (exec_start(access_agent_of("b", "token two", SCOPE_ALL, &arena), &world->w, &spec,
		    EXEC_CAPTURED, NULL, &listener, &more, &err))
		fail_msg("%s", err.text);
	run_until(&seen.ended);
	assert_exited(&seen, 0);
	assert_int_equal(exec_signal(&request_system, e, SIGKILL, &err), 0);
	run_until(&held.ended);
}

static void test_five_hundred_execs_leave_no_descriptor_and_few_records(void **state)
{
	size_t before = 0;
	struct exec_spec spec = SPEC("/bin/true");
	for (int i = 0; i < 500; i++) {
		auto_seen struct seen seen;
		run_captured(&seen, &spec);
		assert_exited(&seen, 0);
		if (i == 10)
			before = count_fds();
	}
	assert_int_equal(count_fds(), before);
	assert_true(world->core.execs->by_id.live <= 128);
	assert_int_equal(world->core.metrics.exec_overhead_seconds.count, 500);
}

static void count_newest(void *ctx, struct core_exec *e)
{
	struct exec_record *last = ctx;
	assert_true(!last->started_ms || e->record.started_ms <= last->started_ms);
	last->started_ms = e->record.started_ms;
	last->output_bytes++;
}

static void test_execs_are_listed_newest_first_and_forgotten_with_their_workspace(void **state)
{
	struct exec_record last = { 0 };
	struct core_exec *e;
	struct error err;
	char id[ID_LEN + 1];
	for (int i = 0; i < 5; i++) {
		auto_seen struct seen seen;
		struct exec_spec spec = SPEC("true");
		run_captured(&seen, &spec);
		memcpy(id, seen.record.id, sizeof id);
	}
	assert_int_equal(
		exec_list(&request_system, &world->core, &world->w, count_newest, &last, &err), 0);
	assert_int_equal(last.output_bytes, 5);
	assert_int_equal(exec_find(&request_system, &world->core, id, &e, &err), 0);
	execs_forget(&world->w);
	assert_int_equal(exec_find(&request_system, &world->core, id, &e, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(exec_find(&request_system, &world->core, "../../etc", &e, &err), -1);
	assert_int_equal(world->core.execs->by_id.live, 0);
}

static void test_an_exec_may_have_its_id_said_but_not_twice(void **state)
{
	auto_seen struct seen seen;
	struct error err;
	struct core_exec *e;
	char id[ID_LEN + 1];
	id_make(id);
	struct exec_spec spec = SPEC("true");
	struct exec_listener listener = listen_with(&seen);
	spec.id = id;
	run_captured(&seen, &spec);
	assert_string_equal(seen.record.id, id);
	assert_int_equal(
		exec_start(&client, &world->w, &spec, EXEC_CAPTURED, NULL, &listener, &e, &err),
		-1);
	assert_int_equal(err.code, ERR_CONFLICT);
	world->core.is_stopping = true;
	spec.id = NULL;
	assert_int_equal(
		exec_start(&client, &world->w, &spec, EXEC_CAPTURED, NULL, &listener, &e, &err),
		-1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
}

static void test_all_that_runs_in_a_sandbox_ends_with_it(void **state)
{
	auto_seen struct seen seen, other, after;
	struct exec_spec spec = SPEC("sleep", "30");
	start_exec(&seen, &spec, EXEC_CAPTURED, NULL, true);
	start_exec(&other, &spec, EXEC_STREAMED, NULL, true);
	run_until(&seen.started);
	run_until(&other.started);
	core_end_sandbox(&world->w, REASON_MEMORY_LIMIT);
	/* Whoever comes meanwhile gets the next sandbox. */
	spec = SPEC("true");
	run_captured(&after, &spec);
	assert_exited(&after, 0);
	assert_true(seen.ended && other.ended);
	assert_reason(&seen, REASON_MEMORY_LIMIT);
	assert_reason(&other, REASON_MEMORY_LIMIT);
	assert_int_equal(seen.record.result.signal, SIGKILL);
	assert_int_equal(world->ends, 1);
}

static void test_an_init_that_dies_ends_its_execs_and_says_so(void **state)
{
	auto_seen struct seen seen;
	struct exec_spec spec = SPEC("sleep", "30");
	start_exec(&seen, &spec, EXEC_CAPTURED, NULL, true);
	run_until(&seen.started);
	kill(world->init.pid, SIGKILL);
	run_until(&seen.ended);
	assert_reason(&seen, REASON_CANCELED);
	assert_non_null(strstr(seen.error, "unexpectedly"));
}

static void test_an_exec_that_init_never_got_runs_in_the_next_sandbox(void **state)
{
	auto_seen struct seen first, lost, captured, handed;
	struct exec_spec spec = SPEC("true");
	siginfo_t info;
	int ends[2];
	char text[8];
	run_captured(&first, &spec);
	spec = SPEC("sleep", "100");
	start_exec(&lost, &spec, EXEC_CAPTURED, NULL, true);
	run_until(&lost.started);
	kill(world->init.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)world->init.pid, &info, WEXITED | WNOWAIT), 0);
	/* Nobody has heard of its end yet. */
	spec = SPEC("cat");
	spec.has_stdin_text = true;
	spec.stdin_text = STR("kept");
	start_exec(&captured, &spec, EXEC_CAPTURED, NULL, false);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	spec = SPEC("echo", "handed");
	start_exec(&handed, &spec, EXEC_HANDED, (int[]){ null, ends[1], null }, false);
	fd_close(&ends[1]);
	run_until(&captured.ended);
	run_until(&handed.ended);
	assert_reason(&lost, REASON_CANCELED);
	assert_exited(&captured, 0);
	assert_string_equal(captured.out.data, "kept");
	assert_exited(&handed, 0);
	assert_int_equal(read(ends[0], text, sizeof text), 7);
	fd_close(&ends[0]);
	assert_int_equal(world->ends, 1);
}

static void test_an_exec_whose_sandboxes_all_die_ends(void **state)
{
	auto_seen struct seen seen;
	struct exec_spec spec = SPEC("true");
	world->init_dies = true;
	run_captured(&seen, &spec);
	assert_reason(&seen, REASON_CANCELED);
	assert_non_null(strstr(seen.error, "before the command could start"));
	assert_int_equal(world->ends, 3);
}

static void test_what_leaves_its_process_group_dies_too_when_it_was_alone(void **state)
{
	auto_seen struct seen seen;
	int ends[2];
	char text[64];
	world->namespaces = PID_1;
	struct init probe = start_warm_with(PID_1);
	if (!can_be_pid_1(&probe))
		skip();
	end_init(&probe);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct exec_spec spec = SPEC(SHELL("setsid sleep 30 & sleep 30"));
	spec.timeout_ms = 100;
	start_exec(&seen, &spec, EXEC_HANDED, (int[]){ null, ends[1], null }, false);
	close(ends[1]);
	run_until(&seen.ended);
	assert_reason(&seen, REASON_TIMEOUT);
	read_all(ends[0], text, sizeof text);
	close(ends[0]);
}

static void test_captured_output_of_all_execs_together_is_bounded(void **state)
{
	auto_seen struct seen first, second, small;
	struct exec_captured held;
	world->core.execs->captured_max = 1 << 20;
	struct exec_spec spec = SPEC(SHELL("head -c 900000 /dev/zero"));
	run_captured(&first, &spec);
	assert_exited(&first, 0);
	assert_int_equal(world->core.execs->captured_bytes, 0);
	/* An answer that is still being sent counts. */
	held = (struct exec_captured){ .core = &world->core };
	for (int i = 0; i < 2; i++)
		buf_init(&held.streams[i], SIZE_MAX);
	buf_append(&held.streams[0], first.out.data, first.out.len);
	world->core.execs->captured_bytes = first.out.len;
	run_captured(&second, &spec);
	assert_int_equal(second.record.result.reason, REASON_OUTPUT_LIMIT);
	assert_true(second.record.result.truncated);
	assert_int_equal(second.out.len, (1 << 20) - 900000);
	assert_non_null(strstr(second.error, "1048576 bytes"));
	/* A little is granted in any case. */
	world->core.execs->captured_max = 1;
	spec = SPEC(SHELL("head -c 65536 /dev/zero"));
	run_captured(&small, &spec);
	assert_exited(&small, 0);
	exec_captured_done(&held);
	assert_int_equal(world->core.execs->captured_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXEC_TEST(test_captured_output_of_all_execs_together_is_bounded),
		EXEC_TEST(test_a_captured_exec_has_output_errors_and_exit_status),
		EXEC_TEST(test_a_missing_command_of_carrels_own_is_an_error),
		EXEC_TEST(test_the_environment_is_carrels_then_the_workspaces_then_the_execs),
		EXEC_TEST(test_output_larger_than_a_pipe_is_whole),
		EXEC_TEST(test_the_pipes_of_the_next_exec_are_made_after_an_answer),
		EXEC_TEST(test_output_past_its_cap_ends_the_exec),
		EXEC_TEST(test_a_timeout_kills_the_whole_process_group),
		EXEC_TEST(test_an_exec_that_is_killed_and_does_not_end_ends_its_sandbox),
		EXEC_TEST(test_what_a_command_leaves_running_keeps_nobody_waiting),
		EXEC_TEST(test_a_listener_that_goes_ends_its_exec),
		EXEC_TEST(test_a_stream_comes_as_it_is_written_and_waits_while_paused),
		EXEC_TEST(test_an_exec_that_ended_while_its_listener_paused_waits_for_it),
		EXEC_TEST(test_stdin_is_a_text_or_fed_piece_by_piece_or_empty),
		EXEC_TEST(test_a_command_that_does_not_read_its_stdin_hurts_nobody),
		EXEC_TEST(test_a_terminal_is_one_and_has_a_size),
		EXEC_TEST(test_a_terminal_can_be_handed_out_and_hangs_up_at_the_end),
		EXEC_TEST(test_only_pipes_and_null_are_handed_in),
		EXEC_TEST(test_signals_reach_the_command),
		EXEC_TEST(test_a_sandbox_that_does_not_come_is_an_error),
		EXEC_TEST(test_there_is_room_for_256_and_a_clear_no_for_more),
		EXEC_TEST(test_a_full_socket_makes_execs_wait_and_loses_none),
		EXEC_TEST(test_no_descriptor_left_is_an_error_and_not_the_end),
		EXEC_TEST(test_agents_share_descriptors_with_their_callers),
		EXEC_TEST(test_five_hundred_execs_leave_no_descriptor_and_few_records),
		EXEC_TEST(test_execs_are_listed_newest_first_and_forgotten_with_their_workspace),
		EXEC_TEST(test_an_exec_may_have_its_id_said_but_not_twice),
		EXEC_TEST(test_all_that_runs_in_a_sandbox_ends_with_it),
		EXEC_TEST(test_an_init_that_dies_ends_its_execs_and_says_so),
		EXEC_TEST(test_an_exec_that_init_never_got_runs_in_the_next_sandbox),
		EXEC_TEST(test_an_exec_whose_sandboxes_all_die_ends),
		EXEC_TEST(test_what_leaves_its_process_group_dies_too_when_it_was_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
