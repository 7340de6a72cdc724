#include "model/agents/agent.h"

#include "base/str.h"
#include "model/network/network.h"
#include "model/nouns/workspace.h"
#include "model/records/rows.h"

#define AGENT_SKILLS_MAX 64
#define AGENT_WORDS_MAX 256
#define AGENT_HOSTS_MAX 256

int agent_check_name(const char *name, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t len = strlen(name);
	if (len && len <= AGENT_NAME_MAX && strspn(name, allowed) == len && name[0] != '-')
		return 0;
	return fail_hint(err, ERR_INVALID, "1 to 64 of a-z, 0-9 and -, not - first",
		"'%.64s' is not the name of an agent", name);
}

static int check_line(const char *text, struct error *err)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			return fail(err, ERR_INVALID, "has a control character");
	return 0;
}

static int check_word(const char *text, struct error *err)
{
	return text[0] ? 0 : fail(err, ERR_INVALID, "a word is empty");
}

static int check_host(const char *text, struct error *err)
{
	return network_check_entry(NETWORK_ALLOW, text, err);
}

/* Takes a member out of an object: the rows of the others read the rest. */
static struct json_value *take_member(struct json_value *object, const char *key)
{
	for (struct json_value **at = &object->first; *at; at = &(*at)->next) {
		struct json_value *found = *at;
		if (!str_is(found->key, key))
			continue;
		*at = found->next;
		object->count--;
		return found;
	}
	return NULL;
}

/* ---- skills ---- */

struct skill {
	const char *id, *name, *description;
	text_list tags, examples;
};
#define AT(member) offsetof(struct skill, member)
#define BOTH (FIELD_IN | FIELD_OUT)
static const struct field skill_rows[] = {
	ROW(TEXT, id, NULL, BOTH | FIELD_REQUIRED, .least = 1, .most = 128, .check = check_line),
	ROW(TEXT, name, NULL, BOTH | FIELD_REQUIRED, .least = 1, .most = 256, .check = check_line),
	ROW(TEXT, description, NULL, BOTH | FIELD_REQUIRED, .most = 4000),
	ROW(TEXTS, tags, NULL, BOTH, .most = 64, .check = check_line),
	ROW(TEXTS, examples, NULL, BOTH | FIELD_OPTIONAL, .most = 64),
};
#undef AT
const struct record agent_skill_record = { "AgentSkill", "As the card of A2A has it.",
	RECORD_ROWS(skill_rows), .wanted = "AgentSkillWanted" };

static int print_skills(
	const struct json_value *list, struct arena *arena, const char **out, struct error *err)
{
	auto_buf struct buf text = buf_empty(AGENT_YAML_MAX);
	struct json j = json_to(&text, false);
	if (list && list->kind != JSON_ARRAY)
		return fail(err, ERR_INVALID, "line %d: skills: must be a list", list->line);
	if (list && list->count > AGENT_SKILLS_MAX)
		return fail(err, ERR_INVALID, "line %d: skills: %zu are given, %d is the maximum",
			list->line, list->count, AGENT_SKILLS_MAX);
	json_array(&j, NULL);
	for (const struct json_value *one = list ? list->first : NULL; one; one = one->next) {
		struct skill skill = { 0 };
		if (record_read(&agent_skill_record, one, arena, &skill, err))
			return error_context(err, "skills");
		record_print(&j, NULL, &agent_skill_record, &skill);
	}
	json_end(&j);
	*out = arena_bytes(arena, text.data, text.len);
	return 0;
}

/* ---- what the extended card adds ---- */

#define AT(member) offsetof(struct agent_extended, member)
static const struct field extended_rows[] = {
	ROW(TEXT, description, "instead of the public one", BOTH | FIELD_NULLABLE, .least = 1,
		.most = 4000),
	ROW(OBJECTS, skills, "besides the public ones", FIELD_OUT, .object = &agent_skill_record),
};
#undef AT
const struct record agent_extended_record = { "AgentExtended",
	"What the card for authenticated clients has.", RECORD_ROWS(extended_rows),
	.wanted = "AgentExtendedWanted" };

