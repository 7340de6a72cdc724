#include "core/access/access.h"

#include "base/clock.h"
#include "core/access/audit_records.h"
#include "core/access/internal.h"

const struct verb_row verb_table[VERB_COUNT] = {
	[VERB_WORKSPACE_CREATE] = { NOUN_WORKSPACE, "create", SCOPE_USE, true, VERB_DETAILED },
	[VERB_WORKSPACE_LIST] = { NOUN_WORKSPACE, "list", SCOPE_READ, false },
	[VERB_WORKSPACE_GET] = { NOUN_WORKSPACE, "get", SCOPE_READ, false },
	[VERB_WORKSPACE_MEASURE] = { NOUN_WORKSPACE, "measure", SCOPE_READ, false },
	[VERB_WORKSPACE_UPDATE] = { NOUN_WORKSPACE, "update", SCOPE_USE, true },
	[VERB_WORKSPACE_REMOVE] = { NOUN_WORKSPACE, "remove", SCOPE_USE, true, VERB_FREES },
	[VERB_WORKSPACE_SUSPEND] = { NOUN_WORKSPACE, "suspend", SCOPE_USE, true, VERB_FREES },
	[VERB_WORKSPACE_RESUME] = { NOUN_WORKSPACE, "resume", SCOPE_USE, true },
	[VERB_WORKSPACE_HEALTH] = { NOUN_WORKSPACE, "health", SCOPE_USE, false },
	[VERB_WORKSPACE_REPAIR] = { NOUN_WORKSPACE, "repair", SCOPE_USE, true },
	[VERB_WORKSPACE_DIFF] = { NOUN_WORKSPACE, "diff", SCOPE_READ, false },
	[VERB_WORKSPACE_APPLY] = { NOUN_WORKSPACE, "apply", SCOPE_USE, true },
	[VERB_WORKSPACE_PACKAGES] = { NOUN_WORKSPACE, "packages", SCOPE_READ, false },
	[VERB_WORKSPACE_INSTALL] = { NOUN_WORKSPACE, "install", SCOPE_USE, true, VERB_DETAILED },
	[VERB_WORKSPACE_UNINSTALL] = { NOUN_WORKSPACE, "uninstall", SCOPE_USE, true,
		VERB_DETAILED | VERB_FREES },
	[VERB_WORKSPACE_VERIFY] = { NOUN_WORKSPACE, "verify", SCOPE_USE, false },
	[VERB_EXEC_START] = { NOUN_EXEC, "start", SCOPE_USE, true, VERB_DETAILED },
	[VERB_EXEC_LEARN] = { NOUN_EXEC, "learn", SCOPE_ADMIN, true, VERB_DETAILED },
	[VERB_EXEC_LIST] = { NOUN_EXEC, "list", SCOPE_READ, false },
	[VERB_EXEC_GET] = { NOUN_EXEC, "get", SCOPE_READ, false },
	[VERB_EXEC_OUTPUT] = { NOUN_EXEC, "output", SCOPE_READ, false },
	[VERB_EXEC_SIGNAL] = { NOUN_EXEC, "signal", SCOPE_USE, true, VERB_FREES },
	[VERB_EXEC_STDIN] = { NOUN_EXEC, "stdin", SCOPE_USE, false },
	[VERB_EXEC_RESIZE] = { NOUN_EXEC, "resize", SCOPE_USE, false },
	[VERB_FILE_READ] = { NOUN_FILE, "read", SCOPE_READ, false },
	[VERB_FILE_WRITE] = { NOUN_FILE, "write", SCOPE_USE, true, VERB_DETAILED },
	[VERB_FILE_REMOVE] = { NOUN_FILE, "remove", SCOPE_USE, true, VERB_DETAILED | VERB_FREES },
	[VERB_ARCHIVE_LIST] = { NOUN_ARCHIVE, "list", SCOPE_READ, false },
	[VERB_ARCHIVE_REMOVE] = { NOUN_ARCHIVE, "remove", SCOPE_USE, true, VERB_FREES },
	[VERB_ARCHIVE_RESTORE] = { NOUN_ARCHIVE, "restore", SCOPE_USE, true },
	[VERB_ARCHIVE_UPLOAD] = { NOUN_ARCHIVE, "upload", SCOPE_USE, true },
	[VERB_SNAPSHOT_CREATE] = { NOUN_SNAPSHOT, "create", SCOPE_USE, true },
	[VERB_SNAPSHOT_LIST] = { NOUN_SNAPSHOT, "list", SCOPE_READ, false },
	[VERB_SNAPSHOT_GET] = { NOUN_SNAPSHOT, "get", SCOPE_READ, false },
	[VERB_SNAPSHOT_REMOVE] = { NOUN_SNAPSHOT, "remove", SCOPE_USE, true, VERB_FREES },
	[VERB_SNAPSHOT_ROLLBACK] = { NOUN_SNAPSHOT, "rollback", SCOPE_USE, true },
	[VERB_SNAPSHOT_FORK] = { NOUN_SNAPSHOT, "fork", SCOPE_USE, true },
	[VERB_SNAPSHOT_VERIFY] = { NOUN_SNAPSHOT, "verify", SCOPE_READ, false },
	[VERB_SNAPSHOT_PUSH] = { NOUN_SNAPSHOT, "push", SCOPE_USE, true },
	[VERB_SNAPSHOT_PULL] = { NOUN_SNAPSHOT, "pull", SCOPE_USE, true },
	[VERB_ENVIRONMENT_LIST] = { NOUN_ENVIRONMENT, "list", SCOPE_READ, false },
	[VERB_ENVIRONMENT_EXPORT] = { NOUN_ENVIRONMENT, "export", SCOPE_USE, true },
	[VERB_ENVIRONMENT_IMPORT] = { NOUN_ENVIRONMENT, "import", SCOPE_READ, true },
	[VERB_ENVIRONMENT_REMOVE] = { NOUN_ENVIRONMENT, "remove", SCOPE_USE, true, VERB_FREES },
	[VERB_TEMPLATE_LIST] = { NOUN_TEMPLATE, "list", SCOPE_READ, false },
	[VERB_TEMPLATE_GET] = { NOUN_TEMPLATE, "get", SCOPE_READ, false },
	[VERB_TEMPLATE_ADD] = { NOUN_TEMPLATE, "add", SCOPE_USE, true },
	[VERB_TEMPLATE_REMOVE] = { NOUN_TEMPLATE, "remove", SCOPE_USE, true, VERB_FREES },
	[VERB_TEMPLATE_FETCH] = { NOUN_TEMPLATE, "fetch", SCOPE_READ, false },
	[VERB_EVENT_LISTEN] = { NOUN_EVENT, "listen", SCOPE_READ, false },
	[VERB_DAEMON_MEASURE] = { NOUN_DAEMON, "measure", SCOPE_READ, false },
	[VERB_TREE_CREATE] = { NOUN_TREE, "create", SCOPE_USE, true },
	[VERB_TREE_LIST] = { NOUN_TREE, "list", SCOPE_READ, false },
	[VERB_TREE_REMOVE] = { NOUN_TREE, "remove", SCOPE_USE, true, VERB_FREES },
	[VERB_PORT_LIST] = { NOUN_PORT, "list", SCOPE_READ, false },
	[VERB_PORT_CONNECT] = { NOUN_PORT, "connect", SCOPE_USE, true, VERB_DETAILED },
	[VERB_AUDIT_READ] = { NOUN_AUDIT, "read", SCOPE_ADMIN | SCOPE_REVIEW, false },
	[VERB_TOKEN_CREATE] = { NOUN_TOKEN, "create", SCOPE_ADMIN, true },
	[VERB_TOKEN_LIST] = { NOUN_TOKEN, "list", SCOPE_ADMIN, false },
	[VERB_TOKEN_REMOVE] = { NOUN_TOKEN, "remove", SCOPE_ADMIN, true, VERB_FREES },
	[VERB_APPROVAL_LIST] = { NOUN_APPROVAL, "list", SCOPE_READ, false },
	[VERB_APPROVAL_GET] = { NOUN_APPROVAL, "get", SCOPE_READ, false },
	[VERB_APPROVAL_ANSWER] = { NOUN_APPROVAL, "answer", SCOPE_REVIEW, true },
	[VERB_CODE_RUN] = { NOUN_CODE, "run", SCOPE_USE, true },
	[VERB_CASE_CREATE] = { NOUN_CASE, "create", SCOPE_USE, true },
	[VERB_CASE_LIST] = { NOUN_CASE, "list", SCOPE_READ, false },
	[VERB_CASE_GET] = { NOUN_CASE, "get", SCOPE_READ, false },
	[VERB_CASE_REMOVE] = { NOUN_CASE, "remove", SCOPE_USE, true, VERB_FREES },
	[VERB_CELL_START] = { NOUN_CELL, "start", SCOPE_USE, true },
	[VERB_CELL_GET] = { NOUN_CELL, "get", SCOPE_READ, false },
	[VERB_AGENT_ADD] = { NOUN_AGENT, "add", SCOPE_ADMIN, true },
	[VERB_AGENT_LIST] = { NOUN_AGENT, "list", SCOPE_READ, false },
	[VERB_AGENT_GET] = { NOUN_AGENT, "get", SCOPE_READ, false },
	[VERB_AGENT_REMOVE] = { NOUN_AGENT, "remove", SCOPE_ADMIN, true, VERB_FREES },
	[VERB_TASK_SEND] = { NOUN_TASK, "send", SCOPE_USE, true },
	[VERB_TASK_GET] = { NOUN_TASK, "get", SCOPE_READ, false },
	[VERB_TASK_LIST] = { NOUN_TASK, "list", SCOPE_READ, false },
	[VERB_TASK_CANCEL] = { NOUN_TASK, "cancel", SCOPE_USE, true, VERB_FREES },
	[VERB_TASK_PUSH] = { NOUN_TASK, "push", SCOPE_USE, true },
	[VERB_TOOL_FORGE] = { NOUN_TOOL, "forge", SCOPE_USE, true },
	[VERB_TOOL_GENERATE] = { NOUN_TOOL, "generate", SCOPE_USE, true },
	[VERB_TOOL_LIST] = { NOUN_TOOL, "list", SCOPE_READ, false },
	[VERB_TOOL_GET] = { NOUN_TOOL, "get", SCOPE_READ, false },
	[VERB_TOOL_CALL] = { NOUN_TOOL, "call", SCOPE_USE, true },
	[VERB_TOOL_ROLLBACK] = { NOUN_TOOL, "rollback", SCOPE_USE, true },
	[VERB_TOOL_REMOVE] = { NOUN_TOOL, "remove", SCOPE_USE, true, VERB_FREES },
	[VERB_PACKAGE_PUT] = { NOUN_PACKAGE, "put", SCOPE_USE, true },
	[VERB_PACKAGE_GET] = { NOUN_PACKAGE, "get", SCOPE_READ, false },
	[VERB_PACKAGE_LIST] = { NOUN_PACKAGE, "list", SCOPE_READ, false },
	[VERB_PACKAGE_REMOVE] = { NOUN_PACKAGE, "remove", SCOPE_USE, true, VERB_FREES },
	[VERB_DEPLOYMENT_CREATE] = { NOUN_DEPLOYMENT, "create", SCOPE_USE, true },
	[VERB_DEPLOYMENT_LIST] = { NOUN_DEPLOYMENT, "list", SCOPE_READ, false },
	[VERB_DEPLOYMENT_GET] = { NOUN_DEPLOYMENT, "get", SCOPE_READ, false },
	[VERB_DEPLOYMENT_RESTART] = { NOUN_DEPLOYMENT, "restart", SCOPE_USE, true },
	[VERB_DEPLOYMENT_ROLLBACK] = { NOUN_DEPLOYMENT, "rollback", SCOPE_USE, true },
	[VERB_DEPLOYMENT_REMOVE] = { NOUN_DEPLOYMENT, "remove", SCOPE_USE, true, VERB_FREES },
	[VERB_DEPLOYMENT_CONNECT] = { NOUN_DEPLOYMENT, "connect", SCOPE_USE, false },
};
static const char *const noun_names[] = {
	[NOUN_WORKSPACE] = "workspace",
	[NOUN_EXEC] = "exec",
	[NOUN_FILE] = "file",
	[NOUN_ARCHIVE] = "archive",
	[NOUN_SNAPSHOT] = "snapshot",
	[NOUN_ENVIRONMENT] = "environment",
	[NOUN_TEMPLATE] = "template",
	[NOUN_EVENT] = "event",
	[NOUN_DAEMON] = "daemon",
	[NOUN_TREE] = "tree",
	[NOUN_PORT] = "port",
	[NOUN_AUDIT] = "audit",
	[NOUN_TOKEN] = "token",
	[NOUN_APPROVAL] = "approval",
	[NOUN_CODE] = "code",
	[NOUN_CASE] = "case",
	[NOUN_CELL] = "cell",
	[NOUN_AGENT] = "agent",
	[NOUN_TASK] = "task",
	[NOUN_TOOL] = "tool",
	[NOUN_PACKAGE] = "package",
	[NOUN_DEPLOYMENT] = "deployment",
};

