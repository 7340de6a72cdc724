/* carrel-build is beside carrel, so that carrel itself links nothing that only builds need. */
#include "envs/builder/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/vec.h"
#include "linux/child.h"
#include "model/nouns/environment.h"
#include "model/nouns/workspace.h"
#include "sandbox/plan/launch.h"

/* ---- for a command ---- */

int build_find_program(char out[PATH_MAX], struct error *err)
{
	ssize_t len = readlink("/proc/self/exe", out, PATH_MAX - sizeof BUILD_PROGRAM);
	if (len > 0) {
		out[len] = 0;
		size_t directory = (size_t)(path_basename(out) - out);
		str_copy(out + directory, PATH_MAX - directory, BUILD_PROGRAM);
		if (!access(out, X_OK))
			return 0;
	}
	const char *path = getenv("PATH");
	struct str rest = str_from(path ? path : ""), piece;
	while (str_next(&rest, ':', &piece))
		if (piece.len && piece.data[0] == '/' &&
			str_format(
				out, PATH_MAX, "%.*s/" BUILD_PROGRAM, (int)piece.len, piece.data) &&
			!access(out, X_OK))
			return 0;
	return fail_hint(err, ERR_UNAVAILABLE,
		"install it in the directory of carrel, or put it on PATH",
		BUILD_PROGRAM " is missing, and this environment must be built");
}

int build_execute(char *const argv[], struct error *err)
{
	char path[PATH_MAX];
	if (build_find_program(path, err))
		return -1;
	execv(path, argv);
	return fail_errno(err, "execute '%s'", path);
}

static int read_to_end(int fd, struct buf *out)
{
	for (;;) {
		char *room = buf_reserve(out, 65536);
		ssize_t len = room ? read(fd, room, 65536) : -1;
		if (len < 0 && room && errno == EINTR)
			continue;
		if (len <= 0)
			return len < 0 ? -1 : 0;
		buf_grew(out, (size_t)len);
	}
}

/* ---- signals are passed on to carrel-build, which ends and reports that ---- */

static const int passed[] = { SIGINT, SIGTERM, SIGHUP };
#define PASSED (sizeof passed / sizeof *passed)
static volatile pid_t builder_pid;

static void pass_on(int signo)
{
	int kept = errno;
	kill(builder_pid, signo);
	errno = kept;
}

static void pass_signals(struct sigaction old[PASSED])
{
	struct sigaction action = { .sa_handler = pass_on, .sa_flags = SA_RESTART };
	for (size_t i = 0; i < PASSED; i++)
		if (!sigaction(passed[i], NULL, &old[i]) && old[i].sa_handler != SIG_IGN)
			sigaction(passed[i], &action, NULL);
}

static void restore_signals(const struct sigaction old[PASSED])
{
	for (size_t i = 0; i < PASSED; i++)
		sigaction(passed[i], &old[i], NULL);
}

int build_run(char *const argv[], struct buf *said, int *exit_code, struct error *err)
{
	char path[PATH_MAX];
	struct child child;
	if (build_find_program(path, err))
		return -1;
	if (child_fork(&child, said ? CHILD_PIPE : 0, SIGTERM, err))
		return error_context(err, "start '%s'", path);
	if (child.pid == 0) {
		if (!said || dup2(child.pipe, STDOUT_FILENO) >= 0)
			execv(path, argv);
		_exit(127);
	}
	struct sigaction old[PASSED];
	builder_pid = child.pid;
	pass_signals(old);
	int failed = said ? read_to_end(child.pipe, said) : 0;
	fd_close(&child.pipe); /* its further output is discarded */
	int status = child_wait(&child);
	restore_signals(old);
	if (status < 0)
		return fail_errno(err, "wait for '%s'", path);
	if (failed)
		return fail(err, ERR_LIMIT, "'%s' printed too much", path);
	if (WIFSIGNALED(status))
		return fail(err, ERR_FAILED, "'%s' was ended by signal %d", path, WTERMSIG(status));
	*exit_code = WEXITSTATUS(status);
	return 0;
}

/* ---- for the launcher ---- */

#define EGRESS_VARIABLE "CARREL_EGRESS_FD"
#define EGRESS_FD 3

int build_take_egress(void)
{
	const char *text = getenv(EGRESS_VARIABLE);
	bool is_given = text && !strcmp(text, "3");
	unsetenv(EGRESS_VARIABLE);
	return is_given && !fcntl(EGRESS_FD, F_SETFD, FD_CLOEXEC) ? EGRESS_FD : -1;
}

