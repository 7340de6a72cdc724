/* port.h -- a TCP port that listens in a sandbox, as it is shown. Pure. */
#pragma once
#include "model/records/record.h"

struct port {
	uint64_t port;
	const char *address; /* "127.0.0.1", "0.0.0.0", "::" */
};
extern const struct record port_record;
typedef VEC(struct port) port_list;
