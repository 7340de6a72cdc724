/* model/agents/agent.c: the file of an A2A agent. model/agents/task.c: states, messages and parts.
 * model/agents/a2a.c: both as A2A 1.0 and 0.3 show them. */
#include <string.h>
#include "doors/a2a/a2a.h"
#include "format/text/yaml_json.h"
#include "unit.h"

#define TOOLS "name: tools\ndescription: runs commands\nversion: \"1.0\"\n"

static int read_agent(
	const char *yaml, struct arena *arena, struct a2a_agent *agent, struct error *err)
{
	struct json_value *root;
	return yaml_json_read(str_from(yaml), arena, &root, err) ||
			       agent_read(root, arena, agent, err)
		       ? -1
		       : 0;
}

/* ---- agents ---- */

static void an_agent_has_defaults_and_what_its_file_says(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct a2a_agent agent = { .created_ms = 7, .yaml = "kept" };
	struct error err;
	assert_int_equal(read_agent(TOOLS "kind: shell\n", &arena, &agent, &err), 0);
	assert_string_equal(agent.name, "tools");
	assert_string_equal(agent.version, "1.0");
	assert_int_equal(agent.kind, AGENT_SHELL);
	assert_int_equal(agent.ttl_ms, AGENT_TTL_DEFAULT_MS);
	assert_int_equal(agent.timeout_ms, AGENT_TIMEOUT_SHELL_MS);
	assert_int_equal(agent.max_contexts, AGENT_CONTEXTS_DEFAULT);
	assert_int_equal(agent.max_tasks, AGENT_TASKS_DEFAULT);
	assert_int_equal(agent.auth, AGENT_TOKEN);
	assert_int_equal(agent.approver, AGENT_CLIENT);
	assert_string_equal(agent.skills, "[]");
	assert_null(agent.settings);
	assert_false(agent.is_default || agent.workspace_without_context);
	assert_int_equal(agent.created_ms, 7);
	assert_string_equal(agent.yaml, "kept");
	assert_false(agent.has_push);
	struct a2a_agent program = { 0 };
	assert_int_equal(
		read_agent(TOOLS "command: [python3, -u, a.py]\nttl: 2h\nauth: none\n"
				 "approver: reviewer\nmax_contexts: 3\nmax_tasks: 4\n"
				 "push: [a.test, \"*.b.test:8443\"]\n"
				 "settings: {permissions: {deny: [\"shell(rm:*)\"]}}\n"
				 "skills: [{id: s, name: S, description: d, tags: [a, b]}]\n",
			&arena, &program, &err),
		0);
	assert_int_equal(program.kind, AGENT_COMMAND);
	assert_int_equal(program.command.count, 3);
	assert_null(program.command.items[3]);
	assert_int_equal(program.timeout_ms, AGENT_TIMEOUT_COMMAND_MS);
	assert_int_equal(program.ttl_ms, 7200000);
	assert_int_equal(program.auth, AGENT_NO_AUTH);
	assert_int_equal(program.max_contexts, 3);
	assert_int_equal(program.max_tasks, 4);
	assert_int_equal(program.push.count, 2);
	static const char *const closed[] = { "push: none\n", "push: []\n" };
	for (size_t i = 0; i < 2; i++) {
		struct a2a_agent quiet = { 0 };
		const char *yaml = arena_printf(&arena, TOOLS "kind: shell\n%s", closed[i]);
		assert_int_equal(read_agent(yaml, &arena, &quiet, &err), 0);
		assert_true(quiet.has_push && !quiet.push.count);
	}
	assert_string_equal(program.settings, "{\"permissions\":{\"deny\":[\"shell(rm:*)\"]}}");
	assert_string_equal(program.skills,
		"[{\"id\":\"s\",\"name\":\"S\",\"description\":\"d\",\"tags\":[\"a\",\"b\"]}]");
}

