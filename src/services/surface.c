/* surface.c -- a surface that runs: one job starts its exec, checks its health, and restarts it
 * with back-off, until it is stopped. */
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "core/packages/health.h"
#include "services/backoff.h"
#include "services/deployment_internal.h"
#include "services/probe.h"

#define FIRST_EVERY_MS 20   /* checks until it is healthy, for the first seconds, */
#define FIRST_LONG_MS 5000  /* which are so long; */
#define START_EVERY_MS 250  /* then */
#define CHECK_EVERY_MS 5000 /* when it is healthy */
#define FAILURES_MAX 3	    /* in a row, until it is restarted */
#define CRASHES_MAX 3	    /* before it was ever healthy */

/* How a start of its process ends. */
enum ending {
	GOES_ON, /* not yet */
	STOPPED,
	CRASHED,  /* it has ended by itself, or was never begun */
	ILL,	  /* it is to be restarted */
	HOPELESS, /* the rollout fails: the error says it all */
};

static struct core *core_of(const struct surface *s)
{
	return s->revision->deployment->all->service.core;
}

struct core_workspace *surface_workspace(const struct surface *s)
{
	const char *id = s->revision->model.surfaces[s->kind].workspace;
	struct core_workspace *w;
	struct error ignored;
	return id && !core_find(core_system(), core_of(s), id, &w, &ignored) ? w : NULL;
}

static struct core_exec *exec_of(const struct surface *s)
{
	const char *id = s->revision->model.surfaces[s->kind].exec;
	struct core_exec *e;
	struct error ignored;
	return id && !exec_find(core_system(), core_of(s), id, &e, &ignored) ? e : NULL;
}

static void set_status(struct surface *s, enum surface_status status, const char *why)
{
	str_copy(s->why, sizeof s->why, why ? why : "");
	if (s->status == status)
		return;
	s->status = status;
	if (s->revision->rollout)
		rollout_surface_changed(s->revision);
	else
		deployment_surface_changed(s->revision->deployment);
}

/* What listens instead of its port, for people who look for why it doesn't answer. */
static void name_ports(struct surface *s, struct buf *out)
{
	auto_arena struct arena arena = { 0 };
	port_list ports = { 0 };
	struct error ignored;
	struct core_workspace *w = surface_workspace(s);
	if (!w || core_ports(core_system(), w, &arena, &ports, &ignored))
		return;
	buf_text(out, ports.count ? "; in its sandbox these ports listen:" : "; no port listens");
	for (size_t i = 0; i < ports.count; i++)
		buf_printf(out, " %u", (unsigned)ports.items[i].port);
}

static enum ending give_up_start(struct surface *s, struct error *why)
{
	auto_buf struct buf text = buf_empty(400);
	buf_printf(&text, "surface '%s' did not become healthy: %s", surface_names[s->kind],
		why->text);
	name_ports(s, &text);
	fail(why, ERR_FAILED, "%s", text.data);
	return HOPELESS;
}

/* ---- its exec ---- */

static void unfollow(struct surface *s)
{
	struct core_exec *e = s->is_following ? exec_of(s) : NULL;
	if (e)
		exec_unfollow(e, &s->follower);
	s->is_following = false;
}

static void on_more(void *ctx, bool has_ended)
{
	struct surface *s = ctx;
	if (!has_ended || s->revision->deployment->all->is_stopping)
		return;
	s->has_ended = true;
	bell_ring(&s->bell);
}

static void follow(struct surface *s, struct core_exec *e)
{
	s->follower = (struct exec_follower){ .more = on_more, .ctx = s };
	s->is_following = true;
	s->has_ended = false;
	exec_follow(e, &s->follower);
}

