/* What is recorded of each kind of verb. */
#include "core/access/audit_records.h"
#include "core/internal.h"
#include "core/packages/packages.h"

#define ARGV_BYTES_MAX (32u << 10)
#define TRAIL_BYTES_MAX (64u << 10)
#define ENV_MAX 256
#define VALUE_MAX 1024
#define COUNT(array) (sizeof(array) / sizeof *(array))

static void print_error(struct json *j, const struct error *err)
{
	json_object(j, "error");
	json_text(j, "code", error_code_name(err->code));
	json_text(j, "message", err->text);
	json_end(j);
}

/* ---- verbs ---- */

struct access_members {
	const char *verb;
	const struct error *refusal;
};

static void print_access(struct json *j, const void *ctx)
{
	const struct access_members *members = ctx;
	json_text(j, "verb", members->verb);
	if (members->refusal)
		print_error(j, members->refusal);
}

void audit_access(const struct core *core, const struct request *request, enum verb verb,
	const struct core_workspace *w, const struct error *refusal)
{
	const struct verb_row *row = &verb_table[verb];
	char name[48];
	if (!core->audit || (!refusal && (!row->is_audited || row->flags & VERB_DETAILED)))
		return;
	str_format(name, sizeof name, "%s.%s", access_noun(row->noun), row->name);
	struct access_members members = { name, refusal };
	audit_write(core, request, refusal ? "access.refused" : name, w,
		refusal ? print_access : NULL, &members);
}

/* ---- execs ---- */

struct refusal_members {
	const char *trail;
	const struct error *err;
};

/* NULL: no policy has judged it. */
static const char *trail_of(const struct request *request)
{
	const char *trail = access_trail(request);
	return strcmp(trail, "[]") ? trail : NULL;
}

static void print_trail(struct json *j, const char *trail)
{
	if (trail && strlen(trail) <= TRAIL_BYTES_MAX)
		json_raw(j, "trail", trail);
	else if (trail)
		json_bool(j, "trail_is_cut", true);
}

static void print_refusal(struct json *j, const void *ctx)
{
	const struct refusal_members *members = ctx;
	print_trail(j, members->trail);
	print_error(j, members->err);
}

void audit_refusal(
	const struct request *request, const struct core_workspace *w, const struct error *err)
{
	const struct refusal_members members = { trail_of(request), err };
	audit_write(w->core, request, "policy.refused", w, print_refusal, &members);
}

struct exec_members {
	const char *trail;
	const struct exec_record *record;
	const struct exec_spec *spec;
	const struct error *err;
};

static void print_argv(struct json *j, const text_list *argv)
{
	size_t bytes = 0, i;
	json_array(j, "argv");
	for (i = 0; i < argv->count; i++) {
		size_t len = strlen(argv->items[i]);
		if (bytes + len > ARGV_BYTES_MAX) {
			json_str(j, NULL, (struct str){ argv->items[i], ARGV_BYTES_MAX - bytes });
			break;
		}
		bytes += len;
		json_text(j, NULL, argv->items[i]);
	}
	json_end(j);
	if (i < argv->count)
		json_bool(j, "argv_is_cut", true);
}

static void print_env(struct json *j, const pair_list *env)
{
	if (!env->count)
		return;
	json_array(j, "env");
	for (size_t i = 0; i < env->count && i < ENV_MAX; i++) {
		const char *key = env->items[i].key, *value = env->items[i].value;
		char text[VALUE_MAX];
		value = value ? value : "";
		str_format(text, sizeof text, "%s=%s", key,
			workspace_variable_is_secret(key, value) ? "***" : value);
		json_text(j, NULL, text);
	}
	json_end(j);
}

static void print_start(struct json *j, const void *ctx)
{
	const struct exec_members *members = ctx;
	const struct exec_record *record = members->record;
	json_text(j, "exec", record->id);
	print_argv(j, &record->argv);
	json_text(j, "cwd", record->cwd);
	print_env(j, &members->spec->env);
	json_bool(j, "background", record->background);
	json_bool(j, "tty", record->tty);
	if (members->spec->policy == EXEC_POLICY_LEARN)
		json_text(j, "policy", exec_policy_names[EXEC_POLICY_LEARN]);
	print_trail(j, members->trail);
}

void audit_exec_start(const struct request *request, const struct core_workspace *w,
	const struct exec_record *record, const struct exec_spec *spec, struct audit_actor *actor)
{
	const struct exec_members members = { trail_of(request), record, spec, NULL };
	if (!w->core->audit)
		return;
	*actor = audit_actor(request);
	audit_write_as(w->core, actor, "exec.start", w, print_start, &members);
}

