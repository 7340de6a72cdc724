/* carrel port: what listens in a workspace, and a port of this host that leads to it. */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "cli/columns.h"
#include "format/network/inet_address.h"
#include "linux/child.h"
#include "model/network/port.h"

#define CONNECTIONS_MAX 256
#define CHUNK 65536
#define BACKLOG 128

/* ---- what listens ---- */

static int list(struct command *command, struct error *err)
{
	return listing_print_records(command, &port_record, "port",
		remote_workspace_path(&command->remote, command->operands.items[0], "/ports"), err);
}

/* ---- the port of this host ---- */

static int read_port(const char *text, uint16_t *port, struct error *err)
{
	uint64_t value;
	if (!str_to_u64(str_from(text), &value) || !value || value > UINT16_MAX)
		return fail(err, ERR_INVALID, "invalid port '%s'; it is 1 to 65535", text);
	*port = (uint16_t)value;
	return 0;
}

static int read_listen(const char *text, union inet_address *address, struct error *err)
{
	if (!inet_address_parse(str_from(text), address))
		return fail_hint(err, ERR_INVALID, "--listen 127.0.0.1:8080, or :0 for a free port",
			"--listen: invalid address '%s'", text);
	return 0;
}

/* *shown: the address with the port that the kernel chose. */
static int open_listener(union inet_address *address, int *out, char shown[INET_ADDRESS_TEXT_SIZE],
	struct error *err)
{
	const int on = 1;
	socklen_t len = inet_address_len(address);
	auto_close int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	inet_address_print(address, shown);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
		bind(fd, &address->any, len) < 0 || listen(fd, BACKLOG) < 0 ||
		getsockname(fd, &address->any, &len) < 0) {
		bool is_taken = errno == EADDRINUSE;
		fail_errno(err, "listen at %s", shown);
		return is_taken ? error_hint(err, "--listen :0 takes a free port") : -1;
	}
	inet_address_print(address, shown);
	*out = take_fd(&fd);
	return 0;
}

/* ---- one connection, in a process of its own ---- */

struct way { /* from one descriptor to another */
	int from, to;
	size_t start, len;
	bool is_ended, is_shut;
	char data[CHUNK];
};

static short wanted(const struct way *way)
{
	return way->is_shut || way->is_ended || way->len ? 0 : POLLIN;
}

