#include "core/workspaces/ports.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/foreign.h"
#include "core/access/audit.h"
#include "core/execs/init_connection.h"
#include "core/workspaces/internal.h"
#include "format/text/procfs.h"

#define CONNECT_MS 5000
#define CALLS_MAX 64	  /* of one workspace that are under way */
#define LISTED_MAX 1000	  /* ports of one workspace that are shown */
#define TO_IPV6 (1 << 16) /* in the value of a message */

struct port_call {
	struct core_workspace *w; /* held */
	struct port_call *next;
	uint64_t id;
	uint16_t port;
	bool is_ipv6;
	int fd; /* that is connecting, or -1 */
	struct loop_timer *timer;
	port_fn *done;
	void *ctx;
};

/* ---- what listens ---- */

static int compare(const void *a, const void *b)
{
	const struct port *one = a, *other = b;
	if (one->port != other->port)
		return one->port < other->port ? -1 : 1;
	return strcmp(one->address, other->address);
}

void ports_leave_out(struct core_workspace *w, const int *fds, size_t count)
{
	struct stat st;
	w->sandbox.own_socket_count = 0;
	for (size_t i = 0; i < count && i < INIT_LISTENERS_MAX; i++)
		if (!fstat(fds[i], &st))
			w->sandbox.own_sockets[w->sandbox.own_socket_count++] = st.st_ino;
}

static bool is_own(const struct core_workspace *w, uint64_t inode)
{
	for (size_t i = 0; i < w->sandbox.own_socket_count; i++)
		if (w->sandbox.own_sockets[i] == inode)
			return true;
	return false;
}

static void add_listeners(const struct core_workspace *w, struct str text, bool is_ipv6,
	struct arena *arena, port_list *ports)
{
	struct procfs_listener listener;
	char address[INET6_ADDRSTRLEN];

	while (ports->count < LISTED_MAX && procfs_next_listener(&text, &listener)) {
		if (is_own(w, listener.inode) || !inet_ntop(is_ipv6 ? AF_INET6 : AF_INET,
							 listener.address, address, sizeof address))
			continue;
		vec_push(arena, ports, (struct port){ listener.port, arena_text(arena, address) });
	}
}

int core_ports(const struct request *request, struct core_workspace *w, struct arena *arena,
	port_list *ports, struct error *err)
{
	if (access_check(w->core, request, VERB_PORT_LIST, w, err))
		return -1;
	for (int is_ipv6 = 0; is_ipv6 < 2 && w->sandbox.state == SANDBOX_UP; is_ipv6++) {
		auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
		if (view_read_sockets(&w->sandbox.view, is_ipv6, &text, err))
			return error_context(err, "workspace '%s'", w->model.name);
		add_listeners(w, (struct str){ text.data, text.len }, is_ipv6, arena, ports);
	}
	if (ports->count)
		qsort(ports->items, ports->count, sizeof *ports->items, compare);
	return 0;
}

/* ---- connections ---- */

static struct port_call *find_call(struct core_workspace *w, uint64_t id)
{
	struct port_call *call = w->ports;
	while (call && call->id != id)
		call = call->next;
	return call;
}

static void close_socket(struct port_call *call)
{
	if (call->fd >= 0)
		loop_unwatch(call->w->core->loop, call->fd);
	foreign_close(&call->fd);
}

static void free_call(struct port_call *call)
{
	struct port_call **at = &call->w->ports;
	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	close_socket(call);
	loop_cancel(call->w->core->loop, call->timer);
	free(call);
}

void port_cancel(struct port_call *call)
{
	struct core_workspace *w = call->w;
	free_call(call);
	core_release(w);
}

static void finish(struct port_call *call, int fd, const struct error *err)
{
	port_fn *done = call->done;
	void *ctx = call->ctx;
	struct core_workspace *w = call->w;
	free_call(call);
	done(ctx, fd, err);
	core_release(w);
}

static void fail_call(struct port_call *call, const char *what)
{
	struct error err;
	fail(&err, ERR_UNAVAILABLE, "%s port %u of workspace '%s'", what, call->port,
		call->w->model.name);
	error_hint(&err, "carrel port %s lists what listens", call->w->model.name);
	finish(call, -1, &err);
}

