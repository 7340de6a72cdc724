#include "net/tunnel.h"

#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"
#include "format/http/uri.h"
#include "linux/home.h"
#include "net/tunnel_tls.h"
#include "proc/role.h"

#define CONNECT_MS 10000 /* to one address */
#define CHUNK 65536
#define KEEP_ALIVE_S 60
#define PROBE_S 15
#define PROBES 4

struct way { /* from one side to the other */
	size_t start, len;
	bool is_ended; /* nothing more comes */
	bool is_shut;  /* and the other side was told */
	char data[CHUNK];
};
struct tunnel {
	int near, far;
	struct tunnel_tls *tls; /* NULL: plain */
	struct way out, in;
};

/* ---- the connection ---- */

static int tunnel_explain(int why, const char *authority, struct error *err)
{
	static const struct {
		int why;
		const char *before, *after, *hint;
	} rows[] = {
		{ ECONNREFUSED, "no daemon listens at", "",
			"carrel serve --listen ADDR:PORT, on that machine, starts one" },
		{ EHOSTUNREACH, "there is no route to", "",
			"check the address, and the network of this machine" },
		{ ENETUNREACH, "there is no route to", "",
			"check the address, and the network of this machine" },
		{ ETIMEDOUT, "the host of", " does not answer",
			"check the address and the port, and firewalls on the way" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].why == why)
			return fail_hint(err, ERR_UNAVAILABLE, rows[i].hint, "%s '%s'%s",
				rows[i].before, authority, rows[i].after);
	errno = why;
	return fail_errno_code(err, ERR_UNAVAILABLE, "connect to '%s'", authority);
}

/* 0, or -1 with errno. */
static int connect_within(int fd, const struct addrinfo *address)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	int why = 0;
	if (!connect(fd, address->ai_addr, address->ai_addrlen))
		return 0;
	if (errno != EINPROGRESS)
		return -1;
	int count = poll(&ready, 1, CONNECT_MS);
	if (count > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &(socklen_t){ sizeof why }) < 0)
		why = errno;
	if (count == 0)
		why = ETIMEDOUT;
	errno = count < 0 ? errno : why;
	return count < 0 || why ? -1 : 0;
}

static void set_options(int fd)
{
	static const struct {
		int level, name, value;
	} rows[] = { { IPPROTO_TCP, TCP_NODELAY, 1 }, { SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEP_ALIVE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S }, { IPPROTO_TCP, TCP_KEEPCNT, PROBES } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		setsockopt(fd, rows[i].level, rows[i].name, &rows[i].value, sizeof rows[i].value);
}

/* Tries the addresses of the name, one after the other. */
static int connect_to(
	const struct uri_base *base, const char *authority, int *far, struct error *err)
{
	const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *found;
	char name[256], port[8];
	int why = EHOSTUNREACH;
	str_format(name, sizeof name, "%.*s", (int)base->name.len, base->name.data);
	str_format(port, sizeof port, "%u", base->port);
	int failed = getaddrinfo(name, port, &wanted, &found);
	if (failed)
		return fail_hint(err, ERR_UNAVAILABLE, "check the name, or use an address",
			"the name '%s' can't be resolved: %s", name,
			failed == EAI_SYSTEM ? strerror(errno) : gai_strerror(failed));
	for (const struct addrinfo *one = found; one && *far < 0; one = one->ai_next) {
		auto_close int fd =
			socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd >= 0 && !connect_within(fd, one))
			*far = take_fd(&fd);
		else
			why = errno;
	}
	freeaddrinfo(found);
	if (*far < 0)
		return tunnel_explain(why, authority, err);
	set_options(*far);
	return 0;
}

/* *is_stuck: there is no way, as in a container without capabilities (EPERM) or without a second id
 * (EINVAL). */
static int give_up_root(bool *is_stuck, struct error *err)
{
	uid_t uid;
	gid_t gid;
	*is_stuck = false;
	if (geteuid() != 0 && getuid() != 0)
		return 0;
	home_find_owner(&uid, &gid);
	if (!setgroups(0, NULL) && !setresgid(gid, gid, gid) && !setresuid(uid, uid, uid))
		return 0;
	*is_stuck = errno == EPERM || errno == EINVAL;
	return *is_stuck ? 0 : fail_errno(err, "give up root");
}

/* ---- the relay ---- */

/* As read(2) and write(2); -1 with EAGAIN: it has to wait. */
static ssize_t receive_far(struct tunnel *t, void *data, size_t size)
{
	return t->tls ? tunnel_tls_read(t->tls, data, size) : recv(t->far, data, size, 0);
}