static const struct principal system_principal = { .kind = PRINCIPAL_SYSTEM, .scopes = SCOPE_ALL };
const struct request request_system = { &system_principal, "", DOOR_CORE, 0, NULL };

unsigned access_scopes(enum token_scope scope)
{
	static const unsigned scopes[TOKEN_SCOPE_COUNT] = {
		[TOKEN_ADMIN] = SCOPE_ALL,
		[TOKEN_USER] = SCOPE_READ | SCOPE_USE,
		[TOKEN_REVIEWER] = SCOPE_READ | SCOPE_REVIEW,
	};
	return scopes[scope];
}

int access_peer(const struct core *core, uid_t uid, struct arena *arena,
	const struct principal **principal, struct error *err)
{
	unsigned scopes = 0;
	for (int i = 0; i < core->access->uid_count; i++)
		if (core->access->uids[i].uid == uid)
			scopes = core->access->uids[i].scopes;
	if (!scopes)
		return fail_hint(err, ERR_DENIED, "use the daemon of your own: carrel starts one",
			"this daemon serves another user, not uid %u", uid);
	struct principal *made = arena_alloc(arena, sizeof *made);
	*made = (struct principal){ .kind = PRINCIPAL_UID, .uid = uid, .scopes = scopes };
	*principal = made;
	return 0;
}

