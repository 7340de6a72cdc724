#include "model/agents/tool.h"

#include "base/str.h"
#include "model/records/rows.h"

#define ARGUMENTS_MAX (1u << 20)

const char *const tool_state_names[TOOL_STATE_COUNT + 1] = { "dormant", "creating", "installing",
	"testing", "active", "cleanup", NULL };
const char *const tool_failure_names[] = { "raised", "invalid_result", "exited", "signaled",
	"timeout", "cpu_limit", "memory_limit", "output_limit", "disk_limit", "canceled", "denied",
	NULL };

bool tool_is_forging(const struct tool *tool)
{
	return tool->state != TOOL_DORMANT && tool->state != TOOL_ACTIVE;
}

static bool is_letter(char c)
{
	return c >= 'a' && c <= 'z';
}

int tool_check_name(const char *name, struct error *err)
{
	size_t len = strlen(name);
	bool is_good = is_letter(name[0]) && len <= TOOL_NAME_MAX;
	for (size_t i = 0; is_good && i < len; i++)
		is_good = is_letter(name[i]) || (name[i] >= '0' && name[i] <= '9') ||
			  name[i] == '_' || name[i] == '-';
	return is_good ? 0
		       : fail_hint(err, ERR_INVALID,
				 "1 to 64 of a-z, 0-9, _ and -, the first a letter",
				 "'%s' is not the name of a tool", name);
}

/* As indexes compare names: in lower case, runs of - _ . as one -. */
bool tool_package_name(const char *requirement, char out[TOOL_NAME_MAX + 1])
{
	size_t at = strlen(TOOL_PACKAGE_PREFIX);
	bool was_mark = false;
	memcpy(out, TOOL_PACKAGE_PREFIX, at);
	for (const char *c = requirement; *c && at < TOOL_NAME_MAX; c++) {
		char lower = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
		bool is_mark = lower == '-' || lower == '_' || lower == '.';
		if (!is_mark && !is_letter(lower) && !(lower >= '0' && lower <= '9'))
			break;
		if (is_mark && c == requirement)
			return false;
		if (!is_mark || !was_mark)
			out[at++] = is_mark ? '-' : lower;
		was_mark = is_mark;
	}
	out[at] = '\0';
	return at > strlen(TOOL_PACKAGE_PREFIX) && !was_mark;
}

#define AT(member) offsetof(struct tool, member)
static const struct field tool_rows[] = {
	ROW(ID, id, "of this version", FIELD_OUT | FIELD_COLUMN),
	ROW(TEXT, name, NULL, FIELD_OUT | FIELD_COLUMN, .head = "NAME", .column = 1),
	ROW(INTEGER, version, "1, 2, 3 ... of the tool", FIELD_OUT | FIELD_KEPT, .most = UINT32_MAX,
		.head = "VERSION", .column = 2),
	ROW(CHOICE, state,
		"active: calls run this version; dormant: it isn't loaded; else it is being forged",
		FIELD_OUT | FIELD_COLUMN, .names = tool_state_names, .head = "STATE", .column = 3),
	ROW(TEXT, package, "the requirement that it was made of",
		FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE),
	ROW(TEXT, description, NULL, FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE, .head = "DESCRIPTION",
		.column = 6),
	ROW(TEXTS, requires, "requirements of Python packages", FIELD_OUT | FIELD_KEPT,
		.head = "REQUIRES", .column = 5),
	ROW(TEXT, python, "a version", FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE),
	ROW(TEXT, environment, "what it was tested and is called in",
		FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE),
	ROW(TEXT, workspace, "id of the workspace that calls run in; null: it has none",
		FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE),
	{ "passed", FIELD_BOOLEAN, AT(has_passed), "its tests have passed",
		FIELD_OUT | FIELD_KEPT },
	ROW(TEXT, error, "why it is dormant", FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE,
		.head = "ERROR", .column = 7),
	ROW(TEXT, sha256, "of the code", FIELD_OUT | FIELD_KEPT),
	ROW(INTEGER, forge_ms, "how long it took to forge it", FIELD_OUT | FIELD_KEPT),
	{ "ttl", FIELD_DURATION, AT(ttl_ms), "how long it is kept when it isn't active",
		FIELD_OUT | FIELD_KEPT },
	{ "created_at", FIELD_TIME, AT(created_ms), NULL, FIELD_OUT | FIELD_COLUMN,
		.kept = "created_ms", .head = "AGE", .column = 4 },
	{ "changed_at", FIELD_TIME, AT(changed_ms), "its state has changed then",
		FIELD_OUT | FIELD_COLUMN, .kept = "changed_ms" },
	{ "expires_at", FIELD_TIME, AT(expires_ms), "null: it is active",
		FIELD_OUT | FIELD_COLUMN | FIELD_NULLABLE, .kept = "expires_ms" },
	ROW(OBJECT, network, NULL, FIELD_OUT, .object = &workspace_network_record),
	{ "network_mode", FIELD_TEXT, AT(network.mode), NULL, FIELD_KEPT },
	{ "network_allow", FIELD_TEXTS, AT(network.allow), NULL, FIELD_KEPT },
	{ "network_deny", FIELD_TEXTS, AT(network.deny), NULL, FIELD_KEPT },
	ROW(OBJECT, limits, NULL, FIELD_KEPT, .object = &limits_record),
	{ "timeout", FIELD_DURATION, AT(timeout_ms), NULL, FIELD_KEPT },
	ROW(TEXT, code, "left out in lists", FIELD_OUT | FIELD_KEPT | FIELD_OPTIONAL),
	ROW(TEXT, tests, "left out in lists", FIELD_OUT | FIELD_KEPT | FIELD_OPTIONAL),
	ROW(TEXT, output, "what the tests have printed, the last 64 KiB of it; left out in lists",
		FIELD_OUT | FIELD_KEPT | FIELD_OPTIONAL),
};
#undef AT
const struct record tool_record = { "Tool", NULL, RECORD_ROWS(tool_rows) };

