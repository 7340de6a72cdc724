#include "model/agents/a2a.h"

#include "base/clock.h"

const char *const a2a_state_names[TASK_STATE_COUNT + 1] = {
	[TASK_SUBMITTED] = "TASK_STATE_SUBMITTED",
	[TASK_WORKING] = "TASK_STATE_WORKING",
	[TASK_INPUT_REQUIRED] = "TASK_STATE_INPUT_REQUIRED",
	[TASK_COMPLETED] = "TASK_STATE_COMPLETED",
	[TASK_FAILED] = "TASK_STATE_FAILED",
	[TASK_CANCELED] = "TASK_STATE_CANCELED",
	[TASK_REJECTED] = "TASK_STATE_REJECTED",
};

/* ---- 0.3 of 1.0 ---- */

static void copy_member(struct json *j, const struct json_value *from, const char *key)
{
	const struct json_value *member = json_member(from, key);
	if (member)
		task_copy_json(j, key, member);
}

static void print_old_file(struct json *j, const struct json_value *part, const char *content)
{
	json_text(j, "kind", "file");
	json_object(j, "file");
	json_text(j, !strcmp(content, "raw") ? "bytes" : "uri", json_member_text(part, content));
	if (json_member_text(part, "filename"))
		json_text(j, "name", json_member_text(part, "filename"));
	if (json_member_text(part, "mediaType"))
		json_text(j, "mimeType", json_member_text(part, "mediaType"));
	json_end(j);
}

static void print_old_part(struct json *j, const struct json_value *part)
{
	const struct json_value *data = json_member(part, "data");
	json_object(j, NULL);
	if (json_member(part, "text")) {
		json_text(j, "kind", "text");
		copy_member(j, part, "text");
	} else if (data) {
		json_text(j, "kind", "data");
		/* It is always an object there. */
		if (data->kind == JSON_OBJECT) {
			task_copy_json(j, "data", data);
		} else {
			json_object(j, "data");
			task_copy_json(j, "value", data);
			json_end(j);
		}
	} else {
		print_old_file(j, part, json_member(part, "raw") ? "raw" : "url");
	}
	copy_member(j, part, "metadata");
	json_end(j);
}

static void print_old_parts(struct json *j, const struct json_value *of)
{
	const struct json_value *parts = json_member(of, "parts");
	json_array(j, "parts");
	for (const struct json_value *part = parts ? parts->first : NULL; part; part = part->next)
		print_old_part(j, part);
	json_end(j);
}

static void print_old_message(struct json *j, const char *key, const struct json_value *message)
{
	static const char *const same[] = { "messageId", "taskId", "contextId", "metadata",
		"extensions", "referenceTaskIds" };
	const char *role = json_member_text(message, "role");
	json_object(j, key);
	json_text(j, "kind", "message");
	json_text(j, "role", role && !strcmp(role, "ROLE_AGENT") ? "agent" : "user");
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		copy_member(j, message, same[i]);
	print_old_parts(j, message);
	json_end(j);
}

static void print_old_artifact(struct json *j, const char *key, const struct json_value *artifact)
{
	static const char *const same[] = { "artifactId", "name", "description", "metadata" };
	json_object(j, key);
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		copy_member(j, artifact, same[i]);
	print_old_parts(j, artifact);
	json_end(j);
}

/* JSON that the service made; it can be read. */
static const struct json_value *reread(const char *text, struct arena *arena)
{
	static const struct json_value none = { .kind = JSON_NULL };
	struct json_value *value;
	struct error err;
	return json_read(str_from(text), arena, &value, &err) ? &none : value;
}

/* ---- both ---- */

static void print_status(struct json *j, const struct task *task, bool is_old, struct arena *arena)
{
	char time[32];
	clock_format(time, task->updated_ms);
	json_object(j, "status");
	json_text(j, "state", (is_old ? task_state_names : a2a_state_names)[task->state]);
	json_text(j, "timestamp", time);
	if (task->message && is_old)
		print_old_message(j, "message", reread(task->message, arena));
	else if (task->message)
		json_raw(j, "message", task->message);
	json_end(j);
}

static void print_history(
	struct json *j, const struct task *task, bool is_old, size_t most, struct arena *arena)
{
	if (most == A2A_ALL && !is_old) {
		json_raw(j, "history", task->history);
		return;
	}
	const struct json_value *list = reread(task->history, arena);
	size_t left_out = list->count > most ? list->count - most : 0;
	json_array(j, "history");
	for (const struct json_value *one = list->first; one; one = one->next) {
		if (left_out) {
			left_out--;
			continue;
		}
		if (is_old)
			print_old_message(j, NULL, one);
		else
			task_copy_json(j, NULL, one);
	}
	json_end(j);
}

