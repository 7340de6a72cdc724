/* index.h -- which package indexes builds use: the operator's words, else the clients' own
 * configuration. No address of a registry is written in this program.
 * Order: --index/--extra-index/--trusted-host; config.yaml; UV_DEFAULT_INDEX, UV_INDEX_URL,
 * UV_INDEX, UV_EXTRA_INDEX_URL, UV_INSECURE_HOST; PIP_INDEX_URL, PIP_EXTRA_INDEX_URL,
 * PIP_TRUSTED_HOST; uv.toml (user, system: index-url, extra-index-url, [[index]] url/default);
 * pip.conf ($PIP_CONFIG_FILE, user, /etc; [global] and [install]); else what uv's own help names as
 * its default.
 * 1. The first source that names an index decides: later sources add no other index. Extra indexes,
 * trusted hosts and certificates come from the first source that names any.
 * 2. A URL is http or https and has a host. Files are read with the rights of the caller. A file
 * that is missing or unreadable is ignored, unless a variable names it. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "envs/python/inputs.h"
#include "model/settings/config.h"

struct index_login {
	const char *url;  /* as in the set */
	const char *full; /* with user and password */
};
struct index_set {
	const char *index; /* NULL: nothing is configured, ask uv (uv_default_index) */
	text_list extra;
	text_list trusted_hosts;
	VEC(struct index_login) logins; /* see index_log_in */
	const char *certificates; /* a PEM file on the host: SSL_CERT_FILE, PIP_CERT, pip.conf cert,
				     else the system's; NULL: none found */
};
struct index_asked { /* from the command line; empty: not given */
	const char *index;
	text_list extra, trusted_hosts;
};
/* ERR_INVALID names the variable, file (and line) or option that is wrong; ERR_NOT_FOUND: a file
 * that a variable names. */
int index_find(const struct index_asked *asked, const struct config *config, struct arena *arena,
	struct index_set *set, struct error *err);
/* Finds the credentials of indexes whose URL has none: from $NETRC or ~/.netrc, and, when the URL
 * has a user and UV_KEYRING_PROVIDER or PIP_KEYRING_PROVIDER is "subprocess", from `ask` (a
 * keyring). They are in set->logins alone, so that keys, meta.json and messages never have them;
 * passwords are added to `secrets`. ERR_NOT_FOUND: $NETRC names a file that can't be read. */
typedef const char *index_password_fn(
	void *ctx, const char *url, const char *user, struct arena *arena);
int index_log_in(struct index_set *set, index_password_fn *ask, void *ctx, struct arena *arena,
	text_list *secrets, struct error *err);
/* The text of that netrc file; "" when there is none. */
int index_netrc(struct arena *arena, struct str *text, struct error *err);
/* The URL for uv: with the credentials that were found for it, if any. */
const char *index_full(const struct index_set *set, const char *url);
/* The URL with user and password replaced by "***", for meta, logs and messages. */
const char *index_redact(struct arena *arena, const char *url);
/* The URL in `uv pip install --help` after "(by default: <". NULL: not there. Pure. */
const char *index_default_in_help(struct str help, struct arena *arena);
