/* init_connection.c -- the socket to a sandbox's init: what is sent there, and what it answers. */
#include <signal.h>
#include <sys/epoll.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "core/access/policies.h"
#include "core/execs/internal.h"
#include "core/workspaces/networks.h"
#include "envs/kind.h"
#include "sandbox/native/init_client.h"
#include "sandbox/plan/plan.h"
#include "sandbox/plan/programs.h"

#define REPLIES_A_TURN 256 /* then other connections get their turn */
#define TERM_DEFAULT "TERM=xterm-256color"

/* ---- the environment of commands ---- */

static void set_variables(struct arena *arena, text_list *env, const pair_list *pairs)
{
	for (size_t i = 0; i < pairs->count; i++)
		plan_set_env(arena, env,
			arena_printf(arena, "%s=%s", pairs->items[i].key, pairs->items[i].value));
}

static void end_texts(struct arena *arena, text_list *texts)
{
	vec_push(arena, texts, NULL);
	texts->count--;
}

void connection_make_env(struct core_workspace *w)
{
	struct init_connection *connection = w->sandbox.connection;
	auto_arena struct arena arena = { 0 };
	text_list env = { 0 };
	const char *const *own = plan_own_env(w->model.view);
	for (size_t i = 0; own[i]; i++)
		vec_push(&arena, &env, own[i]);
	plan_limit_env(&w->model.limits, w->model.ptrace, &arena, &env);
	networks_add_env(w, &arena, &env);
	for (size_t i = 0; i < ENV_KINDS; i++) {
		const struct env_kind *kind = environment_kind(w, i);
		for (size_t k = 0; kind && kind->variables[k]; k++)
			plan_set_env(&arena, &env, kind->variables[k]);
	}
	if (policies_hold(w))
		plan_set_env(&arena, &env, PLAN_PROGRAMS_PATH);
	set_variables(&arena, &env, &w->model.env);
	arena_done(&connection->env_arena);
	connection->env = text_list_copy(&connection->env_arena, &env);
}

/* That of the sandbox as it is, unless this exec has something to add. */
static text_list env_of(struct arena *arena, const struct init_connection *connection,
	const struct exec_spec *spec, bool tty)
{
	text_list env = { 0 };
	if (!spec->env.count && !tty)
		return connection->env;
	if (tty)
		vec_push(arena, &env, TERM_DEFAULT);
	for (size_t i = 0; i < connection->env.count; i++)
		plan_set_env(arena, &env, connection->env.items[i]);
	set_variables(arena, &env, &spec->env);
	end_texts(arena, &env);
	return env;
}

/* ---- to init ---- */

static void on_line(struct loop *loop, int fd, uint32_t events, void *ctx);

static void want_room(struct core_workspace *w, bool wants)
{
	struct error err;
	if (w->sandbox.connection->is_watched)
		loop_change(w->core->loop, w->sandbox.view.init, EPOLLIN | (wants ? EPOLLOUT : 0),
			&err);
}

static void enqueue(struct init_connection *connection, struct exec_message message)
{
	struct exec_message *made = xzalloc(sizeof *made), **last = &connection->queue;
	*made = message;
	while (*last)
		last = &(*last)->next;
	*last = made;
	if (last == &connection->queue)
		want_room(connection->w, true);
}

static void on_ping(struct loop *loop, void *ctx)
{
	struct init_connection *connection = ctx;
	struct core_workspace *w = connection->w;
	connection->ping = NULL;
	if (connection->is_asking) {
		connection_break(w, REASON_CANCELED, "the sandbox's init does not respond");
		return;
	}
	/* Between two commands there is nothing to be sure of. */
	if (connection->confirmed == connection->sent || !w->sandbox.exec_count)
		return;
	connection->asked = connection->sent;
	connection->is_asking = true;
	connection_send(w, INIT_STATS, 0, 0);
	connection->ping = loop_after(loop, w->core->execs->ping_ms, on_ping, connection);
}

/* init is asked for INIT_STARTED. */
static bool wants_started(const struct core_exec *e)
{
	return e->record.background || e->listener.started;
}

/* It is with init now. */
static void note_sent(struct core_exec *e)
{
	struct init_connection *connection = e->workspace->sandbox.connection;
	struct core *core = e->core;
	exec_move(e, wants_started(e) ? STAGE_STARTING : STAGE_RUNNING);
	e->spec = NULL;
	connection->sent++;
	if (!connection->ping)
		connection->ping =
			loop_after(core->loop, core->execs->ping_ms, on_ping, connection);
	histogram_add(&core->metrics.exec_overhead_seconds,
		(double)(clock_monotonic_ns() - e->began_ns) / 1e9);
	streams_sent(e);
}

