#include "store/store.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/map.h"
#include "store/writer.h"

#define TIDY_WRITES 1000    /* tidy after this many writes that leave garbage, */
#define TIDY_MS 3600000	    /* or after this time */
#define PROBE_EVERY_MS 1000 /* while it fails */
#define LONG_MS 5000	    /* a commit that takes longer is reported as stuck */
#define ENDS_MAX 3	    /* a commit fails after the writer process has ended this often */

/* A removed workspace. Keys in the map `gone`: its id, and its name unless a newer one has the
 * name. */
struct gone {
	struct gone *newer;
	int64_t at_ms;
	const char *name, *why; /* both stored after the id */
	char id[];
};

/* What store_load was asked, while it is under way. */
struct load {
	store_load_fn *fn;
	store_loaded_fn *done;
	void *ctx;
	struct store_opened opened;
	bool is_asked;
	bool has_failed; /* here */
	struct error err;
};

struct store {
	const char *file; /* of the database */
	struct store_host host;
	struct writer writer;
	bool is_writer_asked;		 /* of the host */
	struct store_batch queue, batch; /* the batch is under way while it is_committing */
	bool is_committing, is_settling;
	bool has_writes;   /* the batch: it changes something */
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
	struct load *load;
	struct map gone;
	struct gone *gone_oldest, *gone_newest;
	size_t gone_count;
};

/* -- what is gone -- */

static void forget_gone(struct store *store, const struct gone *gone, const char *key)
{
	if (map_get(&store->gone, str_from(key)) == gone)
		map_remove(&store->gone, str_from(key));
}

static void drop_oldest_gone(struct store *store)
{
	struct gone *gone = store->gone_oldest;
	forget_gone(store, gone, gone->id);
	forget_gone(store, gone, gone->name);
	store->gone_oldest = gone->newer;
	store->gone_count--;
	free(gone);
}

/* Remove first: the old key is memory of the old value. */
static void set_gone(struct store *store, const char *key, struct gone *gone)
{
	map_remove(&store->gone, str_from(key));
	map_add(&store->gone, str_from(key), gone);
}

static void add_gone(struct store *store, const struct store_row *row)
{
	size_t id = strlen(row->texts[0]) + 1, name = strlen(row->texts[1]) + 1,
	       why = strlen(row->texts[2]) + 1;
	struct gone *gone = malloc(sizeof *gone + id + name + why);
	if (!gone)
		abort();
	*gone = (struct gone){ .at_ms = row->numbers[0],
		.name = memcpy(gone->id + id, row->texts[1], name),
		.why = memcpy(gone->id + id + name, row->texts[2], why) };
	memcpy(gone->id, row->texts[0], id);
	if (store->gone_count++)
		store->gone_newest->newer = gone;
	else
		store->gone_oldest = gone;
	store->gone_newest = gone;
	set_gone(store, gone->id, gone);
	set_gone(store, gone->name, gone);
	if (store->gone_count > STORE_GONE_MAX)
		drop_oldest_gone(store);
}

bool store_find_gone(
	const struct store *store, const char *id_or_name, const char **why, int64_t *at_ms)
{
	const struct gone *gone = map_get(&store->gone, str_from(id_or_name));
	if (!gone)
		return false;
	*why = gone->why;
	*at_ms = gone->at_ms;
	return true;
}

/* -- opening and closing -- */

void store_batch_init(struct store_batch *batch)
{
	arena_init(&batch->arena);
	batch->first = NULL;
	batch->last = &batch->first;
}

static void free_store(struct store *store)
{
	if (store->writer.socket >= 0) {
		writer_finish(&store->writer);
		store->host.end_writer(store->host.ctx);
	}
	writer_done(&store->writer);
	arena_done(&store->queue.arena);
	while (store->gone_count)
		drop_oldest_gone(store);
	map_done(&store->gone);
	free(store);
}

/* NAME.db in the home, not hidden: no other file of the home is named so. */
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

