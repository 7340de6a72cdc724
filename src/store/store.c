#include "store/store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "store/wire.h"
#include "store/writer.h"

#define TIDY_WRITES 1000    /* after so many that leave something behind, */
#define TIDY_MS 3600000	    /* or so long */
#define PROBE_EVERY_MS 1000 /* while it fails */
#define LONG_MS 5000	    /* a commit that takes so long may never end */
#define ENDS_MAX 3	    /* of the process that writes, over one commit */

struct store {
	const struct store_backend *backend;
	struct store_host host;
	struct store_place place; /* both ours */
	void *db;		  /* to read from; NULL: not open just now */
	struct writer writer;
	struct store_batch queue, batch; /* the batch is under way while it is_committing */
	bool is_committing, is_settling;
	int ends;	   /* of processes that wrote this batch */
	uint64_t began_ns; /* the last commit */
	bool is_calling;   /* in a `done` */
	bool is_closing;
	bool is_unsettled; /* the database still says that it is new */
	bool is_loaded;
	bool is_failing;
	struct error failure;
	uint64_t tidied_ms;
	unsigned untidy;
};

/* -- rows -- */

static void add_text(struct sha256 *hash, const char *text)
{
	sha256_add(hash, text, strlen(text) + 1);
}

static int64_t row_sum(enum store_table table, const struct store_row *row)
{
	unsigned char digest[SHA256_LEN];
	struct sha256 hash;
	uint64_t sum = 0;
	sha256_init(&hash);
	add_text(&hash, table == STORE_WORKSPACES ? "workspace" : "exec");
	add_text(&hash, row->id);
	add_text(&hash, row->owner);
	add_text(&hash, row->state);
	for (int i = 0; i < STORE_TIMES; i++) {
		char number[24];
		str_format(number, sizeof number, "%lld", (long long)row->times_ms[i]);
		add_text(&hash, number);
	}
	sha256_add(&hash, row->document.data, row->document.len);
	sha256_end(&hash, digest);
	for (int i = 0; i < 8; i++)
		sum = sum << 8 | digest[i];
	return sum ? (int64_t)sum : 1;
}

/* The index of `text` in names, or -1. */
static int find_name(const char *const *names, int count, const char *text)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], text))
			return i;
	return -1;
}

static int check_row(enum store_table table, const struct store_row *row, struct error *err)
{
	if (!id_is_valid(row->id))
		return fail(err, ERR_CORRUPT, "invalid id");
	if (row->sum && row_sum(table, row) != row->sum)
		return fail(err, ERR_CORRUPT, "its checksum is wrong");
	return 0;
}

static int read_workspace(
	const struct store_row *row, struct arena *arena, struct workspace *w, struct error *err)
{
	int state = find_name(workspace_state_names, WORKSPACE_STATE_COUNT, row->state);
	if (check_row(STORE_WORKSPACES, row, err))
		return -1;
	if (state < 0)
		return fail(err, ERR_CORRUPT, "unknown state '%s'", row->state);
	*w = (struct workspace){ .name = row->owner,
		.state = (enum workspace_state)state,
		.created_ms = row->times_ms[0],
		.last_used_ms = row->times_ms[1],
		.expires_ms = row->times_ms[2] };
	memcpy(w->id, row->id, sizeof w->id);
	return workspace_parse_document(row->document, arena, w, err);
}

static int read_exec(
	const struct store_row *row, struct arena *arena, struct exec_record *e, struct error *err)
{
	int state = find_name(exec_state_names, EXEC_STATE_COUNT, row->state);
	if (check_row(STORE_EXECS, row, err))
		return -1;
	if (state < 0 || !id_is_valid(row->owner))
		return fail(err, ERR_CORRUPT, "invalid state or workspace id");
	*e = (struct exec_record){ .state = (enum exec_state)state,
		.started_ms = row->times_ms[0],
		.ended_ms = row->times_ms[1] };
	memcpy(e->id, row->id, sizeof e->id);
	memcpy(e->workspace, row->owner, sizeof e->workspace);
	return exec_parse_document(row->document, arena, e, err);
}

static int load_workspace(void *ctx, const struct store_row *row, struct error *err)
{
	const struct store_loader *loader = ctx;
	auto_arena struct arena arena;
	struct workspace w;
	arena_init(&arena);
	if (read_workspace(row, &arena, &w, err))
		return error_context(err, "workspace '%s' in " STORE_FILE, row->id);
	return loader && loader->workspace(loader->ctx, &w)
		       ? fail(err, ERR_CANCELED, "loading workspaces was stopped")
		       : 0;
}

