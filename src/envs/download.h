/* download.h -- a Python that isn't on this host, downloaded by `uv python install` into
 * <home>/pythons, where the operator has said from where: UV_PYTHON_INSTALL_MIRROR, or
 * config.yaml's file_hosts. Only those hosts are reached. uv checks the hash of what it gets. */
#pragma once
#include "envs/build.h"
#include "envs/uv.h"

/* version: as given to --python ("3.12", "python3.12"). After success interpreter_choose finds it.
 * ERR_NOT_FOUND: it can't be had; says why, and the hint lists what is here. The network is closed
 * before and after. */
int interpreter_install(const struct builder *builder, const struct uv *uv,
	const struct index_set *indexes, const char *version, struct arena *arena,
	struct error *err);