static void what_is_wrong_in_an_agent_is_named_with_its_line_and_key(void **state)
{
	static const struct {
		const char *yaml, *line, *key;
	} cases[] = {
		{ TOOLS "kindd: shell\n", "line 4", "kindd" },
		{ TOOLS "kind: chat\n", "line 4", "kind" },
		{ TOOLS "kind: shell\nttl: soon\n", "line 5", "ttl" },
		{ TOOLS "kind: shell\nauth: maybe\n", "line 5", "auth" },
		{ TOOLS "kind: shell\napprover: nobody\n", "line 5", "approver" },
		{ TOOLS "kind: shell\nisolation: gvisor\n", "line 5", "isolation" },
		{ TOOLS "kind: shell\nmax_contexts: 0\n", "line 5", "max_contexts" },
		{ TOOLS "kind: shell\nmax_contexts: 100001\n", "line 5", "max_contexts" },
		{ TOOLS "kind: shell\nmax_tasks: 257\n", "line 5", "max_tasks" },
		{ TOOLS "kind: shell\nmax_tasks: many\n", "line 5", "max_tasks" },
		{ TOOLS "kind: shell\npush: all\n", "line 5", "push" },
		{ TOOLS "kind: shell\npush:\n", "line 5", "push" },
		{ TOOLS "kind: shell\npush: [\"https://a.test/\"]\n", "line 5", "push" },
		{ TOOLS "kind: shell\nskills: 7\n", "line 5", "skills" },
		{ TOOLS "kind: shell\nskills:\n- {id: s}\n", "line 6", "skills" },
		{ TOOLS "kind: shell\nskills:\n- {id: s, name: S, description: d, colour: x}\n",
			"line 6", "colour" },
		{ TOOLS "kind: shell\nenv: {\"A=B\": x}\n", "line 5", "env" },
		{ TOOLS "kind: shell\nsettings: 7\n", "line 5", "settings" },
		{ TOOLS "kind: shell\nlimits: {memory: huge}\n", "line 5", "limits" },
		{ TOOLS "command: [\"\"]\n", "line 4", "command" },
		{ TOOLS "command: []\n", "", "command" },
		{ TOOLS "kind: shell\ncommand: [x]\n", "", "command" },
		{ TOOLS, "", "command" },
		{ "name: To ols\ndescription: d\nversion: v\nkind: shell\n", "line 1", "name" },
		{ "name: -x\ndescription: d\nversion: v\nkind: shell\n", "line 1", "name" },
		{ "description: d\nversion: v\nkind: shell\n", "", "name" },
		{ "name: x\nversion: v\nkind: shell\n", "", "description" },
		{ "[]\n", "", "map" },
		{ "name: [\n", "line", "" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		auto_arena struct arena arena = { 0 };
		struct a2a_agent agent = { 0 };
		struct error err = { 0 };
		if (!read_agent(cases[i].yaml, &arena, &agent, &err))
			fail_msg("accepted: %s", cases[i].yaml);
		if (err.code != ERR_INVALID || !strstr(err.text, cases[i].line) ||
			!strstr(err.text, cases[i].key))
			fail_msg("'%s' for %s", err.text, cases[i].yaml);
		assert_null(agent.name); /* outputs are untouched */
	}
}

/* ---- states ---- */

static void states_have_names_and_kinds(void **state)
{
	static const struct {
		const char *name, *shown;
		bool is_settled, is_final;
	} cases[TASK_STATE_COUNT] = {
		[TASK_SUBMITTED] = { "submitted", "TASK_STATE_SUBMITTED", false, false },
		[TASK_WORKING] = { "working", "TASK_STATE_WORKING", false, false },
		[TASK_INPUT_REQUIRED] = { "input-required", "TASK_STATE_INPUT_REQUIRED", true,
			false },
		[TASK_COMPLETED] = { "completed", "TASK_STATE_COMPLETED", true, true },
		[TASK_FAILED] = { "failed", "TASK_STATE_FAILED", true, true },
		[TASK_CANCELED] = { "canceled", "TASK_STATE_CANCELED", true, true },
		[TASK_REJECTED] = { "rejected", "TASK_STATE_REJECTED", true, true },
	};
	for (int i = 0; i < TASK_STATE_COUNT; i++) {
		assert_string_equal(task_state_names[i], cases[i].name);
		assert_string_equal(a2a_state_names[i], cases[i].shown);
		assert_int_equal(task_state_find(task_state_names, cases[i].name), i);
		assert_int_equal(task_state_find(a2a_state_names, cases[i].shown), i);
		assert_int_equal(task_state_is_settled((enum task_state)i), cases[i].is_settled);
		assert_int_equal(task_state_is_final((enum task_state)i), cases[i].is_final);
	}
	assert_int_equal(task_state_find(task_state_names, "done"), -1);
	assert_null(task_state_names[TASK_STATE_COUNT]);
}

/* ---- messages ---- */

static const struct json_value *value_of(const char *text, struct arena *arena)
{
	struct json_value *value = NULL;
	struct error err;
	if (json_read(str_from(text), arena, &value, &err))
		fail_msg("%s: %s", err.text, text);
	return value;
}

static void a_message_is_kept_as_it_was_sent(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	struct task_message message;
	struct error err;
	const char *text =
		"{\"messageId\":\"m1\", \"parts\":[{\"text\":\"a \\\" b\"},{\"data\":{\"n\":1.50},"
		"\"metadata\":{\"x\":1}},{\"text\":\"c\"}], \"metadata\":{\"k\": [1]},"
		"\"extensions\":[\"e\"],\"unknown\":1}";
	assert_int_equal(
		task_read_message(value_of(text, &arena), true, &arena, &message, &err), 0);
	assert_string_equal(message.id, "m1");
	assert_string_equal(message.text, "a \" bc");
	assert_string_equal(message.data, "{\"n\":1.50}");
	assert_false(message.is_text);
	task_print_message(&out, &message, "ROLE_USER", "t", "c");
	assert_string_equal(out.data,
		"{\"messageId\":\"m1\",\"role\":\"ROLE_USER\",\"taskId\":\"t\",\"contextId\":\"c\","
		"\"parts\":[{\"text\":\"a \\\" b\"},{\"data\":{\"n\":1.50},\"metadata\":{\"x\":1}},"
		"{\"text\":\"c\"}],\"metadata\":{\"k\":[1]},\"extensions\":[\"e\"]}");
	task_make_message("hello", &arena, &message);
	assert_true(message.is_text && id_is_valid(message.id));
	assert_string_equal(message.parts, "[{\"text\":\"hello\"}]");
}

static void what_is_no_message_is_an_error(void **state)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{ "[]", "object" },
		{ "{}", "messageId" },
		{ "{\"messageId\":\"\",\"parts\":[{\"text\":\"x\"}]}", "messageId" },
		{ "{\"messageId\":7,\"parts\":[{\"text\":\"x\"}]}", "messageId" },
		{ "{\"messageId\":\"m\"}", "parts" },
		{ "{\"messageId\":\"m\",\"parts\":[]}", "parts" },
		{ "{\"messageId\":\"m\",\"parts\":[7]}", "part" },
		{ "{\"messageId\":\"m\",\"parts\":[{}]}", "exactly one" },
		{ "{\"messageId\":\"m\",\"parts\":[{\"text\":\"x\",\"raw\":\"y\"}]}",
			"exactly one" },
		{ "{\"messageId\":\"m\",\"parts\":[{\"text\":7}]}", "text" },
		{ "{\"messageId\":\"m\",\"parts\":[{\"url\":null}]}", "url" },
		{ "{\"messageId\":\"m\",\"parts\":[{\"text\":\"x\",\"filename\":7}]}", "filename" },
		{ "{\"messageId\":\"m\",\"parts\":[{\"text\":\"x\",\"metadata\":[]}]}",
			"metadata" },
		{ "{\"messageId\":\"m\",\"parts\":[{\"text\":\"a\\u0000\"}]}", "NUL" },
		{ "{\"messageId\":\"m\",\"parts\":[{\"text\":\"x\"}],\"extensions\":[7]}",
			"extensions" },
		{ "{\"messageId\":\"m\",\"parts\":[{\"text\":\"x\"}],\"metadata\":7}", "metadata" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		auto_arena struct arena arena = { 0 };
		struct task_message message = { 0 };
		struct error err = { 0 };
		if (!task_read_message(
			    value_of(cases[i].text, &arena), true, &arena, &message, &err))
			fail_msg("accepted: %s", cases[i].text);
		if (err.code != ERR_INVALID || !strstr(err.text, cases[i].word))
			fail_msg("'%s' for %s", err.text, cases[i].text);
		assert_null(message.id);
	}
}