static int read_extended(struct json_value *value, struct arena *arena,
	struct agent_extended *extended, struct error *err)
{
	if (value->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "line %d: extended: must be a map", value->line);
	const struct json_value *skills = take_member(value, "skills");
	if (print_skills(skills, arena, &extended->skills, err) ||
		record_read(&agent_extended_record, value, arena, extended, err))
		return error_context(err, "extended");
	if (!extended->description && (!skills || !skills->count))
		return fail_hint(err, ERR_INVALID, "description: TEXT, or skills: [...]",
			"line %d: extended: has neither 'description' nor 'skills'", value->line);
	return 0;
}

/* ---- the agent ---- */

static const struct field_choice kinds[] = { { "shell", AGENT_SHELL }, { 0 } };
static const char *const shown_kinds[] = { "shell", "command", NULL };
static const struct field_choice isolations[] = { { "default", 0 }, { 0 } };
static const char *const auths[] = { "token", "none", NULL };
static const char *const approvers[] = { "client", "reviewer", NULL };

#define AT(member) offsetof(struct a2a_agent, member)
#define BOTH_OPTIONAL (BOTH | FIELD_OPTIONAL)
static const struct field rows[] = {
	ROW(ID, id, NULL, FIELD_OUT | FIELD_COLUMN),
	ROW(TEXT, name, "of its routes, /a2a/NAME", BOTH | FIELD_REQUIRED | FIELD_COLUMN,
		.least = 1, .most = AGENT_NAME_MAX, .pattern = "^[a-z0-9][a-z0-9-]{0,63}$",
		.check = agent_check_name, .head = "NAME", .column = 1),
	{ "created_at", FIELD_TIME, AT(created_ms), "when it was added first",
		FIELD_OUT | FIELD_COLUMN, .kept = "created_ms", .head = "AGE", .column = 5 },
	ROW(TEXT, version, "of the agent", BOTH | FIELD_REQUIRED, .least = 1, .most = 64,
		.check = check_line, .head = "VERSION", .column = 2),
	ROW(TEXT, description, NULL, BOTH | FIELD_REQUIRED, .most = 4000, .head = "DESCRIPTION",
		.column = 6),
	{ "default", FIELD_BOOLEAN, AT(is_default),
		"its card is also at /.well-known/agent-card.json", BOTH },
	ROW(OBJECTS, skills, NULL, FIELD_OUT, .object = &agent_skill_record),
	ROW(OBJECT, extended, "null: it has no extended card", FIELD_OUT | FIELD_NULLABLE,
		.object = &agent_extended_record, .has = FIELD_HAS(struct a2a_agent, has_extended)),
	ROW(CHOICE, kind, "shell: the text of a message is a command", FIELD_IN, .choices = kinds,
		.has = FIELD_HAS(struct a2a_agent, has_kind)),
	ROW(CHOICE, kind,
		"shell: the text of a message is a command; command: a program gets the messages",
		FIELD_OUT, .names = shown_kinds, .head = "KIND", .column = 3),
	ROW(TEXTS, command, "the program, which docs/agents.md describes", BOTH_OPTIONAL,
		.least = 1, .most = AGENT_WORDS_MAX, .check = check_word),
	ROW(TEXT, template, "of the workspaces of its contexts", BOTH | FIELD_NULLABLE, .least = 1,
		.most = 64),
	ROW(JSON, settings, "the rules of a settings.json", BOTH_OPTIONAL,
		.most = WORKSPACE_POLICY_BYTES_MAX, .check = workspace_check_settings),
	ROW(JSON, sources, "a sources.json", BOTH_OPTIONAL, .most = WORKSPACE_POLICY_BYTES_MAX,
		.check = workspace_check_sources),
	ROW(OBJECT, limits, NULL, BOTH, .object = &limits_record),
	ROW(PAIRS, env, "variables of every command", BOTH_OPTIONAL, .most = WORKSPACE_ENV_MAX,
		.pattern = WORKSPACE_VARIABLE_PATTERN, .check_pair = workspace_check_variable),
	{ "timeout", FIELD_DURATION, AT(timeout_ms), "a task that runs longer has failed", BOTH,
		.least = 1, .most = WORKSPACE_TIME_MOST },
	{ "ttl", FIELD_DURATION, AT(ttl_ms), "a context that isn't used for so long is removed",
		BOTH, .least = 1, .most = WORKSPACE_TIME_MOST },
	ROW(TEXT, namespace, "a label of its workspaces and metrics", BOTH | FIELD_NULLABLE,
		.least = 1, .most = 253, .check = check_line),
	ROW(CHOICE, isolation, "the one of this daemon", FIELD_IN, .choices = isolations),
	ROW(CHOICE, auth, "none: its A2A routes need no token", BOTH, .names = auths,
		.head = "AUTH", .column = 4),
	ROW(CHOICE, approver,
		"who answers when the settings ask: the client of the task, or a reviewer", BOTH,
		.names = approvers),
	ROW(BOOLEAN, workspace_without_context,
		"a message without a context id begins a context that stays", BOTH),
	ROW(INTEGER, max_contexts,
		"contexts that it has at once: a message that would begin one more is refused",
		BOTH, .least = 1, .most = AGENT_CONTEXTS_MOST),
	ROW(INTEGER, max_tasks, "tasks that run or wait for input at once: one more is refused",
		BOTH, .least = 1, .most = AGENT_TASKS_MOST),
	ROW(TEXTS, push,
		"hosts that push notifications may go to; null: all that egress opens; empty: none",
		BOTH | FIELD_NULLABLE, .most = AGENT_HOSTS_MAX, .check = check_host,
		.has = FIELD_HAS(struct a2a_agent, has_push)),
	ROW(TEXT, yaml, "as it was added", FIELD_OUT | FIELD_KEPT),
};
#undef AT
const struct record agent_record = { "Agent", NULL, RECORD_ROWS(rows), .wanted = "AgentWanted" };

