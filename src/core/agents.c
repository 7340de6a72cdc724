#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/image.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "core/agents.h"
#include "core/exec_internal.h"
#include "core/files.h"
#include "core/internal.h"
#include "linux/memfd.h"
#include "plan/plan.h"
#include "proc/channel.h"
#include "sandbox/init_client.h"

#define AGENTS_MAX 8
#define LONG_MAX_AT_ONCE 6 /* of them, that an archive's speed holds up */
#define IDLE_MS 1000
#define LOOK_MS 1000	     /* between two looks at one that works */
#define SHORT_MS 60000	     /* for a request about one file */
#define LONG_MS 3600000	     /* for a tree, and to write a file to disk */
#define INFOS_MAX (8u << 20) /* bytes of one answer */
#define PACKETS_A_TURN 64
#define TRIES_MAX 2

struct agent_call {
	struct core_workspace *w; /* held */
	struct agent_ask ask;	  /* its texts are in the packet */
	char *packet;		  /* NULL: it was refused before it was made */
	size_t len;
	bool has_begun, is_canceled;
	unsigned tries;
	struct agent *agent; /* that has it, or NULL */
	struct buf infos;
	uint32_t count;
	agent_answer_fn *done;
	void *ctx;
	struct error failure;
	struct agent_call *next; /* in the queue */
};

struct agent {
	struct core_workspace *w;
	uint64_t id;
	int socket; /* -1: it is being ended */
	int inside; /* its end, until it is sent; or -1 */
	int pid;    /* inside; 0: not known */
	struct agent_call *call;
	uint64_t since_ms; /* that it has the call */
	struct loop_timer *timer;
	struct agent *next;
};

static void pump(struct core_workspace *w);

/* ---- requests ---- */

struct work {
	bool is_long;	    /* takes as long as a tree, or a client, needs */
	bool is_slow;	    /* or as a disk needs */
	bool is_repeatable; /* done twice is as done once */
	bool has_fd;	    /* in its answer */
	bool takes_fd;
	bool takes_room; /* on disk: its limit is set when it is sent */
};
static const struct work works[AGENT_VERB_COUNT] = {
	[AGENT_STAT] = { .is_repeatable = true },
	[AGENT_LIST] = { .is_repeatable = true },
	[AGENT_OPEN] = { .is_repeatable = true, .has_fd = true },
	[AGENT_CREATE] = { .is_repeatable = true, .has_fd = true },
	[AGENT_COMMIT] = { .is_repeatable = true, .is_slow = true },
	[AGENT_MKDIR] = { .is_repeatable = true },
	[AGENT_REMOVE] = { .is_long = true },
	[AGENT_PACK] = { .is_long = true, .is_repeatable = true, .takes_fd = true },
	[AGENT_UNPACK] = { .is_long = true,
		.is_repeatable = true,
		.takes_fd = true,
		.takes_room = true },
	[AGENT_APPLY] = { .is_long = true, .takes_fd = true, .takes_room = true },
	[AGENT_TIDY] = { .is_long = true, .is_repeatable = true },
	[AGENT_VERIFY] = { .is_slow = true, .is_repeatable = true },
};

static const struct work *work_of(const struct agent_call *call)
{
	return &works[call->ask.verb];
}

static void close_call_fd(struct agent_call *call)
{
	if (work_of(call)->takes_fd)
		fd_close(&call->ask.fd);
	call->ask.fd = -1;
}

static void free_call(struct agent_call *call)
{
	close_call_fd(call);
	buf_done(&call->infos);
	free(call->packet);
	free(call);
}

static void finish(
	struct agent_call *call, const struct agent_answer *answer, const struct error *err)
{
	struct core_workspace *w = call->w;

	if (call->packet)
		core_touch(w);
	close_call_fd(call);
	call->done(call->ctx, answer, err);
	free_call(call);
	core_release(w);
}

static void on_failed_turn(struct loop *loop, void *ctx)
{
	struct agent_call *call = ctx;

	finish(call, NULL, &call->failure);
}