static int load_exec(void *ctx, const struct store_row *row, struct error *err)
{
	const struct store_loader *loader = ctx;
	auto_arena struct arena arena;
	struct exec_record e;
	arena_init(&arena);
	if (read_exec(row, &arena, &e, err))
		return error_context(err, "exec '%s' in " STORE_FILE, row->id);
	return loader && loader->exec(loader->ctx, &e)
		       ? fail(err, ERR_CANCELED, "loading execs was stopped")
		       : 0;
}

/* loader NULL: only looks whether every row can be read. */
static int load_all(const struct store *store, const struct store_loader *loader, struct error *err)
{
	void *ctx = (void *)loader;
	if (store->backend->load(store->db, STORE_WORKSPACES, load_workspace, ctx, err))
		return -1;
	return store->backend->load(store->db, STORE_EXECS, load_exec, ctx, err);
}

/* Opens it again after a fork. */
static int open_reader(struct store *store, struct error *err)
{
	return store->db ? 0 : store->backend->attach(&store->place, true, &store->db, err);
}

static void close_reader(struct store *store)
{
	if (store->db)
		store->backend->close(take_ptr(store->db));
}

int store_load(struct store *store, const struct store_loader *loader, struct error *err)
{
	if (open_reader(store, err) || load_all(store, loader, err))
		return -1;
	store->is_loaded = true;
	return 0;
}

/* -- opening and closing -- */

void store_batch_init(struct store_batch *batch)
{
	arena_init(&batch->arena);
	batch->first = NULL;
	batch->last = &batch->first;
}

/* Looks at every row. */
static int open_and_look(struct store *store, struct store_opened *opened, struct error *err)
{
	if (store->backend->open(&store->place, opened, &store->db, err))
		return -1;
	int failed = load_all(store, NULL, err);
	close_reader(store);
	return failed;
}

static bool is_readable(enum store_table table, const struct store_row *row)
{
	auto_arena struct arena arena;
	struct workspace w;
	struct exec_record e;
	struct error err;
	arena_init(&arena);
	return table == STORE_WORKSPACES ? !read_workspace(row, &arena, &w, &err)
					 : !read_exec(row, &arena, &e, &err);
}

static int open_or_replace(struct store *store, struct store_opened *opened, struct error *err)
{
	*opened = (struct store_opened){ 0 };
	if (!open_and_look(store, opened, err))
		return 0;
	if (err->code != ERR_CORRUPT)
		return -1;
	*opened = (struct store_opened){ .was_corrupt = true };
	str_copy(opened->why, sizeof opened->why, err->text);
	return store->backend->replace(&store->place, is_readable, opened, err) ||
			       open_and_look(store, opened, err)
		       ? -1
		       : 0;
}

/* A child may not inherit an open database: SQLite knows its locks by process. */
static int start_writer(struct store *store, struct error *err)
{
	int socket;
	close_reader(store);
	if (store->host.start_writer(store->host.ctx, &socket, err))
		return error_context(err, "start the process that writes " STORE_FILE);
	writer_use(&store->writer, socket);
	return 0;
}

static void end_writer(struct store *store)
{
	store->host.end_writer(store->host.ctx);
	store->writer.socket = -1;
}

static void free_store(struct store *store)
{
	close_reader(store);
	if (store->writer.socket >= 0) {
		writer_finish(&store->writer);
		end_writer(store);
	}
	writer_done(&store->writer);
	arena_done(&store->queue.arena);
	fd_close(&store->place.directory);
	free((char *)store->place.path);
	free(store);
}

int store_open(int directory, const char *path, const struct store_host *host, struct store **out,
	struct store_opened *opened, struct error *err)
{
	struct store *store = calloc(1, sizeof *store);
	if (!store)
		abort();
	store->backend = &store_sqlite;
	store->host = *host;
	writer_init(&store->writer);
	store_batch_init(&store->queue);
	store->place.directory = fcntl(directory, F_DUPFD_CLOEXEC, 0);
	store->place.path = strdup(path);
	if (!store->place.path)
		abort();
	if (open_or_replace(store, opened, err) || start_writer(store, err) ||
		open_reader(store, err)) {
		free_store(store);
		return -1;
	}
	store->is_unsettled = opened->is_new;
	*out = store;
	return 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	store->is_closing = true;
	do
		store_flush(store);
	while (store->queue.first && !store->is_failing);
	free_store(store);
}

