/* api.h -- the doors: REST under /v1 with problem JSON, /healthz /readyz /metrics /openapi.json.
 * Parses, calls a verb of core, prints its result.
 * 1. Operations and their fields are tables (model/operations); finding, parsing, checking and
 * /openapi.json come from the same rows.
 * 2. Every answer that isn't 2xx is application/problem+json with a stable `code`, `detail`,
 * `hint`, `request_id`. */
#pragma once
#include "core/core.h"
#include "net/http.h"
#include "services/services.h"

struct api;
struct serve_settings;
struct api_options {
	struct core *core;
	struct services *services;
	struct loop *loop;
	const struct log *log;
	/* Whom TCP serves; NULL: the defaults. Lives as long as the API. */
	const struct serve_settings *settings;
};
int api_open(const struct api_options *options, struct api **api, struct error *err);
/* Also serves a unix socket; the caller keeps the descriptor. Clients are identified by the uid of
 * the peer: one that core doesn't allow gets 403 `denied`, and its connection is closed. */
int api_listen_peers(struct api *api, int listener, struct error *err);
struct tls;
/* The same with a TCP socket, and TLS unless that is NULL. Clients are identified by tokens, or by
 * the subjects of their certificates. */
int api_listen_tcp(struct api *api, int listener, struct tls *tls, struct error *err);
void api_drain(struct api *api, void (*done)(void *ctx), void *ctx);
void api_free(struct api *api);
