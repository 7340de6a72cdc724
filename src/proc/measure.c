#include "proc/measure.h"

#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/fd.h"

void measure_stop(struct measure *measure)
{
	if (!measure->is_running)
		return;
	measure->is_running = false;
	loop_unwatch(measure->loop, measure->child.pipe);
	loop_unwatch(measure->loop, measure->child.pidfd);
	child_kill(&measure->child);
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
	fd_close(&measure->child.pipe);
	if (loop_watch(loop, measure->child.pidfd, EPOLLIN, on_end, measure, &err))
		on_end(loop, measure->child.pidfd, EPOLLIN, measure);
}

static _Noreturn void answer(const struct measure *measure, int fd)
{
	if (measure->keep_count) {
		int keep[MEASURE_KEEP_MAX + 1] = { fd };
		for (int i = 0; i < measure->keep_count; i++)
			keep[i + 1] = measure->keep[i];
		if (fd_close_others(keep, measure->keep_count + 1))
			_exit(125);
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
	struct child *child = &measure->child;
	struct error err;
	if (child_fork(child, CHILD_PIPE | CHILD_PIDFD, SIGKILL, &err)) {
		measure->found(measure->ctx, false, 0);
		return;
	}
	if (child->pid == 0)
		answer(measure, child->pipe);
	if (loop_watch(measure->loop, child->pipe, EPOLLIN, on_answer, measure, &err)) {
		child_kill(child);
		measure->found(measure->ctx, false, 0);
		return;
	}
	measure->is_running = true;
}
