/* Operations on access tokens. */
#include "model/nouns/token.h"
#include "model/operations/operation.h"

static const struct operation operations[] = {
	{ "GET", "/v1/tokens", "listTokens", "token ls", VERB_TOKEN_LIST,
		.summary = "List access tokens",
		.more = "Without their texts, which are shown only once. Needs the scope admin.",
		PAGES, LISTED("Tokens", token_record, "Newest first.") },
	{ "POST", "/v1/tokens", "createToken", "token create", VERB_TOKEN_CREATE,
		.summary = "Create an access token",
		.more = "`text` of the answer is the credential; it can't be shown again. A token "
			"with `workspace` reaches nothing else. Needs the scope admin.",
		.flags = ROUTE_LOCATION | ROUTE_OPTIONAL,
		TAKES(token_wanted_record, struct token_wanted),
		ANSWER(201, TYPE_JSON, &token_record, "It was created."),
		.errors = { 404, 429, 507 } },
	{ "DELETE", "/v1/tokens/{id}", "removeToken", "token rm", VERB_TOKEN_REMOVE,
		.summary = "Remove an access token, which is refused from then on",
		.more = "The token is refused at once, and streams that were opened with it end. "
			"Needs the scope admin.",
		REMOVED, .errors = { 507 } },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "Token",
		"{'id':'48qtd6olg40ies2t9oqd','name':'ci','scope':'user','workspace':null,"
		"'workspace_name':null,'created_by':'uid 0',"
		"'created_at':'2026-01-02T10:00:00.000Z','expires_at':'2026-02-01T10:00:00.000Z',"
		"'last_used_at':null}" },
	{ "TokenWanted", "{'name':'ci','scope':'user','ttl':'30d'}" },
	{ 0 },
};

const struct operation_table token_operations = { "tokens", operations, examples };
