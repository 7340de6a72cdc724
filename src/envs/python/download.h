/* download.h -- downloads a Python that is not on this host, by `uv python install`, into
 * <home>/pythons. The operator must have named a source: UV_PYTHON_INSTALL_MIRROR, or file_hosts in
 * config.yaml. Only these hosts are reached. uv checks the hash of the download. */
#pragma once
#include "envs/build.h"
#include "envs/python/uv.h"

/* version: as given to --python ("3.12", "python3.12"). After success interpreter_choose finds it.
 * ERR_NOT_FOUND: it can't be had; says why, and the hint lists what is here. The network is closed
 * before and after. */
int interpreter_install(const struct builder *builder, const struct uv *uv,
	const struct index_set *indexes, const char *version, struct arena *arena,
	struct error *err);
