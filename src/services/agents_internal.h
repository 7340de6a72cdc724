/* agents_internal.h -- what the files of the service share. */
#pragma once
#include "base/map.h"
#include "base/share.h"
#include "core/access/approvals.h"
#include "core/execs/execs.h"
#include "services/agents.h"

struct agent_entry {
	struct a2a_agent model;
	unsigned users; /* the map, and tasks that run */
	struct arena arena;
	bool is_written; /* false: its row isn't in the store yet */
};
/* Of push notifications (task_push.h). */
struct push;
struct pushes {
	struct push *waiting,
		*active; /* waiting: queue for a workspace; active: those that have one */
	size_t active_count, bytes;
	text_list stale;		    /* until the start: ids of rows without a task */
	struct arena arena;		    /* of `stale` */
	uint64_t delivered, failed, merged; /* for metrics */
};
/* What the stored tasks of one agent take. */
struct task_share {
	char agent[AGENT_NAME_MAX + 1];
	size_t count, bytes;
	struct task_share *next;
};
struct agents {
	struct service_state base;
	struct map entries;		    /* name -> struct agent_entry */
	struct map tasks;		    /* id -> struct agent_task */
	struct agent_task *newest, *oldest; /* by the time of their last change */
	struct task_share *shares;	    /* of agents that have tasks */
	struct opening *openings;	    /* contexts that are being made (task_context.c) */
	struct task_run *runs;
	struct shares run_shares;
	struct pushes pushes;
	size_t running, kept_bytes;
	uint64_t ended[TASK_STATE_COUNT]; /* for metrics */
	struct loop_timer *sweep;
	bool is_started;
};

/* An artifact of a task that runs. */
struct artifact {
	const char *id, *head; /* head: JSON members with a comma behind each, or "" */
	struct buf parts;      /* JSON: parts, with commas between */
	struct buf bytes;      /* output as one part, sent before `parts`; or empty */
	bool is_binary, is_cut;
	struct artifact *next;
};
struct agent_task {
	struct agents *agents;
	struct task model;
	struct arena arena; /* of id-like texts of the model */
	struct buf history, artifacts, message;
	struct artifact *made; /* artifacts, while it runs */
	struct task_listener *listeners;
	struct push *pushes;
	struct task_run *run; /* NULL: it has ended */
	struct agent_task *newer, *older;
	bool is_ending;		   /* its final state is being written */
	bool is_reply;		   /* its program has said nothing but one message, its last */
	bool is_kept;		   /* it has a row, or `saving` writes one */
	struct loop_timer *saving; /* writes its row */
	size_t bytes;		   /* its size, counted in kept_bytes and in its share */
	struct task_share *share;
};

#define PROGRAM_OUTPUT_MAX ((uint64_t)16 << 20)

/* What a task needs while it runs; its agent is the one there was when the task began.
 * 1. The exec of a task has the id of the task.
 * 2. One that has to be approved is in the background (task_follow.c), and outlives core. */
struct task_run {
	struct agent_task *task;
	struct arena arena;
	struct share share;
	struct agent_entry *entry;
	const struct request
		*request;  /* the caller's, or that of the agent acting for the caller */
	const char *text;  /* the command of kind shell */
	const char *first; /* the message, as JSON */
	bool is_throwaway;
	bool is_captured; /* no client follows the task: its output is captured, which is faster */
	char workspace[ID_LEN + 1];
	struct opening *opening;
	struct task_run *next_waiting; /* list of the tasks that wait for `opening` */
	struct task_run *next;	       /* list of all runs */
	struct core_exec *exec;	       /* its foreground exec, or NULL */
	bool is_background, is_begun;
	struct exec_follower follower; /* in the background */
	uint64_t offsets[2];	       /* of its output, up to which it was read */
	char approval[ID_LEN + 1];     /* the approval that it waits for, or "" */
	struct buf tails[2]; /* shell: an incomplete character; command: a line; the log */
	size_t tail_from;    /* where the next line begins in the tail */
	struct buf input;    /* command: what its stdin has not taken yet */
	struct exec_writer writer;
	bool is_awaiting_stdin, is_stdin_ended;
	bool is_shown; /* its client may have seen the task: a message can't stand for it */
	unsigned lines;
	struct loop_timer *failing; /* ends the task with `final` */
	enum task_state final;
	const char *message, *why; /* why: the argument of run_fail, or NULL */
};

/* ---- agents.c ---- */
struct agent_entry *entry_hold(struct agents *agents, const char *name);
void entry_release(struct agent_entry *entry);