/* Never from inside the call that asked. */
static void fail_later(struct agent_call *call, const struct error *err)
{
	call->failure = *err;
	loop_after(call->w->core->loop, 0, on_failed_turn, call);
}

static void enqueue(struct agent_call *call)
{
	struct agent_call **last = &call->w->agents.queue;

	while (*last)
		last = &(*last)->next;
	call->next = NULL;
	*last = call;
}

static struct agent_call *new_call(struct core_workspace *w, agent_answer_fn *done, void *ctx)
{
	struct agent_call *call = xzalloc(sizeof *call);

	*call = (struct agent_call){ .w = w, .ask = { .fd = -1 }, .done = done, .ctx = ctx };
	buf_init(&call->infos, INFOS_MAX);
	core_hold(w);
	return call;
}

struct agent_call *agent_refuse(
	struct core_workspace *w, const struct error *err, agent_answer_fn *done, void *ctx)
{
	struct agent_call *call = new_call(w, done, ctx);

	fail_later(call, err);
	return call;
}

struct agent_call *agent_ask(
	struct core_workspace *w, const struct agent_ask *ask, agent_answer_fn *done, void *ctx)
{
	struct agent_call *call = new_call(w, done, ctx);
	struct agent_request request = { .magic = AGENT_MAGIC,
		.verb = ask->verb,
		.flags = ask->flags,
		.mode = ask->mode,
		.limit = ask->limit,
		.path_len = (uint32_t)strlen(ask->path) + 1,
		.text_len = ask->text ? (uint32_t)strlen(ask->text) + 1 : 0 };
	char *path, *text;

	call->len = sizeof request + request.path_len + request.text_len;
	call->packet = xzalloc(call->len);
	path = call->packet + sizeof request;
	text = path + request.path_len;
	memcpy(call->packet, &request, sizeof request);
	memcpy(path, ask->path, request.path_len);
	if (ask->text)
		memcpy(text, ask->text, request.text_len);
	call->ask = *ask;
	call->ask.path = path;
	call->ask.text = ask->text ? text : NULL;
	core_touch(w);
	enqueue(call);
	pump(w);
	return call;
}

/* false: it isn't in the queue. */
static bool dequeue(struct agent_call *call)
{
	struct agent_call **at = &call->w->agents.queue;

	while (*at && *at != call)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = call->next;
	return true;
}

void agent_cancel(struct agent_call *call)
{
	struct agent_request request = { .magic = AGENT_MAGIC, .verb = AGENT_CANCEL };
	struct error err;

	call->is_canceled = true;
	if (call->agent && call->ask.verb == AGENT_UNPACK) {
		channel_send(call->agent->socket, &request, sizeof request, NULL, 0, &err);
	} else if (dequeue(call)) {
		fail(&err, ERR_CANCELED, "the request was canceled");
		fail_later(call, &err);
	}
}

/* ---- agents ---- */

static void close_agent(struct agent *agent)
{
	struct loop *loop = agent->w->core->loop;

	loop_cancel(loop, agent->timer);
	agent->timer = NULL;
	if (agent->socket >= 0)
		loop_unwatch(loop, agent->socket);
	fd_close(&agent->socket);
	fd_close(&agent->inside);
}

static void forget_agent(struct agent *agent)
{
	struct agent **at = &agent->w->agents.first;

	while (*at != agent)
		at = &(*at)->next;
	*at = agent->next;
	close_agent(agent);
	free(agent);
}

/* It stays known until init has told of its end. */
static void end_agent(struct agent *agent)
{
	if (agent->inside >= 0) {
		connection_withdraw(agent->w, agent);
		forget_agent(agent);
		return;
	}
	close_agent(agent);
	connection_send(agent->w, INIT_SIGNAL, agent->id, SIGKILL);
}

/* Its socket was closed before init told of its start: init closes it when it can't start the
 * agent, and says why. Its call waits for that. */
