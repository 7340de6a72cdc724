/* Requests: heads, bodies from memory and from descriptors. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fd.h"
#include "client/parts.h"
#include "linux/fd_message.h"

#define PIECE 65536
#define CONTINUE_MS 2000 /* then the body is sent unasked */

/* Descriptors under way are counted for a user, and a sandbox of a plain user's is one of his: it
 * may have more of them than our limit allows. false: there is no more to be had. */
static bool raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* Sends all of the parts, the descriptors with the first byte. 1: it is sent, 0: the daemon wants
 * no more (it may have said why), -1. So do those that send bodies. */
static int transmit(struct client *client, struct iovec *parts, size_t count, const int *fds,
	int fd_count, struct error *err)
{
	while (count > 0) {
		ssize_t sent = fd_message_send(client->socket, parts, count, fds, fd_count, 0);
		if (sent < 0 && errno == ETOOMANYREFS && raise_limit())
			continue;
		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
			return 0;
		if (sent < 0)
			return fail_errno(err, "write to the daemon at '%s'", client->host);
		fd_count = 0;
		for (; count > 0 && (size_t)sent >= parts->iov_len; parts++, count--)
			sent -= (ssize_t)parts->iov_len;
		if (count > 0) {
			parts->iov_base = (char *)parts->iov_base + sent;
			parts->iov_len -= (size_t)sent;
		}
	}
	return 1;
}

/* Whether the daemon is asked first, so that a refusal costs no body. */
static bool is_asking(const struct client_request *request)
{
	return request->body_fd >= 0 && (!request->body_len_known || request->body_len > 0);
}

static void make_head(struct buf *head, const struct client_request *request)
{
	bool is_chunked = request->body_fd >= 0 && !request->body_len_known;
	bool has_body = request->body_fd >= 0 || request->body.data;
	uint64_t len = request->body_fd >= 0 ? request->body_len : request->body.len;

	buf_printf(head, "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n", request->method,
		request->path, request->accept ? request->accept : "application/json");
	if (has_body)
		buf_printf(head, "Content-Type: %s\r\n",
			request->content_type ? request->content_type : "application/json");
	if (request->headers)
		buf_text(head, request->headers);
	if (is_chunked)
		buf_text(head, "Transfer-Encoding: chunked\r\n");
	else if (has_body)
		buf_printf(head, "Content-Length: %llu\r\n", (unsigned long long)len);
	if (is_asking(request))
		buf_text(head, "Expect: 100-continue\r\n");
	buf_text(head, "\r\n");
}

static bool is_readable(const struct client *client, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = client->socket, .events = POLLIN };
	int ready;

	do
		ready = poll(&poll_fd, 1, timeout_ms);
	while (ready < 0 && errno == EINTR);
	return ready > 0;
}

/* Whether the daemon has answered before all is sent; that is left for client_receive. Waits
 * timeout_ms at most for it, or for being asked to go on. */
static bool has_answered(struct client *client, int timeout_ms)
{
	struct http_response head;
	size_t used;

	while (client_has_input(client) || is_readable(client, timeout_ms)) {
		if (!client_has_input(client) && client_fill(client, NULL) <= 0)
			return true;
		int status = http_response_parse(client_unread(client), false, &used, &head, NULL);
		if (status == 0 && client_fill(client, NULL) > 0)
			continue;
		if (status <= 0 || head.status >= 200)
			return true;
		client->in_at += used;
		timeout_ms = 0;
	}
	return false;
}

static int send_chunks(
	struct client *client, const struct client_request *request, struct error *err)
{
	auto_free char *room = malloc(HTTP1_CHUNK_FRAME + PIECE + 2);
	uint64_t total = 0;
	ssize_t got;

	if (!room)
		abort();
	char *data = room + HTTP1_CHUNK_FRAME;
	do {
		do
			got = read(request->body_fd, data, PIECE);
		while (got < 0 && errno == EINTR);
		if (got < 0)
			return fail_errno(err, "read the body of the request");
		char *frame = http1_chunk_frame(data, (size_t)got);
		struct iovec part = { frame, (size_t)(data + got + 2 - frame) };
		int status = transmit(client, &part, 1, NULL, 0, err);
		if (status <= 0)
			return status;
		total += (uint64_t)got;
		if (request->progress)
			request->progress(request->ctx, total);
		if (got > 0 && has_answered(client, 0))
			return 0;
	} while (got > 0);
	return 1;
}

static int send_known(
	struct client *client, const struct client_request *request, struct error *err)
{
	auto_free char *room = malloc(PIECE);
	uint64_t left = request->body_len;

	if (!room)
		abort();
	while (left > 0) {
		ssize_t got = read(request->body_fd, room, left < PIECE ? (size_t)left : PIECE);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_errno(err, "read the body of the request");
		if (got == 0)
			return fail(err, ERR_FAILED,
				"the body of the request became shorter while it was read");
		struct iovec part = { room, (size_t)got };
		int status = transmit(client, &part, 1, NULL, 0, err);
		if (status <= 0)
			return status;
		left -= (uint64_t)got;
		if (request->progress)
			request->progress(request->ctx, request->body_len - left);
		if (left > 0 && has_answered(client, 0))
			return 0;
	}
	return 1;
}

int client_send(struct client *client, const struct client_request *request, struct error *err)
{
	auto_buf struct buf head;
	int status;

	buf_init(&head, BUF_MAX_DEFAULT);
	if (request->fd_count > CLIENT_FDS_MAX)
		return fail(err, ERR_INVALID, "a request can't carry %d descriptors",
			request->fd_count);
	client->is_lost = false;
	if (client_renew(client, err) < 0) {
		client->is_lost = err && err->code == ERR_UNAVAILABLE;
		return -1;
	}
	make_head(&head, request);
	/* Until an answer is read to its end. */
	client->is_used = true;
	client->is_head = !strcmp(request->method, "HEAD");
	struct iovec parts[] = { { head.data, head.len },
		{ (void *)request->body.data, request->body.len } };
	bool is_inline = request->body_fd < 0 && request->body.len > 0;
	status = transmit(client, parts, is_inline ? 2 : 1, request->fds, request->fd_count, err);
	if (status > 0 && is_asking(request))
		status = has_answered(client, CONTINUE_MS) ? 0
			 : request->body_len_known	   ? send_known(client, request, err)
							   : send_chunks(client, request, err);
	client->is_cut = status != 1;
	return status < 0 ? -1 : 0;
}
