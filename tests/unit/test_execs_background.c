/* Background execs: rows, spools, followers; what a restart of core and an init that lies do to
 * them. */
/* security: limits, daemon */
#include "execs_fixture.h"

static struct core_exec *start_background(struct seen *seen, const struct exec_spec *given)
{
	struct exec_spec spec = *given;
	spec.background = true;
	return start_exec(seen, &spec, EXEC_SPOOLED, NULL, true);
}

static size_t read_output(const char *id, int stream, char *text, size_t size)
{
	struct core_exec *e;
	struct error err;
	auto_close int fd = -1;
	assert_int_equal(exec_find(&request_system, &world->core, id, &e, &err), 0);
	if (exec_open_output(&request_system, e, stream, &fd, &err))
		fail_msg("%s", err.text);
	ssize_t len = fd_read_full(fd, text, size - 1);
	assert_true(len >= 0);
	text[len] = 0;
	return (size_t)len;
}

/* What a command waits at, with `read x <path`, until a line is written to it. */
static int make_gate(char path[96])
{
	str_format(path, 96, "%s/gate", world->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	int gate = open(path, O_RDWR | O_CLOEXEC);
	assert_true(gate >= 0);
	return gate;
}

static void open_gate(int gate)
{
	assert_int_equal(write(gate, "\n", 1), 1);
}

static void test_a_background_exec_has_a_row_before_it_starts_and_one_when_it_has_ended(
	void **state)
{
	auto_seen struct seen seen;
	struct exec_spec spec = SPEC(SHELL("echo out; echo err >&2; exit 9"));
	char text[64];
	world->holds_store = true;
	struct core_exec *e = start_background(&seen, &spec);
	assert_int_equal(world->put_count, 1);
	run_for(50);
	assert_false(seen.started);
	assert_int_equal(world->init.pid, 0); /* nothing was done yet */
	commit();
	run_until(&seen.ended);
	assert_true(seen.started);
	assert_exited(&seen, 9);
	assert_int_equal(e->record.state, EXEC_ENDED);
	assert_int_equal(world->put_count, 2);
	assert_int_equal(world->puts[1].state, EXEC_ENDED);
	assert_int_equal(world->puts[1].result.exit_status, 9);
	assert_int_equal(world->w.sandbox.connection->unacknowledged, 1);
	commit();
	assert_int_equal(world->w.sandbox.connection->unacknowledged, 0);
	assert_int_equal(read_output(seen.record.id, 1, text, sizeof text), 4);
	assert_string_equal(text, "out\n");
	read_output(seen.record.id, 2, text, sizeof text);
	assert_string_equal(text, "err\n");
	assert_int_equal(seen.record.output_bytes, 8);
	UNTIL(!e->is_spool_watched);
	assert_int_equal(world->core.execs->watches.live, 0);
	/* Its workspace goes, and its output with it. */
	execs_forget(&world->w);
	assert_int_equal(world->core.execs->by_id.live, 0);
	str_format(text, sizeof text, "%s.out", seen.record.id);
	assert_int_equal(faccessat(world->core.execs->spool, text, F_OK, 0), -1);
}

static void test_a_missing_command_has_ended_with_127_when_its_start_is_told(void **state)
{
	auto_seen struct seen seen;
	char text[256];
	struct exec_spec spec = SPEC("no-such-command");
	struct core_exec *e = start_background(&seen, &spec);
	run_until(&seen.started);
	assert_false(seen.ended);
	assert_int_equal(e->record.state, EXEC_ENDED);
	assert_int_equal(result_exit_code(&e->record.result), 127);
	assert_non_null(strstr(e->record.error, "no-such-command"));
	assert_int_equal(world->puts[world->put_count - 1].state, EXEC_ENDED);
	assert_int_equal(world->puts[world->put_count - 1].result.exit_status, 127);
	read_output(e->record.id, 2, text, sizeof text);
	assert_non_null(strstr(text, "no-such-command"));
	assert_int_equal(e->record.output_bytes, strlen(text));
	UNTIL(world->put_done == world->put_count);
}

static void test_one_that_can_not_start_leaves_nothing(void **state)
{
	auto_seen struct seen seen;
	struct exec_spec spec = SPEC("true");
	spec.cwd = "/no/such/directory";
	start_background(&seen, &spec);
	run_until(&seen.ended);
	assert_true(seen.has_failed);
	assert_false(seen.started);
	assert_int_equal(seen.err.code, ERR_INVALID);
	assert_true(world->puts[world->put_count - 1].is_removal);
	assert_int_equal(world->core.execs->by_id.live, 0);
	DIR *dir = fdopendir(
		openat(world->core.execs->spool, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;
	while ((entry = readdir(dir)))
		assert_int_equal(entry->d_name[0], '.');
	closedir(dir);
}

struct following {
	struct exec_follower follower;
	int calls;
	bool has_ended;
};

static void on_more(void *ctx, bool has_ended)
{
	struct following *following = ctx;
	following->calls++;
	following->has_ended |= has_ended;
}

static void test_followers_hear_of_output_soon_and_of_the_end(void **state)
{
	auto_seen struct seen seen;
	struct error err;
	size_t taken;
	char text[64];
	struct following one = { .follower = { on_more, &one, NULL } },
			 two = { .follower = { on_more, &two, NULL } };
	struct exec_spec spec = SPEC("cat");
	spec.open_stdin = true;
	struct core_exec *e = start_background(&seen, &spec);
	run_until(&seen.started);
	exec_follow(e, &one.follower);
	exec_follow(e, &two.follower);
	/* Silent: watched by the kernel from now on. */
	UNTIL(!world->core.execs->inotify_rest);
	for (int round = 1; round <= 3; round++) {
		int before = one.calls;
		assert_int_equal(
			exec_write_stdin(&request_system, e, STR("line\n"), false, &taken, &err),
			0);
		UNTIL(one.calls > before &&
			read_output(e->record.id, 1, text, sizeof text) == (size_t)round * 5);
		if (round == 2)
			UNTIL(!world->core.execs->inotify_rest);
	}
	assert_true(two.calls > 0);
	exec_unfollow(e, &two.follower);
	int before = two.calls;
	assert_int_equal(
		exec_write_stdin(&request_system, e, STR("last\n"), true, &taken, &err), 0);
	run_until(&one.has_ended);
	assert_true(seen.ended);
	assert_int_equal(two.calls, before);
	assert_int_equal(e->record.output_bytes, 20);
	/* Whoever comes late hears of the end too. */
	exec_follow(e, &two.follower);
	run_until(&two.has_ended);
	exec_unfollow(e, &two.follower);
	exec_unfollow(e, &one.follower);
}

/* What is kept of both streams: the rest of each file is a hole at its beginning. */
static uint64_t kept_of(const char *id)
{
	uint64_t kept = 0;
	for (int i = 0; i < 2; i++) {
		char name[ID_LEN + 8];
		struct stat st;
		str_format(name, sizeof name, "%s.%s", id, i ? "err" : "out");
		auto_close int fd = openat(world->core.execs->spool, name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue; /* of a terminal */
		assert_int_equal(fstat(fd, &st), 0);
		kept += (uint64_t)st.st_size - exec_output_first(fd);
	}
	return kept;
}

static void test_a_spool_past_its_cap_loses_its_oldest_output(void **state)
{
	auto_seen struct seen seen, quick;
	struct error err;
	struct exec_spec spec = SPEC(SHELL("yes & yes >&2"));
	spec.output_bytes = 100000;
	struct core_exec *e = start_background(&seen, &spec);
	/* It runs on, also when a multiple of its cap was dropped. */
	UNTIL(e->record.output_dropped > 300000);
	assert_false(seen.ended);
	assert_int_equal(exec_signal(&request_system, e, SIGKILL, &err), 0);
	run_until(&seen.ended);
	assert_reason(&seen, REASON_SIGNALED);
	assert_true(seen.record.result.truncated);
	assert_true(kept_of(seen.record.id) <= 100000);
	/* One that has ended before anybody looked. Whole blocks are dropped. */
	spec = SPEC(SHELL("head -c 50000 /dev/zero"));
	spec.output_bytes = 40000;
	start_background(&quick, &spec);
	run_until(&quick.ended);
	assert_exited(&quick, 0);
	assert_true(quick.record.result.truncated);
	assert_int_equal(quick.record.output_bytes, 50000);
	assert_int_equal(quick.record.output_dropped % 4096, 0);
	assert_int_equal(kept_of(quick.record.id), 50000 - quick.record.output_dropped);
	assert_true(kept_of(quick.record.id) <= 40000);
}

static void test_what_an_ended_exec_left_behind_can_not_fill_the_disk(void **state)
{
	auto_seen struct seen seen, other;
	char path[96], script[160];
	auto_close int gate = make_gate(path);
	str_format(script, sizeof script, "sh -c 'read x <%s; exec yes' & exit 0", path);
	struct exec_spec spec = SPEC(SHELL(script));
	spec.output_bytes = 100000;
	world->namespaces = PID_1;
	struct init probe = start_warm_with(PID_1);
	if (!can_be_pid_1(&probe))
		skip();
	end_init(&probe);
	struct core_exec *e = start_background(&seen, &spec);
	run_until(&seen.ended);
	assert_exited(&seen, 0);
	assert_true(e->is_spool_watched);
	open_gate(gate);
	/* What it left writes on, and its oldest output goes. */
	UNTIL(e->record.output_dropped > 300000);
	assert_true(e->is_spool_watched);
	assert_int_equal(world->ends, 0);
	connection_send(&world->w, INIT_SIGNAL, 0, SIGKILL);
	UNTIL(!e->is_spool_watched); /* its last writer has gone */
	assert_true(kept_of(seen.record.id) <= 100000);
	spec = SPEC("true");
	run_captured(&other, &spec);
	assert_exited(&other, 0);
}

static void test_a_background_terminal_is_spooled_by_core(void **state)
{
	auto_seen struct seen seen, capped;
	struct error err;
	char text[256];
	struct exec_spec spec = SPEC(SHELL("test -t 1 && echo terminal"));
	spec.tty = true;
	start_background(&seen, &spec);
	run_until(&seen.ended);
	assert_exited(&seen, 0);
	read_output(seen.record.id, 1, text, sizeof text);
	assert_string_equal(text, "terminal\r\n");
	spec = SPEC("yes");
	spec.tty = true;
	spec.output_bytes = 50000;
	struct core_exec *e = start_background(&capped, &spec);
	UNTIL(e->record.output_dropped > 100000);
	assert_false(capped.ended);
	assert_int_equal(exec_signal(&request_system, e, SIGKILL, &err), 0);
	run_until(&capped.ended);
	assert_reason(&capped, REASON_SIGNALED);
	assert_true(capped.record.result.truncated);
	assert_true(kept_of(capped.record.id) <= 50000);
}

/* ---- restarts ---- */

/* Core dies and another comes up over the same init: rows are `records`. */
static void restart_core(const struct exec_record *records, size_t count, bool is_adopted)
{
	struct error err;
	drop_core();
	if (!is_adopted) {
		end_world_init();
		fd_close(&world->init.listener);
	}
	open_core();
	world->core.is_ready = false;
	if (is_adopted)
		assert_int_equal(bring_up(&err), 0);
	run_for(20); /* init has told its exits: nobody may miss them */
	for (size_t i = 0; i < count; i++)
		execs_restore(&world->w, &records[i]);
	execs_settle(&world->core);
	world->core.is_ready = true;
}

static void test_a_background_exec_survives_a_restart_of_core_with_all_its_output(void **state)
{
	auto_seen struct seen seen, foreground;
	char text[256];
	int ends[2];
	struct core_exec *e;
	struct error err;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char path[96], script[160];
	auto_close int gate = make_gate(path);
	str_format(script, sizeof script, "echo before; read x <%s; echo after; exit 6", path);
	struct exec_spec spec = SPEC(SHELL(script));
	e = start_background(&seen, &spec);
	run_until(&seen.started);
	struct exec_record record = e->record;
	record.started_ms -= 60000;
	record.argv = spec.argv;
	record.cwd = "/";
	/* One in the foreground ends with its core. */
	spec = SPEC("sleep", "30");
	start_exec(&foreground, &spec, EXEC_HANDED, (int[]){ null, ends[1], null }, true);
	run_until(&foreground.started);
	close(ends[1]);
	world->w.users = 0;
	restart_core(&record, 1, true);
	read_all(ends[0], text, sizeof text);
	close(ends[0]);
	assert_int_equal(world->w.sandbox.exec_count, 1);
	assert_int_equal(exec_find(&request_system, &world->core, record.id, &e, &err), 0);
	assert_int_equal(e->record.state, EXEC_RUNNING);
	open_gate(gate);
	UNTIL(e->record.state == EXEC_ENDED);
	assert_int_equal(e->record.result.exit_status, 6);
	assert_true(e->record.result.duration_ms >= 60000);
	read_output(record.id, 1, text, sizeof text);
	assert_string_equal(text, "before\nafter\n");
	assert_int_equal(world->puts[world->put_count - 1].result.exit_status, 6);
	assert_int_equal(world->ends, 0);
}

static void test_an_exit_that_was_not_stored_is_told_to_the_next_core(void **state)
{
	auto_seen struct seen seen;
	struct core_exec *e;
	struct error err;
	char path[96], script[160];
	auto_close int gate = make_gate(path);
	str_format(script, sizeof script, "read x <%s; exit 5", path);
	struct exec_spec spec = SPEC(SHELL(script));
	e = start_background(&seen, &spec);
	struct exec_record record = e->record;
	record.argv = spec.argv;
	record.cwd = "/";
	run_until(&seen.started);
	world->holds_store = true;
	open_gate(gate);
	run_until(&seen.ended);
	world->w.users = 0;
	world->holds_store = false;
	restart_core(&record, 1, true);
	assert_int_equal(exec_find(&request_system, &world->core, record.id, &e, &err), 0);
	UNTIL(e->record.state == EXEC_ENDED);
	assert_exited(&(struct seen){ .record = e->record }, 5);
	UNTIL(!world->w.sandbox.connection->unacknowledged);
	/* It was acknowledged: a third one hears nothing of it, and doesn't mind. */
	record = e->record;
	record.argv = spec.argv;
	record.cwd = "/";
	restart_core(&record, 1, true);
	run_for(50);
	assert_int_equal(world->ends, 0);
}

static void test_exits_that_nobody_knows_any_more_are_acknowledged(void **state)
{
	auto_seen struct seen seen, after;
	char path[96], script[160];
	auto_close int gate = make_gate(path);
	str_format(script, sizeof script, "read x <%s; exit 5", path);
	struct exec_spec spec = SPEC(SHELL(script));
	start_background(&seen, &spec);
	run_until(&seen.started);
	world->holds_store = true;
	open_gate(gate);
	run_until(&seen.ended);
	world->w.users = 0;
	world->holds_store = false;
	restart_core(NULL, 0, true); /* its row was lost */
	spec = SPEC("true");
	run_captured(&after, &spec);
	assert_exited(&after, 0);
	assert_int_equal(world->ends, 0);
	restart_core(NULL, 0, true);
	run_for(50);
	assert_int_equal(world->ends, 0);
}

static void test_one_that_init_never_heard_of_is_lost_with_a_reason(void **state)
{
	auto_seen struct seen seen, after;
	struct core_exec *e;
	struct error err;
	struct exec_spec spec = SPEC("sleep", "30");
	struct exec_record ghost = { .state = EXEC_STARTING,
		.argv = spec.argv,
		.cwd = "/",
		.background = true,
		.started_ms = clock_now_ms() };
	id_make(ghost.id);
	memcpy(ghost.workspace, world->w.model.id, sizeof ghost.workspace);
	struct exec_record records[2] = { ghost };
	e = start_background(&seen, &spec);
	run_until(&seen.started);
	records[1] = e->record;
	records[1].argv = spec.argv;
	records[1].cwd = "/";
	world->w.users = 0;
	restart_core(records, 2, true);
	assert_int_equal(exec_find(&request_system, &world->core, ghost.id, &e, &err), 0);
	UNTIL(e->record.state == EXEC_ENDED);
	assert_string_equal(reason_names[e->record.result.reason], "daemon_lost");
	assert_non_null(e->record.error);
	/* The other one runs. */
	assert_int_equal(exec_find(&request_system, &world->core, records[1].id, &e, &err), 0);
	assert_int_equal(e->record.state, EXEC_RUNNING);
	/* The next core finds neither sandbox nor end. */
	records[0] = e->record;
	records[0].argv = spec.argv;
	records[0].cwd = "/";
	world->w.users = 0;
	restart_core(records, 1, false);
	assert_int_equal(exec_find(&request_system, &world->core, records[0].id, &e, &err), 0);
	assert_int_equal(e->record.state, EXEC_ENDED);
	assert_string_equal(reason_names[e->record.result.reason], "daemon_lost");
	assert_non_null(strstr(e->record.error, "unknown"));
	UNTIL(world->puts[world->put_count - 1].state == EXEC_ENDED);
	spec = SPEC("true");
	run_captured(&after, &spec);
	assert_exited(&after, 0);
}

static void test_what_is_left_of_its_time_is_kept_over_a_restart(void **state)
{
	auto_seen struct seen seen;
	struct core_exec *e;
	struct error err;
	struct exec_spec spec = SPEC("sleep", "30");
	spec.timeout_ms = 60000;
	e = start_background(&seen, &spec);
	run_until(&seen.started);
	struct exec_record record = e->record;
	record.argv = spec.argv;
	record.cwd = "/";
	record.started_ms -= 60000;
	world->w.users = 0;
	restart_core(&record, 1, true);
	assert_int_equal(exec_find(&request_system, &world->core, record.id, &e, &err), 0);
	UNTIL(e->record.state == EXEC_ENDED);
	assert_string_equal(reason_names[e->record.result.reason], "timeout");
}

static void test_spools_of_nobody_are_swept(void **state)
{
	char id[ID_LEN + 1], name[ID_LEN + 8];
	auto_seen struct seen seen;
	struct exec_spec spec = SPEC(SHELL("echo x"));
	start_background(&seen, &spec);
	run_until(&seen.ended);
	id_make(id);
	str_format(name, sizeof name, "%s.err", id);
	close(openat(world->core.execs->spool, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	execs_settle(&world->core);
	assert_int_equal(faccessat(world->core.execs->spool, name, F_OK, 0), -1);
	str_format(name, sizeof name, "%s.out", seen.record.id);
	assert_int_equal(faccessat(world->core.execs->spool, name, F_OK, 0), 0);
}

static void test_the_oldest_go_when_there_are_too_many(void **state)
{
	struct exec_spec spec = SPEC("true");
	char first[ID_LEN + 1] = "";
	struct core_exec *e;
	struct error err;
	for (int i = 0; i < 258; i++) {
		auto_seen struct seen seen;
		start_background(&seen, &spec);
		run_until(&seen.ended);
		if (!i)
			memcpy(first, seen.record.id, sizeof first);
		run_for(1);
	}
	/* One more at most: it isn't known yet that nobody writes its output any more. */
	assert_in_range(world->core.execs->by_id.live, 256, 257);
	assert_int_equal(exec_find(&request_system, &world->core, first, &e, &err), -1);
}

/* ---- an init that lies ---- */

static void test_an_init_that_lies_is_ended_and_what_ran_there_says_so(void **state)
{
	static const struct init_reply lies[] = {
		{ .type = INIT_EXITED, .id = 12345 },
		{ .type = INIT_STARTED, .id = 12345, .value = 2 },
		{ .type = INIT_FAILED, .id = 12345, .value = 2, .stage = 4 },
		{ .type = INIT_REFUSED, .id = 12345, .value = EINVAL },
		{ .type = INIT_EXITED, .id = 1, .value = 0x7f }, { .type = 77, .id = 1 },
		{ .type = INIT_STARTED, .id = 0 /* of the exec */, .value = 2 },
		{ .type = INIT_STATS_ARE, .value = 300 },
		{ .type = INIT_STATS_ARE, .value = 1 }, /* nobody asked */
	};
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		auto_seen struct seen seen;
		auto_close int init = play_init();
		struct exec_spec spec = SPEC("true");
		struct core_exec *e = start_exec(&seen, &spec, EXEC_CAPTURED, NULL, false);
		struct init_reply lie = lies[i];
		lie.magic = INIT_MAGIC;
		if (!lie.id && lie.type == INIT_STARTED)
			lie.id = e->number; /* nobody asked to be told */
		assert_int_equal(send(init, &lie, sizeof lie, 0), sizeof lie);
		run_until(&seen.ended);
		assert_reason(&seen, REASON_CANCELED);
		assert_non_null(strstr(seen.error, "init"));
		assert_int_equal(world->ends, (int)i + 1);
	}
	/* Bytes that are no reply at all. */
	auto_seen struct seen seen;
	auto_close int init = play_init();
	struct exec_spec spec = SPEC("true");
	start_exec(&seen, &spec, EXEC_CAPTURED, NULL, false);
	assert_int_equal(send(init, "hello", 5, 0), 5);
	run_until(&seen.ended);
	assert_reason(&seen, REASON_CANCELED);
}

static void test_an_init_that_says_nothing_is_asked_and_then_ended(void **state)
{
	auto_seen struct seen seen;
	auto_close int init = play_init();
	struct exec_spec spec = SPEC("true");
	world->core.execs->ping_ms = 30;
	start_exec(&seen, &spec, EXEC_CAPTURED, NULL, false);
	run_until(&seen.ended);
	assert_reason(&seen, REASON_CANCELED);
	assert_non_null(strstr(seen.error, "does not respond"));
	/* One that answers may let its command run as long as it likes. */
	auto_seen struct seen slow;
	fd_close(&init);
	init = play_init();
	struct core_exec *e = start_exec(&slow, &spec, EXEC_CAPTURED, NULL, false);
	struct init_request request = { 0 };
	UNTIL(recv(init, &request, sizeof request, 0) > 0 && request.type == INIT_STATS);
	struct init_reply reply = { .magic = INIT_MAGIC, .type = INIT_STATS_ARE, .value = 1 };
	assert_int_equal(send(init, &reply, sizeof reply, 0), sizeof reply);
	run_for(100);
	assert_false(slow.ended);
	reply = (struct init_reply){ .magic = INIT_MAGIC, .type = INIT_EXITED, .id = e->number };
	assert_int_equal(send(init, &reply, sizeof reply, 0), sizeof reply);
	run_until(&slow.ended);
	assert_exited(&slow, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXEC_TEST(
			test_a_background_exec_has_a_row_before_it_starts_and_one_when_it_has_ended),
		EXEC_TEST(test_a_missing_command_has_ended_with_127_when_its_start_is_told),
		EXEC_TEST(test_one_that_can_not_start_leaves_nothing),
		EXEC_TEST(test_followers_hear_of_output_soon_and_of_the_end),
		EXEC_TEST(test_a_spool_past_its_cap_loses_its_oldest_output),
		EXEC_TEST(test_what_an_ended_exec_left_behind_can_not_fill_the_disk),
		EXEC_TEST(test_a_background_terminal_is_spooled_by_core),
		EXEC_TEST(test_a_background_exec_survives_a_restart_of_core_with_all_its_output),
		EXEC_TEST(test_an_exit_that_was_not_stored_is_told_to_the_next_core),
		EXEC_TEST(test_exits_that_nobody_knows_any_more_are_acknowledged),
		EXEC_TEST(test_one_that_init_never_heard_of_is_lost_with_a_reason),
		EXEC_TEST(test_what_is_left_of_its_time_is_kept_over_a_restart),
		EXEC_TEST(test_spools_of_nobody_are_swept),
		EXEC_TEST(test_the_oldest_go_when_there_are_too_many),
		EXEC_TEST(test_an_init_that_lies_is_ended_and_what_ran_there_says_so),
		EXEC_TEST(test_an_init_that_says_nothing_is_asked_and_then_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
