/* tools_internal.h -- the versions that are known. Private to tools.c, tool_forge.c, tool_call.c,
 * tool_generate.c. */
#pragma once
#include "services/desk.h"
#include "services/tools.h"
#include "services/waits.h"

#define TOOLS_SERVICE "tools"

struct tools {
	struct service_state base;
	struct tool_entry *newest;
	struct loop_timer *sweep;
	struct tool_settings settings;
	uint64_t forged, refused, calls, failed_calls;
};
struct tool_entry {
	struct tools *tools;
	struct arena arena; /* of the model's texts */
	struct tool model;
	unsigned users;	 /* jobs over it: it isn't removed */
	unsigned calls;	 /* of those */
	bool is_removed; /* by one of those */
	struct tool_entry *newer, *older;
};

struct tool_entry *tools_add(struct tools *tools, const struct tool *model);
void tools_drop(struct tool_entry *entry); /* from memory */
struct tool_entry *tools_find(struct tools *tools, const char *name, uint64_t version);
struct tool_entry *tools_find_active(struct tools *tools, const char *name);
/* The version that the name stands for, or NULL. */
struct tool_entry *tools_find_shown(struct tools *tools, const char *name);
/* Also of a version that has expired. */
int tools_fail_unknown(struct tools *tools, const char *name, uint64_t version, struct error *err);
/* Every transition: its time, its event, its row (done may be NULL). */
void tool_become(struct tool_entry *entry, enum tool_state state, store_done_fn *done, void *ctx);
/* `to` is active in place of `from` (or NULL), in the store and then in memory. Both have a user
 * until then. */
int tools_activate(
	struct fiber *fiber, struct tool_entry *from, struct tool_entry *to, struct error *err);
void tools_arm_sweep(struct tools *tools);
/* Until only the caller uses it. */
void tool_await_users(struct fiber *fiber, const struct tool_entry *entry);

/* tool_forge.c */
struct cancelable *tool_forge_start(
	struct tool_entry *entry, const struct request *request, tool_fn *done, void *ctx);
