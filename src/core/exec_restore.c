/* exec_restore.c -- execs and their sandboxes: one that comes up, one that is gone, and what a core
 * before this one left running. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "core/exec_internal.h"

static const char unknown_end[] =
	"its sandbox had ended when core restarted, so its exit status is unknown";

int execs_attach(struct core_workspace *w, struct error *err)
{
	if (line_open(w, err) || watch_open(w, err)) {
		execs_sandbox_gone(w);
		return -1;
	}
	return 0;
}

void execs_sandbox_gone(struct core_workspace *w)
{
	struct core_sandbox *sandbox = &w->sandbox;
	struct exec_watch *watch = sandbox->watch;
	enum reason reason = sandbox->limit ? sandbox->limit : REASON_CANCELED;
	const char *why = watch ? watch->why : NULL;
	struct core_exec *e;
	size_t at = 0;
	if (watch)
		watch->is_broken = true; /* nobody is spoken to any more */
	while ((e = sandbox->execs)) {
		if (e->own->stage == STAGE_WAITING) { /* for room in init's socket */
			exec_again(e);
			continue;
		}
		if (e->own->stage != STAGE_ENDING) {
			exec_lost(e, e->own->limit ? e->own->limit : reason,
				reason == REASON_CANCELED ? why : NULL);
			continue;
		}
		/* It had ended before; its output may have to wait for a reader. */
		watch_forget(w, e);
		if (e->own->judgement == JUDGEMENT_AWAITED)
			e->own->judgement = JUDGEMENT_GIVEN;
		exec_unlink(e);
		exec_go_on_ending(e);
	}
	agents_gone(w);
	/* Nobody is left to write. */
	while ((e = map_next(&w->core->execs, &at)))
		if (e->workspace == w && e->own->is_spool_watched)
			spool_settle(e);
	if (!watch)
		return;
	watch_close(w);
	line_close(w);
}

/* One of an adopted sandbox runs, unless its init says otherwise. */
static void take_over(struct core_exec *e)
{
	struct core_workspace *w = e->workspace;
	int64_t ran_ms = clock_now_ms() - e->record.started_ms;
	uint64_t ago_ms = ran_ms > 0 ? (uint64_t)ran_ms : 0, now_ns = clock_monotonic_ns();
	exec_move(e, STAGE_RUNNING);
	e->own->is_restored = true;
	e->own->began_ns = now_ns > ago_ms * 1000000 ? now_ns - ago_ms * 1000000 : 0;
	exec_link(e);
	core_hold(w);
	if (e->record.timeout_ms)
		exec_arm_timeout(
			e, e->record.timeout_ms > ago_ms ? e->record.timeout_ms - ago_ms : 0);
	watch_spawning(w, e);
	spool_watch(e);
}

void execs_restore(struct core *core, struct core_workspace *w, const struct exec_record *record,
	bool is_adopted)
{
	struct exec_record known = *record;
	if (map_get(&core->execs, str_from(record->id)))
		return;
	if (!known.cwd)
		known.cwd = "/";
	struct core_exec *e = exec_new(w, &known, EXEC_SPOOLED);
	if (record->state == EXEC_ENDED) {
		exec_move(e, STAGE_ENDED);
		return;
	}
	if (is_adopted) {
		take_over(e);
		return;
	}
	core_hold(w);
	e->own->began_ns = clock_monotonic_ns();
	exec_lost(e, REASON_CANCELED, unknown_end);
}

/* Everything that ran is known now: the adopted inits are heard, and asked what they have. */
static void hear_adopted(struct core *core)
{
	struct core_workspace *older;
	for (struct core_workspace *w = core->newest; w; w = older) {
		struct error err;
		older = w->older;
		if (!w->sandbox.watch || w->sandbox.watch->is_heard)
			continue;
		if (line_hear(w, &err))
			line_break(w, REASON_CANCELED, err.text);
		else if (w->sandbox.execs)
			line_send(w, INIT_STATS, 0, 0);
	}
}

void execs_sweep(struct core *core)
{
	execs_sweep_spools(core);
	hear_adopted(core);
}

/* Takes the ended ones of `w` (NULL: all) off the list of those that are kept. */
static void unkeep(struct exec_shelf *shelf, const struct core_workspace *w)
{
	struct core_exec **at = &shelf->kept;
	while (*at)
		if (!w || (*at)->workspace == w) {
			shelf->kept_count--;
			shelf->kept_bytes -= (*at)->own->texts_bytes;
			*at = (*at)->own->kept_next;
		} else
			at = &(*at)->own->kept_next;
	shelf->kept_last = at;
}

void execs_forget(struct core_workspace *w)
{
	struct core *core = w->core;
	struct core_exec *e;
	size_t at = 0;
	unkeep(exec_shelf(core), w);
	while ((e = map_next(&core->execs, &at))) {
		if (e->workspace != w || e->own->stage != STAGE_ENDED)
			continue;
		if (e->record.background)
			spool_remove(e);
		exec_free(e);
	}
}

void execs_done(struct core *core)
{
	struct exec_shelf *shelf = core->shelf;
	struct core_exec *e;
	size_t at = 0;
	if (!shelf)
		return;
	for (struct core_workspace *w = core->newest; w; w = w->older)
		if (w->sandbox.watch) {
			watch_close(w);
			line_close(w);
		}
	while ((e = map_next(&core->execs, &at)))
		exec_free(e);
	loop_cancel(core->loop, shelf->delay);
	loop_cancel(core->loop, shelf->tick);
	if (shelf->inotify >= 0)
		loop_unwatch(core->loop, shelf->inotify);
	fd_close(&shelf->inotify);
	fd_close(&shelf->null);
	map_done(&shelf->watches);
	free(shelf);
	core->shelf = NULL;
}
