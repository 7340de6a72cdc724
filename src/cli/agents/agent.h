/* agent.h -- what the commands on agents share. */
#pragma once
#include "cli/cli.h"

/* agent_send.c */
extern const struct arg_spec agent_send_spec;
