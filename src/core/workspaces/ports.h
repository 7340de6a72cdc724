/* ports.h -- what listens in the sandbox of a workspace, and connections to it. carrel-init
 * connects inside and hands the socket out: nothing is routed, and a port is reached by the name of
 * its workspace alone.
 * 1. No sandbox is started for a connection: what listened has ended with the last one.
 * 2. A socket that came from inside is believed to be nothing more than a TCP socket. Its flags may
 * be changed from inside at any time: whoever uses it must not rely on O_NONBLOCK. */
#pragma once
#include "core/core.h"
#include "model/network/port.h"

/* What listens, by port; none without a sandbox. The texts live in the arena. */
core_verb int core_ports(const struct request *request, struct core_workspace *w,
	struct arena *arena, port_list *ports, struct error *err);

struct port_call;
/* fd: connected, yours to close; or *err: ERR_UNAVAILABLE, nothing listens there, or the sandbox
 * has ended. */
typedef void port_fn(void *ctx, int fd, const struct error *err);
/* Connects to the port on 127.0.0.1, else on ::1, within seconds. *call is valid until done is
 * called. ERR_CONFLICT: the workspace has no sandbox. ERR_LIMIT: too many are under way. */
core_verb int core_connect_port(const struct request *request, struct core_workspace *w,
	uint16_t port, port_fn *done, void *ctx, struct port_call **call, struct error *err);
void port_cancel(struct port_call *call); /* done is not called */

/* ---- for init_connection.c, exec_restore.c, core.c ---- */
/* The bit that marks an id of init's messages as that of a connection. */
#define PORT_ID (1ull << 62)
struct init_reply;
/* false: the reply is impossible. Takes fd, or -1. */
bool ports_receive(struct core_workspace *w, const struct init_reply *reply, int fd);
/* Sockets of carrel's that listen in the sandbox: they are not listed. */
void ports_leave_out(struct core_workspace *w, const int *fds, size_t count);
void ports_gone(struct core_workspace *w); /* the sandbox has ended */
void ports_free(struct core_workspace *w); /* without calling any callback */
