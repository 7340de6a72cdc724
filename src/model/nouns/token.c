#include "model/nouns/token.h"

#include "base/str.h"
#include "model/records/rows.h"

#define CENTURY_MS (36525ull * 24 * 3600 * 1000)

const char *const token_scope_names[TOKEN_SCOPE_COUNT + 1] = { "admin", "user", "reviewer", NULL };

#define AT(member) offsetof(struct token, member)
static const struct field token_rows[] = {
	ROW(ID, id, NULL, FIELD_OUT | FIELD_COLUMN, .head = "ID", .column = 1),
	ROW(TEXT, name, NULL, FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE, .head = "NAME", .column = 2),
	ROW(CHOICE, scope,
		"admin: everything; user: look at workspaces and use them; reviewer: look at them "
		"and answer approvals",
		FIELD_OUT | FIELD_COLUMN, .names = token_scope_names, .head = "SCOPE", .column = 3),
	ROW(TEXT, workspace, "the id of the only workspace that it reaches; null: all",
		FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE),
	ROW(TEXT, workspace_name, "of that workspace", FIELD_OUT | FIELD_NULLABLE,
		.head = "WORKSPACE", .column = 4),
	ROW(TEXT, created_by, "the principal that made it", FIELD_OUT | FIELD_KEPT,
		.head = "CREATED BY", .column = 5),
	{ "created_at", FIELD_TIME, AT(created_ms), NULL, FIELD_OUT | FIELD_COLUMN,
		.kept = "created_ms", .head = "AGE", .column = 6 },
	{ "expires_at", FIELD_TIME, AT(expires_ms), "null: it doesn't expire",
		FIELD_OUT | FIELD_COLUMN | FIELD_NULLABLE, .kept = "expires_ms" },
	{ "last_used_at", FIELD_TIME, AT(last_used_ms), "within ten minutes; null: never",
		FIELD_OUT | FIELD_COLUMN | FIELD_NULLABLE, .kept = "last_used_ms",
		.head = "LAST USED", .column = 7 },
	ROW(TEXT, hash, NULL, FIELD_KEPT),
	ROW(TEXT, text,
		"the token itself, for `Authorization: Bearer`: only in the answer that made it",
		FIELD_OUT | FIELD_OPTIONAL),
};
#undef AT
const struct record token_record = { "Token", NULL, RECORD_ROWS(token_rows) };

static int check_name(const char *name, struct error *err)
{
	char shown[4 * TOKEN_NAME_MAX + 8];
	str_printable(shown, sizeof shown, str_from(name));
	return strcmp(shown, name) != 0
		       ? fail(err, ERR_INVALID, "the name has characters that can't be shown")
		       : 0;
}

#define AT(member) offsetof(struct token_wanted, member)
static const struct field token_wanted_rows[] = {
	ROW(CHOICE, scope, "user when not given", .names = token_scope_names,
		.has = FIELD_HAS(struct token_wanted, has_scope)),
	ROW(TEXT, workspace, "id or name of the only workspace that it reaches; all when not given",
		.least = 1),
	ROW(TEXT, name, "for lists", .least = 1, .most = TOKEN_NAME_MAX, .check = check_name),
	{ "ttl", FIELD_DURATION, AT(ttl_ms), "it expires after this time; never when not given",
		.least = 1000, .most = CENTURY_MS },
};
#undef AT
const struct record token_wanted_record = { "TokenWanted", NULL, RECORD_ROWS(token_wanted_rows),
	FIELD_IN };