/* ---- shapes ---- */

#define KEPT                                                                                       \
	"{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"taskId\":\"t\",\"contextId\":\"c\","       \
	"\"parts\":["                                                                              \
	"{\"text\":\"x\"},{\"raw\":\"AA==\",\"mediaType\":\"image/png\",\"filename\":\"f\"},"      \
	"{\"url\":\"http://u\"},{\"data\":[1]}]}"
#define OLD                                                                                        \
	"{\"kind\":\"message\",\"role\":\"agent\",\"messageId\":\"m\",\"taskId\":\"t\","           \
	"\"contextId\":"                                                                           \
	"\"c\",\"parts\":[{\"kind\":\"text\",\"text\":\"x\"},{\"kind\":\"file\",\"file\":{"        \
	"\"bytes\":"                                                                               \
	"\"AA==\",\"name\":\"f\",\"mimeType\":\"image/"                                            \
	"png\"}},{\"kind\":\"file\",\"file\":{\"uri\":"                                            \
	"\"http://u\"}},{\"kind\":\"data\",\"data\":{\"value\":[1]}}]}"
static const struct task shown_task = { .id = "t",
	.agent = "a",
	.context = "c",
	.state = TASK_INPUT_REQUIRED,
	.updated_ms = 1700000000123,
	.message = KEPT,
	.history = "[{\"messageId\":\"first\",\"role\":\"ROLE_USER\",\"parts\":[]}," KEPT "]",
	.artifacts = "[{\"artifactId\":\"r\",\"parts\":[{\"text\":\"y\"}]}]" };