/* -- the queue -- */

static struct store_write *queue(
	struct store *store, enum store_write_kind kind, store_done_fn *done, void *ctx)
{
	bool is_first = !store->queue.first;
	struct store_write *write = arena_alloc(&store->queue.arena, sizeof *write);
	*write = (struct store_write){ .kind = kind, .done = done, .ctx = ctx };
	*store->queue.last = write;
	store->queue.last = &write->next;
	if (is_first && !store->is_closing)
		store->host.schedule(store->host.ctx);
	return write;
}

static void refuse(struct store *store, struct store_write *write, const char *what, size_t most)
{
	write->failed = arena_alloc(&store->queue.arena, sizeof *write->failed);
	fail(write->failed, ERR_LIMIT, "%s has more than %zu bytes: it can't be stored", what,
		most);
}

static void queue_row(struct store *store, enum store_write_kind kind, struct store_row row,
	const struct buf *document, store_done_fn *done, void *ctx)
{
	enum store_table table = kind == STORE_PUT_WORKSPACE ? STORE_WORKSPACES : STORE_EXECS;
	struct store_write *write = queue(store, kind, done, ctx);
	struct arena *arena = &store->queue.arena;
	if (document->overflow) {
		refuse(store, write, table == STORE_WORKSPACES ? "a workspace" : "an exec",
			STORE_DOCUMENT_MAX);
		return;
	}
	row.document = (struct str){ document->data, document->len };
	row.sum = row_sum(table, &row);
	row.id = arena_text(arena, row.id);
	row.owner = arena_text(arena, row.owner);
	row.document.data = arena_bytes(arena, document->data, document->len);
	write->row = row;
}

void store_put_workspace(
	struct store *store, const struct workspace *w, store_done_fn *done, void *ctx)
{
	auto_buf struct buf document;
	buf_init(&document, STORE_DOCUMENT_MAX);
	workspace_print_document(w, &document);
	queue_row(store, STORE_PUT_WORKSPACE,
		(struct store_row){ .id = w->id,
			.owner = w->name,
			.state = workspace_state_names[w->state],
			.times_ms = { w->created_ms, w->last_used_ms, w->expires_ms } },
		&document, done, ctx);
}

void store_put_exec(
	struct store *store, const struct exec_record *e, store_done_fn *done, void *ctx)
{
	auto_buf struct buf document;
	buf_init(&document, STORE_DOCUMENT_MAX);
	exec_print_document(e, &document);
	queue_row(store, STORE_PUT_EXEC,
		(struct store_row){ .id = e->id,
			.owner = e->workspace,
			.state = exec_state_names[e->state],
			.times_ms = { e->started_ms, e->ended_ms, 0 } },
		&document, done, ctx);
}

void store_remove_workspace(struct store *store, const char *id, const char *name, const char *why,
	store_done_fn *done, void *ctx)
{
	struct store_write *write = queue(store, STORE_REMOVE_WORKSPACE, done, ctx);
	struct arena *arena = &store->queue.arena;
	write->gone = (struct store_gone_row){ arena_text(arena, id), arena_text(arena, name),
		arena_text(arena, why), clock_now_ms() };
	store->untidy++;
}

void store_remove_exec(struct store *store, const char *id, store_done_fn *done, void *ctx)
{
	struct store_write *write = queue(store, STORE_REMOVE_EXEC, done, ctx);
	write->id = arena_text(&store->queue.arena, id);
}

void store_put_answer(struct store *store, const char *scope, const char *key,
	const struct store_answer *answer, store_done_fn *done, void *ctx)
{
	struct store_write *write = queue(store, STORE_PUT_ANSWER, done, ctx);
	struct arena *arena = &store->queue.arena;
	if (answer->body.len > STORE_ANSWER_BODY_MAX) {
		refuse(store, write, "an answer", STORE_ANSWER_BODY_MAX);
		return;
	}
	write->answer = (struct store_answer_row){ arena_text(arena, scope), arena_text(arena, key),
		clock_now_ms(), *answer };
	write->answer.answer.body.data = arena_bytes(arena, answer->body.data, answer->body.len);
	if (answer->location)
		write->answer.answer.location = arena_text(arena, answer->location);
	store->untidy++;
}

/* -- commits -- */

void store_settle(struct store *store)
{
	if (store->is_unsettled && store->is_loaded)
		queue(store, STORE_SETTLE, NULL, NULL);
}

