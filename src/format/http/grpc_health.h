/* grpc_health.h -- the call grpc.health.v1.Health/Check of a whole server, as the bytes of one
 * HTTP/2 connection (RFC 9113, with prior knowledge), and a reader of the answer. Pure.
 * 1. Headers are not decoded: the answer is what the message says. A server without the health
 * service ends the stream without a message. */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#define GRPC_HEALTH_MAX ((size_t)64 << 10) /* bytes of an answer that are read */

enum grpc_health {
	GRPC_HEALTH_MORE,	 /* incomplete: read more */
	GRPC_HEALTH_SERVING,	 /* the service says SERVING */
	GRPC_HEALTH_NOT_SERVING, /* the service says anything else */
	GRPC_HEALTH_NO_SERVICE,	 /* a gRPC server without the health service, or that refuses the
				    call */
};
/* Appends what the client sends. */
void grpc_health_request(struct buf *out);
/* Judges all that has come. -1, ERR_INVALID: no HTTP/2. */
int grpc_health_read(struct str bytes, enum grpc_health *health, struct error *err);
