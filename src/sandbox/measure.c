#include "sandbox/measure.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "linux/pidfd.h"

void measure_stop(struct measure *measure)
{
	struct error err;
	int status;
	if (!measure->is_running)
		return;
	measure->is_running = false;
	loop_unwatch(measure->loop, measure->fd);
	fd_close(&measure->fd);
	loop_unwatch(measure->loop, measure->pidfd);
	pidfd_signal(measure->pidfd, SIGKILL, &err);
	pidfd_reap(measure->pidfd, true, &status, NULL, &err);
	fd_close(&measure->pidfd);
}

static void on_end(struct loop *loop, int pidfd, uint32_t events, void *ctx)
{
	struct measure *measure = ctx;
	measure_stop(measure);
	measure->found(measure->ctx, measure->has_answer, measure->answer);
}

/* To end takes a child longer than to answer: the loop goes on meanwhile, too. */
static void on_answer(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct measure *measure = ctx;
	struct error err;
	char text[sizeof measure->answer + MEASURE_DETAIL_MAX];
	size_t len = sizeof measure->answer + measure->detail_len;
	measure->has_answer = read(fd, text, len) == (ssize_t)len;
	if (measure->has_answer) {
		memcpy(&measure->answer, text, sizeof measure->answer);
		if (measure->detail_len)
			memcpy(measure->detail, text + sizeof measure->answer, measure->detail_len);
	}
	loop_unwatch(loop, fd);
	fd_close(&measure->fd);
	if (loop_watch(loop, measure->pidfd, EPOLLIN, on_end, measure, &err))
		on_end(loop, measure->pidfd, EPOLLIN, measure);
}

static _Noreturn void answer(const struct measure *measure, int fd, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent) /* it died before that */
		_exit(0);
	if (measure->keep_count) {
		int keep[MEASURE_KEEP_MAX + 1] = { fd };
		for (int i = 0; i < measure->keep_count; i++)
			keep[i + 1] = measure->keep[i];
		fd_close_others(keep, measure->keep_count + 1);
	}
	char text[sizeof measure->answer + MEASURE_DETAIL_MAX];
	uint64_t value = measure->find(measure->ctx);
	memcpy(text, &value, sizeof value);
	if (measure->detail_len)
		memcpy(text + sizeof value, measure->detail, measure->detail_len);
	(void)!write(fd, text, sizeof value + measure->detail_len);
	_exit(0);
}

void measure_start(struct measure *measure)
{
	struct error err;
	int ends[2];
	pid_t pid, parent = getpid();
	if (pipe2(ends, O_CLOEXEC)) {
		measure->found(measure->ctx, false, 0);
		return;
	}
	pid = fork();
	if (pid == 0)
		answer(measure, ends[1], parent);
	fd_close(&ends[1]);
	measure->fd = ends[0];
	measure->pidfd = -1;
	if (pid < 0 || pidfd_open_process(pid, &measure->pidfd, &err) ||
		loop_watch(measure->loop, measure->fd, EPOLLIN, on_answer, measure, &err)) {
		if (pid > 0) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
		fd_close(&measure->fd);
		fd_close(&measure->pidfd);
		measure->found(measure->ctx, false, 0);
		return;
	}
	measure->is_running = true;
}