static int send_spawn(struct core_exec *e, const struct exec_spec *spec, struct error *err)
{
	struct core_workspace *w = e->workspace;
	auto_arena struct arena arena = { 0 };
	text_list env = env_of(&arena, w->sandbox.connection, spec, e->record.tty);
	struct init_spawn what = { e->record.argv.items, env.items, e->record.cwd, INIT_NO_PIDFD };
	if (!wants_started(e))
		what.flags |= INIT_NO_STARTED;
	if (!e->record.background)
		what.flags |= INIT_ATTACHED;
	if (e->record.tty)
		what.flags |= INIT_TTY;
	e->may_not_grow = watch_forbids_growth(w);
	if (e->may_not_grow)
		what.flags |= INIT_NO_GROWTH;
	return init_client_spawn(w->sandbox.view.init, e->number, &what, e->fds, err);
}

/* init has died. The end of the connection is handled after all its messages were read. */
static bool is_lost(const struct error *err)
{
	return err->sys_errno == EPIPE || err->sys_errno == ECONNRESET ||
	       err->sys_errno == ENOTCONN;
}

int connection_spawn(struct core_exec *e, const struct exec_spec *spec, struct error *err)
{
	struct init_connection *connection = e->workspace->sandbox.connection;
	int failed = connection->queue ? -1 : send_spawn(e, spec, err);
	if (!failed) {
		note_sent(e);
		return 0;
	}
	if (!connection->queue && err->sys_errno == ETOOMANYREFS)
		return fail_hint(err, ERR_LIMIT, "try again in a moment",
			"too many commands are being started at once");
	if (!connection->queue && err->sys_errno != EAGAIN && !is_lost(err))
		return -1;
	exec_keep_spec(e, spec);
	if (e->stdin_rest.len)
		e->stdin_rest = e->spec->stdin_text;
	if (e->mode == EXEC_HANDED && !e->is_ours[0] && streams_keep(e, e->fds, err))
		return -1;
	enqueue(connection, (struct exec_message){ .type = INIT_SPAWN, .spawn = e });
	return 0;
}

void connection_withdraw(struct core_workspace *w, const void *whose)
{
	const struct init_connection *connection = w->sandbox.connection;
	for (struct exec_message *m = connection ? connection->queue : NULL; m; m = m->next) {
		m->spawn = m->spawn == whose ? NULL : m->spawn;
		m->server = m->server == whose ? NULL : m->server;
	}
}

int connection_spawn_file_server(
	struct core_workspace *w, struct file_server *server, struct error *err)
{
	struct init_connection *connection = w->sandbox.connection;
	if (!connection->queue && !file_server_send_spawn(server, err))
		return 0;
	if (!connection->queue && err->sys_errno != EAGAIN && !is_lost(err))
		return -1;
	enqueue(connection, (struct exec_message){ .type = INIT_SPAWN, .server = server });
	return 0;
}

static int send_small(struct core_workspace *w, const struct exec_message *m, struct error *err)
{
	switch (m->type) {
	case INIT_SIGNAL:
		return init_client_signal(w->sandbox.view.init, m->id, m->value, err);
	case INIT_ACK:
		return init_client_ack(w->sandbox.view.init, m->id, err);
	case INIT_STATS:
		return init_client_stats(w->sandbox.view.init, err);
	case INIT_CONNECT: /* above the port: to which address */
		return init_client_connect(w->sandbox.view.init, m->id, (uint16_t)m->value,
			m->value > UINT16_MAX, err);
	case INIT_LISTENERS:
		return init_client_listeners(w->sandbox.view.init, err);
	default: /* a spawn that was taken back */
		return 0;
	}
}

void connection_send(struct core_workspace *w, enum init_type type, uint64_t id, int value)
{
	struct init_connection *connection = w->sandbox.connection;
	struct exec_message message = { .type = type, .id = id, .value = value };
	struct error err;
	if (!connection || connection->is_broken)
		return;
	connection->stats_due += type == INIT_STATS;
	connection->listeners_due += type == INIT_LISTENERS;
	if (connection->queue || (send_small(w, &message, &err) && err.sys_errno == EAGAIN))
		enqueue(connection, message);
	/* Any other failure ends the connection, which on_hang_up handles. */
}

/* Sends what waits, as far as there is room. */
static void send_queue(struct init_connection *connection)
{
	struct core_workspace *w = connection->w;
	while (connection->queue && !connection->is_broken) {
		struct exec_message *m = connection->queue;
		struct error err;
		int failed = m->spawn	 ? send_spawn(m->spawn, m->spawn->spec, &err)
			     : m->server ? file_server_send_spawn(m->server, &err)
					 : send_small(w, m, &err);
		if (failed && (err.sys_errno == EAGAIN || is_lost(&err)))
			return;
		struct core_exec *e = m->spawn;
		struct file_server *server = m->server;
		connection->queue = m->next;
		free(m);
		if (server && failed)
			file_server_spawn_failed(server, &err);
		else if (e && failed)
			exec_failed(e, &err);
		else if (e)
			note_sent(e);
	}
	want_room(w, false);
}

