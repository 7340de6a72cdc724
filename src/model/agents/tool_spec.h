/* tool_spec.h -- what a tool is to be, and the code and tests that are written for it: by the
 * operator's generator, or as skeletons. Pure. */
#pragma once
#include "model/agents/tool.h"

struct tool_spec {
	const char *name, *description; /* description: or NULL */
	const char *arguments;		/* JSON: names and examples; or NULL */
	text_list requires;
};
extern const struct record tool_spec_record;
void tool_spec_copy(struct arena *arena, const struct tool_spec *from, struct tool_spec *to);
/* As the generator gets it on its input: every member is there. */
void tool_spec_print(const struct tool_spec *spec, struct buf *out);

struct tool_source {
	const char *name, *code, *tests;
	text_list requires;
	bool is_generated; /* by the operator's generator; else skeletons */
};
extern const struct record tool_source_record;
/* The tests fail until run is written. */
void tool_spec_skeleton(
	const struct tool_spec *spec, struct arena *arena, struct tool_source *source);
/* The lines of a file of requirements: comments and blank lines are left out. ERR_INVALID names the
 * line; ERR_LIMIT. */
int tool_read_requires(
	struct str text, struct arena *arena, text_list *requires, struct error *err);

/* `tools` of config.yaml. */
struct tool_settings {
	text_list generator; /* a command; empty: none */
	text_list domains;   /* that it may reach */
	uint64_t timeout_ms; /* 0: TOOL_GENERATOR_TIMEOUT_MS */
};
#define TOOL_GENERATOR_TIMEOUT_MS (120ull * 1000)
extern const struct record tool_settings_record; /* for a role */
