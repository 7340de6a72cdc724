/* surface.c -- a surface that runs: its exec, checks of its health, and restarts with back-off. */
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "core/packages/health.h"
#include "services/backoff.h"
#include "services/deployment_internal.h"

#define FIRST_EVERY_MS 20   /* checks until it is healthy, for the first seconds, */
#define FIRST_LONG_MS 5000  /* which are so long; */
#define START_EVERY_MS 250  /* then */
#define CHECK_EVERY_MS 5000 /* when it is healthy */
#define FAILURES_MAX 3	    /* in a row, until it is restarted */
#define CRASHES_MAX 3	    /* before it was ever healthy */

static void check_later(struct surface *s, uint64_t delay_ms);
static void restart_later(struct surface *s, const char *why);

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

static void unfollow(struct surface *s)
{
	struct core_exec *e = s->is_following ? exec_of(s) : NULL;
	if (e)
		exec_unfollow(e, &s->follower);
	s->is_following = false;
}

void surface_stop(struct surface *s)
{
	loop_cancel(core_loop(core_of(s)), s->timer);
	s->timer = NULL;
	probe_stop(&s->probe);
	if (s->starting)
		exec_detach(s->starting);
	s->starting = NULL;
	core_heal_forget(s->healing);
	s->healing = NULL;
	unfollow(s);
}

static void set_status(struct surface *s, enum surface_status status, const char *why)
{
	str_copy(s->why, sizeof s->why, why ? why : "");
	if (s->status == status)
		return;
	s->status = status;
	if (s->revision->is_rolling)
		rollout_surface_changed(s);
	else
		deployment_surface_changed(s->revision->deployment);
}

/* ---- health ---- */

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

static void fail_start(struct surface *s, const char *why)
{
	auto_buf struct buf text = buf_empty(400);
	struct error err;
	buf_printf(&text, "surface '%s' did not become healthy: %s", surface_names[s->kind], why);
	name_ports(s, &text);
	fail(&err, ERR_FAILED, "%s", text.data);
	rollout_fail(s->revision, &err);
}

static void on_checked(void *ctx, const struct error *err)
{
	struct surface *s = ctx;
	uint64_t now_ms = clock_monotonic_ms();
	if (!err) {
		if (s->status != SURFACE_HEALTHY)
			s->healthy_since_ms = now_ms;
		s->failures = s->crashes = 0;
		s->was_healthy = true;
		check_later(s, CHECK_EVERY_MS);
		set_status(s, SURFACE_HEALTHY, NULL);
		return;
	}
	if (s->status == SURFACE_HEALTHY && ++s->failures < FAILURES_MAX) {
		check_later(s, START_EVERY_MS);
		return;
	}
	if (s->status == SURFACE_HEALTHY || (s->was_healthy && now_ms > s->deadline_ms)) {
		restart_later(s, err->text);
		return;
	}
	if (!s->was_healthy && now_ms > s->deadline_ms) {
		fail_start(s, err->text);
		return;
	}
	const struct apkg_surface *spec = &s->revision->agent.surfaces[s->kind];
	uint64_t began_ms = s->deadline_ms - spec->start_timeout_ms;
	str_copy(s->why, sizeof s->why, err->text);
	check_later(s, now_ms - began_ms < FIRST_LONG_MS ? FIRST_EVERY_MS : START_EVERY_MS);
}

static void on_check_due(struct loop *loop, void *ctx)
{
	struct surface *s = ctx;
	const struct apkg *agent = &s->revision->agent;
	const char *health = agent->surfaces[s->kind].health;
	struct core_workspace *w = surface_workspace(s);
	s->timer = NULL;
	s->probe = (struct probe){ .core = core_of(s),
		.port = apkg_port(agent, s->kind),
		.health = health,
		.is_grpc = health ? !strcmp(health, "grpc") : s->kind == SURFACE_A2A,
		.done = on_checked,
		.ctx = s };
	if (w)
		probe_start(&s->probe, w);
	else
		restart_later(s, "its workspace is gone");
}

static void check_later(struct surface *s, uint64_t delay_ms)
{
	loop_cancel(core_loop(core_of(s)), s->timer);
	s->timer = loop_after(core_loop(core_of(s)), delay_ms, on_check_due, s);
}

/* ---- its exec ---- */

static void on_healed(void *ctx, bool was_damaged, const struct error *err)
{
	struct surface *s = ctx;
	s->healing = NULL;
	if (was_damaged)
		s->crashes = 0;
	restart_later(s, err ? err->text : s->why);
}

/* A package that was altered on disk fails all starts alike: it is looked for once. */
static bool heal(struct surface *s, const char *why)
{
	struct core_workspace *w = surface_workspace(s);
	if (s->was_healthy || s->is_healed || !w || !s->revision->model.environment)
		return false;
	s->is_healed = true;
	s->crashes++;
	loop_cancel(core_loop(core_of(s)), s->timer);
	s->timer = NULL;
	unfollow(s);
	set_status(s, SURFACE_STARTING, why);
	s->healing = core_heal(core_system(), w, on_healed, s);
	return true;
}

