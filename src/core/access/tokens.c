#include "core/access/audit_records.h"
#include "core/access/tokens.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include "base/clock.h"
#include "base/fault.h"
#include "core/access/internal.h"
#include "core/waits.h"
#include "format/http/token.h"

#define USE_SAVED_MS 600000 /* how exact last_used_at is */
/* Rate of logins with wrong tokens per uid: this many at once, then one a second is checked. */
#define WRONG_BURST 20
#define WRONG_EVERY_MS 1000

struct core_token {
	struct core *core;
	struct token model;
	struct arena arena; /* of the model's texts */
	bool is_removed;    /* refused; its row isn't deleted yet */
	struct core_token *newer, *older;
};

/* ---- those that are known ---- */

static struct core_token *add(struct core *core, const struct token *model)
{
	struct core_token *t = xzalloc(sizeof *t);
	t->core = core;
	arena_init(&t->arena);
	t->model = *model;
	t->model.text = NULL;
	record_copy_texts(&token_record, &t->arena, &t->model);
	/* Times of creation are unique: they serve as cursors. */
	if (core->access->newest_token &&
		t->model.created_ms <= core->access->newest_token->model.created_ms)
		t->model.created_ms = core->access->newest_token->model.created_ms + 1;
	t->older = core->access->newest_token;
	if (t->older)
		t->older->newer = t;
	core->access->newest_token = t;
	/* A lookup by hash takes no longer for a token that is nearly right. */
	map_set(&core->access->tokens, str_from(t->model.hash), t);
	return t;
}

static void drop(struct core_token *t)
{
	struct core *core = t->core;
	if (map_get(&core->access->tokens, str_from(t->model.hash)) == t)
		map_remove(&core->access->tokens, str_from(t->model.hash));
	*(t->newer ? &t->newer->older : &core->access->newest_token) = t->older;
	if (t->older)
		t->older->newer = t->newer;
	arena_done(&t->arena);
	free(t);
}

static struct core_token *find(const struct core *core, const char *id)
{
	for (struct core_token *t = core->access->newest_token; t; t = t->older)
		if (!strcmp(t->model.id, id))
			return t;
	return NULL;
}

void token_restore(struct core *core, const struct token *row)
{
	add(core, row);
}

void tokens_done(struct core *core)
{
	while (core->access->newest_token)
		drop(core->access->newest_token);
}

/* With the name that its workspace has now. */
static struct token as_shown(const struct core_token *t)
{
	const struct core_workspace *w =
		t->model.workspace ? map_get(&t->core->ids, str_from(t->model.workspace)) : NULL;
	struct token shown = t->model;
	shown.workspace_name = w ? w->model.name : NULL;
	return shown;
}

static void tell(const struct core_token *t, const char *type)
{
	journal_emit(&t->core->journal, type, t->model.workspace ? t->model.workspace : "",
		t->model.name, "token", t->model.id, NULL);
}

void tokens_forget(struct core *core, const char *workspace)
{
	for (struct core_token *t = core->access->newest_token, *older; t; t = older) {
		older = t->older;
		if (!t->model.workspace || strcmp(t->model.workspace, workspace) != 0)
			continue;
		store_remove(core->store, &store_tokens, t->model.id, NULL, NULL, NULL);
		t->is_removed = true;
		tell(t, "token.removed");
		drop(t);
	}
}

/* ---- authentication ---- */

/* The wall clock, as it is shown: a token is for a date. */
static bool is_valid(const struct core_token *t)
{
	return t && !t->is_removed &&
	       (!t->model.expires_ms || t->model.expires_ms > clock_now_ms());
}

/* One for each user; one for each IPv4 address or IPv6 network of 64 bits: a host has all the
 * addresses of such a network. */
static unsigned slot_of(const struct access_from *from)
{
	struct in6_addr v6 = { 0 };
	uint32_t hash = 2166136261u; /* FNV-1a */
	if (!from->address)
		return from->uid % WRONG_TOKENS_SLOTS;
	size_t len = inet_pton(AF_INET6, from->address, &v6) == 1 ? 8 : strlen(from->address);
	const char *bytes = len == 8 ? (const char *)v6.s6_addr : from->address;
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
	return hash % WRONG_TOKENS_SLOTS;
}

/* Whether a wrong token from there is looked at, or refused with ERR_LIMIT. A token has 256 bits
 * and can't be guessed at any rate: this bounds what wrong ones write to the log. */
