#include "core/launcher.h"

#include <sys/epoll.h>
#include <unistd.h>
#include "base/fd.h"

struct launcher_request {
	uint64_t tag;
	launcher_fn *fn;
	void *ctx;
	bool is_many; /* LIST: until DONE */
	struct launcher_request *next;
};

#define NO_TAG 0 /* of unsolicited messages */

static void on_channel(struct loop *loop, int fd, uint32_t events, void *ctx);

int launcher_open(struct launcher *launcher, struct loop *loop, int socket, struct error *err)
{
	*launcher = (struct launcher){ .loop = loop, .socket = socket, .next_tag = 1 };
	return loop_watch(loop, socket, EPOLLIN, on_channel, launcher, err);
}

void launcher_done(struct launcher *launcher)
{
	while (launcher->pending) {
		struct launcher_request *request = launcher->pending;
		launcher->pending = request->next;
		free(request);
	}
	channel_queue_done(&launcher->queue);
	if (launcher->loop && launcher->socket >= 0)
		loop_unwatch(launcher->loop, launcher->socket);
}

/* Where it is in the list, or (*at NULL) would be. Answers come nearly in the order of the
 * questions: the list is short to search. */
static struct launcher_request **find(struct launcher *launcher, uint64_t tag)
{
	struct launcher_request **at = &launcher->pending;
	while (*at && (*at)->tag != tag)
		at = &(*at)->next;
	return at;
}

void launcher_forget(struct launcher *launcher, uint64_t tag)
{
	struct launcher_request **at = find(launcher, tag), *request = *at;
	if (request)
		*at = request->next;
	free(request);
}

static void expect(
	struct launcher *launcher, uint64_t tag, bool is_many, launcher_fn *fn, void *ctx)
{
	struct launcher_request *request = xzalloc(sizeof *request);
	*request = (struct launcher_request){ tag, fn, ctx, is_many, NULL };
	*find(launcher, NO_TAG) = request;
}

uint64_t launcher_ask(struct launcher *launcher, struct launch_message *head,
	const char *const *strings, size_t count, const int *fds, int fd_count, launcher_fn *fn,
	void *ctx)
{
	struct error err;
	auto_buf struct buf packet = buf_empty(CHANNEL_SIZE_MAX);
	head->tag = launcher->next_tag++;
	/* Whatever goes into a message has been checked before: a packet that can't be made is a
	 * bug. */
	if (launch_encode(head, strings, count, &packet, &err))
		abort();
	if (fn)
		expect(launcher, head->tag, head->type == LAUNCH_LIST, fn, ctx);
	/* Errors are ignored: the end of the channel is handled in on_channel, which fails all
	 * calls. */
	channel_send_or_queue(
		&launcher->queue, launcher->socket, packet.data, packet.len, fds, fd_count, &err);
	if (launcher->queue.first)
		loop_change(launcher->loop, launcher->socket, EPOLLIN | EPOLLOUT, &err);
	return head->tag;
}

static void hand_out(struct launcher *launcher, const struct launch_packet *packet, const int *came)
{
	int fds[LAUNCH_FD_MAX], next = 0;
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		fds[i] = packet->head.present >> i & 1 ? came[next++] : -1;
	struct launcher_request *request = *find(launcher, packet->head.tag);
	if (!request) {
		for (int i = 0; i < LAUNCH_FD_MAX; i++)
			fd_close(&fds[i]);
		launcher->unasked(launcher->ctx, packet);
		return;
	}
	launcher_fn *fn = request->fn;
	void *ctx = request->ctx;
	if (!request->is_many || packet->head.type == LAUNCH_DONE ||
		packet->head.type == LAUNCH_FAILED)
		launcher_forget(launcher, request->tag);
	fn(ctx, packet, fds);
}

/* Without its launcher core can start nothing, and what runs is about to be killed. */
static void lose(struct launcher *launcher)
{
	loop_unwatch(launcher->loop, launcher->socket);
	while (launcher->pending) {
		struct launcher_request *request = launcher->pending;
		launcher->pending = request->next;
		request->fn(request->ctx, NULL, NULL);
		free(request);
	}
	launcher->unasked(launcher->ctx, NULL);
}

static void on_channel(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct launcher *launcher = ctx;
	static char data[CHANNEL_SIZE_MAX];
	struct launch_packet packet;
	struct error err;
	int fds[LAUNCH_FD_MAX], fd_count, got;
	size_t len;
	if (events & EPOLLOUT) {
		channel_flush(&launcher->queue, fd, &err);
		if (!launcher->queue.first)
			loop_change(loop, fd, EPOLLIN, &err);
	}
	while ((got = channel_receive(fd, data, sizeof data, &len, fds, LAUNCH_FD_MAX, &fd_count,
			&err)) == CHANNEL_MESSAGE) {
		if (launch_decode(data, len, false, fd_count, &packet, &err)) {
			for (int i = 0; i < fd_count; i++)
				close(fds[i]);
			lose(launcher);
			return;
		}
		bool is_secret = packet.head.type == LAUNCH_CERTIFICATES;
		hand_out(launcher, &packet, fds);
		if (is_secret)
			explicit_bzero(data, len);
	}
	if (got != CHANNEL_NOTHING)
		lose(launcher);
}

int launcher_failure(const struct launch_packet *packet, struct error *err)
{
	if (!packet)
		return fail(err, ERR_UNAVAILABLE, "the launcher has ended");
	if (packet->head.type != LAUNCH_FAILED)
		return fail(err, ERR_FAILED, "the launcher sent an unexpected reply");
	fail(err, packet->head.error_code, "%s", packet->strings[0]);
	return packet->strings[1][0] ? error_hint(err, "%s", packet->strings[1]) : -1;
}
