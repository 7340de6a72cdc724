/* probe.h -- one health check of a server in a sandbox: connected to inside, asked by HTTP or by
 * gRPC, and judged. Private to deployments. */
#pragma once
#include "base/buf.h"
#include "core/workspaces/ports.h"
#include "services/waits.h"

struct probe {
	/* Set by the caller. */
	struct core *core;
	struct bell *bell;   /* of the job that checks */
	const bool *is_over; /* the server has ended: who sets it rings */
	uint16_t port;
	const char *health; /* as model/agents/apkg.h; NULL: any answer */
	bool is_grpc;
	/* private */
	uint64_t deadline_ms;
	struct port_call *connecting;
	struct error refusal;
	int fd;
	uint32_t events;
	struct buf out, in;
};
/* Waits for the answer, at most some seconds. 0: healthy. */
int probe_run(struct probe *probe, struct core_workspace *w, struct error *err);
