#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "core/execs/execs.h"
#include "core/execs/init_connection.h"
#include "core/files/file_servers.h"
#include "core/files/files.h"
#include "core/files/internal.h"
#include "linux/memfd.h"
#include "proc/channel.h"
#include "sandbox/files/image.h"
#include "sandbox/native/init_client.h"
#include "sandbox/plan/plan.h"

#define SERVERS_MAX 8
#define LONG_MAX_AT_ONCE 6 /* of them, that an archive's speed holds up */
#define IDLE_MS 1000
#define LOOK_MS 1000	     /* between two checks of a file server that works on a request */
#define SHORT_MS 60000	     /* for a request about one file */
#define LONG_MS 3600000	     /* for a tree, and to write a file to disk */
#define INFOS_MAX (8u << 20) /* bytes of one answer */
#define PACKETS_A_TURN 64
#define TRIES_MAX 2

struct file_call {
	struct core_workspace *w; /* held */
	struct file_ask ask;	  /* its texts are in the packet */
	char *packet;		  /* NULL: it was refused before it was made */
	size_t len;
	bool has_begun, is_canceled;
	unsigned tries;
	struct file_server *server; /* that has it, or NULL */
	struct buf infos;
	uint32_t count;
	file_answer_fn *done;
	void *ctx;
	struct error failure;
	struct file_call *next; /* in the queue */
};

struct file_server {
	struct core_workspace *w;
	uint64_t id;
	int socket; /* -1: it is being ended */
	int inside; /* its end, until it is sent; or -1 */
	int pid;    /* inside; 0: not known */
	struct file_call *call;
	uint64_t since_ms; /* that it has the call */
	struct loop_timer *timer;
	struct file_server *next;
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
static const struct work works[FILE_VERB_COUNT] = {
	[FILE_STAT] = { .is_repeatable = true },
	[FILE_LIST] = { .is_repeatable = true },
	[FILE_OPEN] = { .is_repeatable = true, .has_fd = true },
	[FILE_CREATE] = { .is_repeatable = true, .has_fd = true },
	[FILE_COMMIT] = { .is_repeatable = true, .is_slow = true },
	[FILE_MKDIR] = { .is_repeatable = true },
	[FILE_REMOVE] = { .is_long = true },
	[FILE_PACK] = { .is_long = true, .is_repeatable = true, .takes_fd = true },
	[FILE_UNPACK] = { .is_long = true,
		.is_repeatable = true,
		.takes_fd = true,
		.takes_room = true },
	[FILE_APPLY] = { .is_long = true, .takes_fd = true, .takes_room = true },
	[FILE_TIDY] = { .is_long = true, .is_repeatable = true },
	[FILE_VERIFY] = { .is_slow = true, .is_repeatable = true },
};

static const struct work *work_of(const struct file_call *call)
{
	return &works[call->ask.verb];
}

static void close_call_fd(struct file_call *call)
{
	if (work_of(call)->takes_fd)
		fd_close(&call->ask.fd);
	call->ask.fd = -1;
}

static void free_call(struct file_call *call)
{
	close_call_fd(call);
	buf_done(&call->infos);
	free(call->packet);
	free(call);
}

static void finish(
	struct file_call *call, const struct file_answer *answer, const struct error *err)
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
	struct file_call *call = ctx;

	finish(call, NULL, &call->failure);
}

/* Never from inside the call that asked. */
static void fail_later(struct file_call *call, const struct error *err)
{
	call->failure = *err;
	loop_after(call->w->core->loop, 0, on_failed_turn, call);
}

static void enqueue(struct file_call *call)
{
	struct file_call **last = &call->w->file_work->queue;

	while (*last)
		last = &(*last)->next;
	call->next = NULL;
	*last = call;
}

static struct file_call *new_call(struct core_workspace *w, file_answer_fn *done, void *ctx)
{
	struct file_call *call = xzalloc(sizeof *call);

	*call = (struct file_call){ .w = w, .ask = { .fd = -1 }, .done = done, .ctx = ctx };
	buf_init(&call->infos, INFOS_MAX);
	core_hold(w);
	return call;
}

struct file_call *file_refuse(
	struct core_workspace *w, const struct error *err, file_answer_fn *done, void *ctx)
{
	struct file_call *call = new_call(w, done, ctx);

