/* A call of a tool: an exec in the desk of its version. */
#include "format/text/json_read.h"
#include "services/scripts.h"
#include "services/tools_internal.h"

#define OUTPUT_BYTES_MAX (8ull << 20)
#define MARK_BYTES 16
#define MARK_LEN (2 * MARK_BYTES)

struct tool_call_job {
	struct fiber *fiber;
	struct tool_entry *entry;
	struct exec_spec spec;
	struct desk desk;
	struct arena arena;
	char mark[MARK_LEN + 1];
	tool_call_fn *done; /* NULL: the client is gone */
	void *ctx;
};

/* What stands behind the mark; false: nothing does. *out gets what is before it. */
static bool cut_at_mark(const struct tool_call_job *job, struct str *out, struct str *answer)
{
	const char *at = out->len ? memmem(out->data, out->len, job->mark, MARK_LEN) : NULL;
	if (!at)
		return false;
	answer->data = at + MARK_LEN;
	answer->len = (size_t)(out->data + out->len - answer->data);
	out->len = (size_t)(at - out->data);
	return true;
}

static void explain_end(struct tool_call_job *job, struct tool_answer *answer)
{
	const struct result *result = &job->desk.result;
	answer->reason = reason_names[result->reason];
	answer->message =
		result->reason == REASON_EXITED
			? arena_printf(&job->arena,
				  "the process ended with exit code %d before run "
				  "returned",
				  result->exit_status)
		: result->reason == REASON_SIGNALED
			? arena_printf(
				  &job->arena, "the process was ended by signal %d", result->signal)
			: arena_printf(&job->arena, "the call was ended: %s", answer->reason);
}

/* The script in the sandbox is not trusted: whatever it says is checked. */
static void read_answer(struct tool_call_job *job, struct str text, struct tool_answer *answer)
{
	struct json_value *value;
	struct error err;
	if (json_read(text, &job->arena, &value, &err)) {
		answer->reason = "invalid_result";
		answer->message =
			arena_printf(&job->arena, "the result is not valid: %s", err.text);
		return;
	}
	const struct json_value *result = json_member(value, "result");
	const struct json_value *failure = json_member(value, "error");
	if (result) {
		answer->result = result->source;
		return;
	}
	const char *reason = json_member_text(failure, "reason");
	const char *message = json_member_text(failure, "message");
	answer->reason = reason && !strcmp(reason, "invalid_result") ? "invalid_result" : "raised";
	answer->type = json_member_text(failure, "type");
	answer->message = message ? message : "";
	answer->traceback = json_member_text(failure, "traceback");
}

static void take_end(struct tool_call_job *job, struct tool_answer *answer)
{
	const struct buf *streams = job->desk.captured.streams;
	struct str out = { streams[0].data, streams[0].len }, text;
	if (cut_at_mark(job, &out, &text) && job->desk.result.reason == REASON_EXITED)
		read_answer(job, text, answer);
	else
		explain_end(job, answer);
	answer->duration_ms = job->desk.result.duration_ms;
	answer->output = exec_output_whole(
		out, (struct str){ streams[1].data, streams[1].len }, job->desk.result.truncated);
}

static void run_call(struct fiber *fiber, void *ctx)
{
	struct tool_call_job *job = ctx;
	struct tools *tools = job->entry->tools;
	struct tool_answer answer = { .name = job->entry->model.name,
		.version = job->entry->model.version };
	struct error err;
	job->fiber = fiber;
	int failed = desk_run(fiber, &job->desk, &job->spec, &err);
	if (failed)
		error_context(&err, "call tool '%s'", answer.name);
	else
		take_end(job, &answer);
	tools->calls++;
	tools->failed_calls += !answer.result.len;
	if (job->done)
		job->done(job->ctx, failed ? NULL : &answer, failed ? &err : NULL);
	job->entry->users--;
	job->entry->calls--;
	tools_arm_sweep(tools);
	desk_done(&job->desk);
	arena_done(&job->arena);
	free(job);
}

static void make_mark(char mark[MARK_LEN + 1])
{
	unsigned char random[MARK_BYTES];
	id_random(random, sizeof random);
	for (size_t i = 0; i < sizeof random; i++)
		str_format(mark + 2 * i, 3, "%02x", random[i]);
}

struct tool_call_job *tools_call(const struct request *request, struct tools *tools,
	const char *name, const struct tool_call *call, tool_call_fn *done, void *ctx,
	struct error *err)
{
	if (core_check(request, tools->base.core, VERB_TOOL_CALL, NULL, err))
		return NULL;
	struct tool_entry *entry = call->version ? tools_find(tools, name, call->version)
						 : tools_find_active(tools, name);
	struct tool_entry *any = tools_find(tools, name, 0);
	if (!any || (call->version && !entry)) {
		tools_fail_unknown(tools, name, call->version, err);
		return NULL;
	}
	if (entry && entry->is_removed) {
		fail(err, ERR_NOT_FOUND, "version %llu of tool '%s' is being removed",
			(unsigned long long)entry->model.version, name);
		return NULL;
	}
	if (!entry || !entry->model.workspace) {
		fail(err, ERR_CONFLICT, "tool '%s' isn't loaded: %s", name,
			any->model.error ? any->model.error : "it is being forged");
		error_hint(err, "carrel tool show %s lists its versions", name);
		return NULL;
	}
	struct tool_call_job *job = xzalloc(sizeof *job);
	arena_init(&job->arena);
	job->entry = entry;
	job->spec = (struct exec_spec){ .timeout_ms = call->timeout_ms,
		.output_bytes = OUTPUT_BYTES_MAX };
	job->done = done;
	job->ctx = ctx;
	entry->users++;
	entry->calls++;
	make_mark(job->mark);
	desk_init(&job->desk, tools->base.core, access_keep(request, &job->arena));
	str_copy(job->desk.id, sizeof job->desk.id, entry->model.workspace);
	/* Of its row: what earlier calls have left in its desk is not the code. */
	script_call(&job->arena, job->mark, entry->model.code,
		call->arguments ? call->arguments : "{}", &job->spec);
	fiber_start(run_call, job);
	return job;
}

void tools_cancel_call(struct tool_call_job *job)
{
	job->done = NULL;
	fiber_cancel(job->fiber);
}

void tool_print_answer(struct json *j, const struct tool_answer *answer)
{
	auto_arena struct arena arena = { 0 };
	bool is_good = answer->result.len;
	json_object(j, NULL);
	json_text(j, "tool", answer->name);
	json_u64(j, "version", answer->version);
	json_bool(j, "ok", is_good);
	if (is_good)
		json_raw(j, "result", arena_bytes(&arena, answer->result.data, answer->result.len));
	else
		json_null(j, "result");
	if (is_good) {
		json_null(j, "error");
	} else {
		json_object(j, "error");
		json_text(j, "reason", answer->reason);
		json_text(j, "type", answer->type);
		json_text(j, "message", answer->message);
		json_text(j, "traceback", answer->traceback);
		json_end(j);
	}
	exec_print_output(j, &answer->output);
	json_u64(j, "duration_ms", answer->duration_ms);
	json_end(j);
}
