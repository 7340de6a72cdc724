/* What builds of every kind do with their jobs: they run within the time that is left, and what
 * they write is in the log. */

#include "base/clock.h"
#include "envs/internal.h"

bool builder_is_interrupted(const struct builder *builder)
{
	const volatile int *interrupted = builder->runner->interrupted;
	return interrupted && *interrupted != 0;
}

int run_canceled(const struct build_run *run, struct error *err)
{
	fail_hint(err, ERR_CANCELED, "run the same command again",
		"the build of environment '%s' was interrupted", run->wanted->name);
	return build_failed(run->problem, BUILD_CANCELED, NULL);
}

static int run_bounded(void *ctx, const struct job *job, struct buf *out, struct buf *errors,
	struct job_result *result, struct error *err)
{
	struct build_run *run = ctx;
	const struct runner *runner = run->builder->runner;
	uint64_t now = clock_monotonic_ms();
	uint64_t left = now < run->deadline_ms ? run->deadline_ms - now : 1;
	struct job bounded = *job;
	if (builder_is_interrupted(run->builder))
		return run_canceled(run, err);
	if (bounded.timeout_ms == 0 || bounded.timeout_ms > left)
		bounded.timeout_ms = left;
	return runner->run(runner->ctx, &bounded, out, errors, result, err);
}

struct runner run_runner(struct build_run *run)
{
	struct runner runner = *run->builder->runner;
	runner.ctx = run;
	runner.run = run_bounded;
	return runner;
}

void run_note_command(struct build_run *run, const char *const *argv)
{
	buf_text(&run->log, "$");
	for (; *argv; argv++) {
		/* A script is no line for people. */
		buf_printf(&run->log, " %s", strchr(*argv, '\n') ? "..." : *argv);
	}
	buf_char(&run->log, '\n');
}

/* Clients repeat addresses, and those may hold credentials. */
static void hide_secrets(const text_list *secrets, struct buf *text)
{
	for (size_t i = 0; i < secrets->count; i++) {
		size_t len = strlen(secrets->items[i]);
		char *at = text->data;
		while (at && (at = memmem(at, text->len - (size_t)(at - text->data),
				      secrets->items[i], len)))
			memset(at, '*', len);
	}
}

void run_note_end(struct build_run *run, const text_list *secrets, struct buf *text,
	const struct job_result *result)
{
	hide_secrets(secrets, text);
	/* The log is printed to terminals: without control characters. A byte that is none of
	 * UTF-8 may be one, too: 0x9b is CSI to a terminal of 8 bits. */
	for (size_t i = 0, valid = 0; i < text->len; i++) {
		if (i >= valid)
			valid = i + str_utf8_prefix(text->data + i, text->len - i);
		if (i >= valid)
			continue;
		const unsigned char *c = (const unsigned char *)text->data + i;
		bool is_c1 = *c == 0xc2 && i + 1 < text->len && c[1] >= 0x80 && c[1] < 0xa0;
		i += is_c1;
		if (!is_c1 && ((*c >= 0x20 && *c != 0x7f) || *c == '\n' || *c == '\t'))
			buf_char(&run->log, (char)*c);
	}
	if (text->len > 0 && text->data[text->len - 1] != '\n')
		buf_char(&run->log, '\n');
	buf_printf(&run->log, "(%llu ms, %llu in all)\n", (unsigned long long)result->duration_ms,
		(unsigned long long)(clock_monotonic_ms() - run->started_ms));
}
