/* tools.h -- tools: forged, listed, called, rolled back, removed (docs/design/0061-tools.md).
 * 1. Nothing is loaded unless its tests have passed twice: in order, and in reverse order.
 * 2. Each version has workspaces of its own: a throw-away one for its tests, and after they have
 * passed its desk, in which calls run. No other tool reaches either.
 * 3. The active version changes by one commit of the store. After a crash a version that was being
 * forged is dormant, and workspaces that no row names are removed. */
#pragma once
#include "model/agents/tool.h"
#include "model/agents/tool_spec.h"
#include "model/nouns/exec.h"
#include "services/services.h"

#define TOOLS_MAX 1000 /* versions of all tools */

extern const struct service tools_service;
struct tools;

typedef void tool_fn(void *ctx, const struct tool *tool, const struct error *err);
/* done: it is active, or dormant with the reason; *tool is valid during the call. An error: it was
 * refused or canceled, or can't be stored, and nothing is kept. ERR_CONFLICT: the tool is being
 * forged. NULL: refused, told later. */
core_verb struct cancelable *tools_forge(const struct request *request, struct tools *tools,
	const struct tool_wanted *wanted, tool_fn *done, void *ctx);
/* The one that stands for its name: the active version, or the newest. version 0: that one.
 * ERR_NOT_FOUND. Valid until the next turn of the loop. */
core_verb int tools_get(const struct request *request, struct tools *tools, const char *name,
	uint64_t version, const struct tool **tool, struct error *err);
/* One of each name, or (name not NULL) all versions of that tool; newest first, brief. `cursor` and
 * `next` as in core_list. */
core_verb int tools_list(const struct request *request, struct tools *tools, const char *name,
	const char *cursor, size_t limit, void (*fn)(void *ctx, const struct tool *tool), void *ctx,
	char next[CORE_CURSOR_SIZE], struct error *err);
/* ERR_CONFLICT: there is no such version to go back to. */
core_verb void tools_rollback(const struct request *request, struct tools *tools, const char *name,
	uint64_t version, tool_fn *done, void *ctx);
/* All its versions, and what runs in them. done gets no tool. */
core_verb void tools_remove(const struct request *request, struct tools *tools, const char *name,
	tool_fn *done, void *ctx);

struct tool_answer { /* valid until the callback returns */
	const char *name;
	uint64_t version;
	struct str result; /* JSON; empty: it has failed, and the rest says why */
	const char *reason, *type, *message, *traceback;
	struct exec_output output;
	uint64_t duration_ms;
};
typedef void tool_call_fn(void *ctx, const struct tool_answer *answer, const struct error *err);
struct tool_call_job;
/* *job is valid until done is called. NULL: refused, and done isn't called. */
core_verb struct tool_call_job *tools_call(const struct request *request, struct tools *tools,
	const char *name, const struct tool_call *call, tool_call_fn *done, void *ctx,
	struct error *err);
/* The client is gone: what runs is killed; done isn't called. */
void tools_cancel_call(struct tool_call_job *job);
void tool_print_answer(struct json *j, const struct tool_answer *answer);

typedef void tool_source_fn(void *ctx, const struct tool_source *source, const struct error *err);
struct tool_generate_job;
/* Code and tests for a specification: of the operator's generator, which runs in a workspace that
 * is removed before the answer, or skeletons. Nothing is loaded. ERR_FAILED: the generator has
 * failed, or what it wrote is no tool; ERR_LIMIT: it is too large. *source is valid during the
 * call. *job is valid until done is called. NULL: refused, and done isn't called. */
core_verb struct tool_generate_job *tools_generate(const struct request *request,
	struct tools *tools, const struct tool_spec *spec, tool_source_fn *done, void *ctx,
	struct error *err);
/* The client is gone: what runs is killed, the workspace removed; done isn't called. */
void tools_cancel_generate(struct tool_generate_job *job);
