/* probe.h -- one health check of a server in a sandbox: connected to inside, asked by HTTP or by
 * gRPC, and judged. Private to deployments. */
#pragma once
#include "base/buf.h"
#include "core/workspaces/ports.h"

struct probe {
	/* Set by the caller. */
	struct core *core;
	uint16_t port;
	const char *health; /* as model/agents/apkg.h; NULL: any answer */
	bool is_grpc;
	/* Once, from the loop; err NULL: healthy. */
	void (*done)(void *ctx, const struct error *err);
	void *ctx;
	/* private */
	bool is_running;
	struct port_call *connecting;
	struct loop_timer *timer;
	int fd;
	struct buf out, in;
};
/* Not while it runs. */
void probe_start(struct probe *probe, struct core_workspace *w);
void probe_stop(struct probe *probe); /* done isn't called */
