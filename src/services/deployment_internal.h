/* deployment_internal.h -- what the files of deployments share. */
#pragma once
#include "base/arena.h"
#include "services/deployments.h"
#include "services/desk.h"
#include "services/waits.h"

#define SERVICE_NAME WORKSPACE_DEPLOYMENTS
#define LOG_BYTES 16384 /* of each stream of a surface */

enum surface_status { SURFACE_ABSENT, SURFACE_STARTING, SURFACE_HEALTHY, SURFACE_UNHEALTHY };

struct revision_state;
struct surface {
	struct revision_state *revision;
	enum surface_kind kind;
	enum surface_status status;
	struct bell bell; /* of the job that supervises it; its fiber is NULL: none does */
	bool is_stopped;  /* its supervisor is ending */
	bool was_healthy; /* was healthy once in this revision: then a failure is handled by the
			     supervisor */
	bool is_healed;	  /* its environment was compared with its hashes, once */
	struct core_healing *healing; /* in progress, or NULL */
	unsigned restarts, failures, crashes;
	unsigned ends; /* consecutive ends, for the back-off */
	uint64_t healthy_since_ms;
	uint64_t deadline_ms;	    /* until which it must have been healthy once */
	uint64_t restart_due_ms;    /* when it is started again; 0: it runs, or is being started */
	struct core_exec *starting; /* until its listener was called */
	struct exec_follower follower;
	bool is_following,
		has_ended; /* is_following: `follower` is in use; has_ended: its process has */
	unsigned uses;	   /* number of requests in progress */
	char why[256];
};

/* The environment of a revision while it is rolled out. */
struct rollout_env {
	struct rollout *rollout;
	struct fiber *early;	   /* builds it while the package is fetched, or NULL */
	struct desk desk;	   /* the workspace for which it is built */
	struct env_pin *pin;	   /* of what was built, until the surfaces have it; or NULL */
	bool is_begun, has_failed; /* state of `early` */
	bool is_superseded;	   /* the package needs another one than `early` builds */
	bool is_prebuilt, is_awaited, is_installing;
	const char *python, *requirements; /* of the environment in progress; python may be NULL */
	struct error failure;
	struct journal_listener progress;
	struct fiber *fiber; /* the fiber that waits for the build */
};
/* Lives as long as its fiber. */
struct rollout {
	struct revision_state *revision;
	struct fiber *fiber;
	struct bell bell;     /* of its surfaces, and its environment */
	struct desk files;    /* workspace of the package's files; its id is that of their layer */
	int package;	      /* the file, or -1 */
	struct error failure; /* of a surface; code 0: none */
	struct rollout_env env;
};
struct revision_state {
	struct deployment_state *deployment;
	struct arena arena;
	struct revision model;
	struct apkg agent; /* of the manifest, when that is there */
	struct surface surfaces[SURFACE_COUNT];
	struct rollout *rollout; /* NULL: it isn't being rolled out */
	struct fiber *drain;	 /* ends it after it was replaced; or NULL */
	bool is_canceled;	 /* it ends with its rollout */
	bool is_ended;		 /* freed with the last request that uses it */
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
	bool is_stopping, is_freed;
	uint64_t rollouts, rollout_failures, restarts;
};

/* ---- deployments.c ---- */
void deployment_save(struct deployment_state *d, store_done_fn *done, void *ctx);
/* Status of the rollout, an event, the row. */
void deployment_set_status(
	struct deployment_state *d, enum deployment_status status, const struct error *err);
/* A surface of the live revision has changed: an event if the status of all has. */
void deployment_surface_changed(struct deployment_state *d);
void deployment_forget_logs(struct deployment_state *d);
void deployment_free(struct deployment_state *d);
int apkg_parse(struct str yaml, struct arena *arena, struct apkg *agent, struct error *err);

/* ---- revisions.c ---- */
struct revision_state *revision_new(struct deployment_state *d, const struct revision *model);
/* Ends everything of it, and frees it: workspaces, and its layer unless another revision has it. */
void revision_end(struct revision_state *r);
bool revision_is_healthy(const struct revision_state *r);
/* What is done for the caller who asked for it, by the principal `agent of deployment NAME for
 * CALLER`: judged and recorded, which core's own is not. Lives in `arena`. */
const struct request *revision_request(const struct revision_state *r, struct arena *arena);
/* A revision of any deployment with the files of that package, or NULL. */
const struct revision *revision_of_package(const struct deployments *all, const char *sha256);
void revision_drop_workspace(const struct revision_state *r, const char *id);
void revision_free(struct revision_state *r); /* without a call to core */
/* Of one that has ended, unless requests that are forwarded name its surfaces. */
void revision_free_unused(struct revision_state *r);

/* ---- deployment_show.c ---- */
/* Fills in what the row doesn't have. */
void deployment_describe(
	const struct deployment_state *d, struct arena *arena, struct deployment *shown);
/* Output of that surface (NULL: of all). false: there is no such surface. */
bool deployment_print_logs(const struct deployment_state *d, const char *surface, struct buf *out);

/* ---- rollout.c ---- */
void rollout_begin(struct revision_state *r);
void rollout_surface_changed(struct revision_state *r);
/* It never becomes healthy. */
void rollout_surface_failed(struct revision_state *r, const struct error *why);
struct workspace_owner rollout_owner(struct revision_state *r, const char *role);
/* A workspace for it, by the principal of the revision; from then on core itself works there. */
int rollout_create(struct rollout *rollout, struct fiber *fiber, struct desk *desk,
	const struct workspace *wanted, struct error *err);
/* Doesn't wait for the removal. */
void rollout_drop_desk(struct rollout *rollout, struct desk *desk);
/* ---- rollout_env.c ---- */
/* Begins to build it while the package is fetched: that of the revision before, if there is one. */
void env_begin_early(struct rollout *rollout);
/* Finds it, or builds it. */
int env_provide(struct rollout *rollout, struct error *err);
/* Ends its build, and removes its workspace; the environment may be removed from here on. */
void env_stop(struct rollout *rollout);
/* requirements.txt, and before it the lines for the indexes that the request names. */
const char *env_requirements(struct revision_state *r, const char *text);
/* ---- rollout_fetch.c ---- */
/* Downloads the package, and stores it: rollout->package and the SHA-256 of the revision. */
int fetch_package(struct rollout *rollout, struct error *err);
/* The answer of core's store of packages; ctx: the rollout. */
void rollout_take_package(
	void *ctx, int fd, uint64_t size, const char *sha256, const struct error *err);
const char *rollout_package_name(struct revision_state *r);

/* ---- surface.c ---- */
struct core_workspace *surface_workspace(const struct surface *s); /* or NULL */
/* What every command in its workspace finds: its port, and where the package is. */
pair_list surface_variables(
	const struct revision_state *r, enum surface_kind kind, struct arena *arena);
/* Begins the job that starts its process, checks its health, and starts it again. */
void surface_start(struct surface *s);
/* ERR_UNAVAILABLE for a request: why it doesn't run, and when it is started again. */
void surface_fail_away(const struct surface *s, struct error *err);
void surface_adopt(struct surface *s); /* after a restart of core: what runs goes on */
void surface_stop(struct surface *s);  /* ends that job; its process goes on */
void surface_read_log(const struct surface *s, struct buf *out);
