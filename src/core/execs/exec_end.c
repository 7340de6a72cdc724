/* exec_end.c -- how an exec ends: its exit, its last output, the judgement, the record. */
#include <signal.h>
#include <sys/wait.h>
#include "base/clock.h"
#include "base/fault.h"
#include "core/access/audit_records.h"
#include "core/execs/internal.h"

#define KEPT_MAX 128		    /* foreground ones that can still be looked up by id, */
#define KEPT_TEXTS_BYTES (1u << 20) /* and what their arguments may take */

void exec_audit_end(const struct core_exec *e, const struct error *err)
{
	if (!e->is_internal)
		audit_exec_end(e->workspace, &e->record, &e->actor, err);
}

static void keep(struct core_exec *e)
{
	struct execs *execs = e->core->execs;
	*execs->kept_last = e;
	execs->kept_last = &e->kept_next;
	execs->kept_count++;
	execs->kept_bytes += e->texts_bytes;
	while (execs->kept &&
		(execs->kept_count > KEPT_MAX || execs->kept_bytes > KEPT_TEXTS_BYTES)) {
		struct core_exec *oldest = execs->kept;
		execs->kept = oldest->kept_next;
		if (!execs->kept)
			execs->kept_last = &execs->kept;
		execs->kept_count--;
		execs->kept_bytes -= oldest->texts_bytes;
		exec_free(oldest);
	}
}

/* The end is on disk: init may forget it. If it could not be written, init keeps it and reports it
 * again to the next core. */
static void on_stored(void *ctx, const struct error *err)
{
	struct core_exec *e = ctx;
	struct core *core = e->core;
	struct core_workspace *w = map_get(&core->ids, str_from(e->record.workspace));
	fault_point("core_exec_stored");
	if (err)
		log_record(&core->log, LOG_LEVEL_ERROR, "the end of an exec could not be recorded",
			"exec", e->record.id, "error", err->text, NULL);
	/* The sandbox may be a new one by now, whose init refuses the unknown number. */
	if (w && e->is_unacknowledged && w->sandbox.connection &&
		w->sandbox.connection->unacknowledged) {
		w->sandbox.connection->unacknowledged--;
		if (!err)
			connection_send(w, INIT_ACK, e->number, 0);
	}
	exec_came_back(e);
}

static void store_end(struct core_exec *e, bool has_exit)
{
	struct init_connection *connection = e->workspace->sandbox.connection;
	e->is_unacknowledged = has_exit && connection;
	if (e->is_unacknowledged)
		connection->unacknowledged++;
	e->awaited++;
	store_put(e->core->store, &store_execs, &e->record, on_stored, e);
}

static void tell_world(struct core_exec *e)
{
	struct core_workspace *w = e->workspace;
	struct core *core = w->core;
	char code[16];
	if (!e->record.background && !core->journal.listeners)
		return;
	str_format(code, sizeof code, "%d", result_exit_code(&e->record.result));
	journal_emit(&core->journal, "exec.ended", w->model.id, w->model.name, "exec", e->record.id,
		"reason", reason_names[e->record.result.reason], "#exit_code", code, NULL);
	if (e->record.background)
		log_record(&core->log, LOG_LEVEL_INFO, "background exec ended", "exec",
			e->record.id, "workspace", w->model.id, "reason",
			reason_names[e->record.result.reason], "request_id", e->request_id, NULL);
}

static void tell_listener(struct core_exec *e, const struct error *err)
{
	void (*ended)(void *ctx, struct core_exec *e, const struct error *err) = e->listener.ended;
	e->listener.ended = NULL;
	if (ended)
		ended(e->listener.ctx, e, err);
}

/* Its record is complete. */
static void finish(struct core_exec *e, bool has_exit)
{
	struct core_workspace *w = e->workspace;
	struct metrics *metrics = &w->core->metrics;
	exec_move(e, STAGE_ENDED);
	e->record.ended_ms = clock_now_ms();
	uint64_t took_ns = clock_monotonic_ns() - e->began_ns;
	e->record.result.duration_ms = took_ns / 1000000;
	exec_disarm_timeout(e);
	exec_unlink(e);
	if (e->record.background)
		spool_end(e);
	else
		spool_tell_followers(e);
	/* The rows of a workspace that goes go with it. */
	bool is_leaving = w->is_gone || w->model.state == WORKSPACE_DELETING;
	if (e->record.background && !is_leaving)
		store_end(e, has_exit);
	exec_audit_end(e, NULL);
	/* The answer first, then what has time. */
	tell_listener(e, NULL);
	metrics->execs[e->record.result.reason]++;
	histogram_add(&metrics->exec_seconds, (double)took_ns / 1e9);
	tell_world(e);
	if (has_exit)
		exec_look_again(e);
	streams_close(e);
	if (e->mode == EXEC_CAPTURED || e->mode == EXEC_STREAMED)
		streams_make_ahead(w->core->execs);
	exec_captured_done(&e->captured);
	core_touch(w);
	if (is_leaving) {
		if (e->record.background)
			spool_remove(e);
		exec_free(e);
	} else if (e->record.background)
		spool_trim(w);
	else if (e->is_internal)
		exec_free(e);
	else
		keep(e);
	core_release(w);
}

