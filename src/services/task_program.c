/* task_program.c -- programs that are agents: JSON lines on their stdin and stdout, as
 * docs/agents.md describes them. What they write is not trusted. */
#include "services/agents_internal.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)
#define LOG_MAX 4096 /* of stderr, its end, in the message of a failed task */

/* ---- to the program ---- */

static void write_input(struct task_run *run);

static void on_drained(void *ctx)
{
	struct task_run *run = ctx;
	run->is_awaiting_stdin = false;
	write_input(run);
}

static void write_input(struct task_run *run)
{
	struct core_exec *e = run->is_background ? follow_exec(run) : run->exec;
	size_t taken = 0;
	struct error err;
	if (run->is_awaiting_stdin || !e || !run->input.len)
		return;
	/* A program that has closed its stdin doesn't read: its own end says what becomes of it. */
	if (exec_write_stdin(run->request, e, (struct str){ run->input.data, run->input.len },
		    false, &taken, &err)) {
		buf_clear(&run->input);
		return;
	}
	buf_drop_front(&run->input, taken);
	if (!run->input.len)
		return;
	run->writer = (struct exec_writer){ on_drained, run, NULL };
	run->is_awaiting_stdin = true;
	exec_await_stdin(e, &run->writer);
}

void program_send(struct task_run *run, const char *message)
{
	struct json j = json_to(&run->input, false);
	json_object(&j, NULL);
	json_text(&j, "task_id", run->task->model.id);
	json_text(&j, "context_id", run->task->model.context);
	json_raw(&j, "message", message);
	json_raw(&j, "history", task_model(run->task)->history);
	json_end(&j);
	buf_char(&run->input, '\n');
	write_input(run);
}

/* ---- from the program ---- */

static const char *fail_line(struct task_run *run, const char *why)
{
	return arena_printf(
		&run->arena, "the agent's program wrote an invalid line %u: %s", run->lines, why);
}

/* The end of its log says more. It is taken when the task ends: what was written there before the
 * failure may come after it. */
void program_explain(const struct task_run *run, struct buf *text)
{
	struct str log = { run->tails[1].data, run->tails[1].len };
	if (log.len > LOG_MAX)
		log = (struct str){ log.data + log.len - LOG_MAX, LOG_MAX };
	buf_text(text, run->why);
	if (log.len) {
		buf_text(text, "\n");
		buf_append(text, log.data, log.len);
	}
	for (size_t i = 0; i < text->len; i++)
		if (!text->data[i])
			text->data[i] = '?';
}

/* A message as it may be written: an object of A2A, or only a text. */
static int read_message(
	struct task_run *run, const struct json_value *value, struct buf *json, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct task_message message;
	if (value->kind == JSON_STRING && !memchr(value->string.data, 0, value->string.len))
		task_make_message(value->string.data, &arena, &message);
	else if (task_read_message(value, false, &arena, &message, err))
		return error_context(err, "message");
	task_print_message(
		json, &message, "ROLE_AGENT", run->task->model.id, run->task->model.context);
	return task_has_room(run->task, json->len)
		       ? 0
		       : fail(err, ERR_LIMIT, "history and artifacts have more than %zu bytes",
				 TASK_BYTES_MAX);
}

static int take_status(struct task_run *run, const struct json_value *line, struct error *err)
{
	const char *name = json_member_text(line, "status");
	int state = name ? task_state_find(task_state_names, name) : -1;
	const struct json_value *message = json_member(line, "message");
	auto_buf struct buf json = buf_empty(BUF_MAX_DEFAULT);
	if (state < TASK_WORKING)
		return fail(err, ERR_INVALID,
			"'status' must be working, input-required, completed, failed, canceled or "
			"rejected");
	if (message && message->kind != JSON_NULL && read_message(run, message, &json, err))
		return -1;
	if (json.len)
		task_add_history(run->task, json.data);
	if (!task_state_is_final((enum task_state)state)) {
		task_set_state(run->task, (enum task_state)state, json.len ? json.data : NULL);
		return 0;
	}
	/* Its last word: whatever else it does doesn't count. Not from inside a callback of the
	 * exec, which is ended with it. */
	run_finish(run, (enum task_state)state, json.len ? json.data : NULL);
	return 0;
}

/* A message that is all the answer. To a client that has seen the task it is the last one of it. */
static int take_reply(struct task_run *run, const struct json_value *line, struct error *err)
{
	auto_buf struct buf json = buf_empty(BUF_MAX_DEFAULT);
	if (read_message(run, json_member(line, "reply"), &json, err))
		return -1;
	task_add_history(run->task, json.data);
	run->task->is_reply = !run->is_shown;
	run_finish(run, TASK_COMPLETED, json.data);
	return 0;
}