static int check_wanted(const void *value, struct error *err)
{
	const struct tool_wanted *wanted = value;
	char name[TOOL_NAME_MAX + 1];
	if (wanted->package) {
		if (wanted->name || wanted->code || wanted->tests)
			return fail(err, ERR_INVALID,
				"'package' can't be combined with 'name', 'code' and 'tests'");
		return tool_package_name(wanted->package, name)
			       ? 0
			       : fail(err, ERR_INVALID, "package: not a requirement");
	}
	if (!wanted->name || !wanted->code || !wanted->tests)
		return fail(
			err, ERR_INVALID, "a tool needs 'name', 'code' and 'tests', or 'package'");
	if (str_starts_with(str_from(wanted->name), TOOL_PACKAGE_PREFIX))
		return fail(err, ERR_INVALID,
			"name: '" TOOL_PACKAGE_PREFIX "' is for tools made of packages");
	return 0;
}

#define AT(member) offsetof(struct tool_wanted, member)
static const struct field wanted_rows[] = {
	ROW(TEXT, name, "a new tool, or the next version of one", .pattern = TOOL_NAME_PATTERN,
		.check = tool_check_name),
	ROW(TEXT, code, "tool.py: a Python module with a function run", .least = 1,
		.most = TOOL_BYTES_MAX),
	ROW(TEXT, tests, "test_tool.py: tests for pytest, which import tool", .least = 1,
		.most = TOOL_BYTES_MAX),
	ROW(TEXT, package,
		"a requirement, instead of name, code and tests: the tool pypi_PACKAGE is made "
		"with an adapter",
		.least = 1, .most = 1024),
	ROW(TEXTS, requires, "requirements of Python packages", .most = TOOL_REQUIRES_MAX),
	ROW(TEXT, python, "a version of Python", .least = 1, .most = 64),
	ROW(TEXT, description, "for lists", .least = 1, .most = TOOL_DESCRIPTION_MAX),
	ROW(OBJECT, network, "what the tests and calls may reach",
		.object = &workspace_network_record),
	ROW(OBJECT, limits, "of the tests and of calls", .object = &limits_record),
	{ "timeout", FIELD_DURATION, AT(timeout_ms), "of the tests; 300 s when not given",
		.least = 1, .most = WORKSPACE_TIME_MOST },
	{ "ttl", FIELD_DURATION, AT(ttl_ms),
		"how long this version is kept when it isn't active; 24 h when not given",
		.least = 1, .most = WORKSPACE_TIME_MOST },
};
#undef AT
const struct record tool_wanted_record = { "ToolWanted", NULL, RECORD_ROWS(wanted_rows), FIELD_IN,
	.check = check_wanted };

#define AT(member) offsetof(struct tool_call, member)
static const struct field call_rows[] = {
	ROW(JSON, arguments, "of the function run, by name", FIELD_EXACT, .most = ARGUMENTS_MAX),
	{ "timeout", FIELD_DURATION, AT(timeout_ms), "300 s when not given", .least = 1,
		.most = WORKSPACE_TIME_MOST },
	ROW(INTEGER, version, "another version than the active one, that still has its workspace",
		.least = 1, .most = UINT32_MAX),
};
#undef AT
const struct record tool_call_record = { "ToolCall", NULL, RECORD_ROWS(call_rows), FIELD_IN };

static const struct field rollback_rows[] = {
	ROW_OF(tool_rollback, INTEGER, version,
		"when not given: the newest one below the active one that has passed its tests",
		.least = 1, .most = UINT32_MAX),
};
const struct record tool_rollback_record = { "ToolRollback", NULL, RECORD_ROWS(rollback_rows),
	FIELD_IN };

static const struct field failure_rows[] = {
	{ "reason", FIELD_CHOICE, 0,
		"raised: run raised an exception; invalid_result: it returned what isn't JSON; "
		"exited: the process ended without a result; else what ended it",
		.names = tool_failure_names },
	{ "type", FIELD_TEXT, 0, "of the exception", FIELD_NULLABLE },
	{ "message", FIELD_TEXT },
	{ "traceback", FIELD_TEXT, 0, "of the exception", FIELD_NULLABLE },
};
static const struct record failure_schema = { "ToolFailure", NULL, RECORD_ROWS(failure_rows),
	FIELD_OUT };
static const struct field result_rows[] = {
	{ "tool", FIELD_TEXT, 0, "its name" },
	{ "version", FIELD_INTEGER },
	{ "ok", FIELD_BOOLEAN, 0, "there is a result" },
	{ "result", FIELD_VALUE, 0, "what run returned; null when it has failed" },
	{ "error", FIELD_OBJECT, 0, "null: there is a result", FIELD_NULLABLE,
		.object = &failure_schema },
	{ "stdout", FIELD_TEXT, 0, "what the tool has printed" },
	{ "stderr", FIELD_TEXT },
	{ "encoding", FIELD_TEXT, 0, "of both: utf-8 or base64" },
	{ "duration_ms", FIELD_INTEGER },
};
const struct record tool_result_schema = { "ToolResult", NULL, RECORD_ROWS(result_rows),
	FIELD_OUT };

struct tool tool_brief(const struct tool *tool)
{
	struct tool brief = *tool;
	brief.code = brief.tests = brief.output = NULL;
	return brief;
}
