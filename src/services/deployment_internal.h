/* deployment_internal.h -- what the files of deployments share. */
#pragma once
#include "base/arena.h"
#include "core/execs/execs.h"
#include "services/deployments.h"
#include "services/probe.h"

#define SERVICE_NAME WORKSPACE_DEPLOYMENTS
#define LOG_BYTES 16384 /* of each stream of a surface */

enum surface_status { SURFACE_ABSENT, SURFACE_STARTING, SURFACE_HEALTHY, SURFACE_UNHEALTHY };

struct revision_state;
struct surface {
	struct revision_state *revision;
	enum surface_kind kind;
	enum surface_status status;
	bool was_healthy;	      /* of this revision: a failure is for the supervisor */
	bool is_healed;		      /* its environment was compared with its hashes, once */
	struct core_healing *healing; /* under way */
	unsigned restarts, failures, crashes;
	unsigned ends; /* in a row: for its back-off */
	uint64_t healthy_since_ms;
	uint64_t deadline_ms;	 /* to be healthy for the first time */
	uint64_t restart_due_ms; /* when it is started again; 0: it runs, or is being started */
	struct loop_timer *timer;
	struct probe probe;
	struct core_exec *starting; /* until its listener is told */
	struct exec_follower follower;
	bool is_following;
	unsigned uses; /* requests under way */
	char why[256];
};

/* One step of a rollout; each ends in rollout_next or rollout_fail. */
enum rollout_step {
	STEP_PACKAGE,	 /* found in the blob store, */
	STEP_FETCH_MAKE, /* or fetched: a workspace with a network, */
	STEP_FETCH_RUN,	 /* a download in it, */
	STEP_FETCH_OPEN, /* its file, */
	STEP_FETCH_KEEP, /* stored */
	STEP_LAYER_MAKE, /* a workspace for the files */
	STEP_UNPACK,
	STEP_MANIFEST,
	STEP_REQUIREMENTS,
	STEP_PREBUILT, /* whether it has an environment */
	STEP_FREEZE,
	STEP_ENV,     /* the environment, which may be under way since the download */
	STEP_SURFACE, /* a workspace for each */
	STEP_START,
	STEP_WAIT, /* for their health */
	STEP_DONE
};
/* The environment of a revision while it is rolled out. */
struct rollout_env {
	char workspace[ID_LEN + 1];  /* for which it is built, or "" */
	struct environment_job *job; /* from its begin until the surfaces have it */
	bool is_making;		     /* the workspace, or its files: a callback will come */
	bool has_wheels;	     /* the pre-built environment lies in it */
	bool is_begun, is_awaited, has_ended;
	bool is_installing;		   /* its progress has begun */
	const char *python, *requirements; /* of what is built; python: or NULL */
	struct error failure;
	struct journal_listener progress;
	bool is_listening;
};
struct revision_state {
	struct deployment_state *deployment;
	struct arena arena;
	struct revision model;
	struct apkg agent; /* of the manifest, when that is there */
	struct surface surfaces[SURFACE_COUNT];
	/* of its rollout */
	enum rollout_step step;
	bool is_rolling, is_waiting; /* waiting: a callback will come */
	bool is_canceled;	     /* it ends with that callback */
	bool is_ended;		     /* freed with the last request that uses it */
	int at;			     /* surface of STEP_SURFACE */
	struct rollout_env env;
	int package; /* the file, or -1 */
	char fetch[ID_LEN + 1];
	struct archive_job *unpacking;
	struct package_pump *pump;
	struct core_exec *fetching;
	struct loop_timer *drain;
	uint64_t drain_until_ms;
	struct error failure; /* of what is told later */
};
struct deployment_state {
	struct deployments *all;
	struct arena arena;
	char id[ID_LEN + 1];
	const char *name;
	int64_t created_ms, updated_ms;
	uint64_t revisions;
	struct deployment_rollout rollout; /* version in the arena */
	char error[600];
	char *logs[SURFACE_COUNT]; /* of the rollout that failed, or NULL */
	struct revision_state *live, *next, *previous;
	bool is_removed;
	struct deployment_state *newer, *older;
};
struct deployments {
	struct service_state service; /* first */
	struct deployment_state *newest;
	bool is_stopping;
	uint64_t rollouts, rollout_failures, restarts;
};