/* What the store itself has to write goes along with what others want written. */
static void add_own(struct store *store)
{
	uint64_t now_ms = clock_monotonic_ms();
	store_settle(store);
	if (store->untidy >= TIDY_WRITES ||
		(store->untidy && (!store->tidied_ms || now_ms - store->tidied_ms > TIDY_MS))) {
		queue(store, STORE_TIDY, NULL, NULL)->at_ms = clock_now_ms();
		store->untidy = 0;
		store->tidied_ms = now_ms;
	}
}

static void end_commit(struct store *store, const struct error *err)
{
	struct store_batch batch = store->batch;
	/* What came meanwhile was scheduled in vain. */
	bool has_more = store->queue.first;
	store->host.committed(store->host.ctx, clock_monotonic_ns() - store->began_ns);
	writer_end(&store->writer);
	store->is_committing = false;
	store->is_failing = err;
	if (err)
		store->failure = *err;
	else if (store->is_settling)
		store->is_unsettled = false;
	fault_point("store.committed");
	store->is_calling = true;
	for (struct store_write *write = batch.first; write; write = write->next)
		if (write->done)
			write->done(write->ctx, err ? err : write->failed);
	store->is_calling = false;
	arena_done(&batch.arena);
	if (has_more && !store->is_closing)
		store->host.schedule(store->host.ctx);
}

/* For the commit that is under way. */
static int replace_writer(struct store *store, struct error *err)
{
	if (store->writer.socket >= 0) {
		end_writer(store);
		store->ends++;
	}
	if (store->ends == ENDS_MAX)
		return fail(err, ERR_UNAVAILABLE,
			"the process that writes " STORE_FILE " ended %d times", ENDS_MAX);
	return start_writer(store, err);
}

void store_go_on(struct store *store)
{
	struct error err;
	struct str message;
	bool has_failed;
	int got;
	while ((got = writer_go_on(&store->writer, &message)) < 0) {
		if (!store->is_committing) {
			end_writer(store); /* the next commit starts one */
			return;
		}
		if (replace_writer(store, &err)) {
			end_commit(store, &err);
			return;
		}
	}
	if (!got || !store->is_committing)
		return;
	if (wire_parse_outcome(message, &store->batch, &has_failed, &err)) {
		end_writer(store);
		has_failed = fail(&err, ERR_FAILED,
			"the process that writes " STORE_FILE " sent an invalid message");
	}
	end_commit(store, has_failed ? &err : NULL);
}

void store_begin(struct store *store)
{
	if (store->is_committing || !store->queue.first)
		return;
	store->is_settling = store->is_unsettled && store->is_loaded;
	add_own(store);
	store->batch = store->queue;
	store_batch_init(&store->queue);
	store->is_committing = true;
	store->ends = 0;
	store->began_ns = clock_monotonic_ns();
	writer_begin(&store->writer, &store->batch);
	store_go_on(store);
}

static void await_commit(struct store *store)
{
	while (store->is_committing) {
		writer_await(&store->writer);
		store_go_on(store);
	}
}

void store_flush(struct store *store)
{
	if (!store || store->is_calling)
		return;
	await_commit(store);
	store_begin(store);
	await_commit(store);
}

bool store_is_failing(struct store *store, struct error *err)
{
	uint64_t ago_ms = (clock_monotonic_ns() - store->began_ns) / 1000000;
	bool is_long = store->is_committing && ago_ms >= LONG_MS;
	if (is_long)
		fail(err, ERR_UNAVAILABLE, "a commit of " STORE_FILE " takes longer than %d s",
			LONG_MS / 1000);
	else if (store->is_failing)
		*err = store->failure;
	if (store->is_failing && !store->is_committing && !store->queue.first &&
		ago_ms >= PROBE_EVERY_MS)
		queue(store, STORE_PROBE, NULL, NULL);
	return is_long || store->is_failing;
}

/* -- what is looked up -- */

bool store_find_gone(struct store *store, const char *id_or_name, struct arena *arena,
	const char **why, int64_t *at_ms)
{
	return !open_reader(store, NULL) &&
	       store->backend->find_gone(store->db, id_or_name, arena, why, at_ms);
}

bool store_find_answer(struct store *store, const char *scope, const char *key, struct arena *arena,
	struct store_answer *answer)
{
	return !open_reader(store, NULL) &&
	       store->backend->find_answer(
		       store->db, scope, key, clock_now_ms() - STORE_ANSWER_KEPT_MS, arena, answer);
}
