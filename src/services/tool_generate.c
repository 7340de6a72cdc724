/* The code and tests of a tool that is yet to be: skeletons, or what the operator's generator
 * writes, a program that is trusted no more than any other. */
#include <stdlib.h>
#include <string.h>
#include "services/tools_internal.h"

#define OUTPUT_BYTES_MAX (1ull << 20)
#define REQUIRES_BYTES_MAX (64u << 10)
#define REASON_BYTES_MAX 300
#define FILE_CODE "tool.py"
#define FILE_TESTS "test_tool.py"
#define FILE_REQUIRES "requirements.txt"

enum step { SKELETON, CREATE, RUN, READ_CODE, READ_TESTS, READ_REQUIRES, REMOVE, ANSWER };
struct tool_generate_job {
	struct tools *tools;
	struct desk desk;
	struct arena arena;
	struct tool_spec spec;
	struct tool_source source;
	struct str text;      /* that was read last */
	enum step step;	      /* that is under way */
	tool_source_fn *done; /* NULL: the client is gone */
	void *ctx;
	struct error err; /* the first one; code 0: none */
};

static void on_step(void *ctx, const struct error *err);

static void finish(struct tool_generate_job *job)
{
	if (job->done)
		job->done(job->ctx, job->err.code ? NULL : &job->source,
			job->err.code ? &job->err : NULL);
	desk_done(&job->desk);
	arena_done(&job->arena);
	free(job);
}

static void on_skeleton(struct loop *loop, void *ctx)
{
	struct tool_generate_job *job = ctx;
	tool_spec_skeleton(&job->spec, &job->arena, &job->source);
	finish(job);
}

static void create(struct tool_generate_job *job)
{
	const text_list *domains = &job->tools->settings.domains;
	struct workspace made = { .network = { .mode = domains->count ? "list" : "none",
					  .allow = *domains },
		.owner = { .tool = job->spec.name } };
	desk_create(&job->desk, TOOLS_SERVICE, &made, on_step, job);
}

static void run(struct tool_generate_job *job)
{
	const struct tool_settings *settings = &job->tools->settings;
	auto_buf struct buf input = buf_empty(BUF_MAX_DEFAULT);
	struct exec_spec spec = { .argv = settings->generator,
		.timeout_ms = settings->timeout_ms,
		.output_bytes = OUTPUT_BYTES_MAX,
		.has_stdin_text = true };
	tool_spec_print(&job->spec, &input);
	spec.stdin_text =
		(struct str){ arena_bytes(&job->arena, input.data, input.len), input.len };
	desk_run(&job->desk, &spec, on_step, job);
}

static int judge_run(struct tool_generate_job *job, struct error *err)
{
	const struct result *result = &job->desk.result;
	const struct buf *errors = &job->desk.captured.streams[1];
	struct str said =
		str_last_line((struct str){ errors->data ? errors->data : "", errors->len });
	const char *colon = said.len ? ": " : "";
	if (said.len > REASON_BYTES_MAX)
		said.len = REASON_BYTES_MAX;
	if (result->reason != REASON_EXITED)
		return fail(err, ERR_FAILED, "the generator was ended: %s%s%.*s",
			reason_names[result->reason], colon, (int)said.len, said.data);
	return result->exit_status
		       ? fail(err, ERR_FAILED, "the generator has failed with exit code %d%s%.*s",
				 result->exit_status, colon, (int)said.len, said.data)
		       : 0;
}

/* What it wrote is a text that `tool forge` would take. */
static int take_text(
	struct tool_generate_job *job, const char *file, const char **text, struct error *err)
{
	struct str read = job->text;
	if (!read.len)
		return fail(err, ERR_FAILED, "the generator: '%s' is empty", file);
	if (memchr(read.data, '\0', read.len) || str_utf8_prefix(read.data, read.len) != read.len)
		return fail(err, ERR_FAILED, "the generator: '%s' is not a text in UTF-8", file);
	*text = read.data;
	return 0;
}

