/* task_push.h -- push notifications of A2A tasks: changes of a task are posted to the URLs that its
 * clients have configured. Private to the service `agents`.
 * 1. Core has no network: a program in a throw-away workspace posts, which reaches the host of the
 * URL alone, through egress as any workspace. Secrets are on its stdin, and nowhere else.
 * 2. Changes come in the order in which they happened. Those that wait are merged into the task as
 * it is, when they are too many or one was given up: what a receiver gets last is always the state.
 * 3. The last state of its task is told at least once, also after a restart: a row says whether the
 * end was told, or the question that the task waits with. Steps between are not told again. */
#pragma once
#include "services/agents_internal.h"
#include "services/desk.h"
#include "services/waits.h"

#define PUSH_SERVICE WORKSPACE_PUSH	  /* of the workspaces */
#define PUSH_ENTRIES_MAX 64		  /* that wait, of one config */
#define PUSH_BYTES_MAX ((size_t)64 << 20) /* that wait, of all */
#define PUSH_ACTIVE_MAX 32		  /* workspaces at once */
#define PUSH_ACTIVE_OWNER_MAX 8		  /* of one principal */

struct push_entry {
	struct buf body; /* empty: the task, as it is when this is posted */
	struct push_entry *next;
};
struct push {
	struct agents *agents;
	struct agent_task *task; /* NULL: the config is gone, and this is freed soon */
	struct push *next;	 /* of that task */
	struct push_config model;
	struct arena arena;
	struct task_listener listener;
	struct push_entry *first; /* that wait; the first `sent` of them are being posted */
	size_t count, sent;
	struct bell bell; /* of the job that posts; its fiber is NULL: nothing is to be posted */
	struct desk desk;
	struct buf orders; /* stdin of the program */
	bool has_place;	   /* one of the workspaces is its own, or will be */
	bool is_posting, is_failing;
	uint64_t paused_until_ms;
	uint64_t seen_ms; /* the task's change that came last: it waits here, or was told */
	unsigned attempts;
	struct push *next_of; /* of those that wait for a workspace, or have one */
};

/* ---- task_push.c ---- */
void push_drop_first(struct push *push);
/* The others are told by the task, which is the last of these. */
void push_keep_only(struct push *push, size_t count);
/* What waits, but what is being posted, becomes one entry: the task. */
void push_merge(struct push *push);
/* Removes the config from its task and frees it. Its row stays. */
void push_forget(struct push *push);
void push_free(struct push *push);
/* Nothing is left to be told of a task that has ended, or waits for input. */
void push_settle(struct push *push);

/* ---- task_post.c ---- */
/* Goes on, if there is something to do. */
void push_next(struct push *push);
/* The config is gone. */
void push_end(struct push *push);