/* ---- from init ---- */

void connection_break(struct core_workspace *w, enum reason reason, const char *why)
{
	struct init_connection *connection = w->sandbox.connection;
	if (connection->is_broken)
		return;
	connection->is_broken = true;
	if (!connection->why) /* it wasn't ended on purpose */
		connection->why = arena_text(&connection->arena, why);
	if (connection->is_watched)
		loop_unwatch(w->core->loop, w->sandbox.view.init);
	connection->is_watched = false;
	/* When the launcher has ended it there is nothing odd about this. */
	if (w->sandbox.state != SANDBOX_ENDING)
		log_record(&w->core->log, LOG_LEVEL_ERROR, "ending a sandbox", "workspace",
			w->model.id, "error", why, NULL);
	core_end_sandbox(w, reason);
}

static void lie(struct core_workspace *w, const char *what, const struct init_reply *reply)
{
	char why[160];
	str_format(why, sizeof why, "the sandbox's init %s (type %u, id %016llx)", what,
		reply->type, (unsigned long long)reply->id);
	connection_break(w, REASON_CANCELED, why);
}

static struct core_exec *find_exec(struct core_workspace *w, uint64_t number)
{
	for (struct core_exec *e = w->sandbox.execs; e; e = e->next)
		if (e->number == number && exec_is_sent(e))
			return e;
	return NULL;
}

static void on_exited(struct core_workspace *w, const struct init_reply *reply)
{
	struct core_exec *e = find_exec(w, reply->id);
	if (!e && w->sandbox.connection->is_adopted)
		connection_send(w, INIT_ACK, reply->id, 0); /* started by an earlier core */
	else if (!e || e->stage == STAGE_STARTING)
		lie(w, "reports the end of an unknown exec", reply);
	else {
		e->is_restored = false;
		exec_exited(e, reply);
	}
}

/* As init has said, or as it must have said to a core before this one. */
static bool has_started(const struct core_exec *e)
{
	return wants_started(e) && e->stage != STAGE_STARTING;
}

/* The refusal of a signal or an acknowledgement that came too late is ignored. EPERM: an init that
 * isn't PID 1 signals no other process. */
static bool is_late(const struct init_reply *reply)
{
	return reply->type == INIT_REFUSED && (reply->value == ESRCH || reply->value == EPERM);
}

/* INIT_REFUSED, INIT_FAILED */
static void on_failed(struct core_workspace *w, const struct init_reply *reply)
{
	struct core_exec *e = find_exec(w, reply->id);
	struct error err;
	if (is_late(reply) && e && e->is_restored) {
		exec_lost(e, REASON_DAEMON_LOST,
			"core was restarted before the command had started, or its end was not "
			"recorded");
		return;
	}
	if (is_late(reply))
		return;
	if (!e || has_started(e)) {
		lie(w, "reports a failed start of a running or unknown exec", reply);
		return;
	}
	if (reply->type == INIT_REFUSED && reply->value == EAGAIN)
		fail_hint(&err, ERR_LIMIT, "wait until one of them has ended, or kill one",
			"%d commands run in this workspace already", INIT_EXECS_MAX);
	else {
		struct init_spawn what = { e->record.argv.items, NULL, e->record.cwd, 0 };
		init_client_failure(reply, &what, &err);
		if (err.code == ERR_COMMAND_NOT_FOUND && policies_hold(w) &&
			!strchr(what.argv[0], '/'))
			error_hint(&err, PLAN_PROGRAMS_HINT);
	}
	exec_not_run(e, &err);
}

static void on_started(struct core_workspace *w, const struct init_reply *reply)
{
	struct core_exec *e = find_exec(w, reply->id);
	if (!e || e->stage != STAGE_STARTING)
		lie(w, "reports the start of an unknown exec", reply);
	else
		exec_started(e);
}

/* Which of those that a core before this one started does init still have? Its exits came before
 * this answer. */
static void probe_restored(struct core_workspace *w, int running)
{
	unsigned expected = 0;
	for (struct core_exec *e = w->sandbox.execs; e; e = e->next)
		expected += e->is_restored;
	for (struct core_exec *e = w->sandbox.execs; e && (unsigned)running < expected; e = e->next)
		if (e->is_restored)
			connection_send(w, INIT_SIGNAL, e->number, 0);
}