/* `push: none` is the list without a host. */
static int read_push(struct json_value *agent, struct error *err)
{
	struct json_value *push = agent->first;
	while (push && !str_is(push->key, "push"))
		push = push->next;
	if (!push || push->kind == JSON_ARRAY)
		return 0;
	if (push->kind != JSON_STRING || !str_is(push->string, "none"))
		return fail_hint(err, ERR_INVALID, "push: none, or push: [HOST, ...]",
			"line %d: push: must be 'none' or a list of hosts", push->line);
	*push = (struct json_value){
		.kind = JSON_ARRAY, .key = push->key, .line = push->line, .next = push->next
	};
	return 0;
}

int agent_read(
	struct json_value *value, struct arena *arena, struct a2a_agent *agent, struct error *err)
{
	struct a2a_agent read = *agent;
	if (value->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "an agent is a map of keys and values");
	const struct json_value *skills = take_member(value, "skills");
	struct json_value *extended = take_member(value, "extended");
	read.has_extended = extended && extended->kind != JSON_NULL;
	if (print_skills(skills, arena, &read.skills, err) ||
		(read.has_extended && read_extended(extended, arena, &read.extended, err)) ||
		read_push(value, err))
		return -1;
	if (record_read(&agent_record, value, arena, &read, err)) {
		if (str_starts_with(str_from(err->hint), "known: name"))
			error_hint(err, "%s, skills, extended", arena_text(arena, err->hint));
		return -1;
	}
	if (read.has_kind == (read.command.count > 0))
		return fail_hint(err, ERR_INVALID, "kind: shell, or command: [PROGRAM, ...]",
			"exactly one of 'kind' and 'command' is needed");
	struct limits limits = read.limits.limits;
	if (limits_fill(&limits, err))
		return error_context(err, "limits");
	read.kind = read.has_kind ? AGENT_SHELL : AGENT_COMMAND;
	if (!read.ttl_ms)
		read.ttl_ms = AGENT_TTL_DEFAULT_MS;
	if (!read.max_contexts)
		read.max_contexts = AGENT_CONTEXTS_DEFAULT;
	if (!read.max_tasks)
		read.max_tasks = AGENT_TASKS_DEFAULT;
	if (!read.timeout_ms)
		read.timeout_ms = read.kind == AGENT_SHELL ? AGENT_TIMEOUT_SHELL_MS
							   : AGENT_TIMEOUT_COMMAND_MS;
	*agent = read;
	return 0;
}