static int take_artifact(struct task_run *run, const struct json_value *line, struct error *err)
{
	const struct json_value *artifact = json_member(line, "artifact");
	const struct json_value *append = json_member(line, "append");
	const struct json_value *last = json_member(line, "last");
	const struct json_value *list = json_member(artifact, "parts");
	const char *id = json_member_text(artifact, "artifactId");
	auto_buf struct buf parts = buf_empty(BUF_MAX_DEFAULT), head = buf_empty(BUF_MAX_DEFAULT);
	static const struct {
		const char *name;
		enum json_kind kind;
	} others[] = { { "name", JSON_STRING }, { "description", JSON_STRING },
		{ "metadata", JSON_OBJECT } };
	if ((append && append->kind != JSON_BOOL) || (last && last->kind != JSON_BOOL))
		return fail(err, ERR_INVALID, "'append' and 'last' must be true or false");
	if (!artifact || artifact->kind != JSON_OBJECT || !list || list->kind != JSON_ARRAY ||
		!list->count)
		return fail(err, ERR_INVALID, "'artifact' must be an object with 'parts'");
	for (const struct json_value *part = list->first; part; part = part->next) {
		struct json j = json_to(&parts, false);
		if (parts.len)
			buf_char(&parts, ',');
		if (task_copy_part(&j, part, err))
			return error_context(err, "artifact");
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		const struct json_value *member = json_member(artifact, others[i].name);
		if (!member || member->kind != others[i].kind)
			continue;
		buf_printf(&head, "\"%s\":", others[i].name);
		struct json j = json_to(&head, false);
		task_copy_json(&j, NULL, member);
		buf_char(&head, ',');
	}
	if (!task_has_room(run->task, parts.len + head.len))
		return fail(err, ERR_LIMIT, "history and artifacts have more than %zu bytes",
			TASK_BYTES_MAX);
	task_add_parts(run->task,
		task_artifact(run->task, id && id[0] ? id : "artifact", head.data), parts.data,
		append && append->boolean, last && last->boolean);
	return 0;
}

static int take_line(struct task_run *run, struct str text, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf json = buf_empty(BUF_MAX_DEFAULT);
	struct json_value *line;
	if (json_read(text, &arena, &line, err))
		return -1;
	if (json_member(line, "reply"))
		return take_reply(run, line, err);
	run->is_shown = true;
	if (json_member(line, "status"))
		return take_status(run, line, err);
	if (json_member(line, "artifact"))
		return take_artifact(run, line, err);
	const struct json_value *message = json_member(line, "message");
	if (!message)
		return fail(err, ERR_INVALID,
			"none of 'status', 'artifact', 'message' and 'reply' is there");
	if (read_message(run, message, &json, err))
		return -1;
	task_add_history(run->task, json.data);
	task_set_state(run->task, TASK_WORKING, json.data);
	return 0;
}

static void keep_log(struct task_run *run, struct str data)
{
	struct buf *log = &run->tails[1];
	buf_append(log, data.data, data.len);
	if (log->len > 4 * LOG_MAX)
		buf_drop_front(log, log->len - LOG_MAX);
}

void program_output(struct task_run *run, int stream, struct str data)
{
	struct buf *lines = &run->tails[0];
	struct error err;
	if (stream == 2) {
		keep_log(run, data);
		return;
	}
	buf_append(lines, data.data, data.len);
	size_t from = 0;
	char *end;
	while (!run->failing && (end = memchr(lines->data + from, '\n', lines->len - from))) {
		struct str line = { lines->data + from, (size_t)(end - lines->data) - from };
		from += line.len + 1;
		run->lines++;
		if (str_trim(line).len && take_line(run, line, &err))
			run_fail(run, fail_line(run, err.text));
	}
	buf_drop_front(lines, from);
	if (lines->len > LINE_MAX_BYTES && !run->failing) {
		run->lines++;
		run_fail(run, fail_line(run, "it is longer than 1 MiB"));
	}
}

void program_ended(struct task_run *run, const struct result *result, const char *why)
{
	struct error err;
	if (run->tails[0].len &&
		str_trim((struct str){ run->tails[0].data, run->tails[0].len }).len) {
		run->lines++;
		if (take_line(run, (struct str){ run->tails[0].data, run->tails[0].len }, &err)) {
			run_fail(run, fail_line(run, err.text));
			return;
		}
	}
	if (run->failing)
		return;
	if (result->reason == REASON_EXITED && !result->exit_status)
		task_set_state(run->task, TASK_COMPLETED, NULL);
	else
		run_fail(run, why);
}
