/* The launcher executes itself anew: checked first, then core ends as it would for a restart, then
 * the execve. Sandboxes and what runs in them don't notice. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "launch/handover.h"
#include "launch/internal.h"
#include "linux/capability.h"
#include "linux/child.h"

#define CHECK_MS 15000
#define SAID_MAX 4096
#define RESULT "reload" /* in <home>/run: "PID COUNT ok", or "PID COUNT failed TEXT" */

/* ---- what is told of it ---- */

/* For `carrel serve --reload`, which waits for another line than it found. */
static void write_result(struct launcher *launcher, const struct error *failure)
{
	struct reload *reload = &launcher->reload;
	struct error ignored;
	char text[ERROR_TEXT_SIZE + 64];
	auto_close int run = -1;
	str_format(text, sizeof text, "%d %u %s%s\n", (int)getpid(), reload->count,
		failure ? "failed " : "ok", failure ? failure->text : "");
	if (home_open_directory(launcher->home, "run", &run, &ignored))
		return;
	home_enter(launcher->home);
	unlinkat(run, ".reload", 0); /* core may have replaced it by a FIFO without a reader */
	auto_close int fd = openat(run, ".reload", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && fd_write_full(fd, text, strlen(text)) == (ssize_t)strlen(text))
		renameat(run, ".reload", run, RESULT);
	home_leave(launcher->home);
}

static void fail_reload(struct launcher *launcher, const struct error *err)
{
	launcher_log(launcher, LOG_LEVEL_ERROR, "not reloaded", NULL, NULL, err);
	launcher->reload.state = RELOAD_NONE;
	write_result(launcher, err);
	launcher_notify(launcher, "READY=1");
}

void reload_served(struct launcher *launcher)
{
	if (!launcher->options->handover || launcher->reload.is_told)
		return;
	launcher->reload.is_told = true;
	launcher_log(launcher, LOG_LEVEL_INFO, "reloaded", NULL, NULL, NULL);
	write_result(launcher, NULL);
	launcher_notify(launcher, "READY=1");
}

/* ---- the execve ---- */

/* The words that this process was started with. */
static char **own_argv(struct arena *arena, struct error *err)
{
	static const char path[] = "/proc/self/cmdline";
	VEC(char *) words = { 0 };
	size_t size = (size_t)1 << 20;
	char *text = arena_alloc(arena, size);
	ssize_t len = fd_read_file(AT_FDCWD, path, text, size);
	if (len <= 0) {
		fail_errno(err, "read '%s'", path);
		return NULL;
	}
	for (char *at = text; at < text + len; at += strlen(at) + 1)
		vec_push(arena, &words, at);
	vec_push(arena, &words, NULL);
	return words.items;
}

static void reload_describe(struct launcher *launcher, struct arena *arena, struct handover *h)
{
	const struct launch_options *options = launcher->options;
	*h = (struct handover){ .listener = options->listener,
		.lock = options->lock,
		.notify = options->notify,
		.slots = launcher->slots.fd,
		.next_group = launcher->pool.next_number,
		.reloads = launcher->reload.count,
		.cgroups = launcher->host.cgroups,
		.limiter = launcher->host.facts.limiter,
		.fds = launcher->own_fds };
	for (size_t i = 0; i < options->also_count; i++)
		vec_push(arena, &h->also, options->also[i]);
	for (const struct pin *pin = launcher->pins; pin; pin = pin->next)
		vec_push(arena, &h->pins, pin->fd);
	sandboxes_hand_over(launcher, arena, h);
}

static int write_memfd(const struct handover *h, int *fd, struct error *err)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	auto_close int made = memfd_create("carrel-handover", 0);
	handover_print(h, &text);
	if (made < 0 || text.overflow ||
		fd_write_full(made, text.data, text.len) != (ssize_t)text.len)
		return fail_errno(err, "write what the next launcher needs");
	*fd = take_fd(&made);
	return 0;
}

static void set_kept(const struct handover *h, bool is_kept)
{
	const int fds[] = { h->listener.fd, h->listener.dir, h->lock, h->notify, h->slots };
	int flags = is_kept ? 0 : FD_CLOEXEC;
	for (size_t i = 0; i < h->also.count; i++) {
		fcntl(h->also.items[i].fd, F_SETFD, flags);
		if (h->also.items[i].dir >= 0)
			fcntl(h->also.items[i].dir, F_SETFD, flags);
	}
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		if (fds[i] >= 0)
			fcntl(fds[i], F_SETFD, flags);
	for (size_t i = 0; i < h->pins.count; i++)
		fcntl(h->pins.items[i], F_SETFD, flags);
}

