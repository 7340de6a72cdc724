/* tool.h -- what the commands on tools share. */
#pragma once
#include "cli/cli.h"

/* tool_files.c */
extern const struct arg_spec tool_discover_spec, tool_generate_spec;
