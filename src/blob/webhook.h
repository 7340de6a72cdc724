/* webhook.h -- one call of the operator's webhook. Only in carrel-blob, which has libcurl.
 * Redirections are not followed, certificates are checked, what the server answers is thrown away,
 * and the whole takes at most `timeout_ms`. */
#pragma once
#include "base/error.h"
#include "base/str.h"

#define WEBHOOK_TIMEOUT_MS 10000
/* *status: what the server answered. -1: it hasn't. */
int webhook_post(const char *url, struct str secret, struct str body, uint64_t timeout_ms,
	long *status, struct error *err);
