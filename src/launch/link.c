/* The launcher's link to core: start, messages, restart. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "launch/internal.h"
#include "proc/channel.h"
#include "proc/role.h"

#define PAUSE_LEAST_MS 100
#define PAUSE_MOST_MS 2000 /* ready again within 5 s, however often it dies */
#define LONG_LIFE_MS 10000 /* after such a life the next pause is the shortest again */
#define DRAIN_MS 20000
#define MESSAGE_MAX (sizeof(struct launch_message) + LAUNCH_BODY_MAX)

static void on_channel(struct loop *loop, int fd, uint32_t events, void *ctx);

/* ---- out ---- */

static void kill_core(struct launcher *launcher, const struct error *why)
{
	if (!launcher->roles[ROLE_CORE])
		return;
	launcher_log(launcher, LOG_LEVEL_ERROR, "ending core", NULL, NULL, why);
	role_kill(launcher, ROLE_CORE);
}

static void close_channel(struct launcher *launcher)
{
	struct link *link = &launcher->link;
	loop_unwatch(launcher->loop, link->channel);
	fd_close(&link->channel);
	loop_unwatch(launcher->loop, link->ready);
	fd_close(&link->ready);
	channel_queue_done(&link->queue);
	link->is_full = false;
}

/* While something waits to go out nothing is taken in: core can't make us keep more than it
 * fetches. */
static void set_full(struct launcher *launcher, bool is_full)
{
	struct link *link = &launcher->link;
	struct error err;
	if (link->is_full == is_full)
		return;
	link->is_full = is_full;
	if (loop_change(launcher->loop, link->channel, is_full ? EPOLLOUT : EPOLLIN, &err))
		kill_core(launcher, &err);
}

static void link_flush(struct launcher *launcher)
{
	struct link *link = &launcher->link;
	struct error err;
	if (channel_flush(&link->queue, link->channel, &err))
		kill_core(launcher, &err);
	else
		set_full(launcher, link->queue.first != NULL);
}

bool link_has_room(const struct launcher *launcher)
{
	return !launcher->link.is_full;
}

void link_send(struct launcher *launcher, const struct launch_message *head,
	const char *const *strings, size_t count, const int *fds, int fd_count)
{
	struct link *link = &launcher->link;
	struct error err;
	auto_buf struct buf data = buf_empty(MESSAGE_MAX);
	if (link->channel < 0) /* core is away, and will ask */
		return;
	if (launch_encode(head, strings, count, &data, &err))
		abort(); /* what we say ourselves is short */
	if (channel_send_or_queue(
		    &link->queue, link->channel, data.data, data.len, fds, fd_count, &err))
		kill_core(launcher, &err);
	else
		set_full(launcher, link->queue.first != NULL);
}

void link_send_failed(struct launcher *launcher, uint64_t tag, const struct error *err)
{
	struct launch_message head = {
		.type = LAUNCH_FAILED, .tag = tag, .error_code = (uint32_t)err->code
	};
	link_send(launcher, &head, (const char *[]){ err->text, err->hint }, 2, NULL, 0);
}

void link_refuse(struct launcher *launcher, uint64_t tag, enum error_code code, const char *text)
{
	struct error err;
	fail(&err, code, "%s", text);
	link_send_failed(launcher, tag, &err);
}

/* ---- in ---- */

static void close_fds(int *fds, int count)
{
	for (int i = 0; i < count; i++)
		fd_close(&fds[i]);
}

/* false: nothing more can be taken now. */
static bool take_message(struct launcher *launcher)
{
	static char data[MESSAGE_MAX];
	static struct launch_packet packet;
	struct link *link = &launcher->link;
	struct error err;
	size_t len = 0;
	int fds[CHANNEL_FDS_MAX], count = 0;
	int got = channel_receive(
		link->channel, data, sizeof data, &len, fds, CHANNEL_FDS_MAX, &count, &err);
	if (got == CHANNEL_NOTHING)
		return false;
	if (got == CHANNEL_EOF) {
		close_channel(launcher); /* its end comes by SIGCHLD */
		return false;
	}
	if (got < 0 || launch_decode(data, len, true, count, &packet, &err)) {
		if (got > 0)
			close_fds(fds, count);
		kill_core(launcher, &err);
		close_channel(launcher);
		return false;
	}
	launcher_serve(launcher, &packet, fds);
	close_fds(fds, count);
	return true;
}

#define TAKEN_MAX 16 /* messages a turn of the loop: ends and timers come in between */

static void on_channel(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct launcher *launcher = ctx;
	struct link *link = &launcher->link;
	if (link->is_full) {
		link_flush(launcher);
		if (!link->is_full)
			sandboxes_go_on(launcher);
		return;
	}
	for (int i = 0; i < TAKEN_MAX && link->channel >= 0 && !link->is_full; i++)
		if (!take_message(launcher))
			break;
}

/* It has said that it serves, or that it never will. */
static void read_ready(struct launcher *launcher)
{
	struct link *link = &launcher->link;
	char byte;
	bool is_ready = read(link->ready, &byte, 1) == 1;
	loop_unwatch(launcher->loop, link->ready);
	fd_close(&link->ready);
	if (!is_ready)
		return;
	link->is_up = true;
	launcher_log(launcher, LOG_LEVEL_INFO, "core serves", NULL, NULL, NULL);
	if (!link->has_served && launcher->options->ready >= 0) {
		(void)!write(launcher->options->ready, "r", 1);
		close(launcher->options->ready);
	}
	if (!link->has_served)
		launcher_notify(launcher, "READY=1");
	link->has_served = true;
	reload_served(launcher);
}

static void on_ready(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	read_ready(ctx);
}

/* ---- its life ---- */

