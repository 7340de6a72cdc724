/* task_run.c -- a task while it runs: its command, its answers, its end. */
#include "base/clock.h"
#include "services/agents_internal.h"
#include "services/desk.h"

#define PIECE ((size_t)65536)

static struct core *core_of(const struct task_run *run)
{
	return run->task->agents->base.core;
}

/* ---- failures ---- */

static void on_failing(struct loop *loop, void *ctx)
{
	struct task_run *run = ctx;
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	run->failing = NULL;
	if (!run->why) {
		task_set_state(run->task, run->final, run->message);
		return;
	}
	program_explain(run, &text);
	task_set_text(run->task, run->final, text.data);
}

void run_finish(struct task_run *run, enum task_state state, const char *message)
{
	if (run->failing)
		return;
	run->final = state;
	run->message = arena_text(&run->arena, message);
	run->failing = loop_after(run->task->agents->base.loop, 0, on_failing, run);
}

void run_fail(struct task_run *run, const char *why)
{
	if (run->failing)
		return;
	run->why = arena_text(&run->arena, why);
	run_finish(run, TASK_FAILED, NULL);
}

void run_refuse(struct task_run *run, const struct error *err)
{
	bool is_refused = err->code == ERR_POLICY || err->code == ERR_DENIED ||
			  err->code == ERR_APPROVAL_REQUIRED;
	task_set_text(run->task, is_refused ? TASK_REJECTED : TASK_FAILED, err->text);
}

/* ---- the command ---- */

static void flush_output(struct task_run *run)
{
	static const char *const names[] = { "stdout", "stderr" };
	for (int i = 0; i < 2; i++) {
		if (!run->tails[i].len)
			continue;
		task_add_output(run->task, task_artifact(run->task, names[i], ""),
			(struct str){ run->tails[i].data, run->tails[i].len });
		buf_clear(&run->tails[i]);
	}
}

/* An incomplete character at the end of a piece waits for the next one. */
static void on_shell_output(struct task_run *run, int stream, struct str data)
{
	static const char *const names[] = { "stdout", "stderr" };
	struct buf *tail = &run->tails[stream == 2];
	struct artifact *artifact = task_artifact(run->task, names[stream == 2], "");
	auto_buf struct buf joined = buf_empty(BUF_MAX_DEFAULT);
	if (tail->len) {
		buf_append(&joined, tail->data, tail->len);
		buf_append(&joined, data.data, data.len);
		data = (struct str){ joined.data, joined.len };
	}
	size_t held = str_utf8_incomplete(data.data, data.len);
	buf_clear(tail);
	buf_append(tail, data.data + data.len - held, held);
	data.len -= held;
	task_add_output(run->task, artifact, data);
}

void run_output(struct task_run *run, int stream, struct str data)
{
	if (run->failing && stream == 1)
		return;
	if (run->entry->model.kind == AGENT_SHELL)
		on_shell_output(run, stream, data);
	else
		program_output(run, stream, data);
}

static void on_output(void *ctx, struct core_exec *e, int stream, struct str data)
{
	run_output(ctx, stream, data);
}

void run_started(struct task_run *run)
{
	run->approval[0] = 0;
	if (run->task->model.state != TASK_WORKING)
		task_set_state(run->task, TASK_WORKING, NULL);
	if (run->entry->model.kind == AGENT_COMMAND)
		program_send(run, run->first);
}

static void on_started(void *ctx, struct core_exec *e)
{
	run_started(ctx);
}

/* The operation in full: what is approved is this exec. */
void run_ask(struct task_run *run, const struct approval *approval)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf parts = buf_empty(BUF_MAX_DEFAULT), json = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&parts, false);
	bool by_client = run->entry->model.approver == AGENT_CLIENT;
	struct task_message message;
	run->is_shown = true;
	memcpy(run->approval, approval->id, sizeof run->approval);
	task_make_message(by_client ? "Approve this command? Answer 'approve' or 'deny'."
				    : "This command waits for a reviewer.",
		&arena, &message);
	json_array(&j, NULL);
	json_object(&j, NULL);
	json_text(&j, "text", message.text);
	json_end(&j);
	json_object(&j, NULL);
	json_object(&j, "data");
	json_text(&j, "type", "approval_required");
	json_text(&j, "approver", by_client ? "client" : "reviewer");
	record_print(&j, "approval", &approval_record, approval);
	json_end(&j);
	json_end(&j);
	json_end(&j);
	message.parts = parts.data;
	task_print_message(
		&json, &message, "ROLE_AGENT", run->task->model.id, run->task->model.context);
	task_set_state(run->task, TASK_INPUT_REQUIRED, json.data);
}

