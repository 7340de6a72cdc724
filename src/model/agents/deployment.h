/* deployment.h -- an agent package that is served: the noun, its revisions, and what clients send.
 * Pure.
 * 1. A deployment has at most three revisions: the live one, the next one (being rolled out), and
 * the one before the live one, to go back to.
 * 2. Names of what clients see are those of the seed where it has them (agentAppId, venv …). */
#pragma once
#include "base/id.h"
#include "base/vec.h"
#include "model/agents/apkg.h"
#include "model/nouns/workspace.h"

enum deployment_status {
	DEPLOYMENT_DOWNLOADING,
	DEPLOYMENT_BUILDING_ENV,
	DEPLOYMENT_INSTALLING_DEPS,
	DEPLOYMENT_STARTING,
	DEPLOYMENT_HEALTHY,
	DEPLOYMENT_UNHEALTHY,
	DEPLOYMENT_FAILED,
	DEPLOYMENT_STOPPED,
	DEPLOYMENT_STATUS_COUNT
};
extern const char *const deployment_status_names[DEPLOYMENT_STATUS_COUNT + 1];

struct surface_row {		      /* what is kept of a surface */
	const char *workspace, *exec; /* ids, or NULL */
};
struct revision {
	uint64_t number; /* 0: there is none */
	const char *agent_app_id, *version, *package_url;
	const char *wanted_sha256; /* or NULL */
	bool rebuild_venv, skip_venv_cache, force_refresh;
	const char *pip_index_url, *pip_extra_index_url, *pip_trusted_host; /* or NULL */
	pair_list env;
	struct workspace_network network;
	const char *settings;		     /* JSON, or NULL */
	const char *caller;		     /* the name of the principal that asked for it */
	const char *sha256;		     /* of the package; NULL: not known yet */
	const char *manifest, *requirements; /* texts of the package, or NULL */
	const char *layer, *snapshot;	     /* ids: the workspace with its files, frozen */
	const char *environment;	     /* or NULL */
	bool is_cached;			     /* nothing was installed for it */
	bool is_prebuilt;		     /* the package has APKG_VENV */
	struct surface_row surfaces[SURFACE_COUNT];
};

struct deployment_venv { /* the seed's block */
	const char *path, *name, *source, *requirements_sha256, *created_at, *python_version;
	pair_list packages;
	bool cached;
};
struct deployment_rollout { /* the latest one */
	uint64_t revision;
	const char *version;
	int status; /* enum deployment_status */
	const char *error;
};
struct deployment {
	char id[ID_LEN + 1];
	const char *name;
	int64_t created_ms, updated_ms;
	uint64_t revisions; /* the number of the newest */
	struct deployment_rollout rollout;
	const char *logs[SURFACE_COUNT]; /* ends of the output of a rollout that failed, or NULL */
	struct revision live, next, previous;
	/* shown */
	int status;
	uint64_t revision;
	const char *agent_app_id, *version, *package_url, *sha256, *error;
	struct deployment_venv venv;
	bool has_venv;
	const char *surfaces; /* JSON: a list of SurfaceInfo */
};
extern const struct record deployment_record, surface_info_record;
extern const struct record revision_record; /* what is kept of one */

struct surface_info {
	const char *name, *status, *workspace, *exec, *url, *error;
	uint64_t port, restarts;
};

/* What is asked for. */
struct deployment_wanted {
	const char *name, *agent_app_id, *version, *package_url, *sha256;
	bool rebuild_venv, skip_venv_cache, force_refresh;
	const char *pip_index_url, *pip_extra_index_url, *pip_trusted_host;
	pair_list env;
	struct workspace_network network;
	const char *settings;
};
extern const struct record deployment_wanted_record;

/* What a surface finds its modules by. Variables of its workspace with these values are Carrel's.
 */
#define DEPLOYMENT_PYTHONPATH "/workspace/src:/workspace"
#define DEPLOYMENT_PYTHONUNBUFFERED "1"
bool deployment_sets_variable(const struct workspace *workspace, const struct text_pair *variable);
