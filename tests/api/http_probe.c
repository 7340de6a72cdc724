/* http_probe -- the HTTP server with handlers that show what it does: http_probe SOCKET|PORT
 * [NAME=VALUE...] (fields of struct http_limits; fds=N sets RLIMIT_NOFILE). Says "ready" on stdout.
 * Ends with 0 when it is drained (GET /drain, SIGTERM). */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "net/http.h"

static struct loop *loop;
static struct http_server *server;
static struct http_request *waiting; /* of /wait */
static uint64_t begun, done, aborted, completed;

/* What one request needs. */
struct job {
	uint64_t count, left, size;
	int kind;
};

static bool query(struct http_request *r, const char *name, struct str *value)
{
	struct str found, decoded;

	for (size_t i = 0; http_query_at(r, i, &found, &decoded); i++) {
		if (!found.data || !decoded.data || !str_is(found, name))
			continue;
		*value = decoded;
		return true;
	}
	return false;
}

static uint64_t number(struct http_request *r, const char *name, uint64_t otherwise)
{
	struct str text;
	uint64_t value;

	return query(r, name, &text) && str_to_u64(text, &value) ? value : otherwise;
}

static void say(struct http_request *r, int status, const char *text)
{
	http_respond(r, status, "text/plain", NULL, str_from(text));
}

/* ---- one function a path; called when the body is whole, or at once ---- */
static void get_healthz(struct http_request *r)
{
	http_respond(r, 200, "text/plain", NULL, STR("ok\n"));
}

static void echo(struct http_request *r)
{
	http_respond(r, 200, "application/octet-stream", NULL, r->body);
}

static void show(struct http_request *r)
{
	auto_buf struct buf out;
	struct str name, value;

	buf_init(&out, 1 << 20);
	buf_printf(&out, "method %.*s\npath %.*s\nid %s\nuid %u\nfds %d\n", (int)r->method.len,
		r->method.data, (int)r->path.len, r->path.data, r->id, r->peer.uid, r->fd_count);
	for (size_t i = 0; http_query_at(r, i, &name, &value); i++)
		buf_printf(&out, "query %s=%s\n", name.data ? name.data : "(malformed)",
			value.data ? value.data : "(malformed)");
	for (size_t i = 0; i < r->headers.count; i++)
		buf_printf(&out, "header %.*s=%.*s\n", (int)r->headers.items[i].name.len,
			r->headers.items[i].name.data, (int)r->headers.items[i].value.len,
			r->headers.items[i].value.data);
	buf_printf(&out, "body %zu\n", r->body.len);
	http_respond(r, 200, "text/plain", "X-Probe: yes\r\n", (struct str){ out.data, out.len });
}

static void state(struct http_request *r)
{
	auto_buf struct buf out;

	buf_init(&out, 4096);
	buf_printf(&out,
		"{\"begun\":%" PRIu64 ",\"done\":%" PRIu64 ",\"aborted\":%" PRIu64
		",\"completed\":%" PRIu64 ",\"connections\":%zu}",
		begun, done, aborted, completed, http_server_connections(server));
	http_respond(r, 200, "application/json", NULL, (struct str){ out.data, out.len });
}

static void fill(struct http_request *r)
{
	static char block[16384];
	struct job *job = r->ctx;

	while (job->left > 0) {
		uint64_t len = job->left < job->size ? job->left : job->size;
		if (len > sizeof block)
			len = sizeof block;
		memset(block, 'a', sizeof block);
		job->left -= len;
		if (!http_write(r, (struct str){ block, len }) && job->left > 0)
			return;
	}
	http_end(r);
}

static void chunked(struct http_request *r)
{
	struct job *job = r->ctx;

	job->left = number(r, "n", 100);
	job->size = number(r, "size", 16384);
	http_begin(r, 200, "application/octet-stream", NULL);
	fill(r);
}

static void flood(struct http_request *r)
{
	static char block[65536];

	http_begin(r, 200, "application/octet-stream", NULL);
	for (int i = 0, ignored = 0; i < 100000 && ignored < 1000; i++)
		ignored += !http_write(r, (struct str){ block, sizeof block });
	http_end(r);
}

static void cut(struct http_request *r)
{
	http_begin(r, 200, "text/plain", NULL);
	http_write(r, STR("half of it"));
	http_abort(r);
}

