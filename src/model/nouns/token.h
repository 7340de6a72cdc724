/* token.h -- an access token: the noun, without its text, of which only a hash is kept. Pure. */
#pragma once
#include "base/arena.h"
#include "base/id.h"
#include "model/records/record.h"

#define TOKEN_NAME_MAX 64
/* What its bearer may do. */
enum token_scope {
	TOKEN_ADMIN,	/* everything */
	TOKEN_USER,	/* look at workspaces, and use them */
	TOKEN_REVIEWER, /* look at them, and answer approvals */
	TOKEN_SCOPE_COUNT
};
extern const char *const token_scope_names[TOKEN_SCOPE_COUNT + 1]; /* "admin" …, NULL */

struct token {
	char id[ID_LEN + 1];
	enum token_scope scope;
	const char *name;	    /* or NULL */
	const char *workspace;	    /* id of the only workspace that it reaches, or NULL: all */
	const char *workspace_name; /* as it is now; only where it is shown, or NULL */
	const char *hash;	    /* SHA-256 of its text, in hex */
	const char *text;	    /* only of a new one, to be shown once; else NULL */
	const char *created_by;
	int64_t created_ms, expires_ms, last_used_ms; /* Unix time; 0: never */
};
extern const struct record token_record;

/* What is asked for. */
struct token_wanted {
	int scope; /* enum token_scope */
	bool has_scope;
	const char *workspace, *name; /* or NULL */
	uint64_t ttl_ms;	      /* 0: it doesn't expire */
};
extern const struct record token_wanted_record;
