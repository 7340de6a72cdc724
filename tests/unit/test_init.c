/* carrel-init in a cold sandbox: one command, from spawn to exit; and what it refuses. */
/* security: sandbox */
#include <sys/mount.h>
#include <sys/stat.h>
#include "linux/pty.h"
#include "init_fixture.h"

#define STRAY_FD 50

static void test_exit_codes_and_signals_are_reported(void **state)
{
	static const struct {
		const char *script;
		int code, signal;
	} cases[] = { { "exit 0", 0, 0 }, { "exit 7", 7, 0 }, { "exit 255", 255, 0 },
		{ "kill -TERM $$", 0, SIGTERM }, { "kill -KILL $$", 0, SIGKILL } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		auto_init struct init init = start_cold();
		spawn(init.socket, 5, ARGV("sh", "-c", cases[i].script), 0, 1);
		struct init_reply reply = expect(init.socket, INIT_EXITED, 5);
		if (cases[i].signal)
			assert_int_equal(WTERMSIG(reply.value), cases[i].signal);
		else
			assert_int_equal(reply.value, cases[i].code << 8);
		assert_true(reply.max_rss_kb > 0);
		assert_true(reply.utime_us + reply.stime_us < 10 * 1000 * 1000);
		expect_eof(init.socket);
		assert_init_exits(&init, 0);
	}
}

static void test_a_spawn_may_wait_in_the_socket_before_init_starts(void **state)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	auto_init struct init init = { .socket = ends[0], .listener = -1 };
	spawn(init.socket, 1, ARGV("sh", "-c", "exit 9"), 0, 1);
	init.pid = fork_init(ends[1], 0, NULL);
	close(ends[1]);
	expect_exit(init.socket, 1, 9);
	assert_init_exits(&init, 0);
}

static void test_usage_is_that_of_the_command_and_its_children(void **state)
{
	auto_init struct init init = start_cold();
	spawn(init.socket, 1,
		ARGV("sh", "-c", "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done); true"), 0,
		1);
	struct init_reply reply = expect(init.socket, INIT_EXITED, 1);
	assert_true(reply.utime_us + reply.stime_us > 5000);
}

static void test_what_can_not_run_is_named_by_stage_and_errno(void **state)
{
	char file[] = "/tmp/unit-init-XXXXXX";
	int fd = mkstemp(file);
	assert_int_equal(write(fd, "no program\n", 11), 11);
	static const char *const no_env[] = { NULL };
	const struct {
		const char *command, *cwd;
		mode_t mode;
		int stage, value;
	} cases[] = {
		{ "/no/such/program", "/", 0600, INIT_STAGE_EXEC, ENOENT },
		{ "no-such-program", "/", 0600, INIT_STAGE_EXEC, ENOENT },
		{ "", "/", 0600, INIT_STAGE_EXEC, ENOENT },
		{ "/etc", "/", 0600, INIT_STAGE_EXEC, EACCES },
		{ file, "/", 0600, INIT_STAGE_EXEC, EACCES },
		{ file, "/", 0700, INIT_STAGE_EXEC, ENOEXEC },
		{ "/etc/passwd/x", "/", 0700, INIT_STAGE_EXEC, ENOTDIR },
		{ "true", "/no/such/directory", 0600, INIT_STAGE_CWD, ENOENT },
		{ "true", file, 0600, INIT_STAGE_CWD, ENOTDIR },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		auto_init struct init init = start_cold();
		assert_int_equal(fchmod(fd, cases[i].mode), 0);
		fd_close(&fd); /* a file open for writing would be ETXTBSY */
		struct init_spawn what = { ARGV(cases[i].command), no_env, cases[i].cwd, 0 };
		spawn_full(init.socket, 1, &what, (int[]){ 0, 1, 2 });
		expect_failed(init.socket, 1, cases[i].stage, cases[i].value);
		expect_eof(init.socket);
		assert_init_exits(&init, 0);
		fd = open(file, O_RDONLY | O_CLOEXEC);
	}
	fd_close(&fd);
	unlink(file);
}