static bool may_be_wrong(struct core *core, const struct access_from *from)
{
	struct wrong_tokens *wrong = &core->access->wrong_tokens[slot_of(from)];
	uint64_t now_ms = clock_monotonic_ms();
	uint64_t refill = (now_ms - wrong->at_ms) / WRONG_EVERY_MS;
	if (refill) {
		wrong->count = wrong->count > refill ? wrong->count - (unsigned)refill : 0;
		wrong->at_ms = now_ms;
	}
	if (wrong->count >= WRONG_BURST)
		return false;
	wrong->count++;
	return true;
}

static int refuse(
	struct core *core, const struct access_from *from, const char *why, struct error *err)
{
	char uid[32];
	if (!may_be_wrong(core, from))
		return fail_hint(err, ERR_LIMIT, "carrel token ls lists tokens",
			"too many requests with a wrong token; wait a second");
	str_format(uid, sizeof uid, "uid %u", (unsigned)from->uid);
	log_record(&core->log, LOG_LEVEL_WARN, "a token was refused", "from",
		from->address ? from->address : uid, "error", why, NULL);
	audit_login(core, from, NULL, why);
	return fail_hint(err, ERR_UNAUTHENTICATED, "carrel token create makes a token", "%s", why);
}

int access_token(struct core *core, struct str header, const struct access_from *from,
	struct arena *arena, const struct principal **principal, struct error *err)
{
	char hash[2 * SHA256_LEN + 1];
	struct str text = token_of_header(header);
	if (!text.data)
		return refuse(core, from, "the Authorization header is not 'Bearer TOKEN'", err);
	if (!token_is_whole(text))
		return refuse(core, from, "the token is incomplete or mistyped", err);
	sha256_of(text.data, text.len, hash);
	struct core_token *t = map_get(&core->access->tokens, str_from(hash));
	if (!t || t->is_removed)
		return refuse(core, from, "the token is unknown, or was removed", err);
	if (!is_valid(t))
		return refuse(core, from, "the token has expired", err);
	int64_t now_ms = clock_now_ms();
	if (!t->model.last_used_ms)
		audit_login(core, from, t->model.id, NULL);
	if (now_ms - t->model.last_used_ms >= USE_SAVED_MS || now_ms < t->model.last_used_ms) {
		t->model.last_used_ms = now_ms;
		store_put(core->store, &store_tokens, &t->model, NULL, NULL);
	}
	struct principal *made = arena_alloc(arena, sizeof *made);
	*made = (struct principal){ .kind = PRINCIPAL_TOKEN,
		.uid = from->uid,
		.address = arena_text(arena, from->address),
		.token_id = arena_text(arena, t->model.id),
		.scopes = access_scopes(t->model.scope),
		.workspace = arena_text(arena, t->model.workspace) };
	*principal = made;
	return 0;
}

int access_none(
	struct core *core, const struct access_from *from, const char *why, struct error *err)
{
	return refuse(core, from, why, err);
}

bool access_has_token(const struct core *core)
{
	for (const struct core_token *t = core->access->newest_token; t; t = t->older)
		if (is_valid(t))
			return true;
	return false;
}

bool access_holds(const struct core *core, const struct request *request)
{
	const struct principal *principal = request->principal;
	return principal->kind != PRINCIPAL_TOKEN || is_valid(find(core, principal->token_id));
}

bool access_name_holds(const struct core *core, const char *name)
{
	return !str_starts_with(str_from(name), ACCESS_TOKEN_NAME) ||
	       is_valid(find(core, name + strlen(ACCESS_TOKEN_NAME)));
}

/* ---- verbs ---- */

/* What a verb asks for, when it has been checked; its fiber has a copy. */
struct operation {
	struct core *core;
	core_token_fn *done;
	void *ctx;
	char id[ID_LEN + 1];
	char text[TOKEN_LEN + 1]; /* of a new one */
	struct error refused;	  /* code ERR_NONE: it may be done */
};

static int store_new(
	struct fiber *fiber, const struct operation *op, struct token *shown, struct error *err)
{
	struct core_token *t = find(op->core, op->id);
	int failed = wait_put(fiber, op->core, &store_tokens, &t->model, err);
	t = find(op->core, op->id);
	if (!failed && (!t || t->is_removed))
		failed = fail(err, ERR_CONFLICT, "the token was removed while it was made");
	if (failed && t)
		drop(t);
	if (failed)
		return -1;
	fault_point("core_token_created");
	tell(t, "token.created");
	*shown = as_shown(t);
	return 0;
}