/* It is in the background now, where it waits as long as the approval does. */
static void on_waiting(void *ctx, struct core_exec *e)
{
	struct task_run *run = ctx;
	exec_detach(e);
	run->exec = NULL;
	run->is_captured = false;
	follow_begin(run, e);
	run_ask(run, exec_approval(e));
}

static const char *explain(
	const struct result *result, const char *error, struct core *core, struct arena *arena)
{
	if (core_is_stopping(core))
		return "the daemon was stopped while the task ran";
	if (error)
		return error;
	if (result->reason == REASON_EXITED)
		return arena_printf(
			arena, "the command ended with exit code %d", result->exit_status);
	if (result->reason == REASON_SIGNALED)
		return arena_printf(arena, "the command was ended by signal %d", result->signal);
	return arena_printf(arena, "the command was ended: %s", reason_names[result->reason]);
}

/* Its end, for programs: not every client shows the message of a state. */
static void add_result(struct task_run *run, const struct result *result)
{
	auto_buf struct buf part = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&part, false);
	json_object(&j, NULL);
	json_object(&j, "data");
	json_i64(&j, "exit_code", result_exit_code(result));
	json_text(&j, "reason", reason_names[result->reason]);
	json_u64(&j, "duration_ms", result->duration_ms);
	json_bool(&j, "truncated", result->truncated);
	json_end(&j);
	json_end(&j);
	task_add_parts(run->task, task_artifact(run->task, "result", ""), part.data, false, true);
}

/* In pieces: of more than a task keeps, the beginning is kept. */
static void take_captured(struct task_run *run, const struct exec_captured *captured)
{
	for (int i = 0; i < 2; i++) {
		struct str rest = { captured->streams[i].data, captured->streams[i].len };
		while (rest.len) {
			struct str piece = { rest.data, rest.len < PIECE ? rest.len : PIECE };
			on_shell_output(run, i + 1, piece);
			rest = (struct str){ rest.data + piece.len, rest.len - piece.len };
		}
	}
}

void run_conclude(struct task_run *run, const struct exec_record *record,
	const struct exec_captured *captured)
{
	struct agent_task *task = run->task;
	auto_arena struct arena arena = { 0 };
	struct result result = record->result;
	const char *text =
		arena_text(&arena, explain(&result, record->error, core_of(run), &arena));
	if (run->failing)
		return;
	if (result.reason == REASON_DENIED) {
		task_set_text(task, TASK_REJECTED, text);
	} else if (record->error_exit_code) { /* it could not be started */
		task_set_text(task, TASK_FAILED, text);
	} else if (run->entry->model.kind == AGENT_COMMAND) {
		program_ended(run, &result, text);
	} else {
		if (captured)
			take_captured(run, captured);
		flush_output(run);
		add_result(run, &result);
		bool is_done = result.reason == REASON_EXITED && !result.exit_status;
		task_set_text(task, is_done ? TASK_COMPLETED : TASK_FAILED, is_done ? NULL : text);
	}
}

static void on_ended(void *ctx, struct core_exec *e, const struct error *err)
{
	struct task_run *run = ctx;
	run_unawait(run);
	run->exec = NULL;
	if (err)
		run_refuse(run, err);
	else
		run_conclude(run, exec_record_of(e), run->is_captured ? exec_captured_of(e) : NULL);
}

void run_exec(struct task_run *run, struct core_workspace *w)
{
	const struct a2a_agent *agent = &run->entry->model;
	struct exec_listener listener = { on_started, on_output, on_ended, run, on_waiting };
	struct exec_spec spec = { .id = run->task->model.id,
		.timeout_ms = agent->timeout_ms,
		.approval = EXEC_APPROVAL_RETURN };
	struct error err;
	memcpy(run->workspace, core_model(w)->id, sizeof run->workspace);
	run->task->model.workspace = arena_text(&run->task->arena, run->workspace);
	if (agent->kind == AGENT_SHELL) {
		spec.command = run->text;
	} else {
		spec.argv = agent->command;
		spec.open_stdin = true;
		spec.output_bytes = PROGRAM_OUTPUT_MAX;
	}
	exec_spec_expand(&spec, &run->arena);
	if (run->is_captured) {
		listener.started = NULL;
		listener.output = NULL;
	}
	if (exec_start(run->request, w, &spec, run->is_captured ? EXEC_CAPTURED : EXEC_STREAMED,
		    NULL, &listener, &run->exec, &err))
		run_refuse(run, &err);
	else if (run->is_captured)
		task_set_state(run->task, TASK_WORKING, NULL);
}

