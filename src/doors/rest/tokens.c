/* /v1/tokens */
#include "core/access/tokens.h"
#include "doors/rest/handlers.h"

/* The text of the token is in no log: bodies aren't logged, and this route keeps no answers. */
static void on_created(
	void *ctx, const struct token *token, const char *text, const struct error *err)
{
	struct token shown = err ? (struct token){ 0 } : *token;
	shown.text = text;
	pending_answer_made(ctx, err, "/v1/tokens/", shown.id, &token_record, &shown);
}

static int api_token_create(struct call *c, struct error *err)
{
	core_token_create(c->request, c->api->core, c->body, on_created, pending_begin(c));
	return 0;
}

static void print_item(void *ctx, const struct token *token)
{
	record_print(ctx, NULL, &token_record, token);
}

static int api_token_list(struct call *c, struct error *err)
{
	struct page page = call_page(c);
	return call_send_page(&page, core_token_list(c->request, c->api->core, page.cursor,
					     page.limit, print_item, page.j, page.next, err));
}

static void on_removed(
	void *ctx, const struct token *none, const char *text, const struct error *err)
{
	pending_answer_done(ctx, err);
}

static int api_token_delete(struct call *c, struct error *err)
{
	core_token_remove(c->request, c->api->core, c->id, on_removed, pending_begin(c));
	return 0;
}

const struct handler tokens_handlers[] = { { "listTokens", api_token_list },
	{ "createToken", api_token_create }, { "removeToken", api_token_delete }, { 0 } };
