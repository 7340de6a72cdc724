/* agents.h -- A2A agents and their tasks (docs/design/0058).
 * 1. A context of an agent is a workspace whose owner has the service agents, the agent and a
 * context_id; only tasks of that agent run in it.
 * 2. A task has one exec. One function (tasks.c) changes its state; a final state is in the store
 * before a listener is told.
 * 3. Listeners are called from the loop, never from inside the call that made them. */
#pragma once
#include "model/agents/a2a.h"
#include "model/agents/agent.h"
#include "model/agents/push_config.h"
#include "model/agents/task.h"
#include "services/services.h"

#define AGENTS_MAX 200
/* Tasks that are kept. Of the agent that has the most of them, the oldest that has ended gives way.
 */
#define TASKS_MAX 10000
#define TASKS_RUNNING_MAX 1024		    /* of all agents */
#define PUSH_CONFIGS_MAX 10		    /* of one task */
#define TASKS_BYTES_MAX ((size_t)256 << 20) /* of all that are kept */

extern const struct service agents_service;
struct agents;
struct agents *agents_of(struct services *services);

/* ---- agents ---- */
/* agent: valid until the next turn of the loop; NULL with an error, and when one was removed. */
typedef void agents_fn(
	void *ctx, const struct a2a_agent *agent, bool was_there, const struct error *err);
/* Adds the agent that the YAML describes, or replaces the one of its name: tasks that run go on as
 * they began. is_check: nothing is added. */
core_verb void agents_add(const struct request *request, struct agents *agents, struct str yaml,
	bool is_check, agents_fn *done, void *ctx);
/* Its tasks that run are canceled, and all of them are forgotten; its contexts stay until their ttl
 * has passed. */
core_verb void agents_remove(const struct request *request, struct agents *agents, const char *name,
	agents_fn *done, void *ctx);
core_verb int agents_get(const struct request *request, struct agents *agents, const char *name,
	const struct a2a_agent **agent, struct error *err);
/* Sorted by name, behind `cursor` (a name, or NULL); *next: the name of the last, or NULL: that was
 * all. */
core_verb int agents_list(const struct request *request, struct agents *agents, const char *cursor,
	size_t limit, void (*fn)(void *ctx, const struct a2a_agent *agent), void *ctx,
	const char **next, struct error *err);
/* What everyone may know, for its card and the authenticator; NULL: there is none. */
const struct a2a_agent *agents_look(const struct agents *agents, struct str name);
const struct a2a_agent *agents_default(const struct agents *agents);
int agents_missing(const char *name, struct error *err); /* ERR_NOT_FOUND, which names it */

/* ---- tasks ---- */
struct agent_task;
struct task_listener {
	/* task is valid during the call. After a final state it is not called again. */
	void (*told)(void *ctx, struct agent_task *task, const struct task_event *event);
	void *ctx;
	struct task_listener *next;
};
void task_listen(struct agent_task *task, struct task_listener *listener);
void task_unlisten(struct agent_task *task, struct task_listener *listener);
/* The client that waits for its first message gets the message of its state instead of the task. */
bool task_is_reply(const struct agent_task *task);
/* What is shown of it, valid until the next turn of the loop. */
const struct task *task_model(struct agent_task *task);

struct task_send {
	struct task_message message;
	const char *task, *context; /* or NULL */
	const struct push_config
		*push; /* of a new task: as push_config_read has read it; or NULL */
	bool waits;    /* for its end: nothing is told before */
};
/* Begins a task, or continues one that waits for input. ERR_NOT_FOUND: there is no such task of
 * this agent; ERR_CONFLICT: the task takes no message; ERR_INVALID: it belongs to another context,
 * or the answer can't be understood, or the message is too long, or the agent does not push there;
 * ERR_LIMIT: too many tasks run, or
 * the agent has too many contexts. */
core_verb int task_send(const struct request *request, struct agents *agents, const char *agent,
	const struct task_send *send, struct agent_task **task, struct error *err);
/* ERR_NOT_FOUND. */
core_verb int task_get(const struct request *request, struct agents *agents, const char *agent,
	const char *id, struct agent_task **task, struct error *err);
/* Listeners are told when it is canceled. ERR_NOT_FOUND; ERR_CONFLICT: it has ended. */
core_verb int task_cancel(const struct request *request, struct agents *agents, const char *agent,
	const char *id, struct agent_task **task, struct error *err);
struct task_filter {
	const char *context; /* or NULL */
	int state;	     /* -1: any */
	int64_t after_ms;    /* changed later than that */
	const char *cursor;  /* or NULL */
	size_t limit;
};
/* Changed last first. *total: how many there are on all pages. */
core_verb int task_list(const struct request *request, struct agents *agents, const char *agent,
	const struct task_filter *filter, void (*fn)(void *ctx, struct agent_task *task), void *ctx,
	char next[CORE_CURSOR_SIZE], size_t *total, struct error *err);

/* ---- push notifications ---- */
/* config: valid until the next turn of the loop; NULL with an error, and when one was deleted. */
typedef void push_config_fn(void *ctx, const struct push_config *config, const struct error *err);
/* Changes of the task are posted to its URL from now on, and the task at once if it has ended.
 * given: as push_config_read has read it; it replaces the caller's config of the same id, which is
 * the id of the task where none is given. ERR_NOT_FOUND; ERR_LIMIT: PUSH_CONFIGS_MAX; ERR_INVALID:
 * the agent does not push to its host. */
core_verb void push_config_set(const struct request *request, struct agents *agents,
	const char *agent, const char *task, const struct push_config *given, push_config_fn *done,
	void *ctx);
/* Of the caller alone. id NULL: the first. ERR_NOT_FOUND. */
core_verb int push_config_get(const struct request *request, struct agents *agents,
	const char *agent, const char *task, const char *id, const struct push_config **config,
	struct error *err);
core_verb int push_config_list(const struct request *request, struct agents *agents,
	const char *agent, const char *task,
	void (*fn)(void *ctx, const struct push_config *config), void *ctx, struct error *err);
/* Nothing more is posted. There being none is no error. ERR_NOT_FOUND: there is no such task. */
core_verb void push_config_delete(const struct request *request, struct agents *agents,
	const char *agent, const char *task, const char *id, push_config_fn *done, void *ctx);