static void on_stats(struct core_workspace *w, const struct init_reply *reply)
{
	struct init_connection *connection = w->sandbox.connection;
	if (!connection->stats_due) {
		lie(w, "sent an unexpected reply", reply);
		return;
	}
	connection->stats_due--;
	if (connection->is_asking) {
		connection->confirmed = connection->asked;
		connection->is_asking = false;
	}
	probe_restored(w, reply->value);
	watch_receive_stats(w, reply->shm_bytes);
}

/* Takes the descriptor that came along, or -1. */
static void on_reply(struct core_workspace *w, const struct init_reply *reply, int came)
{
	auto_foreign int fd = came;
	if (reply->type == INIT_EXITED)
		w->sandbox.is_alone = reply->stage;
	if ((reply->id & (FILE_SERVER_ID | PORT_ID)) == PORT_ID) {
		if (!ports_receive(w, reply, take_fd(&fd)))
			lie(w, "answers what was not asked", reply);
		return;
	}
	if (fd >= 0) {
		lie(w, "sent an unexpected descriptor", reply);
		return;
	}
	if (reply->id & FILE_SERVER_ID) {
		file_servers_receive(w, reply);
		return;
	}
	switch (reply->type) {
	case INIT_EXITED:
		on_exited(w, reply);
		break;
	case INIT_STARTED:
		on_started(w, reply);
		break;
	case INIT_FAILED:
	case INIT_REFUSED:
		on_failed(w, reply);
		break;
	default:
		on_stats(w, reply);
		break;
	}
}

static void on_listeners(
	struct core_workspace *w, const struct init_reply *reply, struct init_fds *fds)
{
	struct init_connection *connection = w->sandbox.connection;
	if (connection->listeners_due) {
		connection->listeners_due--;
		ports_leave_out(w, fds->items, (size_t)fds->count);
		networks_receive(w, fds);
		return;
	}
	while (fds->count)
		foreign_close(&fds->items[--fds->count]);
	lie(w, "sent unexpected sockets", reply);
}

/* Hang-up: init has died, or has accepted another master. */
static void on_hang_up(struct core_workspace *w)
{
	connection_break(w, watch_is_out_of_memory(w) ? REASON_MEMORY_LIMIT : REASON_CANCELED,
		"the sandbox ended unexpectedly");
}

static void on_line(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct core_workspace *w = ctx;
	struct init_connection *connection = w->sandbox.connection;
	struct init_reply reply;
	struct init_fds listeners = { .count = 0 };
	struct error err;
	int got = INIT_CLIENT_NOTHING, came, left = REPLIES_A_TURN;
	core_hold(w); /* an exec's end may be that of the workspace */
	while (left-- && w->sandbox.connection == connection && !connection->is_broken &&
		(got = init_client_receive_fds(fd, &reply, &came, &listeners, &err)) ==
			INIT_CLIENT_REPLY) {
		if (reply.type == INIT_LISTENERS_ARE)
			on_listeners(w, &reply, &listeners);
		else
			on_reply(w, &reply, came);
	}
	if (w->sandbox.connection == connection && !connection->is_broken) {
		if (got < 0)
			connection_break(w, REASON_CANCELED, err.text);
		else if (got == INIT_CLIENT_EOF)
			on_hang_up(w);
		else if (events & EPOLLOUT)
			send_queue(connection);
	}
	core_release(w);
}

/* ---- opened and closed ---- */

int connection_open(struct core_workspace *w, struct error *err)
{
	struct init_connection *connection = xzalloc(sizeof *connection);
	*connection = (struct init_connection){ .w = w, .is_adopted = !w->core->is_ready };
	arena_init(&connection->arena);
	arena_init(&connection->env_arena);
	w->sandbox.connection = connection;
	connection_make_env(w);
	/* What an adopted one has to tell is for execs that aren't restored yet. */
	return connection->is_adopted ? 0 : connection_listen(w, err);
}

int connection_listen(struct core_workspace *w, struct error *err)
{
	struct init_connection *connection = w->sandbox.connection;
	if (connection->is_watched)
		return 0;
	if (loop_watch(w->core->loop, w->sandbox.view.init,
		    EPOLLIN | (connection->queue ? EPOLLOUT : 0), on_line, w, err))
		return -1;
	connection->is_watched = true;
	return 0;
}

void connection_done(struct core_workspace *w)
{
	struct init_connection *connection = w->sandbox.connection;
	if (connection->is_watched)
		loop_unwatch(w->core->loop, w->sandbox.view.init);
	loop_cancel(w->core->loop, connection->ping);
	while (connection->queue) {
		struct exec_message *m = connection->queue;
		connection->queue = m->next;
		free(m);
	}
	arena_done(&connection->arena);
	arena_done(&connection->env_arena);
	free(connection);
	w->sandbox.connection = NULL;
}

bool connection_is_broken(const struct core_workspace *w)
{
	return w->sandbox.connection->is_broken;
}
