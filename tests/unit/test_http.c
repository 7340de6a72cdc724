/* The server as its handlers see it: when they are called, and what still counts then. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "base/fd.h"
#include "linux/fd_message.h"
#include "net/http.h"
#include "net/stream.h"
#include "unit.h"

struct world {
	struct loop *loop;
	struct http_server *server;
	struct http_handler handler;
	char path[64];
	int listener, client;
	struct http_request *request; /* the last that began, until it is done */
	int begun, completed, done, aborted, pieces, ended, writable, drained;
	bool is_inside;		 /* a call of the handler's */
	struct net_stream taken; /* of an upgraded connection */
	size_t body_bytes;
	char text[1 << 16]; /* what the client has read */
	size_t text_len;
};

static void stop(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

/* Runs the loop for some turns: all that is ready is done then. */
static void run(struct world *world)
{
	struct error err;

	for (int i = 0; i < 10; i++) {
		loop_after(world->loop, i < 9 ? 0 : 1, stop, NULL);
		assert_int_equal(loop_run(world->loop, &err), 0);
	}
}

static void send_text(struct world *world, const char *text)
{
	assert_int_equal(send(world->client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	run(world);
}

static const char *received(struct world *world)
{
	ssize_t got;

	run(world);
	while ((got = recv(world->client, world->text + world->text_len,
			sizeof world->text - 1 - world->text_len, MSG_DONTWAIT)) > 0) {
		world->text_len += (size_t)got;
		run(world);
	}
	world->text[world->text_len] = '\0';
	return world->text;
}

static int count_of(const char *text, const char *part)
{
	int count = 0;

	while ((text = strstr(text, part))) {
		count++;
		text += strlen(part);
	}
	return count;
}

/* ---- handlers ---- */
static void answer(struct world *world, struct http_request *r, const char *text)
{
	world->is_inside = true;
	http_respond(r, 200, "text/plain", NULL, str_from(text));
	world->is_inside = false;
}

/* ---- another protocol: what comes goes back ---- */
static void on_echo(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct world *world = ctx;
	struct net_stream *stream = &world->taken;
	struct fd_message message;
	char data[256];
	ssize_t got = stream->kind->receive(stream, data, sizeof data, &message);

	if (got <= 0) {
		loop_unwatch(loop, fd);
		stream->kind->close(stream);
		return;
	}
	struct iovec part = { data, (size_t)got };
	assert_int_equal(stream->kind->send(stream, &part, 1, NULL, 0, false), got);
}

static void take_echo(void *ctx, struct net_stream *stream, struct str early)
{
	struct world *world = ctx;
	struct iovec part = { (char *)(uintptr_t)early.data, early.len };
	struct error err;

	assert_int_equal(world->done, world->begun);
	assert_int_equal(http_server_connections(world->server), 0);
	world->taken = *stream;
	if (early.len)
		assert_int_equal(stream->kind->send(&world->taken, &part, 1, NULL, 0, false),
			(ssize_t)early.len);
	assert_int_equal(
		loop_watch(world->loop, world->taken.fd, EPOLLIN, on_echo, world, &err), 0);
}

static void on_begin(void *ctx, struct http_request *r)
{
	struct world *world = ctx;

	assert_false(world->is_inside);
	world->begun++;
	world->request = r;
	if (str_is(r->path, "/now")) {
		answer(world, r, "now");
		answer(world, r, "twice");
		assert_int_equal(world->done, world->begun - 1);
	} else if (str_is(r->path, "/take")) {
		http_take_body(r, 1000);
	} else if (str_is(r->path, "/stream")) {
		http_stream_body(r);
	} else if (str_is(r->path, "/echo")) {
		http_upgrade(r, "echo", NULL, take_echo, world);
	}
}

static void on_refused(void *ctx, struct http_request *r, const struct error *err)
{
	struct world *world = ctx;

	world->begun++;
	world->request = r;
	http_respond(r, 403, "text/plain", NULL, str_from(err->text));
}

static void on_complete(void *ctx, struct http_request *r)
{
	struct world *world = ctx;

	assert_false(world->is_inside);
	world->completed++;
	world->body_bytes = r->body.len;
	assert_int_equal(r->body.data[r->body.len], '\0');
}

static void on_body(void *ctx, struct http_request *r, struct str data)
{
	struct world *world = ctx;

	assert_false(world->is_inside);
	world->pieces++;
	world->ended += data.len == 0;
	world->body_bytes += data.len;
}

static void on_writable(void *ctx, struct http_request *r)
{
	((struct world *)ctx)->writable++;
}

static void on_done(void *ctx, struct http_request *r, bool aborted)
{
	struct world *world = ctx;

	assert_false(world->is_inside);
	world->done++;
	world->aborted += aborted;
	/* Nobody hears it any more. */
	http_respond(r, 500, NULL, NULL, STR("too late"));
	http_abort(r);
	http_pause_body(r, true);
	world->request = NULL;
}

static int setup(void **state)
{
	struct world *world = test_calloc(1, sizeof *world);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct error err;

	world->handler = (struct http_handler){ on_begin, on_refused, on_complete, on_body,
		on_writable, on_done, world };
	str_format(world->path, sizeof world->path, "/tmp/unit-http.%d", (int)getpid());
	str_copy(address.sun_path, sizeof address.sun_path, world->path);
	unlink(world->path); /* one that crashed may have had our pid */
	world->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(world->listener, (void *)&address, sizeof address), 0);
	assert_int_equal(listen(world->listener, 16), 0);
	assert_int_equal(loop_new(&world->loop, &err), 0);
	assert_int_equal(
		http_server_new(world->loop, NULL, &world->handler, &world->server, &err), 0);
	assert_int_equal(http_server_listen(world->server,
				 &(struct http_listener){ .fd = world->listener }, &err),
		0);
	world->client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(world->client, (void *)&address, sizeof address), 0);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	http_server_free(world->server);
	assert_int_equal(world->done, world->begun);
	loop_free(world->loop);
	fd_close(&world->client);
	fd_close(&world->listener);
	unlink(world->path);
	test_free(world);
	return 0;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define POST(path, length)                                                                         \
	"POST " path " HTTP/1.1\r\nHost: a\r\nContent-Length: " #length "\r\n\r\n"

/* ---- claims ---- */
static void a_request_answered_at_once_is_done_after_the_handler_returned(void **state)
{
	struct world *world = *state;

	send_text(world, GET("/now") GET("/now"));
	assert_int_equal(count_of(received(world), "\r\n\r\nnow"), 2);
	assert_null(strstr(world->text, "twice"));
	assert_int_equal(world->done, 2);
	assert_int_equal(world->aborted, 0);
}

static void an_answer_may_come_later(void **state)
{
	struct world *world = *state;

	send_text(world, GET("/later") GET("/later"));
	assert_int_equal(world->begun, 1);
	answer(world, world->request, "first");
	assert_int_equal(world->done, 0);
	run(world);
	assert_int_equal(world->done, 1);
	assert_int_equal(world->begun, 2);
	answer(world, world->request, "second");
	assert_non_null(strstr(received(world), "second"));
	assert_int_equal(world->done, 2);
}

static void who_goes_with_the_answer_has_aborted_nothing(void **state)
{
	struct world *world = *state;

	send_text(world, GET("/later"));
	answer(world, world->request, "first");
	/* It reads and goes before the server's next turn. */
	assert_true(recv(world->client, world->text, sizeof world->text, MSG_DONTWAIT) > 0);
	fd_close(&world->client);
	run(world);
	assert_int_equal(world->done, 1);
	assert_int_equal(world->aborted, 0);
}

static void who_goes_before_the_answer_has_aborted_it(void **state)
{
	struct world *world = *state;

	send_text(world, GET("/later"));
	fd_close(&world->client);
	run(world);
	assert_int_equal(world->done, 1);
	assert_int_equal(world->aborted, 1);
}

static void how_a_body_is_wanted_may_be_said_later(void **state)
{
	struct world *world = *state;

	send_text(world, POST("/later", 10) "hello");
	send_text(world, "worl");
	assert_int_equal(world->pieces, 0);
	http_take_body(world->request, 10);
	/* In the same turn as the rest of it comes. */
	send_text(world, "d" GET("/now"));
	assert_int_equal(world->completed, 1);
	assert_true(str_is(world->request->body, "helloworld"));
	answer(world, world->request, "later");
	assert_int_equal(count_of(received(world), "HTTP/1.1 200"), 2);
}

static void a_body_that_is_paused_waits(void **state)
{
	struct world *world = *state;

	send_text(world, POST("/stream", 10) "hello");
	assert_int_equal(world->body_bytes, 5);
	http_pause_body(world->request, true);
	send_text(world, "world" GET("/now"));
	assert_int_equal(world->body_bytes, 5);
	http_pause_body(world->request, false);
	run(world);
	assert_int_equal(world->body_bytes, 10);
	assert_int_equal(world->ended, 1);
	answer(world, world->request, "streamed");
	assert_int_equal(count_of(received(world), "HTTP/1.1 200"), 2);
}

static void a_stream_without_a_body_ends_at_once(void **state)
{
	struct world *world = *state;

	send_text(world, GET("/stream"));
	assert_int_equal(world->pieces, 1);
	assert_int_equal(world->ended, 1);
	answer(world, world->request, "x");
}

static void what_is_too_big_never_completes(void **state)
{
	struct world *world = *state;

	send_text(world, POST("/take", 1001));
	assert_non_null(strstr(received(world), "HTTP/1.1 413"));
	assert_int_equal(world->completed, 0);
	assert_int_equal(world->aborted, 1);
}

static void a_writer_is_told_to_wait_and_when_to_go_on(void **state)
{
	struct world *world = *state;
	static char block[20000];
	size_t total = 0, got = 0;

	send_text(world, GET("/later"));
	http_begin(world->request, 200, "text/plain", NULL);
	while (http_write(world->request, (struct str){ block, sizeof block }))
		total += sizeof block;
	total += sizeof block;
	assert_in_range(total, 65536, 8 << 20);
	run(world);
	assert_int_equal(world->writable, 0);
	for (ssize_t n; world->writable == 0; got += (size_t)n) {
		n = recv(world->client, world->text, sizeof world->text, MSG_DONTWAIT);
		assert_true(n > 0);
		run(world);
	}
	assert_true(got < total + 1000);
	assert_true(http_write(world->request, STR("more")));
	http_end(world->request);
	assert_false(http_write(world->request, STR("after the end")));
	run(world);
}

static void descriptors_that_must_wait_are_copies(void **state)
{
	struct world *world = *state;
	struct fd_message message;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	/* No room at all: nothing of the answer can go now. */
	send_text(world, GET("/later"));
	int server_end = -1;
	for (int i = 3; i < 64 && server_end < 0; i++) {
		struct sockaddr_un name;
		socklen_t len = sizeof name;
		int listening = 0;
		if (i != world->listener && getsockname(i, (void *)&name, &len) == 0 &&
			len > sizeof(sa_family_t) && name.sun_family == AF_UNIX &&
			!getsockopt(i, SOL_SOCKET, SO_ACCEPTCONN, &listening,
				&(socklen_t){ sizeof listening }) &&
			!listening)
			server_end = i;
	}
	assert_true(server_end >= 0);
	static char junk[4096];
	size_t filled = 0;
	for (ssize_t n; (n = send(server_end, junk, sizeof junk, MSG_DONTWAIT)) > 0;)
		filled += (size_t)n;
	http_begin_fds(world->request, 200, NULL, NULL, ends, 1);
	http_end(world->request);
	close(ends[0]);
	run(world);
	while (filled > 0)
		filled -= (size_t)recv(
			world->client, junk, filled < sizeof junk ? filled : sizeof junk, 0);
	run(world);
	assert_int_equal(fd_message_receive(world->client, world->text, 1, 0, &message), 1);
	assert_int_equal(message.fd_count, 1);
	assert_int_equal(write(ends[1], "p", 1), 1);
	assert_int_equal(read(message.fds[0], junk, 10), 1);
	fd_message_close(&message, 0);
	close(ends[1]);
}

static void an_upgraded_connection_is_another_protocols(void **state)
{
	struct world *world = *state;

	send_text(world,
		"GET /echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
		"early ");
	assert_int_equal(strncmp(received(world), "HTTP/1.1 101 Switching Protocols\r\n", 34), 0);
	assert_non_null(strstr(world->text, "\r\nConnection: Upgrade\r\nUpgrade: echo\r\n"));
	assert_null(strstr(world->text, "Content-Length"));
	assert_string_equal(strstr(world->text, "\r\n\r\n"), "\r\n\r\nearly ");
	send_text(world, "GET /now HTTP/1.1\r\n");
	assert_non_null(strstr(received(world), "early GET /now HTTP/1.1\r\n"));
	assert_int_equal(world->begun, 1);
	assert_int_equal(world->aborted, 0);
	close(world->client);
	run(world);
	assert_int_equal(world->taken.fd, -1);
	world->client = -1;
}

static void a_request_with_a_body_is_not_upgraded(void **state)
{
	struct world *world = *state;

	send_text(world, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n");
	assert_int_equal(strncmp(received(world), "HTTP/1.1 400 ", 13), 0);
	assert_int_equal(world->done, 1);
}

/* ---- listeners ---- */
/* Turns every byte on its way: whoever reads what it should has it through the stream. */
static ssize_t receive_turned(
	struct net_stream *s, void *data, size_t size, struct fd_message *message)
{
	ssize_t got = fd_message_receive(s->fd, data, size, MSG_DONTWAIT, message);

	for (ssize_t i = 0; i < got; i++)
		((char *)data)[i] ^= 1;
	return got;
}

static ssize_t send_turned(struct net_stream *s, const struct iovec *parts, size_t part_count,
	const int *fds, int fd_count, bool more)
{
	char copy[4096];
	size_t len = parts->iov_len < sizeof copy ? parts->iov_len : sizeof copy;

	for (size_t i = 0; i < len; i++)
		copy[i] = (char)(((const char *)parts->iov_base)[i] ^ 1);
	return send(s->fd, copy, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t send_file_turned(struct net_stream *s, int file, off_t *at, size_t len)
{
	char data[4096];
	ssize_t got = pread(file, data, len < sizeof data ? len : sizeof data, *at);
	struct iovec part = { data, got > 0 ? (size_t)got : 0 };

	if (got <= 0)
		return got;
	ssize_t sent = send_turned(s, &part, 1, NULL, 0, false);
	*at += sent > 0 ? sent : 0;
	return sent;
}

static void end_turned(struct net_stream *s)
{
	shutdown(s->fd, SHUT_WR);
}

static void close_turned(struct net_stream *s)
{
	(*(int *)s->state)++;
	fd_close(&s->fd);
}

static int closed_streams;

static void open_turned(void *ctx, int fd, struct net_stream *stream)
{
	static const struct net_stream_kind turned = { receive_turned, send_turned,
		send_file_turned, end_turned, close_turned };

	*stream = (struct net_stream){ &turned, fd, true, &closed_streams };
}

static int know_by_header(
	void *ctx, struct http_request *r, const struct principal **principal, struct error *err)
{
	if (!str_is(http_header(r, "authorization"), "Bearer right"))
		return fail(err, ERR_DENIED, "nobody we know");
	*principal = ctx;
	return 0;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	str_copy(address.sun_path, sizeof address.sun_path, path);
	assert_int_equal(connect(fd, (void *)&address, sizeof address), 0);
	return fd;
}

/* A second listener of the same server; *socket is the client of it. */
static int listen_too(struct world *world, const struct http_listener *listener)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct http_listener second = *listener;
	struct error err;

	str_format(address.sun_path, sizeof address.sun_path, "%s.too", world->path);
	unlink(address.sun_path);
	second.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(second.fd, (void *)&address, sizeof address), 0);
	assert_int_equal(listen(second.fd, 16), 0);
	assert_int_equal(http_server_listen(world->server, &second, &err), 0);
	close(world->client);
	world->client = connect_to(address.sun_path);
	unlink(address.sun_path);
	return second.fd;
}

static void each_listener_has_its_authenticator(void **state)
{
	struct world *world = *state;
	auto_close int listener = listen_too(
		world, &(struct http_listener){ .authenticate = know_by_header, .ctx = world });

	send_text(world, "GET /later HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer right\r\n\r\n");
	assert_int_equal(world->begun, 1);
	assert_ptr_equal(world->request->principal, world);
	answer(world, world->request, "in");
	assert_non_null(strstr(received(world), "in"));
	send_text(world, GET("/now"));
	assert_non_null(strstr(received(world), "HTTP/1.1 403 "));
	assert_non_null(strstr(world->text, "Connection: close\r\n"));
	assert_non_null(strstr(world->text, "nobody we know"));
	/* The first listener asks nobody. */
	close(world->client);
	world->client = connect_to(world->path);
	send_text(world, GET("/now"));
	assert_non_null(strstr(received(world), "HTTP/1.1 200 "));
	http_server_free(world->server);
	world->server = NULL;
}

/* ---- TCP ---- */

struct visits {
	int arrived, left;
	struct http_connection *last; /* dropped when another arrives */
	char address[64];
};

static void *arrive(void *ctx, const struct http_peer *peer, struct http_connection *connection)
{
	struct visits *visits = ctx;

	str_copy(visits->address, sizeof visits->address, peer->address);
	if (visits->last)
		http_drop(visits->last);
	visits->last = connection;
	visits->arrived++;
	return visits;
}

static void leave(void *ctx, void *visit)
{
	struct visits *visits = ctx;

	assert_ptr_equal(visit, ctx);
	visits->left++;
}

/* A server of its own that listens at 127.0.0.1, with that time for a first request. */
static int listen_tcp(
	struct world *world, struct visits *visits, uint64_t first_ms, struct sockaddr_in *address)
{
	struct http_limits limits = http_limits_default;
	socklen_t len = sizeof *address;
	struct error err;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	limits.first_ms = first_ms;
	http_server_free(world->server);
	assert_int_equal(
		http_server_new(world->loop, &limits, &world->handler, &world->server, &err), 0);
	*address = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(fd, (void *)address, sizeof *address), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (void *)address, &len), 0);
	const struct http_listener listener = {
		.fd = fd, .ctx = visits, .arrived = arrive, .left = leave
	};
	assert_int_equal(http_server_listen(world->server, &listener, &err), 0);
	return fd;
}

static void connect_tcp(struct world *world, const struct sockaddr_in *address)
{
	close(world->client);
	world->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(world->client, (const void *)address, sizeof *address), 0);
}

