/* access.h -- the caller of a verb (principal), and whether the verb is allowed for it.
 * 1. Every verb of core takes a request as its first argument and begins with access_check, which
 * is the one place that authorises and records. The table of verbs (access.c) says what each needs.
 * 2. A request comes from one of the authenticators below. Its members are private to this room,
 * and a verb that gets NULL does not compile: no verb runs without a principal.
 * 3. What continues a granted verb (a listener, a write, a job, a hold) takes the handle that the
 * verb gave, and no request.
 * 4. A principal that is bound to one workspace finds no other: what is in another is ERR_NOT_FOUND
 * to a verb that looks for it, and is left out of lists. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "model/nouns/token.h"
#include "model/operations/verb.h"

struct core;
struct core_workspace;
struct request;
#define core_verb __attribute__((nonnull(1)))

enum scope {
	SCOPE_READ = 1,	  /* look at workspaces, execs, files, events */
	SCOPE_USE = 2,	  /* make, change and remove them; run commands */
	SCOPE_REVIEW = 4, /* answer approvals; never a sandbox's */
	SCOPE_ADMIN = 8,  /* the daemon itself; never a sandbox's */
	SCOPE_ALL = 15,
};
/* Doors have names, which are the same wherever they are shown. These two core knows. */
#define DOOR_CORE "core" /* timers of core itself */
#define DOOR_CLI "cli"	 /* carrel, which shows hints to a person */

enum noun {
	NOUN_WORKSPACE,
	NOUN_EXEC,
	NOUN_FILE,
	NOUN_ARCHIVE,
	NOUN_SNAPSHOT,
	NOUN_ENVIRONMENT,
	NOUN_TEMPLATE,
	NOUN_EVENT,
	NOUN_DAEMON,
	NOUN_TREE,
	NOUN_PORT,
	NOUN_AUDIT,
	NOUN_TOKEN,
	NOUN_APPROVAL,
	NOUN_CODE,
	NOUN_CASE,
	NOUN_CELL,
	NOUN_AGENT,
	NOUN_TASK,
	NOUN_TOOL,
	NOUN_PACKAGE,
	NOUN_DEPLOYMENT
};
enum verb_flags {
	VERB_DETAILED = 1, /* records its grants itself, with more members */
	VERB_FREES =
		2, /* frees space or ends something: allowed although nothing can be recorded */
};
struct verb_row {
	enum noun noun;
	const char *name; /* "create": with its noun it is "workspace.create" */
	enum scope scope;
	bool is_audited; /* granted ones are recorded; refused ones always are */
	unsigned flags;	 /* enum verb_flags */
};
extern const struct verb_row verb_table[VERB_COUNT];

unsigned access_scopes(enum token_scope scope); /* of enum scope: what it stands for */

/* ---- authenticators ---- */
struct principal; /* private too */
#define PRINCIPAL_NAME_SIZE 128
#define ACCESS_FOR " for "	   /* in the name of an agent, before that of its caller */
#define ACCESS_TOKEN_NAME "token " /* so begins the name of a token, and its id follows */
/* A peer of the unix socket, by the uid of SO_PEERCRED: the scopes that core_options gives to that
 * uid; none: ERR_DENIED. *principal lives in `arena`. */
int access_peer(const struct core *core, uid_t uid, struct arena *arena,
	const struct principal **principal, struct error *err);
/* Where a request comes from: for the audit log, and to slow failed logins. */
struct access_from {
	uid_t uid;	     /* of a unix socket; else ACCESS_NO_UID */
	const char *address; /* of TCP; NULL: a unix socket */
};
#define ACCESS_NO_UID ((uid_t)-1)
/* The bearer of a token (core/access/tokens.c): header is the value of `Authorization`.
 * ERR_UNAUTHENTICATED: the token is wrong, was removed or has expired; ERR_LIMIT: too many from
 * there were. */
int access_token(struct core *core, struct str header, const struct access_from *from,
	struct arena *arena, const struct principal **principal, struct error *err);
/* The subject of a client certificate that was verified, which the configuration gives that scope.
 * Lives in `arena`. */
const struct principal *access_subject(const char *subject, enum token_scope scope,
	const struct access_from *from, struct arena *arena);
/* A request by TCP that names no principal (`why`): records it, as a failed login, and fails with
 * ERR_UNAUTHENTICATED or ERR_LIMIT. */
int access_none(
	struct core *core, const struct access_from *from, const char *why, struct error *err);
const char *access_name(const struct principal *principal, char out[PRINCIPAL_NAME_SIZE]);
/* Whose share of something scarce it takes: an agent takes that of the principal it acts for.
 * Points into `name`. */
const char *access_holder(const char *name);
/* A principal that may do nothing: for routes that call no verb. */
const struct principal *access_nobody(void);
/* A client of an agent whose routes need no credential: no scope. Lives in `arena`. */
const struct principal *access_client(
	const char *agent, const struct access_from *from, struct arena *arena);
/* Whether it is one of access_client, for that agent. */
bool access_is_client(const struct request *request, const char *agent);
/* What an agent does in its workspaces for `request`, with these scopes: its own principal, whose
 * name has that of the caller. Lives in `arena`. */
core_verb const struct request *access_agent(
	const struct request *request, const char *agent, unsigned scopes, struct arena *arena);
/* The same for a caller by its name (access_caller), when its request is long gone: it is bound to
 * no workspace. */
const struct request *access_agent_of(
	const char *agent, const char *caller, unsigned scopes, struct arena *arena);
/* Whether there is a token that would be accepted. */
bool access_has_token(const struct core *core);
/* Whether the principal of a request that goes on (a stream of events) would still be accepted: its
 * token wasn't removed and has not expired. */
bool access_holds(const struct core *core, const struct request *request);
/* The same of a principal whose name (access_name) was kept. */
bool access_name_holds(const struct core *core, const char *name);
/* Whether such a name is that of a client of an agent without authentication. */
bool access_name_is_client(const char *name);
/* What that principal asks for at `door`, a literal; lives in `arena`, and points at both. */
core_verb const struct request *access_request(
	const struct principal *principal, const char *door, const char *id, struct arena *arena);
/* A copy that lives in `arena`: for what goes on after the HTTP request has ended. */
core_verb const struct request *access_keep(const struct request *request, struct arena *arena);
/* The name of its principal, and the id of the one workspace that it reaches, or NULL: all. */
core_verb const char *access_caller(const struct request *request, char out[PRINCIPAL_NAME_SIZE]);
core_verb const char *access_only(const struct request *request);
core_verb const char *access_id(const struct request *request); /* of the log, "" if none */
/* Whether a person at the command line reads the answer. */
core_verb bool access_is_cli(const struct request *request);
/* Why the last verb of that request was ERR_POLICY or ERR_APPROVAL_REQUIRED: the trail of the
 * policy as a JSON list, "[]" when there is none. Lives as long as the request. */
core_verb const char *access_trail(const struct request *request);
/* Of an exec that was started with EXEC_POLICY_LEARN: {"type","decision","decision_with_rules",
 * "rules","trail"}; else NULL. */
core_verb const char *access_learned(const struct request *request);
