/* Listening, and the end. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "format/network/inet_address.h"
#include "net/internal.h"

#define ACCEPTS_A_TURN 32
#define ACCEPT_AGAIN_MS 100 /* when there were no descriptors left */

const struct http_limits http_limits_default = {
	.line_bytes = 8192,
	.header_bytes = 32768,
	.header_count = 64,
	.body_bytes = (size_t)16 << 20,
	.bodies_bytes = (size_t)256 << 20,
	.header_ms = 10000,
	.body_idle_ms = 30000,
	.write_idle_ms = 60000,
	.keep_alive_ms = 300000,
	.first_ms = 10000,
	.connections = 10000,
};

/* sendfile to a socket whose other end is closed raises it, and knows no MSG_NOSIGNAL. A handler,
 * because what is ignored stays ignored in programs that are started from here. */
static void pass_over_sigpipe(int number)
{
}

static void tame_sigpipe(void)
{
	struct sigaction now, wanted = { .sa_handler = pass_over_sigpipe, .sa_flags = SA_RESTART };
	if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		sigaction(SIGPIPE, &wanted, NULL);
}

int http_server_new(struct loop *loop, const struct http_limits *limits,
	const struct http_handler *handler, struct http_server **server, struct error *err)
{
	struct http_server *made = xzalloc(sizeof *made);
	char id[ID_LEN + 1];
	tame_sigpipe();
	made->loop = loop;
	made->limits = limits ? *limits : http_limits_default;
	made->handler = *handler;
	shares_init(&made->buffered, "bytes of request bodies", "", made->limits.bodies_bytes,
		made->limits.bodies_bytes / 4);
	made->in = xzalloc(HTTP_CHUNK);
	made->out = xzalloc(HTTP_CHUNK + 32);
	made->now_ms = clock_monotonic_ms();
	buf_init(&made->head, BUF_MAX_DEFAULT);
	id_make(id);
	memcpy(made->id_prefix, id, sizeof made->id_prefix - 1);
	*server = made;
	return 0;
}

size_t http_server_connections(const struct http_server *server)
{
	return server->count;
}

/* ---- accepting ---- */
static void on_accept(struct loop *loop, int fd, uint32_t events, void *ctx);

static void stop_accepting(struct http_server *server)
{
	for (struct listening *at = server->listeners; at; at = at->next)
		loop_unwatch(server->loop, at->listener.fd);
	loop_cancel(server->loop, server->accept_again);
	server->accept_again = NULL;
}

static void accept_again(struct loop *loop, void *ctx)
{
	struct http_server *server = ctx;
	server->accept_again = NULL;
	for (struct listening *at = server->listeners; at; at = at->next)
		if (loop_watch(loop, at->listener.fd, EPOLLIN, on_accept, at, NULL) < 0 &&
			!server->accept_again)
			server->accept_again =
				loop_after(loop, ACCEPT_AGAIN_MS, accept_again, server);
}

static void find_addresses(int fd, struct http_connection *c)
{
	union inet_address address = { 0 };
	socklen_t len = sizeof address;
	if (!getpeername(fd, &address.any, &len))
		inet_address_print_host(&address, c->address);
	len = sizeof address;
	if (!getsockname(fd, &address.any, &len))
		inet_address_print_host(&address, c->local);
}

static void take_connection(const struct listening *listening, int fd)
{
	struct http_server *server = listening->server;
	static const char full[] =
		"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
		"Connection: close\r\n\r\n"
		"{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,"
		"\"detail\":\"too many connections\",\"code\":\"unavailable\","
		"\"hint\":\"try again later\",\"request_id\":\"\"}\n";
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t len = sizeof peer;
	const struct http_listener *from = &listening->listener;
	size_t most = server->limits.connections;
	/* Clients of other hosts leave room for those of this one. */
	if (from->is_remote)
		most -= most / 16;
	if (server->count - server->lingering >= most) {
		(void)!send(fd, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		close(fd);
		return;
	}
	struct http_connection *c = connection_new(listening, fd);
	if (!c)
		return;
	if (c->stream.is_unix) {
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	} else {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
		find_addresses(fd, c);
	}
	c->peer_uid = peer.uid;
	c->older = server->connections;
	if (c->older)
		c->older->newer = c;
	server->connections = c;
	server->count++;
	if (from->arrived) {
		const struct http_peer who = connection_peer(c);
		c->visit = from->arrived(from->ctx, &who, c);
	}
	connection_set_deadline(c, c->stream.is_unix ? DEADLINE_KEEP_ALIVE : DEADLINE_FIRST);
}

static void on_accept(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	const struct listening *listening = ctx;
	struct http_server *server = listening->server;
	server->now_ms = clock_monotonic_ms();
	/* Those who are connected already have their turn in between. */
	for (int i = 0; i < ACCEPTS_A_TURN; i++) {
		int taken = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (taken >= 0) {
			take_connection(listening, taken);
			continue;
		}
		if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO)
			continue;
		if (errno == EAGAIN)
			return;
		/* No descriptors or memory: the queue waits, and so do we, without spinning. */
		stop_accepting(server);
		server->accept_again = loop_after(loop, ACCEPT_AGAIN_MS, accept_again, server);
		return;
	}
}

int http_server_listen(
	struct http_server *server, const struct http_listener *listener, struct error *err)
{
	struct listening *added = xzalloc(sizeof *added);
	*added = (struct listening){ *listener, server, server->listeners };
	if (fd_set_nonblocking(listener->fd) < 0) {
		free(added);
		return fail_errno(err, "listen on descriptor %d", listener->fd);
	}
	if (loop_watch(server->loop, listener->fd, EPOLLIN, on_accept, added, err) < 0) {
		free(added);
		return -1;
	}
	server->listeners = added;
	return 0;
}

/* ---- the end ---- */
void server_forget(struct http_connection *c)
{
	struct http_server *server = c->server;
	if (c->newer)
		c->newer->older = c->older;
	else
		server->connections = c->older;
	if (c->older)
		c->older->newer = c->newer;
	server->count--;
	server_check_drained(server);
}

static void tell_drained(struct loop *loop, void *ctx)
{
	struct http_server *server = ctx;
	server->accept_again = NULL;
	server->drained(server->drained_ctx);
}

void server_check_drained(struct http_server *server)
{
	if (!server->is_draining || server->is_drained || server->count > server->lingering)
		return;
	server->is_drained = true;
	/* Nothing is accepted any more, so that its timer is free. */
	server->accept_again = loop_after(server->loop, 0, tell_drained, server);
}

void http_server_drain(struct http_server *server, void (*done)(void *ctx), void *ctx)
{
	if (server->is_draining)
		return;
	stop_accepting(server);
	server->is_draining = true;
	server->drained = done;
	server->drained_ctx = ctx;
	for (struct http_connection *c = server->connections; c; c = c->older)
		if (!c->exchange || !c->exchange->has_begun)
			connection_wake(c);
	server_check_drained(server);
}

void http_server_free(struct http_server *server)
{
	if (!server)
		return;
	stop_accepting(server);
	server->is_draining = false;
	while (server->connections)
		connection_close(server->connections);
	while (server->awake) {
		struct http_connection *c = server->awake;
		server->awake = c->next_awake;
		free(c);
	}
	loop_cancel(server->loop, server->turn);
	buf_done(&server->head);
	for (struct listening *at = server->listeners, *next; at; at = next) {
		next = at->next;
		free(at);
	}
	shares_done(&server->buffered);
	free(server->in);
	free(server->out);
	free(server);
}
