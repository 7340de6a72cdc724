#include "model/agents/task.h"
#include "model/records/rows.h"

#define PARTS_MAX 1000

const char *const task_state_names[TASK_STATE_COUNT + 1] = {
	[TASK_SUBMITTED] = "submitted",
	[TASK_WORKING] = "working",
	[TASK_INPUT_REQUIRED] = "input-required",
	[TASK_COMPLETED] = "completed",
	[TASK_FAILED] = "failed",
	[TASK_CANCELED] = "canceled",
	[TASK_REJECTED] = "rejected",
};

int task_state_find(const char *const names[TASK_STATE_COUNT + 1], const char *text)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(names[i], text))
			return i;
	return -1;
}

#define AT(member) offsetof(struct task, member)
static const struct field rows[] = {
	ROW(ID, id, NULL, FIELD_COLUMN),
	ROW(TEXT, agent, NULL, FIELD_COLUMN),
	ROW(TEXT, context, NULL, FIELD_COLUMN),
	ROW(CHOICE, state, NULL, FIELD_COLUMN, .names = task_state_names),
	{ "created_at", FIELD_TIME, AT(created_ms), NULL, FIELD_COLUMN, .kept = "created_ms" },
	{ "updated_at", FIELD_TIME, AT(updated_ms), NULL, FIELD_COLUMN, .kept = "updated_ms" },
	ROW(TEXT, workspace, NULL, FIELD_KEPT | FIELD_NULLABLE),
	ROW(TEXT, requested_by, NULL, FIELD_KEPT),
	ROW(TEXT, message, NULL, FIELD_KEPT | FIELD_NULLABLE),
	ROW(TEXT, history, NULL, FIELD_KEPT),
	ROW(TEXT, artifacts, NULL, FIELD_KEPT),
};
#undef AT
const struct record task_record = { "Task", NULL, RECORD_ROWS(rows) };

/* ---- messages ---- */

void task_print_message(struct buf *out, const struct task_message *message, const char *role,
	const char *task, const char *context)
{
	struct json j = json_to(out, false);
	json_object(&j, NULL);
	json_text(&j, "messageId", message->id);
	json_text(&j, "role", role);
	json_text(&j, "taskId", task);
	json_text(&j, "contextId", context);
	json_raw(&j, "parts", message->parts);
	buf_text(out, message->rest);
	json_end(&j);
}

void task_make_message(const char *text, struct arena *arena, struct task_message *out)
{
	auto_buf struct buf parts = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&parts, false);
	char *id = arena_alloc(arena, ID_LEN + 1);
	id_make(id);
	json_array(&j, NULL);
	json_object(&j, NULL);
	json_text(&j, "text", text);
	json_end(&j);
	json_end(&j);
	*out = (struct task_message){ .id = id,
		.parts = arena_bytes(arena, parts.data, parts.len),
		.rest = "",
		.text = arena_text(arena, text),
		.is_text = true };
}

void task_copy_json(struct json *j, const char *key, const struct json_value *value)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	bool is_string = false;
	for (size_t i = 0; i < value->source.len; i++) {
		char c = value->source.data[i];
		if (is_string && c == '\\' && i + 1 < value->source.len) {
			buf_char(&text, c);
			c = value->source.data[++i];
		} else if (c == '"') {
			is_string = !is_string;
		}
		if (is_string || !strchr(" \t\r\n", c))
			buf_char(&text, c);
	}
	json_raw(j, key, text.data);
}

static const char *const part_kinds[] = { "text", "raw", "url", "data", NULL };

int task_copy_part(struct json *j, const struct json_value *part, struct error *err)
{
	const struct json_value *content = NULL;
	size_t count = 0;
	if (part->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "a part must be an object");
	for (size_t i = 0; part_kinds[i]; i++) {
		const struct json_value *member = json_member(part, part_kinds[i]);
		if (!member)
			continue;
		count++;
		content = member;
		if (i < 3 && member->kind != JSON_STRING)
			return fail(
				err, ERR_INVALID, "'%s' of a part must be a text", part_kinds[i]);
	}
	if (count != 1)
		return fail(err, ERR_INVALID,
			"a part must have exactly one of 'text', 'raw', 'url' and 'data'");
	json_object(j, NULL);
	task_copy_json(j, content->key.data, content);
	static const char *const others[] = { "filename", "mediaType", "metadata", NULL };
	for (size_t i = 0; others[i]; i++) {
		const struct json_value *member = json_member(part, others[i]);
		if (member && member->kind == (i == 2 ? JSON_OBJECT : JSON_STRING))
			task_copy_json(j, others[i], member);
		else if (member && member->kind != JSON_NULL)
			return fail(
				err, ERR_INVALID, "'%s' of a part is of the wrong type", others[i]);
	}
	json_end(j);
	return 0;
}