static bool awaits_init(struct agent *agent)
{
	if (agent->pid || agent->inside >= 0)
		return false;
	if (agent->socket >= 0)
		loop_unwatch(agent->w->core->loop, agent->socket);
	fd_close(&agent->socket);
	return true;
}

static int fail_lost(const struct core_workspace *w, struct error *err)
{
	return fail_hint(err, ERR_UNAVAILABLE,
		"try again; processes in the workspace may be ending it",
		"the file agent of workspace '%s' ended before it answered", w->model.name);
}

/* Its call goes to another one, or fails. */
static void lose_call(struct agent *agent, const struct error *err)
{
	struct agent_call *call = agent->call;

	agent->call = NULL;
	if (!call)
		return;
	call->agent = NULL;
	buf_clear(&call->infos);
	call->count = 0;
	if (work_of(call)->is_repeatable && !call->has_begun && !call->is_canceled &&
		call->tries < TRIES_MAX)
		enqueue(call);
	else
		fail_later(call, err);
}

/* Ends an agent that violated the protocol or timed out. */
static void give_up(struct agent *agent, const struct error *err)
{
	struct core_workspace *w = agent->w;

	log_record(&w->core->log, LOG_LEVEL_WARN, "a file agent is ended", "workspace", w->model.id,
		"error", err->text, NULL);
	lose_call(agent, err);
	end_agent(agent);
	pump(w);
}

/* By another process of the sandbox: nothing will come of it. */
static bool is_stopped(const struct agent *agent)
{
	char state = agent->pid ? view_process_state(&agent->w->sandbox.view, agent->pid) : 0;

	return state == 'T' || state == 't';
}

static void on_look(struct loop *loop, void *ctx)
{
	struct agent *agent = ctx;
	struct error err;
	const struct work *work = work_of(agent->call);
	uint64_t most = work->is_long || work->is_slow ? LONG_MS : SHORT_MS;

	agent->timer = NULL;
	if (is_stopped(agent)) {
		fail_hint(&err, ERR_UNAVAILABLE, "end the process that stops it",
			"the file agent of workspace '%s' was stopped by a process in it",
			agent->w->model.name);
		give_up(agent, &err);
	} else if (clock_monotonic_ms() - agent->since_ms > most) {
		fail(&err, ERR_UNAVAILABLE,
			"the file agent of workspace '%s' took longer than %llu s",
			agent->w->model.name, (unsigned long long)most / 1000);
		give_up(agent, &err);
	} else {
		agent->timer = loop_after(loop, LOOK_MS, on_look, agent);
	}
}

static void on_idle(struct loop *loop, void *ctx)
{
	struct agent *agent = ctx;

	agent->timer = NULL;
	end_agent(agent);
}

static void assign_call(struct agent *agent, struct agent_call *call)
{
	struct loop *loop = agent->w->core->loop;

	call->tries++;
	call->agent = agent;
	agent->call = call;
	agent->since_ms = clock_monotonic_ms();
	loop_cancel(loop, agent->timer);
	agent->timer = loop_after(loop, LOOK_MS, on_look, agent);
}

static int send_call(struct agent *agent, struct agent_call *call, struct error *err)
{
	struct agent_request *request = (struct agent_request *)call->packet;

	if (work_of(call)->takes_room)
		request->limit = files_room(agent->w);
	if (channel_send(agent->socket, call->packet, call->len, &call->ask.fd, call->ask.fd >= 0,
		    err) < 0)
		return -1;
	assign_call(agent, call);
	return 0;
}

/* ---- started ---- */

int agents_open(struct core *core, struct error *err)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	auto_close int fd = memfd_create_program("carrel-files");

	/* Without read permission on the program, a process of the same uid can't trace or inspect
	 * the agent, from its first instruction on. */
	if (fd < 0 || fd_write_full(fd, agent_image, agent_image_len) != (ssize_t)agent_image_len ||
		fchmod(fd, 0111) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
		return fail_errno(err, "make a memfd for the file agent");
	core->agent_image = take_fd(&fd);
	return 0;
}

