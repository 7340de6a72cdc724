/* cells.c -- one cell: a fork of its case, the harness, the diff, the graders, the verdict. */
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "core/state/diff.h"
#include "core/state/snapshots.h"
#include "services/cases_internal.h"

struct cell_job {
	struct cell_entry *cell;
	struct fiber *fiber;
	struct desk desk;
	struct step step;
	struct buf steps;
	size_t share; /* of output, of each step */
	uint64_t began_ms;
	int diff; /* the file, or -1 */
	uint64_t diff_bytes;
	const char *canceled; /* why the client ends it early, or NULL; static */
	bool is_lost;	      /* a restart has ended the preparation of its case */
	bool is_ending;	      /* its workspace is being removed */
	const char *reason;   /* of a failure of the present step; static */
	const char *error;    /* of its end, or NULL */
};

static int find(
	struct cell_job *job, const char *workspace, struct core_workspace **w, struct error *err)
{
	job->reason = "workspace";
	return core_find(job->desk.request, job->desk.core, workspace, w, err);
}

/* Why it is to be ended early, or NULL. */
static const char *why_canceled(const struct cell_job *job)
{
	return job->cell->c->cases->is_stopping ? CASE_REASON_RESTARTED : job->canceled;
}

static int run(struct cell_job *job, const char *type, const char *name, const char *command,
	uint64_t timeout_ms, struct error *err)
{
	const struct step_wanted wanted = { .type = type,
		.name = name,
		.command = command,
		.env = job->cell->model.variables,
		.timeout_ms = timeout_ms,
		.output_max = job->share };
	if (step_run(&job->step, job->fiber, &job->desk, &wanted, err) || why_canceled(job))
		return -1;
	steps_add(&job->steps, &job->step.shown);
	return 0;
}

/* ---- its workspace ---- */

static void set_variables(struct cell_entry *cell)
{
	struct arena *arena = &cell->arena;
	pair_list *variables = &cell->model.variables;
	*variables = pair_list_copy(arena, &cell->c->model.variables);
	vec_push(arena, variables, (struct text_pair){ "CARREL_CASE", cell->model.case_name });
	vec_push(arena, variables, (struct text_pair){ "CARREL_CELL", cell->model.id });
	vec_push(arena, variables,
		(struct text_pair){ "CARREL_REPEAT",
			arena_printf(arena, "%llu", (unsigned long long)cell->model.repeat) });
}

static void on_forked(
	void *ctx, struct core_workspace *const *forks, size_t count, const struct error *err)
{
	struct cell_job *job = ctx;
	if (!err)
		str_copy(job->desk.id, sizeof job->desk.id, core_model(forks[0])->id);
	fiber_continue(job->fiber, err);
}

static int make_fork(struct cell_job *job, struct error *err)
{
	struct cell_entry *cell = job->cell;
	const struct eval_case *model = &cell->c->model;
	const struct workspace_owner owner = case_owner(model);
	const struct fork_wanted wanted = { .name = arena_printf(
						    &cell->arena, "cell-%s", cell->model.id),
		.snapshot = model->snapshot,
		.owner = &owner };
	struct core_workspace *w;
	if (find(job, model->workspace, &w, err))
		return -1;
	core_fork(cell->request, w, &wanted, on_forked, job);
	int failed = fiber_wait(job->fiber, err);
	if (job->desk.id[0])
		cell->model.workspace = arena_text(&cell->arena, job->desk.id);
	if (failed || why_canceled(job))
		return -1;
	fault_point("cell_forked");
	set_variables(cell);
	return 0;
}

/* ---- the harness, and what it changed ---- */

static int run_harness(struct cell_job *job, struct error *err)
{
	const struct case_harness *harness = &job->cell->c->spec.harness;
	const struct case_step *shown = &job->step.shown;
	cell_set_state(job->cell, CELL_HARNESS, NULL, NULL);
	if (run(job, "harness", "harness", harness->command, harness->timeout_ms, err))
		return -1;
	job->reason = "harness";
	return shown->passed ? 0
			     : fail(err, ERR_FAILED, "the harness: exit code %d, reason %s",
				       shown->exit_code, shown->reason);
}

static void on_diff(void *ctx, int fd, uint64_t size, const struct error *err)
{
	struct cell_job *job = ctx;
	job->diff = fd;
	job->diff_bytes = size;
	fiber_continue(job->fiber, err);
}

static int keep_diff(struct cell_job *job, struct error *err)
{
	const struct core_diff wanted = { .is_patch = true };
	struct cell_entry *cell = job->cell;
	auto_buf struct buf text = buf_empty(CASE_DIFF_MAX + 1);
	struct core_workspace *w;
	if (find(job, job->desk.id, &w, err))
		return -1;
	core_diff(cell->request, w, &wanted, on_diff, job);
	if (fiber_wait(job->fiber, err) || why_canceled(job))
		return -1;
	char *room = buf_reserve(&text, CASE_DIFF_MAX);
	ssize_t got = room && lseek(job->diff, 0, SEEK_SET) == 0
			      ? fd_read_full(job->diff, room, CASE_DIFF_MAX)
			      : -1;
	buf_grew(&text, got > 0 ? (size_t)got : 0);
	for (size_t i = 0; i < text.len; i++)
		if (!text.data[i])
			text.data[i] = ' ';
	cell->model.diff = arena_bytes(&cell->arena, text.data, text.len);
	cell->model.diff_is_cut = job->diff_bytes > text.len;
	return 0;
}

