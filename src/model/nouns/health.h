/* health.h -- what a check of a workspace found, as plain data. Pure. */
#pragma once
#include "model/nouns/workspace.h"
#include "model/records/record.h"

struct health {
	const char *workspace, *name; /* its id */
	enum workspace_state state;   /* before the check */
	bool is_healthy;	      /* no issues */
	bool configured;	      /* .workspace_configured exists */
	bool python_venv;	      /* .venv exists, and its Python runs */
	bool python_deps_installed;   /* and imports every declared package */
	bool node_modules;	      /* exists */
	bool node_deps_installed;     /* and has every dependency of package.json */
	uint64_t disk_usage, disk_limit;
	const char *disk_mechanism;
	struct environment_names environments;
	uint64_t layers;	 /* of its environments */
	uint64_t frozen_layers;	 /* of snapshots and its template */
	bool is_deep;		 /* files of layers were compared with their hashes */
	text_list issues;	 /* sentences; empty: healthy */
	text_list layers_active; /* of its isolation */
};
extern const struct record health_record;

/* What a repair did. */
struct repair {
	text_list done;	      /* one sentence a step */
	text_list failed;     /* what could not be repaired, and why */
	struct health health; /* afterwards */
};
extern const struct record repair_record;
