/* removal.c -- looks whether something in use would be lost before it is removed. REST's DELETE
 * removes it all the same: clean-up of programs depends on it. */
#include <unistd.h>
#include "cli/removal.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define NAMES_MOST 3 /* that are listed */

struct users {
	struct arena *arena;
	struct buf text; /* the first of them: "a, b and c" */
	unsigned count;
	const char *wanted; /* of each_agent: the template */
};

static void add_user(struct users *users, const char *text)
{
	char shown[200];
	if (users->count++ >= NAMES_MOST)
		return;
	str_printable(shown, sizeof shown, str_from(text ? text : "?"));
	buf_printf(&users->text, "%s%s", users->count > 1 ? ", " : "", shown);
}

/* "exec 'a' (python), exec 'b' (sh) and 3 more run in it"; NULL: none. */
static const char *users_text(struct users *users, const char *one, const char *many)
{
	if (!users->count)
		return NULL;
	if (users->count > NAMES_MOST)
		buf_printf(&users->text, " and %u more", users->count - NAMES_MOST);
	return arena_printf(users->arena, "%.*s %s", (int)users->text.len, users->text.data,
		users->count > 1 ? many : one);
}

/* ---- who uses it ---- */

static bool is_text(const struct json_value *object, const char *key, const char *value)
{
	const char *text = json_member_text(object, key);
	return text && !strcmp(text, value);
}

static void each_exec(void *ctx, const struct json_value *item)
{
	struct users *users = ctx;
	const struct json_value *argv = json_member(item, "argv");
	const struct json_value *program = argv && argv->kind == JSON_ARRAY ? argv->first : NULL;
	if (is_text(item, "state", "ended"))
		return;
	add_user(users,
		arena_printf(users->arena, "exec '%s' (%s)", json_member_text(item, "id"),
			program && program->kind == JSON_STRING ? program->string.data : "?"));
}

/* Whose a workspace is, by the service that made it. */
static const struct owner {
	const char *service, *noun, *label, *remedy;
} owners[] = {
	{ "deployments", "deployment", "carrel.deployment", "carrel deployment rm" },
	{ "cases", "case", "carrel.case", "carrel case rm" },
	{ "tools", "tool", "carrel.tool", "carrel tool rm" },
	{ "agents", "agent", "agent", NULL }, /* agent rm leaves contexts */
	{ "push", "agent", "agent", NULL },
};

static const char *find_owner(
	struct command *command, const struct json_value *workspace, const char **remedy)
{
	const struct json_value *labels = json_member(workspace, "labels");
	const char *service = json_member_text(labels, "carrel.service");
	for (size_t i = 0; service && i < COUNT(owners); i++) {
		const struct owner *owner = &owners[i];
		const char *name = json_member_text(labels, owner->label);
		if (strcmp(service, owner->service) || !name)
			continue;
		if (owner->remedy)
			*remedy = arena_printf(&command->arena,
				"%s %s removes what it belongs to; --force removes it alone",
				owner->remedy, name);
		return arena_printf(&command->arena, "it belongs to %s '%s'", owner->noun, name);
	}
	return service ? arena_printf(&command->arena, "it belongs to service '%s'", service)
		       : NULL;
}

/* "a snapshot of it is being made": one of what is under way with it; NULL: nothing. */
static const char *first_use(const struct json_value *uses)
{
	return uses && uses->kind == JSON_ARRAY && uses->first && uses->first->kind == JSON_STRING
		       ? uses->first->string.data
		       : NULL;
}

static int find_workspace(struct command *command, const char *path, const char *name,
	struct users *users, struct removal_use *use, struct error *err)
{
	struct remote_answer answer;
	if (remote_call(&command->remote, "GET", path, NULL, &answer, err))
		return -1;
	use->why = find_owner(command, answer.value, &use->remedy);
	if (use->why)
		return 0;
	path = arena_printf(&command->arena, "%s/execs", path);
	if (is_text(answer.value, "state", "running") &&
		remote_each(&command->remote, path, each_exec, users, err))
		return -1;
	use->why = users_text(users, "runs in it", "run in it");
	if (!use->why)
		use->why = first_use(json_member(answer.value, "in_use"));
	return 0;
}
const struct removal workspace_removal = { "workspace", find_workspace };

static void each_context(void *ctx, const struct json_value *item)
{
	const struct json_value *labels = json_member(item, "labels");
	const char *context = json_member_text(labels, "context_id");
	add_user(ctx, context ? context : json_member_text(item, "name"));
}

static int find_agent(struct command *command, const char *path, const char *name,
	struct users *users, struct removal_use *use, struct error *err)
{
	path = arena_printf(&command->arena,
		"/v1/workspaces?label=carrel.service=agents&label=agent=%s&state=running",
		remote_escape(&command->remote, name));
	if (remote_each(&command->remote, path, each_context, users, err))
		return -1;
	use->why = users_text(users, "is a context where a task of it runs",
		"are contexts where tasks of it run");
	return 0;
}
const struct removal agent_removal = { "agent", find_agent };