static void who_connects_by_tcp_arrives_and_leaves(void **state)
{
	struct world *world = *state;
	struct visits visits = { 0 };
	struct sockaddr_in address;
	auto_close int listener = listen_tcp(world, &visits, 60000, &address);

	connect_tcp(world, &address);
	send_text(world, GET("/later"));
	while (!world->request)
		run(world);
	assert_int_equal(world->request->peer.kind, HTTP_PEER_TCP);
	assert_int_equal(world->request->peer.uid, HTTP_NO_UID);
	assert_string_equal(world->request->peer.address, "127.0.0.1");
	assert_string_equal(world->request->peer.local, "127.0.0.1");
	assert_string_equal(visits.address, "127.0.0.1");
	assert_ptr_equal(world->request->visit, &visits);
	answer(world, world->request, "yes");
	while (!strstr(received(world), "yes"))
		;
	assert_int_equal(visits.left, 0);
	fd_close(&world->client);
	while (!visits.left)
		run(world);
	assert_int_equal(visits.arrived, 1);
	http_server_free(world->server);
	world->server = NULL;
}

static void a_connection_can_be_dropped_for_the_next_one(void **state)
{
	static const char *const begun[] = { "", "GET /la", GET("/later") };
	struct world *world = *state;
	struct visits visits = { 0 };
	struct sockaddr_in address;
	auto_close int listener = listen_tcp(world, &visits, 60000, &address);
	char byte;

	for (size_t i = 0; i < sizeof begun / sizeof *begun; i++) {
		connect_tcp(world, &address);
		send_text(world, begun[i]);
		while (visits.arrived < (int)(2 * i + 1) || (i == 2 && !world->request))
			run(world);
		auto_close int former = take_fd(&world->client);
		connect_tcp(world, &address);
		while (visits.left < (int)(2 * i + 1))
			run(world);
		assert_true(recv(former, &byte, 1, 0) <= 0);
		assert_int_equal(http_server_connections(world->server), 1);
	}
	assert_int_equal(world->done, 1);
	http_server_free(world->server);
	world->server = NULL;
}

