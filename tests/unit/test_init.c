/* The real carrel-init, started as an ordinary child (and as PID 1 where the host allows it), spoken to
 * through init_client and, where it should be refused, in raw packets. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include "base/fd.h"
#include "base/str.h"
#include "init/image.h"
#include "linux/pidfd.h"
#include "linux/pty.h"
#include "sandbox/init_client.h"
#include "unit.h"

#define PATIENCE_MS 20000
#define STRAY_FD 50

struct init {
	pid_t pid;
	int socket;			/* to it: connected */
	int listener;			/* warm: what it inherited, so that we can find its name */
	bool reaped;
};

/* ---- starting and ending it ---- */

static void run_init(int socket, void (*before)(void))
{
	int image = memfd_create("image", MFD_CLOEXEC);
	if (image < 0 || fd_write_full(image, init_image, init_image_len) < 0)
		_exit(90);
	image = fcntl(image, F_DUPFD_CLOEXEC, 100);
	socket = fcntl(socket, F_DUPFD, 100);
	if (before)
		before();
	char *argv[] = { (char *)(uintptr_t) "carrel-init", NULL }, *env[] = { NULL };
	if (dup2(socket, INIT_SOCKET_FD) < 0)
		_exit(91);
	syscall(SYS_execveat, image, "", argv, env, AT_EMPTY_PATH);
	_exit(92);
}

static pid_t fork_init(int socket, unsigned long namespaces, void (*before)(void))
{
	long pid = syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		run_init(socket, before);
	return (pid_t)pid;
}

static struct init start_cold_with(unsigned long namespaces, void (*before)(void))
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	struct init init = { .socket = ends[0], .listener = -1 };
	init.pid = fork_init(ends[1], namespaces, before);
	close(ends[1]);
	return init;
}

static struct init start_cold(void)
{
	struct init init = start_cold_with(0, NULL);
	assert_true(init.pid > 0);
	return init;
}

