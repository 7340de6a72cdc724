#include "envs/python/scripts.h"

#define OUTPUT_MAX ((size_t)16 << 20)

const char script_look[] = {
#include "envs/python/look.inc"
	0
};
const char script_index[] = {
#include "envs/python/index.inc"
	0
};
const char script_default_index[] = {
#include "envs/python/default_index.inc"
	0
};
const char script_pep517[] = {
#include "envs/python/pep517.inc"
	0
};

void job_set_env(struct job *job, struct arena *arena, const char *key, const char *value)
{
	vec_push(arena, &job->env, arena_printf(arena, "%s=%s", key, value));
}

void job_bind(struct job *job, struct arena *arena, const char *source, const char *target)
{
	vec_push(arena, &job->binds, (struct job_bind){ source, target, false });
}

void script_job(struct job *job, struct arena *arena, const struct interpreter *python,
	const char *script, bool with_site, const char *const *args)
{
	text_list argv = { 0 };
	vec_push(arena, &argv, python->path);
	vec_push(arena, &argv, with_site ? "-I" : "-IS");
	vec_push(arena, &argv, "-c");
	vec_push(arena, &argv, script);
	for (; args && *args; args++)
		vec_push(arena, &argv, *args);
	vec_push(arena, &argv, NULL);
	*job = (struct job){ .argv = argv.items };
	interpreter_bind(python, arena, job);
	/* Nothing is to be written beside the host's files, and what is printed is UTF-8. */
	job_set_env(job, arena, "PYTHONDONTWRITEBYTECODE", "1");
	job_set_env(job, arena, "LC_ALL", "C.UTF-8");
}

int job_explain(const struct job *job, const struct job_result *result, struct str errors,
	struct error *err)
{
	struct str line = str_last_line(errors);
	char shown[400];
	switch (result->reason) {
	case REASON_TIMEOUT:
		return fail(err, ERR_FAILED, "it did not end within %llu s",
			(unsigned long long)(job->timeout_ms / 1000));
	case REASON_DISK_LIMIT:
		return fail(err, ERR_LIMIT, "it exceeded its disk limit");
	case REASON_MEMORY_LIMIT:
		return fail(err, ERR_LIMIT, "it exceeded its memory limit");
	case REASON_OUTPUT_LIMIT:
		return fail(err, ERR_LIMIT, "it exceeded its output limit");
	case REASON_CANCELED:
		return fail(err, ERR_CANCELED, "it was interrupted");
	case REASON_EXITED:
		break;
	default:
		return fail(err, ERR_FAILED, "it was killed");
	}
	str_printable(shown, sizeof shown, line);
	return line.len > 0 ? fail(err, ERR_FAILED, "%s", shown)
			    : fail(err, ERR_FAILED, "exit code %d", result->exit_code);
}

int job_try(const struct runner *runner, const struct job *job, struct buf *out, bool *ended_well,
	struct error *err)
{
	struct job_result result = { 0 };
	struct error own = { 0 };
	auto_buf struct buf errors = buf_empty(OUTPUT_MAX);
	int failed = runner->run(runner->ctx, job, out, &errors, &result, &own);
	*ended_well = !failed && result.reason == REASON_EXITED && result.exit_code == 0;
	if (!failed && !*ended_well)
		job_explain(job, &result, buf_str(&errors), &own);
	if (err && !*ended_well)
		*err = own;
	/* Without its time it says nothing of the program. */
	return failed || result.reason == REASON_TIMEOUT || result.reason == REASON_CANCELED ? -1
											     : 0;
}

int job_run(const struct runner *runner, const struct job *job, struct buf *out, struct error *err)
{
	bool ended_well;
	return job_try(runner, job, out, &ended_well, err) < 0 || !ended_well ? -1 : 0;
}

int script_run(const struct runner *runner, const struct job *job, struct arena *arena,
	struct answer *answer, struct error *err)
{
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	if (job_run(runner, job, &out, err) < 0)
		return -1;
	return answer_parse(buf_str(&out), arena, answer, err);
}
