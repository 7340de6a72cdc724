#include <unistd.h>
#include "doors/call.h"

static void on_gone(struct call *c)
{
	struct pending *op = c->priv;
	op->call = NULL;
	share_join(&op->api->left, c->r->holder, &op->left);
	share_add(&op->left, 1);
	if (op->cancelable)
		cancelable_cancel(op->cancelable);
}

void pending_cancels(struct pending *op, struct cancelable *cancelable)
{
	if (op->call && str_is(http_header(op->call->r, "carrel-cancel"), "disconnect"))
		op->cancelable = cancelable;
}

void *pending_new(struct call *c, size_t size)
{
	struct pending *op = xzalloc(size);
	op->api = c->api;
	op->call = c;
	c->priv = op;
	c->gone = on_gone;
	return op;
}

struct pending *pending_begin(struct call *c)
{
	return pending_new(c, sizeof(struct pending));
}

int pending_check(struct pending *op, int failed)
{
	if (failed)
		pending_end(op);
	return failed ? -1 : 0;
}

struct call *pending_end(struct pending *op)
{
	struct call *c = op->call;
	if (c) {
		c->priv = NULL; /* don't report the end */
		call_let_go(c);
	}
	share_release(&op->left);
	free(op);
	return c;
}

static void respond(struct call *c, int status, const char *location, const struct buf *body)
{
	const char *headers =
		location ? arena_printf(&c->r->arena, "Location: %s\r\n", location) : NULL;
	if (!body) {
		call_empty(c, status);
		return;
	}
	call_print(c);
	buf_append(&c->out, body->data, body->len);
	c->out.overflow |= body->overflow;
	call_send(c, status, headers);
}

void pending_answer(struct pending *op, int status, const char *location, const struct buf *body)
{
	struct idempotency_entry *entry = op->entry;
	struct call *c = pending_end(op);
	if (c)
		respond(c, status, location, body);
	if (entry)
		idempotency_end(entry,
			&(struct idempotency_answer){ status,
				body ? (struct str){ body->data, body->len } : STR(""), location });
}

void pending_fail(struct pending *op, const struct error *err)
{
	struct idempotency_entry *entry = op->entry;
	bool frees_key = op->frees_key;
	struct call *c = pending_end(op);
	if (c)
		call_problem(c, err);
	if (entry && frees_key)
		idempotency_free(entry);
	else if (entry)
		idempotency_end(entry, NULL);
}

struct json *pending_print(struct pending *op, const struct error *err)
{
	if (err) {
		pending_fail(op, err);
		return NULL;
	}
	buf_init(&op->body, BUF_MAX_DEFAULT);
	op->json = json_to(&op->body, false);
	return &op->json;
}

void pending_send(struct pending *op, int status, const char *location)
{
	auto_buf struct buf body = op->body;
	pending_answer(op, status, location, &body);
}

void pending_answer_record(struct pending *op, const struct error *err, int status,
	const char *location, const struct record *record, const void *object)
{
	struct json *j = pending_print(op, err);
	if (!j)
		return;
	record_print(j, NULL, record, object);
	pending_send(op, status, location);
}

void pending_answer_put(struct pending *op, const struct error *err, bool is_new,
	const char *location, const char *id, const struct record *record, const void *object)
{
	auto_arena struct arena arena = { 0 };
	bool has_location = !err && is_new;
	pending_answer_record(op, err, is_new ? 201 : 200,
		has_location ? arena_printf(&arena, "%s%s", location, id) : NULL, record, object);
}

void pending_answer_made(struct pending *op, const struct error *err, const char *location,
	const char *id, const struct record *record, const void *object)
{
	pending_answer_put(op, err, true, location, id, record, object);
}

void pending_answer_done(struct pending *op, const struct error *err)
{
	if (err)
		pending_fail(op, err);
	else
		pending_answer(op, 204, NULL, NULL);
}

void pending_answer_file(
	struct pending *op, const char *type, int fd, uint64_t size, const struct error *err)
{
	struct call *c = pending_end(op);
	if (!c) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (err) {
		call_problem(c, err);
		return;
	}
	c->status = 200;
	http_respond_file(
		c->r, c->status, type, "X-Content-Type-Options: nosniff\r\n", fd, 0, size);
}

