/* cells.c -- one cell: a fork of its case, the harness, the diff, the graders, the verdict. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "core/files/files.h"
#include "core/state/diff.h"
#include "core/state/snapshots.h"
#include "services/cases_internal.h"

struct cell_job {
	struct cell_entry *cell;
	struct step step;
	struct buf steps;
	size_t share; /* of output, of each step */
	uint64_t began_ms;
	size_t grader, file; /* the next ones */
	struct file_write *write;
	bool has_failed;      /* a grader has */
	const char *canceled; /* or why it is; static */
	bool is_ending;	      /* it has failed; its workspace is being removed */
	const char *reason, *error;
};

/* ---- the end ---- */

static void on_removed(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct case_entry *c = ctx;
	if (err)
		log_record(core_log(c->cases->base.core), LOG_LEVEL_WARN,
			"the workspace of a cell can't be removed", "case", c->model.id, "error",
			err->text, NULL);
	case_unhold(c);
}

static void tell(
	struct cell_entry *cell, enum cell_state state, const char *reason, const char *error)
{
	struct cell_job *job = cell->job;
	cell->job = NULL;
	if (job) {
		step_free(&job->step);
		buf_done(&job->steps);
		free(job);
	}
	cell_set_state(cell, state, reason, error);
}

static void on_cleared(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct cell_entry *cell = ctx;
	struct case_entry *c = cell->c;
	tell(cell, CELL_FAILED, cell->job->reason, cell->job->error);
	on_removed(c, w, err);
}

/* That it has passed is told before the workspace is removed: nobody has to wait for that. After a
 * failure the room that it took is free before the next cell begins. */
static void finish(
	struct cell_entry *cell, enum cell_state state, const char *reason, const char *error)
{
	struct case_entry *c = cell->c;
	struct cell_job *job = cell->job;
	const char *workspace = cell->model.workspace;
	bool is_kept = c->model.keep && !c->is_removed && state != CELL_CANCELED,
	     is_removed = workspace && !is_kept && !c->cases->is_stopping;
	if (job) {
		cell->model.steps = steps_text(&job->steps, &cell->arena);
		cell->model.duration_ms = clock_monotonic_ms() - job->began_ms;
	}
	if (!is_kept)
		cell->model.workspace = NULL;
	if (job && is_removed && state == CELL_FAILED) {
		job->is_ending = true;
		job->reason = reason;
		job->error = arena_text(&cell->arena, error);
		case_remove_workspace(c->cases, workspace, on_cleared, cell);
		return;
	}
	tell(cell, state, reason, error);
	if (is_removed)
		case_remove_workspace(c->cases, workspace, on_removed, c);
	else
		case_unhold(c);
}

/* Whether it was canceled meanwhile, and is over now. */
static bool was_canceled(struct cell_job *job)
{
	const char *why = job->cell->c->cases->is_stopping ? CASE_REASON_RESTARTED : job->canceled;
	if (why)
		finish(job->cell, CELL_CANCELED, why,
			strcmp(why, CASE_REASON_RESTARTED) ? "the case was removed"
							   : "the daemon was restarted");
	return why;
}

void cell_cancel(struct cell_entry *cell, const char *reason)
{
	struct cell_job *job = cell->job;
	if (!job) {
		/* One that isn't stored yet is ended by on_cell_stored, or by its case. */
		finish(cell, CELL_CANCELED, reason, "the case was removed");
		return;
	}
	if (job->is_ending)
		return;
	job->canceled = reason;
	if (step_cancel(&job->step))
		was_canceled(job);
}

static void fail_with(struct cell_job *job, const char *reason, const struct error *err)
{
	if (!was_canceled(job))
		finish(job->cell, CELL_FAILED, reason, err->text);
}

static int find(struct cell_job *job, struct core_workspace **w, struct error *err)
{
	struct cell_entry *cell = job->cell;
	return core_find(cell->request, cell->c->cases->base.core, cell->model.workspace, w, err);
}

static void run(struct cell_job *job, const char *type, const char *name, const char *command,
	uint64_t timeout_ms, void (*done)(void *ctx, struct step *step))
{
	struct cell_entry *cell = job->cell;
	struct step_wanted wanted = { .type = type,
		.name = name,
		.command = command,
		.env = cell->model.variables,
		.timeout_ms = timeout_ms,
		.output_max = job->share };
	step_run(&job->step, cell->c->cases, cell->request, cell->model.workspace, &wanted, done,
		job);
}

/* ---- graders ---- */

static void grade(struct cell_job *job);

static void on_graded(void *ctx, struct step *step)
{
	struct cell_job *job = ctx;
	if (was_canceled(job))
		return;
	steps_add(&job->steps, &step->shown);
	job->has_failed |= !step->shown.passed;
	job->grader++;
	job->file = 0;
	grade(job);
}

static void on_written(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct cell_job *job = ctx;
	job->write = NULL;
	if (err)
		fail_with(job, "grader", err);
	else if (!was_canceled(job)) {
		job->file++;
		grade(job);
	}
}

