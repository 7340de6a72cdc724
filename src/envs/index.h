/* index.h -- which package indexes builds use: the operator's words, else the clients' own
 * configuration. No address of a registry is written in this program.
 * Order: --index/--extra-index/--trusted-host; config.yaml; UV_DEFAULT_INDEX, UV_INDEX_URL,
 * UV_INDEX, UV_EXTRA_INDEX_URL, UV_INSECURE_HOST; PIP_INDEX_URL, PIP_EXTRA_INDEX_URL,
 * PIP_TRUSTED_HOST; uv.toml (user, system: index-url, extra-index-url, [[index]] url/default);
 * pip.conf ($PIP_CONFIG_FILE, user, /etc; [global] and [install]); else what uv's own help names as
 * its default.
 * 1. The first that names an index decides: nothing behind it adds another index beside it. Extra
 * indexes, trusted hosts and certificates come from the first that names any.
 * 2. A URL is http or https and has a host. Files are read as the caller; one that isn't there, or
 * that he may not read, says nothing, unless a variable names it. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/config.h"

struct index_set {
	const char *index; /* NULL: nothing is configured, ask uv (uv_default_index) */
	VEC(const char *) extra;
	VEC(const char *) trusted_hosts;
	const char *certificates; /* a PEM file on the host: SSL_CERT_FILE, PIP_CERT, pip.conf cert,
				     else the system's; NULL: none found */
};
struct index_asked { /* from the command line; empty: not given */
	const char *index;
	VEC(const char *) extra, trusted_hosts;
};
/* ERR_INVALID names the variable, file (and line) or option that is wrong; ERR_NOT_FOUND: a file
 * that a variable names. */
int index_find(const struct index_asked *asked, const struct config *config, struct arena *arena,
	struct index_set *set, struct error *err);
/* The URL with user and password replaced by "***", for meta, logs and messages. */
const char *index_redact(struct arena *arena, const char *url);
/* The URL in `uv pip install --help` after "(by default: <". NULL: not there. Pure. */
const char *index_default_in_help(struct str help, struct arena *arena);