/* ---- once a key ---- */

/* A call that waits for another request with the same key; in the call's arena. */
struct waiting {
	struct idempotency_waiter waiter;
	struct call *call;
	const struct once *once;
};

static void on_answer(void *ctx, const struct idempotency_answer *answer)
{
	struct waiting *waiting = ctx;
	struct call *c = waiting->call;
	struct error err;
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	c->priv = NULL;
	c->gone = NULL;
	if (!answer) {
		if (call_once(c, waiting->once, &err))
			call_problem(c, &err);
		return;
	}
	buf_append(&body, answer->body.data, answer->body.len);
	respond(c, answer->status, answer->location, &body);
}

static void on_waiter_gone(struct call *c)
{
	struct waiting *waiting = c->priv;
	idempotency_forget(&c->api->idempotency, &waiting->waiter);
}

static void make(
	struct call *c, const struct once *once, struct idempotency_entry *entry, const char *id)
{
	struct pending *op = pending_new(c, once->size);
	op->entry = entry;
	op->frees_key = !once->find;
	str_copy(op->id, sizeof op->id, id);
	once->make(c, op);
}

/* Core died after it had been made and before it was answered. */
static bool answer_found(
	struct call *c, const struct once *once, struct idempotency_entry *entry, const char *id)
{
	const char *location = arena_printf(&c->r->arena, "%s%s", once->location, id);
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	if (!once->find(c, id, &j))
		return false;
	respond(c, 201, location, &body);
	idempotency_end(
		entry, &(struct idempotency_answer){ 201, { body.data, body.len }, location });
	return true;
}

/* It has run, or died with core, and its answer was lost or too large to be kept. */
static int refuse_again(struct idempotency_entry *entry, const char *id, struct error *err)
{
	idempotency_end(entry, NULL);
	return fail_hint(err, ERR_CONFLICT, "use a new key to run it again",
		"the command of this Idempotency-Key was started as exec '%s', and its response "
		"isn't kept",
		id);
}

int call_once(struct call *c, const struct once *once, struct error *err)
{
	struct str key = http_header(c->r, "idempotency-key");
	struct waiting *waiting = arena_alloc(&c->r->arena, sizeof *waiting);
	struct idempotency_entry *entry = NULL;
	struct idempotency_answer answer;
	char id[ID_LEN + 1] = "";
	if (!key.data) {
		make(c, once, NULL, "");
		return 0;
	}
	*waiting = (struct waiting){ { on_answer, waiting, NULL }, c, once };
	switch (idempotency_begin(&c->api->idempotency, c->request, once->scope,
		arena_bytes(&c->r->arena, key.data, key.len), c->r->body, &c->r->arena,
		&waiting->waiter, &entry, id, &answer, err)) {
	case IDEMPOTENCY_KNOWN:
		on_answer(waiting, &answer);
		break;
	case IDEMPOTENCY_WAIT:
		c->priv = waiting;
		c->gone = on_waiter_gone;
		break;
	case IDEMPOTENCY_MADE:
		if (!once->find)
			return refuse_again(entry, id, err);
		if (!answer_found(c, once, entry, id))
			make(c, once, entry, id);
		break;
	case IDEMPOTENCY_NEW:
		make(c, once, entry, id);
		break;
	default:
		return -1;
	}
	return 0;
}

static void on_measured(void *ctx, struct core_workspace *w, const struct error *none)
{
	struct call *c = pending_end(ctx);
	struct error err;
	if (c && call_run(c, &err))
		call_problem(c, &err);
}

bool call_measure_first(struct call *c, struct core_workspace *w)
{
	const char *length = call_header(c, "content-length");
	uint64_t bytes = 0; /* 0: unknown */
	if (length && (!str_to_u64(str_from(length), &bytes) || !bytes))
		return false;
	if (c->is_measured || !core_must_measure(w, bytes))
		return false;
	c->is_measured = true;
	core_measure(c->request, w, on_measured, pending_begin(c));
	return true;
}