int agent_send_spawn(struct agent *agent, struct error *err)
{
	static const char *const argv[] = { "carrel-files", NULL };
	const char *env[2] = { NULL };
	struct init_spawn what = { argv, env, plan_view_path(agent->w->model.view),
		INIT_NO_PIDFD | INIT_ATTACHED | INIT_PROGRAM_IN_FD, agent->w->core->agent_image };
	int null = exec_registry(agent->w->core)->null, fds[3] = { agent->inside, null, null };

#ifdef CARREL_FAULTS
	auto_arena struct arena arena = { 0 };
	if (getenv("CARREL_FAULT"))
		env[0] = arena_printf(&arena, "CARREL_FAULT=%s", getenv("CARREL_FAULT"));
#endif
	if (init_client_spawn(agent->w->sandbox.view.init, agent->id, &what, fds, err) < 0)
		return -1;
	fd_close(&agent->inside);
	return 0;
}

static void on_packet(struct loop *loop, int fd, uint32_t events, void *ctx);

static int start_agent(struct core_workspace *w, struct agent **started, struct error *err)
{
	int ends[2];

	if (channel_pair(ends, err) < 0)
		return -1;
	/* Its end waits: an agent has nothing else to do. */
	int flags = fcntl(ends[1], F_GETFL);
	struct agent *agent = xzalloc(sizeof *agent);
	*agent = (struct agent){ .w = w,
		.id = AGENT_ID | ++w->core->agents_started,
		.socket = ends[0],
		.inside = ends[1],
		.next = w->agents.first };
	w->agents.first = agent;
	if (flags < 0 || fcntl(ends[1], F_SETFL, flags & ~O_NONBLOCK) < 0)
		fail_errno(err, "make a socket for the file agent");
	else if (loop_watch(w->core->loop, ends[0], EPOLLIN, on_packet, agent, err) == 0 &&
		 connection_spawn_agent(w, agent, err) == 0) {
		*started = agent;
		return 0;
	}
	forget_agent(agent);
	return -1;
}

/* ---- assigning calls to agents ---- */

static void on_awake(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct agents *agents = &w->agents;

	agents->is_waking = false;
	if (err) {
		while (agents->queue) {
			struct agent_call *call = agents->queue;
			agents->queue = call->next;
			fail_later(call, err);
		}
		return;
	}
	pump(w);
	core_release(w); /* calls have their own */
}

static bool is_up(const struct core_workspace *w)
{
	return w->sandbox.state == SANDBOX_UP && !w->sandbox.connection->is_broken;
}

/* Archives come in one by one where the disk limit is counted: each may take all that is left. */
static bool may_unpack(const struct core_workspace *w)
{
	if (files_room(w) == UINT64_MAX)
		return true;
	for (const struct agent *a = w->agents.first; a; a = a->next)
		if (a->call && work_of(a->call)->takes_room)
			return false;
	return true;
}

/* The first call that may go now, out of the queue; or NULL. */
static struct agent_call *take_next(struct core_workspace *w, bool may_be_long)
{
	for (struct agent_call *call = w->agents.queue; call; call = call->next)
		if ((may_be_long || !work_of(call)->is_long) &&
			(!work_of(call)->takes_room || may_unpack(w))) {
			dequeue(call);
			return call;
		}
	return NULL;
}

