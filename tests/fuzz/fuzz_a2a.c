/* Bodies of A2A: a message of 1.0, or one of 0.3, is read, kept as 1.0 and shown as both. What is
 * kept reads as the same, and what is shown is JSON. An agent in YAML: bad input is an error that
 * names its line. */
#include <string.h>
#include "doors/a2a/a2a.h"
#include "format/text/yaml_json.h"
#include "fuzz.h"

static struct json_value *read_text(const char *text, size_t len, struct arena *arena)
{
	struct json_value *value = NULL;
	struct error err;
	check(!json_read((struct str){ text, len }, arena, &value, &err));
	return value;
}

/* A task that has the message as its history, its status and its artifact. */
static void check_shown(const char *message, const char *parts, struct arena *arena)
{
	const char *list = arena_printf(arena, "[%s]", message);
	const struct task task = { .id = "n5fda10efceptk5gu44i",
		.agent = "a",
		.context = "c",
		.state = TASK_WORKING,
		.created_ms = 1,
		.updated_ms = 2,
		.message = message,
		.history = list,
		.artifacts = arena_printf(arena, "[{\"artifactId\":\"x\",\"parts\":%s}]", parts) };
	const struct task_event event = { .kind = TASK_EVENT_STATUS };
	for (int is_old = 0; is_old < 2; is_old++)
		for (size_t history = 0; history < 3; history++) {
			auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
			struct json j = json_to(&out, false);
			a2a_print_task(
				&j, NULL, &task, is_old, history == 2 ? A2A_ALL : history, true);
			const struct json_value *shown = read_text(out.data, out.len, arena);
			const struct json_value *said = json_member(shown, "history");
			check((said != NULL) == (history > 0));
			check(!said || said->count == 1);
			buf_clear(&out);
			j = json_to(&out, false);
			a2a_print_event(&j, NULL, &task, &event, is_old);
			read_text(out.data, out.len, arena);
			buf_clear(&out);
			j = json_to(&out, false);
			a2a_print_message(&j, NULL, message, is_old);
			shown = read_text(out.data, out.len, arena);
			check(json_member(shown, "parts") && !json_member(shown, "taskId"));
		}
}

static void check_message(const struct json_value *value, bool needs_id, struct arena *arena)
{
	auto_buf struct buf one = buf_empty(BUF_MAX_DEFAULT), two = buf_empty(BUF_MAX_DEFAULT);
	struct task_message message, again;
	struct error err = { 0 };
	if (task_read_message(value, needs_id, arena, &message, &err)) {
		check(err.code == ERR_INVALID && err.text[0]);
		return;
	}
	check(message.id && message.id[0] && message.parts[0] == '[' && message.rest &&
		message.text);
	task_print_message(&one, &message, "ROLE_USER", "t", "c");
	const struct json_value *kept = read_text(one.data, one.len, arena);
	check(!task_read_message(kept, true, arena, &again, &err) || !needs_id);
	if (strlen(message.id) <= TASK_CONTEXT_MAX) {
		task_print_message(&two, &again, "ROLE_USER", "t", "c");
		check(!strcmp(one.data, two.data));
		check(message.is_text == again.is_text && !strcmp(message.text, again.text));
	}
	check_shown(one.data, message.parts, arena);
}

static void check_agent(struct str text, struct arena *arena)
{
	struct json_value *root = NULL;
	struct a2a_agent agent = { 0 };
	struct error err = { 0 };
	if (yaml_json_read(text, arena, &root, &err))
		return;
	if (agent_read(root, arena, &agent, &err)) {
		check(err.code == ERR_INVALID && err.text[0]);
		return;
	}
	check(!agent_check_name(agent.name, &err));
	check(agent.timeout_ms && agent.ttl_ms && agent.max_contexts && agent.max_tasks);
	check((agent.kind == AGENT_COMMAND) == (agent.command.count > 0));
	read_text(agent.skills, strlen(agent.skills), arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena = { 0 };
	struct json_value *value = NULL;
	struct error err = { 0 };
	struct str text = { arena_bytes(&arena, (const char *)data, size), size };
	check_agent(text, &arena);
	if (json_read(text, &arena, &value, &err))
		return 0;
	check_message(value, true, &arena);
	check_message(value, false, &arena);
	const struct json_value *old = a2a_read_old(value, &arena, &err);
	if (old)
		check_message(old, true, &arena);
	else
		check(err.text[0]);
	return 0;
}