static void write_script(const char *dir, const char *name, const char *text, mode_t mode)
{
	char path[512];
	assert_true(str_format(path, sizeof path, "%s/%s", dir, name));
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void test_path_is_searched_as_execvp_does(void **state)
{
	char dir[] = "/tmp/unit-path-XXXXXX", a[64], b[64], env_text[256], text[64];
	assert_non_null(mkdtemp(dir));
	assert_true(str_format(a, sizeof a, "%s/a", dir));
	assert_true(str_format(b, sizeof b, "%s/b", dir));
	assert_int_equal(mkdir(a, 0700), 0);
	assert_int_equal(mkdir(b, 0700), 0);
	write_script(a, "cmd", "#!/bin/sh\necho a\n", 0600);
	write_script(b, "cmd", "#!/bin/sh\necho b\n", 0700);
	write_script(dir, "file", "x", 0700);
	const struct {
		const char *path;
		const char *cwd;
		int value; /* 0: b's is run */
	} cases[] = {
		{ "%s/b", "/", 0 },
		{ "%s/none:%s/file:%s/a:%s/b", "/", 0 }, /* absent, no directory, denied */
		{ "%s/a:%s/none", "/", EACCES },
		{ "%s/none:%s/file", "/", ENOENT },
		{ "", b, 0 }, /* an empty one is the cwd */
		{ "%s/none:", b, 0 },
		{ ":%s/none", b, 0 },
		{ "%s/none::%s/none", b, 0 },
		{ "", "/", ENOENT },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char path[200] = "PATH=";
		for (const char *c = cases[i].path; *c; c++) {
			size_t len = strlen(path);
			if (c[0] == '%' && ++c)
				assert_true(str_copy(path + len, sizeof path - len, dir));
			else
				assert_true(str_format(path + len, sizeof path - len, "%c", *c));
		}
		struct init_spawn what = { ARGV("cmd"), ARGV(path), cases[i].cwd, QUIET };
		if (!cases[i].value) {
			run_and_read(&what, NULL, 0, text, sizeof text);
			assert_string_equal(text, "b\n");
			continue;
		}
		auto_init struct init init = start_cold();
		spawn_full(init.socket, 1, &what, (int[]){ 0, 1, 2 });
		expect_failed(init.socket, 1, INIT_STAGE_EXEC, cases[i].value);
	}
	assert_true(str_format(env_text, sizeof env_text, "rm -r %s", dir));
	struct init_spawn clean = { ARGV("sh", "-c", env_text), path_env, "/", QUIET };
	run_and_read(&clean, NULL, 0, text, sizeof text);
}

static void test_a_path_element_that_is_too_long_is_passed_over(void **state)
{
	char *path = test_malloc(20000), text[16];
	memset(path, 'x', 19999);
	memcpy(path, "PATH=/", 6);
	memcpy(path + 19990, ":/usr/bin", 10);
	struct init_spawn what = { ARGV("echo", "found"), ARGV(path), "/", QUIET };
	run_and_read(&what, NULL, 0, text, sizeof text);
	assert_string_equal(text, "found\n");
	test_free(path);
}

static void test_argv_env_and_cwd_arrive_as_sent(void **state)
{
	char text[256];
	struct init_spawn what = { ARGV("sh", "-c", "pwd; env; printf '<%s>' \"$@\"", "0", "",
					   "a b", "\xff\n"),
		path_env, "/usr/../usr/bin", QUIET };
	run_and_read(&what, NULL, 0, text, sizeof text);
	assert_non_null(strstr(text, "/usr/bin\n"));
	assert_non_null(strstr(text, "A=b\n"));
	assert_non_null(strstr(text, "<><a b><\xff\n>"));
}

static void test_a_large_argument_vector_arrives_whole(void **state)
{
	char text[64];
	static const struct {
		const char *word;
		size_t count;
		const char *said;
	} cases[] = { { "0123456789", 60000, "60000 0123456789\n" }, { "x", 12000, "12000 x\n" },
		{ "y", 8000, "8000 y\n" } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char **argv = test_calloc(cases[i].count + 5, sizeof *argv);
		argv[0] = "sh";
		argv[1] = "-c";
		argv[2] = "n=$#; shift $((n-1)); echo $n $1";
		argv[3] = "sh";
		for (size_t k = 0; k < cases[i].count; k++)
			argv[4 + k] = cases[i].word;
		struct init_spawn what = { argv, path_env, "/", QUIET };
		run_and_read(&what, NULL, 0, text, sizeof text);
		assert_string_equal(text, cases[i].said);
		test_free(argv);
	}
}

static void test_more_than_the_kernel_takes_is_e2big(void **state)
{
	char *word = test_malloc(200001);
	memset(word, 'x', 200000);
	word[200000] = 0;
	auto_init struct init init = start_cold();
	spawn(init.socket, 1, ARGV("true", word), 0, 1);
	expect_failed(init.socket, 1, INIT_STAGE_EXEC, E2BIG);
	test_free(word);
}

static void leave_a_mess(void)
{
	sigset_t set;
	for (int signo = 1; signo <= 64; signo++)
		if (signo != SIGKILL && signo != SIGSTOP)
			signal(signo, SIG_IGN);
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	dup2(2, STRAY_FD);
	dup2(2, STRAY_FD + 1);
}

static void test_a_command_starts_with_clean_signals_and_descriptors(void **state)
{
	char text[1024];
	struct init_spawn what = { ARGV("grep", "Sig[BI]", "/proc/self/status"), path_env, "/",
		QUIET };
	run_and_read(&what, leave_a_mess, 0, text, sizeof text);
	assert_string_equal(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	/* 3 is the directory that ls itself opened. */
	what.argv = ARGV("ls", "/proc/self/fd");
	run_and_read(&what, leave_a_mess, 0, text, sizeof text);
	assert_string_equal(text, "0\n1\n2\n3\n");
	what.argv = ARGV(
		"sh", "-c", "read a b c d e s rest </proc/self/stat; [ $e = $$ ] && [ $s = $$ ]");
	run_and_read(&what, leave_a_mess, 0, text, sizeof text);
}

static void test_init_itself_holds_no_stray_descriptor_and_its_own_name(void **state)
{
	auto_init struct init init = start_cold_with(0, leave_a_mess);
	int in[2], out[2];
	char path[64], text[64], byte;
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	spawn(init.socket, 1, ARGV("sh", "-c", "echo; read x"), in[0], out[1]);
	assert_int_equal(read(out[0], &byte, 1), 1);
	assert_int_equal(expect_stats(init.socket, NULL), 1); /* it is back from the spawn */
	assert_true(str_format(path, sizeof path, "/proc/%d/comm", init.pid));
	assert_true(fd_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	assert_string_equal(text, "carrel-init\n");
	for (int fd = 5; fd < 128; fd++) {
		assert_true(str_format(path, sizeof path, "/proc/%d/fd/%d", init.pid, fd));
		assert_int_equal(readlink(path, text, sizeof text), -1);
	}
	assert_int_equal(write(in[1], "x\n", 2), 2);
	expect_exit(init.socket, 1, 0);
	for (int i = 0; i < 2; i++) {
		close(in[i]);
		close(out[i]);
	}
}

static void become_nobody(void)
{
	if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
		_exit(93);
}

static uid_t owner_of_process(int pid)
{
	char path[64];
	struct stat status;
	assert_true(str_format(path, sizeof path, "/proc/%d/fd", pid));
	assert_int_equal(stat(path, &status), 0);
	return status.st_uid;
}

static void test_init_is_not_dumpable_and_its_command_is(void **state)
{
	auto_init struct init init = start_cold_with(0, become_nobody);
	struct init_spawn what = { ARGV("cat"), path_env, "/", INIT_NO_PIDFD };
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn_full(init.socket, 1, &what, (int[]){ ends[0], 1, 2 });
	int pid = expect(init.socket, INIT_STARTED, 1).value;
	/* What can't be dumped belongs to root in /proc, whoever runs it. */
	assert_int_equal(owner_of_process(init.pid), 0);
	assert_int_equal(owner_of_process(pid), geteuid() ? geteuid() : 65534);
	close(ends[0]);
	close(ends[1]);
	expect_exit(init.socket, 1, 0);
}

static int open_terminal(int *terminal)
{
	struct error err;
	int master = -1;
	auto_close int dir = open("/dev", O_PATH | O_CLOEXEC);
	assert_int_equal(pty_open(dir, &master, terminal, &err), 0);
	return master;
}

static void test_a_terminal_becomes_the_controlling_one(void **state)
{
	int terminal;
	auto_close int master = open_terminal(&terminal);
	auto_init struct init init = start_cold();
	struct init_spawn what = { ARGV("sh", "-c", "echo hello >/dev/tty; read x; exit 3"),
		path_env, "/", QUIET | INIT_TTY };
	spawn_full(init.socket, 1, &what, (int[]){ terminal, terminal, terminal });
	close(terminal);
	char text[64] = "";
	/* The kernel may hand it on in pieces. */
	assert_int_equal(fd_read_full(master, text, 7), 7);
	assert_memory_equal(text, "hello\r\n", 7);
	/* Typed, so delivered to the foreground process group of that terminal. */
	assert_int_equal(write(master, "\003", 1), 1);
	struct init_reply reply = expect(init.socket, INIT_EXITED, 1);
	assert_true(WIFSIGNALED(reply.value));
	assert_int_equal(WTERMSIG(reply.value), SIGINT);
}

static void test_without_the_flag_there_is_no_controlling_terminal(void **state)
{
	int terminal;
	auto_close int master = open_terminal(&terminal);
	assert_true(master >= 0);
	auto_init struct init init = start_cold();
	spawn(init.socket, 1, ARGV("sh", "-c", "(: </dev/tty) 2>/dev/null && exit 1; exit 0"),
		terminal, terminal);
	close(terminal);
	expect_exit(init.socket, 1, 0);
}

static void test_no_terminal_where_one_is_asked_for_is_an_error(void **state)
{
	auto_init struct init init = start_cold();
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct init_spawn what = { ARGV("true"), path_env, "/", QUIET | INIT_TTY };
	spawn_full(init.socket, 1, &what, (int[]){ null, null, null });
	expect_failed(init.socket, 1, INIT_STAGE_TTY, ENOTTY);
}

static char jail[] = "/tmp/unit-jail-XXXXXX";

static void enter_jail(void)
{
	char proc[64];
	if (!str_format(proc, sizeof proc, "%s/proc", jail) || unshare(CLONE_NEWNS) < 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("/proc", proc, NULL, MS_BIND, NULL) < 0 || chroot(jail) < 0 || chdir("/") < 0)
		_exit(93);
}

static void test_a_cwd_outside_of_the_root_is_refused(void **state)
{
	if (geteuid() != 0)
		skip();
	char proc[64];
	assert_non_null(mkdtemp(jail));
	assert_true(str_format(proc, sizeof proc, "%s/proc", jail));
	assert_int_equal(mkdir(proc, 0700), 0);
	auto_close int outside = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_init struct init init = start_cold_with(0, enter_jail);
	/* stdin is a directory of another root; /proc leads the child right to it. */
	struct init_spawn what = { ARGV("/x"), path_env, "/proc/self/fd/0", QUIET };
	spawn_full(init.socket, 1, &what, (int[]){ outside, 1, 2 });
	expect_failed(init.socket, 1, INIT_STAGE_CWD, ENOENT);
	assert_init_exits(&init, 0);
	assert_int_equal(rmdir(proc), 0);
	assert_int_equal(rmdir(jail), 0);
}

static void test_a_signal_reaches_the_whole_process_group(void **state)
{
	struct error err;
	auto_init struct init init = start_cold();
	int ends[2];
	char text[64];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn(init.socket, 1, ARGV("sh", "-c", "sleep 100 & echo; wait"), 0, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], text, 1), 1);
	assert_int_equal(init_client_signal(init.socket, 2, SIGTERM, &err), 0);
	expect_refused(init.socket, 2, ESRCH);
	/* This init isn't PID 1: "everybody" would be the host. */
	assert_int_equal(init_client_signal(init.socket, 0, SIGCONT, &err), 0);
	expect_refused(init.socket, 0, EPERM);
	assert_int_equal(init_client_signal(init.socket, 1, SIGTERM, &err), 0);
	struct init_reply reply = expect(init.socket, INIT_EXITED, 1);
	assert_int_equal(WTERMSIG(reply.value), SIGTERM);
	read_all(ends[0], text, sizeof text);
	close(ends[0]);
}

static void test_a_cold_init_takes_one_spawn(void **state)
{
	auto_init struct init init = start_cold();
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn(init.socket, 1, ARGV("cat"), ends[0], 1);
	spawn(init.socket, 2, ARGV("true"), 0, 1);
	expect_refused(init.socket, 2, EBUSY);
	close(ends[0]);
	close(ends[1]);
	expect_exit(init.socket, 1, 0);
}

static void test_a_cold_init_ends_with_its_master(void **state)
{
	for (int running = 0; running < 2; running++) {
		auto_init struct init init = start_cold();
		int ends[2];
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		if (running)
			spawn(init.socket, 1, ARGV("cat"), ends[0], 1);
		fd_close(&init.socket);
		assert_init_exits(&init, 1);
		close(ends[0]);
		close(ends[1]);
	}
}

static void test_a_cold_init_ends_when_its_master_does_not_read(void **state)
{
	auto_init struct init init = start_cold();
	flood_with_stats(init.socket);
	assert_init_exits(&init, 1);
}

static void test_malformed_messages_are_refused_and_their_descriptors_closed(void **state)
{
	auto_init struct init init = start_cold();
	auto_close int unsealed = memfd_create("body", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(write(unsealed, good.body, 12), 12);
	static const struct {
		size_t len, fd_count;
		size_t field; /* offset of an uint32_t in the request, changed to value */
		uint32_t value;
		uint64_t id;
		int refused;
	} cases[] = {
#define SAME offsetof(struct init_request, magic), INIT_MAGIC
		{ 1, 3, SAME, 0, EBADMSG }, { sizeof good.request - 1, 3, SAME, 0, EBADMSG },
		{ sizeof good.request, 3, SAME, 1, EBADMSG }, { GOOD_LEN - 1, 3, SAME, 1, EBADMSG },
		{ GOOD_LEN + 1, 3, SAME, 1, EBADMSG }, { sizeof good, 3, SAME, 1, EMSGSIZE },
		{ GOOD_LEN, 0, SAME, 1, EBADF }, { GOOD_LEN, 2, SAME, 1, EBADF },
		{ GOOD_LEN, 4, SAME, 1, EBADF }, { GOOD_LEN, 5, SAME, 1, EMFILE },
		{ GOOD_LEN, 8, SAME, 1, EMFILE },
		{ GOOD_LEN, 3, offsetof(struct init_request, magic), 1, 0, EBADMSG },
		{ GOOD_LEN, 3, offsetof(struct init_request, type), 99, 1, EBADMSG },
		{ GOOD_LEN, 3, offsetof(struct init_request, type), INIT_SIGNAL, 1, EBADMSG },
		{ GOOD_LEN, 3, offsetof(struct init_request, argc), 0, 1, EINVAL },
		{ GOOD_LEN, 3, offsetof(struct init_request, argc), 2, 1, EINVAL },
		{ GOOD_LEN, 3, offsetof(struct init_request, envc), UINT32_MAX, 1, EINVAL },
		{ GOOD_LEN, 3, offsetof(struct init_request, flags), INIT_FLAGS_ALL + 1, 1,
			EINVAL },
		{ GOOD_LEN, 3, offsetof(struct init_request, body_len), UINT32_MAX, 1, EINVAL },
		{ sizeof good.request, 4, offsetof(struct init_request, flags), INIT_BODY_IN_FD, 1,
			EBADF }, /* the fourth is a pipe */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct raw raw = good;
		int ends[2];
		char byte;
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		int fds[8] = { ends[1], ends[1], ends[1], ends[1], ends[1], ends[1], ends[1],
			ends[1] };
		memcpy((char *)&raw.request + cases[i].field, &cases[i].value, 4);
		send_raw(init.socket, &raw, cases[i].len, fds, cases[i].fd_count);
		close(ends[1]);
		expect_refused(init.socket, cases[i].id, cases[i].refused);
		/* The other end closes: init keeps nothing of what it refused. */
		assert_int_equal(read(ends[0], &byte, 1), 0);
		close(ends[0]);
	}
	/* A body that could still change, and one whose length lies. */
	struct raw raw = good;
	raw.request.flags |= INIT_BODY_IN_FD;
	send_raw(init.socket, &raw, sizeof raw.request, (int[]){ 0, 1, 2, unsealed }, 4);
	expect_refused(init.socket, 1, EBADF);
	assert_int_equal(fcntl(unsealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE), 0);
	raw.request.body_len = 13;
	send_raw(init.socket, &raw, sizeof raw.request, (int[]){ 0, 1, 2, unsealed }, 4);
	expect_refused(init.socket, 1, EBADF);
	raw.request.argc = 2;
	raw.request.body_len = 12;
	send_raw(init.socket, &raw, sizeof raw.request, (int[]){ 0, 1, 2, unsealed }, 4);
	expect_refused(init.socket, 1, EINVAL);
	/* None of it was the one spawn. */
	send_raw(init.socket, &good, GOOD_LEN, (int[]){ 0, 1, 2 }, 3);
	expect_exit(init.socket, 1, 0);
}

static void test_nothing_survives_the_command_of_a_cold_pid_1(void **state)
{
	auto_init struct init init = start_cold_with(PID_1, NULL);
	if (!can_be_pid_1(&init))
		skip();
	int ends[2];
	char text[16];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn(init.socket, 1, ARGV("sh", "-c", "sleep 100 & (setsid sleep 100 &) ; exit 3"), 0,
		ends[1]);
	close(ends[1]);
	expect_exit(init.socket, 1, 3);
	assert_init_exits(&init, 0);
	read_all(ends[0], text, sizeof text);
	close(ends[0]);
}

static void test_a_cold_init_stays_after_a_failure_when_asked(void **state)
{
	static const int codes[] = { 0, 3 };
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		auto_init struct init init = start_cold();
		char script[16];
		struct init_reply reply;
		snprintf(script, sizeof script, "exit %d", codes[i]);
		struct init_spawn what = { ARGV("sh", "-c", script), path_env, "/",
			QUIET | INIT_STAY };
		spawn_full(init.socket, 1, &what, (int[]){ 0, 1, 2 });
		expect_exit(init.socket, 1, codes[i]);
		if (codes[i]) {
			struct error err;
			assert_int_equal(init_client_stats(init.socket, &err), 0);
			reply = expect(init.socket, INIT_STATS_ARE, 0);
			assert_int_equal(reply.value, 0);
			fd_close(&init.socket);
		}
		assert_init_exits(&init, codes[i] ? 1 : 0);
	}
}

static void test_nothing_survives_the_master_of_a_cold_pid_1(void **state)
{
	auto_init struct init init = start_cold_with(PID_1, NULL);
	if (!can_be_pid_1(&init))
		skip();
	int ends[2];
	char text[16];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn(init.socket, 1, ARGV("sh", "-c", "trap '' TERM HUP; echo; sleep 100"), 0, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], text, 1), 1);
	fd_close(&init.socket);
	read_all(ends[0], text, sizeof text);
	close(ends[0]);
	assert_init_exits(&init, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_codes_and_signals_are_reported),
		cmocka_unit_test(test_a_spawn_may_wait_in_the_socket_before_init_starts),
		cmocka_unit_test(test_usage_is_that_of_the_command_and_its_children),
		cmocka_unit_test(test_what_can_not_run_is_named_by_stage_and_errno),
		cmocka_unit_test(test_path_is_searched_as_execvp_does),
		cmocka_unit_test(test_a_path_element_that_is_too_long_is_passed_over),
		cmocka_unit_test(test_argv_env_and_cwd_arrive_as_sent),
		cmocka_unit_test(test_a_large_argument_vector_arrives_whole),
		cmocka_unit_test(test_more_than_the_kernel_takes_is_e2big),
		cmocka_unit_test(test_a_command_starts_with_clean_signals_and_descriptors),
		cmocka_unit_test(test_init_itself_holds_no_stray_descriptor_and_its_own_name),
		cmocka_unit_test(test_init_is_not_dumpable_and_its_command_is),
		cmocka_unit_test(test_a_terminal_becomes_the_controlling_one),
		cmocka_unit_test(test_without_the_flag_there_is_no_controlling_terminal),
		cmocka_unit_test(test_no_terminal_where_one_is_asked_for_is_an_error),
		cmocka_unit_test(test_a_cwd_outside_of_the_root_is_refused),
		cmocka_unit_test(test_a_signal_reaches_the_whole_process_group),
		cmocka_unit_test(test_a_cold_init_takes_one_spawn),
		cmocka_unit_test(test_a_cold_init_ends_with_its_master),
		cmocka_unit_test(test_a_cold_init_ends_when_its_master_does_not_read),
		cmocka_unit_test(test_malformed_messages_are_refused_and_their_descriptors_closed),
		cmocka_unit_test(test_nothing_survives_the_command_of_a_cold_pid_1),
		cmocka_unit_test(test_a_cold_init_stays_after_a_failure_when_asked),
		cmocka_unit_test(test_nothing_survives_the_master_of_a_cold_pid_1),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