static void run_token_creation(struct fiber *fiber, void *ctx)
{
	struct operation op = *(const struct operation *)ctx;
	struct token shown;
	struct error err = op.refused;
	explicit_bzero(ctx, sizeof op);
	int failed = err.code ? fail_later(fiber, op.core) : store_new(fiber, &op, &shown, &err);
	op.done(op.ctx, failed ? NULL : &shown, failed ? NULL : op.text, failed ? &err : NULL);
	explicit_bzero(&op, sizeof op);
}

static void make_text(char text[TOKEN_LEN + 1])
{
	unsigned char random[TOKEN_RANDOM_BYTES];
	id_random(random, sizeof random);
	token_print(random, text);
	explicit_bzero(random, sizeof random);
}

static int check_room(const struct core *core, struct error *err)
{
	size_t count = 0;
	for (const struct core_token *t = core->access->newest_token; t; t = t->older)
		count++;
	return count >= TOKENS_MAX ? fail_hint(err, ERR_LIMIT, "carrel token rm removes one",
					     "there are %zu tokens already", count)
				   : 0;
}

void core_token_create(const struct request *request, struct core *core,
	const struct token_wanted *wanted, core_token_fn *done, void *ctx)
{
	struct operation op = { .core = core, .done = done, .ctx = ctx };
	struct core_workspace *w = NULL;
	char hash[2 * SHA256_LEN + 1], name[PRINCIPAL_NAME_SIZE];
	if (access_check(core, request, VERB_TOKEN_CREATE, NULL, &op.refused) ||
		check_room(core, &op.refused) ||
		(wanted->workspace &&
			core_find(request, core, wanted->workspace, &w, &op.refused))) {
		fiber_start(run_token_creation, &op);
		return;
	}
	make_text(op.text);
	sha256_of(op.text, TOKEN_LEN, hash);
	id_make(op.id);
	struct token model = { .scope = wanted->has_scope ? (enum token_scope)wanted->scope
							  : TOKEN_USER,
		.name = wanted->name,
		.workspace = w ? w->model.id : NULL,
		.hash = hash,
		.created_by = access_name(request->principal, name),
		.created_ms = clock_now_ms() };
	memcpy(model.id, op.id, sizeof model.id);
	if (wanted->ttl_ms)
		model.expires_ms = model.created_ms + (int64_t)wanted->ttl_ms;
	add(core, &model);
	fiber_start(run_token_creation, &op);
}

int core_token_list(const struct request *request, struct core *core, const char *cursor,
	size_t limit, void (*fn)(void *ctx, const struct token *token), void *ctx,
	char next[CORE_CURSOR_SIZE], struct error *err)
{
	struct core_page page;
	if (access_check(core, request, VERB_TOKEN_LIST, NULL, err) ||
		core_page_begin(&page, cursor, limit, next, err))
		return -1;
	for (const struct core_token *t = core->access->newest_token;
		t && !core_page_is_full(&page); t = t->older)
		if (!t->is_removed && core_page_takes(&page, t->model.created_ms)) {
			struct token shown = as_shown(t);
			fn(ctx, &shown);
		}
	return 0;
}

static void run_token_removal(struct fiber *fiber, void *ctx)
{
	const struct operation op = *(const struct operation *)ctx;
	struct error err = op.refused;
	int failed = err.code ? fail_later(fiber, op.core)
			      : wait_remove(fiber, op.core, &store_tokens, op.id, &err);
	struct core_token *t = find(op.core, op.id);
	if (!failed && t)
		drop(t);
	op.done(op.ctx, NULL, NULL, failed ? &err : NULL);
}

void core_token_remove(const struct request *request, struct core *core, const char *id,
	core_token_fn *done, void *ctx)
{
	struct operation op = { .core = core, .done = done, .ctx = ctx };
	struct core_token *t = find(core, id);
	if (!access_check(core, request, VERB_TOKEN_REMOVE, NULL, &op.refused) && !t)
		fail_hint(&op.refused, ERR_NOT_FOUND, "carrel token ls lists their ids",
			"there is no token '%s'", id);
	bool is_refused = op.refused.code != ERR_NONE;
	if (!is_refused) {
		memcpy(op.id, t->model.id, sizeof op.id);
		t->is_removed = true;
		fault_point("core_token_removed");
	}
	fiber_start(run_token_removal, &op);
	if (!is_refused)
		tell(t, "token.removed");
}
