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
	size_t slot; /* of the environment that is verified */
	int answer;  /* memfd: stdout of `env verify`, or -1 */
	struct core_exec *probe;
};

void checkup_find(struct checkup *c, enum finding_kind kind, const char *object, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));
/* As core_health without its verb. What it returns is valid until done returns. */
struct checkup *checkup_begin(
	struct core_workspace *w, bool is_deep, core_health_fn *done, void *ctx);

/* ---- health_layers.c ---- */
/* By a look: directories of its tree, environments, frozen layers. */
void checkup_look_outside(struct checkup *c);
/* Compares all files of its layers with their hashes, then checkup_look_inside. */
void checkup_verify_layers(struct checkup *c);
/* What `env verify -o json` said of one environment; NULL: nothing that can be read. */
const struct json_value *verdict_read(int answer, struct arena *arena);

/* Verifies and repairs the environment `name`; *verdict as above, in the arena. -1: it could not be
 * done. */
struct fiber;
int wait_verify(struct fiber *fiber, struct core *core, const char *name, struct arena *arena,
	const struct json_value **verdict, struct error *err);

/* ---- health.c ---- */
bool findings_have(const findings *found, enum finding_kind kind);
void checkup_look_inside(struct checkup *c);

/* ---- repair.c ---- */
/* Repairs what a look from outside finds, of a workspace without a sandbox; done(ctx, w, NULL) when
 * something was done, else err says why not. Holds w until then. */
void repair_for_start(
	struct core_workspace *w, const char *request_id, core_workspace_fn *done, void *ctx);

/* ---- repair_files.c ---- */
/* The files of a package are those of its layer again; slow, for a child. 1: done, 0: no layer of
 * `kind` has it, -1: err. `package` is LAYER_KIND_BASE for Python itself. */
struct env_kind;
int repair_restore(const struct core_workspace *w, const struct env_kind *kind, const char *package,
	struct error *err);

/* ---- health_python.c ---- */
/* Imports the declared packages by the workspace's own Python, then checkup_finish. */
void checkup_import(struct checkup *c);
void checkup_finish(struct checkup *c);

/* ---- environments.c ---- */
/* Runs `carrel env verify` for the environment `name`; stdout goes to `answer`, a memfd. */
uint64_t environment_verify(struct core *core, const char *name, bool repairs, int answer,
	launcher_fn *done, void *ctx, struct error *err);
/* Of slot 0 or 1, as the model has it; or NULL. */
const char *environment_name(const struct core_workspace *w, size_t slot);
/* The names of what its environment has: normalised name and version; NULL: none is known. */
const struct env_meta *environment_meta(const struct core_workspace *w);
