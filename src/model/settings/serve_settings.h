/* serve_settings.h -- whom the daemon serves over TCP, and how much of it: a part of `serve` and
 * `access` of config.yaml. Pure. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "model/network/address.h"

#define SERVE_SUBJECT_MAX 100 /* characters */
struct serve_settings {
	text_list hosts;      /* names in `Host`, besides the listener's address and localhost */
	text_list origins;    /* of pages that may ask: "https://app.example" */
	text_list proxies;    /* ranges whose X-Forwarded-* counts */
	uint64_t connections; /* of one principal or address at once; 0: the default */
	uint64_t rate;	      /* requests a second of one principal; 0: no limit */
	pair_list subjects;   /* of client certificates (RFC 2253) -> "admin", "user", "reviewer" */
};
#define SERVE_CONNECTIONS_DEFAULT 1000

/* "https://app.example", "http://localhost:3000": a scheme and a host in lower case, as browsers
 * send it; no path. */
bool serve_origin_is_valid(const char *text);
struct record;
extern const struct record serve_settings_record; /* for a role */
