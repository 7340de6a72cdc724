/* idempotency.h -- the same key with the same request gives the same answer, also while the first
 * is still being worked on, and after a crash at any point.
 * 1. The key is written down with the id of the object that will be made, before the object is: the
 * store commits in order. When core dies in between, a retry finds the object by that id, or makes
 * it anew.
 * 2. A request that fails leaves its key free: it may be tried again.
 * 3. Keys are a principal's own: nobody gets the answer to the request of another.
 * 4. What is stored is asked of the store: the first that comes with a key waits, too. */
#pragma once
#include "base/arena.h"
#include "base/map.h"
#include "core/core.h"

#define IDEMPOTENCY_KEY_MAX 255
#define IDEMPOTENCY_BODY_MAX (1u << 20) /* of an answer that is kept */

struct idempotency {
	struct core *core;
	struct map running; /* by principal, request and key */
};
struct idempotency_answer {
	int status;
	struct str body;
	const char *location; /* or NULL */
};
struct idempotency_waiter {
	/* answer NULL: what is stored is known now, or the first one failed; ask again. */
	void (*fn)(void *ctx, const struct idempotency_answer *answer);
	void *ctx;
	struct idempotency_waiter *next;
};
struct idempotency_entry; /* a request in progress */

enum idempotency_is {
	IDEMPOTENCY_NEW,   /* go on: the object gets id; then idempotency_end with *entry */
	IDEMPOTENCY_MADE,  /* core died after it was made: there may be an object `id`; if not, go
			    * on as with NEW. *entry is to be ended too */
	IDEMPOTENCY_KNOWN, /* *answer, in the arena */
	IDEMPOTENCY_WAIT,  /* waiter is called */
};
void idempotency_init(struct idempotency *all, struct core *core);
/* Call it after the requests have ended, so that none waits. Flushes the store. */
void idempotency_done(struct idempotency *all);
/* `what`: "POST /v1/workspaces". An enum idempotency_is, or -1: ERR_CONFLICT, the key was used
 * with another body. */
int idempotency_begin(struct idempotency *all, const struct request *request, const char *what,
	const char *key, struct str body, struct arena *arena, struct idempotency_waiter *waiter,
	struct idempotency_entry **entry, char id[ID_LEN + 1], struct idempotency_answer *answer,
	struct error *err);
/* What was answered (2xx, copied), or NULL: it failed. The entry isn't the caller's any more;
 * waiting requests are answered, from here or after the commit. */
void idempotency_end(struct idempotency_entry *entry, const struct idempotency_answer *answer);
/* It failed before it did anything: the next one with the key begins anew, with another id. */
void idempotency_free(struct idempotency_entry *entry);
/* The client has disconnected: waiter won't be called. */
void idempotency_forget(struct idempotency *all, struct idempotency_waiter *waiter);
