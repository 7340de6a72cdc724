/* tool.h -- what the commands on tools share. */
#pragma once
#include "cli/cli.h"

/* VENV_BASE, a directory of this machine: links venv_NAME and pypi_PACKAGE in it lead to the
 * environments of the active tools of this home's daemon; links to environments of this home that
 * no active tool has are removed. Nothing else there is touched. Without VENV_BASE: nothing.
 * With a daemon of another machine: it says so. */
int tool_view_update(struct command *command, struct error *err);

/* tool_files.c */
extern const struct arg_spec tool_discover_spec, tool_generate_spec;
