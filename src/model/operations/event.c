/* Operations on what happens, as it happens, and the audit log. */
#include "model/operations/takes.h"
#include "model/records/rows.h"

#define AFTER_ROW                                                                                  \
	{                                                                                          \
		"after", FIELD_INTEGER, offsetof(struct events_query, after),                      \
			"begin after the event of this id, as far back as events are kept; 0: "    \
			"with the "                                                                \
			"oldest that is kept. Only new ones when not given",                       \
			.has = FIELD_HAS(struct events_query, has_after)                           \
	}
static const struct field after_row[] = { AFTER_ROW };
static const struct field events_query_rows[] = {
	ROW_OF(events_query, TEXT, workspace,
		"only events of this workspace: id, name or context_id", .least = 1),
	AFTER_ROW,
};

static const struct field audit_query_rows[] = {
	ROW_OF(audit_query, TEXT, since,
		"only lines from this time on: RFC 3339, or a duration before now (1h)",
		.least = 1),
	ROW_OF(audit_query, TEXT, until, "and up to this one", .least = 1),
	ROW_OF(audit_query, TEXT, workspace,
		"only lines about this workspace, which may be gone: id or name", .least = 1,
		.most = 100),
	ROW_OF(audit_query, TEXT, type,
		"only lines of this type (exec.start), or of all that begin with it (exec)",
		.least = 1, .most = 60),
	ROW_OF(audit_query, BOOLEAN, follow, "go on with lines as they are written"),
};

static const struct operation operations[] = {
	{ "GET", WORKSPACE "/events", "workspaceEvents", NULL, VERB_EVENT_LISTEN,
		.summary = "Follow events of a workspace",
		.more = "As /v1/events, of one workspace; the stream ends after workspace.deleted.",
		.flags = ROUTE_EVENTS | ROUTE_WORKSPACE, QUERY(after_row, struct events_query),
		ANSWER(200, TYPE_EVENTS, &event_record,
			"A stream of events; the data of each is an Event.") },
	{ "GET", "/v1/events", "events", "events", VERB_EVENT_LISTEN, .summary = "Follow events",
		.more = "New events as they come. With `after`, or the header Last-Event-ID, those "
			"after that id come first, as far back as they are kept (4096); `after=0` "
			"is all that are kept. Comments are sent every 15 s.",
		.flags = ROUTE_EVENTS, QUERY(events_query_rows, struct events_query),
		.errors = { 404 },
		ANSWER(200, TYPE_EVENTS, &event_record,
			"A stream of events; the data of each is an Event.") },
	{ "GET", "/v1/audit", "audit", "audit", VERB_AUDIT_READ, .summary = "Read the audit log",
		.more = "Every line has the hash of the line before it: `carrel audit verify` "
			"checks the chain. Needs the scope admin or review.",
		.flags = ROUTE_EVENTS, QUERY(audit_query_rows, struct audit_query),
		.answers = { { 200, "application/x-ndjson", &audit_line_record,
				     "Lines of the log, oldest first: each is an AuditLine." },
			{ 200, TYPE_EVENTS, &audit_line_record,
				"The same as events `audit`, whose id is the seq." } } },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "Event", "{'type':'workspace.created','id':1794856051601,"
		   "'time':'2026-01-02T10:00:00.000Z','workspace':'n5fda10efceptk5gu44i',"
		   "'name':'demo'}" },
	{ "AuditLine", "{'seq':2,'time':'2026-01-02T10:00:00.000Z','type':'workspace.create',"
		       "'principal':'uid 1000','workspace':'n5fda10efceptk5gu44i',"
		       "'workspace_name':'demo','request_id':'am6av8hc000000000002','door':'rest',"
		       "'data':{},'prev':'3181db74','hash':'3a53d862'}" },
	{ "Event/stream", "id: 1794856051601\n"
			  "event: workspace.created\n"
			  "data: {'id':1794856051601,'type':'workspace.created',"
			  "'time':'2026-01-02T10:00:00.000Z','workspace':'n5fda10efceptk5gu44i',"
			  "'name':'demo'}\n"
			  "\n" },
	{ "AuditLine/stream",
		"id: 2\n"
		"event: audit\n"
		"data: {'seq':2,'time':'2026-01-02T10:00:00.000Z','type':'workspace.create',"
		"'principal':'uid 1000','workspace':'n5fda10efceptk5gu44i',"
		"'workspace_name':'demo','request_id':'am6av8hc000000000002','door':'rest',"
		"'data':{},'prev':'3181db74','hash':'3a53d862'}\n"
		"\n" },
	{ 0 },
};

const struct operation_table event_operations = { "events", operations, examples };
