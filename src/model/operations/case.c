/* Operations on eval cases, and cells: runs of a case. */
#include "model/agents/case.h"
#include "model/operations/operation.h"

static const struct operation operations[] = {
	{ "GET", "/v1/cases", "listCases", "case ls", VERB_CASE_LIST, .summary = "List eval cases",
		.more = "Newest first.", PAGES, LISTED("Cases", case_record, "Newest first.") },
	{ "POST", "/v1/cases", "createCase", "case run", VERB_CASE_CREATE,
		.summary = "Create an eval case, or only check it",
		.more = "`yaml` is the text of its file (carrel-case(1) describes it). The "
			"answer's `workspace` takes the source, at its root. A case that nobody "
			"uses for an hour is removed, unless it has `keep`.",
		.flags = ROUTE_KEYED | ROUTE_LOCATION,
		TAKES(case_wanted_record, struct case_wanted),
		.answers = { { 200, TYPE_JSON, &case_record,
				     "With check: it is valid. Nothing was made." },
			{ 201, TYPE_JSON, &case_record,
				"It was created. Its source is sent to its workspace, before its "
				"first cell: PUT /v1/workspaces/{id}/archive." } },
		MAKES },
	{ "GET", "/v1/cases/{id}", "getCase", NULL, VERB_CASE_GET, .summary = "Show an eval case",
		.more = "With what its preparation printed.", SHOWN(case_record, "The case.") },
	{ "DELETE", "/v1/cases/{id}", "removeCase", "case rm", VERB_CASE_REMOVE,
		.summary = "Remove an eval case with its workspaces, and cancel its cells",
		.more = "Answers when its workspaces are gone.", REMOVED, CHANGES },
	{ "GET", "/v1/cases/{id}/cells", "listCells", NULL, VERB_CELL_GET,
		.summary = "List the cells of a case",
		.more = "`GET /v1/cells/{id}` has the steps and the diff of one.", PAGES,
		LISTED("Cells", cell_record, "Newest first, without their steps and diffs.") },
	{ "POST", "/v1/cases/{id}/cells", "startCell", NULL, VERB_CELL_START,
		.summary = "Run a case once, in a cell of its own",
		.more = "The first cell has the case prepared: its packages, the editable install, "
			"setup. Each cell then is a fork of that state: harness, diff, graders. As "
			"many run at once as are started. Events `cell.passed`, `cell.failed` and "
			"`cell.canceled` tell the end.",
		.flags = ROUTE_KEYED | ROUTE_LOCATION | ROUTE_OPTIONAL,
		TAKES(cell_wanted_record, struct cell_wanted),
		ANSWER(201, TYPE_JSON, &cell_record,
			"It was created, and runs as soon as its case is prepared. Events tell its "
			"states."),
		MAKES },
	{ "GET", "/v1/cells/{id}", "getCell", NULL, VERB_CELL_GET, .summary = "Show a cell",
		.more = "What its commands printed is kept to 64 KiB each, its diff to 96 KiB.",
		SHOWN(cell_record, "The cell.") },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "Case", "{'id':'c1s25urtifvfsii9o731','name':'fix-slug','state':'created',"
		  "'description':null,'source':'../site','workspace':'n5fda10efceptk5gu44i',"
		  "'snapshot':null,'keep':false,'ttl_ms':3600000,'reason':null,'error':null,"
		  "'steps':[],'variables':{},'created_at':'2026-01-02T10:00:00.000Z',"
		  "'last_used_at':'2026-01-02T10:00:00.000Z','cells':0}" },
	{ "CaseWanted", "{'yaml':'id: fix-slug\\nsource: ../site\\nharness: python3 "
			"fix.py\\ngraders:\\n- {type: pytest}\\n','file':'fix-slug.yaml'}" },
	{ "Cell",
		"{'id':'d8v0e2d1s9k4m7q3b6n5','case':'c1s25urtifvfsii9o731','state':'passed',"
		"'case_name':'fix-slug','repeat':1,'reason':null,'error':null,'workspace':null,"
		"'duration_ms':512,'steps':[{'type':'harness','name':'harness',"
		"'command':'python3 fix.py','passed':true,'exit_code':0,'reason':'exited',"
		"'duration_ms':80,'output':'','truncated':false}],'diff':'',"
		"'diff_truncated':false,'variables':{'PATH':'/env/bin:/usr/bin:/bin',"
		"'CARREL_CASE':'fix-slug'},'created_at':'2026-01-02T10:00:00.000Z',"
		"'started_at':'2026-01-02T10:00:00.100Z','ended_at':'2026-01-02T10:00:00.612Z'}" },
	{ "CellWanted", "{'repeat':2}" },
	{ 0 },
};

const struct operation_table case_operations = { "cases", operations, examples };