static void a_client_that_never_asks_is_dropped(void **state)
{
	struct world *world = *state;
	struct visits visits = { 0 };
	struct sockaddr_in address;
	auto_close int listener = listen_tcp(world, &visits, 1, &address);
	char byte;

	connect_tcp(world, &address);
	while (!visits.left)
		run(world);
	assert_int_equal(recv(world->client, &byte, 1, 0), 0);
	http_server_free(world->server);
	world->server = NULL;
}

static void every_byte_goes_through_the_stream_of_the_listener(void **state)
{
	enum { FILE_BYTES = 100000 };
	static char file_bytes[FILE_BYTES];
	struct world *world = *state;
	auto_close int listener = listen_too(world, &(struct http_listener){ .open = open_turned });
	auto_close int file = memfd_create("file", MFD_CLOEXEC);
	char text[] = "GET /later HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

	memset(file_bytes, 'f', sizeof file_bytes);
	assert_int_equal(fd_write_full(file, file_bytes, sizeof file_bytes), FILE_BYTES);
	for (char *at = text; *at; at++)
		*at ^= 1;
	closed_streams = 0;
	send_text(world, text);
	assert_int_equal(world->begun, 1);
	http_respond_file(world->request, 200, "text/plain", NULL, take_fd(&file), 0, FILE_BYTES);
	/* More than the client keeps: its end is what counts. */
	size_t total = 0, wrong = 0;
	bool is_body = false;
	char piece[4096], last[4] = "";
	for (int i = 0; i < 1000 && closed_streams == 0; i++) {
		ssize_t got;
		run(world);
		while ((got = recv(world->client, piece, sizeof piece, MSG_DONTWAIT)) > 0)
			for (ssize_t k = 0; k < got; k++) {
				char c = (char)(piece[k] ^ 1);
				if (is_body) {
					total++;
					wrong += c != 'f';
				}
				memmove(last, last + 1, 3);
				last[3] = c;
				is_body = is_body || !memcmp(last, "\r\n\r\n", 4);
			}
	}
	assert_int_equal(total, FILE_BYTES);
	assert_int_equal(wrong, 0);
	http_server_free(world->server);
	world->server = NULL;
	assert_int_equal(closed_streams, 1);
}

