/* egress_fixture.h -- an egress role with a policy, servers behind it, and clients. */
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include "base/clock.h"
#include "base/fd.h"
#include "egress/egress.h"
#include "linux/netns.h"
#include "linux/pidfd.h"
#include "unit.h"

#define BIG ((size_t)8 << 20)
#define OUTSIDER 64199 /* whom root becomes */
#define PATIENCE_MS 60000

/* ---- servers and clients ---- */
typedef void serve_fn(int fd);

struct world {
	struct egress_role role;
	struct egress egress;
	struct egress_policy policy;
	struct forward_host hosts[4];
	size_t host_count;
	int listener;  /* where the role listens for the policy */
	uint16_t port; /* of it */
	pid_t servers[4];
	size_t server_count;
};

static inline uint16_t port_of(int fd)
{
	struct sockaddr_in address;
	socklen_t len = sizeof address;
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	return ntohs(address.sin_port);
}

/* A process that serves each connection in one of its own. */
static inline uint16_t start_server(struct world *w, serve_fn *serve)
{
	struct error err;
	auto_close int listener = -1;
	assert_int_equal(netns_listen(0, &listener, &err), 0);
	pid_t parent = getpid(), pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGCHLD, SIG_IGN);
		if (getppid() != parent)
			_exit(1);
		fcntl(listener, F_SETFL, 0);
		for (;;) {
			int fd = accept(listener, NULL, NULL);
			if (fd < 0)
				_exit(1);
			if (fork() == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				close(listener);
				serve(fd);
				_exit(0);
			}
			close(fd);
		}
	}
	w->servers[w->server_count++] = pid;
	return port_of(listener);
}

static inline void serve_echo(int fd)
{
	static char data[65536];
	ssize_t got;
	while ((got = read(fd, data, sizeof data)) > 0)
		if (fd_write_full(fd, data, (size_t)got) != got)
			_exit(1);
}

/* Reads one request (its head, and a body with a length or in chunks without a zero), and answers
 * with what it was sent. false: no more comes. */
