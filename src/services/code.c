#include "services/code.h"

#include "services/desk.h"
#include "services/scripts.h"

#define SERVICE "code"
#define OUTPUT_BYTES_MAX (8ull << 20) /* of each command: the answer is made in one piece */
#define TTL_MS (24ull * 3600 * 1000)

struct code_job {
	struct fiber *fiber;
	struct desk desk;
	struct arena arena;
	struct code_wanted wanted;
	code_fn *done; /* NULL: the client is gone */
	void *ctx;
	struct exec_captured captured[2];
	struct code_answer answer;
};

static int run(
	struct code_job *job, const char *file, const char *text, bool is_tests, struct error *err)
{
	struct exec_spec spec = { .argv = code_command(&job->arena, file, text),
		.env = job->wanted.env,
		.timeout_ms = job->wanted.timeout_ms,
		.output_bytes = job->wanted.limits.output_bytes };
	if (!spec.output_bytes || spec.output_bytes > OUTPUT_BYTES_MAX)
		spec.output_bytes = OUTPUT_BYTES_MAX;
	if (is_tests && !code_is_shell(file)) {
		script_test_code(&job->arena, file, &spec);
	} else if (!is_tests && job->wanted.stdin_text.data) {
		spec.stdin_text = job->wanted.stdin_text;
		spec.has_stdin_text = true;
	}
	return desk_run(job->fiber, &job->desk, &spec, err);
}

static struct code_part take_part(struct code_job *job, struct exec_captured *captured)
{
	struct desk *desk = &job->desk;
	*captured = desk->captured;
	desk->captured = (struct exec_captured){ 0 };
	return (struct code_part){
		.exec_id = arena_text(&job->arena, desk->exec_id),
		.result = desk->result,
		.output = exec_output_of(
			(struct str){ captured->streams[0].data, captured->streams[0].len },
			(struct str){ captured->streams[1].data, captured->streams[1].len },
			captured->measures, desk->result.truncated),
		.limiter = desk->limiter[0] ? arena_text(&job->arena, desk->limiter) : NULL,
	};
}

static int create(struct code_job *job, struct error *err)
{
	const struct code_wanted *wanted = &job->wanted;
	struct workspace made = { .packages = wanted->packages,
		.python = wanted->python,
		.limits = wanted->limits,
		.network = wanted->network,
		.ttl_ms = TTL_MS };
	if (wanted->tests && !code_is_shell(wanted->tests_file))
		vec_push(&job->arena, &made.packages, "pytest");
	return desk_create(job->fiber, &job->desk, SERVICE, &made, err);
}

static int write_file(struct code_job *job, const char *file, const char *text, struct error *err)
{
	return desk_write(job->fiber, &job->desk, file, str_from(text), err);
}

static int run_code(struct code_job *job, struct error *err)
{
	const struct code_wanted *wanted = &job->wanted;
	struct code_answer *answer = &job->answer;
	if (create(job, err) || write_file(job, wanted->file, wanted->code, err) ||
		(wanted->tests && write_file(job, wanted->tests_file, wanted->tests, err)) ||
		run(job, wanted->file, wanted->code, false, err))
		return -1;
	answer->code = take_part(job, &job->captured[0]);
	if (!wanted->tests || result_exit_code(&answer->code.result))
		return 0;
	if (run(job, wanted->tests_file, wanted->tests, true, err))
		return -1;
	answer->tests = take_part(job, &job->captured[1]);
	answer->has_run_tests = true;
	answer->verdict = code_judge(wanted->tests_file, &answer->tests.result);
	return 0;
}

static void run_job(struct fiber *fiber, void *ctx)
{
	struct code_job *job = ctx;
	struct error err, why;
	job->fiber = fiber;
	int failed = run_code(job, &err);
	fiber_end_cancellation(fiber);
	if (desk_remove(fiber, &job->desk, &why))
		log_record(core_log(job->desk.core), LOG_LEVEL_WARN,
			"the workspace of a code run can't be removed", "workspace", job->desk.id,
			"error", why.text, NULL);
	if (job->done)
		job->done(job->ctx, failed ? NULL : &job->answer, failed ? &err : NULL);
	for (int i = 0; i < 2; i++)
		if (job->captured[i].core)
			exec_captured_done(&job->captured[i]);
	desk_done(&job->desk);
	arena_done(&job->arena);
	free(job);
}

struct code_job *code_run(const struct request *request, struct core *core,
	const struct code_wanted *wanted, code_fn *done, void *ctx, struct error *err)
{
	if (core_check(request, core, VERB_CODE_RUN, NULL, err))
		return NULL;
	struct code_job *job = xzalloc(sizeof *job);
	arena_init(&job->arena);
	code_copy(&job->arena, wanted, &job->wanted);
	desk_init(&job->desk, core, access_keep(request, &job->arena));
	job->done = done;
	job->ctx = ctx;
	job->answer.has_tests = wanted->tests;
	job->answer.verdict = CODE_NOT_RUN;
	fiber_start(run_job, job);
	return job;
}

void code_cancel(struct code_job *job)
{
	job->done = NULL;
	fiber_cancel(job->fiber);
}

static void print_part(struct json *j, const struct code_part *part)
{
	exec_print_result(j, part->exec_id, &part->result, &part->output, part->limiter, NULL);
}

void code_print_answer(struct json *j, const struct code_answer *answer)
{
	json_object(j, NULL);
	print_part(j, &answer->code);
	if (!answer->has_tests) {
		json_null(j, "tests");
		json_end(j);
		return;
	}
	json_object(j, "tests");
	json_text(j, "verdict", code_verdict_names[answer->verdict]);
	if (answer->has_run_tests) {
		json_object(j, "result");
		print_part(j, &answer->tests);
		json_end(j);
	} else {
		json_null(j, "result");
	}
	json_end(j);
	json_end(j);
}

/* ---- the service ---- */

struct code_state {
	struct service_state base;
};

static void start(void *state)
{
	const struct code_state *code = state;
	desk_sweep(code->base.core, SERVICE, "left behind", NULL, NULL);
}

const struct service code_service = {
	.name = SERVICE, .size = sizeof(struct code_state), .start = start
};