static void pump(struct core_workspace *w)
{
	struct agents *agents = &w->agents;
	struct agent_call *call;
	struct error err;

	while (agents->queue) {
		struct agent *idle = NULL;
		unsigned count = 0, busy_long = 0;

		if (!is_up(w)) {
			if (!agents->is_waking) {
				agents->is_waking = true;
				core_wake(w, NULL, on_awake, NULL);
			}
			return;
		}
		for (struct agent *a = agents->first; a; a = a->next) {
			count += a->socket >= 0;
			busy_long += a->call && work_of(a->call)->is_long;
			if (a->socket >= 0 && !a->call)
				idle = a;
		}
		if (!idle && count >= AGENTS_MAX)
			return;
		call = take_next(w, busy_long < LONG_MAX_AT_ONCE);
		if (!call)
			return;
		bool is_known = idle != NULL;
		if (!is_known && start_agent(w, &idle, &err) < 0) {
			fail_later(call, &err);
			continue;
		}
		if (send_call(idle, call, &err) == 0)
			continue;
		if (err.sys_errno == EPIPE && awaits_init(idle)) {
			assign_call(idle, call);
			continue;
		}
		/* It has ended while it was idle, or can't be sent to: another one does it. */
		end_agent(idle);
		call->tries += !is_known;
		call->next = agents->queue;
		agents->queue = call;
		if (call->tries >= TRIES_MAX) {
			dequeue(call);
			fail_lost(w, &err);
			fail_later(call, &err);
		}
	}
}

/* ---- answers ---- */

/* Handles a complete reply; takes ownership of fd. false: the agent violated the protocol. */
static bool take_answer(struct agent *agent, const struct agent_reply *reply, int fd)
{
	struct agent_call *call = agent->call;
	struct agent_answer answer = { .ask = &call->ask, .reply = *reply, .fd = -1 };
	auto_close int taken = fd;
	struct error err = { 0 };
	struct loop *loop = agent->w->core->loop;

	bool has_failed = reply->kind == AGENT_FAILED;
	if (has_failed) {
		if (call->infos.len < sizeof err)
			return false;
		memcpy(&err, call->infos.data + call->infos.len - sizeof err, sizeof err);
		error_adopt(&err);
	} else if (work_of(call)->has_fd && agent_check_fd(&call->ask, taken, &err) < 0) {
		has_failed = true;
	}
	if (!work_of(call)->has_fd && taken >= 0)
		return false;
	answer.reply.count = call->count;
	answer.infos = (struct str){ call->infos.data, call->infos.len };
	if (!has_failed)
		answer.fd = take_fd(&taken);
	agent->call = NULL;
	call->agent = NULL;
	loop_cancel(loop, agent->timer);
	agent->timer = loop_after(loop, IDLE_MS, on_idle, agent);
	finish(call, has_failed ? NULL : &answer, has_failed ? &err : NULL);
	return true;
}

/* Handles one packet. false: the agent violated the protocol. */
static bool take_packet(struct agent *agent, const char *data, size_t len, int fd)
{
	struct agent_call *call = agent->call;
	auto_close int taken = fd;
	struct agent_reply reply;

	if (!call || len < sizeof reply)
		return false;
	memcpy(&reply, data, sizeof reply);
	if (reply.magic != AGENT_MAGIC || reply.kind < AGENT_PART || reply.kind > AGENT_FAILED ||
		reply.count > AGENT_ENTRIES_MAX - call->count ||
		!buf_append(&call->infos, data + sizeof reply, len - sizeof reply))
		return false;
	call->count += reply.count;
	if (reply.kind != AGENT_PART)
		return take_answer(agent, &reply, take_fd(&taken));
	if (taken >= 0)
		return false;
	if (reply.count)
		return true;
	/* Without infos it says once that the work has begun. */
	if (!call->ask.begun || call->has_begun)
		return false;
	call->has_begun = true;
	close_call_fd(call);
	call->ask.begun(call->ctx);
	return true;
}

