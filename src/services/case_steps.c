/* case_steps.c -- one command of a case or a cell: run in its workspace, with the beginning and the
 * end of what it writes. */
#include "services/cases_internal.h"

#define OUT_MAX ((size_t)1 << 20)

size_t steps_share(size_t count)
{
	size_t share = CASE_OUTPUT_MAX / (count ? count : 1);
	return share < CASE_STEP_OUTPUT_MAX ? share : CASE_STEP_OUTPUT_MAX;
}

/* Keeps the first half of what may be kept, and the last half of what comes after it. */
static void take(struct step *step, struct str data)
{
	size_t half = step->output_max / 2;
	if (step->head.len < half) {
		size_t room = half - step->head.len, len = data.len < room ? data.len : room;
		buf_append(&step->head, data.data, len);
		data.data += len;
		data.len -= len;
	}
	buf_append(&step->tail, data.data, data.len);
	/* Dropped in large pieces: each moves what stays. */
	if (step->tail.len > 2 * half + 65536) {
		step->dropped += step->tail.len - half;
		buf_drop_front(&step->tail, step->tail.len - half);
	}
}

static void on_output(void *ctx, struct core_exec *e, int stream, struct str data)
{
	struct step *step = ctx;
	take(step, data);
	if (stream == 1 && step->out.len + data.len <= OUT_MAX)
		buf_append(&step->out, data.data, data.len);
}

/* All three parts, as a text: it has no NUL. */
static void put_together(struct step *step)
{
	size_t half = step->output_max / 2;
	if (step->tail.len > half) {
		step->dropped += step->tail.len - half;
		buf_drop_front(&step->tail, step->tail.len - half);
	}
	buf_append(&step->output, step->head.data, step->head.len);
	if (step->dropped)
		buf_printf(&step->output, "\n[%llu bytes are left out]\n",
			(unsigned long long)step->dropped);
	buf_append(&step->output, step->tail.data, step->tail.len);
	buf_char(&step->output, '\0');
	for (size_t i = 0; i + 1 < step->output.len; i++)
		if (!step->output.data[i])
			step->output.data[i] = ' ';
	step->shown.output = step->output.data;
	step->shown.is_cut = step->dropped > 0;
}

static void set_error(struct step *step, const struct error *err)
{
	step->shown.exit_code = error_exit_code(err->code);
	step->shown.reason = err->code == ERR_POLICY || err->code == ERR_DENIED
				     ? reason_names[REASON_DENIED]
				     : "error";
	take(step, str_from(err->text));
}

static void on_ended(void *ctx, struct core_exec *e, const struct error *err)
{
	struct step *step = ctx;
	const struct exec_record *record = exec_record_of(e);
	step->exec = NULL;
	if (err) {
		set_error(step, err);
	} else {
		step->shown.exit_code = result_exit_code(&record->result);
		step->shown.reason = reason_names[record->result.reason];
		step->shown.duration_ms = record->result.duration_ms;
		step->shown.passed =
			record->result.reason == REASON_EXITED && !step->shown.exit_code;
	}
	fiber_continue(step->fiber, NULL);
}

static void cut(void *ctx)
{
	struct step *step = ctx;
	exec_detach(step->exec);
	fiber_continue(step->fiber, NULL);
}

static int start(struct step *step, const struct desk *desk, const struct step_wanted *wanted,
	struct error *err)
{
	const char *shell[] = { "/bin/sh", "-c", wanted->command, NULL };
	struct exec_spec spec = { .argv = wanted->argv.count ? wanted->argv
							     : (text_list){ shell, 3, 3 },
		.command = wanted->argv.count ? NULL : wanted->command,
		.env = wanted->env,
		.timeout_ms = wanted->timeout_ms };
	struct exec_listener listener = { .output = on_output, .ended = on_ended, .ctx = step };
	struct core_workspace *w;
	return core_find(desk->request, desk->core, desk->id, &w, err) ||
			       exec_start(desk->request, w, &spec, EXEC_STREAMED, NULL, &listener,
				       &step->exec, err)
		       ? -1
		       : 0;
}

int step_run(struct step *step, struct fiber *fiber, const struct desk *desk,
	const struct step_wanted *wanted, struct error *err)
{
	step_free(step);
	*step = (struct step){ .fiber = fiber,
		.shown = { .type = wanted->type, .name = wanted->name, .command = wanted->command },
		.output_max = wanted->output_max,
		.head = buf_empty(BUF_MAX_DEFAULT),
		.tail = buf_empty(BUF_MAX_DEFAULT),
		.out = buf_empty(BUF_MAX_DEFAULT),
		.output = buf_empty(BUF_MAX_DEFAULT) };
	if (start(step, desk, wanted, err))
		set_error(step, err);
	else if (fiber_wait_or_cut(fiber, cut, step, err))
		return -1;
	put_together(step);
	return 0;
}

void step_free(struct step *step)
{
	buf_done(&step->head);
	buf_done(&step->tail);
	buf_done(&step->out);
	buf_done(&step->output);
}

void steps_add(struct buf *steps, const struct case_step *shown)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	record_print(&j, NULL, &case_step_record, shown);
	buf_printf(steps, "%s", steps->len ? "," : "");
	buf_append(steps, text.data, text.len);
}

const char *steps_text(const struct buf *steps, struct arena *arena)
{
	return arena_printf(arena, "[%.*s]", (int)steps->len, steps->len ? steps->data : "");
}