void a2a_print_task(struct json *j, const char *key, const struct task *task, bool is_old,
	size_t history, bool has_artifacts)
{
	auto_arena struct arena arena = { 0 };
	json_object(j, key);
	if (is_old)
		json_text(j, "kind", "task");
	json_text(j, "id", task->id);
	json_text(j, "contextId", task->context);
	print_status(j, task, is_old, &arena);
	if (has_artifacts && !is_old) {
		json_raw(j, "artifacts", task->artifacts);
	} else if (has_artifacts) {
		const struct json_value *list = reread(task->artifacts, &arena);
		json_array(j, "artifacts");
		for (const struct json_value *one = list->first; one; one = one->next)
			print_old_artifact(j, NULL, one);
		json_end(j);
	}
	if (history)
		print_history(j, task, is_old, history, &arena);
	json_end(j);
}

void a2a_print_message(struct json *j, const char *key, const char *message, bool is_old)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json bare = json_to(&text, false);
	json_object(&bare, NULL);
	for (const struct json_value *one = reread(message, &arena)->first; one; one = one->next)
		if (!str_is(one->key, "taskId"))
			task_copy_json(&bare, one->key.data, one);
	json_end(&bare);
	if (is_old)
		print_old_message(j, key, reread(text.data, &arena));
	else
		json_raw(j, key, text.data);
}

void a2a_print_event(struct json *j, const char *key, const struct task *task,
	const struct task_event *event, bool is_old)
{
	auto_arena struct arena arena = { 0 };
	bool is_status = event->kind == TASK_EVENT_STATUS;
	json_object(j, key);
	if (is_old)
		json_text(j, "kind", is_status ? "status-update" : "artifact-update");
	else
		json_object(j, is_status ? "statusUpdate" : "artifactUpdate");
	json_text(j, "taskId", task->id);
	json_text(j, "contextId", task->context);
	if (is_status) {
		print_status(j, task, is_old, &arena);
		if (is_old)
			json_bool(j, "final", task_state_is_settled(task->state));
	} else {
		if (is_old)
			print_old_artifact(j, "artifact", reread(event->artifact, &arena));
		else
			json_raw(j, "artifact", event->artifact);
		json_bool(j, "append", event->append);
		json_bool(j, "lastChunk", event->is_last);
	}
	if (!is_old)
		json_end(j);
	json_end(j);
}

/* ---- 1.0 of 0.3 ---- */

static int read_old_part(struct json *j, const struct json_value *part, struct error *err)
{
	const char *kind = json_member_text(part, "kind");
	const struct json_value *file = json_member(part, "file");
	json_object(j, NULL);
	if (kind && !strcmp(kind, "file") && file) {
		const char *bytes = json_member_text(file, "bytes");
		const char *uri = json_member_text(file, "uri");
		json_text(j, bytes ? "raw" : "url", bytes ? bytes : uri ? uri : "");
		if (json_member_text(file, "name"))
			json_text(j, "filename", json_member_text(file, "name"));
		if (json_member_text(file, "mimeType"))
			json_text(j, "mediaType", json_member_text(file, "mimeType"));
	} else if (kind && (!strcmp(kind, "text") || !strcmp(kind, "data"))) {
		copy_member(j, part, kind);
	} else {
		json_end(j);
		return fail(err, ERR_INVALID, "'kind' of a part must be text, file or data");
	}
	copy_member(j, part, "metadata");
	json_end(j);
	return 0;
}

const struct json_value *a2a_read_old(
	const struct json_value *message, struct arena *arena, struct error *err)
{
	static const char *const same[] = { "messageId", "taskId", "contextId", "metadata",
		"extensions", "referenceTaskIds" };
	const struct json_value *parts = json_member(message, "parts");
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	struct json_value *value;
	if (!message || message->kind != JSON_OBJECT || !parts || parts->kind != JSON_ARRAY) {
		fail(err, ERR_INVALID, "a message must be an object with a list 'parts'");
		return NULL;
	}
	json_object(&j, NULL);
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		copy_member(&j, message, same[i]);
	json_array(&j, "parts");
	for (const struct json_value *part = parts->first; part; part = part->next)
		if (read_old_part(&j, part, err))
			return NULL;
	json_end(&j);
	json_end(&j);
	const char *kept = arena_bytes(arena, text.data, text.len);
	return json_read(str_from(kept), arena, &value, err) ? NULL : value;
}