/* ---- begin, continue, end ---- */

static void on_row(void *ctx, const struct error *err)
{
	struct agent_task *task = task_recall(ctx);
	struct task_run *run = task ? task->run : NULL;
	if (!run)
		return;
	if (err) {
		run_refuse(run, err);
		return;
	}
	task_tell_kept(task);
	context_find(run);
}

static struct task_run *run_new(struct agent_task *task)
{
	struct task_run *run = task->run = xzalloc(sizeof *run);
	run->task = task;
	arena_init(&run->arena);
	run->entry = entry_hold(task->agents, task->model.agent);
	buf_init(&run->tails[0], BUF_MAX_DEFAULT);
	buf_init(&run->tails[1], BUF_MAX_DEFAULT);
	buf_init(&run->input, BUF_MAX_DEFAULT);
	run->next = task->agents->runs;
	task->agents->runs = run;
	task->agents->running++;
	share_join(&task->agents->run_shares, task->model.requested_by, &run->share);
	share_add(&run->share, 1);
	return run;
}

void run_begin(struct agent_task *task, const struct request *request, const struct task_send *send,
	const char *message)
{
	struct task_run *run = run_new(task);
	run->request = access_keep(request, &run->arena);
	run->text = arena_text(&run->arena, send->message.text);
	run->first = arena_text(&run->arena, message);
	run->is_captured = send->waits && run->entry->model.kind == AGENT_SHELL;
	run->is_throwaway = !send->context && !run->entry->model.workspace_without_context;
	if (send->waits) {
		/* Its client is answered after its end: one that ends at once is written once. */
		task_save_soon(task);
		context_find(run);
	} else {
		task->is_kept = true;
		core_put(task->agents->base.core, &store_tasks, task_model(task), on_row,
			task_remember(task));
	}
}

/* ---- after a start ---- */

/* The message that began the task, which its program has not got yet. */
static const char *first_message(struct task_run *run)
{
	struct json_value *list;
	struct error ignored;
	if (json_read(str_from(run->task->history.data), &run->arena, &list, &ignored) ||
		list->kind != JSON_ARRAY || !list->first)
		return "{}";
	return arena_bytes(&run->arena, list->first->source.data, list->first->source.len);
}

bool run_resume(struct agent_task *task, const char **why)
{
	struct agents *agents = task->agents;
	const struct a2a_agent *agent = agents_look(agents, str_from(task->model.agent));
	struct core_exec *e;
	struct error ignored;
	*why = "the daemon was restarted while the task ran";
	if (!agent || exec_find(core_system(), agents->base.core, task->model.id, &e, &ignored))
		return false;
	const struct exec_record *record = exec_record_of(e);
	if (agent->kind == AGENT_COMMAND && record->state != EXEC_WAITING) {
		*why = "the daemon was restarted while the agent's program ran, which lost its "
		       "stdin by that";
		exec_cancel(core_system(), e, &ignored);
		return false;
	}
	struct task_run *run = run_new(task);
	const struct approval *approval = exec_approval(e);
	run->is_shown = true;
	run->request = core_system();
	run->first = first_message(run);
	memcpy(run->workspace, record->workspace, sizeof run->workspace);
	task->model.workspace = arena_text(&task->arena, run->workspace);
	run->is_throwaway = context_is_throwaway(agents, run->workspace);
	follow_begin(run, e);
	bool is_asked = approval && approval->state == APPROVAL_PENDING;
	if (is_asked)
		memcpy(run->approval, approval->id, sizeof run->approval);
	if (is_asked && task->model.state != TASK_INPUT_REQUIRED)
		run_ask(run, approval);
	else if (!is_asked && task->model.state == TASK_INPUT_REQUIRED)
		task_set_state(task, TASK_WORKING, NULL);
	return true;
}

/* ---- answers ---- */

