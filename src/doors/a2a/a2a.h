/* a2a.h -- the door for A2A: JSON-RPC at /a2a/{agent} and HTTP+JSON below it, as specification 1.0
 * has them; JSON-RPC also with the method names and shapes of 0.3. Private to this room.
 * 1. A request becomes a struct a2a, whichever binding it came by; answers and errors are printed
 * for that binding.
 * 2. Rights are checked by the verbs of services/agents.h. */
#pragma once
#include "doors/call.h"
#include "model/agents/a2a.h"
#include "services/agents.h"

#define A2A_DOOR "a2a" /* its name */

/* Codes of JSON-RPC and of A2A. */
enum {
	A2A_PARSE = -32700,
	A2A_REQUEST = -32600,
	A2A_METHOD = -32601,
	A2A_PARAMS = -32602,
	A2A_INTERNAL = -32603,
	A2A_LIMIT = -32000, /* not of the specification: JSON-RPC leaves it to servers */
	A2A_NO_TASK = -32001,
	A2A_NOT_CANCELABLE = -32002,
	A2A_NO_PUSH = -32003,
	A2A_UNSUPPORTED = -32004,
	A2A_CONTENT = -32005,
	A2A_NO_EXTENDED_CARD = -32007,
	A2A_VERSION = -32009,
};

struct a2a {
	struct call *call;
	struct agents *agents;
	const struct a2a_agent *agent;	 /* valid until the next turn of the loop */
	const char *name;		 /* of the agent */
	bool is_http;			 /* HTTP+JSON */
	bool is_old;			 /* shapes of 0.3 */
	const char *id;			 /* of JSON-RPC: JSON, or NULL */
	const struct json_value *params; /* or NULL */
};

/* ---- answer.c ---- */
void a2a_fail(struct a2a *a, int code, const char *message);
/* An error of a verb; conflict: the code of ERR_CONFLICT. */
void a2a_fail_with(struct a2a *a, const struct error *err, int conflict);
/* The result is printed between these two, as a value under the key that a2a_begin gave. */
struct json *a2a_begin(struct a2a *a, const char **key);
void a2a_send(struct a2a *a);

/* ---- methods.c ---- */
typedef void a2a_fn(struct a2a *a);
a2a_fn a2a_send_message, a2a_stream_message, a2a_get_task, a2a_list_tasks, a2a_cancel_task,
	a2a_subscribe;

/* ---- push.c ---- */
/* Whether the agent pushes anywhere. */
bool a2a_has_push(const struct a2a_agent *agent);
/* Answers that the agent pushes nowhere, if so. */
bool a2a_refuses_push(struct a2a *a);
a2a_fn a2a_set_push, a2a_get_push, a2a_list_pushes, a2a_delete_push;

/* ---- card.c ---- */
a2a_fn a2a_extended_card;
route_fn a2a_card, a2a_default_card;

/* ---- bindings.c ---- */
route_fn a2a_rpc, a2a_http;