static enum ending explain_end(const struct surface *s, struct error *why)
{
	const struct core_exec *e = exec_of(s);
	const struct exec_record *record = e ? exec_record_of(e) : NULL;
	if (!record)
		fail(why, ERR_FAILED, "its process has ended");
	else if (record->error)
		fail(why, ERR_FAILED, "%.199s", record->error);
	else if (record->result.signal)
		fail(why, ERR_FAILED, "its process was killed by signal %d", record->result.signal);
	else
		fail(why, ERR_FAILED, "its process has ended with exit code %d",
			result_exit_code(&record->result));
	return CRASHED;
}

pair_list surface_variables(
	const struct revision_state *r, enum surface_kind kind, struct arena *arena)
{
	pair_list env = { 0 };
	const struct text_pair own[] = {
		{ "PORT", arena_printf(arena, "%u", (unsigned)apkg_port(&r->agent, kind)) },
		{ "HOST", "127.0.0.1" },
		{ "PYTHONPATH", DEPLOYMENT_PYTHONPATH },
		{ "PYTHONUNBUFFERED", DEPLOYMENT_PYTHONUNBUFFERED },
		{ "CARREL_DEPLOYMENT", r->deployment->name },
		{ "CARREL_SURFACE", surface_names[kind] },
	};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		vec_push(arena, &env, own[i]);
	return env;
}

/* Those that the package and the request give: rules judge them with the command. */
static pair_list given_variables(const struct surface *s, struct arena *arena)
{
	const struct revision_state *r = s->revision;
	pair_list env = { 0 };
	const pair_list *given = &r->agent.surfaces[s->kind].env;
	for (size_t i = 0; i < given->count; i++)
		vec_push(arena, &env, given->items[i]);
	for (size_t i = 0; i < r->model.env.count; i++) /* the operator's count last */
		vec_push(arena, &env, r->model.env.items[i]);
	return env;
}

static void on_started(void *ctx, struct core_exec *e)
{
	struct surface *s = ctx;
	struct revision_state *r = s->revision;
	s->starting = NULL;
	r->model.surfaces[s->kind].exec = arena_text(&r->arena, exec_record_of(e)->id);
	exec_detach(e);
	follow(s, e);
	deployment_save(r->deployment, NULL, NULL);
	fiber_continue(s->bell.fiber, NULL);
}

static void on_not_started(void *ctx, struct core_exec *e, const struct error *err)
{
	struct surface *s = ctx;
	struct error why;
	s->starting = NULL;
	fail(&why, ERR_FAILED, "its process has ended");
	fiber_continue(s->bell.fiber, err ? err : &why);
}

/* Ends a wait for a start or a repair early. */
static void cut(void *ctx)
{
	struct surface *s = ctx;
	if (s->starting)
		exec_detach(s->starting);
	core_heal_forget(s->healing);
	s->starting = NULL;
	s->healing = NULL;
	fiber_continue(s->bell.fiber, NULL);
}

/* The package's own command: judged, recorded and listed, which core's own are not. */
static enum ending start_exec(struct surface *s, struct core_workspace *w, struct error *why)
{
	auto_arena struct arena arena = { 0 };
	struct revision_state *r = s->revision;
	const struct exec_listener listener = {
		.started = on_started, .ended = on_not_started, .ctx = s
	};
	struct exec_spec spec = { .argv = apkg_command(&r->agent, s->kind, &arena),
		.command = r->agent.surfaces[s->kind].command,
		.env = given_variables(s, &arena),
		.background = true };
	if (exec_start(revision_request(r, &arena), w, &spec, EXEC_SPOOLED, NULL, &listener,
		    &s->starting, why)) {
		s->starting = NULL;
		/* A rule that refuses it now would refuse it again. */
		return why->code == ERR_POLICY && !s->was_healthy ? give_up_start(s, why) : CRASHED;
	}
	if (!fiber_wait_or_cut(s->bell.fiber, cut, s, why))
		return GOES_ON;
	return s->is_stopped ? STOPPED : CRASHED;
}

/* ---- health ---- */