/* It has ended by itself, or was never begun. */
static void crashed(struct surface *s, const char *why)
{
	probe_stop(&s->probe);
	if (heal(s, why))
		return;
	if (!s->was_healthy && ++s->crashes >= CRASHES_MAX) {
		auto_buf struct buf text = buf_empty(400);
		struct error err;
		buf_printf(&text, "surface '%s' has ended %u times before it was healthy: %s",
			surface_names[s->kind], s->crashes, why);
		fail(&err, ERR_FAILED, "%s", text.data);
		rollout_fail(s->revision, &err);
		return;
	}
	restart_later(s, why);
}

static void on_more(void *ctx, bool has_ended)
{
	struct surface *s = ctx;
	char why[200] = "its process has ended";
	if (!has_ended || s->revision->deployment->all->is_stopping)
		return;
	struct core_exec *e = exec_of(s);
	unfollow(s); /* it would be told again */
	if (e) {
		const struct exec_record *record = exec_record_of(e);
		if (record->error)
			str_copy(why, sizeof why, record->error);
		else if (record->result.signal)
			str_format(why, sizeof why, "its process was killed by signal %d",
				record->result.signal);
		else
			str_format(why, sizeof why, "its process has ended with exit code %d",
				result_exit_code(&record->result));
	}
	crashed(s, why);
}

static void follow(struct surface *s, struct core_exec *e)
{
	s->follower = (struct exec_follower){ .more = on_more, .ctx = s };
	s->is_following = true;
	exec_follow(e, &s->follower);
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
	check_later(s, 0);
}

static void on_not_started(void *ctx, struct core_exec *e, const struct error *err)
{
	struct surface *s = ctx;
	s->starting = NULL;
	crashed(s, err ? err->text : "its process has ended");
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

void surface_start(struct surface *s)
{
	auto_arena struct arena arena = { 0 };
	struct revision_state *r = s->revision;
	struct core_workspace *w = surface_workspace(s);
	const struct exec_listener listener = {
		.started = on_started, .ended = on_not_started, .ctx = s
	};
	struct error err;
	uint64_t patience_ms = r->agent.surfaces[s->kind].start_timeout_ms;
	struct exec_spec spec = { .argv = apkg_command(&r->agent, s->kind, &arena),
		.command = r->agent.surfaces[s->kind].command,
		.env = given_variables(s, &arena),
		.background = true };
	s->deadline_ms = clock_monotonic_ms() + patience_ms;
	s->failures = 0;
	if (!w) {
		crashed(s, "its workspace is gone");
		return;
	}
	/* The package's own command: judged, recorded and listed, which core's own are not. */
	const struct request *request = revision_request(r, &arena);
	if (!exec_start(request, w, &spec, EXEC_SPOOLED, NULL, &listener, &s->starting, &err))
		return;
	s->starting = NULL;
	/* A rule that refuses it now would refuse it again. */
	if (err.code == ERR_POLICY && !s->was_healthy)
		fail_start(s, err.text);
	else
		crashed(s, err.text);
}

void surface_adopt(struct surface *s)
{
	struct core_exec *e = exec_of(s);
	s->was_healthy = true;
	s->status = SURFACE_STARTING;
	s->deadline_ms =
		clock_monotonic_ms() + s->revision->agent.surfaces[s->kind].start_timeout_ms;
	if (e && exec_record_of(e)->state != EXEC_ENDED) {
		follow(s, e);
		check_later(s, 0);
	} else {
		surface_start(s);
	}
}

/* ---- restarts ---- */

static void on_restart_due(struct loop *loop, void *ctx)
{
	struct surface *s = ctx;
	s->timer = NULL;
	s->restart_due_ms = 0;
	s->restarts++;
	s->revision->deployment->all->restarts++;
	surface_start(s);
}

static void restart_later(struct surface *s, const char *why)
{
	struct core_exec *e = exec_of(s);
	struct error ignored;
	char text[256];
	str_copy(text, sizeof text, why);
	uint64_t now_ms = clock_monotonic_ms(), healthy_ms = 0;
	if (s->status == SURFACE_HEALTHY) /* in the millisecond in which it became healthy, too */
		healthy_ms = now_ms - s->healthy_since_ms + 1;
	uint64_t delay_ms = backoff_next_ms(&s->ends, healthy_ms);
	unfollow(s);
	if (e && exec_record_of(e)->state != EXEC_ENDED)
		exec_signal(core_system(), e, 9, &ignored);
	loop_cancel(core_loop(core_of(s)), s->timer);
	s->restart_due_ms = now_ms + delay_ms;
	s->timer = loop_after(core_loop(core_of(s)), delay_ms, on_restart_due, s);
	set_status(s, s->was_healthy ? SURFACE_UNHEALTHY : SURFACE_STARTING, text);
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
