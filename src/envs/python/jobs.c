/* Jobs of a build, whatever they run: within the time that is left, and noted in the log. */
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "envs/python/explain.h"
#include "envs/python/jobs.h"

#define CACHE_BYTES                                                                                \
	((uint64_t)64 << 20) /* what the index's own pages may take beside the packages */

bool making_is_interrupted(const struct making *making)
{
	const volatile int *interrupted = making->builder->runner->interrupted;
	return interrupted && *interrupted != 0;
}

int making_put(struct making *making, const char *name, struct str text, struct error *err)
{
	auto_leave const struct home *home = home_entered(making->store->home);
	auto_close int dir = -1;
	if (path_make_directories(making->stage.fd, STAGE_ROOT "/" STAGE_INPUT, 0755, &dir, err) <
		0)
		return -1;
	return file_replace(dir, name, 0644, text, false) < 0
		       ? fail_errno(err, "write '%s' of a build", name)
		       : 0;
}

/* Replaces what must not be shown: uv repeats addresses, and those may hold credentials. */
static void hide_secrets(const struct making *making, struct buf *text)
{
	const text_list *secrets = &making->wanted->secrets;
	for (size_t i = 0; i < secrets->count; i++) {
		size_t len = strlen(secrets->items[i]);
		char *at = text->data;
		while (at && (at = memmem(at, text->len - (size_t)(at - text->data),
				      secrets->items[i], len)))
			memset(at, '*', len);
	}
}

static void note(struct making *making, struct str text)
{
	if (!text.data)
		return;
	/* The output goes to the log, and from there to terminals: drop control characters. */
	for (size_t i = 0; i < text.len; i++) {
		const unsigned char *c = (const unsigned char *)text.data + i;
		bool is_c1 = *c == 0xc2 && i + 1 < text.len && c[1] >= 0x80 && c[1] < 0xa0;
		i += is_c1;
		if (!is_c1 && ((*c >= 0x20 && *c != 0x7f) || *c == '\n' || *c == '\t'))
			buf_char(&making->log, (char)*c);
	}
	if (text.len > 0 && text.data[text.len - 1] != '\n')
		buf_char(&making->log, '\n');
}

int making_run(struct making *making, struct job *job, struct buf *out, struct buf *errors,
	struct job_result *result, struct error *err)
{
	const struct runner *runner = making->builder->runner;
	uint64_t now = clock_monotonic_ms();
	/* What failed before and was got over says nothing of what follows. */
	*making->problem = BUILD_NO_PROBLEM;
	if (making_is_interrupted(making))
		return making_canceled(making, err);
	if (now >= making->deadline_ms)
		return making_timeout(making, err);
	job->timeout_ms = making->deadline_ms - now;
	job->stage = arena_printf(making->arena, "%s/" STAGE_ROOT, making->stage.path);
	job->disk_bytes = making->store->config.max_install_bytes + CACHE_BYTES;
	buf_text(&making->log, "$");
	for (char *const *arg = job->argv; *arg; arg++) {
		/* A script is no line for people. */
		buf_printf(&making->log, " %s", strchr(*arg, '\n') ? "..." : *arg);
	}
	buf_char(&making->log, '\n');
	if (runner->run(runner->ctx, job, out, errors, result, err) < 0)
		return -1;
	hide_secrets(making, errors);
	note(making, buf_str(errors));
	buf_printf(&making->log, "(%llu ms, %llu in all)\n",
		(unsigned long long)result->duration_ms,
		(unsigned long long)(clock_monotonic_ms() - making->started_ms));
	return making_is_interrupted(making) ? making_canceled(making, err) : 0;
}

/* For the jobs of others (interpreter, hosts, uv itself). */
static int run_bounded(void *ctx, const struct job *job, struct buf *out, struct buf *errors,
	struct job_result *result, struct error *err)
{
	struct making *making = ctx;
	const struct runner *runner = making->builder->runner;
	uint64_t now = clock_monotonic_ms();
	uint64_t left = now < making->deadline_ms ? making->deadline_ms - now : 1;
	struct job bounded = *job;
	if (making_is_interrupted(making))
		return making_canceled(making, err);
	if (bounded.timeout_ms == 0 || bounded.timeout_ms > left)
		bounded.timeout_ms = left;
	return runner->run(runner->ctx, &bounded, out, errors, result, err);
}

void making_bound(struct making *making)
{
	making->runner = *making->builder->runner;
	making->runner.ctx = making;
	making->runner.run = run_bounded;
}
