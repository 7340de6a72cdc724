/* npm_registry.h -- which npm registry builds use: the operator's word, else the clients' own
 * configuration. No address of a registry is written in this program.
 * Order: --registry; npm_config_registry, NPM_CONFIG_REGISTRY, BUN_CONFIG_REGISTRY; `registry` in
 * the user's npmrc ($NPM_CONFIG_USERCONFIG, else ~/.npmrc), /usr/etc/npmrc, /usr/local/etc/npmrc,
 * /etc/npmrc; else what the npm of this host says.
 * Credentials are those of the same files for that address (_authToken, _auth): they are in
 * `npmrc` and `header` alone, never in keys, meta.json or messages. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "envs/runner.h"
#include "linux/home.h"

struct npm_registry {
	const char *url; /* ends with a slash; NULL: nothing is configured, see npm_registry_ask */
	const char *npmrc;  /* lines for a client that runs in a sandbox, "" when there are none */
	const char *header; /* the value of Authorization, or NULL */
	const char *certificates; /* a PEM file on the host, or NULL */
};
/* ERR_INVALID names the option, variable or file. Secrets are added to `secrets`. */
int npm_registry_find(const char *asked, struct arena *arena, struct npm_registry *out,
	text_list *secrets, struct error *err);
/* What the npm of this host takes when nothing is configured; kept. With runner NULL only what is
 * kept: ERR_NOT_FOUND. ERR_UNAVAILABLE: there is no npm here, and nothing is configured. */
int npm_registry_ask(const struct home *home, const struct runner *runner, struct arena *arena,
	struct npm_registry *out, struct error *err);
/* All logins in these files, for any registry, as texts that name them: a short one with its key.
 */
void npm_registry_logins(struct arena *arena, text_list *texts);