/* "approve" or "deny", as text or as {"decision": …}. */
static int read_decision(const struct task_message *message, int *decision, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct json_value *value = NULL;
	struct error ignored;
	const char *word = NULL;
	if (message->data && !json_read(str_from(message->data), &arena, &value, &ignored))
		word = json_member_text(value, "decision");
	else if (message->is_text)
		word = message->text;
	struct str said = str_trim(str_from(word ? word : ""));
	if (said.len == 7 && !strncasecmp(said.data, "approve", 7))
		*decision = APPROVAL_APPROVED;
	else if (said.len == 4 && !strncasecmp(said.data, "deny", 4))
		*decision = APPROVAL_DENIED;
	else
		return fail(err, ERR_INVALID,
			"answer 'approve' or 'deny', as text or as data {\"decision\": ...}");
	return 0;
}

/* What the answer did is seen by what the exec does; one that failed leaves the task waiting. */
static void on_answered(void *ctx, const struct approval *approval, const struct error *err)
{
	struct agent_task *task = task_recall(ctx);
	if (!task || !task->run || !task->run->approval[0])
		return;
	if (err)
		task_set_text(task, TASK_INPUT_REQUIRED, err->text);
	else
		task->run->approval[0] = 0;
}

static int answer_approval(const struct request *request, struct task_run *run,
	const struct task_message *message, struct error *err)
{
	const struct a2a_agent *agent = &run->entry->model;
	struct approval_answer answer = { 0 };
	if (agent->approver != AGENT_CLIENT)
		return fail(
			err, ERR_CONFLICT, "task '%s' waits for a reviewer", run->task->model.id);
	if (read_decision(message, &answer.decision, err))
		return -1;
	const struct request *review =
		access_agent(request, arena_printf(&run->arena, "%s, as approver,", agent->name),
			SCOPE_READ | SCOPE_REVIEW, &run->arena);
	core_approval_answer(review, core_of(run), run->approval, &answer, on_answered,
		task_remember(run->task));
	return 0;
}

int run_answer(const struct request *request, struct task_run *run,
	const struct task_message *message, const char *json, struct error *err)
{
	struct agent_task *task = run->task;
	bool is_program = run->entry->model.kind == AGENT_COMMAND;
	if (run->approval[0] ? answer_approval(request, run, message, err)
			     : !is_program || (!run->exec && !run->is_background))
		return run->approval[0]
			       ? -1
			       : fail(err, ERR_CONFLICT, "task '%s' runs, and takes no message",
					 task->model.id);
	bool is_answer = run->approval[0];
	run->is_shown = true;
	task_add_history(task, json);
	if (!is_answer)
		program_send(run, json);
	if (task->model.state != TASK_WORKING)
		task_set_state(task, TASK_WORKING, NULL);
	task_save(task); /* in one commit with the answer */
	return 0;
}

/* The agent may have a longer ttl than when the context was made. */
static void prolong(struct task_run *run)
{
	struct workspace_change change = { .has_ttl = true, .ttl_ms = run->entry->model.ttl_ms };
	struct core_workspace *w;
	struct error err;
	if (core_is_stopping(core_of(run)) ||
		core_find(core_system(), core_of(run), run->workspace, &w, &err))
		return;
	uint64_t ttl_ms = core_model(w)->ttl_ms;
	if (ttl_ms && ttl_ms < change.ttl_ms)
		core_update(core_system(), w, &change, NULL, NULL);
}

void run_unawait(struct task_run *run)
{
	struct core_exec *e = run->is_background ? follow_exec(run) : run->exec;
	if (run->is_awaiting_stdin && e)
		exec_unawait_stdin(e, &run->writer);
	run->is_awaiting_stdin = false;
}

/* What it leaves behind when its task has ended. When core ends, a command in the background waits
 * or runs on. */
static void clean_up(struct task_run *run)
{
	struct core_exec *e = run->is_background ? follow_exec(run) : NULL;
	struct error err;
	if (e) {
		follow_end(run);
		exec_cancel(core_system(), e, &err);
	}
	if (run->workspace[0] && !run->is_throwaway)
		prolong(run);
	else if (run->workspace[0])
		desk_drop(core_system(), core_of(run), run->workspace);
}

void run_end(struct task_run *run)
{
	struct agents *agents = run->task->agents;
	struct task_run **at = &agents->runs;
	run->task->run = NULL;
	context_leave_opening(run);
	run_unawait(run);
	if (run->exec)
		exec_detach(run->exec);
	loop_cancel(agents->base.loop, run->failing);
	if (task_state_is_final(run->task->model.state))
		clean_up(run);
	follow_end(run);
	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
	agents->running--;
	share_release(&run->share);
	buf_done(&run->tails[0]);
	buf_done(&run->tails[1]);
	buf_done(&run->input);
	entry_release(run->entry);
	arena_done(&run->arena);
	free(run);
}
