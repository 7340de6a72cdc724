/* tokens.h -- access tokens: made, listed, removed, and recognised.
 * 1. The text of a token is told once, when it is made. Memory and the store have its SHA-256.
 * 2. A token that was removed, has expired, or whose workspace is gone is refused at once.
 * 3. A wrong token is refused, never replaced by the uid of its bearer. */
#pragma once
#include "core/core.h"
#include "model/nouns/token.h"

#define TOKENS_MAX 1000

/* text: of the new token; NULL with an error, and when one was removed. */
typedef void core_token_fn(
	void *ctx, const struct token *token, const char *text, const struct error *err);
core_verb void core_token_create(const struct request *request, struct core *core,
	const struct token_wanted *wanted, core_token_fn *done, void *ctx);
/* Newest first. `cursor` and `next` as in core_list. */
core_verb int core_token_list(const struct request *request, struct core *core, const char *cursor,
	size_t limit, void (*fn)(void *ctx, const struct token *token), void *ctx,
	char next[CORE_CURSOR_SIZE], struct error *err);
/* ERR_NOT_FOUND. It is refused from now on, also when its row can't be deleted. */
core_verb void core_token_remove(const struct request *request, struct core *core, const char *id,
	core_token_fn *done, void *ctx);

/* ---- for core itself ---- */
void token_restore(struct core *core, const struct token *row);
void tokens_forget(struct core *core, const char *workspace); /* it is removed: its tokens too */
void tokens_done(struct core *core);
