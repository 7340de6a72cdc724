/* Operations on the daemon itself. */
#include "model/nouns/approval.h"
#include "model/operations/operation.h"

static const struct field status_rows[] = { TEXT("status", NULL) };
static const struct record status_record = { "Health", NULL, RECORD_ROWS(status_rows), FIELD_OUT };

static const struct record any_record = { "Document", "An OpenAPI document.", NULL, 0, FIELD_OUT };

const struct field_choice problem_codes[] = { { "invalid", ERR_INVALID },
	{ "not_found", ERR_NOT_FOUND }, { "conflict", ERR_CONFLICT }, { "denied", ERR_DENIED },
	{ "limit", ERR_LIMIT }, { "disk_full", ERR_DISK_FULL }, { "unavailable", ERR_UNAVAILABLE },
	{ "corrupt", ERR_CORRUPT }, { "failed", ERR_FAILED },
	{ "command_not_found", ERR_COMMAND_NOT_FOUND }, { "not_executable", ERR_NOT_EXECUTABLE },
	{ "canceled", ERR_CANCELED }, { "unauthenticated", ERR_UNAUTHENTICATED },
	{ "approval_required", ERR_APPROVAL_REQUIRED }, { 0 } };

static const struct field problem_rows[] = {
	TEXT("type", "about:blank: the code says more"),
	TEXT("title", "of the status"),
	COUNT("status", "as in the head of the response"),
	{ "code", FIELD_CHOICE, 0, "what went wrong; stable", .choices = problem_codes },
	TEXT("detail", "what failed, on which object, and why: for people"),
	TEXT("hint", "how to correct it: often a route", FIELD_NULLABLE),
	TEXT("request_id", "as in the logs of the daemon"),
	COUNT("exit_code", "of a command that wasn't started: 126", FIELD_OPTIONAL),
	{ "trail", FIELD_OBJECTS, 0, "of denied and approval_required: how the policy judged it",
		FIELD_OPTIONAL, .object = &policy_step_record },
	{ "changes", FIELD_OBJECTS, 0, "of changes that are conflicts", FIELD_OPTIONAL,
		.object = &applied_change_record },
};
const struct record problem_record = { "Problem", "RFC 9457.", RECORD_ROWS(problem_rows),
	FIELD_OUT };

static const struct operation operations[] = {
	{ "GET", "/healthz", "healthz", NULL, VERB_NONE, .summary = "Whether the daemon answers",
		.more = "Answers as long as the process runs. Needs no state.",
		.flags = ROUTE_BARE | ROUTE_OPEN, SHOWN(status_record, "The daemon works.") },
	{ "GET", "/readyz", "readyz", NULL, VERB_NONE, .summary = "Whether the daemon accepts work",
		.more = "503 while the daemon starts, stops, or can't write its state. For load "
			"balancers.",
		.flags = ROUTE_BARE | ROUTE_OPEN, SHOWN(status_record, "The daemon works.") },
	{ "GET", "/metrics", "metrics", NULL, VERB_DAEMON_MEASURE,
		.summary = "Metrics in Prometheus' text format",
		.more = "Counters and gauges of the daemon, for Prometheus.", .flags = ROUTE_BARE,
		ANSWER(200, "text/plain; version=0.0.4; charset=utf-8", NULL, "Prometheus text.") },
	{ "GET", "/openapi.json", "openapi", NULL, VERB_NONE, .summary = "This document",
		.more = "OpenAPI 3.1, printed from the tables that requests are read by.",
		.flags = ROUTE_BARE | ROUTE_OPEN, SHOWN(any_record, "This document.") },
	{ "GET", "/docs", "docs", NULL, VERB_NONE, .summary = "This reference, for people",
		.more = "One HTML page without external resources, drawn from /openapi.json, which "
			"is part of it. Its Content-Security-Policy allows its own script and "
			"style alone.",
		.flags = ROUTE_BARE | ROUTE_OPEN,
		ANSWER(200, "text/html; charset=utf-8", NULL, "A page.") },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "Health", "{'status':'ok'}" },
	{ "Document", "{'openapi':'3.1.0'}" },
	{ "Problem", "{'type':'about:blank','title':'Not Found','status':404,'code':'not_found',"
		     "'detail':'no workspace demo','hint':'GET /v1/workspaces lists them',"
		     "'request_id':'am6av8hc000000000002'}" },
	{ 0 },
};

const struct operation_table daemon_operations = { "daemon", operations, examples };