static void each_cell(void *ctx, const struct json_value *item)
{
	struct users *users = ctx;
	if (!json_member_text(item, "ended_at"))
		add_user(users,
			arena_printf(users->arena, "cell '%s'", json_member_text(item, "id")));
}

static int find_case(struct command *command, const char *path, const char *name,
	struct users *users, struct removal_use *use, struct error *err)
{
	path = arena_printf(&command->arena, "%s/cells", path);
	if (remote_each(&command->remote, path, each_cell, users, err))
		return -1;
	use->why = users_text(users, "of it runs", "of it run");
	return 0;
}
const struct removal case_removal = { "case", find_case };

static int find_deployment(struct command *command, const char *path, const char *name,
	struct users *users, struct removal_use *use, struct error *err)
{
	static const char *const begun[] = { "downloading", "building_env", "installing_deps",
		"starting" };
	struct remote_answer answer;
	if (remote_call(&command->remote, "GET", path, NULL, &answer, err))
		return -1;
	for (size_t i = 0; i < COUNT(begun); i++)
		if (is_text(answer.value, "status", begun[i]))
			use->why = "a revision of it is being rolled out";
	return 0;
}
const struct removal deployment_removal = { "deployment", find_deployment };

static void each_agent(void *ctx, const struct json_value *item)
{
	struct users *users = ctx;
	if (is_text(item, "template", users->wanted))
		add_user(users,
			arena_printf(users->arena, "agent '%s'", json_member_text(item, "name")));
}

static int find_template(struct command *command, const char *path, const char *name,
	struct users *users, struct removal_use *use, struct error *err)
{
	users->wanted = name;
	if (remote_each(&command->remote, "/v1/agents", each_agent, users, err))
		return -1;
	use->why = users_text(users, "makes its contexts of it", "make their contexts of it");
	return 0;
}
const struct removal template_removal = { "template", find_template };

/* ---- asked, or refused ---- */

static bool can_ask(const struct command *command)
{
	return !command->json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static int ask(const struct removal *removal, const char *name, const struct removal_use *use,
	struct error *err)
{
	char answer[64];
	fprintf(stderr, "carrel: %s '%s': %s. Remove it all the same? [y/N] ", removal->noun, name,
		use->why);
	if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
		return 0;
	return fail(err, ERR_CANCELED, "%s '%s' was not removed", removal->noun, name);
}

static int refuse(const struct removal *removal, const char *name, const struct removal_use *use,
	struct error *err)
{
	if (use->remedy)
		return fail_hint(err, ERR_CONFLICT, use->remedy, "%s '%s': %s", removal->noun, name,
			use->why);
	return fail_hint(err, ERR_CONFLICT, "--force removes it all the same", "%s '%s': %s",
		removal->noun, name, use->why);
}

/* What can't be looked at is removed all the same, or the removal says why it can't be. */
static int check_unused(struct command *command, const struct removal *removal, const char *name,
	const char *path, struct error *err)
{
	struct users users = { .arena = &command->arena, .text = buf_empty(4096) };
	struct removal_use use = { 0 };
	struct error ignored;
	int failed = 0;
	if (removal->find(command, path, name, &users, &use, &ignored))
		use.why = NULL;
	if (use.why && can_ask(command))
		failed = ask(removal, name, &use, err);
	else if (use.why)
		failed = refuse(removal, name, &use, err);
	buf_done(&users.text);
	return failed;
}

static int remove_one(struct command *command, const struct removal *removal, const char *path,
	const char *query, struct cli_one *one)
{
	struct remote_answer answer = { 0 };
	if (removal && !command->options.force &&
		check_unused(command, removal, one->name, path, &one->err))
		return -1;
	path = arena_printf(&command->arena, "%s%s", path, query ? query : "");
	if (remote_call(&command->remote, "DELETE", path, NULL, &answer, &one->err))
		return -1;
	/* Only a workspace that was archived is answered with something. */
	one->archive = json_member_text(answer.value, "name");
	return 0;
}

int removal_run(struct command *command, const char *path, const text_list *names,
	const struct removal *removal, const char *query, struct error *err)
{
	cli_ones all = { 0 };
	if (remote_open(&command->remote, err))
		return -1;
	for (size_t i = 0; i < names->count; i++) {
		struct cli_one one = { .name = names->items[i] };
		one.has_failed = remove_one(command, removal,
			arena_printf(&command->arena, "%s/%s", path,
				remote_escape(&command->remote, one.name)),
			query, &one);
		vec_push(&command->arena, &all, one);
	}
	return cli_print_ones(command, &all, "removed", 0, err);
}
