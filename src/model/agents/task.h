/* task.h -- a task of an A2A agent as plain data: one message, and what became of it. Messages and
 * artifacts are kept as the JSON of A2A 1.0. Pure. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "model/records/record.h"

#define TASK_CONTEXT_MAX 256		 /* bytes of a context id */
#define TASK_BYTES_MAX ((size_t)1 << 20) /* of history and artifacts, as JSON */

enum task_state {
	TASK_SUBMITTED,
	TASK_WORKING,
	TASK_INPUT_REQUIRED,
	TASK_COMPLETED,
	TASK_FAILED,
	TASK_CANCELED,
	TASK_REJECTED,
	TASK_STATE_COUNT
};
extern const char *const task_state_names[TASK_STATE_COUNT + 1]; /* "submitted" …, NULL */
/* Of `names`, or -1. */
int task_state_find(const char *const names[TASK_STATE_COUNT + 1], const char *text);
static inline bool task_state_is_final(enum task_state state)
{
	return state >= TASK_COMPLETED;
}
/* Whether a client that waits for it is told: it has ended, or needs an answer. */
static inline bool task_state_is_settled(enum task_state state)
{
	return state >= TASK_INPUT_REQUIRED;
}

struct task {
	char id[ID_LEN + 1];
	const char *agent, *context;
	enum task_state state;
	int64_t created_ms, updated_ms;	 /* Unix time */
	const char *workspace;		 /* its id, or NULL: none yet */
	const char *requested_by;	 /* the principal */
	const char *message;		 /* of its state: JSON, or NULL */
	const char *history, *artifacts; /* JSON: lists */
};
extern const struct record task_record;

/* A message that a client sent, or a program wrote. */
struct task_message {
	const char *id;	   /* messageId */
	const char *parts; /* JSON: a list of parts */
	const char *rest;  /* JSON: further members, each with a comma before it; or "" */
	const char *text;  /* of its text parts, one behind the other; "" if there is none */
	const char *data;  /* JSON of its first data part, or NULL */
	bool is_text;	   /* it has parts, and all are text */
};
/* The object of A2A 1.0. role: "ROLE_USER", "ROLE_AGENT". */
void task_print_message(struct buf *out, const struct task_message *message, const char *role,
	const char *task, const char *context);
/* Reads a message of A2A 1.0: messageId (made where it is missing, with needs_id an error), parts,
 * metadata, extensions, referenceTaskIds. Texts are in the arena. ERR_INVALID names the member. */
int task_read_message(const struct json_value *value, bool needs_id, struct arena *arena,
	struct task_message *out, struct error *err);
/* One that says `text`. */
void task_make_message(const char *text, struct arena *arena, struct task_message *out);
/* A value that was read from JSON, as it was written, without blanks: numbers stay as they are. */
void task_copy_json(struct json *j, const char *key, const struct json_value *value);
/* A part, as 1.0 has it, of one of 1.0. ERR_INVALID. */
int task_copy_part(struct json *j, const struct json_value *part, struct error *err);