/* ---- graders ---- */

static int write_files(struct cell_job *job, const struct case_grader *grader, struct error *err)
{
	for (size_t i = 0; i < grader->files.count; i++) {
		const struct text_pair *file = &grader->files.items[i];
		struct core_workspace *w;
		if (find(job, job->desk.id, &w, err))
			return -1;
		job->reason = "grader";
		if (desk_write(job->fiber, &job->desk, file->key, str_from(file->value), err) ||
			why_canceled(job))
			return -1;
	}
	return 0;
}

static int grade(struct cell_job *job, struct error *err)
{
	struct cell_entry *cell = job->cell;
	const struct case_spec *spec = &cell->c->spec;
	bool has_failed = false;
	cell_set_state(cell, CELL_GRADING, NULL, NULL);
	for (size_t i = 0; i < spec->graders.count; i++) {
		const struct case_grader *grader = &spec->graders.items[i];
		if (write_files(job, grader, err) ||
			run(job, grader_type_names[grader->type], grader->name,
				grader_command(grader, &cell->arena), grader->timeout_ms, err))
			return -1;
		has_failed |= !job->step.shown.passed;
	}
	job->reason = "grader";
	err->text[0] = 0; /* its steps say it all */
	return has_failed ? -1 : 0;
}

/* ---- the job ---- */

/* The cell has no log of its own: show the log of the preparation. */
static int check_case(struct cell_job *job, struct error *err)
{
	const struct eval_case *model = &job->cell->c->model;
	if (model->state == CASE_READY)
		return 0;
	size_t len = strlen(model->steps);
	if (len > 2) /* a JSON list: what is between its brackets */
		buf_append(&job->steps, model->steps + 1, len - 2);
	job->reason = "case";
	job->is_lost = model->reason && !strcmp(model->reason, CASE_REASON_RESTARTED);
	if (job->is_lost)
		job->reason = CASE_REASON_RESTARTED;
	return fail(err, ERR_FAILED, "%s", model->error ? model->error : "");
}

static void tell(struct cell_job *job, enum cell_state state)
{
	struct cell_entry *cell = job->cell;
	cell->job = NULL;
	cell_set_state(cell, state, state == CELL_PASSED ? NULL : job->reason, job->error);
}

static void remove_fork(struct cell_job *job)
{
	struct error err;
	job->is_ending = true;
	if (desk_remove(job->fiber, &job->desk, &err))
		log_record(core_log(job->desk.core), LOG_LEVEL_WARN,
			"the workspace of a cell can't be removed", "case", job->cell->c->model.id,
			"error", err.text, NULL);
}

/* That it has passed is told before the workspace is removed: nobody has to wait for that. After a
 * failure the room that it took is free before the next cell begins. */
static void end(struct cell_job *job, enum cell_state state)
{
	struct cell_entry *cell = job->cell;
	struct case_entry *c = cell->c;
	bool is_kept = c->model.keep && !c->is_removed && state != CELL_CANCELED,
	     is_removed = job->desk.id[0] && !is_kept && !c->cases->is_stopping;
	cell->model.steps = steps_text(&job->steps, &cell->arena);
	cell->model.duration_ms = clock_monotonic_ms() - job->began_ms;
	if (!is_kept)
		cell->model.workspace = NULL;
	if (state != CELL_FAILED)
		tell(job, state);
	if (is_removed)
		remove_fork(job);
	if (state == CELL_FAILED)
		tell(job, state);
	case_unhold(c);
}

static void run_cell(struct fiber *fiber, void *ctx)
{
	struct cell_entry *cell = ctx;
	struct cell_job job = { .cell = cell,
		.fiber = fiber,
		.steps = buf_empty(BUF_MAX_DEFAULT),
		.share = steps_share(cell->c->spec.graders.count + 1),
		.began_ms = clock_monotonic_ms(),
		.diff = -1 };
	struct error err = { 0 };
	cell->job = &job;
	cell->model.started_ms = clock_now_ms();
	desk_init(&job.desk, cell->c->cases->base.core, cell->request);
	int failed = why_canceled(&job) || check_case(&job, &err) || make_fork(&job, &err) ||
		     run_harness(&job, &err) || keep_diff(&job, &err) || grade(&job, &err);
	fiber_end_cancellation(fiber);
	job.error = failed && err.text[0] ? arena_text(&cell->arena, err.text) : NULL;
	const char *canceled = failed ? why_canceled(&job) : NULL;
	if (canceled) {
		job.reason = canceled;
		job.error = strcmp(canceled, CASE_REASON_RESTARTED) ? "the case was removed"
								    : "the daemon was restarted";
	}
	end(&job, canceled || job.is_lost ? CELL_CANCELED : failed ? CELL_FAILED : CELL_PASSED);
	step_free(&job.step);
	buf_done(&job.steps);
	desk_done(&job.desk);
	fd_close(&job.diff);
}

void cell_go_on(struct cell_entry *cell)
{
	fiber_start(run_cell, cell);
}

/* A cell that isn't stored yet has no job. */
void cell_cancel(struct cell_entry *cell, const char *reason)
{
	struct cell_job *job = cell->job;
	struct case_entry *c = cell->c;
	if (!job) {
		cell->model.workspace = NULL;
		cell_set_state(cell, CELL_CANCELED, reason, "the case was removed");
		case_unhold(c);
	} else if (!job->is_ending) {
		job->canceled = reason;
		fiber_cancel(job->fiber);
	}
}