const struct principal *access_subject(const char *subject, enum token_scope scope,
	const struct access_from *from, struct arena *arena)
{
	struct principal *made = arena_alloc(arena, sizeof *made);
	*made = (struct principal){ .kind = PRINCIPAL_SUBJECT,
		.uid = ACCESS_NO_UID,
		.scopes = access_scopes(scope),
		.subject = arena_text(arena, subject),
		.address = arena_text(arena, from->address) };
	return made;
}

const struct principal *access_client(
	const char *agent, const struct access_from *from, struct arena *arena)
{
	struct principal *made = arena_alloc(arena, sizeof *made);
	*made = (struct principal){ .kind = PRINCIPAL_CLIENT,
		.uid = ACCESS_NO_UID,
		.subject = arena_text(arena, agent),
		.address = arena_text(arena, from->address) };
	return made;
}

bool access_is_client(const struct request *request, const char *agent)
{
	const struct principal *principal = request->principal;
	return principal->kind == PRINCIPAL_CLIENT && !strcmp(principal->subject, agent);
}

static struct principal *make_agent(
	const char *agent, const char *caller, unsigned scopes, struct arena *arena)
{
	struct principal *made = arena_alloc(arena, sizeof *made);
	*made = (struct principal){ .kind = PRINCIPAL_AGENT,
		.uid = ACCESS_NO_UID,
		.scopes = scopes,
		.subject = arena_printf(arena, "%s" ACCESS_FOR "%s", agent, caller) };
	return made;
}

