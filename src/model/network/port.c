#include "model/network/port.h"

static const struct field rows[] = {
	{ "port", FIELD_INTEGER, offsetof(struct port, port), .least = 1, .most = 65535,
		.head = "PORT", .column = 1 },
	{ "address", FIELD_TEXT, offsetof(struct port, address),
		"inside; a port of another address than loopback or all can't be reached",
		.head = "ADDRESS", .column = 2 },
};
const struct record port_record = { "Port", "A TCP port that listens in a workspace.",
	RECORD_ROWS(rows), FIELD_OUT };
