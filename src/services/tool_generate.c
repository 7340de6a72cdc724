/* The code and tests of a tool that is yet to be: skeletons, or what the operator's generator
 * writes, a program that is trusted no more than any other. */
#include "services/tools_internal.h"

#define OUTPUT_BYTES_MAX (1ull << 20)
#define REQUIRES_BYTES_MAX (64u << 10)
#define REASON_BYTES_MAX 300
#define FILE_CODE "tool.py"
#define FILE_TESTS "test_tool.py"
#define FILE_REQUIRES "requirements.txt"

struct tool_generate_job {
	struct fiber *fiber;
	struct tools *tools;
	struct desk desk;
	struct arena arena;
	struct tool_spec spec;
	struct tool_source source;
	tool_source_fn *done; /* NULL: the client is gone */
	void *ctx;
};

static int create(struct tool_generate_job *job, struct error *err)
{
	const text_list *domains = &job->tools->settings.domains;
	const struct workspace made = { .network = { .mode = domains->count ? "list" : "none",
						.allow = *domains },
		.owner = { .tool = job->spec.name } };
	return desk_create(job->fiber, &job->desk, TOOLS_SERVICE, &made, err);
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

static int run(struct tool_generate_job *job, struct error *err)
{
	const struct tool_settings *settings = &job->tools->settings;
	auto_buf struct buf input = buf_empty(BUF_MAX_DEFAULT);
	tool_spec_print(&job->spec, &input);
	const struct exec_spec spec = { .argv = settings->generator,
		.timeout_ms = settings->timeout_ms,
		.output_bytes = OUTPUT_BYTES_MAX,
		.has_stdin_text = true,
		.stdin_text = { input.data, input.len } };
	if (desk_run(job->fiber, &job->desk, &spec, err))
		return error_context(err, "run the generator");
	return judge_run(job, err);
}

/* What is wrong with a file is the generator's fault, not the client's. */
static int read_file(struct tool_generate_job *job, const char *file, size_t max, struct str *text,
	struct error *err)
{
	job->desk.request = core_system();
	if (!desk_read(job->fiber, &job->desk, file, max, &job->arena, text, err))
		return 0;
	return error_context(err, "the generator");
}

static int blame(struct error *err)
{
	if (err->code == ERR_NOT_FOUND || err->code == ERR_INVALID || err->code == ERR_DENIED)
		err->code = ERR_FAILED;
	return -1;
}

/* What it wrote is a text that `tool forge` would take. */
static int read_text(
	struct tool_generate_job *job, const char *file, const char **text, struct error *err)
{
	struct str read;
	if (read_file(job, file, TOOL_BYTES_MAX, &read, err))
		return blame(err);
	if (!read.len)
		return fail(err, ERR_FAILED, "the generator: '%s' is empty", file);
	if (memchr(read.data, '\0', read.len) || str_utf8_prefix(read.data, read.len) != read.len)
		return fail(err, ERR_FAILED, "the generator: '%s' is not a text in UTF-8", file);
	*text = read.data;
	return 0;
}

static int read_requires(struct tool_generate_job *job, struct error *err)
{
	struct str read;
	/* Without it, it needs no other packages than the specification says. */
	if (read_file(job, FILE_REQUIRES, REQUIRES_BYTES_MAX, &read, err))
		return err->code == ERR_NOT_FOUND ? 0 : blame(err);
	if (!tool_read_requires(read, &job->arena, &job->source.requires, err))
		return 0;
	err->code = ERR_FAILED; /* of the generator, not of the client */
	return error_context(err, "the generator: '" FILE_REQUIRES "'");
}

static int generate(struct tool_generate_job *job, struct error *err)
{
	struct tool_source *source = &job->source;
	if (!job->tools->settings.generator.count) {
		tool_spec_skeleton(&job->spec, &job->arena, source);
		return pause_wait(job->fiber, job->tools->base.loop, 0, err);
	}
	return create(job, err) || run(job, err) || read_text(job, FILE_CODE, &source->code, err) ||
			       read_text(job, FILE_TESTS, &source->tests, err) ||
			       read_requires(job, err)
		       ? -1
		       : 0;
}

static void run_generate(struct fiber *fiber, void *ctx)
{
	struct tool_generate_job *job = ctx;
	struct error err, why;
	job->fiber = fiber;
	int failed = generate(job, &err);
	fiber_end_cancellation(fiber);
	if (desk_remove(fiber, &job->desk, &why))
		log_record(core_log(job->desk.core), LOG_LEVEL_WARN,
			"the workspace of a generator can't be removed", "workspace", job->desk.id,
			"error", why.text, NULL);
	if (job->done)
		job->done(job->ctx, failed ? NULL : &job->source, failed ? &err : NULL);
	desk_done(&job->desk);
	arena_done(&job->arena);
	free(job);
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
	fiber_start(run_generate, job);
	return job;
}

void tools_cancel_generate(struct tool_generate_job *job)
{
	job->done = NULL;
	fiber_cancel(job->fiber);
}