/* Returns only when it failed. */
static void execute(struct launcher *launcher, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct handover h;
	int fd = -1;
	char number[16];
	char **argv = own_argv(&arena, err);
	if (!argv)
		return;
	reload_describe(launcher, &arena, &h);
	if (write_memfd(&h, &fd, err))
		return;
	str_format(number, sizeof number, "%d", fd);
	setenv(HANDOVER_VARIABLE, number, 1);
	set_kept(&h, true);
	fault_point("launch_reload_exec");
	/* A plain user's capabilities in our user namespace would be lost by an execve. */
	if (!capability_keep_over_exec(true, err)) {
		execv(launcher->options->self, argv);
		fail_errno(err, "execute '%s'", launcher->options->self);
	}
	struct error ignored;
	capability_keep_over_exec(false, &ignored);
	set_kept(&h, false);
	unsetenv(HANDOVER_VARIABLE);
	close(fd);
}

void reload_go_on(struct launcher *launcher)
{
	struct error err;
	if (launcher->reload.state != RELOAD_ENDING || launcher->roles[ROLE_CORE] ||
		launcher->roles[ROLE_WRITER] || launcher->roles[ROLE_AUDIT] || launcher->jobs ||
		!sandboxes_are_settled(launcher))
		return;
	egress_end(launcher); /* egress has no client left */
	pool_stop(&launcher->pool);
	launcher_log(launcher, LOG_LEVEL_INFO, "executing the program anew", NULL, NULL, NULL);
	execute(launcher, &err);
	fail_reload(launcher, &err);
	launcher_start_again(launcher);
}

/* ---- the check ---- */

static _Noreturn void become_check(const struct launcher *launcher, char **argv, int out)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setrlimit(RLIMIT_NOFILE, &launcher->own_fds);
	setenv(HANDOVER_VARIABLE, HANDOVER_CHECK, 1);
	if (dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0)
		execv(launcher->options->self, argv);
	dprintf(out, "execute '%s': %s\n", launcher->options->self, strerror(errno));
	_exit(127);
}

static void on_check_late(struct loop *loop, void *ctx)
{
	struct launcher *launcher = ctx;
	launcher->reload.patience = NULL;
	kill(launcher->reload.check, SIGKILL);
}

void reload_begin(struct launcher *launcher)
{
	struct reload *reload = &launcher->reload;
	auto_arena struct arena arena = { 0 };
	struct child child;
	struct error err;
	char text[96];
	if (reload->state != RELOAD_NONE || launcher->is_stopping)
		return;
	reload->count++;
	str_format(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)clock_monotonic_ns() / 1000);
	launcher_notify(launcher, text);
	launcher_log(launcher, LOG_LEVEL_INFO, "reloading", NULL, NULL, NULL);
	char **argv = own_argv(&arena, &err);
	if (!argv || child_fork(&child, CHILD_PIPE, SIGKILL, &err)) {
		fail_reload(launcher, &err);
		return;
	}
	if (child.pid == 0)
		become_check(launcher, argv, child.pipe);
	reload->state = RELOAD_CHECKING;
	reload->check = child.pid;
	reload->said = child.pipe;
	reload->patience = loop_after(launcher->loop, CHECK_MS, on_check_late, launcher);
}

/* What it said last is why it refuses. */
static void reload_explain(char *said, ssize_t len, int status, struct error *err)
{
	struct str rest = { said, len > 0 ? (size_t)len : 0 }, line, first = { 0 };
	while (!first.len && str_next(&rest, '\n', &line))
		first = str_trim(line);
	if (str_starts_with(first, "carrel: ")) {
		first.data += strlen("carrel: ");
		first.len -= strlen("carrel: ");
	}
	if (first.len)
		fail(err, ERR_FAILED, "the new program can't start: %.*s", (int)first.len,
			first.data);
	else
		role_explain_end(status, err), error_context(err, "the new program can't start");
}

bool reload_checked(struct launcher *launcher, pid_t pid, int status)
{
	struct reload *reload = &launcher->reload;
	char said[SAID_MAX] = "";
	struct error err;
	if (reload->state != RELOAD_CHECKING || pid != reload->check)
		return false;
	loop_cancel(launcher->loop, reload->patience);
	reload->patience = NULL;
	fcntl(reload->said, F_SETFL, O_NONBLOCK); /* it may have left a child that has the pipe */
	ssize_t len = read(reload->said, said, sizeof said - 1);
	fd_close(&reload->said);
	if (launcher->is_stopping) { /* a stop has overtaken the reload: core is draining */
		fail(&err, ERR_CANCELED, "the daemon is told to end");
		reload->state = RELOAD_NONE;
		write_result(launcher, &err);
		return true;
	}
	if (status || len < 0 || strcmp(said, HANDOVER_OK)) {
		reload_explain(said, len, status, &err);
		fail_reload(launcher, &err);
		return true;
	}
	fault_point("launch_reload_checked");
	reload->state = RELOAD_ENDING;
	link_reload(launcher);
	reload_go_on(launcher);
	return true;
}
