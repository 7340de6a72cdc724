/* agent.h -- an A2A agent as its author describes it, in YAML: what its card says, what the
 * workspaces of its contexts are made of, and what a message does. Pure.
 *
 *	name: tools
 *	description: runs commands
 *	version: "1.0"
 *	default: true			# its card is also at /.well-known/agent-card.json
 *	skills: [{id: shell, name: Shell, description: runs a command, tags: [shell]}]
 *	extended:			# shown to authenticated clients alone, in another card
 *	  description: runs any command
 *	  skills: [{id: root, name: Root, description: …, tags: []}]	# besides the others
 *	kind: shell			# the text of a message is a command
 *	command: [python3, -u, agent.py]	# or: a program, run for each task (docs/agents.md)
 *	template: python
 *	settings: {permissions: {allow: ["shell(ls:*)"], deny: []}}
 *	sources: {web_access: {enabled: false}}
 *	limits: {memory: 1G}
 *	env: {NAME: value}
 *	timeout: 5m			# of a task
 *	ttl: 7d				# of a context that isn't used
 *	namespace: team1
 *	isolation: default
 *	auth: token			# or none
 *	approver: client		# or reviewer
 *	workspace_without_context: false
 *	max_contexts: 256		# that it has at once
 *	max_tasks: 32			# that run or wait for input at once
 *	push: [client.example]		# hosts that its clients may have told of tasks; or none
 *
 * 1. What is kept is the text; everything else is read from it again. */
#pragma once
#include "base/arena.h"
#include "base/id.h"
#include "base/vec.h"
#include "model/nouns/limits.h"
#include "model/records/record.h"

#define AGENT_NAME_MAX 64
#define AGENT_YAML_MAX (256 << 10)
#define AGENT_TTL_DEFAULT_MS (7ull * 24 * 3600 * 1000)
#define AGENT_CONTEXTS_DEFAULT 256
#define AGENT_CONTEXTS_MOST 100000
#define AGENT_TASKS_DEFAULT 32
#define AGENT_TASKS_MOST 256
#define AGENT_TIMEOUT_SHELL_MS 300000ull
#define AGENT_TIMEOUT_COMMAND_MS 3600000ull

enum a2a_kind { AGENT_SHELL, AGENT_COMMAND };
enum agent_auth { AGENT_TOKEN, AGENT_NO_AUTH };
enum agent_approver { AGENT_CLIENT, AGENT_REVIEWER };

/* What the extended card has; NULL: it is as in the public one. */
struct agent_extended {
	const char *description;
	const char *skills; /* JSON, as below: further ones */
};
struct a2a_agent {
	char id[ID_LEN + 1];
	const char *name, *description, *version;
	const char *skills; /* JSON: a list of AgentSkill */
	struct agent_extended extended;
	bool is_default, has_extended;
	int kind; /* enum a2a_kind */
	bool has_kind;
	text_list command;			   /* items[count] is NULL */
	const char *template, *settings, *sources; /* or NULL; the last two are JSON */
	struct limits_shown limits;
	pair_list env;
	uint64_t timeout_ms, ttl_ms;   /* as in force */
	const char *namespace;	       /* or NULL */
	int isolation, auth, approver; /* enum agent_auth, agent_approver */
	bool workspace_without_context;
	uint64_t max_contexts, max_tasks; /* as in force */
	text_list push; /* entries of model/network/network.h; with has_push alone: nothing is
			   pushed */
	bool has_push;
	int64_t created_ms;
	int64_t changed_ms; /* when it was added or replaced, or core started; not kept */
	const char *yaml;
};
extern const struct record agent_record, agent_skill_record, agent_extended_record;

/* ERR_INVALID: 1 to 64 of a-z, 0-9 and '-', not '-' first. */
int agent_check_name(const char *name, struct error *err);
/* Of values that were read from YAML (format/text/yaml_json.h); texts are in the arena. Leaves id,
 * created_ms and yaml as they are. ERR_INVALID names the key, and the line of YAML. */
int agent_read(
	struct json_value *value, struct arena *arena, struct a2a_agent *agent, struct error *err);
