/* GET /v1/execs/{id}/output: the spool of a background exec, as bytes or as events, now or as it
 * comes. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/execs/execs.h"
#include "doors/rest/handlers.h"

#define PIECE 32768
#define PIECES_A_TURN 4 /* then the other clients have their turn */

/* One reader; in the request's arena. */
struct reader {
	struct call *call;
	struct stream stream;
	struct exec_follower follower;
	struct core_exec
		*exec; /* that is followed, or NULL: it has ended, nothing comes after this */
	int fds[2];    /* of stdout and stderr, or -1 */
	uint64_t offsets[2];
	struct sse_tail tails[2];
	struct loop_timer *later; /* there is more, for the next turn; or NULL */
	bool is_events, is_full;
};

static int open_spool(
	struct call *c, struct core_exec *e, int stream, int *fd, uint64_t *size, struct error *err)
{
	struct stat st;
	if (exec_open_output(c->request, e, stream, fd, err))
		return -1;
	if (fstat(*fd, &st))
		return fail_errno(err, "look at the output of exec '%s'", exec_record_of(e)->id);
	*size = (uint64_t)st.st_size;
	return 0;
}

/* ---- what is there now ---- */

static void answer_now(struct call *c, int fd, uint64_t offset, uint64_t size)
{
	uint64_t first = exec_output_first(fd);
	if (offset < first)
		offset = first < size ? first : size;
	const char *headers = arena_printf(&c->r->arena,
		"Carrel-First-Offset: %llu\r\nCarrel-Next-Offset: %llu\r\n"
		"X-Content-Type-Options: nosniff\r\n",
		(unsigned long long)offset, (unsigned long long)size);
	c->status = 200;
	http_respond_file(
		c->r, 200, "application/octet-stream", headers, fd, offset, size - offset);
}

/* ---- as it comes ---- */

static void on_later(struct loop *loop, void *ctx);

/* Output that this reader hasn't seen was dropped: on with what is kept. */
static void skip(struct reader *reader, int i, uint64_t first, struct buf *events)
{
	const char *stream = i ? "stderr" : "stdout";
	struct json j;
	buf_clear(events);
	if (reader->is_events) {
		sse_print_output(events, stream, &reader->tails[i], STR(""), true);
		sse_begin(events, "dropped", &j);
		json_object(&j, NULL);
		json_text(&j, "type", "dropped");
		json_text(&j, "stream", stream);
		json_u64(&j, "from", reader->offsets[i]);
		json_u64(&j, "to", first);
		json_end(&j);
		sse_end(events);
		reader->is_full =
			!http_write(reader->call->r, (struct str){ events->data, events->len });
	}
	reader->offsets[i] = first;
}

/* Sends what the file has beyond the offset. false: the client has enough for now, or its turn is
 * over. */
static bool send_file(struct reader *reader, int i, struct buf *events)
{
	char piece[PIECE];
	ssize_t got;
	for (int pieces = 0; reader->fds[i] >= 0 && !reader->is_full; pieces++) {
		uint64_t first = exec_output_first(reader->fds[i]);
		if (reader->offsets[i] < first)
			skip(reader, i, first, events);
		got = pread(reader->fds[i], piece, sizeof piece, (off_t)reader->offsets[i]);
		if (got <= 0)
			break;
		if (pieces == PIECES_A_TURN) {
			if (!reader->later)
				reader->later =
					loop_after(reader->call->api->loop, 0, on_later, reader);
			return false;
		}
		struct str data = { piece, (size_t)got };
		reader->offsets[i] += (uint64_t)got;
		if (reader->is_events) {
			buf_clear(events);
			sse_print_output(
				events, i ? "stderr" : "stdout", &reader->tails[i], data, false);
			data = (struct str){ events->data, events->len };
		}
		if (data.len)
			reader->is_full = !http_write(reader->call->r, data);
	}
	return !reader->is_full;
}

