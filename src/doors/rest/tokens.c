/* /v1/tokens */
#include "core/access/tokens.h"
#include "doors/call.h"
#include "doors/rest/schema.h"

/* The text of the token is in no log: bodies aren't logged, and this route keeps no answers. */
static void on_created(
	void *ctx, const struct token *token, const char *text, const struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct token shown = err ? (struct token){ 0 } : *token;

	shown.text = text;
	operation_answer_record(ctx, err, 201,
		err ? NULL : arena_printf(&arena, "/v1/tokens/%s", token->id), &token_record,
		&shown);
}

int api_token_create(struct call *c, struct error *err)
{
	core_token_create(c->request, c->api->core, c->body, on_created,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

static void print_item(void *ctx, const struct token *token)
{
	record_print(ctx, NULL, &token_record, token);
}

int api_token_list(struct call *c, struct error *err)
{
	const struct list_query *query = c->query;
	char next[CORE_CURSOR_SIZE] = "";

	if (core_token_list(c->request, c->api->core, query->cursor,
		    query->limit ? query->limit : LIMIT_DEFAULT, print_item, call_print_list(c),
		    next, err))
		return -1;
	call_send_list(c, next[0] ? next : NULL);
	return 0;
}

static void on_removed(
	void *ctx, const struct token *none, const char *text, const struct error *err)
{
	if (err)
		operation_fail(ctx, err);
	else
		operation_answer(ctx, 204, NULL, NULL);
}

int api_token_delete(struct call *c, struct error *err)
{
	core_token_remove(c->request, c->api->core, c->id, on_removed,
		operation_new(c, sizeof(struct operation)));
	return 0;
}