int store_open(
	const char *url, const struct store_host *host, struct store **out, struct error *err)
{
	const struct store_backend *backend;
	const char *file;
	if (store_find_backend(url, &backend, &file, err))
		return -1;
	struct store *store = calloc(1, sizeof *store);
	if (!store)
		abort();
	store->file = file;
	store->host = *host;
	writer_init(&store->writer);
	store_batch_init(&store->queue);
	map_init(&store->gone, NULL);
	*out = store;
	return 0;
}

static void ignore_loaded(void *ctx, const struct store_opened *opened, const struct error *err)
{
}

void store_close(struct store *store)
{
	if (!store)
		return;
	store->is_closing = true;
	if (store->load) { /* the caller has no use for rows any more */
		store->load->fn = NULL;
		store->load->done = ignore_loaded;
	}
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

/* Adds the store's own writes to a commit that has others. */
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

static void note_commit(struct store *store, const struct error *err)
{
	store->host.committed(store->host.ctx, clock_monotonic_ns() - store->began_ns);
	store->is_failing = err;
	if (err)
		store->failure = *err;
	else if (store->is_settling)
		store->is_unsettled = false;
	for (const struct store_write *write = store->batch.first; write && !err;
		write = write->next)
		if (write->kind == STORE_REMOVE && write->row.texts[2] && !write->failed)
			add_gone(store, &write->row);
	fault_point("store.committed");
}

static void call(const struct store_write *write, const struct error *err)
{
	const struct store_row *row = write->found;
	struct store_answer answer;
	if (write->done)
		write->done(write->ctx, err);
	if (!write->told)
		return;
	if (!row || !row->texts[0] || !row->bytes.data) {
		write->told(write->ctx, NULL);
		return;
	}
	answer = (struct store_answer){
		.status = (int)row->numbers[0], .body = row->bytes, .location = row->texts[1]
	};
	str_copy(answer.digest, sizeof answer.digest, row->texts[0]);
	write->told(write->ctx, &answer);
}

static void end_load(struct store *store, const struct error *err)
{
	struct load *load = take_ptr(store->load);
	if (!load || !load->is_asked)
		return;
	if (!err && load->has_failed)
		err = &load->err;
	store->is_loaded |= !err;
	load->done(load->ctx, &load->opened, err);
	free(load);
}

static void end_commit(struct store *store, const struct error *err)
{
	struct store_batch batch = store->batch;
	/* store_begin, scheduled for writes queued during the commit, returned without effect. */
	bool has_more = store->queue.first || (store->load && !store->load->is_asked);
	store->is_committing = false;
	if (store->has_writes)
		note_commit(store, err);
	store->is_calling = true;
	for (struct store_write *write = batch.first; write; write = write->next)
		call(write, err ? err : write->failed);
	end_load(store, err);
	store->is_calling = false;
	/* What was found is in the answer. */
	writer_end(&store->writer);
	arena_done(&batch.arena);
	if (has_more && !store->is_closing)
		store->host.schedule(store->host.ctx);
}

/* Closes the writer's socket. The next commit asks for a new process. */
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

/* The process has ended: starts another for the commit under way, or fails that commit. */
static void lose_writer(struct store *store)
{
	struct error err;
	drop_writer(store);
	if (!store->is_committing)
		return; /* the next commit asks for one */
	store->ends++;
	/* Rows were given away, or a damaged database was being replaced: a new start is a better
	 * answer than a second reading. */
	if (store->load)
		fail(&err, ERR_UNAVAILABLE, "the process that reads the database ended");
	else if (store->ends < ENDS_MAX) {
		ask_for_writer(store);
		return;
	} else
		fail(&err, ERR_UNAVAILABLE, "the process that writes the database ended %d times",
			ENDS_MAX);
	end_commit(store, &err);
}

static int take_row(struct store *store, int table, const struct store_row *row, struct error *err)
{
	const struct load *load = store->load;
	auto_arena struct arena arena = { 0 };
	void *object;
	if (table == STORE_GONE) {
		add_gone(store, row);
		return 0;
	}
	if (row_load(table, row, store->file, &arena, &object, err))
		return -1;
	return load->fn && load->fn(load->ctx, store_tables[table], object)
		       ? fail(err, ERR_CANCELED, "loading %s was stopped",
				 store_tables[table]->name)
		       : 0;
}

static int take_rows(struct store *store, struct str rows)
{
	struct load *load = store->load;
	struct store_row row;
	int table, got;
	while ((got = wire_read_row(&rows, &table, &row)) > 0)
		if (!load->has_failed && take_row(store, table, &row, &load->err))
			load->has_failed = true;
	return got;
}

static int take_opened(struct store *store, struct str message)
{
	if (wire_read_opened(message, &store->load->opened))
		return -1;
	if (!store->is_loaded)
		store->is_unsettled = store->load->opened.is_new;
	return 0;
}

/* 0, or -1: not an answer to what was asked. */
static int take_answer(struct store *store, struct str message)
{
	struct error err;
	bool has_failed;
	int said = wire_read_said(&message);
	if (said == WIRE_OUTCOME) {
		if (wire_read_outcome(message, &store->batch, &has_failed, &err))
			return -1;
		end_commit(store, has_failed ? &err : NULL);
		return 0;
	}
	if (said < 0 || !store->load)
		return -1;
	return said == WIRE_OPENED ? take_opened(store, message) : take_rows(store, message);
}

void store_go_on(struct store *store)
{
	struct error err;
	struct str message;
	int got = 1;
	while (got > 0 && store->writer.socket >= 0) {
		got = writer_go_on(&store->writer, &message);
		if (got > 0 && (!store->is_committing || store->is_calling))
			return;
		if (got > 0 && take_answer(store, message)) {
			drop_writer(store);
			fail(&err, ERR_FAILED,
				"the process that writes the database sent an invalid message");
			end_commit(store, &err);
		}
	}
	if (got < 0)
		lose_writer(store);
}

/* A batch of its own, before the queued writes. */
static void begin_load(struct store *store)
{
	store_batch_init(&store->batch);
	struct store_write *write = arena_alloc(&store->batch.arena, sizeof *write);
	write->kind = STORE_LOAD;
	store->batch.first = write;
	store->load->is_asked = true;
	store->has_writes = false;
}

static void begin_queued(struct store *store)
{
	store->has_writes = false;
	for (const struct store_write *write = store->queue.first; write; write = write->next)
		store->has_writes |= write->kind < STORE_FIND_ANSWER;
	store->is_settling = store->has_writes && store->is_unsettled && store->is_loaded;
	if (store->has_writes)
		add_own(store);
	store->batch = store->queue;
	store_batch_init(&store->queue);
}

void store_begin(struct store *store)
{
	bool has_load = store->load && !store->load->is_asked;
	if (store->is_committing || store->is_calling || (!has_load && !store->queue.first))
		return;
	if (has_load)
		begin_load(store);
	else
		begin_queued(store);
	store->is_committing = true;
	store->ends = 0;
	store->began_ns = clock_monotonic_ns();
	writer_begin(&store->writer, &store->batch);
	if (store->writer.socket < 0)
		ask_for_writer(store);
	else if (has_load)
		writer_send(&store->writer);
	else
		store_go_on(store);
}

static void await_commit(struct store *store)
{
	while (store->is_committing && store->writer.socket >= 0) {
		writer_await(&store->writer);
		store_go_on(store);
	}
	/* A new process would arrive through the event loop, which does not run here. */
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

/* -- what is asked for -- */

void store_find_answer(
	struct store *store, const char *scope, const char *key, store_found_fn *told, void *ctx)
{
	struct store_write *write = queue(store, STORE_FIND_ANSWER, NULL, ctx);
	struct arena *arena = &store->queue.arena;
	write->told = told;
	write->row = (struct store_row){ { arena_text(arena, scope), arena_text(arena, key) },
		{ clock_now_ms() - STORE_ANSWER_KEPT_MS } };
}

void store_load(struct store *store, store_load_fn *fn, store_loaded_fn *done, void *ctx)
{
	struct load *load = calloc(1, sizeof *load);
	if (!load)
		abort();
	*load = (struct load){ .fn = fn, .done = done, .ctx = ctx };
	store->load = load;
	store->host.schedule(store->host.ctx);
	store_begin(store);
}