static void on_begun(void *ctx, struct file_write *write, const struct error *err)
{
	struct cell_job *job = ctx;
	const struct case_grader *grader = &job->cell->c->spec.graders.items[job->grader];
	const char *text = grader->files.items[job->file].value;
	struct error why;
	if (err) {
		fail_with(job, "grader", err);
		return;
	}
	if (files_write(write, text, strlen(text), &why)) {
		files_abort_write(write);
		fail_with(job, "grader", &why);
		return;
	}
	files_finish_write(write, on_written, job);
}

/* The next file of the next grader, or the grader itself, or the verdict. */
static void grade(struct cell_job *job)
{
	struct cell_entry *cell = job->cell;
	const struct case_spec *spec = &cell->c->spec;
	struct core_workspace *w;
	struct error err;
	if (job->grader == spec->graders.count) {
		finish(cell, job->has_failed ? CELL_FAILED : CELL_PASSED,
			job->has_failed ? "grader" : NULL, NULL);
		return;
	}
	const struct case_grader *grader = &spec->graders.items[job->grader];
	if (job->file == grader->files.count) {
		run(job, grader_type_names[grader->type], grader->name,
			grader_command(grader, &cell->arena), grader->timeout_ms, on_graded);
		return;
	}
	if (find(job, &w, &err))
		fail_with(job, "workspace", &err);
	else
		files_begin_write(cell->request, w, grader->files.items[job->file].key, 0,
			WRITE_PARENTS, on_begun, job);
}

/* ---- the harness, and what it changed ---- */

static void on_diff(void *ctx, int fd, uint64_t size, const struct error *err)
{
	struct cell_job *job = ctx;
	struct cell_entry *cell = job->cell;
	auto_buf struct buf text = buf_empty(CASE_DIFF_MAX + 1);
	auto_close int file = fd;
	if (was_canceled(job))
		return;
	if (err) {
		fail_with(job, "workspace", err);
		return;
	}
	char *room = buf_reserve(&text, CASE_DIFF_MAX);
	ssize_t got = room && lseek(file, 0, SEEK_SET) == 0
			      ? fd_read_full(file, room, CASE_DIFF_MAX)
			      : -1;
	buf_grew(&text, got > 0 ? (size_t)got : 0);
	for (size_t i = 0; i < text.len; i++)
		if (!text.data[i])
			text.data[i] = ' ';
	cell->model.diff = arena_bytes(&cell->arena, text.data, text.len);
	cell->model.diff_is_cut = size > text.len;
	cell_set_state(cell, CELL_GRADING, NULL, NULL);
	grade(job);
}

static void on_harness(void *ctx, struct step *step)
{
	struct cell_job *job = ctx;
	struct core_diff wanted = { .is_patch = true };
	struct core_workspace *w;
	struct error err;
	char text[128];
	if (was_canceled(job))
		return;
	steps_add(&job->steps, &step->shown);
	if (!step->shown.passed) {
		str_format(text, sizeof text, "the harness: exit code %d, reason %s",
			step->shown.exit_code, step->shown.reason);
		finish(job->cell, CELL_FAILED, "harness", text);
		return;
	}
	if (find(job, &w, &err))
		fail_with(job, "workspace", &err);
	else
		core_diff(job->cell->request, w, &wanted, on_diff, job);
}

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
	struct cell_entry *cell = job->cell;
	const struct case_harness *harness = &cell->c->spec.harness;
	if (!err)
		cell->model.workspace = arena_text(&cell->arena, core_model(forks[0])->id);
	if (was_canceled(job))
		return;
	if (err) {
		fail_with(job, "workspace", err);
		return;
	}
	fault_point("cell_forked");
	set_variables(cell);
	cell_set_state(cell, CELL_HARNESS, NULL, NULL);
	run(job, "harness", "harness", harness->command, harness->timeout_ms, on_harness);
}

void cell_go_on(struct cell_entry *cell)
{
	struct case_entry *c = cell->c;
	struct core_workspace *w;
	struct error err;
	struct cell_job *job = xzalloc(sizeof *job);
	buf_init(&job->steps, BUF_MAX_DEFAULT);
	job->cell = cell;
	job->share = steps_share(c->spec.graders.count + 1);
	job->began_ms = clock_monotonic_ms();
	cell->job = job;
	cell->model.started_ms = clock_now_ms();
	if (was_canceled(job))
		return;
	if (c->model.state != CASE_READY) {
		/* The cell has no log of its own: show the log of the preparation. */
		size_t len = strlen(c->model.steps);
		if (len > 2) /* a JSON list: what is between its brackets */
			buf_append(&job->steps, c->model.steps + 1, len - 2);
		bool is_lost = c->model.reason && !strcmp(c->model.reason, CASE_REASON_RESTARTED);
		finish(cell, is_lost ? CELL_CANCELED : CELL_FAILED,
			is_lost ? CASE_REASON_RESTARTED : "case", c->model.error);
		return;
	}
	const struct workspace_owner owner = case_owner(&c->model);
	struct fork_wanted wanted = { .name = arena_printf(&cell->arena, "cell-%s", cell->model.id),
		.snapshot = c->model.snapshot,
		.owner = &owner };
	if (core_find(cell->request, c->cases->base.core, c->model.workspace, &w, &err))
		fail_with(job, "workspace", &err);
	else
		core_fork(cell->request, w, &wanted, on_forked, job);
}