static int check(struct surface *s, struct core_workspace *w, struct error *err)
{
	const struct apkg *agent = &s->revision->agent;
	const char *health = agent->surfaces[s->kind].health;
	struct probe probe = { .core = core_of(s),
		.bell = &s->bell,
		.is_over = &s->has_ended,
		.port = apkg_port(agent, s->kind),
		.health = health,
		.is_grpc = health ? !strcmp(health, "grpc") : s->kind == SURFACE_A2A };
	return probe_run(&probe, w, err);
}

/* Until the next check; 0: there is none. err: of this one, or NULL. */
static uint64_t take_check(struct surface *s, const struct error *err)
{
	uint64_t now_ms = clock_monotonic_ms();
	if (!err) {
		if (s->status != SURFACE_HEALTHY)
			s->healthy_since_ms = now_ms;
		s->failures = s->crashes = 0;
		s->was_healthy = true;
		set_status(s, SURFACE_HEALTHY, NULL);
		return CHECK_EVERY_MS;
	}
	if (s->status == SURFACE_HEALTHY)
		return ++s->failures < FAILURES_MAX ? START_EVERY_MS : 0;
	if (now_ms > s->deadline_ms)
		return 0;
	const struct apkg_surface *spec = &s->revision->agent.surfaces[s->kind];
	uint64_t began_ms = s->deadline_ms - spec->start_timeout_ms;
	str_copy(s->why, sizeof s->why, err->text);
	return now_ms - began_ms < FIRST_LONG_MS ? FIRST_EVERY_MS : START_EVERY_MS;
}

/* ---- the job ---- */

static void set_deadline(struct surface *s)
{
	s->deadline_ms =
		clock_monotonic_ms() + s->revision->agent.surfaces[s->kind].start_timeout_ms;
}

/* From the start of its process to the end. */
static enum ending serve(struct surface *s, struct error *why)
{
	struct core_workspace *w = surface_workspace(s);
	uint64_t delay_ms = 0;
	if (!s->is_following) { /* else it was adopted */
		set_deadline(s);
		s->failures = 0;
		if (!w)
			return fail(why, ERR_FAILED, "its workspace is gone"), CRASHED;
		enum ending ending = start_exec(s, w, why);
		if (ending != GOES_ON)
			return ending;
	}
	do {
		uint64_t due_ms = clock_monotonic_ms() + delay_ms, now_ms;
		while (!s->has_ended && (now_ms = clock_monotonic_ms()) < due_ms)
			if (bell_wait(&s->bell, due_ms - now_ms, why))
				return STOPPED;
		if (s->has_ended)
			return explain_end(s, why);
		w = surface_workspace(s);
		if (!w)
			return fail(why, ERR_FAILED, "its workspace is gone"), ILL;
		int failed = check(s, w, why);
		if (s->is_stopped)
			return STOPPED;
		if (s->has_ended)
			return explain_end(s, why);
		delay_ms = take_check(s, failed ? why : NULL);
	} while (delay_ms);
	return s->was_healthy ? ILL : give_up_start(s, why);
}

static void on_healed(void *ctx, bool was_damaged, const struct error *err)
{
	struct surface *s = ctx;
	s->healing = NULL;
	if (was_damaged)
		s->crashes = 0;
	fiber_continue(s->bell.fiber, err);
}

/* A package that was altered on disk fails all starts alike: it is looked for once. */
static enum ending weigh_crash(struct surface *s, struct error *why)
{
	struct core_workspace *w = surface_workspace(s);
	if (s->was_healthy)
		return ILL;
	if (!s->is_healed && w && s->revision->model.environment) {
		s->is_healed = true;
		s->crashes++;
		set_status(s, SURFACE_STARTING, why->text);
		s->healing = core_heal(core_system(), w, on_healed, s);
		fiber_wait_or_cut(s->bell.fiber, cut, s, why);
		return s->is_stopped ? STOPPED : ILL;
	}
	if (++s->crashes < CRASHES_MAX)
		return ILL;
	auto_buf struct buf text = buf_empty(400);
	buf_printf(&text, "surface '%s' has ended %u times before it was healthy: %s",
		surface_names[s->kind], s->crashes, why->text);
	fail(why, ERR_FAILED, "%s", text.data);
	return HOPELESS;
}