static void a_client_that_goes_is_told_once(void **state)
{
	struct world *world = *state;

	send_text(world, GET("/later"));
	fd_close(&world->client);
	run(world);
	assert_int_equal(world->aborted, 1);
	assert_int_equal(http_server_connections(world->server), 0);
}

static void freeing_the_server_ends_what_is_under_way(void **state)
{
	struct world *world = *state;

	send_text(world, POST("/take", 100) "half");
	http_server_free(take_ptr(world->server));
	assert_int_equal(world->done, 1);
	assert_int_equal(world->aborted, 1);
}

static void on_drained(void *ctx)
{
	((struct world *)ctx)->drained++;
}

static void draining_ends_when_the_last_answer_is_out(void **state)
{
	struct world *world = *state;

	send_text(world, GET("/later"));
	http_server_drain(world->server, on_drained, world);
	run(world);
	assert_int_equal(world->drained, 0);
	answer(world, world->request, "last");
	assert_int_equal(world->drained, 0);
	assert_non_null(strstr(received(world), "last"));
	assert_non_null(strstr(world->text, "Connection: close"));
	assert_int_equal(world->drained, 1);
}

static void draining_nothing_is_done_at_once_but_from_the_loop(void **state)
{
	struct world *world = *state;

	fd_close(&world->client);
	run(world);
	http_server_drain(world->server, on_drained, world);
	assert_int_equal(world->drained, 0);
	run(world);
	assert_int_equal(world->drained, 1);
}

