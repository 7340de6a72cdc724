/* settle.c -- an environment of a workspace was replaced: before the next sandbox starts, and
 * before its trees are frozen or archived, what lies on top of it is brought in line
 * (envs/upper.h), in a child. Where frozen layers lie between, a tree job does it. */
#include <fcntl.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/internal.h"
#include "core/packages/internal.h"
#include "core/waits.h"
#include "envs/kind.h"

#define OPTIONS_MAX ((size_t)4 << 20)

struct settling {
	struct fiber *fiber;
	struct core_workspace *w;
	const char *layer; /* or NULL: its uppers */
	size_t slot;
	int upper;
	struct error err; /* of the child */
};

bool environment_is_unsettled(const struct workspace *model)
{
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (model->unsettled[i].before)
			return true;
	return false;
}

/* ---- without frozen layers ---- */

static void on_child(void *ctx, bool ok, uint64_t failed)
{
	struct settling *s = ctx;
	if (!ok)
		fail(&s->err, ERR_FAILED, "the child that brings files in line has ended");
	fiber_continue(s->fiber, ok && !failed ? NULL : &s->err);
}

static struct upper_change describe(const struct settling *s)
{
	const struct core_workspace *w = s->w;
	const struct env_meta *before = pin_meta(w->packages->before[s->slot]);
	struct upper_change change = { .after = pin_meta(w->packages->pins[s->slot])->layers,
		.forced = w->model.unsettled[s->slot].forced };
	if (before)
		change.before = before->layers;
	return change;
}

/* In the child. */
static uint64_t settle(void *ctx)
{
	struct settling *s = ctx;
	struct upper_change change = describe(s);
	return environment_kind(s->w, s->slot)
		       ->settle(&s->w->core->envs.layers, s->upper, &change, &s->err) != 0;
}

static int run_child(struct settling *s, struct error *err)
{
	struct core *core = s->w->core;
	char path[LAUNCH_FROZEN_LEN + 32];
	const struct workspace_part *part = environment_kind(s->w, s->slot)->part;
	if (s->layer)
		str_format(path, sizeof path, "%s/%s", s->layer, part->name);
	else
		str_format(path, sizeof path, "%s/%s", s->w->model.id, part->upper);
	auto_close int upper =
		path_open_nolinks(s->layer ? core->envs.layers.dir : core->workspaces, path,
			O_RDONLY | O_DIRECTORY, 0);
	if (upper < 0) /* nothing was changed, or the start says what is missing */
		return 0;
	s->upper = upper;
	struct measure child = { .loop = core->loop,
		.find = settle,
		.found = on_child,
		.ctx = s,
		.keep = { upper, core->envs.layers.dir },
		.keep_count = 2,
		.detail = &s->err,
		.detail_len = sizeof s->err };
	measure_start(&child);
	return fiber_wait(s->fiber, err);
}

/* ---- with some ---- */

static bool has_frozen(const struct settling *s)
{
	const text_list *layers = &s->w->model.layers;
	for (size_t i = 0; i < layers->count; i++) {
		char path[LAUNCH_FROZEN_LEN + 16];
		str_format(path, sizeof path, "%s/%s", layers->items[i],
			environment_kind(s->w, s->slot)->part->name);
		if (!faccessat(s->w->core->envs.layers.dir, path, F_OK, AT_SYMLINK_NOFOLLOW))
			return true;
	}
	return false;
}

static int run_job(struct settling *s, struct error *err)
{
	struct core_workspace *w = s->w;
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf options = buf_empty(OPTIONS_MAX);
	struct json j = json_to(&options, false);
	struct upper_change change = describe(s);
	text_list names = { 0 };
	vec_push(&arena, &names, environment_kind(w, s->slot)->row->name);
	vec_push(&arena, &names, s->layer ? s->layer : (const char *)w->model.id);
	for (size_t i = 0; i < w->model.layers.count; i++)
		vec_push(&arena, &names, w->model.layers.items[i]);
	json_object(&j, NULL);
	json_texts(&j, "before", &change.before);
	json_texts(&j, "after", &change.after);
	json_texts(&j, "forced", &change.forced);
	json_end(&j);
	const struct tree_job_order order = { .verb = "settle",
		.names = names.items,
		.name_count = names.count,
		.options = { options.data, options.len },
		.input = -1,
		.output = -1 };
	return wait_tree_job(s->fiber, w->core, &order, NULL, err);
}

/* ---- one after the other ---- */

/* The next start does it again when it can't be saved: files that commands change meanwhile may go.
 */
static void save(struct settling *s)
{
	struct core_workspace *w = s->w;
	struct error err;
	environment_unpin(w->core, w->packages->before[s->slot]);
	w->packages->before[s->slot] = NULL;
	w->model.unsettled[s->slot] = (struct workspace_unsettled){ 0 };
	w->is_dirty = true;
	fault_point("core_settled");
	workspace_save(w, fiber_continue, s->fiber);
	if (fiber_wait(s->fiber, &err))
		log_record(&w->core->log, LOG_LEVEL_WARN,
			"the row of a workspace could not be written after its environment was "
			"replaced",
			"workspace", w->model.id, "error", err.text, NULL);
}

static int settle_slot(struct settling *s, struct error *err)
{
	struct core_workspace *w = s->w;
	const struct env_pin *after;
	do {
		environments_keep(w);
		after = w->packages->pins[s->slot];
		if (!w->model.unsettled[s->slot].before || !after)
			return 0; /* without a pin the start says what is missing */
		if (has_frozen(s) ? run_job(s, err) : run_child(s, err))
			return -1;
		/* Its row and its pins are gone, or go: neither may come back. */
		if (w->is_gone || (w->removal && !w->wants_archive))
			return fail(err, ERR_NOT_FOUND, "workspace '%s' is being removed",
				w->model.name);
	} while (after != w->packages->pins[s->slot]); /* an install has replaced it meanwhile */
	if (!s->layer)
		save(s);
	return 0;
}

int environment_settle(
	struct fiber *fiber, struct core_workspace *w, const char *layer, struct error *err)
{
	struct settling s = { .fiber = fiber, .w = w, .layer = layer };
	int failed = 0;
	for (; s.slot < ENV_KINDS && !failed; s.slot++)
		failed = settle_slot(&s, err);
	if (failed)
		log_record(&w->core->log, LOG_LEVEL_WARN,
			"files on top of a new environment could not be brought in line",
			"workspace", w->model.id, "error", err->text, NULL);
	return failed;
}
