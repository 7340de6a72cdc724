/* What bench/egress.py measures egress with: the role itself with one policy, a plain relay by
 * splice, a server behind them, and the load. Each mode prints one line of numbers. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "egress/egress.h"

#define CONNECTIONS_MAX 1024
#define PIPE_BYTES (1 << 18)

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int listen_anywhere(uint16_t *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) || listen(fd, 1024) ||
		getsockname(fd, (struct sockaddr *)&address, &len))
		die("listen");
	*port = ntohs(address.sin_port);
	return fd;
}

static int dial(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return fd;
}

/* ---- the server ---- */

static void send_bulk(int fd, uint64_t bytes)
{
	static char data[1 << 18];

	while (bytes) {
		ssize_t sent = write(fd, data, bytes < sizeof data ? bytes : sizeof data);
		if (sent <= 0)
			_exit(0);
		bytes -= (uint64_t)sent;
	}
}

/* "GET …" with its head, "BULK n\n", or "PING\n". */
static void serve_client(int fd)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: "
				     "text/plain\r\nContent-Length: 12\r\n\r\nhello world\n";
	char data[8192];
	size_t len = 0;
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	for (;;) {
		ssize_t got = read(fd, data + len, sizeof data - 1 - len);
		if (got <= 0)
			return;
		len += (size_t)got;
		data[len] = '\0';
		if (data[0] == 'G' && strstr(data, "\r\n\r\n")) {
			if (write(fd, answer, sizeof answer - 1) < 0)
				return;
			len = 0;
		} else if (data[0] == 'P' && strchr(data, '\n')) {
			if (write(fd, "PONG\n", 5) < 0)
				return;
			len = 0;
		} else if (data[0] == 'B' && strchr(data, '\n')) {
			send_bulk(fd, strtoull(data + 5, NULL, 10));
			len = 0;
		}
	}
}

static void serve(int listener, void (*serve_one)(int fd, uint16_t port), uint16_t port)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			die("accept");
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(listener);
			serve_one(fd, port);
			_exit(0);
		}
		close(fd);
	}
}

static void serve_origin(int fd, uint16_t port)
{
	serve_client(fd);
}

/* ---- a plain relay ---- */

struct direction {
	int from, to, pipe[2];
	size_t held;
};