const struct request *access_agent(
	const struct request *request, const char *agent, unsigned scopes, struct arena *arena)
{
	char caller[PRINCIPAL_NAME_SIZE];
	struct principal *made =
		make_agent(agent, access_name(request->principal, caller), scopes, arena);
	made->address = arena_text(arena, request->principal->address);
	made->workspace = arena_text(arena, request->principal->workspace);
	return access_request(made, request->door, arena_text(arena, request->id), arena);
}

const struct request *access_agent_of(
	const char *agent, const char *caller, unsigned scopes, struct arena *arena)
{
	return access_request(make_agent(agent, caller, scopes, arena), DOOR_CORE, "", arena);
}

const struct principal *access_nobody(void)
{
	static const struct principal nobody = { .kind = PRINCIPAL_NOBODY };
	return &nobody;
}

const struct request *access_request(
	const struct principal *principal, const char *door, const char *id, struct arena *arena)
{
	struct request *made = arena_alloc(arena, sizeof *made);
	struct request_note *note = arena_alloc(arena, sizeof *note);
	*note = (struct request_note){ arena, NULL, NULL };
	*made = (struct request){ principal, id, door, 0, note };
	return made;
}

const struct request *access_keep(const struct request *request, struct arena *arena)
{
	struct principal *kept = arena_alloc(arena, sizeof *kept);
	*kept = *request->principal;
	kept->token_id = arena_text(arena, kept->token_id);
	kept->workspace = arena_text(arena, kept->workspace);
	kept->address = arena_text(arena, kept->address);
	kept->subject = arena_text(arena, kept->subject);
	return access_request(kept, request->door, arena_text(arena, request->id), arena);
}

