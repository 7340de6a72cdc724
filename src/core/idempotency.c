#include <assert.h>
#include "base/fd.h"
#include "base/hash.h"
#include "core/idempotency.h"
#include "core/internal.h"
#include "store/store.h"

#define STATUS_BEGUN 0 /* the body of the row is the id */

struct idempotency_entry {
	struct idempotency *all;
	const char *name; /* scope, newline, key; all in the arena */
	const char *scope, *key;
	/* What is stored for the key is asked for, then known, until a request takes the entry. */
	enum { ENTRY_ASKED, ENTRY_KNOWN, ENTRY_TAKEN } state;
	struct store_answer *row;	 /* that was found, or NULL; in the arena */
	char digest[2 * SHA256_LEN + 1]; /* of the request that has taken it */
	char id[ID_LEN + 1];		 /* of what is made */
	struct idempotency_waiter *waiters;
	struct idempotency_waiter *asking; /* those of them that are being called */
	struct arena arena;
	struct idempotency_answer answer; /* in the arena; status 0: none yet */
};

void idempotency_init(struct idempotency *all, struct core *core)
{
	all->core = core;
	map_init(&all->running, NULL);
}

static void entry_free(struct idempotency_entry *entry)
{
	arena_done(&entry->arena);
	free(entry);
}

void idempotency_done(struct idempotency *all)
{
	struct idempotency_entry *entry;
	/* Each flush may queue another write: the object's row, then the row of its answer. */
	for (int i = 0; i < 3; i++)
		store_flush(all->core->store);
	for (size_t at = 0; (entry = map_next(&all->running, &at));) {
		map_remove(&all->running, str_from(entry->name));
		entry_free(entry);
	}
	map_done(&all->running);
}

static void put_begun(
	struct idempotency_entry *entry, const char *id, store_done_fn *done, void *ctx)
{
	struct store_answer row = { .status = STATUS_BEGUN, .body = str_from(id) };
	str_copy(row.digest, sizeof row.digest, entry->digest);
	store_put_answer(entry->all->core->store, entry->scope, entry->key, &row, done, ctx);
}

static int wait_for(struct idempotency_entry *entry, struct idempotency_waiter *waiter)
{
	waiter->next = entry->waiters;
	entry->waiters = waiter;
	return IDEMPOTENCY_WAIT;
}

/* Those that wait ask again: the first whose request isn't answered takes the entry, and the others
 * wait for that request. */
static void on_found(void *ctx, const struct store_answer *found)
{
	struct idempotency_entry *entry = ctx;
	struct arena *arena = &entry->arena;
	entry->state = ENTRY_KNOWN;
	if (found) {
		entry->row = arena_alloc(arena, sizeof *found);
		*entry->row = *found;
		entry->row->body.data = arena_bytes(arena, found->body.data, found->body.len);
		entry->row->location = arena_text(arena, found->location);
	}
	entry->asking = take_ptr(entry->waiters);
	while (entry->asking) {
		struct idempotency_waiter *waiter = entry->asking;
		entry->asking = waiter->next;
		waiter->fn(waiter->ctx, NULL);
	}
	if (entry->state == ENTRY_TAKEN)
		return;
	map_remove(&entry->all->running, str_from(entry->name));
	entry_free(entry);
}

static struct idempotency_entry *entry_new(
	struct idempotency *all, const char *scope, const char *key, const char *name)
{
	struct idempotency_entry *entry = xzalloc(sizeof *entry);
	entry->all = all;
	arena_init(&entry->arena);
	entry->name = arena_text(&entry->arena, name);
	entry->scope = arena_text(&entry->arena, scope);
	entry->key = arena_text(&entry->arena, key);
	map_add(&all->running, str_from(entry->name), entry);
	store_find_answer(all->core->store, entry->scope, entry->key, on_found, entry);
	return entry;
}

/* IDEMPOTENCY_MADE with the id of the row, or IDEMPOTENCY_NEW with a new one. */
static int take(struct idempotency_entry *entry, const char *digest, char id[ID_LEN + 1])
{
	const struct store_answer *row = entry->row;
	bool has_id = row && row->body.len == ID_LEN && id_is_valid(row->body.data);
	entry->state = ENTRY_TAKEN;
	str_copy(entry->digest, sizeof entry->digest, digest);
	if (has_id)
		str_copy(id, ID_LEN + 1, row->body.data);
	else
		id_make(id);
	str_copy(entry->id, sizeof entry->id, id);
	if (has_id)
		return IDEMPOTENCY_MADE;
	put_begun(entry, id, NULL, NULL);
	return IDEMPOTENCY_NEW;
}