/* false: the end. */
static bool move(struct direction *d)
{
	for (int round = 0; round < 8; round++) {
		if (!d->held) {
			ssize_t got = splice(d->from, NULL, d->pipe[1], NULL, PIPE_BYTES,
				SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
			if (got < 0)
				return errno == EAGAIN;
			if (!got)
				return false;
			d->held = (size_t)got;
		}
		ssize_t sent = splice(
			d->pipe[0], NULL, d->to, NULL, d->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (sent < 0 && errno == EAGAIN)
			return true;
		if (sent <= 0)
			return false;
		d->held -= (size_t)sent;
	}
	return true;
}

static void relay_one(int client, uint16_t port)
{
	int server = dial(port), loop = epoll_create1(0);
	struct direction ways[2] = { { .from = client, .to = server },
		{ .from = server, .to = client } };

	for (int i = 0; i < 2; i++) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
		fd_set_nonblocking(ways[i].from);
		if (pipe2(ways[i].pipe, O_NONBLOCK))
			die("pipe");
		fcntl(ways[i].pipe[0], F_SETPIPE_SZ, PIPE_BYTES);
		epoll_ctl(loop, EPOLL_CTL_ADD, ways[i].from, &event);
	}
	for (;;) {
		struct epoll_event events[2];
		epoll_wait(loop, events, 2, -1);
		/* Edges: until nothing moves any more. */
		for (int i = 0; i < 2; i++)
			for (size_t before = 1; before;) {
				if (!move(&ways[i]))
					return;
				char byte;
				before = !ways[i].held &&
					 recv(ways[i].from, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
			}
	}
}

/* ---- the role ---- */

static int serve_role(const char *self, uint16_t origin)
{
	struct egress_role role = EGRESS_ROLE_NONE;
	struct egress_policy policy = { .is_settled = 1, .limits.connections = CONNECTIONS_MAX };
	struct egress_rules rules = { .mode = NETWORK_LIST };
	auto_arena struct arena arena = { 0 };
	struct egress egress;
	struct error err = { 0 };
	uint16_t port;
	int listener = listen_anywhere(&port);
	char entry[64], byte;

	snprintf(entry, sizeof entry, "origin.example:%u", origin);
	vec_push(&arena, &rules.allow, entry);
	vec_push(&arena, &rules.hosts, (struct text_pair){ "origin.example", "127.0.0.1" });
	if (egress_start(self, 65534, 65534, &role, &err) ||
		egress_open(role.service, &policy, &egress, &err) ||
		egress_set(&egress, &rules, &err) || egress_serve(&egress, listener, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	printf("%u %d\n", port, (int)role.pid);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	egress_stop(&role);
	return 0;
}

/* ---- the load ---- */

struct client {
	int fd;
	size_t len;
	char data[1024];
};

/* host "": no CONNECT, whatever listens at the port leads to the server. */
static int open_tunnel(uint16_t port, const char *host, uint16_t origin)
{
	char text[256], back[512] = "";
	int fd = dial(port);

	if (!host[0])
		return fd;
	int len = snprintf(text, sizeof text, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n\r\n", host,
		origin, host, origin);
	if (write(fd, text, (size_t)len) != len)
		die("CONNECT");
	for (size_t at = 0; !strstr(back, "\r\n\r\n"); at++)
		if (at + 1 >= sizeof back || read(fd, back + at, 1) != 1)
			die("answer to CONNECT");
	if (!strstr(back, " 200 ")) {
		fprintf(stderr, "%s\n", back);
		exit(1);
	}
	return fd;
}

struct load {
	uint16_t port, origin;
	const char *host;
	bool is_absolute;
	unsigned count, milliseconds;
	char request[512];
	size_t request_len;
};

static void send_request(const struct load *load, struct client *client)
{
	client->len = 0;
	if (write(client->fd, load->request, load->request_len) != (ssize_t)load->request_len)
		die("request");
}

/* Requests a second over `count` kept connections. */
static void measure_rate(struct load *load)
{
	static struct client clients[CONNECTIONS_MAX];
	int loop = epoll_create1(0);
	uint64_t done = 0;
	struct epoll_event events[64];

	for (unsigned i = 0; i < load->count; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = &clients[i] };
		clients[i].fd = load->is_absolute
					? dial(load->port)
					: open_tunnel(load->port, load->host, load->origin);
		epoll_ctl(loop, EPOLL_CTL_ADD, clients[i].fd, &event);
		send_request(load, &clients[i]);
	}
	uint64_t begin = clock_monotonic_ns(), end = begin + load->milliseconds * 1000000ull;
	while (clock_monotonic_ns() < end) {
		int ready = epoll_wait(loop, events, 64, 1000);
		if (ready <= 0)
			die("no answer");
		for (int i = 0; i < ready; i++) {
			struct client *client = events[i].data.ptr;
			ssize_t got = read(client->fd, client->data + client->len,
				sizeof client->data - client->len);
			if (got <= 0)
				die("a kept connection has ended");
			client->len += (size_t)got;
			if (client->len < 5 ||
				memcmp(client->data + client->len - 6, "world\n", 6) != 0)
				continue;
			done++;
			send_request(load, client);
		}
	}
	printf("%.0f\n", (double)done * 1e9 / (double)(clock_monotonic_ns() - begin));
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Nanoseconds of the median and the 99th percentile of `count` questions and answers. */
static void measure_latency(const struct load *load)
{
	uint64_t *times = calloc(load->count, sizeof *times);
	int fd = open_tunnel(load->port, load->host, load->origin);

	for (unsigned i = 0; times && i < load->count; i++) {
		char back[5];
		uint64_t begin = clock_monotonic_ns();
		if (write(fd, "PING\n", 5) != 5 || fd_read_full(fd, back, 5) != 5)
			die("ping");
		times[i] = clock_monotonic_ns() - begin;
	}
	qsort(times, load->count, sizeof *times, compare);
	printf("%llu %llu\n", (unsigned long long)times[load->count / 2],
		(unsigned long long)times[load->count * 99 / 100]);
	free(times);
}

/* Bytes a second of `count` MB. */
static void measure_bulk(const struct load *load)
{
	static char data[1 << 20];
	uint64_t bytes = (uint64_t)load->count << 20, left = bytes;
	int fd = open_tunnel(load->port, load->host, load->origin);
	char text[64];
	int len = snprintf(text, sizeof text, "BULK %llu\n", (unsigned long long)bytes);
	uint64_t begin = clock_monotonic_ns();

	if (write(fd, text, (size_t)len) != len)
		die("bulk");
	while (left) {
		ssize_t got = recv(fd, data, sizeof data, MSG_TRUNC);
		if (got <= 0)
			die("bulk");
		left -= (uint64_t)got;
	}
	printf("%.0f\n", (double)bytes * 1e9 / (double)(clock_monotonic_ns() - begin));
}

/* `count` tunnels that have carried something, until stdin ends. */
static void hold(const struct load *load)
{
	char back[5];

	for (unsigned i = 0; i < load->count; i++) {
		int fd = open_tunnel(load->port, load->host, load->origin);
		if (write(fd, "PING\n", 5) != 5 || fd_read_full(fd, back, 5) != 5)
			die("ping");
	}
	printf("%u\n", load->count);
	fflush(stdout);
	while (read(STDIN_FILENO, back, 1) > 0)
		;
}

int main(int argc, char **argv)
{
	uint16_t port;

	if (!strcmp(argv[0], EGRESS_ARGV0))
		return egress_main();
	if (argc < 2)
		return 2;
	const char *mode = argv[1];
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(mode, "origin") || !strcmp(mode, "relay")) {
		int listener = listen_anywhere(&port);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		printf("%u\n", port);
		fflush(stdout);
		serve(listener, mode[0] == 'o' ? serve_origin : relay_one,
			(uint16_t)(argc > 2 ? strtoul(argv[2], NULL, 10) : 0));
	}
	if (!strcmp(mode, "role") && argc == 4)
		return serve_role(argv[2], (uint16_t)strtoul(argv[3], NULL, 10));
	/* rate|absolute|latency|bulk|hold PORT HOST ORIGIN COUNT MILLISECONDS */
	if (argc != 7)
		return 2;
	struct load load = { .port = (uint16_t)strtoul(argv[2], NULL, 10),
		.host = argv[3],
		.origin = (uint16_t)strtoul(argv[4], NULL, 10),
		.count = (unsigned)strtoul(argv[5], NULL, 10),
		.milliseconds = (unsigned)strtoul(argv[6], NULL, 10),
		.is_absolute = !strcmp(mode, "absolute") };
	load.request_len = (size_t)snprintf(load.request, sizeof load.request,
		load.is_absolute ? "GET http://%s:%u/ HTTP/1.1\r\nHost: %s:%u\r\n\r\n"
				 : "GET /%.0s%.0d HTTP/1.1\r\nHost: %s:%u\r\n\r\n",
		load.host, load.origin, load.host[0] ? load.host : "origin.example", load.origin);
	if (load.count > CONNECTIONS_MAX * 1024)
		return 2;
	if (!strcmp(mode, "rate") || load.is_absolute)
		measure_rate(&load);
	else if (!strcmp(mode, "latency"))
		measure_latency(&load);
	else if (!strcmp(mode, "bulk"))
		measure_bulk(&load);
	else
		hold(&load);
	return 0;
}
