/* health_internal.h -- what the files behind health.h share. Private to this room.
 *	health.c		the check, step by step
 *	health_python.c		the packages of its Python environment
 *	repair.c		what is done about findings */
#pragma once
#include "core/agents.h"
#include "core/exec_internal.h"
#include "core/health.h"
#include "core/internal.h"

enum finding_kind {
	FINDING_OTHER,	     /* nothing to be done by us */
	FINDING_MARK,	     /* .workspace_configured is missing */
	FINDING_VENV,	     /* .venv is missing */
	FINDING_TREE,	     /* object: a directory of workspaces/<id> is missing */
	FINDING_ENVIRONMENT, /* it is missing or damaged */
	FINDING_PYTHON,	     /* its interpreter doesn't run */
	FINDING_PACKAGE,     /* object: a Python package is missing or can't be imported */
	FINDING_NODE,	     /* object: a Node package is missing */
};
struct finding {
	enum finding_kind kind;
	const char *object, *text;
};
typedef VEC(struct finding) findings;

struct checkup {
	struct core_workspace *w; /* held */
	struct arena arena;
	struct health health;
	findings found;
	bool is_deep;
	core_health_fn *done;
	void *ctx;
	/* in progress */
	text_list node_packages;
	size_t node_at;
	int answer; /* memfd: stdout of `env verify`, or -1 */
	struct core_exec *probe;
};

void checkup_find(struct checkup *c, enum finding_kind kind, const char *object, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));
/* As core_health without its verb. What it returns is valid until done returns. */
struct checkup *checkup_begin(
	struct core_workspace *w, bool is_deep, core_health_fn *done, void *ctx);

/* ---- health_python.c ---- */
/* Imports the declared packages by the workspace's own Python, then checkup_finish. */
void checkup_import(struct checkup *c);
void checkup_finish(struct checkup *c);

/* ---- environments.c ---- */
/* Runs `carrel env verify` for the environment of w; stdout goes to `answer`, a memfd. */
uint64_t environment_verify(struct core_workspace *w, bool repairs, int answer, launcher_fn *done,
	void *ctx, struct error *err);
/* The names of what its environment has: normalised name and version; NULL: none is known. */
const struct env_meta *environment_meta(const struct core_workspace *w);
