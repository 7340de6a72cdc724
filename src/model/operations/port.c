/* Operations on TCP ports of workspaces. */
#include "model/network/port.h"
#include "model/operations/operation.h"

static const struct operation operations[] = {
	{ "GET", WORKSPACE "/ports", "listPorts", "port", VERB_PORT_LIST,
		.summary = "List the TCP ports that listen in a workspace",
		.more = "Nothing is listed without a sandbox.", PAGES,
		LISTED("Ports", port_record, "By port. None without a sandbox.") },
	{ "*", WORKSPACE "/ports/{port}/{path}", "forwardPort", NULL, VERB_PORT_CONNECT,
		.summary = "Forward a request to a server in a workspace",
		.more = "Method, headers, body and answer pass through, and so do upgrades such as "
			"WebSocket. The credential of the client is not passed on.",
		FORWARDED },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "Port", "{'port':8000,'address':'127.0.0.1'}" },
	{ 0 },
};

const struct operation_table port_operations = { "ports", operations, examples };
