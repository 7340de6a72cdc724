/* writer.c -- the process that writes the database: a child that has the home, a socket, and the
 * lock of all children. A disk that is slow holds it up, and nobody else. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/files_internal.h"
#include "core/internal.h"

enum { KEEPS_SOCKET, KEEPS_HOME, KEEP_COUNT };

static int write_for(void *ctx, const int *fds, uint64_t *value, struct error *err)
{
	struct core *core = ctx;
	/* Its 0 and 1 are closed, and SQLite takes none of these for a file. */
	for (int fd = 0; fd < STDERR_FILENO; fd++)
		(void)fcntl(fds[KEEPS_HOME], F_DUPFD_CLOEXEC, fd);
	return store_write_for(fds[KEEPS_SOCKET], fds[KEEPS_HOME], core->home.path, STORE_URL, err);
}

static void on_ended(void *ctx, uint64_t value, const struct error *err)
{
	struct core *core = ctx;
	core->own->writer.child = NULL;
	if (err)
		log_record(&core->log, LOG_LEVEL_WARN,
			"the process that writes the database has ended", "error", err->text, NULL);
}

static void on_news(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	store_go_on(((struct core *)ctx)->store);
}

static void end(void *ctx)
{
	struct core *core = ctx;
	struct core_writer *writer = &core->own->writer;
	if (writer->child)
		files_child_end(writer->child);
	loop_unwatch(core->loop, writer->socket);
	fd_close(&writer->socket);
}

static int start(void *ctx, int *socket, struct error *err)
{
	struct core *core = ctx;
	struct core_writer *writer = &core->own->writer;
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return fail_errno(err, "make a socket");
	auto_close int theirs = ends[1];
	writer->socket = ends[0];
	const struct files_job job = { .what = "write the database",
		.name = "carrel-writer",
		.work = write_for,
		.work_ctx = core,
		.keep = { [KEEPS_SOCKET] = theirs, [KEEPS_HOME] = core->home.dir },
		.keep_count = KEEP_COUNT,
		.writable = 1u << KEEPS_HOME,
		.stays = true,
		.done = on_ended,
		.ctx = core };
	if (files_child_start(core->loop, &job, &writer->child, err) ||
		loop_watch(core->loop, writer->socket, EPOLLIN | EPOLLOUT | EPOLLET, on_news, core,
			err)) {
		end(core);
		return -1;
	}
	*socket = writer->socket;
	return 0;
}

static void on_committed(void *ctx, uint64_t ns)
{
	struct core *core = ctx;
	histogram_add(&core->metrics.store_commit_seconds, (double)ns / 1e9);
}

static void on_flush(struct loop *loop, void *ctx)
{
	struct core *core = ctx;
	core->own->flush = NULL;
	store_begin(core->store);
}

/* All writes of one turn of the loop are one commit. */
static void schedule(void *ctx)
{
	struct core *core = ctx;
	if (!core->own->flush)
		core->own->flush = loop_after(core->loop, 0, on_flush, core);
}

struct store_host core_store_host(struct core *core)
{
	return (struct store_host){ schedule, start, end, on_committed, core };
}
