/* tool.h -- a version of a tool: Python code that was tested before it is loaded. Pure.
 * 1. A tool is a name with versions that count up from 1. At most one of them is active: that is
 * what a call runs. docs/tools.md has the interface of the code.
 * 2. A version that passed its tests has an environment and, until its time is over, a workspace:
 * its desk.
 * 3. All texts live in the arena that the creator of the struct passed. */
#pragma once
#include "base/hash.h"
#include "model/nouns/workspace.h"

#define TOOL_NAME_MAX 64
#define TOOL_BYTES_MAX (128u << 10) /* of the code, and of its tests */
#define TOOL_OUTPUT_MAX (64u << 10) /* that is kept of the tests */
#define TOOL_TTL_DEFAULT_MS (24ull * 3600 * 1000)
#define TOOL_PACKAGE_PREFIX "pypi_" /* of a tool that was made of a package */
#define TOOL_NAME_PATTERN "^[a-z][a-z0-9_-]{0,63}$"
#define TOOL_DESCRIPTION_MAX 1024
#define TOOL_REQUIRES_MAX 256

enum tool_state {
	TOOL_DORMANT, /* nothing is loaded */
	TOOL_CREATING,
	TOOL_INSTALLING,
	TOOL_TESTING,
	TOOL_ACTIVE,
	TOOL_CLEANUP,
	TOOL_STATE_COUNT
};
extern const char *const tool_state_names[TOOL_STATE_COUNT + 1]; /* "dormant" …, NULL */

struct tool {
	char id[ID_LEN + 1];
	const char *name;
	uint64_t version;
	enum tool_state state;
	const char *package;	 /* of `tool install`: the requirement; else NULL */
	const char *description; /* or NULL */
	const char *code, *tests;
	text_list requires;
	const char *python; /* version, or NULL */
	struct workspace_network network;
	struct limits limits;
	uint64_t timeout_ms;			    /* of the tests; 0: the default of an exec */
	const char *environment;		    /* or NULL */
	const char *workspace;			    /* id of its desk, or NULL */
	bool has_passed;			    /* its tests, once */
	const char *error;			    /* why it is dormant, or NULL */
	const char *output;			    /* of its tests: the end of it; or NULL */
	const char *sha256;			    /* of the code */
	uint64_t forge_ms;			    /* how long forging took */
	uint64_t ttl_ms;			    /* how long it stays when it isn't active */
	int64_t created_ms, changed_ms, expires_ms; /* changed: its state; expires 0: never */
};
extern const struct record tool_record;
/* Without code, tests and output, for lists. */
struct tool tool_brief(const struct tool *tool);
bool tool_is_forging(const struct tool *tool);
int tool_check_name(const char *name, struct error *err);
/* "pypi_requests" for "Requests>=2.31"; false: no requirement begins so. */
bool tool_package_name(const char *requirement, char out[TOOL_NAME_MAX + 1]);

/* What is asked for: a package, or name, code and tests. */
struct tool_wanted {
	const char *name, *code, *tests, *package, *description, *python;
	text_list requires;
	struct workspace_network network;
	struct limits limits;
	uint64_t timeout_ms, ttl_ms;
};
extern const struct record tool_wanted_record;

struct tool_call {
	const char *arguments; /* JSON, an object; NULL: {} */
	uint64_t timeout_ms;   /* 0: the default of an exec */
	uint64_t version;      /* 0: the active one */
};
extern const struct record tool_call_record;
struct tool_rollback {
	uint64_t version; /* 0: the one before the active one */
};
extern const struct record tool_rollback_record;
extern const struct record tool_result_schema; /* of what a call answers */
/* Why a call has no result: "raised", "invalid_result", or a reason of result.h. */
extern const char *const tool_failure_names[]; /* ended by NULL */
