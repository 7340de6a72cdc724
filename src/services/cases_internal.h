/* cases_internal.h -- cases.c (what there is), case_remove.c, case_prepare.c, cells.c (the two
 * jobs) and case_steps.c (one command). Private to these. */
#pragma once
#include "base/map.h"
#include "base/share.h"
#include "services/cases.h"
#include "services/desk.h"
#include "services/waits.h"

#define CASES_SERVICE "cases"

struct cases {
	struct service_state base;
	struct map ids, cell_ids; /* of entries */
	struct case_entry *newest;
	struct loop_timer *sweep;
	size_t open_cells;		  /* that haven't ended */
	struct shares cell_shares;	  /* of these */
	uint64_t ended[CELL_STATE_COUNT]; /* since the start, by their last state */
	bool is_stopping;
};
struct case_entry {
	struct cases *cases;
	struct eval_case model;
	struct arena arena; /* of model and spec */
	struct case_spec spec;
	struct cell_entry *cells; /* newest first */
	struct prepare *prepare;  /* while it is being prepared */
	unsigned jobs;		  /* that hold it: the preparation, cells, the removal */
	bool is_removed;
	struct removal *removal; /* waits for those jobs */
	struct case_entry *newer, *older;
};
struct cell_entry {
	struct case_entry *c;
	struct cell model;
	struct arena arena;
	const struct request *request; /* the caller's request; in the arena */
	struct share share;	       /* until it has ended */
	bool is_stored;		       /* before that it has no job */
	struct cell_job *job;	       /* while it runs */
	struct cell_entry *next;
};

/* ---- cases.c ---- */
int case_find(struct cases *cases, const char *id, struct case_entry **c, struct error *err);
void case_emit(const struct case_entry *c, const char *type);
void case_drop(struct case_entry *c); /* from memory, with its cells */
void cases_arm_sweep(struct cases *cases);
void case_set_state(
	struct case_entry *c, enum case_state state, const char *reason, const char *error);
struct workspace_owner case_owner(const struct eval_case *model); /* of its workspaces */
struct cell_entry *cell_add(struct case_entry *c, const struct cell *model);
void cell_drop(struct cell_entry *cell);
/* Stored, when it has ended. */
void cell_set_state(
	struct cell_entry *cell, enum cell_state state, const char *reason, const char *error);

/* ---- case_remove.c ---- */
void case_unhold(struct case_entry *c); /* a job of the case has ended */
void case_expire(struct case_entry *c); /* removes it */

/* ---- case_prepare.c ---- */
/* The case is in state created: prepares it. Its cells go on at the end, well or not. */
void case_prepare(struct case_entry *c, const struct request *request);
void case_prepare_cancel(struct case_entry *c);

/* ---- cells.c ---- */
void cell_go_on(struct cell_entry *cell); /* its case is ready, or has failed */
void cell_cancel(struct cell_entry *cell, const char *reason);

/* ---- case_steps.c: one command in a workspace ---- */
struct step_wanted {
	const char *type, *name, *command; /* of struct case_step */
	text_list argv;			   /* empty: the command, by a shell */
	pair_list env;
	uint64_t timeout_ms;
	size_t output_max; /* bytes that are kept of what it writes */
};
struct step {
	struct fiber *fiber;
	struct case_step shown;
	size_t output_max;
	struct buf head, tail; /* of both streams */
	struct buf out;	       /* of stdout, from its beginning on */
	uint64_t dropped;      /* bytes between head and tail */
	struct buf output;     /* of all three, when it has ended */
	struct core_exec *exec;
};
/* Waits for its end: step->shown says how, and step->out what it printed. -1: it was canceled. A
 * step can be run again after that. */
int step_run(struct step *step, struct fiber *fiber, const struct desk *desk,
	const struct step_wanted *wanted, struct error *err);
void step_free(struct step *step);
/* Adds one to a JSON list, which begins empty; and the list as a text in the arena. */
void steps_add(struct buf *steps, const struct case_step *shown);
const char *steps_text(const struct buf *steps, struct arena *arena);
/* How much of each of `count` steps is kept. */
size_t steps_share(size_t count);
