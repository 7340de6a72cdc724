/* archives.h -- wheels as uv unpacked them, in its cache. Only these show which package owns an
 * empty directory, since RECORD lists files. */
#pragma once
#include "envs/python/split.h"

/* Creates the directory `path`, in which no package lists a file, in the draft of each package
 * whose wheel contains it. The caller has entered the home. */
int archives_keep_directory(struct split *split, const char *path, struct error *err);
