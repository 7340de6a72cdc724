/* writer.c -- the process that writes the database, as core knows it: a socket that the launcher
 * sends. A slow disk blocks only that process. */
#include <sys/epoll.h>
#include "base/fd.h"
#include "core/internal.h"

static void on_news(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	store_go_on(((struct core *)ctx)->store);
}

static void end(void *ctx)
{
	struct core *core = ctx;
	loop_unwatch(core->loop, core->writer);
	fd_close(&core->writer);
}

int core_use_writer(struct core *core, int socket, struct error *err)
{
	core->writer = socket;
	if (loop_watch(core->loop, socket, EPOLLIN | EPOLLOUT | EPOLLET, on_news, core, err)) {
		fd_close(&core->writer);
		return -1;
	}
	store_use_writer(core->store, socket, NULL);
	return 0;
}

static void on_started(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct core *core = ctx;
	struct error err;
	bool is_started = packet && packet->head.type == LAUNCH_WRITER_STARTED && fds[0] >= 0;
	if (!is_started)
		launcher_failure(packet, &err);
	if (!is_started || core_use_writer(core, fds[0], &err))
		store_use_writer(core->store, -1, &err);
}

static void start(void *ctx)
{
	struct core *core = ctx;
	struct launch_message head = { .type = LAUNCH_WRITER };
	launcher_ask(&core->launcher, &head, NULL, 0, NULL, 0, on_started, core);
}

static void on_committed(void *ctx, uint64_t ns)
{
	struct core *core = ctx;
	histogram_add(&core->metrics.store_commit_seconds, (double)ns / 1e9);
}

static void on_flush(struct loop *loop, void *ctx)
{
	struct core *core = ctx;
	core->flush = NULL;
	store_begin(core->store);
}

/* All writes of one turn of the loop are one commit. */
static void schedule(void *ctx)
{
	struct core *core = ctx;
	if (!core->flush)
		core->flush = loop_after(core->loop, 0, on_flush, core);
}

struct store_host core_store_host(struct core *core)
{
	return (struct store_host){ schedule, start, end, on_committed, core };
}
