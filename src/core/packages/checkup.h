/* checkup.h -- one check of a workspace: what the files behind health.h share, with environments
 * and with the repair before a start. Private to core.
 *	health.c		the check, step by step
 *	health_layers.c		what lies below its trees: environments and frozen layers
 *	health_python.c		the packages of its Python environment
 *	repair.c		what is done about findings */
#pragma once
#include "core/execs/execs.h"
#include "core/files/file_servers.h"
#include "core/internal.h"
#include "core/packages/health.h"

enum finding_kind {
	FINDING_OTHER,	     /* nothing to be done by us */
	FINDING_MARK,	     /* .workspace_configured is missing */
	FINDING_VENV,	     /* .venv is missing */
	FINDING_TREE,	     /* object: a directory of workspaces/<id> is missing */
	FINDING_ENVIRONMENT, /* object: an environment that is missing or damaged */
	FINDING_LAYER,	     /* object: a frozen layer that is missing or damaged */
	FINDING_PYTHON,	     /* its interpreter doesn't run */
	FINDING_PACKAGE,     /* object: a Python package is missing or can't be imported */
	FINDING_NODE,	     /* object: a Node package is missing */
};
struct finding {
	enum finding_kind kind;
	const char *object, *text;
	const char *wanted; /* FINDING_PACKAGE: the requirement that was declared; or NULL */
};
typedef VEC(struct finding) findings;

struct checkup {
	struct fiber *fiber;
	struct core_workspace *w; /* held while it is under way */
	struct arena arena;
	struct health health;
	findings found;
	bool is_deep;
	text_list node_packages;
	struct core_exec *probe; /* that has ended */
};

void checkup_find(struct checkup *c, enum finding_kind kind, const char *object, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));
/* As core_health without its verb; *c is checkup_done's afterwards. */
void checkup_run(struct fiber *fiber, struct checkup *c, struct core_workspace *w, bool is_deep);
void checkup_done(struct checkup *c);

/* ---- health_layers.c ---- */
/* By a look: directories of its tree, environments, frozen layers. */
void checkup_look_outside(struct checkup *c);
/* Compares all files of its layers with their hashes. */
void checkup_verify_layers(struct checkup *c);

/* Verifies the environment `name`, and repairs it. *verdict, in the arena, is what `env verify -o
 * json` said of it; NULL: nothing that can be read. -1: it could not be run. */
struct fiber;
int wait_verify(struct fiber *fiber, struct core *core, const char *name, bool repairs,
	struct arena *arena, const struct json_value **verdict, struct error *err);

/* ---- health.c ---- */
bool findings_have(const findings *found, enum finding_kind kind);

/* ---- repair.c ---- */
/* Repairs what a look from outside finds, of a workspace without a sandbox. -1: nothing was done,
 * and err says why. */
int repair_for_start(
	struct fiber *fiber, struct core_workspace *w, const char *request_id, struct error *err);

/* ---- repair_files.c ---- */
/* The files of a package are those of its layer again; slow, for a child. 1: done, 0: no layer of
 * `kind` has it, -1: err. `package` is LAYER_KIND_BASE for Python itself. */
struct env_kind;
int repair_restore(const struct core_workspace *w, const struct env_kind *kind, const char *package,
	struct error *err);

/* ---- health_python.c ---- */
/* Imports the declared packages by the workspace's own Python. */
void checkup_import(struct checkup *c);

/* ---- environments.c ---- */
/* Runs `carrel env verify` for the environment `name`; stdout goes to `answer`, a memfd. */
uint64_t environment_verify(struct core *core, const char *name, bool repairs, int answer,
	launcher_fn *done, void *ctx, struct error *err);
