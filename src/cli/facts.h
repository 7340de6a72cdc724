/* facts.h -- finds out what diagnose.h judges: reads files, tries things in children, runs
 * programs. Changes nothing on the host; a trial directory beside the home is removed again. */
#pragma once
#include "base/arena.h"
#include "cli/diagnose.h"

void facts_collect(struct facts *facts, struct arena *arena);
/* The version in the first line of what a program says about itself ("git version 2.39.5" →
 * "2.39.5"); NULL: none. Pure. */
const char *facts_version(const char *text, struct arena *arena);
