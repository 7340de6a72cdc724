/* Jobs of a build, whatever they run: within the time that is left, and noted in the log. */
#include <fcntl.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "envs/python/explain.h"
#include "envs/python/jobs.h"

#define CACHE_BYTES                                                                                \
	((uint64_t)64 << 20) /* what the index's own pages may take beside the packages */

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

int making_run(struct making *making, struct job *job, struct buf *out, struct buf *errors,
	struct job_result *result, struct error *err)
{
	const struct runner *runner = making->builder->runner;
	uint64_t now = clock_monotonic_ms();
	/* What failed before and was got over says nothing of what follows. */
	*making->problem = BUILD_NO_PROBLEM;
	if (builder_is_interrupted(making->builder))
		return run_canceled(making->run, err);
	if (now >= making->run->deadline_ms)
		return making_timeout(making, err);
	job->timeout_ms = making->run->deadline_ms - now;
	job->stage = arena_printf(making->arena, "%s/" STAGE_ROOT, making->stage.path);
	job->disk_bytes = making->store->config.max_install_bytes + CACHE_BYTES;
	run_note_command(making->run, job->argv);
	if (runner->run(runner->ctx, job, out, errors, result, err) < 0)
		return -1;
	run_note_end(making->run, &making->wanted->secrets, errors, result);
	return builder_is_interrupted(making->builder) ? run_canceled(making->run, err) : 0;
}