static void file(struct http_request *r)
{
	struct str path;
	uint64_t offset = number(r, "offset", 0);
	int fd = query(r, "path", &path) ? open(path.data, O_RDONLY | O_CLOEXEC) : -1;
	off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);

	if (size < 0)
		say(r, 404, "no such file\n");
	else
		http_respond_file(r, 200, "application/octet-stream", NULL, fd, offset,
			number(r, "len", (uint64_t)size - offset));
}

static void pipe_ended(void *ctx, struct http_request *r, bool ok)
{
	if (ok)
		http_end(r);
	else
		http_abort(r);
}

/* `yes` for n bytes, by a child. */
static void from_pipe(struct http_request *r)
{
	uint64_t left = number(r, "n", 1000);
	static char block[10000];
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		exit(2);
	if (fork() == 0) {
		close(ends[0]);
		memset(block, 'p', sizeof block);
		while (left > 0) {
			size_t len = left < sizeof block ? (size_t)left : sizeof block;
			if (fd_write_full(ends[1], block, len) != (ssize_t)len)
				_exit(1);
			left -= len;
		}
		_exit(0);
	}
	close(ends[1]);
	http_begin(r, 200, "application/octet-stream", NULL);
	http_pipe(r, ends[0], pipe_ended, NULL);
}

static void wait_for_release(struct http_request *r)
{
	if (waiting)
		say(waiting, 200, "another waits\n");
	waiting = r;
}

static void release(struct http_request *r)
{
	if (waiting)
		say(waiting, 200, "released\n");
	say(r, 200, waiting ? "yes\n" : "no\n");
	waiting = NULL;
}

/* Reads what comes out of the first descriptor; answers with the rest of them. */
static void fds(struct http_request *r)
{
	char text[100];
	ssize_t len = r->fd_count > 0 ? read(r->fds[0], text, sizeof text) : 0;

	http_begin_fds(
		r, 200, "text/plain", NULL, r->fds + 1, r->fd_count > 0 ? r->fd_count - 1 : 0);
	http_write(r, (struct str){ text, len < 0 ? 0 : (size_t)len });
	http_end(r);
}

static void drained(void *ctx)
{
	loop_stop(loop);
}

static void drain(struct http_request *r)
{
	say(r, 200, "draining\n");
	http_server_drain(server, drained, NULL);
}

static void early(struct http_request *r)
{
	say(r, 404, "nothing here\n");
}

static void unpause(struct loop *l, void *ctx)
{
	if (waiting)
		http_pause_body(waiting, false);
}

static void count(struct http_request *r)
{
}

enum how { AT_ONCE, TAKEN, STREAMED };
static const struct route {
	const char *path;
	enum how how;
	void (*serve)(struct http_request *r);
} routes[] = {
	{ "/healthz", AT_ONCE, get_healthz },
	{ "/early", AT_ONCE, early },
	{ "/echo", TAKEN, echo },
	{ "/show", TAKEN, show },
	{ "/state", TAKEN, state },
	{ "/chunked", TAKEN, chunked },
	{ "/flood", TAKEN, flood },
	{ "/cut", TAKEN, cut },
	{ "/file", TAKEN, file },
	{ "/pipe", TAKEN, from_pipe },
	{ "/wait", TAKEN, wait_for_release },
	{ "/release", TAKEN, release },
	{ "/fds", TAKEN, fds },
	{ "/drain", TAKEN, drain },
	{ "/count", STREAMED, count },
	{ "/pause", STREAMED, count },
};

static const struct route *route_of(struct http_request *r)
{
	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
		if (str_is(r->path, routes[i].path))
			return &routes[i];
	return NULL;
}

static void on_begin(void *ctx, struct http_request *r)
{
	const struct route *route = route_of(r);

	begun++;
	if (!route) {
		say(r, 404, "no such path\n");
		return;
	}
	if (route->how == AT_ONCE) {
		route->serve(r);
		return;
	}
	r->ctx = arena_alloc(&r->arena, sizeof(struct job));
	if (route->how == STREAMED)
		http_stream_body(r);
	else
		http_take_body(r, (size_t)number(r, "max", SIZE_MAX));
}

