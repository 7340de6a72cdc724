/* settle.c -- the environment of a workspace was replaced: before the next sandbox starts, what
 * lies on top of it is brought in line (envs/python/upper.h), in a child. */
#include <fcntl.h>
#include <stdlib.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/internal.h"
#include "envs/python/upper.h"

struct settling {
	struct core_workspace *w; /* held */
	core_workspace_fn *done;
	void *ctx;
	int upper;
	struct measure child;
	struct error err;
};

bool environment_is_unsettled(const struct workspace *model)
{
	return model->environment_before != NULL;
}

static void finish(struct settling *s)
{
	struct core_workspace *w = s->w;
	s->done(s->ctx, w, NULL);
	free(s);
	core_release(w);
}

static void on_saved(void *ctx, const struct error *err)
{
	struct settling *s = ctx;
	if (err) /* the next start does it again: files that commands change meanwhile may go */
		log_record(&s->w->core->log, LOG_LEVEL_WARN,
			"the row of a workspace could not be written after its environment was "
			"replaced",
			"workspace", s->w->model.id, "error", err->text, NULL);
	finish(s);
}

static void on_settled(void *ctx, bool ok, uint64_t failed)
{
	struct settling *s = ctx;
	struct core_workspace *w = s->w;
	fd_close(&s->upper);
	if (!ok || failed) {
		log_record(&w->core->log, LOG_LEVEL_WARN,
			"files on top of a new environment could not be brought in line",
			"workspace", w->model.id, "error",
			ok ? s->err.text : "the child that does it has ended", NULL);
		finish(s);
		return;
	}
	environment_unpin(w->core, w->pin_before);
	w->pin_before = NULL;
	w->model.environment_before = NULL;
	w->model.environment_forced = (text_list){ 0 };
	w->is_dirty = true;
	fault_point("core_settled");
	workspace_save(w, on_saved, s);
}

/* In the child. */
static uint64_t settle(void *ctx)
{
	struct settling *s = ctx;
	const struct env_meta *before = pin_meta(s->w->pin_before);
	struct upper_change change = { .after = pin_meta(s->w->pins[0])->layers,
		.forced = s->w->model.environment_forced };
	if (before)
		change.before = before->layers;
	return env_upper_settle(&s->w->core->envs.layers, s->upper, &change, &s->err) != 0;
}

void environment_settle(struct core_workspace *w, core_workspace_fn *done, void *ctx)
{
	struct settling *s = xzalloc(sizeof *s);
	char path[ID_LEN + 16];
	*s = (struct settling){ .w = w, .done = done, .ctx = ctx };
	str_format(path, sizeof path, "%s/env/upper", w->model.id);
	s->upper = path_open_nolinks(w->core->workspaces, path, O_RDONLY | O_DIRECTORY, 0);
	core_hold(w);
	if (s->upper < 0 || !w->pins[0]) { /* the start says what is missing */
		fd_close(&s->upper);
		finish(s);
		return;
	}
	s->child = (struct measure){ .loop = w->core->loop,
		.find = settle,
		.found = on_settled,
		.ctx = s,
		.keep = { s->upper, w->core->envs.layers.dir },
		.keep_count = 2,
		.detail = &s->err,
		.detail_len = sizeof s->err };
	measure_start(&s->child);
}
