/* exec_restore.c -- execs and their sandboxes: one that comes up, one that is gone, and what a core
 * before this one left running. */
#include <signal.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "core/execs/internal.h"

static const char lost[] = "the daemon was killed, and its sandbox ended before the daemon was "
			   "there again: its exit status is unknown";

int execs_attach(struct core_workspace *w, struct error *err)
{
	if (connection_open(w, err) || watch_open(w, err)) {
		execs_sandbox_gone(w);
		return -1;
	}
	return 0;
}

void execs_change_env(struct core_workspace *w)
{
	if (w->sandbox.connection)
		connection_make_env(w);
}

void execs_sandbox_gone(struct core_workspace *w)
{
	struct core_sandbox *sandbox = &w->sandbox;
	struct init_connection *connection = sandbox->connection;
	enum reason reason = sandbox->limit ? sandbox->limit : REASON_CANCELED;
	const char *why = connection ? connection->why : NULL;
	struct core_exec *e;
	size_t at = 0;
	if (connection)
		connection->is_broken = true; /* send nothing more to init */
	while ((e = sandbox->execs)) {
		if (e->stage == STAGE_WAITING) { /* for room in init's socket */
			exec_again(e);
			continue;
		}
		if (e->stage != STAGE_ENDING) {
			exec_lost(e, e->limit ? e->limit : reason,
				reason == REASON_CANCELED ? why : NULL);
			continue;
		}
		/* It had ended before; its output may have to wait for a reader. */
		watch_forget(w, e);
		if (e->judgement == JUDGEMENT_AWAITED)
			e->judgement = JUDGEMENT_GIVEN;
		exec_unlink(e);
		exec_go_on_ending(e);
	}
	file_servers_gone(w);
	ports_gone(w);
	/* No writers are left. */
	while ((e = map_next(&w->core->execs->by_id, &at)))
		if (e->workspace == w && e->is_spool_watched)
			spool_settle(e);
	if (!connection)
		return;
	watch_close(w);
	connection_done(w);
}

/* One of an adopted sandbox runs, unless its init says otherwise. */
static void take_over(struct core_exec *e)
{
	struct core_workspace *w = e->workspace;
	int64_t ran_ms = clock_now_ms() - e->record.started_ms;
	uint64_t ago_ms = ran_ms > 0 ? (uint64_t)ran_ms : 0, now_ns = clock_monotonic_ns();
	exec_move(e, STAGE_RUNNING);
	e->is_restored = true;
	e->began_ns = now_ns > ago_ms * 1000000 ? now_ns - ago_ms * 1000000 : 0;
	exec_link(e);
	core_hold(w);
	if (e->record.timeout_ms)
		exec_arm_timeout(
			e, e->record.timeout_ms > ago_ms ? e->record.timeout_ms - ago_ms : 0);
	watch_spawning(w, e);
	spool_watch(e);
}

void execs_restore(struct core_workspace *w, const struct exec_record *record)
{
	struct exec_record known = *record;
	if (map_get(&w->core->execs->by_id, str_from(record->id)))
		return;
	if (!known.cwd)
		known.cwd = "/";
	struct core_exec *e = exec_new(w, &known, EXEC_SPOOLED);
	share_join(&w->core->execs->fds, NULL, &e->share);
	if (record->state == EXEC_ENDED)
		exec_move(e, STAGE_ENDED);
}

/* A waiting exec was started by an earlier core. */
static void settle(struct core_exec *e)
{
	if (e->stage != STAGE_WAITING)
		return;
	if (e->record.state == EXEC_WAITING && exec_ask_again(e))
		return;
	if (e->workspace->sandbox.state == SANDBOX_UP) {
		take_over(e);
		return;
	}
	core_hold(e->workspace);
	e->began_ns = clock_monotonic_ns();
	exec_lost(e, REASON_DAEMON_LOST, lost);
}

/* All execs are loaded: starts reading from the adopted inits, and asks each for its execs. */
static void listen_to_adopted(struct core *core)
{
	struct core_workspace *older;
	for (struct core_workspace *w = core->newest; w; w = older) {
		struct error err;
		older = w->older;
		if (!w->sandbox.connection || w->sandbox.connection->is_watched)
			continue;
		if (connection_listen(w, &err))
			connection_break(w, REASON_CANCELED, err.text);
		else if (w->sandbox.execs)
			connection_send(w, INIT_STATS, 0, 0);
	}
}

void execs_settle(struct core *core)
{
	struct core_exec *e;
	size_t at = 0;
	while ((e = map_next(&core->execs->by_id, &at)))
		settle(e);
	execs_sweep_spools(core);
	listen_to_adopted(core);
}

/* Takes the ended ones of `w` (NULL: all) off the list of those that are kept. */
static void unkeep(struct execs *execs, const struct core_workspace *w)
{
	struct core_exec **at = &execs->kept;
	while (*at)
		if (!w || (*at)->workspace == w) {
			execs->kept_count--;
			execs->kept_bytes -= (*at)->texts_bytes;
			*at = (*at)->kept_next;
		} else
			at = &(*at)->kept_next;
	execs->kept_last = at;
}

void execs_forget(struct core_workspace *w)
{
	struct core *core = w->core;
	struct core_exec *e;
	size_t at = 0;
	unkeep(core->execs, w);
	while ((e = map_next(&core->execs->by_id, &at))) {
		if (e->workspace != w || e->stage != STAGE_ENDED)
			continue;
		if (e->record.background)
			spool_remove(e);
		exec_free(e);
	}
}

void execs_end_asked(struct core *core, const struct core_workspace *w)
{
	struct core_exec *e;
	size_t at = 0;
	while ((e = map_next(&core->execs->by_id, &at)))
		if (e->stage == STAGE_ASKED && (w ? e->workspace == w : !e->record.background))
			exec_kill(e, REASON_CANCELED);
}

void execs_end_foreground(struct core *core)
{
	struct core_exec *e;
	size_t at = 0;
	while ((e = map_next(&core->execs->by_id, &at)))
		if (!e->record.background && e->stage != STAGE_ENDED) {
			e->record.error = "the daemon was reloaded";
			exec_kill(e, REASON_CANCELED);
		}
}

void execs_done(struct core *core)
{
	struct execs *execs = core->execs;
	struct core_exec *e;
	size_t at = 0;
	if (!execs)
		return;
	for (struct core_workspace *w = core->newest; w; w = w->older)
		if (w->sandbox.connection) {
			watch_close(w);
			connection_done(w);
		}
	while ((e = map_next(&core->execs->by_id, &at))) {
		e->approval[0] = 0; /* one that waits in the background waits on: exec_ask_again */
		exec_free(e);
	}
	loop_cancel(core->loop, execs->inotify_rest);
	if (execs->inotify >= 0)
		loop_unwatch(core->loop, execs->inotify);
	fd_close(&execs->inotify);
	fd_close(&execs->null);
	streams_close_ahead(execs);
	map_done(&execs->watches);
	shares_done(&execs->fds);
}

void execs_close(struct core *core)
{
	if (!core->execs)
		return;
	map_done(&core->execs->by_id);
	fd_close(&core->execs->spool);
	free(core->execs);
	core->execs = NULL;
}