/* The listeners besides the first come after the fixed descriptors. */
static int start_core(
	struct launcher *launcher, const int *fixed, int fixed_count, struct error *err)
{
	const struct launch_options *options = launcher->options;
	int fds[ROLE_FDS_MAX], count = fixed_count;
	memcpy(fds, fixed, (size_t)fixed_count * sizeof *fixed);
	launcher->link.also_fd = LAUNCH_ROLE_LISTENER + count;
	for (size_t i = 0; i < options->also_count && count < ROLE_FDS_MAX; i++)
		fds[count++] = options->also[i].fd;
	return launcher_start_role(launcher, ROLE_CORE, fds, count, err);
}

int link_start(struct launcher *launcher, struct error *err)
{
	struct link *link = &launcher->link;
	int ends[2], pipes[2];
	if (channel_pair(ends, err))
		return -1;
	auto_close int theirs = ends[1];
	link->channel = ends[0];
	/* What core leaves running may have its end of it still, when core is gone. */
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK)) {
		fail_errno(err, "make a pipe");
		close_channel(launcher);
		return -1;
	}
	auto_close int write_end = pipes[1], writer = -1, audit = -1;
	bool is_audited = launcher_is_audited(launcher);
	link->ready = pipes[0];
	link->is_up = false;
	if (loop_watch(launcher->loop, link->channel, EPOLLIN, on_channel, launcher, err) ||
		loop_watch(launcher->loop, link->ready, EPOLLIN, on_ready, launcher, err) ||
		writer_start(launcher, ROLE_WRITER, &writer, err) ||
		(is_audited && writer_start(launcher, ROLE_AUDIT, &audit, err)) ||
		start_core(launcher,
			(int[]){ launcher->options->listener.fd, theirs, write_end, writer, audit },
			is_audited ? 5 : 4, err)) {
		role_kill(launcher, ROLE_WRITER);
		role_kill(launcher, ROLE_AUDIT);
		close_channel(launcher);
		return -1;
	}
	link->started_ms = clock_monotonic_ms();
	certificates_send(launcher);
	return 0;
}

static void restart_later(struct launcher *launcher);

static void on_restart(struct loop *loop, void *ctx)
{
	struct launcher *launcher = ctx;
	struct error err;
	launcher->link.restart = NULL;
	if (launcher->roles[ROLE_WRITER] || launcher->roles[ROLE_AUDIT]) {
		restart_later(launcher);
		return;
	}
	if (!link_start(launcher, &err))
		return;
	launcher_log(launcher, LOG_LEVEL_ERROR, "core can't be started", NULL, NULL, &err);
	restart_later(launcher);
}

static void restart_later(struct launcher *launcher)
{
	struct link *link = &launcher->link;
	link->restart = loop_after(launcher->loop, link->pause_ms, on_restart, launcher);
	link->pause_ms = 2 * link->pause_ms < PAUSE_MOST_MS ? 2 * link->pause_ms : PAUSE_MOST_MS;
}

void link_core_died(struct launcher *launcher, enum role which, int status)
{
	struct link *link = &launcher->link;
	struct error err;
	role_explain_end(status, &err);
	link->is_restart = true;
	writers_forget_core(launcher);
	if (link->ready >= 0) /* its exit may be reaped before its message is read */
		read_ready(launcher);
	close_channel(launcher);
	loop_cancel(launcher->loop, link->patience);
	link->patience = NULL;
	sandboxes_forget_core(launcher);
	egress_forget_core(launcher);
	jobs_cancel_all(launcher);
	if (launcher->is_stopping) {
		launcher_log(launcher, LOG_LEVEL_INFO, "core has ended", NULL, NULL,
			status ? &err : NULL);
		launcher_check_end(launcher);
		return;
	}
	if (launcher->reload.state == RELOAD_ENDING) {
		reload_go_on(launcher);
		return;
	}
	launcher_log(launcher, LOG_LEVEL_ERROR, "core has ended", NULL, NULL, &err);
	if (!link->has_served) {
		launcher->exit_code = WIFEXITED(status) && WEXITSTATUS(status)
					      ? WEXITSTATUS(status)
					      : error_exit_code(ERR_FAILED);
		launcher->is_stopping = true;
		launcher_check_end(launcher);
		return;
	}
	if (!link->pause_ms || clock_monotonic_ms() - link->started_ms >= LONG_LIFE_MS)
		link->pause_ms = PAUSE_LEAST_MS;
	restart_later(launcher);
}

static void on_patience(struct loop *loop, void *ctx)
{
	struct launcher *launcher = ctx;
	struct error err;
	launcher->link.patience = NULL;
	fail(&err, ERR_FAILED, "core did not end when it was told to");
	kill_core(launcher, &err);
}

/* Tells core to end, and to whom its sandboxes stay, by the signal. */
static void tell_core(struct launcher *launcher, int signo)
{
	struct link *link = &launcher->link;
	loop_cancel(launcher->loop, link->restart);
	link->restart = NULL;
	pid_t core = launcher->roles[ROLE_CORE];
	if (!core)
		return;
	if (link->patience) {
		role_kill(launcher, ROLE_CORE);
		return;
	}
	kill(core, link->is_up ? signo : SIGKILL);
	link->patience = loop_after(launcher->loop, DRAIN_MS, on_patience, launcher);
}

void link_stop(struct launcher *launcher)
{
	tell_core(launcher, SIGTERM);
}

void link_reload(struct launcher *launcher)
{
	tell_core(launcher, SIGHUP);
}

void link_done(struct launcher *launcher)
{
	loop_cancel(launcher->loop, launcher->link.restart);
	loop_cancel(launcher->loop, launcher->link.patience);
	loop_cancel(launcher->loop, launcher->writers[ROLE_AUDIT].patience);
	certificates_done(launcher);
	close_channel(launcher);
}