static int wait_for_restart(struct surface *s, const struct error *why)
{
	struct core_exec *e = exec_of(s);
	struct error ignored;
	uint64_t now_ms = clock_monotonic_ms(), healthy_ms = 0;
	if (s->status == SURFACE_HEALTHY) /* in the millisecond in which it became healthy, too */
		healthy_ms = now_ms - s->healthy_since_ms + 1;
	uint64_t delay_ms = backoff_next_ms(&s->ends, healthy_ms);
	if (e && exec_record_of(e)->state != EXEC_ENDED)
		exec_signal(core_system(), e, 9, &ignored);
	s->restart_due_ms = now_ms + delay_ms;
	set_status(s, s->was_healthy ? SURFACE_UNHEALTHY : SURFACE_STARTING, why->text);
	if (pause_wait(s->bell.fiber, s->bell.loop, delay_ms, &ignored))
		return -1;
	s->restart_due_ms = 0;
	s->restarts++;
	s->revision->deployment->all->restarts++;
	return 0;
}

static void supervise(struct fiber *fiber, void *ctx)
{
	struct surface *s = ctx;
	enum ending ending;
	struct error why;
	s->bell = (struct bell){ .fiber = fiber, .loop = core_loop(core_of(s)) };
	do {
		ending = serve(s, &why);
		unfollow(s);
		if (ending == CRASHED)
			ending = weigh_crash(s, &why);
	} while (ending == ILL && !wait_for_restart(s, &why));
	bell_done(&s->bell);
	s->bell.fiber = NULL;
	if (ending == HOPELESS)
		rollout_surface_failed(s->revision, &why);
}

void surface_start(struct surface *s)
{
	s->status = SURFACE_STARTING;
	s->is_stopped = false;
	fiber_start(supervise, s);
}

void surface_adopt(struct surface *s)
{
	struct core_exec *e = exec_of(s);
	s->was_healthy = true;
	set_deadline(s);
	if (e && exec_record_of(e)->state != EXEC_ENDED)
		follow(s, e);
	surface_start(s);
}

void surface_stop(struct surface *s)
{
	s->is_stopped = true;
	if (s->bell.fiber)
		fiber_cancel(s->bell.fiber);
}

void surface_fail_away(const struct surface *s, struct error *err)
{
	const char *deployment = s->revision->deployment->name;
	uint64_t now_ms = clock_monotonic_ms();
	fail(err, ERR_UNAVAILABLE, "surface '%s' of deployment '%s' does not run now: %s",
		surface_names[s->kind], deployment,
		s->is_following ? "its sandbox is ending"
		: s->why[0]	? s->why
				: "it is being started");
	uint64_t left_ms = s->restart_due_ms > now_ms ? s->restart_due_ms - now_ms : 0;
	if (left_ms)
		error_hint(err, "it is started again within %llu s",
			(unsigned long long)(left_ms / 1000 + 1));
	else
		error_hint(err, "carrel deployment show %s says how it goes", deployment);
}

/* ---- its output ---- */

static void read_tail(struct core_exec *e, int stream, struct buf *out)
{
	struct error ignored;
	int opened = -1;
	if (exec_open_output(core_system(), e, stream, &opened, &ignored))
		return;
	auto_close int fd = opened;
	off_t end = lseek(fd, 0, SEEK_END), first = (off_t)exec_output_first(fd);
	off_t at = end - first > LOG_BYTES ? end - LOG_BYTES : first;
	char *room = end > at ? buf_reserve(out, (size_t)(end - at)) : NULL;
	ssize_t got = room ? pread(fd, room, (size_t)(end - at), at) : 0;
	if (got > 0)
		buf_grew(out, (size_t)got);
}

void surface_read_log(const struct surface *s, struct buf *out)
{
	struct core_exec *e = exec_of(s);
	for (int stream = 1; e && stream <= 2; stream++)
		read_tail(e, stream, out);
}