static void on_packet(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	static char data[AGENT_PACKET_MAX];
	struct agent *agent = ctx;
	struct core_workspace *w = agent->w;
	struct error err;

	core_hold(w);
	for (int left = PACKETS_A_TURN; left; left--) {
		size_t len;
		int came = -1, count = 0;
		int got = channel_receive(fd, data, sizeof data, &len, &came, 1, &count, &err);

		if (got == CHANNEL_NOTHING)
			break;
		if (got == CHANNEL_EOF && awaits_init(agent))
			break;
		if (got == CHANNEL_EOF) {
			fail_lost(w, &err);
			lose_call(agent, &err);
			end_agent(agent);
			break;
		}
		if (got < 0 || !take_packet(agent, data, len, count ? came : -1)) {
			fail(&err, ERR_UNAVAILABLE,
				"the file agent of workspace '%s' sent an invalid answer",
				w->model.name);
			give_up(agent, &err);
			break;
		}
		/* Without a call it has nothing to say. */
		if (!agent->call)
			break;
	}
	pump(w);
	core_release(w);
}

/* ---- what init says of them ---- */

static struct agent *find_agent(struct core_workspace *w, uint64_t id)
{
	for (struct agent *a = w->agents.first; a; a = a->next)
		if (a->id == id)
			return a;
	return NULL;
}

static void drop(struct agent *agent, const struct error *err)
{
	struct core_workspace *w = agent->w;

	lose_call(agent, err);
	forget_agent(agent);
	pump(w);
}

void agent_spawn_failed(struct agent *agent, const struct error *err)
{
	if (agent->call)
		agent->call->tries = TRIES_MAX; /* another one would fail as well */
	drop(agent, err);
}

void agents_receive(struct core_workspace *w, const struct init_reply *reply)
{
	static const char *const argv[] = { "carrel-files", NULL };
	struct init_spawn what = { argv, NULL, plan_view_path(w->model.view), 0 };
	struct agent *agent = find_agent(w, reply->id);
	struct error err;

	if (!agent)
		return;
	switch (reply->type) {
	case INIT_STARTED:
		agent->pid = reply->value;
		break;
	case INIT_EXITED:
		fail_lost(w, &err);
		drop(agent, &err);
		break;
	default:
		/* A signal that came too late. */
		if (reply->type == INIT_REFUSED && reply->value == ESRCH)
			break;
		init_client_failure(reply, &what, &err);
		err.code = ERR_UNAVAILABLE;
		error_context(&err, "workspace '%s'", w->model.name);
		agent_spawn_failed(agent, &err);
		break;
	}
}

void agents_gone(struct core_workspace *w)
{
	struct error err;

	fail_lost(w, &err);
	while (w->agents.first) {
		struct agent *agent = w->agents.first;

		lose_call(agent, &err);
		forget_agent(agent);
	}
	pump(w);
}

unsigned agents_count(const struct core_workspace *w, uint64_t pid)
{
	unsigned count = 0;

	for (const struct agent *a = w->agents.first; a; a = a->next)
		count += (uint64_t)a->pid == pid;
	return count;
}

bool agents_are_busy(const struct core_workspace *w)
{
	bool is_busy = w->agents.queue;

	for (const struct agent *a = w->agents.first; a; a = a->next)
		is_busy |= a->call != NULL;
	return is_busy;
}

unsigned agents_waking(const struct core_workspace *w)
{
	return w->agents.is_waking;
}

void agents_free(struct core_workspace *w)
{
	while (w->agents.first) {
		struct agent *agent = w->agents.first;

		if (agent->call)
			free_call(agent->call);
		forget_agent(agent);
	}
	while (w->agents.queue) {
		struct agent_call *call = w->agents.queue;

		w->agents.queue = call->next;
		free_call(call);
	}
}

void agents_done(struct core *core)
{
	if (core->agent_image)
		close(core->agent_image);
	core->agent_image = 0;
}

bool agent_take_info(struct str *rest, struct agent_info *info, struct str *name, struct str *link)
{
	if (rest->len < sizeof *info)
		return false;
	memcpy(info, rest->data, sizeof *info);
	size_t left = rest->len - sizeof *info;
	if (info->name_len > left || info->link_len > left - info->name_len)
		return false;
	*name = (struct str){ rest->data + sizeof *info, info->name_len };
	*link = (struct str){ name->data + name->len, info->link_len };
	*rest = (struct str){ link->data + link->len, left - name->len - link->len };
	return true;
}