static ssize_t send_far(struct tunnel *t, const void *data, size_t len)
{
	return t->tls ? tunnel_tls_write(t->tls, data, len) : send(t->far, data, len, MSG_NOSIGNAL);
}

static bool must_wait(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* false: the connection is broken. */
static bool tunnel_fill(struct tunnel *t, struct way *way)
{
	if (way->len || way->is_ended)
		return true;
	ssize_t got = way == &t->in ? receive_far(t, way->data, CHUNK)
				    : recv(t->near, way->data, CHUNK, MSG_DONTWAIT);
	if (got < 0)
		return must_wait();
	way->is_ended = got == 0;
	way->start = 0;
	way->len = (size_t)got;
	return true;
}

static bool tunnel_flush(struct tunnel *t, struct way *way)
{
	const char *data = way->data + way->start;
	ssize_t sent = 0;
	if (way->len)
		sent = way == &t->in ? send(t->near, data, way->len, MSG_DONTWAIT | MSG_NOSIGNAL)
				     : send_far(t, data, way->len);
	if (sent < 0)
		return must_wait();
	way->start += (size_t)sent;
	way->len -= (size_t)sent;
	if (way->len || !way->is_ended || way->is_shut)
		return true;
	way->is_shut = true;
	if (way == &t->in)
		shutdown(t->near, SHUT_WR);
	else if (t->tls)
		tunnel_tls_end(t->tls);
	else
		shutdown(t->far, SHUT_WR);
	return true;
}

static void relay(struct tunnel *t)
{
	bool is_gone = false; /* near: what came from there is still sent */
	while (!t->out.is_shut || !t->in.is_shut) {
		bool reads_far = !t->in.len && !t->in.is_ended;
		bool reads_near = !t->out.len && !t->out.is_ended;
		struct pollfd ready[2] = {
			{ t->near, (short)((reads_near ? POLLIN : 0) | (t->in.len ? POLLOUT : 0)),
				0 },
			{ t->far, (short)((reads_far ? POLLIN : 0) | (t->out.len ? POLLOUT : 0)),
				0 }
		};
		if (t->tls)
			ready[1].events |= tunnel_tls_events(t->tls);
		/* A side that is waited for in no way would be reported again and again when it
		 * hangs up. */
		if (!ready[1].events)
			ready[1].fd = -1;
		if (is_gone)
			ready[0].fd = -1;
		bool has_more = t->tls && reads_far && tunnel_tls_pending(t->tls);
		if (poll(ready, 2, has_more ? 0 : -1) < 0 && errno != EINTR)
			return;
		if (!tunnel_fill(t, &t->in) || !tunnel_flush(t, &t->in) ||
			!tunnel_fill(t, &t->out) || !tunnel_flush(t, &t->out))
			return;
		is_gone |= ready[0].revents & (POLLHUP | POLLERR) && t->out.is_ended;
		if (is_gone && !t->out.len)
			return;
	}
}

static int open_tunnel(struct tunnel *t, const char *url, const char *ca, struct error *err)
{
	struct uri_base base;
	char authority[300];
	if (!uri_parse_base(url, &base))
		return fail(err, ERR_INVALID, "invalid URL '%s'", url);
	str_format(
		authority, sizeof authority, "%.*s", (int)base.authority.len, base.authority.data);
	/* Certificates of the caller's are read with the caller's rights. */
	if ((base.is_tls && tunnel_tls_new(&base, ca, &t->tls, err)) ||
		connect_to(&base, authority, &t->far, err))
		return -1;
	/* It reads what anyone on the network sends: locked in before the first byte. */
	struct role_lock lock = { .paths = NULL };
	if (give_up_root(&lock.may_be_root, err) || role_lock(&lock, err))
		return -1;
	return t->tls ? tunnel_tls_connect(t->tls, t->far, authority, err) : 0;
}

int tunnel_run(const char *url, const char *ca, int near, struct error *err)
{
	static struct tunnel t;
	char verdict = 0; /* RELAY_READY of client/relay.h, whose room isn't ours */
	t.near = near;
	t.far = -1;
	signal(SIGPIPE, SIG_IGN);
	int failed = open_tunnel(&t, url, ca, err);
	verdict = failed ? 1 : 0;
	if (fd_write_full(near, &verdict, 1) == 1 && failed)
		(void)!fd_write_full(near, err, sizeof *err);
	if (!failed)
		relay(&t);
	tunnel_tls_free(t.tls);
	fd_close(&t.far);
	return failed;
}
