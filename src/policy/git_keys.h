/* git_keys.h -- keys of git's configuration that run no program, name no other configuration and
 * move no working tree: what `git init`, `git clone`, `git remote`, `git branch` and people write.
 * 1. A key, or a value, that isn't in the table isn't harmless: git has hundreds, and new ones in
 * each version. */
#pragma once
#include "policy/readers/git_config.h"

/* Whether git's subcommand `verb` obeys the entry without running what it names. */
bool git_key_is_harmless(const struct git_entry *entry, const char *verb);
/* An address of another machine: "https://…", "host:path". false: a path, or one that a program of
 * its own reaches. */
bool git_address_is_far(const char *address);
