/* inputs.h -- the requirements of an environment gathered into one list: requirement files with the
 * files that they include, pyproject.toml, pylock.toml, constraints, and what the command line
 * names itself. Reads files as the caller; runs nothing.
 * 1. An included file is looked for beside the file that includes it. It is a regular file that the
 * owner of the including file may read, at most INPUTS_DEPTH_MAX deep and INPUTS_FILES_MAX in all,
 * and doesn't include itself.
 * 2. ${NAME} is filled in from the environment, as pip does. What stands in lines other than a
 * package's may be a credential: it is in `secrets`, and neither in `text` nor in messages.
 * 3. `text` stands for everything that decides what is installed: one plain file is its own bytes,
 * --pip alone its sorted lines; everything else is one line for each requirement, followed by
 * comments that tell the rest. The hash in the environment's name is of this text. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "envs/python/locals.h"
#include "format/packages/requirements.h"

#define INPUTS_DEPTH_MAX 10
#define INPUTS_FILES_MAX 100
#define INPUTS_SECRET_MIN 4 /* bytes; hiding a shorter value would hide half of a log */

struct env_request;
struct env_wanted;
/* Fills in the first part of *wanted. ERR_INVALID names the file and line. */
int inputs_read(const struct env_request *request, struct arena *arena, struct env_wanted *wanted,
	struct error *err);
/* The version of this host's CUDA driver, by which --torch-backend auto chooses: a sandbox can't
 * see it. "": none, or it doesn't matter. */
const char *inputs_cuda_driver(const struct env_request *request, struct arena *arena);
/* A regular file (or /dev/null) of at most REQUIREMENTS_MAX bytes of UTF-8. Never waits. */
int inputs_read_file(const char *path, struct arena *arena, struct str *text, struct error *err);