int idempotency_begin(struct idempotency *all, const struct request *request, const char *what,
	const char *key, struct str body, struct arena *arena, struct idempotency_waiter *waiter,
	struct idempotency_entry **entry, char id[ID_LEN + 1], struct idempotency_answer *answer,
	struct error *err)
{
	char principal[PRINCIPAL_NAME_SIZE];
	const char *scope =
		arena_printf(arena, "%s: %s", access_name(request->principal, principal), what);
	const char *name = arena_printf(arena, "%s\n%s", scope, key), *other;
	char digest[2 * SHA256_LEN + 1];
	sha256_of(body.data, body.len, digest);
	struct idempotency_entry *known = map_get(&all->running, str_from(name));
	if (!known)
		known = entry_new(all, scope, key, name);
	if (known->state == ENTRY_ASKED)
		return wait_for(known, waiter);
	const struct store_answer *row = known->row;
	other = known->state == ENTRY_TAKEN ? known->digest : row ? row->digest : digest;
	if (strcmp(other, digest))
		return fail_hint(err, ERR_CONFLICT, "use a new key for a new request",
			"the Idempotency-Key was used with another body");
	if (known->state == ENTRY_TAKEN)
		return wait_for(known, waiter);
	if (!row || row->status == STATUS_BEGUN) {
		*entry = known;
		return take(known, digest, id);
	}
	*answer = (struct idempotency_answer){ row->status,
		{ arena_bytes(arena, row->body.data, row->body.len), row->body.len },
		arena_text(arena, row->location) };
	return IDEMPOTENCY_KNOWN;
}

static void tell(struct idempotency_entry *entry, const struct idempotency_answer *answer)
{
	map_remove(&entry->all->running, str_from(entry->name));
	/* Each may ask again, and wait for another: the list is this entry's own. */
	while (entry->waiters) {
		struct idempotency_waiter *waiter = entry->waiters;
		entry->waiters = waiter->next;
		waiter->fn(waiter->ctx, answer);
	}
	entry_free(entry);
}

/* Ignores a failed commit: the object itself exists. */
static void on_put(void *ctx, const struct error *err)
{
	struct idempotency_entry *entry = ctx;
	tell(entry, &entry->answer);
}

static void on_freed(void *ctx, const struct error *err)
{
	tell(ctx, NULL);
}

static_assert(IDEMPOTENCY_BODY_MAX <= STORE_ANSWER_BODY_MAX, "the store takes every kept answer");

void idempotency_end(struct idempotency_entry *entry, const struct idempotency_answer *answer)
{
	struct store_answer row = { 0 };
	/* The row that says it was begun may not be written yet, and is what a retry must find. */
	if (!answer) {
		put_begun(entry, entry->id, on_freed, entry);
		return;
	}
	entry->answer.status = answer->status;
	entry->answer.body =
		(struct str){ arena_bytes(&entry->arena, answer->body.data, answer->body.len),
			answer->body.len };
	if (answer->location)
		entry->answer.location = arena_text(&entry->arena, answer->location);
	row.status = answer->status;
	row.body = entry->answer.body;
	row.location = entry->answer.location;
	str_copy(row.digest, sizeof row.digest, entry->digest);
	store_put_answer(entry->all->core->store, entry->scope, entry->key, &row, on_put, entry);
}

/* Requests with the same key wait until the row is committed, since they would find the old row. */
void idempotency_free(struct idempotency_entry *entry)
{
	put_begun(entry, "", on_freed, entry);
}

static bool forget(struct idempotency_waiter **list, struct idempotency_waiter *waiter)
{
	for (struct idempotency_waiter **w = list; *w; w = &(*w)->next)
		if (*w == waiter) {
			*w = waiter->next;
			return true;
		}
	return false;
}

void idempotency_forget(struct idempotency *all, struct idempotency_waiter *waiter)
{
	struct idempotency_entry *entry;
	for (size_t at = 0; (entry = map_next(&all->running, &at));)
		if (forget(&entry->waiters, waiter) || forget(&entry->asking, waiter))
			return;
}