static void on_complete(void *ctx, struct http_request *r)
{
	completed++;
	route_of(r)->serve(r);
}

static void on_body(void *ctx, struct http_request *r, struct str data)
{
	struct job *job = r->ctx;
	char text[32];

	job->count += data.len;
	if (data.len == 0) {
		str_format(text, sizeof text, "%" PRIu64 "\n", job->count);
		say(r, 200, text);
		if (waiting == r)
			waiting = NULL;
	} else if (str_is(r->path, "/pause") && !waiting) {
		waiting = r;
		http_pause_body(r, true);
		loop_after(loop, 50, unpause, NULL);
	}
}

static void on_writable(void *ctx, struct http_request *r)
{
	if (str_is(r->path, "/chunked"))
		fill(r);
}

static void on_done(void *ctx, struct http_request *r, bool was_aborted)
{
	done++;
	aborted += was_aborted;
	if (waiting == r)
		waiting = NULL;
}

static void on_signal(struct loop *l, const struct signalfd_siginfo *info, void *ctx)
{
	if (info->ssi_signo == SIGTERM)
		http_server_drain(server, drained, NULL);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static int listen_at(const char *where)
{
	struct sockaddr_un path = { .sun_family = AF_UNIX };
	struct sockaddr_in port = { .sin_family = AF_INET };
	bool is_unix = where[0] == '/';
	int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	port.sin_port = htons((uint16_t)strtoul(where, NULL, 10));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (is_unix && !str_copy(path.sun_path, sizeof path.sun_path, where))
		return -1;
	if (bind(fd, is_unix ? (void *)&path : (void *)&port, is_unix ? sizeof path : sizeof port) <
			0 ||
		listen(fd, 4096) < 0)
		return -1;
	if (!is_unix) {
		getsockname(fd, (void *)&port, &(socklen_t){ sizeof port });
		printf("port %u\n", ntohs(port.sin_port));
	}
	return fd;
}

static void set_limit(struct http_limits *limits, const char *text)
{
	const struct {
		const char *name;
		size_t at;
	} fields[] = {
		{ "line_bytes", offsetof(struct http_limits, line_bytes) },
		{ "header_bytes", offsetof(struct http_limits, header_bytes) },
		{ "header_count", offsetof(struct http_limits, header_count) },
		{ "body_bytes", offsetof(struct http_limits, body_bytes) },
		{ "bodies_bytes", offsetof(struct http_limits, bodies_bytes) },
		{ "header_ms", offsetof(struct http_limits, header_ms) },
		{ "body_idle_ms", offsetof(struct http_limits, body_idle_ms) },
		{ "write_idle_ms", offsetof(struct http_limits, write_idle_ms) },
		{ "keep_alive_ms", offsetof(struct http_limits, keep_alive_ms) },
		{ "connections", offsetof(struct http_limits, connections) },
	};
	struct str name, value;
	uint64_t amount = 0;

	str_cut(str_from(text), '=', &name, &value);
	if (!str_to_u64(value, &amount))
		exit(2);
	if (str_is(name, "fds")) {
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ amount, amount });
		return;
	}
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (str_is(name, fields[i].name)) {
			memcpy((char *)limits + fields[i].at, &amount, sizeof amount);
			return;
		}
	exit(2);
}

int main(int argc, char **argv)
{
	const struct http_handler handler = { .begin = on_begin,
		.complete = on_complete,
		.body = on_body,
		.writable = on_writable,
		.done = on_done };
	struct http_limits limits = http_limits_default;
	struct error err;
	sigset_t signals;

	for (int i = 2; i < argc; i++)
		set_limit(&limits, argv[i]);
	int listener = argc > 1 ? listen_at(argv[1]) : -1;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGCHLD);
	if (listener < 0 || loop_new(&loop, &err) < 0 ||
		loop_signals(loop, &signals, on_signal, NULL, &err) < 0 ||
		http_server_new(loop, &limits, &handler, &server, &err) < 0 ||
		http_server_listen(server, &(struct http_listener){ .fd = listener }, &err) < 0) {
		fprintf(stderr, "http_probe: can't serve at %s\n",
			argc > 1 ? argv[1] : "(nothing)");
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	int status = loop_run(loop, &err);
	http_server_free(server);
	loop_free(loop);
	close(listener);
	return status < 0;
}
