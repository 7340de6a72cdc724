/* case.h -- eval cases and their cells, as plain data. Pure: format/text/yaml_json.h makes the
 * values
 *that are read here.
 *
 *	id: fix-slug
 *	description: slugs keep their digits
 *	source: ../site			# directory or archive; the client sends it
 *	environment:			# none: the interpreter of the host
 *	  requirements: [pytest, "werkzeug==3.1.3"]
 *	  install: editable		# the source itself, with its dependencies
 *	  system_site_packages: false
 *	setup: {run: ["git init -q"], timeout: 10m}
 *	harness: python3 fix.py		# or {command: python3 fix.py, timeout: 10m}
 *	graders:
 *	  - {type: pytest, paths: [tests], args: [-x], timeout: 5m}
 *	  - {type: tests, files: {test_hidden.py: "..."}, run: python3 -m unittest test_hidden}
 *	  - {type: command, name: style, run: "! grep -rn print src"}
 *	env: {LANG: C}
 *	limits: {memory: 1G}
 *	network: {mode: list, allow: [example.com]}
 *
 * 1. A cell begins with the state that the case was prepared to: source, packages, setup.
 * 2. All texts live in the arena that the creator of a struct passed. */
#pragma once
#include "base/hash.h"
#include "model/nouns/workspace.h"

#define CASE_ID_MAX 64
#define CASE_GRADERS_MAX 16
#define CASE_COMMANDS_MAX 32
#define CASE_REPEAT_MAX 10000
#define CASE_SETUP_TIMEOUT_MS 600000
#define CASE_HARNESS_TIMEOUT_MS 600000
#define CASE_GRADER_TIMEOUT_MS 300000
#define CASE_TTL_MS 3600000
#define CASE_TIMEOUT_MOST (24ull * 3600 * 1000)
/* What is kept of the output of all steps of a case or a cell, of one step, and of a diff: with
 * every byte escaped it fits into a row of the store. */
#define CASE_OUTPUT_MAX ((size_t)192 << 10)
#define CASE_STEP_OUTPUT_MAX ((size_t)64 << 10)
#define CASE_DIFF_MAX ((size_t)96 << 10)

/* ---- what a file says ---- */

enum grader_type { GRADER_COMMAND, GRADER_TESTS, GRADER_PYTEST, GRADER_TYPE_COUNT };
extern const char *const grader_type_names[GRADER_TYPE_COUNT + 1]; /* "command" …, NULL */
struct case_grader {
	int type;	       /* enum grader_type */
	const char *name;      /* NULL: that of its type */
	const char *run;       /* shell command; of pytest NULL, of tests maybe */
	text_list paths, args; /* of pytest */
	pair_list files;       /* path and text, put there before it runs; not of command */
	uint64_t timeout_ms;
};
struct case_spec {
	const char *id, *description, *source;
	struct case_environment {
		text_list requirements;
		int install; /* 1: editable */
		bool system_site_packages;
	} environment;
	struct case_setup {
		text_list run;
		uint64_t timeout_ms; /* of each */
	} setup;
	struct case_harness {
		const char *command;
		uint64_t timeout_ms;
	} harness;
	VEC(struct case_grader) graders;
	pair_list env;
	struct limits limits;
	struct workspace_network network;
};
/* ERR_INVALID names the line and the key. harness, unless NULL, replaces that of the file. */
int case_read(const struct json_value *value, const char *harness, struct arena *arena,
	struct case_spec *spec, struct error *err);
/* Whether the source is one by its name: tar, tar.gz, tgz, tar.zst, zip. */
bool case_source_is_archive(const struct case_spec *spec);
/* What is run for it, as a shell command. */
const char *grader_command(const struct case_grader *grader, struct arena *arena);

/* ---- what is shown of them ---- */

enum case_state { CASE_CREATED, CASE_PREPARING, CASE_READY, CASE_FAILED, CASE_STATE_COUNT };
extern const char *const case_state_names[CASE_STATE_COUNT + 1]; /* "created" …, NULL */
struct eval_case {
	char id[ID_LEN + 1];
	const char *name; /* the id that its file gives it */
	enum case_state state;
	const char *description, *source;  /* of the file, or NULL */
	const char *workspace;		   /* id of the prepared one; NULL: only checked */
	const char *snapshot;		   /* id of the prepared state, or NULL */
	const char *yaml, *file, *harness; /* as they were sent; or NULL */
	bool keep;			   /* workspaces stay */
	uint64_t ttl_ms;		   /* how long it stays unused */
	const char *steps;		   /* of the preparation: a JSON list of case_step_record */
	pair_list variables;		   /* of every command of its cells */
	const char *reason, *error;	   /* why it has failed, or NULL */
	int64_t created_ms, last_used_ms;
	uint64_t cells; /* shown only: how many there are */
};
extern const struct record case_record;
static inline int64_t case_expires_ms(const struct eval_case *model)
{
	return model->last_used_ms + (int64_t)model->ttl_ms;
}

enum cell_state {
	CELL_WAITING, /* for its case, or for its workspace */
	CELL_HARNESS,
	CELL_GRADING,
	CELL_PASSED,
	CELL_FAILED,
	CELL_CANCELED,
	CELL_STATE_COUNT
};
extern const char *const cell_state_names[CELL_STATE_COUNT + 1]; /* "waiting" …, NULL */
static inline bool cell_has_ended(enum cell_state state)
{
	return state >= CELL_PASSED;
}
struct cell {
	char id[ID_LEN + 1], case_id[ID_LEN + 1];
	const char *case_name;
	enum cell_state state;
	uint64_t repeat;
	const char *reason, *error; /* why it hasn't passed, or NULL */
	const char *workspace;	    /* its id while it exists, or NULL */
	const char *steps;	    /* JSON list of case_step_record */
	const char *diff;	    /* what the harness changed, as a patch; or NULL */
	bool diff_is_cut;
	int64_t created_ms, started_ms, ended_ms;
	uint64_t duration_ms;
	pair_list variables; /* of its commands */
};
extern const struct record cell_record, case_step_record;

/* Why a case or a cell has failed. */
#define CASE_REASON_RESTARTED "restarted"

/* One command of a case or a cell. */
struct case_step {
	const char *type; /* "install", "editable", "setup", "harness", or of a grader */
	const char *name, *command;
	bool passed;
	int exit_code;
	const char *reason; /* of enum reason, or "error": it could not be started */
	uint64_t duration_ms;
	const char *output;
	bool is_cut; /* a middle part of the output is left out */
};

/* ---- what is asked for ---- */

struct case_wanted {
	char id[ID_LEN + 1]; /* of the new case; "": one is made */
	const char *yaml, *file, *harness;
	bool check, keep;
	uint64_t ttl_ms; /* 0: CASE_TTL_MS */
};
struct cell_wanted {
	char id[ID_LEN + 1]; /* as above */
	uint64_t repeat;     /* 0: 1 */
};
extern const struct record case_wanted_record, cell_wanted_record;

/* Deep copies into arena. */