static void on_timeout(struct loop *loop, void *ctx)
{
	struct port_call *call = ctx;
	call->timer = NULL;
	fail_call(call, "no connection is accepted on");
}

static void ask(struct port_call *call)
{
	struct core *core = call->w->core;
	call->id = PORT_ID | ++core->upkeep->port_calls;
	connection_send(
		call->w, INIT_CONNECT, call->id, call->port | (call->is_ipv6 ? TO_IPV6 : 0));
}

/* Not on this address: perhaps on the other. */
static void try_next(struct port_call *call)
{
	close_socket(call);
	if (call->is_ipv6) {
		fail_call(call, "nothing listens on");
		return;
	}
	call->is_ipv6 = true;
	ask(call);
}

/* A forged socket may be connected to something else in the sandbox; that is no harm, but not what
 * was asked for. */
static bool is_at_port(int fd, uint16_t port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	} peer = { 0 };
	socklen_t len = sizeof peer;
	if (getpeername(fd, &peer.any, &len) < 0)
		return false;
	if (peer.any.sa_family == AF_INET)
		return ntohs(peer.ipv4.sin_port) == port &&
		       ntohl(peer.ipv4.sin_addr.s_addr) == INADDR_LOOPBACK;
	return peer.any.sa_family == AF_INET6 && ntohs(peer.ipv6.sin6_port) == port &&
	       IN6_IS_ADDR_LOOPBACK(&peer.ipv6.sin6_addr);
}

static void on_socket(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct port_call *call = ctx;
	int reason = 0;
	socklen_t len = sizeof reason;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &len) < 0 || reason ||
		!is_at_port(fd, call->port)) {
		try_next(call);
		return;
	}
	loop_unwatch(loop, fd);
	finish(call, take_fd(&call->fd), NULL);
}

bool ports_receive(struct core_workspace *w, const struct init_reply *reply, int fd)
{
	auto_foreign int came = fd;
	struct port_call *call = find_call(w, reply->id);
	struct error err;
	if (reply->type != INIT_CONNECTED && reply->type != INIT_REFUSED)
		return false;
	if (!call) /* canceled */
		return true;
	if (call->fd >= 0)
		return false; /* a second answer */
	if (reply->type == INIT_REFUSED ||
		loop_watch(w->core->loop, came, EPOLLOUT, on_socket, call, &err))
		try_next(call);
	else
		call->fd = take_fd(&came);
	return true;
}

static int check(const struct core_workspace *w, struct error *err)
{
	unsigned count = 0;
	if (w->sandbox.state != SANDBOX_UP)
		return fail_hint(err, ERR_CONFLICT, "start a server there first: carrel exec -d",
			"workspace '%s' has no sandbox now: nothing listens in it", w->model.name);
	for (const struct port_call *call = w->ports; call; call = call->next)
		count++;
	if (count >= CALLS_MAX)
		return fail_hint(err, ERR_LIMIT, "try again in a moment",
			"%d connections to ports of workspace '%s' are being made", CALLS_MAX,
			w->model.name);
	return 0;
}

static void print_port(struct json *j, const void *ctx)
{
	const uint16_t *port = ctx;
	json_u64(j, "port", *port);
}

int core_connect_port(const struct request *request, struct core_workspace *w, uint16_t port,
	port_fn *done, void *ctx, struct port_call **out, struct error *err)
{
	if (access_check(w->core, request, VERB_PORT_CONNECT, w, err) || check(w, err))
		return -1;
	audit_write(w->core, request, "port.connect", w, print_port, &port);
	struct port_call *call = xzalloc(sizeof *call);
	*call = (struct port_call){
		.w = w, .next = w->ports, .port = port, .fd = -1, .done = done, .ctx = ctx
	};
	w->ports = call;
	core_hold(w);
	core_touch(w);
	call->timer = loop_after(w->core->loop, CONNECT_MS, on_timeout, call);
	ask(call);
	*out = call;
	return 0;
}

void ports_gone(struct core_workspace *w)
{
	while (w->ports)
		fail_call(w->ports, "the sandbox has ended: nothing listens on");
}

void ports_free(struct core_workspace *w)
{
	for (struct port_call *call = w->ports, *next; call; call = next) {
		next = call->next;
		free_call(call);
	}
}