/* -1: broken. */
static int move(struct way *way)
{
	ssize_t done;
	if (!way->len && !way->is_ended) {
		done = recv(way->from, way->data, sizeof way->data, MSG_DONTWAIT);
		if (done < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		way->is_ended = done == 0;
		way->start = 0;
		way->len = done > 0 ? (size_t)done : 0;
	}
	if (way->len) {
		done = send(way->to, way->data + way->start, way->len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (done < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		way->start += done > 0 ? (size_t)done : 0;
		way->len -= done > 0 ? (size_t)done : 0;
	}
	if (way->is_ended && !way->len && !way->is_shut) {
		way->is_shut = true;
		shutdown(way->to, SHUT_WR);
	}
	return 0;
}

static void relay(int outside, int daemon, struct str early)
{
	static struct way ways[2];
	const struct linger at_once = { .l_onoff = 1 };
	ways[0].from = ways[1].to = outside;
	ways[0].to = ways[1].from = daemon;
	while (early.len) { /* at most what was read with the daemon's answer */
		size_t len = early.len < CHUNK ? early.len : CHUNK;
		if (fd_write_full(outside, early.data, len) < 0)
			return;
		early = (struct str){ early.data + len, early.len - len };
	}
	while (!ways[0].is_shut || !ways[1].is_shut) {
		struct pollfd polls[2];
		for (int i = 0; i < 2; i++) {
			polls[i].fd = ways[i].from;
			polls[i].events = (short)(wanted(&ways[i]) | (ways[!i].len ? POLLOUT : 0));
			/* A side that is waited for in neither way would be reported again and
			 * again when it hangs up. */
			if (!polls[i].events)
				polls[i].fd = -1;
		}
		if (poll(polls, 2, -1) < 0 && errno != EINTR)
			break;
		if (move(&ways[0]) || move(&ways[1])) {
			setsockopt(outside, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
			break;
		}
	}
}

static int serve(struct command *command, const char *path, int outside)
{
	auto_arena struct arena arena = { 0 };
	struct client client = { .socket = -1 };
	struct str early;
	struct error err;
	int failed = client_connect(&client, command->remote.host, &err);
	if (!failed) {
		failed = client_upgrade(&client, path, "carrel-tcp", &arena, &early, &err);
		if (!failed)
			relay(outside, client.socket, early);
		client_done(&client);
	}
	if (!failed)
		return 0;
	if (err.code == ERR_UNAVAILABLE || err.code == ERR_CONFLICT)
		error_hint(&err, "carrel port %s lists what listens", command->operands.items[0]);
	return cli_fail(&err, false, NULL);
}

/* Reaps the connections that have ended; waits for one when there are many. */
static void reap(unsigned *count)
{
	while (*count && waitpid(-1, NULL, *count < CONNECTIONS_MAX ? WNOHANG : 0) > 0)
		--*count;
}

static int accept_all(struct command *command, const char *path, int listener, struct error *err)
{
	unsigned count = 0;
	for (;;) {
		struct child child = CHILD_NONE;
		reap(&count);
		auto_close int outside = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (outside < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (outside < 0)
			return fail_errno(err, "accept a connection");
		if (child_fork(&child, 0, SIGTERM, err))
			return -1;
		if (child.pid == 0) {
			close(listener);
			_exit(serve(command, path, outside));
		}
		count++;
	}
}

static int print_listening(
	struct command *command, const char *shown, uint16_t port, struct error *err)
{
	const char *name = command->operands.items[0];
	auto_buf struct buf out = buf_empty(4096);
	if (command->json) {
		struct json j = json_to(&out, false);
		json_object(&j, NULL);
		json_text(&j, "listen", shown);
		json_text(&j, "workspace", name);
		json_u64(&j, "port", port);
		json_end(&j);
		buf_char(&out, '\n');
	} else
		buf_printf(&out, "%s leads to port %u of %s\n", shown, port, name);
	return cli_print(&out, err);
}

static int run(struct command *command, struct error *err)
{
	const char *name = command->operands.items[0], *at = command->options.listen;
	struct remote *remote = &command->remote;
	union inet_address address;
	char shown[INET_ADDRESS_TEXT_SIZE];
	uint16_t port;
	auto_close int listener = -1;
	if (command->operands.count < 2 && at)
		return fail(err, ERR_INVALID, "--listen needs a PORT of the workspace");
	if (command->operands.count < 2)
		return list(command, err);
	if (read_port(command->operands.items[1], &port, err) ||
		read_listen(at ? at : arena_printf(&command->arena, ":%u", port), &address, err))
		return -1;
	/* The workspace must be there; what listens in it may come and go. */
	if (remote_call(
		    remote, "GET", remote_workspace_path(remote, name, "/ports"), NULL, NULL, err))
		return -1;
	remote_close(remote);
	if (open_listener(&address, &listener, shown, err) ||
		print_listening(command, shown, port, err))
		return -1;
	const char *path = remote_workspace_path(
		remote, name, arena_printf(&command->arena, "/ports/%u/", port));
	return accept_all(command, path, listener, err);
}

static const struct arg_option table[] = {
	{ 0, "listen", ARG_TEXT, AT(listen), "ADDR:PORT",
		"where to listen on this host (default: 127.0.0.1 and the same port; :0 takes a "
		"free port)" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_port = {
	.command = "port",
	.summary = "list ports that listen in a workspace, or reach one from this host",
	.group = GROUP_EVERYDAY,
	.usage = "NAME [PORT] [options]",
	.about = "Without PORT, lists the TCP ports that listen in a workspace. With PORT, listens "
		 "on this host and relays every connection to that port of the workspace, until "
		 "Ctrl-C. Other hosts reach it only if --listen names an address of this host that "
		 "they reach.",
	ARG_TABLE(table),
	.examples = "  carrel exec -d demo -- python3 -m http.server 8000\n"
		    "  carrel port demo\n"
		    "  carrel port demo 8000 --listen :0\n",
	.run = run,
};