static inline bool answer_request(int fd)
{
	char data[16384] = "", head[128];
	size_t len = 0, whole = sizeof data;
	while (len < whole) {
		if (len + 1 >= sizeof data || read(fd, data + len, 1) != 1)
			return false;
		data[++len] = '\0';
		const char *end = whole == sizeof data ? strstr(data, "\r\n\r\n") : NULL;
		if (!end)
			continue;
		const char *length = strstr(data, "Content-Length: ");
		if (!strstr(data, "chunked"))
			whole = len + (length ? strtoul(length + 16, NULL, 10) : 0);
		else if (strstr(end, "\r\n0\r\n\r\n"))
			whole = len;
	}
	str_format(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", len);
	return fd_write_full(fd, head, strlen(head)) > 0 && fd_write_full(fd, data, len) > 0;
}

static inline void serve_requests(int fd)
{
	while (answer_request(fd))
		;
}

static inline void serve_one_request(int fd)
{
	answer_request(fd);
}

/* Half an answer, then a reset. */
static inline void serve_reset(int fd)
{
	char data[4096];
	struct linger at_once = { .l_onoff = 1 };
	if (read(fd, data, sizeof data) <= 0)
		return;
	fd_write_full(fd, "HTTP/1.0 200 OK\r\n\r\nhalf", 23);
	usleep(100000);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

/* More than anybody takes. */
static inline void serve_flood(int fd)
{
	static char data[65536];
	while (fd_write_full(fd, data, sizeof data) == (ssize_t)sizeof data)
		;
}

static inline void serve_nothing(int fd)
{
	char byte;
	while (read(fd, &byte, 1) > 0)
		;
}

static inline void allow(struct world *w, const char *host, uint16_t port, bool is_named)
{
	w->hosts[w->host_count++] = (struct forward_host){ host, port, is_named };
}

static inline int start_role(struct world *w, struct error *err)
{
	char program[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
	assert_true(len > 0);
	program[len] = 0;
	return egress_start(program, OUTSIDER, OUTSIDER, &w->role, err);
}

static inline void open_policy(
	struct world *w, struct egress *egress, int *listener, uint16_t *port)
{
	struct error err = { 0 };
	if (egress_open(w->role.service, &w->policy, egress, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(netns_listen(0, listener, &err), 0);
	*port = port_of(*listener);
	if (egress_serve(egress, *listener, &err) < 0)
		fail_msg("%s", err.text);
}

static inline void start(struct world *w)
{
	struct error err = { 0 };
	if (start_role(w, &err) < 0)
		fail_msg("%s", err.text);
	open_policy(w, &w->egress, &w->listener, &w->port);
	for (size_t i = 0; i < w->host_count; i++)
		assert_int_equal(egress_allow(&w->egress, &w->hosts[i], &err), 0);
}

static inline struct egress_status status_of(struct world *w)
{
	struct egress_status status;
	struct error err = { 0 };
	if (egress_look(&w->egress, &status, &err) < 0)
		fail_msg("%s", err.text);
	return status;
}

static inline int dial(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static inline void say(int fd, const char *text)
{
	assert_int_equal(fd_write_full(fd, text, strlen(text)), strlen(text));
}

/* All until the end; returns what the last read did. */
static inline ssize_t receive(int fd, char *out, size_t size)
{
	size_t len = 0;
	ssize_t got;
	do {
		got = read(fd, out + len, size - 1 - len);
		len += got > 0 ? (size_t)got : 0;
	} while (got > 0 || (got < 0 && errno == EINTR));
	out[len] = '\0';
	return got;
}

static inline void assert_answer(int fd, const char *beginning, const char *within)
{
	char text[8192];
	assert_int_equal(receive(fd, text, sizeof text), 0);
	if (strncmp(text, beginning, strlen(beginning)) != 0 || !strstr(text, within))
		fail_msg("'%s', not '%s' with '%s'", text, beginning, within);
}

static inline void ask_tunnel(int fd, const char *host, uint16_t port)
{
	char text[512];
	str_format(text, sizeof text, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n\r\n", host, port,
		host, port);
	say(fd, text);
}

static inline void assert_tunnel(int fd)
{
	static const char expected[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	char text[sizeof expected] = "";
	assert_int_equal(fd_read_full(fd, text, sizeof expected - 1), sizeof expected - 1);
	assert_string_equal(text, expected);
}

static inline int tunnel(struct world *w, const char *host, uint16_t port)
{
	int fd = dial(w->port);
	ask_tunnel(fd, host, port);
	assert_tunnel(fd);
	return fd;
}

static inline void assert_echo(int fd, const char *text)
{
	char back[64] = "";
	say(fd, text);
	assert_int_equal(fd_read_full(fd, back, strlen(text)), strlen(text));
	assert_string_equal(back, text);
}

static inline int setup(void **state)
{
	struct world *w = test_calloc(1, sizeof *w);
	w->role = EGRESS_ROLE_NONE;
	w->egress = EGRESS_NONE;
	w->listener = -1;
	w->policy.is_settled = true;
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;
	egress_close(&w->egress);
	egress_stop(&w->role);
	fd_close(&w->listener);
	for (size_t i = 0; i < w->server_count; i++) {
		kill(w->servers[i], SIGKILL);
		waitpid(w->servers[i], NULL, 0);
	}
	test_free(w);
	return 0;
}

static inline size_t count_fds(pid_t pid)
{
	char path[64];
	size_t count = 0;
	str_format(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	if (!dir)
		return 0;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static inline unsigned long read_status(pid_t pid, const char *key, int base)
{
	char path[64], text[8192];
	str_format(path, sizeof path, "/proc/%d/status", (int)pid);
	assert_true(fd_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	const char *line = strstr(text, key);
	assert_non_null(line);
	return strtoul(line + strlen(key), NULL, base);
}

/* Waits until it holds `count` descriptors; as a plain user they can't be seen. */
static inline void await_fds(pid_t pid, size_t count)
{
	uint64_t end = clock_monotonic_ms() + PATIENCE_MS;
	while (!geteuid() && count_fds(pid) != count) {
		if (clock_monotonic_ms() > end)
			fail_msg("%zu descriptors, not %zu", count_fds(pid), count);
		usleep(10000);
	}
}

/* Waits until `count` requests were passed on. */
static inline void await_connections(struct world *w, uint64_t count)
{
	uint64_t end = clock_monotonic_ms() + PATIENCE_MS;
	while (status_of(w).connections != count) {
		assert_true(clock_monotonic_ms() < end);
		usleep(2000);
	}
}

/* Waits until `count` HTTP requests were passed on. */
static inline void await_requests(struct world *w, uint64_t count)
{
	uint64_t end = clock_monotonic_ms() + PATIENCE_MS;
	while (status_of(w).requests != count) {
		assert_true(clock_monotonic_ms() < end);
		usleep(2000);
	}
}

/* One head of an answer, and nothing behind it. */
static inline bool read_head(int fd, char *data, size_t size)
{
	memset(data, 0, size);
	for (size_t len = 0; len + 1 < size; len++) {
		if (read(fd, data + len, 1) != 1)
			return false;
		if (strstr(data, "\r\n\r\n"))
			return true;
	}
	return false;
}