const char *access_caller(const struct request *request, char out[PRINCIPAL_NAME_SIZE])
{
	return access_name(request->principal, out);
}

const char *access_only(const struct request *request)
{
	return request->principal->workspace;
}

const char *access_id(const struct request *request)
{
	return request->id;
}

const char *access_trail(const struct request *request)
{
	return request->note && request->note->trail ? request->note->trail : "[]";
}

const char *access_learned(const struct request *request)
{
	return request->note ? request->note->learned : NULL;
}

/* ---- the check ---- */

bool access_is_cli(const struct request *request)
{
	return !strcmp(request->door, DOOR_CLI);
}

const char *access_noun(enum noun noun)
{
	return noun_names[noun];
}

#define AGENT_NAME "agent "
#define CLIENT_NAME "client of agent "

bool access_name_is_client(const char *name)
{
	return str_starts_with(str_from(name), CLIENT_NAME);
}

const char *access_name(const struct principal *principal, char out[PRINCIPAL_NAME_SIZE])
{
	switch (principal->kind) {
	case PRINCIPAL_UID:
		str_format(out, PRINCIPAL_NAME_SIZE, "uid %u", principal->uid);
		break;
	case PRINCIPAL_TOKEN:
		str_format(out, PRINCIPAL_NAME_SIZE, ACCESS_TOKEN_NAME "%s", principal->token_id);
		break;
	case PRINCIPAL_SANDBOX:
		str_format(out, PRINCIPAL_NAME_SIZE, "sandbox of workspace %s",
			principal->workspace ? principal->workspace : "(none)");
		break;
	case PRINCIPAL_SYSTEM:
		str_format(out, PRINCIPAL_NAME_SIZE, "system");
		break;
	case PRINCIPAL_SUBJECT:
		str_format(out, PRINCIPAL_NAME_SIZE, "subject %s", principal->subject);
		break;
	case PRINCIPAL_CLIENT:
		str_format(out, PRINCIPAL_NAME_SIZE, CLIENT_NAME "%s", principal->subject);
		break;
	case PRINCIPAL_AGENT:
		str_format(out, PRINCIPAL_NAME_SIZE, AGENT_NAME "%s", principal->subject);
		break;
	case PRINCIPAL_NOBODY:
		str_format(out, PRINCIPAL_NAME_SIZE, "nobody");
		break;
	}
	return out;
}

const char *access_holder(const char *name)
{
	while (!strncmp(name, AGENT_NAME, sizeof AGENT_NAME - 1)) {
		const char *caller = strstr(name, ACCESS_FOR);
		if (!caller)
			break;
		name = caller + strlen(ACCESS_FOR);
	}
	return name;
}

