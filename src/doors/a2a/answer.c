/* Answers and errors of both bindings. */
#include "doors/a2a/a2a.h"

#define TYPE "application/json"

static const struct fault {
	int code, status;
	const char *name, *reason;
} faults[] = {
	{ A2A_PARSE, 400, "INVALID_ARGUMENT", "PARSE_ERROR" },
	{ A2A_REQUEST, 400, "INVALID_ARGUMENT", "INVALID_REQUEST" },
	{ A2A_METHOD, 404, "NOT_FOUND", "METHOD_NOT_FOUND" },
	{ A2A_PARAMS, 400, "INVALID_ARGUMENT", "INVALID_PARAMS" },
	{ A2A_LIMIT, 429, "RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED" },
	{ A2A_NO_TASK, 404, "NOT_FOUND", "TASK_NOT_FOUND" },
	{ A2A_NOT_CANCELABLE, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE" },
	{ A2A_NO_PUSH, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED" },
	{ A2A_UNSUPPORTED, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION" },
	{ A2A_CONTENT, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED" },
	{ A2A_NO_EXTENDED_CARD, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED" },
	{ A2A_VERSION, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED" },
	{ A2A_INTERNAL, 500, "INTERNAL", "INTERNAL_ERROR" },
};

static const struct fault *find(int code)
{
	size_t i = 0;
	while (faults[i].code != code && faults[i].code != A2A_INTERNAL)
		i++;
	return &faults[i];
}

static void print_info(struct json *j, const char *key, const struct fault *fault)
{
	json_array(j, key);
	json_object(j, NULL);
	json_text(j, "@type", "type.googleapis.com/google.rpc.ErrorInfo");
	json_text(j, "reason", fault->reason);
	json_text(j, "domain", "a2a-protocol.org");
	json_end(j);
	json_end(j);
}

static void print_head(struct json *j, const struct a2a *a)
{
	json_text(j, "jsonrpc", "2.0");
	json_raw(j, "id", a->id ? a->id : "null");
}

/* status: of HTTP+JSON, when it isn't that of the code. */
static void answer_fault(struct a2a *a, int code, int status, const char *message)
{
	const struct fault *fault = find(code);
	struct json *j = call_print(a->call);
	json_object(j, NULL);
	if (!a->is_http)
		print_head(j, a);
	json_object(j, "error");
	json_i64(j, "code", a->is_http ? (status ? status : fault->status) : code);
	if (a->is_http)
		json_text(j, "status", fault->name);
	json_text(j, "message", message);
	print_info(j, a->is_http ? "details" : "data", fault);
	json_end(j);
	json_end(j);
	call_send(a->call, !a->is_http ? 200 : status ? status : fault->status, NULL);
}

void a2a_fail(struct a2a *a, int code, const char *message)
{
	answer_fault(a, code, 0, message);
}

void a2a_fail_with(struct a2a *a, const struct error *err, int conflict)
{
	switch (err->code) {
	case ERR_NOT_FOUND:
		a2a_fail(a, A2A_NO_TASK, err->text);
		break;
	case ERR_INVALID:
		a2a_fail(a, A2A_PARAMS, err->text);
		break;
	case ERR_LIMIT:
		a2a_fail(a, A2A_LIMIT, err->text);
		break;
	case ERR_CONFLICT:
		a2a_fail(a, conflict, err->text);
		break;
	case ERR_DENIED:
	case ERR_UNAUTHENTICATED: /* not of the protocol, but of HTTP */
		call_problem(a->call, err);
		break;
	default:
		answer_fault(a, A2A_INTERNAL, problem_status(err->code), err->text);
	}
}

struct json *a2a_begin(struct a2a *a, const char **key)
{
	struct json *j = call_print(a->call);
	*key = a->is_http ? NULL : "result";
	if (a->is_http)
		return j;
	json_object(j, NULL);
	print_head(j, a);
	return j;
}

void a2a_send(struct a2a *a)
{
	if (!a->is_http)
		json_end(&a->call->json);
	call_send(a->call, 200, NULL);
}
