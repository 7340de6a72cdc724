/* `carrel env build` for core: a process of our own program, with the descriptors that core sent,
 * in a process group of its own, and ended with us. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "launch/parts.h"
#include "linux/child.h"
#include "model/workspace.h"

#define BUILDS_MAX 32
#define PATIENCE_MS 10000 /* a build that is to end removes what it began */

struct build {
	struct launcher *launcher;
	pid_t pid;
	uint64_t tag;
	char request_id[ID_LEN + 1];
	struct loop_timer *patience; /* it was told to end */
	struct build *next;
};

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

static int check_texts(const struct launch_packet *packet, struct error *err)
{
	const char *python = packet->strings[1];
	if (strchr(python, '/'))
		return fail_hint(err, ERR_INVALID, "a version, such as 3.12",
			"'%s' is a path, not a version of Python", python);
	for (uint32_t i = 2; i < packet->head.string_count; i++)
		if (!workspace_build_option_is_valid(packet->strings[i]))
			return fail(err, ERR_DENIED, "'%s' is not an option of a client's build",
				packet->strings[i]);
	return 0;
}

static char **make_argv(const struct launcher *launcher, const struct launch_packet *packet,
	bool has_file, struct arena *arena)
{
	VEC(char *) words = { 0 };
	const char *const first[] = { launcher->options->self, "env", "build", "--format=json",
		"--self-contained" };
	for (size_t i = 0; i < sizeof first / sizeof *first; i++)
		vec_push(arena, &words, arena_text(arena, first[i]));
	if (packet->strings[1][0])
		vec_push(arena, &words, arena_printf(arena, "--python=%s", packet->strings[1]));
	if (has_file)
		vec_push(arena, &words, arena_text(arena, "--requirements=/dev/stdin"));
	for (uint32_t i = 2; i < packet->head.string_count; i++)
		vec_push(arena, &words, arena_text(arena, packet->strings[i]));
	vec_push(arena, &words, arena_text(arena, "--"));
	vec_push(arena, &words, arena_text(arena, packet->strings[0]));
	vec_push(arena, &words, NULL);
	return words.items;
}

/* Our own: proxies, certificates and the settings of pip and uv are the operator's. */
static char **make_env(const struct launcher *launcher, struct arena *arena)
{
	VEC(char *) env = { 0 };
	for (char **at = environ; *at; at++)
		if (strncmp(*at, "CARREL_HOME=", 12))
			vec_push(arena, &env, *at);
	vec_push(arena, &env, arena_printf(arena, "CARREL_HOME=%s", launcher->home->path));
	vec_push(arena, &env, NULL);
	return env.items;
}

static _Noreturn void become_builder(
	const struct launcher *launcher, char **argv, char **env, const int fds[3])
{
	sigset_t none;
	int moved[3];
	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_NOFILE, &launcher->own_fds);
	for (int i = 0; i < 3; i++)
		if ((moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3)) < 0)
			_exit(125);
	for (int i = 0; i < 3; i++)
		if (dup2(moved[i], i) < 0)
			_exit(125);
	if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC))
		_exit(125);
	execve(launcher->options->self, argv, env);
	_exit(125);
}

static unsigned count_builds(const struct launcher *launcher)
{
	unsigned count = 0;
	for (const struct build *at = launcher->builds; at; at = at->next)
		count++;
	return count;
}

static int begin(struct launcher *launcher, const struct launch_packet *packet, const int fds[3],
	pid_t *pid, struct error *err)
{
	auto_arena struct arena arena;
	struct child child;
	arena_init(&arena);
	if (check_streams(fds, err) || check_texts(packet, err))
		return -1;
	if (count_builds(launcher) >= BUILDS_MAX)
		return fail_hint(err, ERR_LIMIT, "try again when one has ended",
			"%d environments are being built", BUILDS_MAX);
	char **argv = make_argv(launcher, packet, !is_null_device(fds[0]), &arena);
	char **env = make_env(launcher, &arena);
	if (child_fork(&child, 0, SIGTERM, err))
		return error_context(err, "start '%s'", launcher->options->self);
	*pid = child.pid;
	if (child.pid == 0)
		become_builder(launcher, argv, env, fds);
	setpgid(*pid, *pid); /* whoever comes first: a signal to the group must find it */
	return 0;
}

void build_start(struct launcher *launcher, const struct launch_packet *packet, const int fds[3])
{
	const struct launch_message *head = &packet->head;
	struct error err;
	pid_t pid = 0;
	if (begin(launcher, packet, fds, &pid, &err)) {
		launcher_log(launcher, LOG_LEVEL_WARN, "build failed to start", NULL,
			head->request_id, &err);
		link_send_failed(launcher, head->tag, &err);
		return;
	}
	struct build *build = calloc(1, sizeof *build);
	if (!build)
		abort();
	*build = (struct build){
		.launcher = launcher, .pid = pid, .tag = head->tag, .next = launcher->builds
	};
	str_copy(build->request_id, sizeof build->request_id, head->request_id);
	launcher->builds = build;
	launcher_log(launcher, LOG_LEVEL_INFO, "build started", NULL, build->request_id, NULL);
}

static void on_patience(struct loop *loop, void *ctx)
{
	struct build *build = ctx;
	build->patience = NULL;
	kill(-build->pid, SIGKILL);
}

static void cancel(struct build *build)
{
	if (build->patience)
		return;
	kill(build->pid, SIGTERM); /* it passes it on, and says so */
	build->patience = loop_after(build->launcher->loop, PATIENCE_MS, on_patience, build);
}

void build_cancel(struct launcher *launcher, uint64_t tag)
{
	for (struct build *at = launcher->builds; at; at = at->next)
		if (at->tag == tag)
			cancel(at);
}

void builds_cancel_all(struct launcher *launcher)
{
	for (struct build *at = launcher->builds; at; at = at->next) {
		at->tag = 0;
		cancel(at);
	}
}

void build_ends(struct launcher *launcher, pid_t pid)
{
	for (struct build *at = launcher->builds; at; at = at->next)
		if (at->pid == pid)
			kill(-pid, SIGKILL);
}

bool build_died(struct launcher *launcher, pid_t pid, int status)
{
	struct build **at = &launcher->builds;
	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	struct build *build = *at;
	if (!build)
		return false;
	*at = build->next;
	loop_cancel(launcher->loop, build->patience);
	struct launch_message head = { .type = LAUNCH_BUILT,
		.tag = build->tag,
		.value = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status) };
	launcher_log(launcher, LOG_LEVEL_INFO, "build ended", NULL, build->request_id, NULL);
	if (build->tag)
		link_send(launcher, &head, NULL, 0, NULL, 0);
	free(build);
	launcher_check_end(launcher);
	return true;
}