static void assert_shown(bool is_old, size_t history, const char *wanted)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&out, false);
	a2a_print_task(&j, NULL, &shown_task, is_old, history, history > 0);
	assert_string_equal(out.data, wanted);
}

static void a_task_has_the_shapes_of_both_versions(void **state)
{
	assert_shown(false, 0,
		"{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_INPUT_"
		"REQUIRED\","
		"\"timestamp\":\"2023-11-14T22:13:20.123Z\",\"message\":" KEPT "}}");
	assert_shown(false, 1,
		"{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_INPUT_"
		"REQUIRED\","
		"\"timestamp\":\"2023-11-14T22:13:20.123Z\",\"message\":" KEPT
		"},\"artifacts\":[{\"artifactId\":\"r\",\"parts\":[{\"text\":\"y\"}]}],\"history\":"
		"[" KEPT "]}");
	assert_shown(true, 1,
		"{\"kind\":\"task\",\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
		"\"input-required\",\"timestamp\":\"2023-11-14T22:13:20.123Z\",\"message\":" OLD
		"},\"artifacts\":[{\"artifactId\":\"r\",\"parts\":[{\"kind\":\"text\",\"text\":"
		"\"y\"}]}],"
		"\"history\":[" OLD "]}");
}

static void events_have_the_shapes_of_both_versions(void **state)
{
	const struct task_event status = { .kind = TASK_EVENT_STATUS };
	const struct task_event artifact = { .kind = TASK_EVENT_ARTIFACT,
		.artifact = "{\"artifactId\":\"r\",\"parts\":[{\"text\":\"y\"}]}",
		.append = true };
	const struct {
		const struct task_event *event;
		bool is_old;
		const char *wanted;
	} cases[] = {
		{ &status, false,
			"{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{"
			"\"state\":"
			"\"TASK_STATE_INPUT_REQUIRED\",\"timestamp\":\"2023-11-14T22:13:20.123Z\","
			"\"message\":" KEPT "}}}" },
		{ &status, true,
			"{\"kind\":\"status-update\",\"taskId\":\"t\",\"contextId\":\"c\","
			"\"status\":{"
			"\"state\":\"input-required\",\"timestamp\":\"2023-11-14T22:13:20.123Z\","
			"\"message\":" OLD "},\"final\":true}" },
		{ &artifact, false,
			"{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{"
			"\"artifactId\":\"r\",\"parts\":[{\"text\":\"y\"}]},\"append\":true,"
			"\"lastChunk\":false}}" },
		{ &artifact, true,
			"{\"kind\":\"artifact-update\",\"taskId\":\"t\",\"contextId\":\"c\","
			"\"artifact\":{"
			"\"artifactId\":\"r\",\"parts\":[{\"kind\":\"text\",\"text\":\"y\"}]},"
			"\"append\":true,\"lastChunk\":false}" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
		struct json j = json_to(&out, false);
		a2a_print_event(&j, NULL, &shown_task, cases[i].event, cases[i].is_old);
		assert_string_equal(out.data, cases[i].wanted);
	}
}

static void a_message_of_0_3_is_read_as_one_of_1_0(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct task_message message;
	struct error err;
	const struct json_value *read = a2a_read_old(value_of(OLD, &arena), &arena, &err);
	assert_non_null(read);
	assert_int_equal(task_read_message(read, true, &arena, &message, &err), 0);
	assert_string_equal(message.id, "m");
	assert_string_equal(message.parts, "[{\"text\":\"x\"},{\"raw\":\"AA==\",\"filename\":\"f\","
					   "\"mediaType\":\"image/png\"},"
					   "{\"url\":\"http://u\"},{\"data\":{\"value\":[1]}}]");
	assert_null(
		a2a_read_old(value_of("{\"parts\":[{\"kind\":\"video\"}]}", &arena), &arena, &err));
	assert_non_null(strstr(err.text, "kind"));
	assert_null(a2a_read_old(value_of("{\"parts\":7}", &arena), &arena, &err));
	assert_null(a2a_read_old(NULL, &arena, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_has_defaults_and_what_its_file_says),
		cmocka_unit_test(what_is_wrong_in_an_agent_is_named_with_its_line_and_key),
		cmocka_unit_test(states_have_names_and_kinds),
		cmocka_unit_test(a_message_is_kept_as_it_was_sent),
		cmocka_unit_test(what_is_no_message_is_an_error),
		cmocka_unit_test(a_task_has_the_shapes_of_both_versions),
		cmocka_unit_test(events_have_the_shapes_of_both_versions),
		cmocka_unit_test(a_message_of_0_3_is_read_as_one_of_1_0),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