static void print_end(struct json *j, const void *ctx)
{
	const struct exec_members *members = ctx;
	const struct exec_record *record = members->record;
	const struct result *result = &record->result;
	json_text(j, "exec", record->id);
	if (members->err) {
		json_i64(j, "exit_code", error_exit_code(members->err->code));
		print_error(j, members->err);
		return;
	}
	json_text(j, "reason", reason_names[result->reason]);
	json_i64(j, "exit_code", result_exit_code(result));
	if (result->signal)
		json_i64(j, "signal", result->signal);
	json_u64(j, "duration_ms", result->duration_ms);
	json_u64(j, "cpu_ms", result->cpu_ms);
	json_u64(j, "max_rss_bytes", result->max_rss_bytes);
	if (record->error)
		json_text(j, "error", record->error);
}

void audit_exec_end(const struct core_workspace *w, const struct exec_record *record,
	const struct audit_actor *actor, const struct error *err)
{
	const struct exec_members members = { NULL, record, NULL, err };
	if (!w->core->audit)
		return;
	if (!actor->principal[0])
		audit_write(w->core, &request_system, "exec.end", w, print_end, &members);
	else
		audit_write_as(w->core, actor, "exec.end", w, print_end, &members);
}

/* ---- files ---- */

static void print_file(struct json *j, const void *ctx)
{
	const struct audit_file *file = ctx;
	if (file->what)
		json_text(j, "what", file->what);
	json_text(j, "path", file->path);
	if (file->to)
		json_text(j, "to", file->to);
	if (file->has_bytes)
		json_u64(j, "bytes", file->bytes);
	if (file->err)
		print_error(j, file->err);
}

void audit_file(const struct core_workspace *w, const struct audit_actor *actor,
	const struct audit_file *file)
{
	audit_write_as(w->core, actor, file->type, w, print_file, file);
}

/* ---- packages, workspaces, the daemon ---- */

static void print_packages(struct json *j, const void *ctx)
{
	const struct packages_wanted *wanted = ctx;
	json_text(j, "manager", wanted->kind->name);
	json_array(j, "packages");
	for (size_t i = 0; i < wanted->packages.count && i < ENV_MAX; i++)
		json_text(j, NULL, wanted->packages.items[i]);
	json_end(j);
}

void audit_packages(const struct request *request, const struct core_workspace *w,
	const struct packages_wanted *wanted)
{
	audit_write(w->core, request,
		wanted->is_removal ? "workspace.uninstall" : "workspace.install", w, print_packages,
		wanted);
}

static void print_create(struct json *j, const void *ctx)
{
	const struct workspace *model = ctx;
	json_text(j, "template", model->template);
	json_text(j, "dir", model->dir);
	json_u64(j, "mounts", model->mounts.count);
	json_u64(j, "memory_bytes", model->limits.memory_bytes);
	json_u64(j, "disk_bytes", model->limits.disk_bytes);
}

void audit_create(const struct request *request, const struct core_workspace *w)
{
	audit_write(w->core, request, "workspace.create", w, print_create, &w->model);
}

static void print_daemon(struct json *j, const void *ctx)
{
	json_text(j, "version", CARREL_VERSION);
	json_text(j, "config_sha256", ctx);
}

void audit_daemon(const struct core *core, const char *type, const char *config_digest)
{
	audit_write(core, &request_system, type, NULL, print_daemon, config_digest);
}

struct login_members {
	const struct access_from *from;
	const char *token, *why;
};

static void print_login(struct json *j, const void *ctx)
{
	const struct login_members *members = ctx;
	if (members->from->address)
		json_text(j, "address", members->from->address);
	else
		json_u64(j, "uid", members->from->uid);
	if (members->token)
		json_text(j, "token", members->token);
	if (members->why)
		json_text(j, "error", members->why);
}

void audit_login(
	const struct core *core, const struct access_from *from, const char *token, const char *why)
{
	const struct login_members members = { from, token, why };
	audit_write(core, &request_system, why ? "login.refused" : "login.token", NULL, print_login,
		&members);
}

static void print_event(struct json *j, const void *ctx)
{
	json_raw(j, "event", ctx);
}

void audit_event(
	void *ctx, const char *type, const char *workspace, const char *name, struct str json)
{
	static const char *const types[] = { "workspace.created", "workspace.suspended",
		"workspace.resumed", "workspace.failed", "workspace.deleted", "workspace.expired",
		"workspace.updated", "workspace.applied", "workspace.archived",
		"workspace.restored", "workspace.repaired", "workspace.snapshot",
		"workspace.rollback", "workspace.installed", "workspace.uninstalled",
		"snapshot.pulled", "snapshot.pushed", "template.added", "template.removed",
		"template.built", "task.push_failed" };
	static const char *const nouns[] = { "approval.", "token." };
	bool is_recorded = false;
	for (size_t i = 0; i < COUNT(types); i++)
		is_recorded |= !strcmp(type, types[i]);
	for (size_t i = 0; i < COUNT(nouns); i++)
		is_recorded |= !strncmp(type, nouns[i], strlen(nouns[i]));
	if (is_recorded)
		audit_write_event(ctx, type, workspace, name, print_event, json.data);
}
