/* Operations on tools that are tested before they are loaded. */
#include "model/agents/tool.h"
#include "model/agents/tool_spec.h"
#include "model/operations/takes.h"
#include "model/records/rows.h"

static const struct field tool_query_rows[] = {
	ROW_OF(tool_query, INTEGER, version, "when not given: the active version, else the newest",
		.least = 1, .most = UINT32_MAX),
};

static const struct operation operations[] = {
	{ "GET", "/v1/tools", "listTools", "tool ls", VERB_TOOL_LIST, .summary = "List tools",
		.more = "One item for each tool: its active version, else its newest one. Without "
			"code, tests and output.",
		PAGES, LISTED("Tools", tool_record, "Newest first.") },
	{ "POST", "/v1/tools", "forgeTool", "tool forge", VERB_TOOL_FORGE,
		.summary = "Test code and load it as a tool, or make a tool of a package",
		.more = "The tests run twice, in order and in reverse order, in a workspace that "
			"is removed afterwards. A version that passes replaces the active one; one "
			"that doesn't is dormant, and the active one stays. docs/tools.md "
			"describes the interface of the code. With `package` the code is an "
			"adapter that calls functions of the package.",
		.flags = ROUTE_LOCATION, TAKES(tool_wanted_record, struct tool_wanted),
		ANSWER(201, TYPE_JSON, &tool_record,
			"It was forged: `state` is active, or dormant with `error` and the "
			"`output` of the tests. A client that disconnects doesn't end it."),
		MAKES },
	{ "POST", "/v1/tool-sources", "generateTool", "tool generate", VERB_TOOL_GENERATE,
		.summary = "Write code and tests of a tool, by the operator's generator or as "
			   "skeletons",
		.more = "Where the operator has a generator (`tools.generator` of config.yaml), it "
			"runs in a workspace that is removed afterwards, and what it writes is "
			"checked. Else the answer has skeletons, whose tests fail until `run` is "
			"written. Nothing is forged.",
		TAKES(tool_spec_record, struct tool_spec),
		SHOWN(tool_source_record, "Nothing is forged of it: send it to /v1/tools."),
		.errors = { 429, 507 } },
	{ "GET", "/v1/tools/{id}", "getTool", "tool show", VERB_TOOL_GET,
		.summary = "Show a tool, with its code and its tests",
		.more = "The active version, else the newest one, or the one of `version`.",
		QUERY(tool_query_rows, struct tool_query), SHOWN(tool_record, "The tool.") },
	{ "GET", "/v1/tools/{id}/versions", "listToolVersions", "tool logs", VERB_TOOL_LIST,
		.summary = "List the versions of a tool",
		.more = "Versions that aren't active are removed after their `ttl`, 24 hours by "
			"default.",
		PAGES, LISTED("Tools", tool_record, "Newest first.") },
	{ "POST", "/v1/tools/{id}/call", "callTool", "tool call", VERB_TOOL_CALL,
		.summary = "Call a tool",
		.more = "Calls `run(**arguments)` of the active version in its own workspace. An "
			"exception of the tool is a result with `ok` false. 409 if no version is "
			"loaded.",
		.flags = ROUTE_OPTIONAL, TAKES(tool_call_record, struct tool_call),
		SHOWN(tool_result_schema, "The call has ended, with a result or with the error of "
					  "the tool. A client that disconnects ends it."),
		MAKES },
	{ "POST", "/v1/tools/{id}/rollback", "rollbackTool", "tool rollback", VERB_TOOL_ROLLBACK,
		.summary = "Load another version of a tool",
		.more = "The version must have passed its tests and not be expired.",
		.flags = ROUTE_OPTIONAL, TAKES(tool_rollback_record, struct tool_rollback),
		SHOWN(tool_record, "The tool."), CHANGES },
	{ "DELETE", "/v1/tools/{id}", "removeTool", "tool rm", VERB_TOOL_REMOVE,
		.summary = "Remove a tool with all its versions",
		.more = "409 while it is being forged or called.", REMOVED, CHANGES },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "ToolWanted",
		"{'name':'slug','code':'def run(text):\\n    return text.lower()\\n',"
		"'tests':'import tool\\n\\n\\ndef test_slug():\\n    assert tool.run(1) == 1\\n',"
		"'requires':['python-slugify'],'ttl':'7d'}" },
	{ "Tool", "{'id':'n5fda10efceptk5gu44i','name':'slug','version':2,'state':'active',"
		  "'package':null,'description':'Makes slugs of titles',"
		  "'requires':['python-slugify'],'python':null,'environment':'py312-4f1c',"
		  "'workspace':'6d4movne3jo59dg146fb','passed':true,'error':null,"
		  "'sha256':'9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',"
		  "'forge_ms':412,'ttl_ms':86400000,'created_at':'2026-01-02T10:00:00.000Z',"
		  "'changed_at':'2026-01-02T10:00:01.000Z','expires_at':null,"
		  "'network':{'mode':'none','allow':[],'deny':[]}}" },
	{ "ToolSpec", "{'name':'slug','description':'Makes slugs of titles',"
		      "'arguments':{'text':'A title'},'requires':['python-slugify']}" },
	{ "ToolSource",
		"{'name':'slug','code':'def run(text):\\n    return text\\n',"
		"'tests':'import tool\\n\\n\\ndef test_slug():\\n    assert tool.run(1) == 1\\n',"
		"'requires':['python-slugify'],'generated':true}" },
	{ "ToolCall", "{'arguments':{'text':'A title'},'timeout':30}" },
	{ "ToolResult", "{'tool':'slug','version':2,'ok':true,'result':'a-title','error':null,"
			"'stdout':'','stderr':'','encoding':'utf-8','duration_ms':31}" },
	{ "ToolRollback", "{'version':1}" },
	{ 0 },
};

const struct operation_table tool_operations = { "tools", operations, examples };