static int take(struct tool_generate_job *job, struct error *err)
{
	struct tool_source *source = &job->source;
	switch (job->step) {
	case RUN:
		return judge_run(job, err);
	case READ_CODE:
		return take_text(job, FILE_CODE, &source->code, err);
	case READ_TESTS:
		return take_text(job, FILE_TESTS, &source->tests, err);
	case READ_REQUIRES:
		if (!tool_read_requires(job->text, &job->arena, &source->requires, err))
			return 0;
		err->code = ERR_FAILED; /* of the generator, not of the client */
		return error_context(err, "the generator: '" FILE_REQUIRES "'");
	default:
		return 0;
	}
}

static void begin(struct tool_generate_job *job, enum step step)
{
	struct arena *arena = &job->arena;
	job->step = step;
	job->text = (struct str){ 0 };
	switch (step) {
	case SKELETON:
		loop_after(job->tools->base.loop, 0, on_skeleton, job);
		return;
	case CREATE:
		create(job);
		return;
	case RUN:
		run(job);
		return;
	case READ_CODE:
		desk_read(&job->desk, FILE_CODE, TOOL_BYTES_MAX, arena, &job->text, on_step, job);
		return;
	case READ_TESTS:
		desk_read(&job->desk, FILE_TESTS, TOOL_BYTES_MAX, arena, &job->text, on_step, job);
		return;
	case READ_REQUIRES:
		desk_read(&job->desk, FILE_REQUIRES, REQUIRES_BYTES_MAX, arena, &job->text, on_step,
			job);
		return;
	case REMOVE:
		desk_remove(&job->desk, on_step, job);
		return;
	case ANSWER:
		finish(job);
		return;
	}
}

/* What is wrong with a file is the generator's fault, not the client's. */
static void keep_error(struct tool_generate_job *job, const struct error *err)
{
	job->err = *err;
	if (job->step == READ_CODE || job->step == READ_TESTS || job->step == READ_REQUIRES) {
		error_context(&job->err, "the generator");
		if (err->code == ERR_NOT_FOUND || err->code == ERR_INVALID ||
			err->code == ERR_DENIED)
			job->err.code = ERR_FAILED;
	} else if (job->step == RUN) {
		error_context(&job->err, "run the generator");
	}
}

static void on_step(void *ctx, const struct error *err)
{
	struct tool_generate_job *job = ctx;
	struct error why;
	if (job->step == REMOVE) {
		if (err)
			log_record(core_log(job->desk.core), LOG_LEVEL_WARN,
				"the workspace of a generator can't be removed", "workspace",
				job->desk.id, "error", err->text, NULL);
		begin(job, ANSWER);
		return;
	}
	if (err && job->step == READ_REQUIRES && err->code == ERR_NOT_FOUND)
		err = NULL; /* it needs no other packages than the specification says */
	else if (err)
		keep_error(job, err);
	else if (take(job, &why))
		job->err = why;
	begin(job, job->err.code || !job->done ? REMOVE : job->step + 1);
}

struct tool_generate_job *tools_generate(const struct request *request, struct tools *tools,
	const struct tool_spec *spec, tool_source_fn *done, void *ctx, struct error *err)
{
	if (core_check(request, tools->base.core, VERB_TOOL_GENERATE, NULL, err))
		return NULL;
	struct tool_generate_job *job = xzalloc(sizeof *job);
	arena_init(&job->arena);
	tool_spec_copy(&job->arena, spec, &job->spec);
	job->tools = tools;
	job->done = done;
	job->ctx = ctx;
	job->source = (struct tool_source){
		.name = job->spec.name, .requires = job->spec.requires, .is_generated = true
	};
	desk_init(&job->desk, tools->base.core, access_keep(request, &job->arena));
	begin(job, tools->settings.generator.count ? CREATE : SKELETON);
	return job;
}

void tools_cancel_generate(struct tool_generate_job *job)
{
	job->done = NULL;
	desk_cancel(&job->desk);
}