static int read_parts(const struct json_value *list, struct arena *arena, struct task_message *out,
	struct error *err)
{
	auto_buf struct buf parts = buf_empty(BUF_MAX_DEFAULT), text = buf_empty(BUF_MAX_DEFAULT),
			    data = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&parts, false);
	if (!list || list->kind != JSON_ARRAY || !list->count || list->count > PARTS_MAX)
		return fail(err, ERR_INVALID, "'parts' must be a list of 1 to %d parts", PARTS_MAX);
	out->is_text = true;
	json_array(&j, NULL);
	for (const struct json_value *part = list->first; part; part = part->next) {
		if (task_copy_part(&j, part, err))
			return error_context(err, "parts");
		const struct json_value *said = json_member(part, "text");
		const struct json_value *value = json_member(part, "data");
		if (said)
			buf_append(&text, said->string.data, said->string.len);
		else
			out->is_text = false;
		if (value && !data.len) {
			struct json d = json_to(&data, false);
			task_copy_json(&d, NULL, value);
		}
	}
	json_end(&j);
	if (memchr(text.data, 0, text.len))
		return fail(err, ERR_INVALID, "parts: the text has a NUL character");
	out->parts = arena_bytes(arena, parts.data, parts.len);
	out->text = arena_bytes(arena, text.data, text.len);
	out->data = data.len ? arena_bytes(arena, data.data, data.len) : NULL;
	return 0;
}

/* metadata, extensions and referenceTaskIds. */
static int read_rest(const struct json_value *value, struct arena *arena, struct task_message *out,
	struct error *err)
{
	static const struct {
		const char *name;
		enum json_kind kind;
	} rows_[] = { { "metadata", JSON_OBJECT }, { "extensions", JSON_ARRAY },
		{ "referenceTaskIds", JSON_ARRAY } };
	auto_buf struct buf rest = buf_empty(BUF_MAX_DEFAULT);
	for (size_t i = 0; i < sizeof rows_ / sizeof *rows_; i++) {
		const struct json_value *member = json_member(value, rows_[i].name);
		if (!member || member->kind == JSON_NULL)
			continue;
		if (member->kind != rows_[i].kind)
			return fail(err, ERR_INVALID, "'%s' is of the wrong type", rows_[i].name);
		for (const struct json_value *one = member->first;
			member->kind == JSON_ARRAY && one; one = one->next)
			if (one->kind != JSON_STRING)
				return fail(err, ERR_INVALID, "'%s' must be a list of texts",
					rows_[i].name);
		buf_printf(&rest, ",\"%s\":", rows_[i].name);
		struct json j = json_to(&rest, false);
		task_copy_json(&j, NULL, member);
	}
	out->rest = arena_bytes(arena, rest.data, rest.len);
	return 0;
}

int task_read_message(const struct json_value *value, bool needs_id, struct arena *arena,
	struct task_message *out, struct error *err)
{
	struct task_message read = { 0 };
	if (!value || value->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "a message must be an object");
	read.id = json_member_text(value, "messageId");
	if (needs_id && (!read.id || !read.id[0] || strlen(read.id) > TASK_CONTEXT_MAX))
		return fail(err, ERR_INVALID, "'messageId' must be a text of 1 to %d bytes",
			TASK_CONTEXT_MAX);
	if (!read.id || !read.id[0]) {
		char *id = arena_alloc(arena, ID_LEN + 1);
		id_make(id);
		read.id = id;
	}
	if (read_parts(json_member(value, "parts"), arena, &read, err) ||
		read_rest(value, arena, &read, err))
		return -1;
	*out = read;
	return 0;
}
