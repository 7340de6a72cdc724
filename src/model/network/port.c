#include "model/network/port.h"
#include "model/records/rows.h"

static const struct field rows[] = {
	ROW_OF(port, INTEGER, port, .least = 1, .most = 65535, .head = "PORT", .column = 1),
	ROW_OF(port, TEXT, address,
		"inside; a port of another address than loopback or all can't be reached",
		.head = "ADDRESS", .column = 2),
};
const struct record port_record = { "Port", "A TCP port that listens in a workspace.",
	RECORD_ROWS(rows), FIELD_OUT };
