/* archives.h -- wheels as uv unpacked them, in its cache: the only place that tells which package
 * an empty directory is of, since RECORD lists files. */
#pragma once
#include "envs/split.h"

/* Makes the directory `path` of the tree, of which no package lists a file, in the draft of each
 * package whose wheel has it. Nothing when none has. Entered. */
int archives_keep_directory(struct split *split, const char *path, struct error *err);