/* ---- tasks.c ---- */
/* For a callback that may come when the task is gone: freed by task_recall. */
void *task_remember(const struct agent_task *task);
struct agent_task *task_recall(void *remembered); /* NULL: it is gone */
/* The one function that changes a state. `message` (JSON, or NULL: none) goes with it. */
void task_set_state(struct agent_task *task, enum task_state state, const char *message);
/* The same with a text, which may be NULL. */
void task_set_text(struct agent_task *task, enum task_state state, const char *text);
void task_add_history(struct agent_task *task, const char *message);
bool task_has_room(const struct agent_task *task, size_t bytes);
/* Adds to an artifact, and tells listeners; parts: JSON, with commas between. */
struct artifact *task_artifact(struct agent_task *task, const char *id, const char *head);
void task_add_parts(struct agent_task *task, struct artifact *artifact, const char *parts,
	bool append, bool is_last);
void task_add_output(struct agent_task *task, struct artifact *artifact, struct str data);
void task_tell_kept(struct agent_task *task);
/* Writes its row, now or soon: several changes are one write. Its end writes it anyway. */
void task_save(struct agent_task *task);
void task_save_soon(struct agent_task *task);
struct agent_task *task_new(struct agents *agents, const char *id, const char *agent);
void task_touch(struct agent_task *task); /* it has changed now */
void task_restore(struct agents *agents, const struct task *row);
/* The task of that agent, if the principal may do so with it. ERR_NOT_FOUND. */
int task_find(const struct request *request, struct agents *agents, const char *agent,
	const char *id, enum verb verb, struct agent_task **task, struct error *err);
void task_forget(struct agent_task *task); /* its row, too */
void task_free(struct agent_task *task);
void tasks_begin(struct agents *agents); /* after a start: what was interrupted ends */
void tasks_sweep(struct agents *agents);

/* ---- task_run.c ---- */
/* Begins to run a submitted task. */
void run_begin(struct agent_task *task, const struct request *request, const struct task_send *send,
	const char *message);
/* Continues a task that waits for input. */
int run_answer(const struct request *request, struct task_run *run,
	const struct task_message *message, const char *json, struct error *err);
/* Ends the task, soon: for callbacks of its exec. message: JSON, or NULL. */
void run_finish(struct task_run *run, enum task_state state, const char *message);
/* The same of a program: `failed`, with this text and the end of its log. */
void run_fail(struct task_run *run, const char *why);
/* Lets go of everything: the exec is ended, a throw-away workspace removed. */
void run_end(struct task_run *run);
/* After a start: a task whose exec goes on, or still waits. false: it can't go on, and *why says
 * it. */
bool run_resume(struct agent_task *task, const char **why);
/* The parts that differ by where the command runs. */
void run_started(struct task_run *run);
void run_output(struct task_run *run, int stream, struct str data);
void run_ask(struct task_run *run, const struct approval *approval); /* input-required */
/* captured: what was captured of its output, or NULL. */
void run_conclude(struct task_run *run, const struct exec_record *record,
	const struct exec_captured *captured);
void run_refuse(struct task_run *run, const struct error *err);
void run_unawait(struct task_run *run); /* stops waiting for its stdin */
/* In its workspace. */
void run_exec(struct task_run *run, struct core_workspace *w);

/* ---- task_context.c: the workspaces of tasks ---- */
/* ERR_LIMIT: the agent has as many contexts as it may have, and this is a new one. */
int context_check(struct agents *agents, const struct a2a_agent *agent, const char *context,
	struct error *err);
/* Finds or makes it, then run_exec. */
void context_find(struct task_run *run);
bool context_is_throwaway(struct agents *agents, const char *workspace);
void context_leave_opening(struct task_run *run); /* stops waiting for its context */
/* After a start: removes throw-away workspaces of tasks that don't run. */
void contexts_begin(struct agents *agents);

/* ---- task_follow.c: commands in the background ---- */
void follow_begin(struct task_run *run, struct core_exec *exec);
void follow_end(struct task_run *run);
struct core_exec *follow_exec(const struct task_run *run); /* NULL: it is gone */

/* ---- task_program.c: the JSON lines of a `command` agent ---- */
void program_send(struct task_run *run, const char *message);
void program_output(struct task_run *run, int stream, struct str data);
void program_explain(const struct task_run *run, struct buf *text); /* run->why, and its log */
/* It has ended by itself. */
void program_ended(struct task_run *run, const struct result *result, const char *why);

/* ---- task_push.c ---- */
void pushes_restore(struct agents *agents, const struct push_config *row);
/* After a start: removes what is left over. Then, when tasks go on or have ended: tells what wasn't
 * told. */
void pushes_begin(struct agents *agents);
void pushes_resume(struct agents *agents);
/* The config that came with the first message; its row is queued before that of the task. */
void pushes_add(
	struct agent_task *task, const struct request *request, const struct push_config *given);
/* ERR_INVALID: the agent does not push there. is_port_named: as for push_config_check; or NULL. */
int pushes_check(const struct a2a_agent *agent, const struct push_config *config,
	bool *is_port_named, struct error *err);
void pushes_drop(struct agent_task *task); /* it is forgotten */
size_t pushes_bytes(const struct agent_task *task);
void pushes_print_metrics(const struct agents *agents, struct buf *out);