static void finish(struct reader *reader, struct buf *events)
{
	struct call *c = reader->call;
	struct core_exec *e;
	struct error err;
	struct json j;
	if (reader->is_events) {
		buf_clear(events);
		for (int i = 0; i < 2; i++)
			sse_print_output(
				events, i ? "stderr" : "stdout", &reader->tails[i], STR(""), true);
		if (!exec_find(c->request, c->api->core, c->id, &e, &err) &&
			exec_record_of(e)->state == EXEC_ENDED) {
			sse_begin(events, "exit", &j);
			json_object(&j, NULL);
			json_text(&j, "type", "exit");
			exec_print_members(&j, exec_record_of(e));
			json_end(&j);
			sse_end(events);
		}
		http_write(c->r, (struct str){ events->data, events->len });
	}
	call_end(c);
}

static void send_on(struct reader *reader)
{
	auto_buf struct buf events = buf_empty(BUF_MAX_DEFAULT);
	if (send_file(reader, 0, &events) && send_file(reader, 1, &events) && !reader->exec)
		finish(reader, &events);
}

static void on_later(struct loop *loop, void *ctx)
{
	struct reader *reader = ctx;
	reader->later = NULL;
	send_on(reader);
}

static void on_more(void *ctx, bool has_ended)
{
	struct reader *reader = ctx;
	if (has_ended) {
		exec_unfollow(reader->exec, &reader->follower);
		reader->exec = NULL;
	}
	send_on(reader);
}

static void on_writable(struct call *c)
{
	struct reader *reader = c->priv;
	reader->is_full = false;
	send_on(reader);
}

static void on_gone(struct call *c)
{
	struct reader *reader = c->priv;
	stream_remove(&reader->stream);
	loop_cancel(reader->call->api->loop, reader->later);
	reader->later = NULL;
	if (reader->exec)
		exec_unfollow(reader->exec, &reader->follower);
	reader->exec = NULL;
	fd_close(&reader->fds[0]);
	fd_close(&reader->fds[1]);
}

static void follow(struct call *c, struct core_exec *e, struct reader *reader, bool follows)
{
	reader->call = c;
	reader->follower = (struct exec_follower){ .more = on_more, .ctx = reader };
	c->priv = reader;
	c->gone = on_gone;
	c->writable = on_writable;
	call_begin(c, 200, reader->is_events ? "text/event-stream" : "application/octet-stream",
		"Cache-Control: no-store\r\n");
	if (str_is(c->r->method, "HEAD")) {
		call_end(c);
		return;
	}
	stream_add(c, &reader->stream);
	if (follows && exec_record_of(e)->state != EXEC_ENDED) {
		reader->exec = e;
		exec_follow(e, &reader->follower);
	}
	send_on(reader);
}

static int api_exec_output(struct call *c, struct error *err)
{
	const struct output_query *query = c->query;
	struct reader *reader = arena_alloc(&c->r->arena, sizeof *reader);
	int first = query->stream == 2;
	auto_close int fd = -1, other = -1;
	struct core_exec *e;
	uint64_t size, ignored;
	reader->fds[0] = reader->fds[1] = -1;
	reader->is_events = call_wants_events(c);
	if (exec_find(c->request, c->api->core, c->id, &e, err))
		return -1;
	/* A terminal has one stream: the other is empty. */
	if (exec_record_of(e)->background && exec_record_of(e)->tty && first) {
		call_respond(c, 200, "application/octet-stream",
			"Carrel-First-Offset: 0\r\nCarrel-Next-Offset: 0\r\n", STR(""));
		return 0;
	}
	if (open_spool(c, e, 1 + first, &fd, &size, err))
		return -1;
	if (query->offset > size) {
		c->problem = 416;
		return fail(err, ERR_INVALID, "offset: the output has %llu bytes so far",
			(unsigned long long)size);
	}
	if (!query->follow && !reader->is_events) {
		answer_now(c, take_fd(&fd), query->offset, size);
		return 0;
	}
	if (reader->is_events && !query->stream && !exec_record_of(e)->tty &&
		open_spool(c, e, 2, &other, &ignored, err))
		return -1;
	reader->offsets[first] = query->offset;
	reader->fds[first] = take_fd(&fd);
	if (other >= 0)
		reader->fds[1] = take_fd(&other);
	follow(c, e, reader, query->follow);
	return 0;
}

const struct handler output_handlers[] = { { "getOutput", api_exec_output }, { 0 } };
