/* download.h -- downloads a Python that is not on this host, by `uv python install`, into
 * a layer, to which a link in <home>/pythons leads. The operator must have named a source:
 * python_mirror or file_hosts in config.yaml, or UV_PYTHON_INSTALL_MIRROR. Only these hosts are
 * reached, and that of python_downloads (UV_PYTHON_DOWNLOADS_JSON_URL), the list of downloads. Both
 * may be file:// URLs. uv checks the hash of the download. */
#pragma once
#include "envs/build.h"
#include "envs/python/uv.h"

/* The mirror that is configured; NULL: none. */
const char *interpreter_mirror(const struct config *config);
/* version: as given to --python ("3.12", "python3.12"). After success interpreter_choose finds it.
 * ERR_NOT_FOUND: it can't be had; says why, and the hint lists what is here. The network is closed
 * before and after. */
int interpreter_install(const struct builder *builder, const struct uv *uv,
	const struct index_set *indexes, const char *version, struct arena *arena,
	struct error *err);
