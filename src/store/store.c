#include "store/store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "store/writer.h"

#define TIDY_WRITES 1000    /* tidy after this many writes that leave garbage, */
#define TIDY_MS 3600000	    /* or after this time */
#define PROBE_EVERY_MS 1000 /* while it fails */
#define LONG_MS 5000	    /* a commit that takes longer is reported as stuck */
#define ENDS_MAX 3	    /* of the process that writes, over one commit */

struct store {
	const struct store_backend *backend;
	struct store_host host;
	struct store_place place; /* both ours */
	void *db;		  /* to read from */
	struct writer writer;
	bool is_writer_asked;		 /* of the host */
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

struct load {
	store_load_fn *fn; /* NULL: only looks whether every row can be read */
	void *ctx;
	const char *file;
};

static int load_row(
	void *ctx, const struct store_table *table, const struct store_row *row, struct error *err)
{
	const struct load *load = ctx;
	auto_arena struct arena arena = { 0 };
	void *object = arena_alloc(&arena, table->size);
	if (row_read(table, row, &arena, object, err))
		return error_context(err, "%.*s '%s' in %s", (int)strlen(table->name) - 1,
			table->name, row->texts[0], load->file);
	return load->fn && load->fn(load->ctx, table, object)
		       ? fail(err, ERR_CANCELED, "loading %s was stopped", table->name)
		       : 0;
}

static int load_all(const struct store *store, struct load load, struct error *err)
{
	for (int i = 0; store_tables[i]; i++)
		if (store->backend->load(store->db, i, load_row, &load, err))
			return -1;
	return 0;
}

int store_load(struct store *store, store_load_fn *fn, void *ctx, struct error *err)
{
	if (load_all(store, (struct load){ fn, ctx, store->place.file }, err))
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
	int failed = load_all(store, (struct load){ .file = store->place.file }, err);
	store->backend->close(take_ptr(store->db));
	return failed;
}

static bool is_readable(const struct store_table *table, const struct store_row *row)
{
	auto_arena struct arena arena = { 0 };
	struct error err;
	return !row_read(table, row, &arena, arena_alloc(&arena, table->size), &err);
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

static void free_store(struct store *store)
{
	if (store->db)
		store->backend->close(store->db);
	if (store->writer.socket >= 0) {
		writer_finish(&store->writer);
		store->host.end_writer(store->host.ctx);
	}
	writer_done(&store->writer);
	arena_done(&store->queue.arena);
	fd_close(&store->place.directory);
	free((char *)store->place.path);
	free((char *)store->place.file);
	free(store);
}

/* Other files of the home have other names. */
static bool is_file(struct str name)
{
	return name.len <= STORE_FILE_LEN_MAX && name.len > 3 &&
	       !memcmp(name.data + name.len - 3, ".db", 3) && name.data[0] != '.' &&
	       !memchr(name.data, '/', name.len);
}

int store_find_backend(
	const char *url, const struct store_backend **backend, const char **file, struct error *err)
{
	static const struct store_backend *const backends[] = { &store_sqlite };
	struct str scheme, rest;
	if (str_cut(str_from(url), ':', &scheme, &rest))
		for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
			if (str_is(scheme, backends[i]->scheme) && is_file(rest)) {
				*backend = backends[i];
				*file = rest.data;
				return 0;
			}
	return fail_hint(err, ERR_INVALID, "store.url: sqlite:NAME.db, a file of the home",
		"no database has the URL '%s'", url);
}

int store_open(int directory, const char *path, const char *url, const struct store_host *host,
	struct store **out, struct store_opened *opened, struct error *err)
{
	const struct store_backend *backend;
	const char *file;
	if (store_find_backend(url, &backend, &file, err))
		return -1;
	struct store *store = calloc(1, sizeof *store);
	if (!store)
		abort();
	store->backend = backend;
	store->host = *host;
	writer_init(&store->writer);
	store_batch_init(&store->queue);
	store->place.directory = fcntl(directory, F_DUPFD_CLOEXEC, 0);
	store->place.path = strdup(path);
	store->place.file = strdup(file);
	if (!store->place.path || !store->place.file)
		abort();
	if (open_or_replace(store, opened, err) ||
		store->backend->attach(&store->place, true, &store->db, err)) {
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

static int index_of(const struct store_table *table)
{
	int i = 0;
	while (store_tables[i] != table)
		i++;
	return i;
}

void store_put(struct store *store, const struct store_table *table, const void *object,
	store_done_fn *done, void *ctx)
{
	struct store_write *write = queue(store, STORE_PUT, done, ctx);
	struct arena *arena = &store->queue.arena;
	struct store_row *row = &write->row;
	auto_buf struct buf document = buf_empty(STORE_DOCUMENT_MAX);
	record_print_kept(table->record, object, &document);
	write->table = index_of(table);
	if (document.overflow) {
		refuse(store, write, "a document", STORE_DOCUMENT_MAX);
		return;
	}
	row_show(table, object, row);
	row->bytes = (struct str){ arena_bytes(arena, document.data, document.len), document.len };
	row->numbers[STORE_SUM] = row_sum(table, row);
	for (int i = 0; i < STORE_TEXTS && row->texts[i]; i++)
		row->texts[i] = arena_text(arena, row->texts[i]);
}

void store_remove(struct store *store, const struct store_table *table, const char *id,
	const struct store_gone *gone, store_done_fn *done, void *ctx)
{
	struct store_write *write = queue(store, STORE_REMOVE, done, ctx);
	struct arena *arena = &store->queue.arena;
	write->table = index_of(table);
	write->row.texts[0] = arena_text(arena, id);
	if (!gone)
		return;
	write->row.texts[1] = arena_text(arena, gone->name);
	write->row.texts[2] = arena_text(arena, gone->why);
	write->row.numbers[0] = clock_now_ms();
	store->untidy++;
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
	write->row = (struct store_row){ { arena_text(arena, scope), arena_text(arena, key),
						 arena_text(arena, answer->digest),
						 arena_text(arena, answer->location) },
		{ clock_now_ms(), answer->status },
		{ arena_bytes(arena, answer->body.data, answer->body.len), answer->body.len } };
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
		queue(store, STORE_TIDY, NULL, NULL)->row.numbers[0] =
			clock_now_ms() - STORE_ANSWER_KEPT_MS;
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

/* Nothing is under way with it any more. */
static void drop_writer(struct store *store)
{
	store->host.end_writer(store->host.ctx);
	store->writer.socket = -1;
}

static void ask_for_writer(struct store *store)
{
	if (store->is_writer_asked)
		return;
	store->is_writer_asked = true;
	store->host.start_writer(store->host.ctx);
}

void store_use_writer(struct store *store, int socket, const struct error *err)
{
	store->is_writer_asked = false;
	if (!err) {
		writer_use(&store->writer, socket);
		store_go_on(store);
	} else if (store->is_committing) {
		end_commit(store, err);
	}
}

void store_go_on(struct store *store)
{
	struct error err;
	struct str message;
	bool has_failed;
	if (store->writer.socket < 0)
		return;
	int got = writer_go_on(&store->writer, &message);
	if (got < 0) {
		drop_writer(store);
		if (!store->is_committing)
			return; /* the next commit asks for one */
		if (++store->ends < ENDS_MAX) {
			ask_for_writer(store);
			return;
		}
		fail(&err, ERR_UNAVAILABLE, "the process that writes the database ended %d times",
			ENDS_MAX);
		end_commit(store, &err);
		return;
	}
	if (!got || !store->is_committing)
		return;
	if (writer_read_outcome(message, &store->batch, &has_failed, &err)) {
		drop_writer(store);
		has_failed = fail(&err, ERR_FAILED,
			"the process that writes the database sent an invalid message");
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
	if (store->writer.socket < 0)
		ask_for_writer(store);
	else
		store_go_on(store);
}

static void await_commit(struct store *store)
{
	while (store->is_committing && store->writer.socket >= 0) {
		writer_await(&store->writer);
		store_go_on(store);
	}
	/* Another one comes through the loop, which is not for us to run. */
	if (store->is_committing) {
		struct error err;
		fail(&err, ERR_UNAVAILABLE, "the process that writes the database has ended");
		end_commit(store, &err);
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
		fail(err, ERR_UNAVAILABLE, "a commit to the database takes longer than %d s",
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
	return store->backend->find_gone(store->db, id_or_name, arena, why, at_ms);
}

bool store_find_answer(struct store *store, const char *scope, const char *key, struct arena *arena,
	struct store_answer *answer)
{
	return store->backend->find_answer(
		store->db, scope, key, clock_now_ms() - STORE_ANSWER_KEPT_MS, arena, answer);
}
