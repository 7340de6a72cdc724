/* Operations on commands in workspaces. */
#include "model/nouns/approval.h"
#include "model/nouns/exec.h"
#include "model/nouns/signals.h"
#include "model/operations/takes.h"
#include "model/records/rows.h"

static const struct field_choice told_reasons[] = { { "output_limit", REASON_OUTPUT_LIMIT },
	{ 0 } };

static const struct field signal_rows[] = {
	ROW_OF(signal_body, NUMBERED, signal, "its name or number", FIELD_REQUIRED, .least = 1,
		.most = 64, .choices = signal_choices),
	ROW_OF(signal_body, CHOICE, reason,
		"why the exec ends; only with KILL, from a client that passed the streams and "
		"counts their output",
		.choices = told_reasons),
};
static const struct record signal_record = { "Signal", NULL, RECORD_ROWS(signal_rows), FIELD_IN };

static const struct field resize_rows[] = {
	ROW_OF(resize_body, INTEGER, rows, NULL, FIELD_REQUIRED, .least = 1, .most = 65535),
	ROW_OF(resize_body, INTEGER, columns, NULL, FIELD_REQUIRED, .least = 1, .most = 65535),
};
static const struct record resize_record = { "Size", "Of a terminal.", RECORD_ROWS(resize_rows),
	FIELD_IN };

static const struct field exec_query_rows[] = {
	ROW_OF(exec_query, BOOLEAN, wait, "respond when the exec has ended"),
};
static const struct field_choice streams[] = { { "stdout", 1 }, { "stderr", 2 }, { 0 } };

static const struct field output_query_rows[] = {
	ROW_OF(output_query, INTEGER, offset, "the first byte to return"),
	ROW_OF(output_query, CHOICE, stream, "stdout when not given; both as events",
		.choices = streams),
	ROW_OF(output_query, BOOLEAN, follow, "follow until the exec has ended"),
};
static const struct field attach_query_rows[] = {
	ROW_OF(attach_query, INTEGER, offset,
		"the first byte of stdout, or of a terminal, to send"),
	ROW_OF(attach_query, INTEGER, stderr_offset, "the first byte of stderr to send"),
};
static const struct field stdin_query_rows[] = {
	ROW_OF(stdin_query, BOOLEAN, eof, "close stdin after this (a terminal gets ^D)"),
};
static const struct field approval_required_rows[] = {
	TEXT("type", "about:blank"),
	TEXT("title", "of the status"),
	COUNT("status", "202"),
	{ "code", FIELD_CHOICE, 0, NULL, .names = NAMES("approval_required") },
	TEXT("detail", "for people"),
	TEXT("hint", "the route of the approval", FIELD_NULLABLE),
	TEXT("request_id", "as in the logs of the daemon"),
	COUNT("exit_code", "126"),
	TEXT("exec", "id of the exec that waits"),
	{ "approval", FIELD_OBJECT, .object = &approval_record },
};
static const struct record approval_required_record = { "ApprovalRequired", NULL,
	RECORD_ROWS(approval_required_rows), FIELD_OUT };