void exec_failed(struct core_exec *e, const struct error *err)
{
	struct core_workspace *w = e->workspace;
	exec_move(e, STAGE_ENDED);
	exec_unlink(e);
	e->record.ended_ms = clock_now_ms();
	e->record.error = arena_text(&e->arena, err->text);
	e->record.error_exit_code = error_exit_code(err->code);
	w->core->metrics.exec_failures++;
	exec_audit_end(e, err);
	streams_close(e);
	if (e->record.background) {
		spool_remove(e);
		store_remove(w->core->store, &store_execs, e->record.id, NULL, NULL, NULL);
	}
	tell_listener(e, err);
	spool_tell_followers(e);
	core_touch(w);
	exec_free(e);
	core_release(w);
}

void exec_not_run(struct core_exec *e, const struct error *err)
{
	bool is_command = err->code == ERR_COMMAND_NOT_FOUND || err->code == ERR_NOT_EXECUTABLE;
	struct exec_listener listener = e->listener;
	char text[ERROR_TEXT_SIZE + 16];
	/* A client that handed in its streams, and carrel itself, say so with a hint. */
	bool is_said = exec_is_handed(e->mode) || (e->is_cli && e->mode == EXEC_STREAMED);
	if (!is_command || is_said || e->is_internal || e->workspace->is_gone ||
		e->workspace->model.state == WORKSPACE_DELETING) {
		exec_failed(e, err);
		return;
	}
	str_format(text, sizeof text, "carrel: %s\n", err->text);
	streams_say(e, str_from(text));
	e->record.result.reason = REASON_EXITED;
	e->record.result.exit_status = error_exit_code(err->code);
	e->record.error = arena_text(&e->arena, err->text);
	e->core->metrics.exec_failures++;
	watch_forget(e->workspace, e);
	/* The answer to a background one says that it has ended already. */
	if (e->record.background)
		e->listener.ended = NULL;
	finish(e, false);
	if (listener.ended && listener.started && e->record.background)
		listener.started(listener.ctx, e);
}

void exec_lost(struct core_exec *e, enum reason reason, const char *error)
{
	struct result *result = &e->record.result;
	/* One that exited and waited for a judgement keeps what its command said. */
	if (exec_is_sent(e) || (e->stage == STAGE_ENDING && !WIFEXITED(e->wait_status)))
		result->signal = result->signal ? result->signal : SIGKILL;
	result->reason = reason;
	if (error)
		e->record.error = arena_text(&e->arena, error);
	watch_forget(e->workspace, e);
	finish(e, false);
}

void exec_exited(struct core_exec *e, const struct init_reply *reply)
{
	struct result *result = &e->record.result;
	const struct core_sandbox *sandbox = &e->workspace->sandbox;
	exec_move(e, STAGE_ENDING);
	e->wait_status = reply->value;
	if (!e->limit)
		e->limit = sandbox->limit;
	exec_disarm_timeout(e);
	bool exited = WIFEXITED(reply->value);
	result->reason = exited ? REASON_EXITED : REASON_SIGNALED;
	result->exit_status = exited ? WEXITSTATUS(reply->value) : 0;
	result->signal = exited ? 0 : WTERMSIG(reply->value);
	result->cpu_ms = (reply->utime_us + reply->stime_us) / 1000;
	result->max_rss_bytes = reply->max_rss_kb * 1024;
	watch_add_usage(e->workspace, e);
	streams_mark_end(e);
	exec_go_on_ending(e);
}

/* false: the judgement comes later. */
static bool judge(struct core_exec *e)
{
	enum reason reason = REASON_EXITED;
	if (e->judgement != JUDGEMENT_DUE)
		return e->judgement == JUDGEMENT_GIVEN;
	e->judgement = JUDGEMENT_GIVEN;
	if (e->limit)
		return true;
	switch (watch_last_look(e->workspace, e, &reason)) {
	case WATCH_HIT:
		e->limit = reason;
		return true;
	case WATCH_LATER:
		e->judgement = JUDGEMENT_AWAITED;
		return false;
	default:
		return true;
	}
}

void exec_go_on_ending(struct core_exec *e)
{
	if (!judge(e) || !streams_drain(e))
		return;
	if (e->limit)
		e->record.result.reason = e->limit;
	finish(e, true);
}