	fail_later(call, err);
	return call;
}

struct file_call *file_ask(
	struct core_workspace *w, const struct file_ask *ask, file_answer_fn *done, void *ctx)
{
	struct file_call *call = new_call(w, done, ctx);
	struct file_request request = { .magic = FILE_MAGIC,
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
static bool dequeue(struct file_call *call)
{
	struct file_call **at = &call->w->file_work->queue;

	while (*at && *at != call)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = call->next;
	return true;
}

void file_cancel(struct file_call *call)
{
	struct file_request request = { .magic = FILE_MAGIC, .verb = FILE_CANCEL };
	struct error err;

	call->is_canceled = true;
	if (call->server && call->ask.verb == FILE_UNPACK) {
		channel_send(call->server->socket, &request, sizeof request, NULL, 0, &err);
	} else if (dequeue(call)) {
		fail(&err, ERR_CANCELED, "the request was canceled");
		fail_later(call, &err);
	}
}

/* ---- servers ---- */

static void close_server(struct file_server *server)
{
	struct loop *loop = server->w->core->loop;

	loop_cancel(loop, server->timer);
	server->timer = NULL;
	if (server->socket >= 0)
		loop_unwatch(loop, server->socket);
	fd_close(&server->socket);
	fd_close(&server->inside);
}

static void forget_server(struct file_server *server)
{
	struct file_server **at = &server->w->file_work->first;

	while (*at != server)
		at = &(*at)->next;
	*at = server->next;
	close_server(server);
	free(server);
}

/* It stays known until init has told of its end. */
static void end_server(struct file_server *server)
{
	if (server->inside >= 0) {
		connection_withdraw(server->w, server);
		forget_server(server);
		return;
	}
	close_server(server);
	connection_send(server->w, INIT_SIGNAL, server->id, SIGKILL);
}

/* Its socket was closed before init told of its start: init closes it when it can't start the
 * server, and says why. Its call waits for that. */
static bool awaits_init(struct file_server *server)
{
	if (server->pid || server->inside >= 0)
		return false;
	if (server->socket >= 0)
		loop_unwatch(server->w->core->loop, server->socket);
	fd_close(&server->socket);
	return true;
}

static int fail_lost(const struct core_workspace *w, struct error *err)
{
	return fail_hint(err, ERR_UNAVAILABLE,
		"try again; processes in the workspace may be ending it",
		"the file agent of workspace '%s' ended before it answered", w->model.name);
}

/* Its call goes to another one, or fails. */
static void lose_call(struct file_server *server, const struct error *err)
{
	struct file_call *call = server->call;

	server->call = NULL;
	if (!call)
		return;
	call->server = NULL;
	buf_clear(&call->infos);
	call->count = 0;
	if (work_of(call)->is_repeatable && !call->has_begun && !call->is_canceled &&
		call->tries < TRIES_MAX)
		enqueue(call);
	else
		fail_later(call, err);
}

/* Ends a server that violated the protocol or timed out. */
static void give_up(struct file_server *server, const struct error *err)
{
	struct core_workspace *w = server->w;

	log_record(&w->core->log, LOG_LEVEL_WARN, "a file agent is ended", "workspace", w->model.id,
		"error", err->text, NULL);
	lose_call(server, err);
	end_server(server);
	pump(w);
}

/* By another process of the sandbox: nothing will come of it. */
static bool is_stopped(const struct file_server *server)
{
	char state = server->pid ? view_process_state(&server->w->sandbox.view, server->pid) : 0;

	return state == 'T' || state == 't';
}

static void on_look(struct loop *loop, void *ctx)
{
	struct file_server *server = ctx;
	struct error err;
	const struct work *work = work_of(server->call);
	uint64_t most = work->is_long || work->is_slow ? LONG_MS : SHORT_MS;

	server->timer = NULL;
	if (is_stopped(server)) {
		fail_hint(&err, ERR_UNAVAILABLE, "end the process that stops it",
			"the file agent of workspace '%s' was stopped by a process in it",
			server->w->model.name);
		give_up(server, &err);
	} else if (clock_monotonic_ms() - server->since_ms > most) {
		fail(&err, ERR_UNAVAILABLE,
			"the file agent of workspace '%s' took longer than %llu s",
			server->w->model.name, (unsigned long long)most / 1000);
		give_up(server, &err);
	} else {
		server->timer = loop_after(loop, LOOK_MS, on_look, server);
	}
}

static void on_idle(struct loop *loop, void *ctx)
{
	struct file_server *server = ctx;

	server->timer = NULL;
	end_server(server);
}

static void assign_call(struct file_server *server, struct file_call *call)
{
	struct loop *loop = server->w->core->loop;

	call->tries++;
	call->server = server;
	server->call = call;
	server->since_ms = clock_monotonic_ms();
	loop_cancel(loop, server->timer);
	server->timer = loop_after(loop, LOOK_MS, on_look, server);
}

static int send_call(struct file_server *server, struct file_call *call, struct error *err)
{
	struct file_request *request = (struct file_request *)call->packet;

	if (work_of(call)->takes_room)
		request->limit = files_room(server->w);
	if (channel_send(server->socket, call->packet, call->len, &call->ask.fd, call->ask.fd >= 0,
		    err) < 0)
		return -1;
	assign_call(server, call);
	return 0;
}

/* ---- started ---- */

int file_servers_open(struct core *core, struct error *err)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	auto_close int fd = memfd_create_program("carrel-files");