/* A sandbox can't review what it asked for itself, whatever its credential says. */
static unsigned scopes_of(const struct principal *principal)
{
	return principal->kind == PRINCIPAL_SANDBOX
		       ? principal->scopes & ~(unsigned)(SCOPE_REVIEW | SCOPE_ADMIN)
		       : principal->scopes;
}

bool access_is_bound(const struct request *request)
{
	return request->principal->workspace || request->principal->kind == PRINCIPAL_SANDBOX;
}

bool access_reaches(const struct request *request, const struct core_workspace *w)
{
	const char *only = request->principal->workspace;
	return !access_is_bound(request) || (w && only && !strcmp(w->model.id, only));
}

struct core_workspace *access_bound(const struct core *core, const struct request *request)
{
	const char *only = request->principal->workspace;
	return only ? map_get(&core->ids, str_from(only)) : NULL;
}

static const char *scope_name(unsigned scope)
{
	return scope == SCOPE_READ     ? "read"
	       : scope == SCOPE_USE    ? "use"
	       : scope == SCOPE_REVIEW ? "review"
				       : "admin";
}

/* Where notifications are posted, the credentials of receivers are in memory: whoever could run
 * something there could read those of others. */
static bool is_for_core(const struct verb_row *row, const struct core_workspace *w)
{
	const char *service = w ? w->model.owner.service : NULL;
	bool is_harmless =
		row->flags & VERB_FREES || (row->scope == SCOPE_READ && row->noun != NOUN_FILE);
	return service && !strcmp(service, WORKSPACE_PUSH) && !is_harmless;
}

static int judge(const struct request *request, const struct verb_row *row,
	const struct core_workspace *w, struct error *err)
{
	char name[PRINCIPAL_NAME_SIZE];
	if (request->deadline_ms && clock_monotonic_ms() >= request->deadline_ms)
		return fail(err, ERR_CANCELED, "the deadline of the request has passed");
	if (!(scopes_of(request->principal) & row->scope))
		return fail(err, ERR_DENIED, "%s has no scope '%s', which %s.%s needs",
			access_name(request->principal, name), scope_name(row->scope),
			noun_names[row->noun], row->name);
	if (!access_reaches(request, w))
		return fail(err, ERR_DENIED, "%s is bound to its workspace: %s.%s is outside of it",
			access_name(request->principal, name), noun_names[row->noun], row->name);
	if (request->principal->kind != PRINCIPAL_SYSTEM && is_for_core(row, w))
		return fail(err, ERR_DENIED,
			"workspace '%s' posts push notifications: it takes no %s.%s", w->model.id,
			noun_names[row->noun], row->name);
	return 0;
}

static void record(const struct core *core, const struct request *request,
	const struct verb_row *row, const struct core_workspace *w, const struct error *refusal)
{
	enum log_level level = refusal ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG;
	char verb[32], name[PRINCIPAL_NAME_SIZE];
	if (level < core->log.least || (!refusal && !row->is_audited))
		return;
	str_format(verb, sizeof verb, "%s.%s", noun_names[row->noun], row->name);
	log_record(&core->log, level, refusal ? "access refused" : "access", "verb", verb,
		"principal", access_name(request->principal, name), "workspace",
		w ? w->model.id : "", "door", request->door, "request_id", request->id,
		refusal ? "error" : NULL, refusal ? refusal->text : NULL, NULL);
}

int access_check(const struct core *core, const struct request *request, enum verb verb,
	const struct core_workspace *w, struct error *err)
{
	const struct verb_row *row = &verb_table[verb];
	int failed = judge(request, row, w, err);
	bool is_stuck = !failed && row->is_audited && !(row->flags & VERB_FREES) &&
			request->principal->kind != PRINCIPAL_SYSTEM && audit_check(core, err);
	record(core, request, row, w, failed || is_stuck ? err : NULL);
	/* What space is left is for what frees some: of this refusal only the number is kept. */
	if (is_stuck)
		audit_leave_out(core);
	else if (failed || request->principal->kind != PRINCIPAL_SYSTEM)
		audit_access(core, request, verb, w, failed ? err : NULL);
	return failed || is_stuck ? -1 : 0;
}