static const struct operation operations[] = {
	{ "POST", WORKSPACE "/exec", "exec", "exec", VERB_EXEC_START, .summary = "Run a command",
		.more = "Either `argv`, or `command` for /bin/sh. The answer depends on Accept: "
			"application/json (the default) is the result after the end; "
			"text/event-stream is the output as it comes. With `background` the answer "
			"is the exec, which continues without the client. Without `timeout`, and "
			"without a limit of the workspace, a foreground exec ends with reason "
			"`timeout` after 300 s; one in the background or with `tty` has no time "
			"limit. A command that doesn't exist, or can't be executed, has a result "
			"like any other: exit_code 127 or 126, and the cause in stderr. "
			"`exit_code` is the command's own, or 124 (timeout, cpu_limit), 137 "
			"(memory_limit, output_limit, disk_limit), 130 (canceled, daemon_lost: a "
			"background exec that ended with a daemon that was killed), 126 (denied), "
			"128+n (signal n).",
		.flags = ROUTE_KEYED | ROUTE_LOCATION, TAKES(exec_spec_record, struct exec_spec),
		.answers = { { 200, TYPE_JSON, &result_record,
				     "The command has ended. The daemon keeps at most 128 MB of "
				     "captured output of all execs together (carrel serve "
				     "--captured-output); an exec that exceeds it ends with reason "
				     "output_limit." },
			{ 200, TYPE_EVENTS, &exec_event_record,
				"As text/event-stream: events, whose data are ExecEvents." },
			{ 201, TYPE_JSON, &exec_fields,
				"The command runs in the background, or waits for an approval "
				"there." },
			{ 202, TYPE_JSON, &approval_required_record,
				"With approval: return. The command waits for an approval in the "
				"background, also if background wasn't set: without input but that "
				"of stdin. It runs when it is approved: GET /v1/execs/{id}, and "
				"its output. Location is the approval." } },
		.errors = { 406, 409, 429, 507 } },
	{ "GET", WORKSPACE "/exec", "execSocket", NULL, VERB_EXEC_START,
		.summary = "Run a command interactively, on a WebSocket",
		.more = "Stdin, stdout, stderr, the size of the terminal and signals as messages: "
			"docs/websocket.md has them all, and an example for a browser. The exec "
			"ends with reason `canceled` when its client goes. 426 without a WebSocket "
			"handshake.",
		.flags = ROUTE_WORKSPACE,
		ANSWER(101, NULL, NULL,
			"The connection is a WebSocket of the subprotocol carrel.exec.v1, which "
			"Sec-WebSocket-Protocol has to offer; a browser offers its token as "
			"carrel.bearer.TOKEN besides. The first message to the daemon is "
			"{\"type\": \"start\"} with the members of ExecWanted. docs/websocket.md "
			"describes all messages."),
		.errors = { 426, 429 } },
	{ "GET", WORKSPACE "/execs", "listExecs", NULL, VERB_EXEC_LIST,
		.summary = "List the execs of a workspace",
		.more = "Those that run, and background ones that have ended.",
		.flags = ROUTE_WORKSPACE, PAGES, LISTED("Execs", exec_fields, "Newest first.") },
	{ "GET", "/v1/execs", "listAllExecs", "ps", VERB_EXEC_LIST, .summary = "List execs",
		.more = "Of all workspaces.", PAGES,
		LISTED("Execs", exec_fields, "Newest first.") },
	{ "GET", EXEC, "getExec", "wait", VERB_EXEC_GET,
		.summary = "Show an exec, or wait for its end",
		.more = "With `wait` the answer comes when the exec has ended.",
		QUERY(exec_query_rows, struct exec_query), SHOWN(exec_fields, "The exec.") },
	{ "GET", EXEC "/output", "getOutput", "logs", VERB_EXEC_OUTPUT,
		.summary = "Read the output of a background exec",
		.more = "Bytes of one stream from `offset` on; the header Carrel-Next-Offset is "
			"the offset to continue at. Of both streams together the last 64 MB "
			"(`limits.output` of the exec) are kept: beyond that the oldest part is "
			"dropped, offsets keep their meaning, and the header Carrel-First-Offset "
			"is the offset of the first byte of the answer. As text/event-stream, a "
			"gap is the event `dropped`.",
		QUERY(output_query_rows, struct output_query),
		.answers = { { 200, TYPE_BYTES, NULL, "The bytes from the offset." },
			{ 200, TYPE_EVENTS, &output_event_record,
				"As text/event-stream: events of both streams, whose data are "
				"OutputEvents, then exit with the exec." } },
		.errors = { 416 } },
	{ "GET", EXEC "/attach", "attachExec", "attach", VERB_EXEC_OUTPUT,
		.summary = "Attach to a background exec, on a WebSocket",
		.more = "The output from `offset` on, then as it comes; stdin, the size of the "
			"terminal and signals go to the exec. It continues when the client goes, "
			"and any number of clients may be attached. 409 for an exec in the "
			"foreground, 426 without a WebSocket handshake.",
		QUERY(attach_query_rows, struct attach_query),
		ANSWER(101, NULL, NULL,
			"The connection is a WebSocket of the subprotocol carrel.exec.v1, with the "
			"messages of GET /v1/workspaces/{id}/exec but start. The exec goes on when "
			"the client leaves."),
		.errors = { 409, 416, 426, 429 } },
	{ "POST", EXEC "/signal", "signalExec", "kill", VERB_EXEC_SIGNAL,
		.summary = "Send a signal to an exec",
		.more = "To all processes of its process group.",
		TAKES(signal_record, struct signal_body), DONE, .errors = { 409 } },
	{ "POST", EXEC "/stdin", "writeStdin", NULL, VERB_EXEC_STDIN,
		.summary = "Write to the stdin of an exec",
		.more = "The body goes to the stdin of an exec that was started with `open_stdin`. "
			"The answer comes when the command's pipe has taken all of it.",
		.flags = ROUTE_STREAMED, QUERY(stdin_query_rows, struct stdin_query),
		.takes_type = TYPE_BYTES, DONE, .errors = { 409 } },
	{ "POST", EXEC "/resize", "resizeTerminal", NULL, VERB_EXEC_RESIZE,
		.summary = "Change the terminal size of an exec",
		.more = "Of an exec with `tty`; the command gets SIGWINCH.",
		TAKES(resize_record, struct resize_body), DONE, .errors = { 409 } },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "ExecWanted",
		"{'argv':['python3','-c','print(6 * 7)'],'cwd':'data','env':{'MODE':'fast'},"
		"'timeout':30}" },
	{ "Result", "{'id':'6d4movne3jo59dg146fb','exit_code':0,'signal':null,'reason':'exited',"
		    "'stdout':'42\\n','stderr':'','encoding':'utf-8','truncated':false,"
		    "'duration_ms':12,'cpu_ms':9,'max_rss_bytes':9437184,'limits':'cgroup-v2'}" },
	{ "Exec", "{'id':'prfv370bg4v8fhatc0c8','workspace':'n5fda10efceptk5gu44i','state':'ended',"
		  "'argv':['python3','train.py'],'cwd':'/workspace','background':true,'tty':false,"
		  "'started_at':'2026-01-02T10:00:00.000Z','ended_at':'2026-01-02T10:00:02.500Z',"
		  "'exit_code':0,'signal':null,'reason':'exited','output_bytes':1841,"
		  "'output_dropped_bytes':0,'duration_ms':2500,'cpu_ms':2310,"
		  "'max_rss_bytes':48234496,'error':null}" },
	{ "Signal", "{'signal':'TERM'}" },
	{ "Size", "{'rows':40,'columns':120}" },
	{ "ExecEvent", "{'type':'stdout','data':'42\\n','encoding':'utf-8'}" },
	{ "OutputEvent", "{'type':'stdout','data':'epoch 1\\n','encoding':'utf-8'}" },
	{ "ExecEvent/stream",
		"event: start\n"
		"data: {'type':'start','id':'6d4movne3jo59dg146fb'}\n"
		"\nevent: stdout\n"
		"data: {'type':'stdout','data':'42\\n','encoding':'utf-8'}\n"
		"\nevent: exit\n"
		"data: {'type':'exit','id':'6d4movne3jo59dg146fb','exit_code':0,'signal':null,"
		"'reason':'exited','stdout':'','stderr':'','encoding':'utf-8','truncated':false,"
		"'duration_ms':12,'cpu_ms':9,'max_rss_bytes':9437184,'limits':'cgroup-v2'}\n"
		"\n" },
	{ "OutputEvent/stream",
		"event: stdout\n"
		"data: {'type':'stdout','data':'epoch 1\\n','encoding':'utf-8'}\n"
		"\nevent: exit\n"
		"data: {'type':'exit','id':'prfv370bg4v8fhatc0c8',"
		"'workspace':'n5fda10efceptk5gu44i','state':'ended','argv':['python3',"
		"'train.py'],'cwd':'/workspace','background':true,'tty':false,"
		"'started_at':'2026-01-02T10:00:00.000Z','ended_at':'2026-01-02T10:00:02.500Z',"
		"'exit_code':0,'signal':null,'reason':'exited','output_bytes':1841,"
		"'output_dropped_bytes':0,'duration_ms':2500,'cpu_ms':2310,"
		"'max_rss_bytes':48234496,'error':null}\n"
		"\n" },
	{ 0 },
};

const struct operation_table exec_operations = { "execs", operations, examples };