static int connect_to(const struct init *init)
{
	struct sockaddr_un address;
	socklen_t len = sizeof address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(getsockname(init->listener, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
	return fd;
}

static struct init start_warm_with(unsigned long namespaces)
{
	struct init init = { .socket = -1 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	init.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* No name given: the kernel chooses a free abstract one. */
	assert_int_equal(bind(init.listener, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(init.listener, 8), 0);
	init.pid = fork_init(init.listener, namespaces, NULL);
	if (init.pid > 0)
		init.socket = connect_to(&init);
	return init;
}

static struct init start_warm(void)
{
	struct init init = start_warm_with(0);
	assert_true(init.pid > 0);
	return init;
}

static void end_init(struct init *init)
{
	fd_close(&init->socket);
	fd_close(&init->listener);
	if (init->pid > 0 && !init->reaped) {
		kill(init->pid, SIGKILL);
		waitpid(init->pid, NULL, 0);
	}
}
#define auto_init __attribute__((cleanup(end_init)))

static void assert_init_exits(struct init *init, int code)
{
	int status = -1;
	assert_int_equal(waitpid(init->pid, &status, 0), init->pid);
	init->reaped = true;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
}

/* ---- talking to it ---- */

static int receive(int socket, struct init_reply *reply, int *pidfd)
{
	struct error err = { 0 };
	struct pollfd ready = { .fd = socket, .events = POLLIN };
	int fd = -1;
	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	int got = init_client_receive(socket, reply, &fd, &err);
	if (got < 0)
		print_error("%s\n", err.text);
	if (pidfd)
		*pidfd = fd;
	else
		fd_close(&fd);
	return got;
}

static struct init_reply expect(int socket, uint32_t type, uint64_t id)
{
	struct init_reply reply = { 0 };
	assert_int_equal(receive(socket, &reply, NULL), INIT_CLIENT_REPLY);
	if (reply.type != type)
		print_error("type %u value %d stage %d\n", reply.type, reply.value, reply.stage);
	assert_int_equal(reply.type, type);
	assert_int_equal(reply.id, id);
	return reply;
}

static void expect_eof(int socket)
{
	struct init_reply reply;
	assert_int_equal(receive(socket, &reply, NULL), INIT_CLIENT_EOF);
}

static void expect_failed(int socket, uint64_t id, int stage, int value)
{
	struct init_reply reply = expect(socket, INIT_FAILED, id);
	assert_int_equal(reply.stage, stage);
	assert_int_equal(reply.value, value);
}

static void expect_refused(int socket, uint64_t id, int value)
{
	assert_int_equal(expect(socket, INIT_REFUSED, id).value, value);
}

static void expect_exit(int socket, uint64_t id, int code)
{
	struct init_reply reply = expect(socket, INIT_EXITED, id);
	assert_true(WIFEXITED(reply.value));
	assert_int_equal(WEXITSTATUS(reply.value), code);
}

static const char *const path_env[] = { "PATH=/usr/bin:/bin", "A=b", NULL };
#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define QUIET (INIT_NO_PIDFD | INIT_NO_STARTED)

static void spawn_full(int socket, uint64_t id, const struct init_spawn *spawn, const int fds[3])
{
	struct error err = { 0 };
	if (init_client_spawn(socket, id, spawn, fds, &err) < 0)
		print_error("%s\n", err.text);
	assert_int_equal(err.code, ERR_NONE);
}

static void spawn(int socket, uint64_t id, const char *const *argv, int in, int out)
{
	struct init_spawn what = { argv, path_env, "/", QUIET };
	spawn_full(socket, id, &what, (int[]){ in, out, 2 });
}

/* Reads to the end, which comes when the last process that holds the other side is gone. */
static void read_all(int fd, char *text, size_t size)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	size_t len = 0;
	for (;;) {
		assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
		ssize_t got = read(fd, text + len, size - 1 - len);
		assert_true(got >= 0);
		if (got == 0)
			break;
		len += (size_t)got;
	}
	text[len] = 0;
}

/* Runs one command in a cold sandbox and returns what it wrote; its exit must be `code`. */
static void run_and_read(const struct init_spawn *what, void (*before)(void), int code, char *text,
	size_t size)
{
	auto_init struct init init = start_cold_with(0, before);
	int ends[2];
	assert_true(init.pid > 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn_full(init.socket, 1, what, (int[]){ 0, ends[1], 2 });
	close(ends[1]);
	read_all(ends[0], text, size);
	close(ends[0]);
	expect_exit(init.socket, 1, code);
	expect_eof(init.socket);
	assert_init_exits(&init, 0);
}

/* ---- cold ---- */

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
		ARGV("sh", "-c", "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done); true"), 0, 1);
	struct init_reply reply = expect(init.socket, INIT_EXITED, 1);
	assert_true(reply.utime_us + reply.stime_us > 5000);
}

static void test_what_can_not_run_is_named_by_stage_and_errno(void **state)
{
	char file[] = "/tmp/carrel-init-XXXXXX";
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
		fd_close(&fd);		/* a file open for writing would be ETXTBSY */
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
	char dir[] = "/tmp/carrel-path-XXXXXX", a[64], b[64], env_text[256], text[64];
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
		int value;		/* 0: b's is run */
	} cases[] = {
		{ "%s/b", "/", 0 },
		{ "%s/none:%s/file:%s/a:%s/b", "/", 0 },	/* absent, no directory, denied */
		{ "%s/a:%s/none", "/", EACCES },
		{ "%s/none:%s/file", "/", ENOENT },
		{ "", b, 0 },					/* an empty one is the cwd */
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
	struct init_spawn what = { ARGV("sh", "-c", "pwd; env; printf '<%s>' \"$@\"", "0", "", "a b", "\xff\n"),
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
	struct init_spawn what = { ARGV("grep", "Sig[BI]", "/proc/self/status"), path_env, "/", QUIET };
	run_and_read(&what, leave_a_mess, 0, text, sizeof text);
	assert_string_equal(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	/* 3 is the directory that ls itself opened. */
	what.argv = ARGV("ls", "/proc/self/fd");
	run_and_read(&what, leave_a_mess, 0, text, sizeof text);
	assert_string_equal(text, "0\n1\n2\n3\n");
	what.argv = ARGV("sh", "-c", "read a b c d e s rest </proc/self/stat; [ $e = $$ ] && [ $s = $$ ]");
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
	struct init_spawn what = { ARGV("sh", "-c", "echo hello >/dev/tty; read x; exit 3"), path_env,
		"/", QUIET | INIT_TTY };
	spawn_full(init.socket, 1, &what, (int[]){ terminal, terminal, terminal });
	close(terminal);
	char text[64] = "";
	struct pollfd ready = { .fd = master, .events = POLLIN };
	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	assert_int_equal(read(master, text, sizeof text), 7);
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
	auto_init struct init init = start_cold();
	spawn(init.socket, 1, ARGV("sh", "-c", "(: </dev/tty) 2>/dev/null && exit 1; exit 0"), terminal,
		terminal);
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

static char jail[] = "/tmp/carrel-jail-XXXXXX";

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

static void flood_with_stats(int socket)
{
	struct error err;
	struct pollfd ready = { .fd = socket, .events = POLLOUT };
	for (int i = 0; i < 1000000; i++) {
		if (init_client_stats(socket, &err) == 0)
			continue;
		if (err.sys_errno != EAGAIN)
			return;
		assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	}
	assert_true(!"init waits for a master that doesn't read");
}

static void test_a_cold_init_ends_when_its_master_does_not_read(void **state)
{
	auto_init struct init init = start_cold();
	flood_with_stats(init.socket);
	assert_init_exits(&init, 1);
}

/* ---- malformed ---- */

struct raw {
	struct init_request request;
	char body[INIT_INLINE_MAX + 4096];
};

static void send_raw(int socket, const struct raw *raw, size_t len, const int *fds, size_t fd_count)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(8 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)raw, len };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (fd_count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
	}
	assert_int_equal(sendmsg(socket, &message, MSG_NOSIGNAL), (ssize_t)len);
}

static const struct raw good = {
	.request = { .magic = INIT_MAGIC, .type = INIT_SPAWN, .id = 1, .argc = 1, .body_len = 12,
		.flags = QUIET },
	.body = "/bin/true\0/",
};
#define GOOD_LEN (sizeof good.request + 12)

static void test_malformed_messages_are_refused_and_their_descriptors_closed(void **state)
{
	auto_init struct init init = start_cold();
	auto_close int unsealed = memfd_create("body", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(write(unsealed, good.body, 12), 12);
	static const struct {
		size_t len, fd_count;
		size_t field;		/* offset of an uint32_t in the request, changed to value */
		uint32_t value;
		uint64_t id;
		int refused;
	} cases[] = {
#define SAME offsetof(struct init_request, magic), INIT_MAGIC
		{ 1, 3, SAME, 0, EBADMSG },
		{ sizeof good.request - 1, 3, SAME, 0, EBADMSG },
		{ sizeof good.request, 3, SAME, 1, EBADMSG },
		{ GOOD_LEN - 1, 3, SAME, 1, EBADMSG },
		{ GOOD_LEN + 1, 3, SAME, 1, EBADMSG },
		{ sizeof good, 3, SAME, 1, EMSGSIZE },
		{ GOOD_LEN, 0, SAME, 1, EBADF },
		{ GOOD_LEN, 2, SAME, 1, EBADF },
		{ GOOD_LEN, 4, SAME, 1, EBADF },
		{ GOOD_LEN, 5, SAME, 1, EMFILE },
		{ GOOD_LEN, 8, SAME, 1, EMFILE },
		{ GOOD_LEN, 3, offsetof(struct init_request, magic), 1, 0, EBADMSG },
		{ GOOD_LEN, 3, offsetof(struct init_request, type), 99, 1, EBADMSG },
		{ GOOD_LEN, 3, offsetof(struct init_request, type), INIT_SIGNAL, 1, EBADMSG },
		{ GOOD_LEN, 3, offsetof(struct init_request, argc), 0, 1, EINVAL },
		{ GOOD_LEN, 3, offsetof(struct init_request, argc), 2, 1, EINVAL },
		{ GOOD_LEN, 3, offsetof(struct init_request, envc), UINT32_MAX, 1, EINVAL },
		{ GOOD_LEN, 3, offsetof(struct init_request, flags), 16, 1, EINVAL },
		{ GOOD_LEN, 3, offsetof(struct init_request, body_len), UINT32_MAX, 1, EINVAL },
		{ sizeof good.request, 4, offsetof(struct init_request, flags), INIT_BODY_IN_FD, 1,
			EBADF },	/* the fourth is a pipe */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct raw raw = good;
		int ends[2];
		char byte;
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		int fds[8] = { ends[1], ends[1], ends[1], ends[1], ends[1], ends[1], ends[1], ends[1] };
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

/* ---- warm ---- */

static void ack(int socket, uint64_t id)
{
	struct error err;
	assert_int_equal(init_client_ack(socket, id, &err), 0);
}

static int expect_stats(int socket, uint64_t *shm_bytes)
{
	struct error err;
	assert_int_equal(init_client_stats(socket, &err), 0);
	struct init_reply reply = expect(socket, INIT_STATS_ARE, 0);
	if (shm_bytes)
		*shm_bytes = reply.shm_bytes;
	return reply.value;
}

static void test_started_carries_the_pidfd_of_the_command(void **state)
{
	auto_init struct init init = start_warm();
	struct error err;
	struct init_reply reply;
	auto_close int pidfd = -1;
	struct init_spawn what = { ARGV("sleep", "100"), path_env, "/", 0 };
	spawn_full(init.socket, 77, &what, (int[]){ 0, 1, 2 });
	assert_int_equal(receive(init.socket, &reply, &pidfd), INIT_CLIENT_REPLY);
	assert_int_equal(reply.type, INIT_STARTED);
	assert_int_equal(reply.id, 77);
	assert_true(pidfd >= 0);
	assert_int_equal(expect_stats(init.socket, NULL), 1);
	assert_int_equal(pidfd_signal(pidfd, SIGKILL, &err), 0);
	assert_int_equal(WTERMSIG(expect(init.socket, INIT_EXITED, 77).value), SIGKILL);
	assert_int_equal(expect_stats(init.socket, NULL), 0);
	what.flags = INIT_NO_PIDFD;
	what.argv = ARGV("true");
	spawn_full(init.socket, 78, &what, (int[]){ 0, 1, 2 });
	assert_int_equal(receive(init.socket, &reply, &pidfd), INIT_CLIENT_REPLY);
	assert_int_equal(reply.type, INIT_STARTED);
	assert_int_equal(pidfd, -1);
	expect_exit(init.socket, 78, 0);
}

static void test_a_warm_init_goes_on_after_exits_failures_and_refusals(void **state)
{
	auto_init struct init init = start_warm();
	for (uint64_t id = 1; id <= 300; id++) {
		spawn(init.socket, id, ARGV("true"), 0, 1);
		expect_exit(init.socket, id, 0);
		ack(init.socket, id);
		ack(init.socket, id);
		expect_refused(init.socket, id, ESRCH);
		if (id % 10)
			continue;
		spawn(init.socket, id, ARGV("/no/such"), 0, 1);
		expect_failed(init.socket, id, INIT_STAGE_EXEC, ENOENT);
		send_raw(init.socket, &good, 5, NULL, 0);
		expect_refused(init.socket, 0, EBADMSG);
	}
	assert_int_equal(expect_stats(init.socket, NULL), 0);
}

static void test_the_table_is_full_at_its_maximum_and_every_exit_arrives(void **state)
{
	auto_init struct init init = start_warm();
	int ends[2];
	bool seen[INIT_EXECS_MAX + 1] = { false };
	for (int round = 0; round < 2; round++) {
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		for (uint64_t id = 1; id <= INIT_EXECS_MAX; id++)
			spawn(init.socket, id, ARGV("cat"), ends[0], 1);
		spawn(init.socket, 1, ARGV("true"), 0, 1);
		expect_refused(init.socket, 1, EEXIST);
		spawn(init.socket, INIT_EXECS_MAX + 1, ARGV("true"), 0, 1);
		expect_refused(init.socket, INIT_EXECS_MAX + 1, EAGAIN);
		assert_int_equal(expect_stats(init.socket, NULL), INIT_EXECS_MAX);
		close(ends[0]);
		close(ends[1]);
		memset(seen, 0, sizeof seen);
		for (int i = 0; i < INIT_EXECS_MAX; i++) {
			struct init_reply reply;
			assert_int_equal(receive(init.socket, &reply, NULL), INIT_CLIENT_REPLY);
			assert_int_equal(reply.type, INIT_EXITED);
			assert_true(reply.id >= 1 && reply.id <= INIT_EXECS_MAX && !seen[reply.id]);
			seen[reply.id] = true;
			ack(init.socket, reply.id);
		}
	}
}

static void test_exits_that_nobody_acknowledged_are_repeated(void **state)
{
	auto_init struct init init = start_warm();
	for (uint64_t id = 1; id <= 3; id++) {
		spawn(init.socket, id, ARGV("sh", "-c", "exit 4"), 0, 1);
		expect_exit(init.socket, id, 4);
	}
	ack(init.socket, 2);
	/* Still running when its master goes. */
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn(init.socket, 9, ARGV("sh", "-c", "read x; exit 5"), ends[0], 1);
	assert_int_equal(expect_stats(init.socket, NULL), 1);
	fd_close(&init.socket);
	close(ends[1]);
	close(ends[0]);
	init.socket = connect_to(&init);
	expect_exit(init.socket, 1, 4);
	bool saw_9 = false, saw_3 = false;
	for (int i = 0; i < 2; i++) {
		struct init_reply reply;
		assert_int_equal(receive(init.socket, &reply, NULL), INIT_CLIENT_REPLY);
		assert_int_equal(reply.type, INIT_EXITED);
		saw_3 |= reply.id == 3 && reply.value == 4 << 8;
		saw_9 |= reply.id == 9 && reply.value == 5 << 8;
	}
	assert_true(saw_3 && saw_9);
	for (uint64_t id = 1; id <= 9; id++)
		if (id == 1 || id == 3 || id == 9)
			ack(init.socket, id);
	assert_int_equal(expect_stats(init.socket, NULL), 0);	/* they were read */
	fd_close(&init.socket);
	init.socket = connect_to(&init);
	assert_int_equal(expect_stats(init.socket, NULL), 0);	/* and nothing before it */
}

static void test_a_newer_master_replaces_the_older(void **state)
{
	auto_init struct init init = start_warm();
	assert_int_equal(expect_stats(init.socket, NULL), 0);
	auto_close int newer = connect_to(&init);
	assert_int_equal(expect_stats(newer, NULL), 0);
	expect_eof(init.socket);
	spawn(newer, 1, ARGV("true"), 0, 1);
	expect_exit(newer, 1, 0);
}

static void test_a_warm_init_drops_a_master_that_does_not_read(void **state)
{
	auto_init struct init init = start_warm();
	flood_with_stats(init.socket);
	fd_close(&init.socket);
	init.socket = connect_to(&init);
	spawn(init.socket, 1, ARGV("true"), 0, 1);
	expect_exit(init.socket, 1, 0);
}

static void test_stats_count_shared_memory_nobody_is_attached_to(void **state)
{
	auto_init struct init init = start_warm();
	const size_t size = 8 << 20;
	uint64_t before = 0, during = 0;
	expect_stats(init.socket, &before);
	int id = shmget(IPC_PRIVATE, size, 0600 | IPC_CREAT);
	assert_true(id >= 0);
	char *memory = shmat(id, NULL, 0);
	assert_ptr_not_equal(memory, (char *)-1);
	memset(memory, 1, size);
	assert_int_equal(shmdt(memory), 0);
	expect_stats(init.socket, &during);
	assert_int_equal(shmctl(id, IPC_RMID, NULL), 0);
	assert_true(during >= before + size / 2);
}

static long pss_kb(pid_t pid)
{
	char path[64], text[4096];
	assert_true(str_format(path, sizeof path, "/proc/%d/smaps_rollup", pid));
	assert_true(fd_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	const char *line = strstr(text, "\nPss:");
	assert_non_null(line);
	return strtol(line + 5, NULL, 10);
}

static void test_an_idle_init_is_small(void **state)
{
	auto_init struct init init = start_warm();
	assert_true(init_image_len <= 16 << 10);
	assert_int_equal(expect_stats(init.socket, NULL), 0);
	print_message("image %zu bytes, idle %ld kB PSS\n", init_image_len, pss_kb(init.pid));
	assert_true(pss_kb(init.pid) <= 16);
	/* And again after it was busy: 200 at once, one with a large body. */
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	for (uint64_t id = 1; id <= 200; id++)
		spawn(init.socket, id, ARGV("cat"), ends[0], 1);
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < 200; i++) {
		struct init_reply reply;
		assert_int_equal(receive(init.socket, &reply, NULL), INIT_CLIENT_REPLY);
		ack(init.socket, reply.id);
	}
	const char **argv = test_calloc(7001, sizeof *argv);
	argv[0] = "true";
	for (int i = 1; i < 7000; i++)
		argv[i] = "argument";
	spawn(init.socket, 1, argv, 0, 1);
	test_free(argv);
	expect_exit(init.socket, 1, 0);
	ack(init.socket, 1);
	expect_stats(init.socket, NULL);
	assert_true(pss_kb(init.pid) <= 16);
}

/* ---- as PID 1 ---- */

static bool can_be_pid_1(const struct init *init)
{
	if (init->pid < 0)
		assert_true(errno == EPERM || errno == ENOSPC || errno == EINVAL || errno == ENOSYS);
	return init->pid > 0;
}
#define PID_1 (CLONE_NEWUSER | CLONE_NEWPID)

static void test_nothing_survives_the_command_of_a_cold_pid_1(void **state)
{
	auto_init struct init init = start_cold_with(PID_1, NULL);
	if (!can_be_pid_1(&init))
		skip();
	int ends[2];
	char text[16];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn(init.socket, 1, ARGV("sh", "-c", "sleep 100 & (setsid sleep 100 &) ; exit 3"), 0, ends[1]);
	close(ends[1]);
	expect_exit(init.socket, 1, 3);
	assert_init_exits(&init, 0);
	read_all(ends[0], text, sizeof text);
	close(ends[0]);
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

static void test_a_pid_1_reaps_orphans_and_signals_everybody(void **state)
{
	auto_init struct init init = start_warm_with(PID_1);
	if (!can_be_pid_1(&init))
		skip();
	struct error err;
	int ends[2];
	char text[4096], path[64];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn(init.socket, 1,
		ARGV("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (setsid true &); done; exit 2"), 0,
		ends[1]);
	spawn(init.socket, 2, ARGV("sh", "-c", "setsid sleep 100 & sleep 100"), 0, ends[1]);
	close(ends[1]);
	expect_exit(init.socket, 1, 2);
	assert_int_equal(init_client_signal(init.socket, 0, SIGKILL, &err), 0);
	assert_int_equal(WTERMSIG(expect(init.socket, INIT_EXITED, 2).value), SIGKILL);
	read_all(ends[0], text, sizeof text);
	close(ends[0]);
	/* The sandbox lives on; no zombie stays in it. */
	assert_true(str_format(path, sizeof path, "/proc/%d/task/%d/children", init.pid, init.pid));
	for (int i = 0; i < PATIENCE_MS; i += 5) {
		if (fd_read_file(AT_FDCWD, path, text, sizeof text) == 0)
			break;
		poll(NULL, 0, 5);
	}
	assert_string_equal(text, "");
	assert_int_equal(expect_stats(init.socket, NULL), 0);
	spawn(init.socket, 3, ARGV("true"), 0, 1);
	expect_exit(init.socket, 3, 0);
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
		cmocka_unit_test(test_a_terminal_becomes_the_controlling_one),
		cmocka_unit_test(test_without_the_flag_there_is_no_controlling_terminal),
		cmocka_unit_test(test_no_terminal_where_one_is_asked_for_is_an_error),
		cmocka_unit_test(test_a_cwd_outside_of_the_root_is_refused),
		cmocka_unit_test(test_a_signal_reaches_the_whole_process_group),
		cmocka_unit_test(test_a_cold_init_takes_one_spawn),
		cmocka_unit_test(test_a_cold_init_ends_with_its_master),
		cmocka_unit_test(test_a_cold_init_ends_when_its_master_does_not_read),
		cmocka_unit_test(test_malformed_messages_are_refused_and_their_descriptors_closed),
		cmocka_unit_test(test_started_carries_the_pidfd_of_the_command),
		cmocka_unit_test(test_a_warm_init_goes_on_after_exits_failures_and_refusals),
		cmocka_unit_test(test_the_table_is_full_at_its_maximum_and_every_exit_arrives),
		cmocka_unit_test(test_exits_that_nobody_acknowledged_are_repeated),
		cmocka_unit_test(test_a_newer_master_replaces_the_older),
		cmocka_unit_test(test_a_warm_init_drops_a_master_that_does_not_read),
		cmocka_unit_test(test_stats_count_shared_memory_nobody_is_attached_to),
		cmocka_unit_test(test_an_idle_init_is_small),
		cmocka_unit_test(test_nothing_survives_the_command_of_a_cold_pid_1),
		cmocka_unit_test(test_nothing_survives_the_master_of_a_cold_pid_1),
		cmocka_unit_test(test_a_pid_1_reaps_orphans_and_signals_everybody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
