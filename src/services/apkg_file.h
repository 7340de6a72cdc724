/* apkg_file.h -- an agent package as a file: read with all checks that a deployment makes, and
 * written. For `carrel package`, in a locked role of its own. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "format/text/json.h"

/* Reads a zip, tar, tar.gz or tar.zst from `from`, checks its names and agent.yaml, and writes all
 * of it in `format` ("zip", "tar.gz", "tar.zst") to `to`, unless that is -1. env: a tar that
 * becomes its APKG_VENV, in place of one that it has, and an empty file to make that in; both -1:
 * none. Prints {"name","version","description","python_version","surfaces","requirements","files",
 * "size_bytes","prebuilt"}. */
int apkg_convert(int from, int to, const char *format, const int env[2], struct arena *arena,
	struct json *j, struct error *err);
