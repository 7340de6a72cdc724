/* GET /v1/execs/{id}/attach: the output of a background exec from an offset on, then as it comes,
 * and its stdin, on a WebSocket. */
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "doors/rest/exec_socket.h"
#include "doors/rest/handlers.h"

#define PIECE 32768
#define PIECES_A_TURN 4 /* then the other clients have their turn */

struct exec_attachment { /* in the socket's arena */
	struct exec_follower follower;
	int fds[2]; /* of stdout and stderr, or -1 */
	uint64_t offsets[2];
	struct loop_timer *later; /* there is more, for the next turn; or NULL */
	bool is_full;
	struct buf exit; /* the last message, when the exec has ended; or empty */
};

static void on_later(struct loop *loop, void *ctx);

/* Sends what the file has beyond the offset. false: the client has enough for now, or its turn is
 * over. */
static bool send_file(struct exec_socket *s, int i)
{
	struct exec_attachment *a = s->attachment;
	char piece[PIECE];
	ssize_t got;
	for (int pieces = 0; a->fds[i] >= 0 && !a->is_full; pieces++) {
		uint64_t first = exec_output_first(a->fds[i]);
		if (a->offsets[i] < first) /* older output was dropped */
			a->offsets[i] = first;
		got = pread(a->fds[i], piece, sizeof piece, (off_t)a->offsets[i]);
		if (got <= 0)
			break;
		if (pieces == PIECES_A_TURN) {
			if (!a->later)
				a->later = loop_after(s->api->loop, 0, on_later, s);
			return false;
		}
		a->offsets[i] += (uint64_t)got;
		a->is_full = !exec_socket_output(s, 1 + i, (struct str){ piece, (size_t)got });
	}
	return !a->is_full;
}

static void send_on(struct exec_socket *s)
{
	struct exec_attachment *a = s->attachment;
	if (!send_file(s, 0) || !send_file(s, 1) || !a->exit.len)
		return;
	auto_buf struct buf message = a->exit;
	buf_init(&a->exit, BUF_MAX_DEFAULT);
	exec_socket_exit(s, (struct str){ message.data, message.len });
}

static void on_later(struct loop *loop, void *ctx)
{
	struct exec_socket *s = ctx;
	s->attachment->later = NULL;
	send_on(s);
}

void attachment_writable(struct exec_socket *s)
{
	s->attachment->is_full = false;
	send_on(s);
}

void attachment_free(struct exec_socket *s)
{
	struct exec_attachment *a = s->attachment;
	if (s->exec)
		exec_unfollow(s->exec, &a->follower);
	loop_cancel(s->api->loop, a->later);
	fd_close(&a->fds[0]);
	fd_close(&a->fds[1]);
	buf_done(&a->exit);
}

/* It may be gone in the next turn: its end is printed now. */
static void keep_end(struct exec_socket *s, const struct core_exec *e)
{
	struct json j = json_to(&s->attachment->exit, false);
	exec_print_exit(&j, exec_record_of(e), exec_limiter(e));
}

static void on_more(void *ctx, bool has_ended)
{
	struct exec_socket *s = ctx;
	struct core_exec *e = s->exec;
	if (has_ended) {
		exec_unfollow(e, &s->attachment->follower);
		exec_socket_leave(s);
		keep_end(s, e);
	} else if (exec_record_of(e)->state == EXEC_RUNNING && !exec_socket_started(s, e)) {
		return;
	}
	send_on(s);
}

static void on_opened(struct exec_socket *s)
{
	struct core_exec *e;
	struct error err;
	/* It may have ended, and be forgotten, while 101 was sent. */
	if (exec_find(s->request, s->api->core, s->id, &e, &err)) {
		exec_socket_refuse(s, &err);
		return;
	}
	enum exec_state state = exec_record_of(e)->state;
	s->has_begun = true;
	websocket_set_max(s->ws, EXEC_MESSAGE_TEXT_MAX, EXEC_MESSAGE_STDIN_MAX + 1);
	if (state == EXEC_ENDED) {
		keep_end(s, e);
	} else {
		s->exec = e;
		exec_follow(e, &s->attachment->follower);
	}
	if (state == EXEC_WAITING)
		exec_socket_waiting(s, e);
	else if (state != EXEC_STARTING && !exec_socket_started(s, e))
		return;
	send_on(s);
}

/* ---- the request ---- */

static int open_stream(struct call *c, struct core_exec *e, int stream, uint64_t offset, int *fd,
	struct error *err)
{
	struct stat st;
	if (exec_open_output(c->request, e, stream, fd, err))
		return -1;
	if (fstat(*fd, &st))
		return fail_errno(err, "look at the output of exec '%s'", exec_record_of(e)->id);
	if (offset <= (uint64_t)st.st_size)
		return 0;
	c->problem = 416;
	return fail(err, ERR_INVALID, "%s: the output has %llu bytes so far",
		stream == 2 ? "stderr_offset" : "offset", (unsigned long long)st.st_size);
}

static int api_exec_attach(struct call *c, struct error *err)
{
	const struct attach_query *query = c->query;
	auto_close int out = -1, errors = -1;
	struct core_workspace *w;
	struct exec_socket *s;
	struct core_exec *e;
	if (exec_find(c->request, c->api->core, c->id, &e, err) ||
		core_find(c->request, c->api->core, exec_record_of(e)->workspace, &w, err))
		return -1;
	const struct exec_record *record = exec_record_of(e);
	if (!record->background)
		return fail(err, ERR_CONFLICT,
			"exec '%s' isn't in the background: its output goes to its own client",
			record->id);
	if (open_stream(c, e, 1, query->offset, &out, err) ||
		(!record->tty && open_stream(c, e, 2, query->stderr_offset, &errors, err)) ||
		exec_socket_open(c, w, on_opened, &s, err))
		return -1;
	struct exec_attachment *a = s->attachment = arena_alloc(&s->arena, sizeof *a);
	*a = (struct exec_attachment){ .follower = { .more = on_more, .ctx = s },
		.fds = { take_fd(&out), take_fd(&errors) },
		.offsets = { query->offset, query->stderr_offset } };
	buf_init(&a->exit, BUF_MAX_DEFAULT);
	return 0;
}

const struct handler exec_attach_handlers[] = { { "attachExec", api_exec_attach }, { 0 } };