static bool is_null_device(int fd)
{
	struct stat st;
	return !fstat(fd, &st) && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

/* The build opens /dev/stdin anew, with our rights: what core couldn't read itself may not become
 * readable so. */
static int check_streams(const int fds[3], struct error *err)
{
	int flags = fcntl(fds[0], F_GETFL);
	if (flags < 0 || flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY)
		return fail(err, ERR_DENIED, "the requirements of a build can't be read");
	return 0;
}

/* The id of the workspace that has the wheels, or NULL: it is another option. */
static const char *wheels_of(const char *option)
{
	size_t len = strlen(BUILD_WHEELS);
	return !strncmp(option, BUILD_WHEELS, len) && id_is_valid(option + len) ? option + len
										: NULL;
}

static int check_texts(const struct build_order *order, struct error *err)
{
	if (order->kind != BUILD_NEW && order->kind != BUILD_REGISTRIES &&
		!env_name_is_valid(order->package_id))
		return fail(err, ERR_INVALID, "invalid name of an environment");
	if (strchr(order->python, '/'))
		return fail_hint(err, ERR_INVALID, "a version, such as 3.12",
			"'%s' is a path, not a version of Python", order->python);
	for (size_t i = 0; i < order->option_count; i++)
		if (!workspace_build_option_is_valid(order->options[i]) &&
			!wheels_of(order->options[i]))
			return fail(err, ERR_DENIED,
				"option '%s' is not allowed in builds of the daemon",
				order->options[i]);
	return 0;
}

typedef VEC(char *) word_list;

static void add_options(const struct build_order *order, struct arena *arena, word_list *words)
{
	if (order->python[0])
		vec_push(arena, words, arena_printf(arena, "--python=%s", order->python));
	bool is_named = false; /* by an option: else requirements are sent */
	for (size_t i = 0; i < order->option_count; i++)
		is_named |= strcmp(order->options[i], WORKSPACE_NODE_INPUT) == 0;
	if (!is_null_device(order->streams[0]) && !is_named)
		vec_push(arena, words, arena_text(arena, "--requirements=/dev/stdin"));
	for (size_t i = 0; i < order->option_count; i++) {
		const char *id = wheels_of(order->options[i]);
		vec_push(arena, words,
			id ? arena_printf(arena,
				     "--wheels=%s/workspaces/%s/upper/" BUILD_WHEELS_DIR,
				     order->home, id)
			   : arena_text(arena, order->options[i]));
	}
	vec_push(arena, words, arena_text(arena, "--"));
}

static char **make_argv(const struct build_order *order, struct arena *arena)
{
	static const char *const first[][5] = {
		[BUILD_NEW] = { "env", "build", "--format=json", "--events", "--self-contained" },
		[BUILD_VERIFY] = { "env", "verify", "--format=json", "--" },
		[BUILD_REPAIR] = { "env", "verify", "--format=json", "--repair" },
		[BUILD_REGISTRIES] = { "env", "registries", "--format=json" },
	};
	word_list words = { 0 };
	vec_push(arena, &words, arena_text(arena, order->carrel));
	for (size_t i = 0; i < 5 && first[order->kind][i]; i++)
		vec_push(arena, &words, arena_text(arena, first[order->kind][i]));
	if (order->kind == BUILD_NEW)
		add_options(order, arena, &words);
	if (order->kind != BUILD_REGISTRIES)
		vec_push(arena, &words, arena_text(arena, order->package_id));
	vec_push(arena, &words, NULL);
	return words.items;
}

/* Our own: proxies, certificates and the settings of pip and uv are the operator's. */
static char **make_env(const struct build_order *order, struct arena *arena)
{
	VEC(char *) env = { 0 };
	for (char **at = environ; *at; at++)
		if (strncmp(*at, "CARREL_HOME=", 12) != 0 &&
			strncmp(*at, "CARREL_HOST=", 12) != 0 &&
			strncmp(*at, EGRESS_VARIABLE "=", sizeof EGRESS_VARIABLE) != 0)
			vec_push(arena, &env, *at);
	vec_push(arena, &env, arena_printf(arena, EGRESS_VARIABLE "=%d", EGRESS_FD));
	vec_push(arena, &env, arena_printf(arena, "CARREL_HOME=%s", order->home));
	/* Whatever daemon the operator's own commands use. */
	vec_push(arena, &env, arena_text(arena, "CARREL_HOST=local"));
	vec_push(arena, &env, NULL);
	return env.items;
}

static _Noreturn void become_builder(const struct build_order *order, char **argv, char **env)
{
	sigset_t none;
	int moved[EGRESS_FD + 1];
	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_NOFILE, &order->fds);
	for (int i = 0; i <= EGRESS_FD; i++) {
		int fd = i < EGRESS_FD ? order->streams[i] : order->egress;
		if ((moved[i] = fcntl(fd, F_DUPFD_CLOEXEC, EGRESS_FD + 1)) < 0)
			_exit(125);
	}
	for (int i = 0; i <= EGRESS_FD; i++)
		if (dup2(moved[i], i) < 0)
			_exit(125);
	if (close_range(EGRESS_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC))
		_exit(125);
	execve(order->carrel, argv, env);
	_exit(125);
}

int build_start_ordered(const struct build_order *order, pid_t *pid, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct child child;
	if (check_streams(order->streams, err) || check_texts(order, err))
		return -1;
	char **argv = make_argv(order, &arena);
	char **env = make_env(order, &arena);
	if (child_fork(&child, 0, SIGTERM, err))
		return error_context(err, "start '%s'", order->carrel);
	if (child.pid == 0)
		become_builder(order, argv, env);
	setpgid(child.pid, child.pid); /* in parent and child: the group must exist before a signal
					* is sent to it */
	*pid = child.pid;
	return 0;
}