/* ---- deployments.c ---- */
void deployment_save(struct deployment_state *d, store_done_fn *done, void *ctx);
/* Status of the rollout, an event, the row. */
void deployment_set_status(
	struct deployment_state *d, enum deployment_status status, const struct error *err);
/* A surface of the live revision has changed: an event if the status of all has. */
void deployment_surface_changed(struct deployment_state *d);
struct revision_state *revision_new(struct deployment_state *d, const struct revision *model);
/* Ends everything of it, and frees it: workspaces, and its layer unless another revision has it. */
void revision_end(struct revision_state *r);
bool revision_is_healthy(const struct revision_state *r);
/* What is done for the caller who asked for it, by the principal `agent of deployment NAME for
 * CALLER`: judged and recorded, which core's own is not. Lives in `arena`. */
const struct request *revision_request(const struct revision_state *r, struct arena *arena);
void deployment_forget_logs(struct deployment_state *d);
/* A revision of any deployment with the files of that package, or NULL. */
const struct revision *revision_of_package(const struct deployments *all, const char *sha256);
void revision_drop_workspace(const struct revision_state *r, const char *id);
int apkg_parse(struct str yaml, struct arena *arena, struct apkg *agent, struct error *err);

/* ---- deployment_show.c ---- */
/* Fills in what the row doesn't have. */
void deployment_describe(
	const struct deployment_state *d, struct arena *arena, struct deployment *shown);
/* Output of that surface (NULL: of all). false: there is no such surface. */
bool deployment_print_logs(const struct deployment_state *d, const char *surface, struct buf *out);

/* ---- rollout.c ---- */
void rollout_begin(struct revision_state *r);
void rollout_next(struct revision_state *r); /* the next step */
/* A callback came: whether the rollout goes on. *err: it doesn't; the failure is told. */
bool rollout_resume(struct revision_state *r, const struct error *err);
void rollout_fail(struct revision_state *r, const struct error *err);
void rollout_surface_changed(struct surface *s);
void rollout_stop(struct revision_state *r); /* cancels what can be; frees nothing */
/* Unpacks r->package into a directory of that workspace, and waits; the callback begins with
 * rollout_unpacked. */
int rollout_unpack(struct revision_state *r, const char *workspace, const char *path,
	void (*done)(void *ctx, const struct error *err), struct error *err);
void rollout_unpacked(struct revision_state *r);
struct workspace_owner rollout_owner(struct revision_state *r, const char *role);
/* ---- rollout_env.c ---- */
/* Begins to build it while the package is fetched: that of the revision before, if there is one. */
void env_begin_early(struct revision_state *r);
void env_step(struct revision_state *r);
/* Ends its build, and removes its workspace; the environment may be removed from here on. */
void env_stop(struct revision_state *r);
/* requirements.txt, and before it the lines for the indexes that the request names. */
const char *env_requirements(struct revision_state *r, const char *text);
/* ---- rollout_fetch.c ---- */
void fetch_make(struct revision_state *r);
void fetch_run(struct revision_state *r);
void fetch_open(struct revision_state *r);
void fetch_end(struct revision_state *r); /* ends the download, and removes its workspace */

/* ---- surface.c ---- */
struct core_workspace *surface_workspace(const struct surface *s); /* or NULL */
/* What every command in its workspace finds: its port, and where the package is. */
pair_list surface_variables(
	const struct revision_state *r, enum surface_kind kind, struct arena *arena);
void surface_start(struct surface *s); /* its exec, and the checks of its health */
/* ERR_UNAVAILABLE for a request: why it doesn't run, and when it is started again. */
void surface_fail_away(const struct surface *s, struct error *err);
void surface_adopt(struct surface *s); /* after a restart of core: what runs goes on */
void surface_stop(struct surface *s);  /* no more checks, timers or callbacks */
void surface_read_log(const struct surface *s, struct buf *out);