static void interim_answers_come_before_the_final_one(void **state)
{
	struct world *world = *state;

	send_text(world, "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
			 "Expect: 100-continue\r\n\r\n");
	assert_string_equal(received(world), "");
	http_take_body(world->request, 10);
	assert_string_equal(received(world), "HTTP/1.1 100 Continue\r\n\r\n");
	send_text(world, "hi");
	assert_int_equal(world->completed, 1);
	answer(world, world->request, "x");
	assert_non_null(strstr(received(world), "HTTP/1.1 200 OK"));
	assert_null(strstr(world->text, "Connection: close"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_request_answered_at_once_is_done_after_the_handler_returned),
		TEST(an_answer_may_come_later),
		TEST(who_goes_with_the_answer_has_aborted_nothing),
		TEST(who_goes_before_the_answer_has_aborted_it),
		TEST(how_a_body_is_wanted_may_be_said_later),
		TEST(a_body_that_is_paused_waits),
		TEST(a_stream_without_a_body_ends_at_once),
		TEST(what_is_too_big_never_completes),
		TEST(a_writer_is_told_to_wait_and_when_to_go_on),
		TEST(descriptors_that_must_wait_are_copies),
		TEST(an_upgraded_connection_is_another_protocols),
		TEST(a_request_with_a_body_is_not_upgraded),
		TEST(each_listener_has_its_authenticator),
		TEST(every_byte_goes_through_the_stream_of_the_listener),
		TEST(who_connects_by_tcp_arrives_and_leaves),
		TEST(a_connection_can_be_dropped_for_the_next_one),
		TEST(a_client_that_never_asks_is_dropped),
		TEST(a_client_that_goes_is_told_once),
		TEST(freeing_the_server_ends_what_is_under_way),
		TEST(draining_ends_when_the_last_answer_is_out),
		TEST(draining_nothing_is_done_at_once_but_from_the_loop),
		TEST(interim_answers_come_before_the_final_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