	/* Without read permission on the program, a process of the same uid can't trace or inspect
	 * the server, from its first instruction on. */
	if (fd < 0 ||
		fd_write_full(fd, file_server_image, file_server_image_len) !=
			(ssize_t)file_server_image_len ||
		fchmod(fd, 0111) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
		return fail_errno(err, "make a memfd for the file agent");
	core->files = xzalloc(sizeof *core->files);
	core->files->server_image = take_fd(&fd);
	return 0;
}

int file_server_send_spawn(struct file_server *server, struct error *err)
{
	static const char *const argv[] = { "carrel-files", NULL };
	const char *env[2] = { NULL };
	struct init_spawn what = { argv, env, plan_view_path(server->w->model.view),
		INIT_NO_PIDFD | INIT_ATTACHED | INIT_PROGRAM_IN_FD,
		server->w->core->files->server_image };
	int null = execs_null(server->w->core), fds[3] = { server->inside, null, null };

#ifdef CARREL_FAULTS
	auto_arena struct arena arena = { 0 };
	if (getenv("CARREL_FAULT"))
		env[0] = arena_printf(&arena, "CARREL_FAULT=%s", getenv("CARREL_FAULT"));
#endif
	if (init_client_spawn(server->w->sandbox.view.init, server->id, &what, fds, err) < 0)
		return -1;
	fd_close(&server->inside);
	return 0;
}

static void on_packet(struct loop *loop, int fd, uint32_t events, void *ctx);

static int start_server(struct core_workspace *w, struct file_server **started, struct error *err)
{
	int ends[2];

	if (channel_pair(ends, err) < 0)
		return -1;
	/* Its end waits: a server has nothing else to do. */
	int flags = fcntl(ends[1], F_GETFL);
	struct file_server *server = xzalloc(sizeof *server);
	*server = (struct file_server){ .w = w,
		.id = FILE_SERVER_ID | ++w->core->files->servers_started,
		.socket = ends[0],
		.inside = ends[1],
		.next = w->file_work->first };
	w->file_work->first = server;
	if (flags < 0 || fcntl(ends[1], F_SETFL, flags & ~O_NONBLOCK) < 0)
		fail_errno(err, "make a socket for the file agent");
	else if (loop_watch(w->core->loop, ends[0], EPOLLIN, on_packet, server, err) == 0 &&
		 connection_spawn_file_server(w, server, err) == 0) {
		*started = server;
		return 0;
	}
	forget_server(server);
	return -1;
}

/* ---- assigning calls to servers ---- */

static void on_awake(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct file_work *servers = w->file_work;

	servers->is_waking = false;
	if (err) {
		while (servers->queue) {
			struct file_call *call = servers->queue;
			servers->queue = call->next;
			fail_later(call, err);
		}
		return;
	}
	pump(w);
	core_release(w); /* calls have their own */
}

static bool is_up(const struct core_workspace *w)
{
	return w->sandbox.state == SANDBOX_UP && !connection_is_broken(w);
}

/* Archives come in one by one where the disk limit is counted: each may take all that is left. */
static bool may_unpack(const struct core_workspace *w)
{
	if (files_room(w) == UINT64_MAX)
		return true;
	for (const struct file_server *a = w->file_work->first; a; a = a->next)
		if (a->call && work_of(a->call)->takes_room)
			return false;
	return true;
}

/* The first call that may go now, out of the queue; or NULL. */
static struct file_call *take_next(struct core_workspace *w, bool may_be_long)
{
	for (struct file_call *call = w->file_work->queue; call; call = call->next)
		if ((may_be_long || !work_of(call)->is_long) &&
			(!work_of(call)->takes_room || may_unpack(w))) {
			dequeue(call);
			return call;
		}
	return NULL;
}

static void pump(struct core_workspace *w)
{
	struct file_work *servers = w->file_work;
	struct file_call *call;
	struct error err;

	while (servers->queue) {
		struct file_server *idle = NULL;
		unsigned count = 0, busy_long = 0;

		if (!is_up(w)) {
			if (!servers->is_waking) {
				servers->is_waking = true;
				core_wake(w, NULL, on_awake, NULL);
			}
			return;
		}
		for (struct file_server *a = servers->first; a; a = a->next) {
			count += a->socket >= 0;
			busy_long += a->call && work_of(a->call)->is_long;
			if (a->socket >= 0 && !a->call)
				idle = a;
		}
		if (!idle && count >= SERVERS_MAX)
			return;
		call = take_next(w, busy_long < LONG_MAX_AT_ONCE);
		if (!call)
			return;
		bool is_known = idle != NULL;
		if (!is_known && start_server(w, &idle, &err) < 0) {
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
		end_server(idle);
		call->tries += !is_known;
		call->next = servers->queue;
		servers->queue = call;
		if (call->tries >= TRIES_MAX) {
			dequeue(call);
			fail_lost(w, &err);
			fail_later(call, &err);
		}
	}
}

/* ---- answers ---- */

/* Handles a complete reply; takes ownership of fd. false: the server violated the protocol. */
static bool take_answer(struct file_server *server, const struct file_reply *reply, int fd)
{
	struct file_call *call = server->call;
	struct file_answer answer = { .ask = &call->ask, .reply = *reply, .fd = -1 };
	auto_close int taken = fd;
	struct error err = { 0 };
	struct loop *loop = server->w->core->loop;

	bool has_failed = reply->kind == FILE_FAILED;
	if (has_failed) {
		if (call->infos.len < sizeof err)
			return false;
		memcpy(&err, call->infos.data + call->infos.len - sizeof err, sizeof err);
		error_adopt(&err);
	} else if (work_of(call)->has_fd && file_check_fd(&call->ask, taken, &err) < 0) {
		has_failed = true;
	}
	if (!work_of(call)->has_fd && taken >= 0)
		return false;
	answer.reply.count = call->count;
	answer.infos = (struct str){ call->infos.data, call->infos.len };
	if (!has_failed)
		answer.fd = take_fd(&taken);
	server->call = NULL;
	call->server = NULL;
	loop_cancel(loop, server->timer);
	server->timer = loop_after(loop, IDLE_MS, on_idle, server);
	finish(call, has_failed ? NULL : &answer, has_failed ? &err : NULL);
	return true;
}

/* Handles one packet. false: the server violated the protocol. */
static bool take_packet(struct file_server *server, const char *data, size_t len, int fd)
{
	struct file_call *call = server->call;
	auto_close int taken = fd;
	struct file_reply reply;

	if (!call || len < sizeof reply)
		return false;
	memcpy(&reply, data, sizeof reply);
	if (reply.magic != FILE_MAGIC || reply.kind < FILE_PART || reply.kind > FILE_FAILED ||
		reply.count > FILE_ENTRIES_MAX - call->count ||
		!buf_append(&call->infos, data + sizeof reply, len - sizeof reply))
		return false;
	call->count += reply.count;
	if (reply.kind != FILE_PART)
		return take_answer(server, &reply, take_fd(&taken));
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
	static char data[FILE_PACKET_MAX];
	struct file_server *server = ctx;
	struct core_workspace *w = server->w;
	struct error err;

	core_hold(w);
	for (int left = PACKETS_A_TURN; left; left--) {
		size_t len;
		int came = -1, count = 0;
		int got = channel_receive(fd, data, sizeof data, &len, &came, 1, &count, &err);

		if (got == CHANNEL_NOTHING)
			break;
		if (got == CHANNEL_EOF && awaits_init(server))
			break;
		if (got == CHANNEL_EOF) {
			fail_lost(w, &err);
			lose_call(server, &err);
			end_server(server);
			break;
		}
		if (got < 0 || !take_packet(server, data, len, count ? came : -1)) {
			fail(&err, ERR_UNAVAILABLE,
				"the file agent of workspace '%s' sent an invalid answer",
				w->model.name);
			give_up(server, &err);
			break;
		}
		/* Without a call it has nothing to say. */
		if (!server->call)
			break;
	}
	pump(w);
	core_release(w);
}

/* ---- what init says of them ---- */

static struct file_server *find_server(struct core_workspace *w, uint64_t id)
{
	for (struct file_server *a = w->file_work->first; a; a = a->next)
		if (a->id == id)
			return a;
	return NULL;
}

static void drop(struct file_server *server, const struct error *err)
{
	struct core_workspace *w = server->w;

	lose_call(server, err);
	forget_server(server);
	pump(w);
}

void file_server_spawn_failed(struct file_server *server, const struct error *err)
{
	if (server->call)
		server->call->tries = TRIES_MAX; /* another one would fail as well */
	drop(server, err);
}

void file_servers_receive(struct core_workspace *w, const struct init_reply *reply)
{
	static const char *const argv[] = { "carrel-files", NULL };
	struct init_spawn what = { argv, NULL, plan_view_path(w->model.view), 0 };
	struct file_server *server = find_server(w, reply->id);
	struct error err;

	if (!server)
		return;
	switch (reply->type) {
	case INIT_STARTED:
		server->pid = reply->value;
		break;
	case INIT_EXITED:
		fail_lost(w, &err);
		drop(server, &err);
		break;
	default:
		/* A signal that came too late. */
		if (reply->type == INIT_REFUSED && reply->value == ESRCH)
			break;
		init_client_failure(reply, &what, &err);
		err.code = ERR_UNAVAILABLE;
		error_context(&err, "workspace '%s'", w->model.name);
		file_server_spawn_failed(server, &err);
		break;
	}
}

void file_servers_gone(struct core_workspace *w)
{
	struct error err;

	fail_lost(w, &err);
	while (w->file_work->first) {
		struct file_server *server = w->file_work->first;

		lose_call(server, &err);
		forget_server(server);
	}
	pump(w);
}

unsigned file_servers_count(const struct core_workspace *w, uint64_t pid)
{
	unsigned count = 0;

	for (const struct file_server *a = w->file_work->first; a; a = a->next)
		count += (uint64_t)a->pid == pid;
	return count;
}

bool file_servers_are_busy(const struct core_workspace *w)
{
	bool is_busy = w->file_work->queue;

	for (const struct file_server *a = w->file_work->first; a; a = a->next)
		is_busy |= a->call != NULL;
	return is_busy;
}

unsigned file_servers_waking(const struct core_workspace *w)
{
	return w->file_work->is_waking;
}

void file_servers_attach(struct core_workspace *w)
{
	w->file_work = xzalloc(sizeof *w->file_work);
}

void file_servers_free(struct core_workspace *w)
{
	if (!w->file_work)
		return;
	while (w->file_work->first) {
		struct file_server *server = w->file_work->first;

		if (server->call)
			free_call(server->call);
		forget_server(server);
	}
	while (w->file_work->queue) {
		struct file_call *call = w->file_work->queue;

		w->file_work->queue = call->next;
		free_call(call);
	}
	free(w->file_work);
	w->file_work = NULL;
}

void file_servers_done(struct core *core)
{
	if (!core->files)
		return;
	fd_close(&core->files->server_image);
	free(core->files);
	core->files = NULL;
}

bool file_take_entry(struct str *rest, struct file_entry *info, struct str *name, struct str *link)
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
