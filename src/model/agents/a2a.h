/* a2a.h -- tasks, messages and events as A2A shows them: on the routes of agents, and in what is
 * pushed to clients. What is kept is JSON of 1.0; 0.3 is made of it. Pure. */
#pragma once
#include "model/agents/task.h"

enum task_event_kind {
	TASK_EVENT_KEPT,   /* the new task is in the store */
	TASK_EVENT_STATUS, /* its state, or the message of that */
	TASK_EVENT_ARTIFACT,
};
struct task_event {
	enum task_event_kind kind;
	const char *artifact; /* JSON */
	bool append, is_last;
};

#define A2A_ALL SIZE_MAX					/* of the history */
extern const char *const a2a_state_names[TASK_STATE_COUNT + 1]; /* "TASK_STATE_SUBMITTED" … */
void a2a_print_task(struct json *j, const char *key, const struct task *task, bool is_old,
	size_t history, bool has_artifacts);
/* A message (JSON) that is an answer by itself: it names no task. */
void a2a_print_message(struct json *j, const char *key, const char *message, bool is_old);
/* A statusUpdate or artifactUpdate. */
void a2a_print_event(struct json *j, const char *key, const struct task *task,
	const struct task_event *event, bool is_old);
/* A message of 0.3 as one of 1.0; NULL: it can't be one. */
const struct json_value *a2a_read_old(
	const struct json_value *message, struct arena *arena, struct error *err);
